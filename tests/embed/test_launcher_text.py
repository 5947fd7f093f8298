"""The launcher's text: it compiles without warnings, and nobody's formatter changes it."""

from __future__ import annotations

import itertools
import json
import random
import re
import shutil
import subprocess
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest
from embed_programs import HEAD, MIXED, SAMPLES, generate
from tile2c.runtime.expressions import evaluate
from tile2c.runtime.tensor_maps import resolve
from tile2c.transpile.cli.main import main
from tile2c.transpile.render.launcher.expressions import CExpressions

HEADERS = Path(__file__).parents[2] / "runtime" / "emulate" / "host" / "include"
STYLE = Path(__file__).parents[2] / ".clang-format"


@pytest.fixture(params=["cuda:sm_80", "cuda:sm_90a", "hip:gfx942", "maca", "musa:mp_22"])
def out(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    (tmp_path / "mixed.py").write_text(MIXED)
    names = ("gemm_bias_relu", "softmax")
    sources = [*(str(SAMPLES / f"{name}.py") for name in names), "mixed.py"]
    generate(*sources, "-o", "out", "--launcher", "--target", request.param)
    return tmp_path / "out"


def test_clang_format_changes_nothing(out: Path) -> None:
    tool = shutil.which("clang-format")
    if tool is None:
        pytest.skip("clang-format is not there")
    for path in [*out.glob("*.h"), *out.glob("*.cpp")]:
        done = subprocess.run([tool, f"--style=file:{STYLE}", str(path)], capture_output=True)
        assert done.stdout == path.read_bytes(), path.name


def test_the_header_is_c(out: Path) -> None:
    for path in out.glob("*.h"):
        program = f'#include "{path}"\nint main(void) {{ return 0; }}\n'
        command = ["gcc", "-std=c99", "-Wall", "-Wextra", "-pedantic", "-fsyntax-only", "-xc", "-"]
        done = subprocess.run(command, input=program, capture_output=True, text=True, check=False)
        assert (done.returncode, done.stderr) == (0, "")


def test_names_of_c_and_of_the_launcher_itself(tmp_path: Path) -> None:
    (tmp_path / "mixed.py").write_text(MIXED)
    generate("mixed.py", "-o", "out", "--launcher")
    text = Path("out/mixed.h").read_text()
    assert "const int8_t* register_,  // [64]" in text
    assert "float alpha,  // a float16" in text
    assert "struct CUstream_st* stream_)" in text
    assert "size_t mixed_workspace_bytes(int64_t M);" in text
    assert "// register is null" in text


def test_a_header_hides_none_of_the_system(tmp_path: Path) -> None:
    text = (SAMPLES / "add.py").read_text().replace("def add(", "def math(")
    (tmp_path / "m.py").write_text(text)
    generate("m.py", "-o", "out", "--launcher")
    assert Path("out/math_kernel.h").exists() and not Path("out/math.h").exists()


def test_several_targets_link_together(tmp_path: Path) -> None:
    generate(
        str(SAMPLES / "add.py"), "-o", "out", "--launcher", "--target", "cuda:sm_80,hip:gfx942"
    )
    assert "int add_launch_sm_80(" in Path("out/cuda_sm_80/add.h").read_text()
    assert "int add_launch_gfx942(" in Path("out/hip_gfx942/add.h").read_text()


def test_launchers_follow_their_kernels(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    shutil.copy(SAMPLES / "add.py", tmp_path)
    generate("add.py", "-o", "out", "--launcher")
    listed = json.loads(Path("out/tile2c.json").read_text())["kernels"][0]["launcher"]
    assert listed == {"header": "add.h", "source": "add_launch.cpp", "function": "add_launch"}
    source = Path("out/add_launch.cpp")
    generate("add.py", "-o", "out", "--check", "--pristine")
    source.write_text(source.read_text().replace("namespace {", "namespace {  // ours"))
    generate("add.py", "-o", "out", "--check")
    assert main(["add.py", "-o", "out", "--check", "--pristine"]) == 1
    text = Path("add.py").read_text()
    Path("add.py").write_text(text.replace("block_N: int = 1024", "block_N: int = 512")
                              .replace("block_N=1024", "block_N=512"))  # fmt: skip
    capsys.readouterr()
    assert main(["add.py", "-o", "out"]) == 1
    assert "add_launch.cpp was edited by hand" in capsys.readouterr().err
    generate("add.py", "-o", "out", "--merge")
    assert "// ours" in source.read_text() and "(N + 511) / 512" in source.read_text()
    generate("add.py", "-o", "out", "--no-launcher")
    assert not Path("out/add.h").exists() and source.exists()
    assert main(["add.py", "-o", "out", "--launcher", "--force"]) == 0
    assert Path("out/add_launch.cpp.orig").exists()


def test_a_launcher_belongs_to_one_kernel(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    generate(str(SAMPLES / "add.py"), "-o", "out", "--launcher")
    command = [str(SAMPLES / "add.py"), "-o", "out", "--launcher", "--target", "hip:gfx942"]
    assert main(command) == 1
    assert "error[T2C602]: add.h belongs to add.cu, not to add.hip" in capsys.readouterr().err
    assert not Path("out/add.hip").exists()


@pytest.mark.parametrize("name", ["launch", "Grid", "encode", "address", "kernels", "largest_size"])
def test_kernels_and_arguments_named_as_the_launcher_names_things(name: str) -> None:
    text = (SAMPLES / "gemm.py").read_text()
    for old, new in ((r"gemm\(", f"{name}("), ("A", "dims"), ("B", "status"), ("C", "made")):
        text = re.sub(rf"\b{old}(?!_)" if old != r"gemm\(" else r"(?<!T\.)\bgemm\(", new, text)
    Path("p.py").write_text(text)
    generate("p.py", "-o", "out", "--launcher", "--target", "cuda:sm_90a")
    command = [
        "g++", "-std=c++17", "-Wall", "-Werror", f"-I{HEADERS / 'cuda'}", "-fsyntax-only",
        f"out/{name}_launch.cpp",
    ]  # fmt: skip
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_a_kernel_named_as_a_launcher(capsys: pytest.CaptureFixture[str]) -> None:
    text = (SAMPLES / "add.py").read_text()
    Path("other.py").write_text(text.replace("def add(", "def add_launch("))
    assert main([str(SAMPLES / "add.py"), "other.py", "-o", "out", "--launcher"]) == 1
    told = "T2C602]: the launcher of add.cu would be called add_launch, as add_launch.cu is"
    assert told in capsys.readouterr().err
    assert not Path("out").exists()


SCALED = (
    HEAD
    + """
N = T.dynamic("N")


@T.prim_func
def add(A: T.Tensor((N,), "float16"), s: T.float16, C: T.Tensor((N,), "float16")):
    with T.Kernel(T.ceildiv(N, 1024), threads=256) as bx:
        for i in T.Parallel(1024):
            if bx * 1024 + i < N:
                C[bx * 1024 + i] = A[bx * 1024 + i] + s
"""
)


def test_a_kernel_without_a_launcher(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    Path("add.py").write_text(SCALED)
    generate("add.py", "-o", "out", "--launcher", "--target", "ascendc")
    told = capsys.readouterr().err
    assert "warning[T2C622]: add.ascendc.cpp has no launcher: s is a float16, and how" in told
    assert not Path("out/add.h").exists()


EXPRESSIONS = [
    "(N + 127) / 128", "M // 4 * 4", "(M - 100) // 7", "(M - 100) % 7", "M - (N - K)",
    "M * (N + K) % 12", "max(M, N, K) - min(M, 5)", "ceildiv(M, 3)", "n / 3 - n // 3", "n % 5",
    "not (M > N) or K == 3 and M < 7", "(M == 0 or N > 3) and not (K % 2 == 0)", "M / N", "-M + 3",
    "(N + 127) / 128 * ((M + 127) / 128)", "M * (N * ((K + 3) / 4))", "3 * (M % 7 * (n / 2))",
    "0 < M < 10", "M - N - K", "(M % 6) * (N % 4)", "M / (N / K)",
]  # fmt: skip


def drawn(rng: random.Random, depth: int) -> str:
    """A random expression of sizes, a scalar and numbers."""
    if depth == 0 or rng.random() < 0.2:
        return rng.choice(("M", "N", "K", "n", "3", "7", "128"))
    left, right = drawn(rng, depth - 1), drawn(rng, depth - 1)
    op = rng.choice(("+", "-", "*", "*", "/", "//", "%", "min", "ceildiv"))
    return f"{op}({left}, {right})" if op.isalpha() else f"({left} {op} {right})"


def test_expressions_mean_the_same_in_c(tmp_path: Path) -> None:
    """Grids and conditions as the launcher computes them, against the manifest's reader."""
    rng = random.Random(7)
    expressions = [*EXPRESSIONS, *(drawn(rng, 4) for _ in range(200))]
    names = {name: name for name in ("M", "N", "K", "n")}
    c = CExpressions(names, {}, frozenset({"n"}))
    texts = [c(expression) for expression in expressions]
    sizes = ((0, 9, 300), (1, 7, 290), (1, 33), (-7, 4))
    cases = list(itertools.product(*sizes))
    template = Path(__file__).parents[2] / "templates" / "host" / "launcher" / "helpers.j2"
    functions = template.read_text().split('{% if "least" in helpers %}')[1]
    helpers = "\n".join(line for line in functions.split("\n") if not line.startswith("{%"))
    rows = "\n".join(
        f"    {{ const int64_t M = {m}, N = {n}, K = {k}, n = {s};"
        + "".join(f' std::printf("%lld ", (long long)({text}));' for text in texts)
        + ' std::puts(""); }'
        for m, n, k, s in cases
    )
    source = tmp_path / "expressions.cpp"
    source.write_text(
        f"#include <cstdint>\n#include <cstdio>\n{helpers}\nint main() {{\n{rows}\n}}\n"
    )
    made = tmp_path / "expressions"
    subprocess.run(["g++", "-std=c++17", "-w", str(source), "-o", str(made)], check=True)
    printed = subprocess.run([made], capture_output=True, text=True, check=True).stdout
    for line, (m, n, k, s) in zip(printed.splitlines(), cases, strict=True):
        values = {"M": m, "N": n, "K": k, "n": s}
        for expression, text, got in zip(expressions, texts, line.split(), strict=True):
            try:
                want = evaluate(expression, values)
            except ValueError:
                continue  # divides by zero
            assert abs(want) >= 2**62 or int(got) == want, (expression, text, values)


def test_tensor_maps_are_those_of_the_manifest(tmp_path: Path) -> None:
    """Each number of the maps stands in the launcher; the emulated run proves that it is right."""
    from tile2c.runtime.records import read_records

    generate(str(SAMPLES / "gemm.py"), "-o", "out", "--launcher", "--target", "cuda:sm_90a")
    text = Path("out/gemm_launch.cpp").read_text()
    (record,) = read_records(Path("out"))
    sets = [[item.map for item in x.arguments if item.map is not None] for x in record.launches]
    direct = [x for x in sets if x and not any(item.in_workspace for item in x)]
    assert text.count("const bool made") == sum(len(maps) for maps in direct)
    assert [len(maps) for maps in direct] == [3, 3]  # of clusters, and of blocks on their own
    for item in (item for maps in direct for item in maps):
        box = ", ".join(map(str, item.box))
        assert f"box[] = {{{box}}}" in text
        resolved = resolve(item, {"M": 256, "N": 256, "K": 64}, 4096)
        assert resolved.box == tuple(item.box)


def test_narrow_scalars_are_rounded_as_numpy_rounds_them(tmp_path: Path) -> None:
    """The launcher's own conversions, where a vendor's are not public."""
    generate_from(tmp_path)
    text = Path("out/mixed_launch.cpp").read_text()
    begin = text.index("// The bits of the half")
    functions = text[begin : text.index("\n}\n", text.index("uint16_t bfloat_bits")) + 3]
    rng = np.random.default_rng(1)
    words = rng.integers(0, 2**32, 4000, dtype=np.uint32).view(np.float32)
    near = np.exp2(rng.uniform(-27, 17, 4000))  # halves: subnormal, normal and too large
    edges = np.array([0, -0.0, 65519, 65520, 2**-25, -(2**-24)])
    values = np.concatenate(
        [words[~np.isnan(words)], near.astype(np.float32), edges.astype(np.float32)]
    )
    values.tofile(tmp_path / "values")
    program = f"""
#include <cstdint>
#include <cstdio>
#include <cstring>
{functions}
int main() {{
    float value;
    while (std::fread(&value, 4, 1, stdin) == 1)
        std::printf("%d %d\\n", half_bits(value), bfloat_bits(value));
}}
"""
    (tmp_path / "bits.cpp").write_text(program)
    subprocess.run(["g++", "-std=c++17", "bits.cpp", "-o", "bits"], check=True)
    with open(tmp_path / "values", "rb") as stream:
        done = subprocess.run(["./bits"], stdin=stream, capture_output=True, text=True, check=True)
    got = np.array([line.split() for line in done.stdout.splitlines()], dtype=np.uint16)
    with np.errstate(over="ignore"):
        assert (got[:, 0] == values.astype(np.float16).view(np.uint16)).all()
    assert (got[:, 1] == values.astype(ml_dtypes.bfloat16).view(np.uint16)).all()


def generate_from(folder: Path) -> None:
    """The mixed program, for a vendor whose 16-bit types the launcher does not name."""
    text = MIXED.replace("beta: T.float32", "beta: T.bfloat16")
    (folder / "mixed.py").write_text(text)
    generate("mixed.py", "-o", "out", "--launcher", "--target", "musa:mp_31")
