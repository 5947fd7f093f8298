"""The file's entry points: the one with roles, and the ordinary one for what TMA cannot load."""

from __future__ import annotations

from dataclasses import replace

from tile2c.transpile.diagnostics import Diagnostics, InputError
from tile2c.transpile.ir.forms import Function, Launch
from tile2c.transpile.lower.plan import Entry, Plan
from tile2c.transpile.lower.rename import rename_reserved
from tile2c.transpile.lower.simt import kernel as ordinary
from tile2c.transpile.lower.simt.helper_order import ordered
from tile2c.transpile.lower.simt.hopper.launch import OTHERS_STRUCT, Given, WithRoles
from tile2c.transpile.lower.simt.hopper.neighbours import still_side_by_side, with_clusters
from tile2c.transpile.lower.simt.hopper.notes import with_launch_notes, with_notes_of
from tile2c.transpile.lower.simt.hopper.panels import with_panels
from tile2c.transpile.lower.simt.hopper.repack import known_odd, with_repacking
from tile2c.transpile.lower.simt.hopper.staging import drop_staging
from tile2c.transpile.lower.simt.hopper.team import unaligned_flag
from tile2c.transpile.lower.simt.hopper.unfit import Crowded, Restless, Unfit
from tile2c.transpile.lower.simt.hopper.warpgroups import THREADS
from tile2c.transpile.lower.simt.uses import names_in
from tile2c.transpile.render.expressions import CPrinter
from tile2c.transpile.targets.simt import SimtTarget

_RESERVED = frozenset(
    (
        "ring ring_stages full empty warpgroup group_m group_n aligned "
        "Shared shared shared_bytes Ring TensorMap"
    ).split()
)


def plan_of(
    function: Function, launch: Launch, target: SimtTarget, diagnostics: Diagnostics
) -> Plan:
    """The plan; with a second entry for sizes and addresses that TMA cannot take. Raises Unfit."""
    function = rename_reserved(function, _RESERVED)
    (launch,) = function.launches
    plan = _whole_plan(function, launch, target, diagnostics)
    return with_launch_notes(plan, CPrinter(target.dialect))


def _whole_plan(
    function: Function, launch: Launch, target: SimtTarget, diagnostics: Diagnostics
) -> Plan:
    theirs = _with_warpgroups(function, launch, target, diagnostics)
    launch = with_panels(_without_staging(function, theirs, target, diagnostics))
    whole = _settled(function, launch, target, diagnostics, Given())
    given = whole.conditions
    other: Plan | None = None
    if given.pitches or given.positive:
        whole = _settled(function, launch, target, diagnostics, given)
        other = _for_the_rest(function, theirs, whole, diagnostics)

    def told_by(lowered: WithRoles) -> Plan:
        plan = lowered.plan() if other is None else _beside(whole, lowered.plan(), other)
        return whole.in_parts(plan)

    both = _together(function, whole, diagnostics)
    if both is not None and (shared := both.roles.neighbours) is not None:
        clustered = with_clusters(told_by(both), shared, target.dialect)
        if clustered is not None:
            return with_notes_of(clustered.entries[1], clustered)
    return told_by(whole)


def _for_the_rest(
    function: Function, launch: Launch, whole: WithRoles, diagnostics: Diagnostics
) -> Plan | None:
    """The ordinary way, for sizes and addresses that TMA cannot take.

    None where it cannot be gone at all: the launch then requires what TMA does.
    """
    heard = Diagnostics() if known_odd(whole) else diagnostics  # what is copied first is not slow
    try:
        return ordinary.LoweredLaunch(
            function,
            launch,
            whole.ctx.target,
            heard,
            variant=True,
            unaligned=True,
            taken=OTHERS_STRUCT | _layout_functions(whole),
        ).plan()
    except InputError:
        if known_odd(whole):
            raise Unfit(known_odd(whole)) from None
        return None


def _settled(
    function: Function,
    launch: Launch,
    target: SimtTarget,
    diagnostics: Diagnostics,
    given: Given,
    *,
    together: bool = False,
) -> WithRoles:
    """The launch with roles, its blocks taking several tiles where they can."""
    try:
        return WithRoles(function, launch, target, diagnostics, given, stay=True, together=together)
    except Restless:
        return WithRoles(function, launch, target, diagnostics, given, together=together)


def _together(function: Function, whole: WithRoles, diagnostics: Diagnostics) -> WithRoles | None:
    """The launch lowered also for clusters of two blocks, where they have tiles in common."""
    in_another_order = whole.parts is not None or (whole.stays and whole.pairs is not None)
    if not whole.roles.alike or in_another_order:
        return None
    target = whole.ctx.target
    both = _settled(function, whole.asked, target, diagnostics, whole.given, together=True)
    shared = both.roles.neighbours
    if shared is None or not still_side_by_side(both.ctx, shared) or both.stays != whole.stays:
        return None
    if both.addresses != whole.addresses or both.conditions != whole.conditions:
        return None  # it is launched on the conditions of the other entry
    return both


def _layout_functions(whole: WithRoles) -> frozenset[str]:
    """Names of the functions that say how the entry with roles lays out its tiles."""
    found = [helper for helper in whole.ctx.helpers.values() if helper.template == "swizzle"]
    return frozenset(str(dict(helper.fields)["name"]) for helper in found)


def _without_staging(
    function: Function, launch: Launch, target: SimtTarget, diagnostics: Diagnostics
) -> Launch:
    """The launch less the tiles that its stores through shared memory make needless."""
    shorter, count = drop_staging(launch)
    if not count:
        return launch
    lowered = WithRoles(function, shorter, target, diagnostics, Given())
    plain = len(WithRoles(function, launch, target, diagnostics, Given()).passages)
    return shorter if len(lowered.passages) == plain + count else launch


def _with_warpgroups(
    function: Function, launch: Launch, target: SimtTarget, diagnostics: Diagnostics
) -> Launch:
    """The author's threads, or twice as many where nothing asks for its thread and that helps.

    It does where the sums do not fit otherwise, and where a lone warpgroup has rows enough for two:
    then one multiplies while the other waits.
    """
    x, y, z = launch.threads
    if y * z != 1 or x % THREADS:
        raise Unfit(f"{x * y * z} threads are no row of whole warpgroups of {THREADS}")
    if launch.thread_vars:
        return launch
    wider = replace(launch, threads=(2 * x, 1, 1))
    try:
        found = WithRoles(function, launch, target, diagnostics, Given())
    except Crowded as crowded:
        if not _fits(function, wider, target, diagnostics):
            raise crowded from None
        return wider
    lone = found.roles.groups == 1 and all(p.tiles_m > 1 for p in found.roles.products.values())
    return wider if lone and _fits(function, wider, target, diagnostics) else launch


def _fits(function: Function, launch: Launch, target: SimtTarget, diagnostics: Diagnostics) -> bool:
    try:
        WithRoles(function, launch, target, diagnostics, Given())
    except Unfit:
        return False
    return True


def _beside(whole: WithRoles, mine: Plan, theirs: Plan) -> Plan:
    """One file with the entries with roles and, for all other sizes and addresses, the ordinary one.

    `mine`: the plan of `whole`, or one with the same entry and launch beside others.
    """
    entry, *more = mine.entries
    body = theirs.bodies[0].body
    flag = (unaligned_flag(),) if "aligned" in names_in(body) else ()
    rest = Entry(
        name=f"{entry.name}_any",
        params=theirs.bodies[0].params,
        threads=theirs.entries[0].threads,
        body=(*flag, *body),
        comments=("Any other sizes and addresses: mma.sync, tiles loaded element by element.",),
    )
    condition = " and ".join(mine.requires)
    from tile2c.transpile.render.header import conditions_in_words

    words = conditions_in_words(mine.requires, {arg.name for arg in mine.args})
    entry = replace(entry, comments=(f"For copies whose rows TMA can load: {words}.",))
    fallback = replace(theirs.launches[1], entry=rest.name)
    direct = replace(mine.launches[0], when=condition)
    helpers = {str(helper): helper for helper in (*mine.helpers, *theirs.helpers)}
    constants = {c.name for c in (*mine.constants, *theirs.constants)}
    plan = replace(
        mine,
        constants=(
            *(c for c in whole.ctx.function.constants if c.name in constants),
            *whole.own_constants(),
        ),
        headers=tuple(dict.fromkeys((*mine.headers, *theirs.headers))),
        helpers=tuple(ordered(list(helpers.values()))),
        entries=(entry, *more, rest),
        launches=(direct, fallback),
        choices=(*mine.choices, *theirs.choices),
        requires=(),
    )
    plan = with_repacking(plan, whole, direct)
    if known_odd(whole):
        return plan
    copied = len(plan.entries) > len((entry, *more, rest))
    copies = ", or that were copied to such rows" if copied else ""
    entry = replace(entry, comments=(f"For rows that TMA can load{copies}: {words}.",))
    return replace(plan, entries=(entry, *plan.entries[1:]))
