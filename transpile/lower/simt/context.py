"""What lowering a launch keeps at hand: target, facts, names, layouts, and the text's shared parts."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import field
from typing import TYPE_CHECKING, Literal

from tile2c.transpile.diagnostics import Diagnostics
from tile2c.transpile.ir.dtypes import INT32, DType
from tile2c.transpile.ir.expr import Buffer, Expr, Var, const
from tile2c.transpile.ir.forms import Function, Launch
from tile2c.transpile.lower import build as b
from tile2c.transpile.lower.facts import Facts
from tile2c.transpile.lower.plan import Choice, Declarator, Helper, Local
from tile2c.transpile.lower.simt.layouts import Layout
from tile2c.transpile.lower.simt.names import Namer
from tile2c.transpile.lower.simt.steps import SharedUse
from tile2c.transpile.record import record
from tile2c.transpile.targets.simt import SimtTarget

if TYPE_CHECKING:
    from tile2c.transpile.lower.simt.overlay import Group
    from tile2c.transpile.lower.simt.running import Running

# An asynchronous copy is always inside its tensor, or with all of its bytes or none, or in part.
CopyKind = Literal["inside", "whole", "part"]


@record(kw_only=True)
class SharedLayout:
    """Where an element of a shared tile lies. `function` is the C function of the text.

    Row-major, with 16-byte chunks of a row exchanged: chunk c of row r sits at
    c ^ (r / `divide` % `modulus`). Or, with a `group`, that many rows of a column lie together and
    columns are exchanged: [rows / group][columns][group].
    """

    function: str = ""
    chunk: int = 1  # elements
    divide: int = 1
    modulus: int = 1
    group: int = 1  # rows
    pad: int = 0  # elements that rows are longer than the tile's
    slab: int = (
        0  # columns that lie together, before all others: [column / slab][row][column % slab]
    )

    @property
    def swizzled(self) -> bool:
        return self.modulus > 1


@record
class Ring:
    """Copies of a shared tile: how many (as a number and as the author says it), the one in use."""

    depth: int
    extent: Expr
    slot: Expr
    loop: str


@record(frozen=False)
class Context:
    """State of lowering one launch. Passes fill it in order; nothing here outlives the launch."""

    target: SimtTarget
    function: Function
    launch: Launch
    diagnostics: Diagnostics
    facts: Facts
    namer: Namer
    threads: int
    variant: bool = False  # rows may start unaligned: the text is a template over `aligned`
    between_products: bool = False  # what is lowered now keeps the matrix unit waiting
    whole_words: bool = False  # many loads are on their way at once: what they load stays in words
    in_cluster: bool = False  # shared addresses hold the rank of a block among its cluster's
    cluster_size: str = ""  # the template's parameter that says of how many blocks, 1 among them
    unaligned: bool = False  # only the variant that knows nothing of rows: no copy is asynchronous
    wants_variant: bool = False  # some access would be vectorized if rows were known to be aligned
    layouts: dict[str, Layout] = field(default_factory=dict)  # fragment -> layout
    shared: dict[str, SharedLayout] = field(default_factory=dict)
    running: Running | None = None  # pointers of the loads ahead that are lowered now
    ring: dict[str, Ring] = field(default_factory=dict)  # shared tile -> its copies
    arrays: list[SharedUse] = field(default_factory=list)
    array_types: dict[str, DType] = field(default_factory=dict)  # of the shared arrays
    reducers: dict[str, tuple[str, str]] = field(default_factory=dict)  # helper -> type, formula
    aligned_fragments: set[str] = field(default_factory=set)  # moved as vectors
    harmless: set[int] = field(default_factory=set)  # reductions that padding does not change: ids
    own_parts: set[str] = field(default_factory=set)  # fragments that threads gather in, each alone
    helpers: dict[str, Helper] = field(default_factory=dict)
    kinds: dict[Hashable, str] = field(default_factory=dict)  # helpers of several kinds: names
    copies: dict[tuple[int, CopyKind], str] = field(
        default_factory=dict
    )  # asynchronous ones: names
    choices: list[Choice] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)  # what the head of the text says of numbers
    aligned_tensors: dict[str, int] = field(default_factory=dict)  # tensor -> bytes
    known_pitches: dict[Expr, int] = field(
        default_factory=dict
    )  # of the aligned variant: stride -> elements
    aligned_pitches: dict[Expr, int] = field(default_factory=dict)  # stride -> elements
    wanted: dict[str, Expr] = field(default_factory=dict)  # thread names that the text uses
    wanted_remarks: dict[str, str] = field(default_factory=dict)  # what one of them means
    terms: dict[tuple[int, int, int], str] = field(
        default_factory=dict
    )  # named parts of coordinates
    teams: dict[tuple[int, int], int] = field(default_factory=dict)  # range -> its barrier
    named_barriers: frozenset[int] = frozenset()  # numbers that the author uses himself
    overlays: tuple[Group, ...] = ()  # shared arrays that lie in the same bytes
    leaving: set[str] = field(default_factory=set)  # shared tiles that results leave through
    team: tuple[int, int] | None = None  # (first, count): the threads that do what is lowered now
    divergent: bool = False  # here only some of the threads run
    handed: dict[str, Buffer] = field(default_factory=dict)  # fragment -> the tile it goes through
    author_names: frozenset[str] = frozenset()
    values: dict[str, Expr] = field(default_factory=dict)  # IR variable -> plan expression

    # ---- helpers of the text

    def need(self, template: str, **fields: str | int | bool) -> None:
        """The text needs this helper function; equal requests are one."""
        key = f"{template} {sorted(fields.items())}"
        self.helpers.setdefault(key, Helper(template=template, fields=tuple(fields.items())))

    def helper_name(self, base: str, key: Hashable, *words: str) -> str:
        """The text's name for one kind of a helper; the first kind needs no more words than `base`."""
        if (base, key) not in self.kinds:
            taken, wish = set(self.kinds.values()), base
            for word in words:
                if wish in taken:
                    wish += f"_{word}"
            self.kinds[(base, key)] = wish
        return self.kinds[(base, key)]

    def copy_name(self, size: int, kind: CopyKind) -> str:
        """The text's name for asynchronous copies of one size; the first needs no more words.

        Copies that cannot leave their tensor take no count: they overload one of those that do.
        """
        if (size, kind) in self.copies:
            return self.copies[(size, kind)]
        counted = {name for (_, other), name in self.copies.items() if other != "inside"}
        for (width, other), name in self.copies.items():
            if width == size and (kind == "inside" or (other == "inside" and name not in counted)):
                return self.copies.setdefault((size, kind), name)
        wish = f"copy_async_{size}" if self.copies else "copy_async"
        if wish in self.copies.values():
            wish += f"_{kind}"
        return self.copies.setdefault((size, kind), wish)

    def vector_type(self, dtype: DType, count: int) -> str:
        """The C name of a vector of `count` elements; the text declares it."""
        types = self.target.dialect.types
        name = types[f"{dtype.name}x{count}"]
        self.need("vector_type", name=name, element=types[dtype.name], count=count)
        return name

    # ---- thread coordinates

    def thread(self) -> Expr:
        """The linear thread index, within the team where there is one."""
        index = self._block_thread()
        if self.team is not None and self.team[0]:
            return b.sub(index, const(self.team[0]))
        return index

    def _block_thread(self) -> Expr:
        x, y, z = self.launch.threads
        index: Expr = b.local("threadIdx.x")
        if y > 1 or z > 1:
            row = b.add(b.local("threadIdx.y"), b.mul(b.local("threadIdx.z"), const(y)))
            row = row if z > 1 else b.local("threadIdx.y")
            index = self._named("thread", b.add(index, b.mul(row, const(x))))
        return index

    def lane(self) -> Expr:
        """The thread's place in its warp."""
        if self.threads <= self.target.lanes:
            return self.thread()
        if self.team is not None and self.team[0] % self.target.lanes:
            return b.mod(self.thread(), const(self.target.lanes))
        return self._named("lane", b.mod(self._block_thread(), const(self.target.lanes)))

    def warp(self) -> Expr:
        if self.threads <= self.target.lanes:
            return const(0)
        lanes = self.target.lanes
        if self.team is not None and self.team[0] % lanes:
            return b.div(self.thread(), const(lanes))
        warp = self._named(self.target.group, b.div(self._block_thread(), const(lanes)))
        first = self.team[0] // lanes if self.team is not None else 0
        return b.sub(warp, const(first)) if first else warp  # counts within the team

    def _named(self, name: str, value: Expr) -> Expr:
        if name not in self.wanted:
            self.wanted[name] = value
        return b.local(name)

    def thread_digit(self, weight: int, extent: int, place: int = 1) -> Expr:
        """thread / weight % extent * place, said with lane and warp where that is plainer."""
        named = self.terms.get((weight, extent, place)) if self.team is None else None
        if named is not None:
            if named not in self.wanted:
                self.wanted[named] = b.mul(self._bare_digit(weight, extent), const(place))
            return b.local(named)
        return b.mul(self._bare_digit(weight, extent), const(place))

    def _bare_digit(self, weight: int, extent: int) -> Expr:
        lanes = self.target.lanes
        if self.threads > lanes and self.threads % lanes == 0:
            if weight % lanes == 0:
                return _digit(self.warp(), weight // lanes, extent, self.threads // lanes)
            if lanes % (weight * extent) == 0:
                return _digit(self.lane(), weight, extent, lanes)
        return _digit(self.thread(), weight, extent, self.threads)

    def prologue(self) -> tuple[Local, ...]:
        """Declarations of the thread names that were used, those that others build on first."""
        basic = ("thread", "lane", self.target.group, "warpgroup")
        groups = [["thread"], [*basic[1:3]], ["warpgroup"]]
        groups.append([n for n in self.wanted if n not in basic])
        found: list[Local] = []
        for group in groups:
            names = [Declarator(name=n, value=self.wanted[n]) for n in group if n in self.wanted]
            if names:
                remarks = [self.wanted_remarks.get(name.name, "") for name in names]
                found.append(Local(dtype=INT32, names=tuple(names), remark=max(remarks)))
        return tuple(found)

    def require_alignment(
        self, buffer: Buffer, index: tuple[Expr, ...], var: str, width: int
    ) -> None:
        """A vector access of a tensor: its address, and a pitch nobody knows, have to be aligned."""
        from tile2c.transpile.lower.simt.access import alignment

        self.aligned_tensors.setdefault(buffer.name, 1)
        size = width * buffer.dtype.bytes
        self.aligned_tensors[buffer.name] = max(self.aligned_tensors[buffer.name], size)
        if alignment(self, buffer, index, var, width) == "rows":
            self.wants_variant = True
            for part, stride in zip(index[:-1], self.pitch(buffer)[:-1], strict=True):
                if not b.literal(part, 0) and not self.facts.divisible(stride, width):
                    self.aligned_pitches[stride] = max(self.aligned_pitches.get(stride, 1), width)

    # ---- buffers

    def pitch(self, buffer: Buffer) -> tuple[Expr, ...]:
        """Strides of a buffer in elements, one a dimension."""
        if buffer.strides is not None:
            return buffer.strides
        strides: list[Expr] = [const(1)]
        shape = buffer.shape
        layout = self.shared.get(buffer.name) if buffer.scope == "shared" else None
        if layout is not None and layout.pad:
            shape = (*shape[:-1], b.add(shape[-1], const(layout.pad)))
        for extent in map(b.in_words, reversed(shape[1:])):
            strides.insert(0, b.mul(extent, strides[0]) if not b.literal(strides[0], 1) else extent)
        return tuple(strides)

    def wide(self, buffer: Buffer) -> bool:
        """Whether offsets into the buffer may need 64 bits."""
        total = 1
        for extent in buffer.shape:
            size = b.known(extent)
            if size is None:
                return len(buffer.shape) > 1
            total *= size
        return total >= 2**31


def _digit(base: Expr, weight: int, extent: int, total: int) -> Expr:
    part = b.div(base, const(weight))
    return part if weight * extent >= total else b.mod(part, const(extent))


def variable(var: Var, name: str) -> Var:
    """The C variable that stands for an IR variable."""
    return Var(dtype=var.dtype, name=name, kind=var.kind)
