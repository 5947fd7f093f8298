"""The command's libcst is libcst, but quicker to import. Each case is a process of its own."""

from __future__ import annotations

import subprocess
import sys

CHECKS = """
import dataclasses
import libcst as cst

standard = {standard}
assert cst.Name.__init__.__qualname__.startswith("_init_when_used") != standard
assert dataclasses.dataclass.__module__ == "dataclasses"

text = "def f(a, *, b = 1):  # note\\n    return [x for x in (a, b)]\\n"
tree = cst.parse_module(text)
assert tree.code == text
assert tree.deep_clone().code == text and tree.deep_equals(cst.parse_module(text))

name = cst.Name("a", lpar=[cst.LeftParen()], rpar=[cst.RightParen()])
other = name.with_changes(value="b")
assert cst.Module([]).code_for_node(other) == "(b)"
assert name == name != other and hash(name) != hash(other)
assert [item.name for item in dataclasses.fields(name)] == ["value", "lpar", "rpar"]
assert name.lpar is not cst.Name("a").lpar

for wrong in (lambda: cst.Name(), lambda: cst.Name("a", size=1)):
    try:
        wrong()
    except TypeError as error:
        assert "Name.__init__()" in str(error), error
    else:
        raise AssertionError("a wrong call passes")
try:
    cst.Name("", lpar=[cst.LeftParen()])
except cst.CSTValidationError:
    pass
else:
    raise AssertionError("nodes are not validated")

place = cst.metadata.CodePosition(1, 2)
assert place == cst.metadata.CodePosition(1, 2) != cst.metadata.CodePosition(1, 3)
assert repr(place) == "CodePosition(line=1, column=2)" and len({place, place}) == 1
wrapper = cst.metadata.MetadataWrapper(tree)
places = wrapper.resolve(cst.metadata.PositionProvider)
assert {(at.start.line, at.end.line) for at in places.values()} >= {(1, 2), (2, 2)}
assert cst.parse_module(text, cst.PartialParserConfig(python_version="3.9")).code == text


@dataclasses.dataclass(frozen=True)
class Own(cst.Name):
    more: int = 0


assert Own("a").more == 0
"""


def _run(first: str, standard: bool) -> None:
    script = first + CHECKS.replace("{standard}", str(standard))
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_nodes_behave_as_those_of_the_standard_decorator() -> None:
    _run("import tile2c.transpile.stage", standard=False)


def test_a_libcst_that_is_there_stays_as_it_is() -> None:
    _run("import libcst, tile2c.transpile.stage", standard=True)
