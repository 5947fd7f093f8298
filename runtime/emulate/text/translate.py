"""Turns one asm statement into C++: its registers become variables, each instruction a call."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from tile2c.runtime.emulate.text import instructions_ppu  # noqa: F401 (adds its rules)
from tile2c.runtime.emulate.text.asm import (
    Instruction,
    Label,
    Operand,
    Registers,
    Statement,
    TextError,
    parse_program,
)
from tile2c.runtime.emulate.text.instructions import find_rule
from tile2c.runtime.emulate.text.instructions_hopper import CLUSTER_REGISTERS

_REGISTER_TYPES = {
    "pred": "bool",
    "b8": "uint8_t", "u8": "uint8_t", "s8": "uint8_t",
    "b16": "uint16_t", "u16": "uint16_t", "s16": "uint16_t", "f16": "uint16_t", "bf16": "uint16_t",
    "b32": "uint32_t", "u32": "uint32_t", "s32": "uint32_t", "f16x2": "uint32_t", "bf16x2": "uint32_t",
    "b64": "uint64_t", "u64": "uint64_t", "s64": "uint64_t",
    "f32": "float", "f64": "double",
}  # fmt: skip
_SPECIAL = {
    "%laneid": "emu_lane()",
    "%warpid": "(emu_linear_thread() / 32)",
    "%tid.x": "emu_thread_index().x", "%tid.y": "emu_thread_index().y", "%tid.z": "emu_thread_index().z",
    "%ntid.x": "emu_block_size().x", "%ntid.y": "emu_block_size().y", "%ntid.z": "emu_block_size().z",
    "%ctaid.x": "emu_block_index().x", "%ctaid.y": "emu_block_index().y",
    "%ctaid.z": "emu_block_index().z",
    "%nctaid.x": "emu_grid_size().x", "%nctaid.y": "emu_grid_size().y",
    "%nctaid.z": "emu_grid_size().z",
    "%clock": "(uint32_t)emu_clock()", "%clock64": "emu_clock()", "%globaltimer": "emu_clock()",
    "%smid": "0u",
    "%lanemask_lt": "((1u << emu_lane()) - 1u)", "%lanemask_eq": "(1u << emu_lane())",
    "WARP_SZ": "32u",
    **CLUSTER_REGISTERS,
}  # fmt: skip
_NUMBER = re.compile(r"-?(?:0[xX][0-9a-fA-F]+U?|\d+U?)")
_DECIMAL = re.compile(r"-?\d+\.\d*(?:[eE][-+]?\d+)?")
_FLOAT = re.compile(r"0[fF]([0-9a-fA-F]{8})|0[dD]([0-9a-fA-F]{16})")


@dataclass
class _Translator:
    """Names in force while one statement is translated."""

    statement: Statement
    arch: str
    serial: int
    scopes: list[dict[str, str]] = field(default_factory=lambda: [{}])
    declarations: list[str] = field(default_factory=list)
    registers: int = 0

    def fail(self, message: str) -> TextError:
        return TextError(self.statement.line, message)

    def declare(self, item: Registers) -> None:
        kind = _REGISTER_TYPES.get(item.type)
        if kind is None:
            raise self.fail(f"an asm register of type .{item.type}")
        for name in item.names:
            variable = f"_r{self.registers}"
            self.registers += 1
            self.scopes[-1][name] = variable
            self.declarations.append(f"{kind} {variable} = 0;")

    def label(self, name: str) -> str:
        clean = re.sub(r"\W", "_", name.replace("%=", ""))
        return f"_l{self.serial}_{clean}"

    def operand(self, number: int) -> str:
        operands = self.statement.operands
        if number >= len(operands):
            raise self.fail(f"asm uses %{number} but has {len(operands)} operands")
        if set(operands[number].constraint) & {"n", "i"}:
            return operands[number].expression
        return f"_{number}"

    def value(self, text: str) -> str:
        """One scalar operand: a variable or a literal."""
        text = text.strip()
        if text.startswith("!"):
            return f"!{self.value(text[1:])}"
        if text.startswith("-") and not _NUMBER.fullmatch(text):
            return f"-{self.value(text[1:])}"
        numbered = re.fullmatch(r"%(\d+)", text)
        if numbered:
            return self.operand(int(numbered.group(1)))
        named = re.fullmatch(r"%\[(\w+)\]", text)
        if named:
            for number, operand in enumerate(self.statement.operands):
                if operand.name == named.group(1):
                    return self.operand(number)
        for scope in reversed(self.scopes):
            if text in scope:
                return scope[text]
        special = _SPECIAL.get(text.replace("%%", "%"))
        if special:
            return special
        if _NUMBER.fullmatch(text):
            literal = text.rstrip("U")
            return literal if literal.startswith("-") else f"{literal}u"
        real = _FLOAT.fullmatch(text)
        if real and real.group(1):
            return f"emu::as<float>(0x{real.group(1)}u)"
        if real:
            return f"emu::as<double>((uint64_t)0x{real.group(2)}ull)"
        if _DECIMAL.fullmatch(text):
            return f"{text}f"
        if text == "_":
            return "emu::ptx::sink()"
        raise self.fail(f"asm operand {text} is not understood")

    def argument(self, text: str) -> str:
        """One operand as an argument of a model."""
        if text.startswith("{"):
            return (
                f"emu::ptx::pack({', '.join(self.value(part) for part in text[1:-1].split(','))})"
            )
        if text.startswith("["):
            return ", ".join(self.address(text[1:-1]))
        if "|" in text:
            return ", ".join(self.value(part) for part in text.split("|"))
        return self.value(text)

    def address(self, text: str) -> list[str]:
        """`a`, `a+4`, `map, {x, y}`: one argument for each comma outside braces."""
        arguments = []
        for part in re.findall(r"\{[^}]*\}|[^,{}]+", text):
            part = part.strip()
            if not part:
                continue
            if part.startswith("{"):
                arguments.append(self.argument(part))
                continue
            base, sign, offset = part.partition("+")
            arguments.append(
                f"{self.value(base)} + {self.value(offset)}" if sign else self.value(base)
            )
        return arguments

    def instruction(self, item: Instruction) -> str:
        if item.opcode in {"bra", "bra.uni"}:
            call = f"goto {self.label(item.operands[0])};"
        else:
            rule, match = find_rule(item.opcode)
            if rule is None or match is None:
                raise self.fail(f"the emulator has no model of {item.opcode}")
            if not rule.is_available(self.arch):
                raise self.fail(f"{rule.name} needs {rule.needs}, the target is {self.arch}")
            arguments = ", ".join(self.argument(text) for text in item.operands)
            call = f"emu::ptx::{rule.call(match)}({arguments});"
        if item.guard:
            negated = item.guard.startswith("!")
            return f"if ({'!' if negated else ''}{self.value(item.guard.lstrip('!'))}) {{ {call} }}"
        return call

    def translate(self) -> str:
        body: list[str] = []
        for item in parse_program(self.statement.template):
            if item == "{":
                self.scopes.append({})
            elif item == "}":
                self.scopes.pop()
            elif isinstance(item, Registers):
                self.declare(item)
            elif isinstance(item, Label):
                body.append(f"{self.label(item.name)}: ;")
            elif isinstance(item, Instruction):
                body.append(self.instruction(item))
        binds = [_bind(number, operand) for number, operand in enumerate(self.statement.operands)]
        inner = " ".join([*filter(None, binds), *self.declarations, *body])
        return f"do {{ {inner} }} while (0)" if inner else "do {} while (0)"


def _bind(number: int, operand: Operand) -> str:
    """Gives an operand the name that the template's %N stands for."""
    if set(operand.constraint) & {"n", "i"}:
        return ""
    if operand.is_output:
        return f"auto& _{number} = {operand.expression}; (void)_{number};"
    letter = operand.constraint.strip("&%")[:1]
    if letter not in "rlhfd":
        return f"auto _{number} = {operand.expression}; (void)_{number};"
    return f"const auto _{number} = emu::ptx::in_{letter}({operand.expression}); (void)_{number};"


def translate(statement: Statement, arch: str, serial: int) -> str:
    """C++ for one asm statement, on one line.

    arch    the target, `sm_80`; instructions that it lacks are refused
    serial  a number of this statement, for its labels
    Raises TextError for what has no model.
    """
    return _Translator(statement, arch, serial).translate()
