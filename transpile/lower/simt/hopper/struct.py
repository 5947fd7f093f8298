"""The struct of a block's dynamic shared memory, member by member."""

from __future__ import annotations

from collections.abc import Sequence

from tile2c.transpile.ir.dtypes import INT32, DType
from tile2c.transpile.ir.expr import Expr
from tile2c.transpile.lower import build as b
from tile2c.transpile.lower.plan import Declarator, Local, Placed
from tile2c.transpile.lower.simt.context import Context
from tile2c.transpile.lower.simt.hopper.slabs import Slabs
from tile2c.transpile.lower.simt.shared_memory import bytes_words

TILE_ALIGN = 1024  # the period of the widest swizzle
BARRIER = 8  # bytes


class SharedStruct:
    """Grows by members; `names` are theirs, `placed` their places, `total` the bytes so far."""

    def __init__(self, ctx: Context) -> None:
        from tile2c.transpile.render.expressions import CPrinter

        self.ctx = ctx
        self.printer = CPrinter(ctx.target.dialect)
        self.names: list[str] = []
        self.placed: list[Placed] = []
        self.total = 0
        self.period = BARRIER  # the widest alignment
        self._members: list[str] = []

    def array(
        self,
        name: str,
        dtype: DType,
        dims: tuple[Expr, ...],
        size: int,
        words: str,
        *,
        align: int = 128,
        versions: int = 1,
        remark: str = "",
    ) -> None:
        """An array of `size` bytes; `words` tell how it is laid out, `remark` what dimensions are."""
        kind = self.printer.type_name(dtype)
        text = f"alignas({align}) {kind} {name}{self._subscripts(dims)};"
        told = f"{text}  // {bytes_words(size)}{remark}" if size >= 1024 else text
        self._members.append(told)
        self.names.append(name)
        start = -(-self.total // align) * align
        place = Placed(name=name, bytes=size, layout=words, versions=versions, offset=start)
        self.placed.append(place)
        self.total = start + size
        self.period = max(self.period, align)

    def slabs(
        self,
        name: str,
        dtype: DType,
        slabs: Slabs,
        dims: tuple[Expr, ...],
        size: int,
        *,
        versions: int = 1,
        more: str = "",
    ) -> None:
        """A tile as the tensor memory accelerator lays it out."""
        words = f"slabs of {slabs.width} columns, {slabs.row_bytes}B swizzle{more}"
        remark = f"{more}, in slabs of {slabs.width} columns" if slabs.count > 1 else more
        self.array(
            name, dtype, dims, size, words, align=TILE_ALIGN, versions=versions, remark=remark
        )

    def own_arrays(self) -> None:
        """The arrays that the lowering itself asked for."""
        for array in self.ctx.arrays:
            dtype = self.ctx.array_types[array.name]
            words = array.words
            self.array(array.name, dtype, array.dims, array.bytes, words, align=dtype.bytes)

    def barriers(self, names: Sequence[str], count: int, words: str, members: list[str]) -> None:
        """`count` mbarriers under these names, declared by these members."""
        start, size = self.size(BARRIER), count * BARRIER
        place = Placed(name=", ".join(names), bytes=size, layout=words, offset=start)
        self.placed.append(place)
        self._members += members
        self.names += names
        self.total += size

    def size(self, align: int) -> int:
        """All bytes, up to a multiple of `align`."""
        self.total = -(-self.total // align) * align
        return self.total

    def need(self, name: str, raw: str) -> None:
        """Asks for the struct's text: `name` over the block's bytes, `raw`."""
        ctx = self.ctx
        ctx.need("shared_struct", name=name, members="\n".join(self._members))
        ctx.need("shared_size", name=name, bytes=self.total, most=ctx.target.max_shared)
        ctx.need("shared_memory", name=raw)

    def _subscripts(self, dims: tuple[Expr, ...]) -> str:
        return "".join(f"[{self.printer(dim)}]" for dim in dims)


def reference(ctype: str, name: str, value: str) -> Local:
    """`auto& name = value;`"""
    declared = Declarator(name=name, value=b.local(value))
    return Local(dtype=INT32, ctype=ctype, const=False, names=(declared,))
