"""Statements and functions of the tile IR: what is done, never by whom.

No warp, lane, stage or barrier of ours is in here; that is what lets NPUs start from it. A tile
statement is done once by the whole block; a scalar statement by every thread (language.md 7).
"""

from __future__ import annotations

from dataclasses import field
from typing import Literal

from tile2c.transpile.diagnostics import Span
from tile2c.transpile.ir.expr import Buffer, Const, Expr, Var
from tile2c.transpile.record import record


@record(kw_only=True)
class Stmt:
    """Every statement knows where it came from and what the author wrote there."""

    span: Span | None = field(default=None, compare=False, repr=False)
    quote: str = field(default="", compare=False)  # the author's statement on one line
    comments: tuple[str, ...] = ()  # own-line comments above it, without `#`
    remark: str = ""  # trailing comment, without `#`


@record(kw_only=True)
class Range:
    """One dimension of a region: [start, start + extent). A `point` is a plain index."""

    start: Expr
    extent: Expr
    point: bool = False


@record(kw_only=True)
class Region:
    """A rectangular part of a buffer, one range per dimension. `shape` is that of its ranges."""

    buffer: Buffer
    ranges: tuple[Range, ...]
    span: Span | None = field(default=None, compare=False, repr=False)

    @property
    def shape(self) -> tuple[Expr, ...]:
        return tuple(part.extent for part in self.ranges if not part.point)

    @property
    def starts(self) -> tuple[Expr, ...]:
        return tuple(part.start for part in self.ranges)


# ---- tile statements


@record(kw_only=True)
class Copy(Stmt):
    """dst = src, converting element types. Dimensions of extent 1 aside, both shapes are equal.

    The global side is clipped at its shape: loads give 0, stores are dropped.
    """

    src: Region
    dst: Region


@record(kw_only=True)
class Fill(Stmt):
    """Every element of `dst` becomes `value` (already of the buffer's type)."""

    dst: Region
    value: Expr


@record(kw_only=True)
class Gemm(Stmt):
    """c (M, N) += op(a) @ op(b); a is (M, K), or (K, M) if `transpose_a`; b (K, N), or (N, K)."""

    a: Region
    b: Region
    c: Region
    transpose_a: bool = False
    transpose_b: bool = False
    policy: Literal["square", "full_row", "full_col"] = "square"
    clear: Expr  # bool: start from zero instead of c
    asynchronous: bool = False  # `T.wgmma_gemm`: done when an `Order` of kind products_wait says so


ReduceOp = Literal["sum", "max", "min", "abssum", "absmax", "bitand", "bitor", "bitxor"]


@record(kw_only=True)
class Reduce(Stmt):
    """dst = op over `dim` of src, in dst's type; without `clear` dst's old value takes part once.

    `dim` counts the dimensions of src's shape. dst's shape is src's without it, or with 1 there.
    """

    op: ReduceOp
    src: Region
    dst: Region
    dim: int
    clear: bool
    nan_propagate: bool = False


@record(kw_only=True)
class Scan(Stmt):
    """Inclusive scan of src along `dim` into dst (may be src)."""

    op: Literal["sum", "max"]
    src: Region
    dst: Region
    dim: int
    reverse: bool = False


@record(kw_only=True)
class Im2col:
    """Rows of a convolution over a whole image [N, H, W, C] as a matrix: what a loop over a tile gathers.

    Row `pixel` + i is an output's pixel, counted over images, rows and columns; column `tap` + j what the
    kernel covers there, counted over its rows, columns and channels. `height` x `width` outputs an image.
    """

    image: Buffer
    pixel: Expr
    tap: Expr
    height: Expr
    width: Expr
    kernel: Expr  # these are known
    stride: Expr
    dilation: Expr
    padding: Expr


@record(kw_only=True)
class Parallel(Stmt):
    """Independent iterations over `loop_vars` (0 <= var < extent), spread over the block."""

    loop_vars: tuple[Var, ...]
    extents: tuple[Expr, ...]
    body: tuple[Stmt, ...]
    im2col: Im2col | None = None  # what the body does, in one word


AtomicOp = Literal["add", "max", "min", "or", "exchange"]


@record(kw_only=True)
class Atomic(Stmt):
    """One atomic on one element, by each executing thread (or iteration).

    `result` is bound to the element's value before; outside a global tensor that is 0.
    """

    op: AtomicOp
    buffer: Buffer
    index: tuple[Expr, ...]
    value: Expr
    order: str = "relaxed"
    result: Var | None = None


@record(kw_only=True)
class AtomicTile(Stmt):
    """dst op= src for every element, once each; extents as in `Copy`."""

    op: AtomicOp
    src: Region
    dst: Region


# ---- scalar statements and control flow


@record(kw_only=True)
class Let(Stmt):
    """A const temporary, evaluated here."""

    var: Var
    value: Expr


@record(kw_only=True)
class Declare(Stmt):
    """`alloc_var`: the variable starts anew here, at `init` or undefined."""

    buffer: Buffer
    init: Expr | None


@record(kw_only=True)
class Store(Stmt):
    """buffer[index] = value (already of the buffer's type). Dropped outside a global tensor."""

    buffer: Buffer
    index: tuple[Expr, ...]
    value: Expr


@record(kw_only=True)
class For(Stmt):
    """A loop run by every thread: start, start + step, ... before stop."""

    kind: Literal["serial", "unroll", "vectorized"]
    var: Var
    start: Expr
    stop: Expr
    step: int = 1
    body: tuple[Stmt, ...]


@record(kw_only=True)
class Pipelined(Stmt):
    """Means the same as a serial loop; `num_stages` is the author's hint for overlap."""

    var: Var
    start: Expr
    stop: Expr
    num_stages: Const
    body: tuple[Stmt, ...]


@record(kw_only=True)
class While(Stmt):
    condition: Expr
    body: tuple[Stmt, ...]


@record(kw_only=True)
class If(Stmt):
    condition: Expr
    then: tuple[Stmt, ...]
    orelse: tuple[Stmt, ...] = ()


@record(kw_only=True)
class Jump(Stmt):
    """`break`, `continue`, or `T.thread_return()`."""

    kind: Literal["break", "continue", "return"]


@record(kw_only=True)
class AuthorSync(Stmt):
    """`T.sync_threads()` as the author wrote it: kept.

    With a `barrier`, `count` threads meet at the named barrier of that number; `waits` is False where
    they only say that they got there.
    """

    barrier: int | None = None
    count: int = 0
    waits: bool = True


@record(kw_only=True)
class Assert(Stmt):
    """`T.device_assert`: a thread that does not find it so stops the kernel."""

    condition: Expr
    message: str


@record(kw_only=True)
class Print(Stmt):
    """`T.print` of one number, by each executing thread (or iteration).

    `label` stands in front, with `index` behind it in brackets where the number is an element.
    """

    label: str
    value: Expr
    index: tuple[Expr, ...] = ()


# ---- what an author says who schedules by hand


@record(kw_only=True)
class BulkCopy(Stmt):
    """`T.tma_copy`: started once by the threads that get here, done when a wait says so.

    To shared memory its bytes go to the barrier, which counts no arrival for it; to a tensor there is
    no barrier, and the stores of one thread are closed and waited for in groups (`Order`). Regions as in
    `Copy`, of one type.
    """

    src: Region
    dst: Region
    barrier: Buffer | None = None
    index: Expr | None = None


@record(kw_only=True)
class ElementCopy(Stmt):
    """`T.ptx_cp_async`: each thread that gets here copies `count` neighbours of a tensor to shared memory.

    Started here, done when a barrier says so (`BarrierArrive.copies`). Nothing is clipped.
    """

    src: Buffer
    source: tuple[Expr, ...]
    dst: Buffer
    target: tuple[Expr, ...]
    count: int


@record(kw_only=True)
class BarrierArrive(Stmt):
    """Each thread that gets here arrives once (`arrives`), announces bytes (`bytes`), or both.

    `copies`: the arrival happens when the thread's asynchronous element copies so far are done.
    """

    barrier: Buffer
    index: Expr
    arrives: bool = True
    bytes: Expr | None = None
    copies: bool = False


@record(kw_only=True)
class BarrierWait(Stmt):
    """Each thread waits until the phase of this parity is over; on a fresh barrier that of 1 is."""

    barrier: Buffer
    index: Expr
    parity: Expr


OrderKind = Literal[
    "async_fence",  # this thread's writes to shared memory become visible to TMA and wgmma
    "products_begin", "products_commit", "products_wait",  # batches of wgmma
    "stores_commit", "stores_wait",  # groups of this thread's TMA stores
    "cluster_arrive", "cluster_wait",
]  # fmt: skip


@record(kw_only=True)
class Order(Stmt):
    """An order between asynchronous work and what stands around it; waits leave `pending` groups."""

    kind: OrderKind
    pending: int = 0


@record(kw_only=True)
class Hold(Stmt):
    """`T.warpgroup_fence_operand`: uses of the fragment stay on their side of this point."""

    buffer: Buffer


@record(kw_only=True)
class SetRegisters(Stmt):
    """`T.set_max_nreg`: registers of each thread of a warpgroup from here on."""

    count: int
    more: bool


@record
class Pointer:
    """The address of an element, for foreign code; what it may do with the array from there on."""

    buffer: Buffer
    index: tuple[Expr, ...]
    access: Literal["r", "w", "rw"]


@record
class Foreign(Stmt):
    """`T.call_extern`: a function of the program's own C, called by each executing thread."""

    name: str
    args: tuple[Expr | Pointer, ...]


AnyStmt = (
    BulkCopy | ElementCopy | BarrierArrive | BarrierWait | Order | Hold | SetRegisters |
    Copy | Fill | Gemm | Reduce | Scan | Parallel | Atomic | AtomicTile | Let | Declare | Store
    | For | Pipelined | While | If | Jump | AuthorSync | Assert | Print | Foreign
)  # fmt: skip


# ---- functions


@record(kw_only=True)
class BlockOrder:
    """`T.use_swizzle(panel, order)`: a hint on the order in which blocks are taken."""

    panel: int
    order: Literal["row", "column"]
    comments: tuple[str, ...] = ()  # the author's, above it


@record(kw_only=True)
class Barriers:
    """`T.alloc_barrier`: an array of barriers, each with the arrivals that end a phase of it."""

    buffer: Buffer  # scope "barrier", one dimension
    counts: tuple[int, ...]
    single: bool  # named without an index


@record(kw_only=True)
class Launch:
    """One `T.Kernel`: grid extents x, y, z; threads x, y, z; what each block does."""

    grid: tuple[Expr, ...]
    threads: tuple[int, int, int]
    blocks: tuple[Var, ...]  # block indices, as many as grid extents
    thread_vars: tuple[Var, ...] = ()  # the author's names of thread indices, for x, y, z in turn
    buffers: tuple[Buffer, ...]  # shared, fragment and local arrays, in order of definition
    body: tuple[Stmt, ...]
    order: BlockOrder | None = None
    views: tuple[Buffer, ...] = ()  # parameters by their names, under other shapes
    barriers: tuple[Barriers, ...] = ()
    cluster: tuple[int, int, int] = (1, 1, 1)  # blocks that run together
    when: Expr | None = None  # launched only if this holds (over sizes and scalars)
    promises: tuple[Expr, ...] = ()  # what the author assumes of names that the kernel binds
    span: Span | None = field(default=None, compare=False, repr=False)
    quote: str = field(default="", compare=False)
    comments: tuple[str, ...] = ()


@record(kw_only=True)
class Param:
    """A tensor (`tensor` set) or a scalar (`scalar` set), in the author's order."""

    name: str
    tensor: Buffer | None = None
    scalar: Var | None = None
    span: Span | None = field(default=None, compare=False, repr=False)


@record(kw_only=True)
class Function:
    """What the host calls. `sizes` are symbolic dimensions, found from the tensors' shapes."""

    name: str
    params: tuple[Param, ...]
    sizes: tuple[Var, ...]
    constants: tuple[Const, ...]  # the author's named compile-time values, in order of definition
    launches: tuple[Launch, ...]
    assumptions: tuple[Expr, ...] = ()  # bool expressions over sizes that always hold
    comments: tuple[str, ...] = ()
    summary: str = ""
    sources: tuple[str, ...] = ()  # C text that goes in front of the kernel (T.import_source)
    docstring: tuple[str, ...] = ()  # what texts say of the kernel; `comments` above it they do not
    fast_accumulation: bool = False  # sums of 8-bit floats may have the few bits of the matrix unit
    span: Span | None = field(default=None, compare=False, repr=False)
