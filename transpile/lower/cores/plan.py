"""The plan of a kernel for machines without threads: tiles in local memory and steps of its units.

A core runs one instruction stream. Four units take instructions from it and run on their own: MTE2
(global to local memory), V (vector), MTE3 (local to global memory), S (scalars). Each keeps its own
order; between units, order comes from queues and from `Order` steps.
"""

from __future__ import annotations

from dataclasses import field
from typing import Literal

from tile2c.transpile.diagnostics import Span
from tile2c.transpile.ir.dtypes import DType
from tile2c.transpile.ir.expr import Const, Expr, Var
from tile2c.transpile.record import record

Unit = Literal["MTE2", "V", "MTE3", "S", "MTE1", "M", "FIX"]
Place = Literal["in", "out", "work"]
WEIGHTS = "WEIGHTS"  # position of tiles that lie in the matrix unit's own memory


@record(kw_only=True)
class Tile:
    """A tile in local memory: `rows` rows of `columns` elements, `pitch` elements apart.

    in: a queue filled by MTE2; out: a queue emptied by MTE3; work: one buffer for the whole kernel,
    at `position`.
    """

    name: str
    dtype: DType
    rows: int
    columns: int
    pitch: int
    bytes: int  # of one copy of it, rounded up to whole blocks
    place: Place = "work"
    position: str = "VECCALC"
    depth: int = 1  # copies, for a queue
    shape: str = ""  # as the author wrote it: [block_M, block_N]
    purpose: str = ""  # of a tile that the author did not write


@record(kw_only=True)
class TileRef:
    """A tile from an element on."""

    tile: str
    offset: Expr | None = None
    view: DType | None = None  # its bits read as another type of the same width
    extent: int | None = None  # elements from there on that accesses stay within, where known


@record(kw_only=True)
class ElementOf:
    """The number that a tile holds at one place; `inverse`: 1 over it."""

    ref: TileRef
    inverse: bool = False


@record(kw_only=True)
class Word:
    """A word of the dialect: `CMPMODE::LT`."""

    text: str


@record(kw_only=True)
class Strides:
    """Block strides, then repeat strides, in blocks: destination first, then the sources."""

    values: tuple[int, ...]


@record(kw_only=True)
class TensorRef:
    """A tensor from an element on."""

    handle: str
    offset: Expr


Argument = TileRef | TensorRef | ElementOf | Expr | Word | Strides


@record(kw_only=True)
class Step:
    """One statement of the kernel. `comments` stand above it, `remark` behind it."""

    comments: tuple[str, ...] = ()
    remark: str = ""
    span: Span | None = field(default=None, compare=False, repr=False)


@record(kw_only=True)
class VectorCall(Step):
    """`function(dst, arguments...)` on V."""

    function: str
    dst: TileRef
    arguments: tuple[Argument, ...]
    prefills: str = ""  # the tile whose copy from global memory this prepares
    goes_on: bool = False  # continues the call before it on other elements
    covers: bool = False  # with the loop around it, writes every element that is ever read
    works_in: int | None = None  # the place among the arguments of a tile that it writes on its way

    @property
    def sources(self) -> tuple[str, ...]:
        """Tiles that it reads."""
        refs = (part.ref if isinstance(part, ElementOf) else part for part in self.arguments)
        return tuple(ref.tile for ref in refs if isinstance(ref, TileRef))


@record(kw_only=True)
class CubeCall(Step):
    """`function(dst, arguments...)` on a unit of the cube core.

    MTE2: global memory to L1; MTE1: L1 to L0A, L0B and the bias table; M: products; FIX: sums to
    global memory. `begins`: no call, but where the sums of `dst` start anew.
    """

    unit: Unit
    function: str
    dst: TileRef | TensorRef
    arguments: tuple[Argument, ...] = ()
    begins: bool = False
    exchanged: bool = False  # with the vector cores, whose flags order it

    @property
    def sources(self) -> tuple[str, ...]:
        """Tiles that it reads."""
        return tuple(part.tile for part in self.arguments if isinstance(part, TileRef))


@record(kw_only=True)
class CopyIn(Step):
    """MTE2: `rows` rows of `columns` elements from `tensor[offset]`, `pitch` elements apart."""

    dst: TileRef
    tensor: str
    offset: Expr
    rows: Expr
    columns: Expr
    pitch: Expr
    tile_pitch: Expr
    row: bool = False  # a single row: the pitches do not matter
    ahead: bool = False  # the core goes on without it, until the next `EndOfTurn`


@record(kw_only=True)
class CopyOut(Step):
    """MTE3: the other way."""

    src: TileRef
    tensor: str
    offset: Expr
    rows: Expr
    columns: Expr
    pitch: Expr
    tile_pitch: Expr
    row: bool = False  # a single row: the pitches do not matter
    ahead: bool = False  # the core goes on without it, until the next `EndOfTurn`
    adds: bool = False  # adds to what is there, element by element and in one step each
    exchanged: bool = False  # with the other kind of cores, whose flags order it


@record(kw_only=True)
class QueueStep(Step):
    """allocate: take a free copy of the tile; enqueue, dequeue: hand it on; free: give it back."""

    action: Literal["allocate", "enqueue", "dequeue", "free"]
    tile: str
    declare: bool = False


@record(kw_only=True)
class Order(Step):
    """What `after` does from here on waits for all that `before` has been given so far.

    Not `proven`: kept since the two may touch the same bytes of a tensor.
    """

    before: Unit
    after: Unit
    proven: bool = True


@record(kw_only=True)
class Barrier(Step):
    """The same within one unit."""

    unit: Unit
    proven: bool = True


@record(kw_only=True)
class ReadElement(Step):
    """S: `const T name = tile[index]`."""

    name: str
    dtype: DType
    src: TileRef


@record(kw_only=True)
class WriteElement(Step):
    """S: `tile[index] = value`."""

    dst: TileRef
    value: Expr


@record(kw_only=True)
class Local(Step):
    """`const T name = value;`, or a variable."""

    name: str
    dtype: DType
    value: Expr | None
    const: bool = True


@record(kw_only=True)
class Assign(Step):
    name: str
    value: Expr


@record(kw_only=True)
class Loop(Step):
    """`for (var = start; var < stop; var += step)`; counts down when `step` is negative.

    Rounds of an `independent` loop touch different elements; an `own` loop is not the author's and
    goes over a whole tile.
    """

    var: Var
    start: Expr
    stop: Expr
    step: Expr
    body: tuple[Step, ...]
    independent: bool = False
    own: bool = False
    stages: int = 1  # rounds that the author lets overlap


@record(kw_only=True)
class WhileLoop(Step):
    condition: Expr
    body: tuple[Step, ...]


@record(kw_only=True)
class Branch(Step):
    """`prefills` names the tile whose copy from global memory this prepares."""

    condition: Expr
    then: tuple[Step, ...]
    orelse: tuple[Step, ...] = ()
    prefills: str = ""


@record(kw_only=True)
class TakeCopy(Step):
    """From here to the block's end `tile` is its copy number `copy`."""

    tile: str
    copy: Expr


@record(kw_only=True)
class EndOfTurn(Step):
    """Every unit waits until all of them have done what they were given."""


@record(kw_only=True)
class CrossFlag(Step):
    """Between the cube core and the vector cores beside it: sets a flag once `unit` is done with
    what it was given, or waits for one before all that follows."""

    action: Literal["set", "wait"]
    flag: str
    unit: Unit = "S"


@record(kw_only=True)
class Leave(Step):
    kind: Literal["break", "continue", "return"]


@record(kw_only=True)
class TensorParam:
    name: str
    handle: str  # the GlobalTensor's name
    dtype: DType
    shape: tuple[Expr, ...]
    role: Literal["in", "out", "inout"]
    used: bool = True


@record(kw_only=True)
class ScalarParam:
    """A scalar of the author's, or a size found from the tensors' shapes."""

    name: str
    dtype: DType
    kind: Literal["scalar", "size"]


@record(kw_only=True)
class WorkTensor:
    """A tensor in the workspace, from byte `offset` on; `param` points there."""

    param: str
    handle: str
    dtype: DType
    shape: tuple[Expr, ...]
    offset: int
    bytes: int
    purpose: str


@record(kw_only=True)
class Mix:
    """What a kernel on both kinds of cores has beside the vector cores' plan."""

    cube: CoresPlan
    vector_cores: int  # beside each cube core that take part
    workspace: tuple[WorkTensor, ...]
    flags: tuple[str, ...]  # in order of their ids
    cube_ends: tuple[Step, ...]  # after the last block
    vector_ends: tuple[Step, ...]


@record(kw_only=True)
class Choice:
    """A decision with its reason, for `--emit plan`."""

    name: str
    value: str
    reason: str


@record(kw_only=True)
class CoresPlan:
    """One kernel: `setup` runs once a core, `body` once for each block of the tile program."""

    name: str
    summary: str
    comments: tuple[str, ...]  # above the function in the source
    constants: tuple[Const, ...]
    params: tuple[TensorParam | ScalarParam, ...]
    blocks: Expr  # how many blocks the tile program has
    last_block: Expr  # the same, in terms of `grid_locals`
    tile: Var  # a block's number
    persistent: bool  # a core takes block after block
    extents: tuple[Expr, ...]  # of the author's grid
    staged: bool = False  # in a loop of the body's own
    grid: Expr  # cores to launch
    grid_locals: tuple[Local, ...]  # extents of the author's grid
    block_locals: tuple[Local, ...]  # the author's block indices, from `tile`
    launch_comments: tuple[str, ...]
    tiles: tuple[Tile, ...]
    setup: tuple[Step, ...]
    body: tuple[Step, ...]
    local_bytes: int  # of local memory in use
    choices: tuple[Choice, ...] = ()
    sizes: tuple[str, ...] = ()
    side: Literal["vector", "cube"] = "vector"  # the cores whose tiles and steps these are
    cores: int = 0  # of them on the chip; 0: as the target says
    mix: Mix | None = None  # the cube core's part
    memory: str = ""  # how much of which memories is in use, where it is not local memory alone

    @property
    def unproven(self) -> int:
        """Orders that are kept because a dependence could not be disproved."""
        return _unproven(self.body)


AnyStep = (
    VectorCall | CubeCall | CopyIn | CopyOut | QueueStep | Order | Barrier | ReadElement
    | WriteElement | Local | Assign | Loop | WhileLoop | Branch | Leave | CrossFlag | TakeCopy | EndOfTurn
)  # fmt: skip


def _unproven(steps: tuple[Step, ...]) -> int:
    own = sum(isinstance(step, Order | Barrier) and not step.proven for step in steps)
    return own + sum(_unproven(part) for step in steps for part in bodies(step))


def bodies(step: Step) -> tuple[tuple[Step, ...], ...]:
    """The step lists directly inside a step."""
    if isinstance(step, Loop | WhileLoop):
        return (step.body,)
    if isinstance(step, Branch):
        return (step.then, step.orelse)
    return ()
