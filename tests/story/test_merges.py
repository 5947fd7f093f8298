"""Edits by hand and changes of the source, together."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest
from story_merges import CHANGES, EDITS, SOURCE, generated, generated_from, write
from tile2c.transpile.cli.main import main
from tile2c.transpile.output import header
from tile2c.transpile.output.layout import base_file

FILE = "gemm_bias_relu.cu"


def body(text: str) -> str:
    return header.neutral(header.normalized(text), "", "")


@pytest.mark.parametrize("change", CHANGES)
def test_edits_in_many_places_survive_a_change_of_the_source(home: Path, change: str) -> None:
    """The merge is what one gets by making the same edits in the new text."""
    assert write(home, generated("nothing")) == []
    path = home / FILE
    text, expected = path.read_text(), header.sign(generated(change).text)
    for edit in EDITS.values():
        text, expected = edit(text), edit(expected)
    path.write_text(text)
    codes = write(home, generated(change), merge=True)
    assert not {"T2C601", "T2C604", "T2C613"} & set(codes), codes
    assert body(path.read_text()) == body(expected)
    assert (home / base_file(FILE)).read_text() == header.sign(generated(change).text) or (
        change in ("nothing", "moved")
    )
    assert write(home, generated(change)) == ["T2C610"]


def test_edits_follow_a_name_that_changes(home: Path) -> None:
    write(home, generated("nothing"))
    path = home / FILE
    old = "                    C_local[m][n][h * 2 + v] =\n"
    text = path.read_text()
    assert old in text
    path.write_text(
        text.replace(old, f"                    C_local[m][n][h * 2 + v] *= 1.f;\n{old}")
    )
    assert write(home, generated("renamed"), merge=True) == ["T2C615"]
    merged = path.read_text()
    assert "acc[m][n][h * 2 + v] *= 1.f;" in merged and "C_local" not in merged


def test_a_name_that_people_took_is_not_changed_into(home: Path) -> None:
    write(home, generated("nothing"))
    path = home / FILE
    path.write_text(
        path.read_text().replace("    const int bx =", "    float acc = 0;\n    const int bx =")
    )
    codes = write(home, generated("renamed"), merge=True)
    assert "T2C615" not in codes and "float acc = 0;" in path.read_text()


def test_neighbours_that_do_not_belong_together_do_not_collide(home: Path) -> None:
    """git alone would take each of these for a conflict."""
    write(home, generated("nothing"))
    path = home / FILE
    text = path.read_text()
    edits = (
        ("constexpr int num_stages = 3;", "constexpr int num_stages = 4;"),
        ("//   sizes ", "//   sizes, all free "),
        ("// `n` neighbours", "// Mine: `n` neighbours"),
    )
    for old, new in edits:
        assert old in text
        text = text.replace(old, new)
    path.write_text(text)
    assert write(home, generated("tile"), merge=True) == []
    merged = path.read_text()
    assert all(new in merged for _, new in edits) and "block_K = 64" in merged


def test_windows_line_ends_stay(home: Path) -> None:
    write(home, generated("nothing"))
    path = home / FILE
    text = path.read_text()
    for edit in EDITS.values():
        text = edit(text)
    path.write_bytes(text.replace("\n", "\r\n").encode())
    write(home, generated("tile"), merge=True)
    content = path.read_bytes()
    assert content.count(b"\r\n") == content.count(b"\n")
    assert write(home, generated("tile")) == ["T2C610"]


def test_the_same_file_with_windows_line_ends_is_not_edited(home: Path) -> None:
    write(home, generated("nothing"))
    path = home / FILE
    path.write_bytes(path.read_bytes().replace(b"\n", b"\r\n"))
    assert write(home, generated("nothing")) == []
    assert write(home, generated("tile")) == []


def test_a_newer_tile2c_with_the_same_text_changes_no_edited_file(home: Path) -> None:
    write(home, generated("nothing"))
    path = home / FILE
    path.write_text(EDITS["loop"](path.read_text()))
    edited = path.read_bytes()
    kernel = generated("nothing")
    newer = replace(kernel, text=kernel.text.replace("by tile2c 0.1.0", "by tile2c 9.0.0"))
    assert write(home, newer) == ["T2C610"] and path.read_bytes() == edited
    newer = replace(newer, text=newer.text.replace("copies_commit", "end_of_copies"))
    assert write(home, newer) == ["T2C601"] and path.read_bytes() == edited
    assert write(home, newer, merge=True) in ([], ["T2C615"])
    assert "by tile2c 9.0.0" in path.read_text() and "// By hand." in path.read_text()


def test_conflicts_resolved_by_hand_and_the_next_change(home: Path) -> None:
    write(home, generated("nothing"))
    path = home / FILE
    path.write_text(path.read_text().replace("num_stages = 3;", "num_stages = 4;"))
    path.write_text(EDITS["loop"](path.read_text()))
    assert write(home, generated("depth"), merge=True) == ["T2C604"]
    marked = path.read_text()
    assert "num_stages = 4;" in marked and "num_stages = 2;" in marked
    for policy in ({}, {"merge": True}):
        assert write(home, generated("depth"), **policy) == ["T2C603"]
        assert path.read_text() == marked
    start, end = marked.index("<<<<<<<"), marked.index(">>>>>>>")
    end = marked.index("\n", end) + 1
    path.write_text(marked[:start] + "constexpr int num_stages = 4;\n" + marked[end:])
    assert write(home, generated("depth")) == ["T2C610"]
    # The next change is merged with what was resolved.
    changed = generated("depth")
    next_one = replace(changed, text=changed.text.replace("row < M", "row < int(M)"))
    assert write(home, next_one, merge=True) == []
    text = path.read_text()
    assert "num_stages = 4;" in text and "row < int(M)" in text and "// By hand." in text


def test_an_array_that_nothing_reads_changes_no_text() -> None:
    """Not even where copies are matched with what became of them, as roles need."""
    unread = "            s = T.alloc_shared((block_N,), dtype)\n            T.copy(bias[bx * block_N], s)\n"
    assert "            T.clear(C_local)\n" in SOURCE
    changed = SOURCE.replace(
        "            T.clear(C_local)\n", f"{unread}            T.clear(C_local)\n"
    )
    for target in ("cuda:sm_90a", "cuda:sm_80"):
        assert generated_from(changed, target).text == generated_from(SOURCE, target).text


def test_a_source_that_was_renamed(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    Path("old.py").write_text(SOURCE)
    assert main(["old.py", "-o", "out"]) == 0
    path = Path("out") / FILE
    path.write_text(EDITS["loop"](path.read_text()))
    Path("old.py").rename("new.py")
    assert main(["new.py", "-o", "out"]) == 1
    told = capsys.readouterr().err
    assert "gemm_bias_relu of old.py, not of new.py" in told
    assert 'write "file": "new.py" into the "source" of gemm_bias_relu.cu' in told
    manifest = Path("out/tile2c.json")
    manifest.write_text(manifest.read_text().replace('"file": "old.py"', '"file": "new.py"'))
    assert main(["new.py", "-o", "out"]) == 0
    Path("new.py").write_text(CHANGES["tile"](SOURCE))
    assert main(["new.py", "-o", "out", "--merge"]) == 0
    assert "// By hand." in path.read_text() and "from     new.py" in path.read_text()


def test_deleted_and_renamed_files(home: Path) -> None:
    write(home, generated("nothing"))
    path = home / FILE
    path.write_text(EDITS["loop"](path.read_text()))
    path.rename(home / "mine.cu")
    assert write(home, generated("tile")) == []  # a file that is gone is written anew
    assert header.is_as_generated(path.read_text())
    assert "// By hand." in (home / "mine.cu").read_text()
    (home / base_file(FILE)).unlink()
    path.write_text(EDITS["loop"](path.read_text()))
    assert write(home, generated("depth"), merge=True) == ["T2C613"]
    (home / base_file(FILE)).write_text("<<<<<<< a\n=======\n>>>>>>> b\n")
    assert write(home, generated("depth"), merge=True) == ["T2C613"]


def test_an_edit_goes_with_a_statement_that_moves(home: Path) -> None:
    """Each copy is edited, and the two change places in the source."""
    path = home / "gemm_bias_relu.cu"
    write(home, generated("nothing"))
    text = path.read_text()
    for number, line in enumerate(("i = turn * 32", "i = turn * 8")):
        assert f"const int {line}" in text  # the copy's is the first
        text = text.replace(f"const int {line}", f"const int /* mine {number} */ {line}", 1)
    path.write_text(text)
    assert write(home, generated("swapped"), merge=True) == []
    merged = path.read_text()
    new = header.sign(generated("swapped").text)
    assert body(re.sub(r" /\* mine \d \*/", "", merged)) == body(new)
    assert merged.index("/* mine 1 */") < merged.index("/* mine 0 */")


def test_a_line_between_statements_that_change_places_is_left_to_people(home: Path) -> None:
    """It may belong to either."""
    path = home / "gemm_bias_relu.cu"
    write(home, generated("nothing"))
    quote = "        // T.copy(B[ko * block_K"
    text = path.read_text().replace(quote, f"        /* between */\n{quote}")
    path.write_text(text.replace("const int i = turn * 8", "const int /* mine */ i = turn * 8"))
    assert write(home, generated("swapped"), merge=True) == ["T2C604"]
    merged = path.read_text()
    assert "/* between */" in merged and "/* mine */" in merged
