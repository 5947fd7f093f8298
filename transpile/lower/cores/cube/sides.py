"""Divides a kernel of products and of other work between the cube core and the vector cores.

reads   tile IR, folded        writes  a launch for each side, with copies through the workspace
Products, and the copies that only feed them, are the cube's. All else is the vector cores'. Sums
that these read, and operands that they make, pass through the workspace.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from tile2c.transpile.diagnostics.diagnostic import failure
from tile2c.transpile.ir import forms, walk
from tile2c.transpile.ir.dtypes import BOOL, INT32
from tile2c.transpile.ir.expr import Binary, Buffer, Const, Expr, Load, Var, const
from tile2c.transpile.ir.forms import Range, Region, Stmt
from tile2c.transpile.lower.cores.cube.forms import Begin, Product, StoreSums
from tile2c.transpile.lower.cores.cube.roles import Roles, is_load, touches
from tile2c.transpile.lower.cores.exchange import Exchange, Flag
from tile2c.transpile.record import record

CORE = "core"  # the number of a cube core, on both sides


@record
class Sides:
    """What each side does, and what passes between them in order of the first passing."""

    cube: tuple[Stmt, ...]
    vector: tuple[Stmt, ...]
    exchanges: tuple[Exchange, ...]
    products: tuple[Buffer, ...]  # new tiles of the vector cores, for products that they add up
    made_by_cube: frozenset[str]  # exchanges that the cube writes


def finished_sums(body: tuple[Stmt, ...], roles: Roles) -> frozenset[str]:
    """Sums that products alone make, from a start on, before anything else touches them."""
    return frozenset(name for name in roles.sums if _finishes(body, name))


def divide(
    launch: forms.Launch,
    body: tuple[Stmt, ...],
    roles: Roles,
    finished: frozenset[str],
    cores: int,
) -> Sides:
    """The sides of a launch whose folded body is `body`, on a chip of so many cube cores.

    `finished`: sums that pass once the last product is done. Raises InputError for what neither
    side can do.
    """
    return _Divider(launch, roles, finished, cores).divide(body)


_Both = tuple[tuple[Stmt, ...], tuple[Stmt, ...]]


class _Divider:
    def __init__(
        self, launch: forms.Launch, roles: Roles, finished: frozenset[str], cores: int
    ) -> None:
        self.roles = roles
        self.cores = const(cores)
        self.names = {buffer.name for buffer in launch.buffers}
        self.exchanges: dict[str, Exchange] = {}
        self.products: dict[str, Buffer] = {}
        self.by_cube: set[str] = set()
        self.finished = finished
        self.vector_made: set[str] = set()
        self.vector_read: set[str] = set()
        self.vector_sums: set[str] = set()
        self.elsewhere: set[str] = set()  # numbers that only the vector cores have

    def divide(self, body: tuple[Stmt, ...]) -> Sides:
        self.classify(body)
        cube, vector = self.lower(body)
        self.check(cube)
        return Sides(
            cube,
            vector,
            tuple(self.exchanges.values()),
            tuple(self.products.values()),
            frozenset(self.by_cube),
        )

    # ---- who owns what

    def classify(self, body: tuple[Stmt, ...]) -> None:
        for stmt in walk.statements(body):
            if isinstance(stmt, forms.Gemm | Begin | StoreSums):
                continue
            if not self.is_feed(stmt):
                made = {b.name for b in walk.writes(stmt)}
                self.vector_made |= made & self.roles.operands.keys()
            self.vector_read |= {b.name for b in walk.reads(stmt)} & self.roles.operands.keys()
        for name in self.roles.sums:
            if self.read_by_vector(name, body):
                self.vector_sums.add(name)

    def is_feed(self, stmt: Stmt) -> bool:
        """Whether a statement loads an operand from a tensor."""
        return (
            isinstance(stmt, forms.Copy)
            and is_load(stmt)
            and stmt.dst.buffer.name in self.roles.operands
            and stmt.dst.buffer.name not in self.vector_made
        )

    def read_by_vector(self, name: str, body: tuple[Stmt, ...]) -> bool:
        """Whether anything but products and stores of the cube touches these sums."""
        return any(
            touches(stmt, name)
            for stmt in walk.statements(body)
            if not walk.bodies(stmt) and not isinstance(stmt, forms.Gemm | Begin | StoreSums)
        )

    # ---- statements

    def lower(self, body: tuple[Stmt, ...]) -> _Both:
        cube: list[Stmt] = []
        vector: list[Stmt] = []
        before: Stmt | None = None
        for place, stmt in enumerate(body):
            ours, theirs = self.statement(stmt, before)
            cube += ours
            vector += theirs
            before = stmt
            for name in sorted(self.finished & self.vector_sums):
                if _made(body, place, name):
                    one, other = self.sums_pass(self.roles.sums[name], self.roles.sums[name], stmt)
                    cube += one
                    vector += other
        return tuple(cube), tuple(vector)

    def statement(self, stmt: Stmt, before: Stmt | None) -> _Both:
        if isinstance(stmt, forms.Gemm):
            return self.product(stmt, before)
        if isinstance(stmt, Begin):
            if stmt.sums.name in self.finished:
                return (stmt,), ()
            return (), (_fill(stmt),)
        if isinstance(stmt, StoreSums):
            if stmt.src.buffer.name in self.finished - self.vector_sums:
                return (stmt,), ()
            return (), (_copy(stmt),)
        if self.is_feed(stmt):
            assert isinstance(stmt, forms.Copy)
            return (stmt,), ((stmt,) if stmt.dst.buffer.name in self.vector_read else ())
        if isinstance(stmt, forms.For | forms.Pipelined | forms.While):
            cube, vector = self.lower(stmt.body)
            return _nonempty(stmt, cube), _nonempty(stmt, vector)
        if isinstance(stmt, forms.If):
            then, orelse = self.lower(stmt.then), self.lower(stmt.orelse)
            return tuple(
                (replace(stmt, then=then[side], orelse=orelse[side]),)
                if then[side] or orelse[side]
                else ()
                for side in (0, 1)
            )  # type: ignore[return-value]
        if isinstance(stmt, forms.Let | forms.Declare) or _is_variable(stmt):
            tiles = {b.name for b in walk.reads(stmt) if b.scope in ("shared", "fragment")}
            if tiles:
                self.elsewhere |= {b.name for b in walk.writes(stmt)}
                if isinstance(stmt, forms.Let):
                    self.elsewhere.add(stmt.var.name)
                return (), (stmt,)
            return (stmt,), (stmt,)
        return (), (stmt,)

    def product(self, stmt: forms.Gemm, before: Stmt | None) -> _Both:
        cube: list[Stmt] = []
        vector: list[Stmt] = []
        for operand in {stmt.a.buffer.name: stmt.a, stmt.b.buffer.name: stmt.b}.values():
            if operand.buffer.name in self.vector_made:
                one, other = self.operand_passes(operand.buffer, stmt)
                cube += one
                vector += other
        name = stmt.c.buffer.name
        if name in self.finished:
            return (*cube, stmt), tuple(vector)
        # The vector cores change these sums between products: each product starts afresh.
        always = Const(dtype=BOOL, value=True)
        assert isinstance(stmt, Product)
        fresh = replace(stmt, clear=always, first=always)
        sums = stmt.c.buffer
        if _cleared(stmt) or (isinstance(before, Begin) and before.sums.name == name):
            one, other = self.sums_pass(sums, sums, stmt)
        else:
            one, other = self.sums_pass(sums, self.product_tile(sums), stmt)
            other = (*other, _added(sums, self.product_tile(sums)))
        return (*cube, fresh, *one), (*vector, *other)

    def check(self, cube: tuple[Stmt, ...]) -> None:
        """Raises InputError where the cube's part needs a number out of a tile of the other side."""
        for stmt in walk.statements(cube):
            for expr in walk.expressions(stmt):
                loads = [x for x in walk.loads(expr) if x.buffer.scope in ("shared", "fragment")]
                names = [var for var in walk.variables(expr) if var.name in self.elsewhere]
                names += [x for x in walk.loads(expr) if x.buffer.name in self.elsewhere]  # type: ignore[misc]
                if loads or names:
                    raise failure(
                        "T2C577",
                        "a product depends on this, which comes out of a tile of the vector cores: "
                        "the cube core has no way to that number",
                        expr.span or stmt.span,
                        help="let loops and conditions around T.gemm depend on sizes, arguments "
                        "and tensors",
                    )

    # ---- passing

    def exchange(self, tile: Buffer) -> Exchange:
        if tile.name not in self.exchanges:
            self.exchanges[tile.name] = Exchange(
                name=self.fresh(f"{tile.name}_exchange"),
                scope="global",
                shape=(self.cores, *tile.shape),
                dtype=tile.dtype,
                ready=f"{tile.name}_ready",
                free=f"{tile.name}_free",
            )
        return self.exchanges[tile.name]

    def sums_pass(self, sums: Buffer, tile: Buffer, stmt: Stmt) -> _Both:
        """The cube stores sums, the vector cores load them into `tile`."""
        exchange = self.exchange(sums)
        self.by_cube.add(exchange.name)
        there = _part(exchange)
        read, written = f"{sums.name} has been read", f"{sums.name} is in the workspace"
        cube = (
            Flag(action="wait", flag=exchange.free, why=read, span=stmt.span),
            StoreSums(src=_whole(sums), dst=there, span=stmt.span),
            Flag(action="set", flag=exchange.ready, unit="FIX", why=written, span=stmt.span),
        )
        vector = (
            Flag(
                action="wait",
                flag=exchange.ready,
                why=written,
                span=stmt.span,
                quote=stmt.quote,
                comments=stmt.comments,
            ),
            forms.Copy(src=there, dst=_whole(tile), span=stmt.span),
            Flag(action="set", flag=exchange.free, unit="MTE2", why=read, span=stmt.span),
        )
        return cube, vector

    def operand_passes(self, tile: Buffer, stmt: forms.Gemm) -> _Both:
        """The vector cores store an operand, the cube loads it."""
        exchange = self.exchange(tile)
        there = _part(exchange)
        read, written = f"{tile.name} has been read", f"{tile.name} is in the workspace"
        cube = (
            Flag(action="wait", flag=exchange.ready, why=written, span=stmt.span),
            forms.Copy(src=there, dst=_whole(tile), span=stmt.span),
            Flag(action="set", flag=exchange.free, unit="MTE2", why=read, span=stmt.span),
        )
        vector = (
            Flag(action="wait", flag=exchange.free, why=read, span=stmt.span),
            forms.Copy(src=_whole(tile), dst=there, span=stmt.span),
            Flag(action="set", flag=exchange.ready, unit="MTE3", why=written, span=stmt.span),
        )
        return cube, vector

    def product_tile(self, sums: Buffer) -> Buffer:
        if sums.name not in self.products:
            name = self.fresh(f"{sums.name}_product")
            self.products[sums.name] = Buffer(
                name=name, scope="fragment", shape=sums.shape, dtype=sums.dtype
            )
        return self.products[sums.name]

    def fresh(self, name: str) -> str:
        while name in self.names:
            name += "_other"
        self.names.add(name)
        return name


def _finishes(body: tuple[Stmt, ...], name: str) -> bool:
    """Whether products alone make these sums, from a start on, before anything else touches them,
    each time that they are made."""
    making = False
    for stmt in body:
        if not touches(stmt, name):
            continue
        if isinstance(stmt, forms.Gemm):
            making |= _cleared(stmt)
            if not making:
                return False
        elif isinstance(stmt, Begin):
            making = True
        elif making and _pure(stmt, name):
            continue
        elif _multiplies(stmt, name):  # makes them and uses them up by itself
            if making or not all(_finishes(part, name) for part in walk.bodies(stmt)):
                return False
        else:
            making = False
    return True


def _made(body: tuple[Stmt, ...], place: int, name: str) -> bool:
    """Whether a statement is the last product on some sums before others in its list use them."""
    stmt = body[place]
    if not _multiplies(stmt, name) or not (isinstance(stmt, forms.Gemm) or _pure(stmt, name)):
        return False
    later = [other for other in body[place + 1 :] if touches(other, name)]
    return bool(later) and not _multiplies(later[0], name) and not isinstance(later[0], Begin)


def _pure(stmt: Stmt, name: str) -> bool:
    """Whether nothing but products touches the sums inside a statement."""
    return all(
        isinstance(inner, forms.Gemm)
        for inner in walk.statements((stmt,))
        if not walk.bodies(inner) and touches(inner, name)
    )


def _multiplies(stmt: Stmt, name: str) -> bool:
    return any(
        isinstance(inner, forms.Gemm) and inner.c.buffer.name == name
        for inner in walk.statements((stmt,))
    )


def _cleared(stmt: forms.Gemm) -> bool:
    return isinstance(stmt.clear, Const) and bool(stmt.clear.value)


def _is_variable(stmt: Stmt) -> bool:
    return isinstance(stmt, forms.Store) and stmt.buffer.scope == "variable"


def _nonempty(
    stmt: forms.For | forms.Pipelined | forms.While, body: tuple[Stmt, ...]
) -> tuple[Stmt, ...]:
    """The loop with this body, unless there is nothing in it to be done."""
    useful = any(not isinstance(inner, forms.Let) for inner in body)
    return (replace(stmt, body=body),) if useful else ()


def _fill(stmt: Begin) -> forms.Fill:
    said = {"span": stmt.span, "quote": stmt.quote, "comments": stmt.comments}
    return forms.Fill(dst=stmt.dst, value=stmt.value, remark=stmt.remark, **said)  # type: ignore[arg-type]


def _copy(stmt: StoreSums) -> Stmt:
    said = {"span": stmt.span, "quote": stmt.quote, "comments": stmt.comments}
    if stmt.adds:
        return forms.AtomicTile(op="add", src=stmt.src, dst=stmt.dst, **said)  # type: ignore[arg-type]
    return forms.Copy(src=stmt.src, dst=stmt.dst, remark=stmt.remark, **said)  # type: ignore[arg-type]


def _whole(tile: Buffer) -> Region:
    ranges = tuple(Range(start=const(0), extent=extent) for extent in tile.shape)
    return Region(buffer=tile, ranges=ranges)


def _part(exchange: Exchange) -> Region:
    """The part of the workspace that the tile of this core has."""
    core = Var(dtype=INT32, name=CORE, kind="block")
    first = Range(start=core, extent=const(1), point=True)
    rest = tuple(Range(start=const(0), extent=extent) for extent in exchange.shape[1:])
    return Region(buffer=exchange, ranges=(first, *rest))


def _added(sums: Buffer, product: Buffer) -> Stmt:
    """sums += product, element by element."""
    variables = tuple(_loop_vars(sums))
    index: tuple[Expr, ...] = variables
    value = Binary(
        dtype=sums.dtype,
        op="+",
        a=Load(dtype=sums.dtype, buffer=sums, index=index),
        b=Load(dtype=sums.dtype, buffer=product, index=index),
    )
    store = forms.Store(buffer=sums, index=index, value=value)
    return forms.Parallel(loop_vars=variables, extents=sums.shape, body=(store,))


def _loop_vars(sums: Buffer) -> Iterator[Var]:
    for dim in range(len(sums.shape)):
        yield Var(dtype=INT32, name=f"{sums.name}_{'ijkl'[dim]}", kind="loop")
