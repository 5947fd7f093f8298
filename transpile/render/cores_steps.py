"""Lays out the steps of a plan for cores: one template each, blocks re-indented by one filter."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import groupby

from tile2c.transpile.ir.dtypes import DType
from tile2c.transpile.ir.expr import Binary, Cast, Const, Expr, Var
from tile2c.transpile.lower.cores.layouts import is_zero
from tile2c.transpile.lower.cores.plan import (
    AnyStep,
    Argument,
    Assign,
    Barrier,
    Branch,
    CopyIn,
    CopyOut,
    CrossFlag,
    CubeCall,
    ElementOf,
    EndOfTurn,
    Leave,
    Local,
    Loop,
    Order,
    QueueStep,
    ReadElement,
    Step,
    Strides,
    TakeCopy,
    TensorRef,
    Tile,
    TileRef,
    VectorCall,
    WhileLoop,
    Word,
    WriteElement,
)
from tile2c.transpile.render.engine import fill
from tile2c.transpile.render.expressions import CPrinter
from tile2c.transpile.render.finish import chained, comment, flowing, wrap
from tile2c.transpile.render.marks import Marks
from tile2c.transpile.targets.cores import CoresTarget

WIDTH = 100


class CoresPrinter(CPrinter):
    """Expressions of a plan for cores: half numbers need their type said."""

    def number(self, expr: Expr) -> str:
        """A scalar operand of a vector call, whose type has to be the tile's."""
        if isinstance(expr, Const) and expr.dtype.bits != 32:
            return (
                f"{self.type_name(expr.dtype)}({self(Const(dtype=_plain(expr), value=expr.value))})"
            )
        if isinstance(expr, Cast) or not expr.dtype.is_integer or expr.dtype.bits == 32:
            return self(expr)
        return f"{self.type_name(expr.dtype)}({self(expr)})"

    def factor(self, expr: Expr) -> str:
        """The text as one side of a product."""
        text = self(expr)
        simple = isinstance(expr, Const | Var) or (isinstance(expr, Binary) and expr.op == "*")
        return text if simple else f"({text})"


def _plain(expr: Const):  # type: ignore[no-untyped-def]
    from tile2c.transpile.ir.dtypes import FLOAT32, INT32

    return FLOAT32 if expr.dtype.is_float else INT32


class StepPrinter:
    """Steps to text, at the width that is left at their depth."""

    def __init__(
        self,
        target: CoresTarget,
        printer: CoresPrinter,
        tiles: dict[str, Tile],
        marks: Marks,
    ) -> None:
        self.marks = marks
        self.target = target
        self.c = printer
        self.tiles = tiles

    def block(self, steps: Sequence[Step], columns: int) -> str:
        """The steps one under the other; a statement of the author's starts a paragraph."""
        parts: list[str] = []
        for span, group in groupby(steps, lambda step: step.span):
            lines: list[str] = []
            for step in group:
                above = flowing(self._comments(step), columns)
                if above and (lines or parts):
                    lines.append("")
                lines += [comment(text, columns) for text in above]
                lines.append(self._remarked(step, columns))
            whole = "\n".join(lines)
            text = whole.removeprefix("\n")
            blank = whole[: len(whole) - len(text)]
            parts.append(blank + (text if span is None else self.marks.around(text, span)))
        return "\n".join(parts)

    def _comments(self, step: Step) -> tuple[str, ...]:
        """Without the author's text of a value or condition where the step says the very same."""
        said: tuple[str, ...] = ()
        if isinstance(step, Local) and step.value is not None:
            said = (f"{step.name} = {self.c(step.value)}",)
        elif isinstance(step, Branch):
            said = tuple(f"{word} {self.c(step.condition)}" for word in ("if", "elif"))
        return tuple(text for text in step.comments if text not in said)

    def _remarked(self, step: Step, columns: int) -> str:
        text = self._text(step, columns)
        if "\n" not in text:
            text = wrap(text, columns)
        if not step.remark:
            return text
        first, _, rest = text.partition("\n")
        marked = f"{first}  // {step.remark}"
        if len(marked) > columns or (rest and not isinstance(step, Loop | Branch | WhileLoop)):
            return f"{comment(step.remark, columns)}\n{text}"
        return marked + (f"\n{rest}" if rest else "")

    def _text(self, given: Step, columns: int) -> str:
        step: AnyStep = given  # type: ignore[assignment]
        if isinstance(step, VectorCall):
            return self._call(step)
        if isinstance(step, CrossFlag):
            return self._fill(f"cross_{step.action}.j2", flag=step.flag, unit=step.unit)
        if isinstance(step, CubeCall):
            arguments = ", ".join(self._argument(part) for part in (step.dst, *step.arguments))
            return self._fill("call.j2", function=step.function, arguments=arguments)
        if isinstance(step, CopyIn):
            return self._copy("copy_in.j2", step, step.dst)
        if isinstance(step, CopyOut):
            return self._copy("add_out.j2" if step.adds else "copy_out.j2", step, step.src)
        if isinstance(step, QueueStep):
            return self._queue(step)
        if isinstance(step, Order):
            return self._fill("order.j2", before=step.before, after=step.after)
        if isinstance(step, TakeCopy):
            tile = self.tiles[step.tile]
            kind, copy = self.c.type_name(tile.dtype), self.c(step.copy)
            return self._fill("take_copy.j2", tile=tile.name, type=kind, copy=copy)
        if isinstance(step, EndOfTurn):
            return self._fill("end_of_turn.j2")
        if isinstance(step, Barrier):
            return self._fill("barrier.j2", unit=step.unit)
        if isinstance(step, ReadElement | WriteElement):
            return self._element(step)
        if isinstance(step, Local):
            value = "" if step.value is None else f" = {self.c(step.value)}"
            qualifier = "const " if step.const else ""
            kind = self.c.type_name(step.dtype)
            return self._fill(
                "local.j2", qualifier=qualifier, type=kind, name=step.name, value=value
            )
        if isinstance(step, Assign):
            return self._fill("assign.j2", name=step.name, value=self.c(step.value))
        return self._control(step, columns)

    def _call(self, step: VectorCall) -> str:
        parts = [self._argument(part) for part in (step.dst, *step.arguments)]
        form = self.target.forms.get(step.function)
        if form is not None:
            kind = self.c.type_name(self._dtype(step.dst))
            last = step.arguments[-1]
            assert isinstance(last, Expr)
            return self._fill(form, parts=parts, count=self.c.factor(last), type=kind)
        name = self.target.spelling.get(step.function, step.function)
        return self._fill("call.j2", function=name, arguments=", ".join(parts))

    def _dtype(self, ref: TileRef) -> DType:
        return ref.view or self.tiles[ref.tile].dtype

    def _control(self, step: Loop | WhileLoop | Branch | Leave, columns: int) -> str:
        inner = columns - 4
        if isinstance(step, Loop):
            down = isinstance(step.step, Const) and int(step.step.value) < 0
            return self._fill(
                "loop.j2",
                var=step.var.name,
                start=self.c(step.start),
                stop=self.c(step.stop),
                test=">" if down else "<",
                advance=_advance(step, self.c),
                body=self.block(step.body, inner),
            )
        if isinstance(step, WhileLoop):
            body = self.block(step.body, inner)
            return self._fill("while.j2", condition=self.c(step.condition), body=body)
        if isinstance(step, Branch):
            head = wrap(f"if ({self.c(step.condition)}) {{", columns)
            alone = [type(other) for other in step.orelse] == [Branch]
            choice = chained(self.block(step.orelse, columns), columns) if alone else ""
            return self._fill(
                "branch.j2",
                head=head,
                then=self.block(step.then, inner),
                chained=choice,
                orelse="" if choice else self.block(step.orelse, inner),
            )
        return self._fill("leave.j2", kind=step.kind)

    def _queue(self, step: QueueStep) -> str:
        tile = self.tiles[step.tile]
        kind = self.c.type_name(tile.dtype)
        return self._fill(
            f"{step.action}.j2",
            tile=tile.name,
            queue=f"{tile.name}_queue",
            type=kind,
            declared=f"LocalTensor<{kind}> " if step.declare else "",
        )

    def _copy(self, template: str, step: CopyIn | CopyOut, ref: TileRef) -> str:
        shape = [self.c(step.columns)]
        if not step.row:
            shape = [self.c(p) for p in (step.rows, step.columns, step.pitch, step.tile_pitch)]
        return self._fill(
            template,
            row="_row" if step.row else "",
            tile=self._argument(ref),
            region=self._at(step.tensor, None if is_zero(step.offset) else step.offset),
            shape=", ".join(shape),
            wait="" if not step.ahead else "_async",
            type=self.c.type_name(self._dtype(ref)),
            columns=self.c.factor(step.columns),
            pitch=self.c.factor(step.pitch),
            tile_pitch=self.c.factor(step.tile_pitch),
            last_row=self.c(_less_one(step.rows)),
        )

    def _element(self, step: ReadElement | WriteElement) -> str:
        ref = step.src if isinstance(step, ReadElement) else step.dst
        index = "0" if ref.offset is None else self.c(ref.offset)
        if isinstance(step, ReadElement):
            kind = self.c.type_name(step.dtype)
            return self._fill("read.j2", type=kind, name=step.name, tile=ref.tile, index=index)
        return self._fill("write.j2", tile=ref.tile, index=index, value=self.c.number(step.value))

    def _argument(self, part: Argument) -> str:
        if isinstance(part, TileRef):
            name = part.tile
            if part.view is not None:
                kind = self.c.type_name(part.view)
                name = self.target.words.seen_as.format(tile=name, type=kind)
            return self._at(name, part.offset)
        if isinstance(part, ElementOf):
            index = "0" if part.ref.offset is None else self.c(part.ref.offset)
            name = part.ref.tile
            if part.ref.view is not None:
                kind = self.c.type_name(part.ref.view)
                name = f"({self.target.words.seen_as.format(tile=name, type=kind)})"
            if self._dtype(part.ref).bytes == 1:
                return f"char({name}[{index}])"
            return f"1.0f / {name}[{index}]" if part.inverse else f"{name}[{index}]"
        if isinstance(part, TensorRef):
            at = "" if is_zero(part.offset) else f"[{self.c(part.offset)}]"
            return f"{part.handle}{at}"
        if isinstance(part, Word):
            return part.text
        if isinstance(part, Strides):
            return "{" + ", ".join(map(str, part.values)) + "}"
        return self.c.number(part)

    def _at(self, name: str, offset: Expr | None) -> str:
        if offset is None:
            return name
        return self.target.words.at.format(tile=name, offset=self.c(offset))

    def _fill(self, template: str, **fields: object) -> str:
        return fill(self.target.templates, template, **fields)


def _less_one(rows: Expr) -> Expr:
    if isinstance(rows, Const) and rows.name is None:
        return replace(rows, value=int(rows.value) - 1)
    return Binary(dtype=rows.dtype, op="-", a=rows, b=Const(dtype=rows.dtype, value=1))


def _advance(step: Loop, c: Callable[[Expr], str]) -> str:
    if isinstance(step.step, Const) and step.step.name is None:
        number = int(step.step.value)
        if number == 1:
            return f"++{step.var.name}"
        if number == -1:
            return f"--{step.var.name}"
        if number < 0:
            return f"{step.var.name} -= {-number}"
    return f"{step.var.name} += {c(step.step)}"
