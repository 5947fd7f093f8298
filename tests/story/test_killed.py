"""A run that is killed leaves whole files, loses no edit, and the same command goes on from there."""

from __future__ import annotations

import multiprocessing
import os
import random
import signal
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from shutil import copytree

import pytest
from story_merges import EDITS, SCOPE, generated
from tile2c.transpile.diagnostics import Diagnostics
from tile2c.transpile.output import commit
from tile2c.transpile.output.generated import GeneratedKernel
from tile2c.transpile.output.scope import Policy
from tile2c.transpile.output.write import write_folder

State = dict[str, bytes]


class Killed(BaseException):
    """What no handler of errors catches."""


def named(change: str, name: str) -> GeneratedKernel:
    kernel = generated(change)
    text = kernel.text.replace("gemm_bias_relu", name)
    return replace(kernel, name=name, text=text, manifest={**kernel.manifest, "name": name})


def start(folder: Path) -> None:
    """Four kernels, one of them edited."""
    kernels = [named("nothing", name) for name in ("edited", "plain", "same", "gone")]
    write_folder(folder, kernels, SCOPE, Policy(), Diagnostics())
    path = folder / "edited.cu"
    text = path.read_text()
    for edit in EDITS.values():
        text = edit(text)
    path.write_text(text)


def go_on(folder: Path, **policy: bool) -> None:
    """The source changed: two texts differ, a kernel is gone, another one is new."""
    kernels = [named("tile", "edited"), named("tile", "plain"), named("nothing", "same")]
    kernels.append(named("depth", "new"))
    write_folder(folder, kernels, SCOPE, Policy(**policy), Diagnostics())


def state(folder: Path) -> State:
    return {
        path.relative_to(folder).as_posix(): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


def check(now: State, before: State, after: State) -> None:
    """Every file is as it was or as it will be; the edited text is somewhere."""
    for file, content in now.items():
        if not file.endswith(".tmp"):
            assert content in (before.get(file), after.get(file)), f"{file} is neither old nor new"
    assert set(before) & set(after) <= set(now)
    assert {before["edited.cu"], after.get("edited.cu.orig"), after["edited.cu"]} & set(
        now.values()
    )
    if b"The end." not in now["edited.cu"]:
        assert now["edited.cu.orig"] == before["edited.cu"]


@pytest.fixture(params=["merge", "force"])
def policy(request: pytest.FixtureRequest) -> dict[str, bool]:
    return {request.param: True}


def test_at_every_moment(
    home: Path, monkeypatch: pytest.MonkeyPatch, policy: dict[str, bool]
) -> None:
    start(home / "start")
    before = state(home / "start")
    copytree(home / "start", home / "whole")
    go_on(home / "whole", **policy)
    after = state(home / "whole")
    assert "gone.cu" not in after and "new.cu" in after
    moments = 0
    left = 0  # calls until the kill

    def counted(real: Callable[..., object]) -> Callable[..., object]:
        def call(*arguments: object, **keywords: object) -> object:
            nonlocal left
            left -= 1
            if left == -1:
                raise Killed
            return real(*arguments, **keywords)

        return call

    monkeypatch.setattr(commit.os, "replace", counted(os.replace))
    monkeypatch.setattr(commit.tempfile, "mkstemp", counted(commit.tempfile.mkstemp))
    monkeypatch.setattr(Path, "unlink", counted(Path.unlink))
    while True:
        folder = home / f"at{moments}"
        copytree(home / "start", folder)
        left = moments
        try:
            go_on(folder, **policy)
            break
        except Killed:
            pass
        check(state(folder), before, after)
        go_on(folder, **policy)
        found = state(folder)
        extra = {file for file in found if file not in after}
        assert {file: found[file] for file in after} == after
        assert all(".orig" in file for file in extra), extra
        moments += 1
    assert moments > 20


def test_at_random_moments(home: Path, policy: dict[str, bool]) -> None:
    start(home / "start")
    before = state(home / "start")
    copytree(home / "start", home / "whole")
    began = time.perf_counter()
    go_on(home / "whole", **policy)
    took = time.perf_counter() - began
    after = state(home / "whole")
    chance = random.Random(0)
    killed, reach = 0, took * 1.2
    for number in range(15):
        folder = home / f"run{number}"
        copytree(home / "start", folder)
        process = multiprocessing.get_context("fork").Process(
            target=go_on, args=(folder,), kwargs=policy
        )
        process.start()
        time.sleep(chance.uniform(0, reach))
        assert process.pid is not None
        os.kill(process.pid, signal.SIGKILL)
        process.join()
        if process.exitcode == -signal.SIGKILL:
            killed += 1
        else:
            reach *= 0.7  # it was done already: the first run was slower than the later ones
        check(state(folder), before, after)
        go_on(folder, **policy)
        found = state(folder)
        assert {file: found[file] for file in after} == after
    assert killed
