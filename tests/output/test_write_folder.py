"""Writing OUT: names, bases, edits, merges, removals; always all or nothing."""

from __future__ import annotations

import json
import os
import shutil
from dataclasses import replace
from pathlib import Path

import pytest
from tile2c.transpile.diagnostics import Diagnostics, InputError
from tile2c.transpile.output import header
from tile2c.transpile.output.check import check_folder
from tile2c.transpile.output.generated import GeneratedKernel
from tile2c.transpile.output.places import recall
from tile2c.transpile.output.scope import Policy, Scope
from tile2c.transpile.output.write import Module, write_folder

HEADER = """\
// {name}: a copy      from gemm.py by tile2c {version}
//   target   cuda:sm_80 (has run on silicon)
//   compile  nvcc -arch=sm_80 -cubin {name}.cu -o {name}.cubin
//   text     sha256 000000000000  (edit freely: `tile2c --merge` keeps your changes)
"""
BODY = """\
#include <cuda_fp16.h>

constexpr int block = 128;

static __device__ int twice(int x) {{ return 2 * x; }}

extern "C" __global__ void {name}(float* A) {{
    const int i = blockIdx.x * block + threadIdx.x;
    A[i] = twice(i);
}}
"""


def kernel(
    name: str = "gemm",
    *,
    body: str = BODY,
    version: str = "0.1.0",
    source: str = "gemm.py",
    target: str = "cuda:sm_80",
    parameters: dict[str, int] | None = None,
    line: int = 3,
) -> GeneratedKernel:
    return GeneratedKernel(
        name=name,
        target=target,
        suffix=".cu",
        text=HEADER.format(name=name, version=version) + body.format(name=name),
        manifest={
            "name": name,
            "target": target,
            "entry": name,
            "source": {"file": source, "line": line, "sha256": "00"},
            "parameters": dict(parameters or {"block": 128}),
            "sizes": ["N"],
            "args": [],
            "launch": [],
            "workspace": None,
            "modules": [],
        },
    )


SCOPE = Scope(tile2c="0.1.0", sources=("gemm.py",), targets=("cuda:sm_80",))


def run(folder: Path, *kernels: GeneratedKernel, scope: Scope = SCOPE, **policy: bool):
    diagnostics = Diagnostics()
    write_folder(folder, kernels, scope, Policy(**policy), diagnostics)
    return [item.code for item in diagnostics.items]


def check(folder: Path, *kernels: GeneratedKernel, scope: Scope = SCOPE, pristine: bool = False):
    diagnostics = Diagnostics()
    check_folder(folder, kernels, scope, diagnostics, pristine=pristine)
    return [item.code for item in diagnostics.items if item.severity != "note"]


def snapshot(folder: Path) -> dict[str, bytes]:
    return {
        path.relative_to(folder).as_posix(): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


def edit(path: Path, old: str, new: str) -> None:
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new))


def test_a_first_run_writes_file_base_map_and_manifest(tmp_path: Path) -> None:
    out = tmp_path / "new" / "out"
    assert run(out, kernel()) == []
    assert set(snapshot(out)) == {
        "gemm.cu",
        ".tile2c/base/gemm.cu",
        ".tile2c/map/gemm.cu.json",
        "tile2c.json",
    }
    text = (out / "gemm.cu").read_text()
    assert header.is_as_generated(text)
    assert text == (out / ".tile2c/base/gemm.cu").read_text()
    manifest = json.loads((out / "tile2c.json").read_text())
    assert manifest["version"] == 1 and manifest["tile2c"] == "0.1.0"
    assert [entry["file"] for entry in manifest["kernels"]] == ["gemm.cu"]
    assert list(manifest["kernels"][0])[:5] == ["name", "target", "file", "entry", "source"]


def test_the_digest_is_what_grep_and_sha256sum_give(tmp_path: Path) -> None:
    import hashlib

    text = header.sign(kernel().text)
    rest = "".join(
        line for line in text.splitlines(keepends=True) if not line.startswith("//   text ")
    )
    assert f"sha256 {hashlib.sha256(rest.encode()).hexdigest()[:12]}  (edit" in text
    assert header.sign(text) == text
    assert header.is_as_generated(text.replace("\n", "\r\n"))


def test_the_same_run_again_changes_nothing_and_passes_the_check(tmp_path: Path) -> None:
    run(tmp_path, kernel())
    before = snapshot(tmp_path)
    stamp = (tmp_path / "gemm.cu").stat().st_mtime_ns
    assert run(tmp_path, kernel()) == []
    assert snapshot(tmp_path) == before
    assert (tmp_path / "gemm.cu").stat().st_mtime_ns == stamp
    assert check(tmp_path, kernel()) == []


def test_several_targets_get_their_own_folders(tmp_path: Path) -> None:
    both = replace(SCOPE, targets=("cuda:sm_80", "cuda:sm_90a"))
    run(tmp_path, kernel(), kernel(target="cuda:sm_90a"), scope=both)
    assert {"cuda_sm_80/gemm.cu", "cuda_sm_90a/gemm.cu"} <= set(snapshot(tmp_path))
    # One target of them alone moves its file; the other entry is another run's.
    assert run(tmp_path, kernel()) == []
    assert "gemm.cu" in snapshot(tmp_path)
    assert not (tmp_path / "cuda_sm_80").exists()
    assert (tmp_path / "cuda_sm_90a/gemm.cu").exists()


def test_an_edited_file_stays_while_the_text_is_the_same(tmp_path: Path) -> None:
    run(tmp_path, kernel())
    edit(tmp_path / "gemm.cu", "2 * x", "x + x")
    before = snapshot(tmp_path)
    assert run(tmp_path, kernel(version="0.2.0")) == ["T2C610"]
    assert snapshot(tmp_path) == before
    assert check(tmp_path, kernel()) == []
    assert check(tmp_path, kernel(), pristine=True) == ["T2C610"]


def test_an_edited_file_is_refused_and_nothing_is_written(tmp_path: Path) -> None:
    run(tmp_path, kernel(), kernel("other"))
    edit(tmp_path / "gemm.cu", "2 * x", "x + x")
    before = snapshot(tmp_path)
    changed = BODY.replace("block = 128", "block = 64")
    assert run(tmp_path, kernel(body=changed), kernel("other", body=changed)) == ["T2C601"]
    assert snapshot(tmp_path) == before
    assert "T2C609" in check(tmp_path, kernel(body=changed), kernel("other"))


def test_check_names_the_ways_on_for_an_edited_file_that_is_stale(tmp_path: Path) -> None:
    run(tmp_path, kernel())
    new = kernel(body=BODY.replace("block = 128", "block = 64"))
    for edited in (False, True):
        diagnostics = Diagnostics()
        check_folder(tmp_path, [new], SCOPE, diagnostics)
        (item,) = diagnostics.items
        assert item.code == "T2C609" and item.help is not None
        assert ("edited by hand" in item.message) == edited
        assert ("--merge" in item.help) == ("--force" in item.help) == edited
        if not edited:
            edit(tmp_path / "gemm.cu", "2 * x", "x + x")


def test_force_saves_the_edited_file_and_never_over_a_saved_one(tmp_path: Path) -> None:
    run(tmp_path, kernel())
    for name in ("gemm.cu.orig", "gemm.cu.orig.1"):
        edit(tmp_path / "gemm.cu", "2 * x", "x + x")
        edited = (tmp_path / "gemm.cu").read_bytes()
        assert run(tmp_path, kernel(), force=True) == []
        assert (tmp_path / name).read_bytes() == edited
        assert header.is_as_generated((tmp_path / "gemm.cu").read_text())


def test_a_clean_merge_keeps_edits_and_takes_the_new_text(tmp_path: Path) -> None:
    run(tmp_path, kernel())
    edit(tmp_path / "gemm.cu", "2 * x", "x + x")
    new = kernel(body=BODY.replace("A[i] = twice(i)", "A[i] = twice(i) + 1"), version="0.2.0")
    assert run(tmp_path, new, merge=True) == []
    text = (tmp_path / "gemm.cu").read_text()
    assert "x + x" in text and "twice(i) + 1" in text and "by tile2c 0.2.0" in text
    assert (tmp_path / ".tile2c/base/gemm.cu").read_text() == header.sign(new.text)
    assert not header.is_as_generated(text)
    assert run(tmp_path, new) == ["T2C610"]
    assert check(tmp_path, new) == []


def test_a_merge_keeps_windows_line_ends(tmp_path: Path) -> None:
    run(tmp_path, kernel())
    path = tmp_path / "gemm.cu"
    path.write_bytes(path.read_bytes().replace(b"2 * x", b"x + x").replace(b"\n", b"\r\n"))
    new = kernel(body=BODY.replace("A[i] = twice(i)", "A[i] = twice(i) + 1"))
    assert run(tmp_path, new, merge=True) == []
    content = path.read_bytes()
    assert content.count(b"\r\n") == content.count(b"\n") > 5
    assert b"x + x" in content and b"twice(i) + 1" in content


def test_conflicts_are_marked_and_then_refused_until_resolved(tmp_path: Path) -> None:
    run(tmp_path, kernel())
    edit(tmp_path / "gemm.cu", "2 * x", "x + x")
    new = kernel(body=BODY.replace("2 * x", "x << 1"))
    assert run(tmp_path, new, merge=True) == ["T2C604"]
    text = (tmp_path / "gemm.cu").read_text()
    marks = [line for line in text.splitlines() if line[:7] in ("<<<<<<<", "=======", ">>>>>>>")]
    assert [mark[:7] for mark in marks] == ["<<<<<<<", "=======", ">>>>>>>"]
    assert "x << 1" in (tmp_path / ".tile2c/base/gemm.cu").read_text()
    before = snapshot(tmp_path)
    assert run(tmp_path, new) == ["T2C603"]
    assert run(tmp_path, new, merge=True) == ["T2C603"]
    assert check(tmp_path, new) == ["T2C603"]
    assert snapshot(tmp_path) == before
    kept = [line for line in text.splitlines(keepends=True) if line.rstrip() not in marks]
    (tmp_path / "gemm.cu").write_text("".join(line for line in kept if "x << 1" not in line))
    assert run(tmp_path, new) == ["T2C610"]


def test_a_merge_that_no_longer_compiles_writes_nothing(tmp_path: Path) -> None:
    run(tmp_path, kernel())
    edit(tmp_path / "gemm.cu", "2 * x", "x + x")
    before = snapshot(tmp_path)
    diagnostics = Diagnostics()
    policy = Policy(merge=True, verify=lambda kernel, file, text: "x is not declared")
    new = kernel(body=BODY.replace("block = 128", "block = 64"))
    assert write_folder(tmp_path, [new], SCOPE, policy, diagnostics) is None
    assert [item.code for item in diagnostics.items] == ["T2C605"]
    assert snapshot(tmp_path) == before


@pytest.mark.parametrize(
    ("second", "scope"),
    [
        (kernel(source="other.py"), replace(SCOPE, sources=("other.py",))),
        (kernel(target="cuda:sm_90a"), replace(SCOPE, targets=("cuda:sm_90a",))),
        (kernel(parameters={"block": 64}), replace(SCOPE, defines=("block=64",))),
    ],
    ids=["source", "target", "specialisation"],
)
def test_a_held_name_is_an_error(tmp_path: Path, second: GeneratedKernel, scope: Scope) -> None:
    run(tmp_path, kernel())
    before = snapshot(tmp_path)
    assert run(tmp_path, second, scope=scope) == ["T2C602"]
    assert snapshot(tmp_path) == before
    (tmp_path / "gemm.cu").unlink()
    assert run(tmp_path, second, scope=scope) == []
    assert check(tmp_path, second, scope=scope) == []


def test_force_replaces_another_specialisation_and_saves_its_edits(tmp_path: Path) -> None:
    run(tmp_path, kernel())
    second, scope = kernel(parameters={"block": 64}), replace(SCOPE, defines=("block=64",))

    def help_of(kernel: GeneratedKernel, scope: Scope) -> str | None:
        diagnostics = Diagnostics()
        assert write_folder(tmp_path, [kernel], scope, Policy(), diagnostics) is None
        return diagnostics.items[0].help

    assert help_of(second, scope) == "choose another folder with -o, or --force to replace it"
    edit(tmp_path / "gemm.cu", "2 * x", "x + x")
    assert str(help_of(second, scope)).endswith("after saving the edited file as gemm.cu.orig")
    other = replace(SCOPE, sources=("other.py",))
    assert str(help_of(kernel(source="other.py"), other)).endswith("loses the edits made in it")
    assert run(tmp_path, kernel(source="other.py"), scope=other, force=True) == ["T2C602"]
    assert run(tmp_path, second, scope=scope, force=True) == []
    assert "x + x" in (tmp_path / "gemm.cu.orig").read_text()
    assert check(tmp_path, second, scope=scope, pristine=True) == []


BOTH = replace(SCOPE, targets=("cuda:sm_80", "cuda:sm_90a"))


@pytest.mark.parametrize("flat_first", [True, False])
@pytest.mark.parametrize("other", ["source", "specialisation"])
def test_a_name_held_in_the_other_layout_is_an_error(
    tmp_path: Path, flat_first: bool, other: str
) -> None:
    def made(scope: Scope, *, first: bool) -> tuple[list[GeneratedKernel], Scope]:
        source = "gemm.py" if first or other == "specialisation" else "other.py"
        block = 128 if first or other == "source" else 64
        scope = replace(scope, sources=(source,), defines=(f"block={block}",))
        parameters = {"block": block}
        targets = scope.targets
        return [kernel(target=t, source=source, parameters=parameters) for t in targets], scope

    layouts = (SCOPE, BOTH) if flat_first else (BOTH, SCOPE)
    file = "gemm.cu" if flat_first else "cuda_sm_80/gemm.cu"
    kernels, scope = made(layouts[0], first=True)
    assert run(tmp_path, *kernels, scope=scope) == []
    before = snapshot(tmp_path)
    kernels, scope = made(layouts[1], first=False)
    assert run(tmp_path, *kernels, scope=scope) == ["T2C602"]
    assert "T2C602" in check(tmp_path, *kernels, scope=scope)
    assert snapshot(tmp_path) == before
    forced = run(tmp_path, *kernels, scope=scope, force=True)
    assert forced == (["T2C602"] if other == "source" else [])
    (tmp_path / file).unlink(missing_ok=True)  # a file that somebody removed is free again
    assert run(tmp_path, *kernels, scope=scope) == []
    assert check(tmp_path, *kernels, scope=scope) == []
    entries = json.loads((tmp_path / "tile2c.json").read_text())["kernels"]
    held = [(entry["name"], entry["target"]) for entry in entries]
    assert len(held) == len(set(held)) and file not in snapshot(tmp_path)


def test_force_leaves_an_edited_file_of_the_other_layout(tmp_path: Path) -> None:
    run(tmp_path, kernel(), kernel(target="cuda:sm_90a"), scope=BOTH)
    edit(tmp_path / "cuda_sm_80/gemm.cu", "2 * x", "x + x")
    second, scope = kernel(parameters={"block": 64}), replace(SCOPE, defines=("block=64",))
    diagnostics = Diagnostics()
    assert write_folder(tmp_path, [second], scope, Policy(), diagnostics) is None
    assert str(diagnostics.items[0].help).endswith("which was edited, stays as it is")
    assert run(tmp_path, second, scope=scope, force=True) == ["T2C611"]
    assert "x + x" in (tmp_path / "cuda_sm_80/gemm.cu").read_text()


def test_an_equal_kernel_goes_where_the_layout_has_it(tmp_path: Path) -> None:
    run(tmp_path, kernel(), kernel(target="cuda:sm_90a"), scope=BOTH)
    assert run(tmp_path, kernel()) == []
    files = set(snapshot(tmp_path))
    assert {"gemm.cu", "cuda_sm_90a/gemm.cu"} <= files and "cuda_sm_80/gemm.cu" not in files
    assert check(tmp_path, kernel()) == []


def test_a_default_that_changed_in_the_source_is_the_same_specialisation(tmp_path: Path) -> None:
    run(tmp_path, kernel())
    assert run(tmp_path, kernel(parameters={"block": 64})) == []


def test_a_kernel_gone_from_the_source_is_removed_unless_edited(tmp_path: Path) -> None:
    run(tmp_path, kernel(), kernel("old"), kernel("kept"))
    edit(tmp_path / "kept.cu", "2 * x", "x + x")
    assert check(tmp_path, kernel(), kernel("kept")) == ["T2C609"]
    assert run(tmp_path, kernel()) == ["T2C611"]
    files = set(snapshot(tmp_path))
    assert "kept.cu" in files and not {"old.cu", ".tile2c/base/old.cu"} & files
    assert check(tmp_path, kernel()) == ["T2C611"]  # a warning


def test_other_sources_and_kernels_left_out_are_not_touched(tmp_path: Path) -> None:
    run(tmp_path, kernel(), kernel("second"))
    run(tmp_path, kernel("add", source="add.py"), scope=replace(SCOPE, sources=("add.py",)))
    assert run(tmp_path, kernel(), scope=replace(SCOPE, only=True)) == []
    unready = replace(SCOPE, unready=lambda: frozenset({"second"}))
    assert run(tmp_path, kernel(), scope=unready) == []
    assert {"gemm.cu", "second.cu", "add.cu"} <= set(snapshot(tmp_path))


def test_a_moved_kernel_changes_only_manifest_and_map(tmp_path: Path) -> None:
    run(tmp_path, kernel())
    before = snapshot(tmp_path)
    assert check(tmp_path, kernel(line=40)) == []
    run(tmp_path, kernel(line=40))
    after = snapshot(tmp_path)
    assert {file for file in after if after[file] != before[file]} == {"tile2c.json"}


def test_a_foreign_file_is_not_overwritten(tmp_path: Path) -> None:
    (tmp_path / "gemm.cu").write_text("mine\n")
    assert run(tmp_path, kernel()) == ["T2C612"]
    assert run(tmp_path, kernel(), force=True) == []
    assert (tmp_path / "gemm.cu.orig").read_text() == "mine\n"


def test_missing_files_are_written_again_and_found_by_check(tmp_path: Path) -> None:
    run(tmp_path, kernel())
    for lost in ("gemm.cu", ".tile2c/base/gemm.cu"):
        (tmp_path / lost).unlink()
        assert check(tmp_path, kernel()) == ["T2C608"]
    assert run(tmp_path, kernel()) == []
    shutil.rmtree(tmp_path / ".tile2c")
    assert check(tmp_path, kernel()) == ["T2C608"]
    assert run(tmp_path, kernel()) == []
    assert check(tmp_path, kernel()) == []
    assert check(tmp_path / "nowhere", kernel()) == ["T2C608"]


def test_a_run_killed_between_file_and_base_is_finished_by_the_next(tmp_path: Path) -> None:
    run(tmp_path, kernel())
    new = kernel(body=BODY.replace("block = 128", "block = 64"))
    (tmp_path / "gemm.cu").write_text(header.sign(new.text))
    (tmp_path / ".tile2c.json.abc.tmp").write_text("half")
    assert run(tmp_path, new) == []
    assert check(tmp_path, new) == []
    assert not (tmp_path / ".tile2c.json.abc.tmp").exists()


def test_a_broken_manifest_is_one_clear_error(tmp_path: Path) -> None:
    run(tmp_path, kernel())
    (tmp_path / "tile2c.json").write_text("<<<<<<< ours\n{}\n")
    with pytest.raises(InputError, match="conflict marks"):
        run(tmp_path, kernel())


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_forbidden_folder_is_a_clear_error(tmp_path: Path) -> None:
    tmp_path.chmod(0o500)
    with pytest.raises(InputError, match="Permission denied"):
        run(tmp_path / "out", kernel())


def test_a_failed_write_leaves_everything_as_it_was(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run(tmp_path, kernel())
    before = snapshot(tmp_path)
    count = iter(range(100))
    real = os.fdopen

    def full(handle: int, mode: str):
        if next(count) == 1:
            os.close(handle)
            raise OSError(28, "No space left on device")
        return real(handle, mode)

    monkeypatch.setattr("tile2c.transpile.output.commit.os.fdopen", full)
    with pytest.raises(InputError, match="No space left"):
        run(tmp_path, kernel(body=BODY.replace("block = 128", "block = 64")))
    assert snapshot(tmp_path) == before


def test_modules_are_listed_and_dropped_when_the_text_changes(tmp_path: Path) -> None:
    def compiled(kernel: GeneratedKernel, file: str, text: str, diagnostics: Diagnostics) -> Module:
        return Module(arch="sm_80", suffix=".cubin", content=b"\x7fELF", compiler="nvcc 13.0")

    write_folder(tmp_path, [kernel()], SCOPE, Policy(), Diagnostics(), compiled)
    entry = json.loads((tmp_path / "tile2c.json").read_text())["kernels"][0]
    assert entry["modules"][0]["file"] == "gemm.sm_80.cubin"
    assert (tmp_path / "gemm.sm_80.cubin").read_bytes() == b"\x7fELF"
    run(tmp_path, kernel())
    assert (tmp_path / "gemm.sm_80.cubin").exists()
    run(tmp_path, kernel(body=BODY.replace("block = 128", "block = 64")))
    assert not (tmp_path / "gemm.sm_80.cubin").exists()
    assert json.loads((tmp_path / "tile2c.json").read_text())["kernels"][0]["modules"] == []


def test_two_sources_of_one_name_are_told_apart(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    paths = [tmp_path / folder / "gemm.py" for folder in "ab"]
    for path in paths:
        path.parent.mkdir()
        path.write_text("")
    out = tmp_path / "out"

    def scope(path: Path) -> Scope:
        return replace(SCOPE, paths=frozenset({str(path)}), known=recall(out))

    assert run(out, kernel(source=str(paths[0])), scope=scope(paths[0])) == []
    assert b'"file": "gemm.py"' in (out / "tile2c.json").read_bytes()
    assert run(out, kernel(source=str(paths[1])), scope=scope(paths[1])) == ["T2C602"]
    assert run(out, kernel("other", source=str(paths[1])), scope=scope(paths[1])) == []
    assert {"gemm.cu", "other.cu"} <= set(snapshot(out))
    paths[0].unlink()  # moved: the file is the other source's now
    assert run(out, kernel(source=str(paths[1])), scope=scope(paths[1])) == []
