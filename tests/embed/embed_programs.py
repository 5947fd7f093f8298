"""Tile programs with launchers, and C++ programs that call them on the CPU."""

from __future__ import annotations

import subprocess
from pathlib import Path

from tile2c.transpile.cli.main import main

SAMPLES = Path(__file__).parents[2] / "samples"
HEAD = "import tilelang\nimport tilelang.language as T\n"

# Every kind of argument, names that C++ or the launcher has itself, two launches, scratch memory.
MIXED = (
    HEAD
    + '''
M = T.dynamic("M")


@T.prim_func
def mixed(
    A: T.Tensor((M, 64), "float16"), register: T.Tensor((64,), "int8"), alpha: T.float16,
    beta: T.float32, n: T.int32, stream: T.Tensor((M, 64), "float32"),
    half: T.Tensor((M,), "bfloat16"),
):
    """Scales, twice."""
    with T.Kernel(T.ceildiv(M, 32), threads=64) as bx:
        scratch = T.alloc_global((M, 64), "float32")
        for i, j in T.Parallel(32, 64):
            if bx * 32 + i < M:
                scratch[bx * 32 + i, j] = A[bx * 32 + i, j] * alpha
        for i, j in T.Parallel(32, 64):
            if bx * 32 + i < M:
                stream[bx * 32 + i, j] = scratch[bx * 32 + i, j] + register[j] + half[bx * 32 + i]
    if n > 3:
        with T.Kernel(T.ceildiv(M, 32), threads=64) as bx:
            for i, j in T.Parallel(32, 64):
                if bx * 32 + i < M:
                    stream[bx * 32 + i, j] = stream[bx * 32 + i, j] * beta
'''
)


def generate(*arguments: str) -> None:
    """Runs the command, which has to succeed."""
    assert main([str(argument) for argument in arguments]) == 0


def compiled(program: str, out: Path, family: str = "cuda", checks: str = "races,memory") -> Path:
    """A C++ program and every launcher of `out`, linked against emulated kernels."""
    place = out.parent / f"{out.name}_emulated"
    generate("emulate", str(out), "-o", str(place), "--check", checks)
    source = out.parent / f"{out.name}.cpp"
    source.write_text(program)
    made = out.parent / f"{out.name}_program"
    command = [
        "g++", "-std=c++17", "-O1", "-Wall", "-Wextra", "-Werror", f"-I{out}",
        f"-isystem{place / 'include' / family}", str(source),
        *map(str, sorted(out.glob("*_launch.cpp"))), str(place / "libtile2c_emulated.so"),
        f"-Wl,-rpath,{place}", "-pthread", "-o", str(made),
    ]  # fmt: skip
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return made


def output_of(program: Path) -> list[str]:
    """What a program prints, standard error behind it."""
    done = subprocess.run([program], capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == 0, (done.returncode, done.stdout, done.stderr)
    return [*done.stdout.splitlines(), *done.stderr.splitlines()]
