"""The head of a kernel file says everything, and its `again` line makes the file again."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest
from tile2c.transpile.cli.main import main
from tile2c.transpile.output import header
from tile2c.transpile.targets import all_targets

SAMPLES = Path(__file__).parents[2] / "samples"
LICENCE = "# SPDX-License-Identifier: MIT\n# Copyright Ada\n\n"


def words(text: str) -> dict[str, str]:
    """The header's lines by their first words; one that goes on is one."""
    lines = "".join(header.split(text).header).replace("\n//            ", " ")
    return dict(re.findall(r"^//   (\w+) +(.+)$", lines, re.MULTILINE))


@pytest.mark.parametrize("target", [target.name for target in all_targets()][::3])
def test_every_target_says_what_it_is(home: Path, target: str) -> None:
    assert main([str(SAMPLES / "softmax.py"), "-o", "out", "--target", target]) == 0
    (path,) = Path("out").glob("softmax.*")
    text = path.read_text()
    found = words(text)
    assert text.startswith("// softmax: Y[i, :] = softmax(X[i, :])")
    assert found["from"].startswith("softmax.py by tile2c ")
    assert found["target"].startswith(f"{target} (") and "run" in found["target"]
    assert path.name in found["compile"] and found["launch"] and found["sizes"]
    assert header.is_as_generated(text)
    assert str(home) not in text and not re.search(r"\b20\d\d-\d\d\b|\.py:\d+", text)


@pytest.mark.parametrize(
    "options",
    [
        [],
        ["-D", "block_M=64", "-D", "K=512", "-D", "M%16=0", "-D", "dtype='bfloat16'"],
        ["--target", "cuda:sm_90a,hip:gfx942"],
        ["--line-info", "--target", "cuda:sm_75"],
        ["--license-header", "OURS.txt"],
    ],
    ids=["plain", "values", "targets", "lines", "licence"],
)
def test_again_makes_the_same_bytes(
    home: Path, options: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    source = LICENCE + (SAMPLES / "gemm.py").read_text()
    for folder in ("first", "second"):
        Path(folder).mkdir()
        Path(folder, "gemm.py").write_text(source)
        Path(folder, "OURS.txt").write_text("Ours.\n")
    monkeypatch.chdir(home / "first")
    assert main(["gemm.py", "-o", ".", *options]) == 0
    files = sorted(path for path in Path().rglob("gemm.*") if path.suffix in (".cu", ".hip"))
    files = [path for path in files if ".tile2c" not in path.parts]
    texts = {path: path.read_text() for path in files}
    assert texts
    monkeypatch.chdir(home / "second")
    for path, text in texts.items():
        assert "// SPDX-License-Identifier: MIT" in text and "// Copyright Ada" in text
        assert ("// Ours." in text) == ("OURS.txt" in options)
        program, *arguments = shlex.split(words(text)["again"])
        assert program == "tile2c" and main(arguments) == 0
        assert path.read_text() == text


def test_commands_name_the_architecture_as_nvrtc_does() -> None:
    """Where nvcc is missing NVRTC gets this flag alone; `-gencode` means nothing to it."""
    for target in all_targets():
        if target.name.startswith("cuda:"):
            arch = target.name.partition(":")[2]
            assert f" -arch={arch} " in target.compile


def test_titles_and_commands_go_on_below(home: Path) -> None:
    """A header's lines fit; what they say is read as one line again."""
    name, what = "quite_a_long_name_for_a_kernel", "Y = X, said in a sentence " * 6
    source = (SAMPLES / "softmax.py").read_text().replace("softmax", name)
    source = re.sub(r'""".*?"""', f'"""{what.strip()}"""', source, count=1, flags=re.DOTALL)
    Path("long.py").write_text(source)
    assert main(["long.py", "-o", "out", "-D", "N=512", "-D", "M%16=0"]) == 0
    text = Path("out", f"{name}.cu").read_text()
    lines = header.split(text).header
    assert all(len(line.rstrip("\n")) <= 100 for line in lines)
    assert header.title(lines).count("\n") >= 1 and what.split()[-1] in header.title(lines)
    assert header.compile_command(text) == (
        f"nvcc -arch=sm_80 -O3 -std=c++17 -cubin {name}.cu -o {name}.cubin"
    )
    assert (header.entry(lines, "again") or "").endswith("-D M%16=0 -D N=512")
