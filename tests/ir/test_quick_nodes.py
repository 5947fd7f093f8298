"""The command's libcst is libcst, but quicker to import. Each case is a process of its own."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

SAMPLE = Path(__file__).parents[2] / "samples" / "gemm.py"

CHECKS = """
import dataclasses
import sys
import libcst as cst

standard = {standard}
assert ("__setattr__" in vars(cst.Name)) == standard
assert dataclasses.dataclass.__module__ == "dataclasses"
kept = [
    getattr(value, "__module__", None)
    for module in list(sys.modules.values())
    for name, value in list(vars(module).items())
    if name == "dataclass"
]
assert len(kept) > 20 and set(kept) == {"dataclasses"}, kept

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


QUICK = "from tile2c.transpile import quick_nodes; quick_nodes.choose(); "


def test_nodes_behave_as_those_of_the_standard_decorator() -> None:
    _run(QUICK + "import tile2c.transpile.stage", standard=False)


def test_a_libcst_that_is_there_stays_as_it_is() -> None:
    _run(QUICK + "import libcst, tile2c.transpile.stage", standard=True)


def test_only_the_command_chooses_them() -> None:
    _run("import tile2c.transpile.stage", standard=True)
    main = "from tile2c.transpile.cli.main import main\n"
    list_kernels = f"[{str(SAMPLE)!r}, '--list']"
    _run(f"{main}assert main({list_kernels}) == 0", standard=True)
    _run(f"{main}import sys; sys.argv[1:] = {list_kernels}\nassert main() == 0", standard=False)


BUILD = """
import dataclasses
import inspect
import sys
import typing
import tile2c

tile2c.build(sys.argv[1], "out")
import libcst as cst

assert list(inspect.signature(cst.Name).parameters) == ["value", "lpar", "rpar"]
assert typing.get_type_hints(cst.Name.__init__)["value"] is str
name = cst.Name("a")
for change in (lambda: setattr(name, "value", "b"), lambda: delattr(name, "value")):
    try:
        change()
    except dataclasses.FrozenInstanceError:
        continue
    raise AssertionError("a node can be changed")
"""


def test_a_program_that_uses_tile2c_gets_the_nodes_it_knows(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", BUILD, str(SAMPLE)], cwd=tmp_path, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
