"""The text step by itself: lines stay, declarations and statements are found where they are."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from tile2c.runtime.emulate import load
from tile2c.runtime.emulate.text.asm import Instruction, Label, Registers, TextError, parse_program
from tile2c.runtime.emulate.text.instructions import find_rule
from tile2c.runtime.emulate.text.rewrite import rewrite
from tile2c.runtime.emulate.text.tokens import join, tokenize
from tile2c.runtime.errors import BackendUnavailable


def test_tokens_join_to_the_text() -> None:
    text = (
        'a /* x\n y */ "s\\"t" R"(raw\n)" \'c\' 1.5e-3f 0x1\'00 a::b // end\n#pragma unroll\nx<<=2;'
    )
    assert join(tokenize(text)) == text
    assert [t.line for t in tokenize("a\n\nb") if t.kind == "name"] == [1, 3]
    assert [t.line for t in tokenize('#line 40 "kernel"\na\nb') if t.kind == "name"] == [40, 41]


@pytest.mark.parametrize(
    ("declaration", "made"),
    [
        ("__shared__ float x[4][8];", 'auto& x = emu::shared<float[4][8]>("x", EMU_SITE);'),
        (
            "__shared__ __align__(128) half A[3];",
            'auto& A = emu::shared<half[3]>("A", EMU_SITE, 128);',
        ),
        ("alignas(16) static __shared__ int s;", 'auto& s = emu::shared<int>("s", EMU_SITE, 16);'),
        (
            "__shared__ Pair<int, 4> p[2], *q;",
            'auto& p = emu::shared<Pair < int , 4 >[2]>("p", EMU_SITE); '
            'auto& q = emu::shared<Pair < int , 4 >*>("q", EMU_SITE);',
        ),
        ("extern __shared__ char raw[];", 'auto* const raw = emu::dynamic_shared<char>("raw");'),
        (
            "extern __shared__ float t[][32];",
            'auto* const t = emu::dynamic_shared<float[32]>("t");',
        ),
        ("__shared__ volatile ns::T v[N * 2];", "emu::shared<volatile ns::T[N*2]>"),
    ],
)
def test_shared_arrays(declaration: str, made: str) -> None:
    out = rewrite(f"void f() {{\n    {declaration}\n    g();\n}}\n", "sm_80")
    assert made.replace(" ", "") in out.replace(" ", "")
    assert out.split("\n")[2].strip() == "g();"


def test_shared_array_with_initializer_is_refused() -> None:
    with pytest.raises(TextError) as caught:
        rewrite("void f() {\n    __shared__ int x = 3;\n}\n", "sm_80")
    assert caught.value.line == 2


def test_asm_programs() -> None:
    items = parse_program(
        "{ .reg .pred p, q; .reg .b32 r<2>; // note\n\t L1: @!p add.u32 r0, %0, {%1, %2}; [%3], 4; }"
    )
    assert items[1] == Registers("pred", ("p", "q"))
    assert items[2] == Registers("b32", ("r0", "r1"))
    assert items[3] == Label("L1")
    assert items[4] == Instruction("!p", "add.u32", ("r0", "%0", "{%1, %2}"))


def test_lines_after_asm() -> None:
    text = 'void f(int& x) {\n    asm volatile(\n"add.u32 %0, %0, 1;"\n: "+r"(x));\n    g();\n}\n'
    out = rewrite(text, "sm_80").split("\n")
    assert out[4] == "    g();"
    assert "emu::ptx::arithmetic<uint32_t, emu::ptx::Op::ADD>(_0, _0, 1u);" in out[1]


def test_rules_are_found_once() -> None:
    for opcode in (
        "cp.async.cg.shared.global",
        "mov.b32",
        "cvt.rn.f16x2.f32",
        "bar.sync",
        "membar.gl",
    ):
        rule, match = find_rule(opcode)
        assert rule is not None and match is not None, opcode
    assert find_rule("cp.async.cg.shared.globe") == (None, None)


def test_kernels_in_a_table() -> None:
    out = rewrite(
        'extern "C" {\n__global__ void __launch_bounds__(128, 1) a(int* x) {}\n}\n'
        'namespace { template <int n> __global__ void b() {} }\nextern "C" __global__ void c(int);\n'
        'extern "C" __global__ void c(int) {}\n',
        "sm_80",
    )
    assert '{"a", &emu::Call<&a>::run' in out and "emu::first_of(128, 1)" in out
    assert '"b"' not in out
    assert out.count('{"c", ') == 1


def test_unknown_target() -> None:
    with pytest.raises(BackendUnavailable, match="no model of cuda:sm_42"):
        load(Path("x.cu"), family="cuda", arch="sm_42")


def test_without_a_compiler(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from tile2c.runtime.emulate import compiler

    monkeypatch.setenv("TILE2C_HOST_CXX", "no-such-g++")
    compiler.find_compiler.cache_clear()
    try:
        with pytest.raises(BackendUnavailable, match=r"apt install g\+\+"):
            compiler.find_compiler()
    finally:
        compiler.find_compiler.cache_clear()


_LOAD = """
import sys
from pathlib import Path
from tile2c.runtime.emulate import load
print(load(Path(sys.argv[1]), family="cuda", arch="sm_80").parameter_sizes("k"))
"""


def test_processes_share_the_cache(tmp_path: Path) -> None:
    """Three that build the same kernel at once; each has it in the end."""
    path = tmp_path / "k.cu"
    path.write_text(f'// {os.getpid()}\nextern "C" __global__ void k(int* x) {{ x[0] = 1; }}\n')
    started = [
        subprocess.Popen(
            [sys.executable, "-c", _LOAD, str(path)],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for _ in range(3)
    ]
    for process in started:
        printed, complaint = process.communicate(timeout=240)
        assert printed == "(8,)\n", complaint
