"""Lays out the plan's statements: each kind has one template; children are re-indented by one filter."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from tile2c.transpile.ir.expr import Const
from tile2c.transpile.lower.plan import (
    Assign,
    Branch,
    CStmt,
    Declarator,
    Do,
    Escape,
    Lambda,
    Local,
    Loop,
    Repeat,
    Scope,
    Section,
    Sync,
)
from tile2c.transpile.render.engine import fill
from tile2c.transpile.render.expressions import CPrinter
from tile2c.transpile.render.finish import chained, comment, flowing, wrap
from tile2c.transpile.render.marks import Marks

WIDTH = 100


class StatementPrinter:
    """Statements to text for one target's templates. `columns` is the width left at this depth."""

    def __init__(self, folders: tuple[str, ...], expressions: CPrinter, marks: Marks) -> None:
        self.folders = folders
        self.c = expressions
        self.marks = marks

    def block(self, statements: Sequence[CStmt], columns: int = WIDTH - 4) -> str:
        """The statements one under the other; sections are set off by empty lines."""
        lines: list[str] = []
        for statement in statements:
            text = self._with_comments(statement, columns)
            if isinstance(statement, Section) and statement.blank and lines and text:
                lines.append("")
            if text:
                lines.append(text)
        return "\n".join(lines)

    def _with_comments(self, statement: CStmt, columns: int) -> str:
        text = self._statement(statement, columns)
        if statement.remark:
            first, _, rest = text.partition("\n")
            marked = f"{first}  // {statement.remark}"
            if len(marked) > columns:
                text = f"{comment(statement.remark, columns)}\n{text}"
            else:
                text = marked + (f"\n{rest}" if rest else "")
        above = "\n".join(comment(line, columns) for line in flowing(statement.comments, columns))
        whole = "\n".join(part for part in (above, text) if part)
        if isinstance(statement, Section) and statement.span is not None and whole:
            return self.marks.around(whole, statement.span)
        return whole

    def _statement(self, statement: CStmt, columns: int) -> str:
        if isinstance(statement, Section):
            return self.block(statement.body, columns)
        if isinstance(statement, Local):
            return self._local(statement, columns)
        if isinstance(statement, Assign):
            target, value = self.c(statement.target), self.c(statement.value)
            text = self._fill("assign.j2", target=target, value=value, op=statement.op)
            return wrap(text, columns)
        if isinstance(statement, Do):
            return wrap(self._fill("do.j2", call=self.c(statement.call)), columns)
        if isinstance(statement, Loop):
            return self._loop(statement, columns)
        if isinstance(statement, Branch):
            return self._branch(statement, columns)
        if isinstance(statement, Escape):
            condition = self.c(statement.condition) if statement.condition else ""
            return wrap(self._fill("escape.j2", kind=statement.kind, condition=condition), columns)
        if isinstance(statement, Sync) and statement.call is not None:
            return self._fill("do.j2", call=self.c(statement.call))
        if isinstance(statement, Sync):
            return self._fill("sync.j2")
        if isinstance(statement, Lambda):
            body = self.block(statement.body, columns - 4)
            return self._fill("lambda.j2", name=statement.name, params=statement.params, body=body)
        if isinstance(statement, Scope):
            return self._fill("scope.j2", body=self.block(statement.body, columns - 4))
        if isinstance(statement, Repeat):
            body = self.block(statement.body, columns - 4)
            return self._fill("repeat.j2", condition=self.c(statement.condition), body=body)
        if type(statement) is CStmt:
            return ""  # only comments
        raise TypeError(f"cannot lay out {type(statement).__name__}")

    def _fill(self, template: str, **fields: object) -> str:
        return fill(self.folders, template, **fields)

    def _local(self, statement: Local, columns: int) -> str:
        text = self._declaration(statement)
        if len(text) > columns and len(statement.names) > 1:
            return "\n".join(
                self._declaration(replace(statement, names=(name,))) for name in statement.names
            )
        return wrap(text, columns)

    def _declaration(self, statement: Local) -> str:
        prefix = "__shared__ " if statement.shared else ""
        if statement.align is not None:
            prefix += f"__align__({statement.align}) "
        if statement.const:
            prefix += "const "
        return self._fill(
            "local.j2",
            prefix=prefix,
            type=statement.ctype or self.c.type_name(statement.dtype),
            names=[self._declarator(name) for name in statement.names],
        )

    def _declarator(self, name: Declarator) -> str:
        text = name.name + "".join(f"[{self.c(dim)}]" for dim in name.dims)
        if name.zero:
            return f"{text} = {{}}"
        return f"{text} = {self.c(name.value)}" if name.value is not None else text

    def _loop(self, loop: Loop, columns: int) -> str:
        test = f"{loop.var} < {self.c(loop.stop)}"
        step = f"{loop.var} += {self.c(loop.step)}"
        if isinstance(loop.step, Const) and loop.step.value == 1:
            step = f"++{loop.var}"
        elif isinstance(loop.step, Const) and loop.step.value < 0:
            test = f"{loop.var} > {self.c(loop.stop)}"
            step = f"{loop.var} -= {-loop.step.value}" if loop.step.value < -1 else f"--{loop.var}"
        kind = self.c.type_name(loop.dtype)
        body = self.block(loop.body, columns - 4)
        head = f"for ({kind} {loop.var} = {self.c(loop.start)}; {test}; {step}) "
        single = len(loop.body) == 1 and not loop.body[0].comments and not loop.remark
        fits = "\n" not in body and len(head) + len(body) <= columns
        short = isinstance(loop.body[0], Assign | Do | Escape) if loop.body else False
        return self._fill(
            "loop.j2",
            type=kind,
            var=loop.var,
            start=self.c(loop.start),
            test=test,
            step=step,
            body=body,
            unroll=loop.unroll,
            rolled=loop.rolled,
            rolled_unaligned=loop.rolled_unaligned,
            inline=single and short and fits,
            braces=not (single and _needs_no_braces(loop.body[0])),
        )

    def _branch(self, branch: Branch, columns: int) -> str:
        condition = self.c(branch.condition)
        then = self.block(branch.then, columns - 4)
        inline = (
            len(branch.then) == 1
            and isinstance(branch.then[0], Assign | Do)
            and not branch.orelse
            and not branch.then[0].comments
            and (not branch.remark or isinstance(branch.then[0], Do))
            and "\n" not in then
            and len(condition) + len(then) + 5 <= columns
        )
        constexpr = "constexpr " if branch.constexpr else ""
        if not inline:
            head = f"if {constexpr}("
            condition = wrap(f"{head}{condition}) {{", columns)[len(head) : -len(") {")]
        choice = self.block(branch.orelse, columns) if _is_choice(branch.orelse) else ""
        choice = chained(choice, columns)
        return self._fill(
            "branch.j2",
            constexpr=constexpr,
            condition=condition,
            then=then,
            chained=choice,
            orelse="" if choice else self.block(branch.orelse, columns - 4),
            inline=inline,
        )


def _is_choice(statements: Sequence[CStmt]) -> bool:
    """Whether they are a choice and nothing else."""
    if len(statements) != 1 or statements[0].comments:
        return False
    (only,) = statements
    return _is_choice(only.body) if isinstance(only, Section) else isinstance(only, Branch)


def _needs_no_braces(statement: CStmt) -> bool:
    """One statement of one line, or a loop without anything in front of it."""
    return isinstance(statement, Assign | Do) or (
        isinstance(statement, Loop)
        and not (statement.unroll or statement.rolled or statement.rolled_unaligned)
    )
