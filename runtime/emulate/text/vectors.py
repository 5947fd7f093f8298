"""Rewrites `T __attribute__((ext_vector_type(n)))`, which g++ does not have, to `emu::Vec<T, n>`."""

from __future__ import annotations

from tile2c.runtime.emulate.text.asm import TextError
from tile2c.runtime.emulate.text.tokens import Token, code, join, matching


def _attribute(tokens: list[Token], at: int) -> int | None:
    """The end of the attribute that starts at `at`, if it is about vectors."""
    if tokens[at].text != "__attribute__":
        return None
    opening = at + 1
    while tokens[opening].is_blank:
        opening += 1
    end = matching(tokens, opening)
    words = [token.text for token in tokens[opening:end]]
    return end if "ext_vector_type" in words or "__ext_vector_type__" in words else None


def rewrite_vectors(tokens: list[Token]) -> list[Token]:
    """All such types of the text; they may be named by `typedef` and `using`.

    Raises TextError for one that stands elsewhere.
    """
    out: list[Token] = []
    at = 0
    while at < len(tokens):
        if tokens[at].text not in {"typedef", "using"}:
            if tokens[at].kind == "name" and _attribute(tokens, at) is not None:
                raise TextError(tokens[at].line, "ext_vector_type outside a typedef or using")
            out.append(tokens[at])
            at += 1
            continue
        end = at
        while end < len(tokens) and tokens[end].text != ";":
            end += 1
        statement = tokens[at:end]
        found = [
            (index, stop)
            for index in range(len(statement))
            if (stop := _attribute(statement, index)) is not None
        ]
        if found:
            out += _named(statement, *found[0])
        else:
            out += statement
        at = end
    return out


def _named(statement: list[Token], first: int, last: int) -> list[Token]:
    line = statement[0].line
    attribute = code(statement[first : last + 1])
    start = next(
        i
        for i, token in enumerate(attribute)
        if token.text.endswith("type") or "type_" in token.text
    )
    count = join(attribute[start + 2 : matching(attribute, start + 1)])
    words = code(statement[:first] + statement[last + 1 :])
    if words[0].text == "typedef":
        name, kind = words[-1].text, words[1:-1]
    else:
        name, kind = words[1].text, words[3:]
    spelled = " ".join(token.text for token in kind).replace(" : : ", "::")
    lines = "".join(token.text for token in statement).count("\n")
    return [Token("punct", f"using {name} = emu::Vec<{spelled}, {count}>" + "\n" * lines, line)]
