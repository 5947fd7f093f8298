"""wgmma of every type, layout and form against NumPy, by the formulas of the data sheet."""

# ruff: noqa: E501  (texts of kernels)
from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from tile2c.runtime.emulate import EmulatedModule, ValueArgument, load
from tile2c.runtime.emulate.text.instructions import find_rule
from tile2c.runtime.emulate.text.instructions_hopper import CLUSTER_REGISTERS
from tile2c.runtime.errors import KernelError, RaceError

sys.path.insert(0, str(Path(__file__).parent))
from hopper_harness import BOTH, launch, tensor

Array = np.ndarray[Any, Any]
TYPES: dict[str, Any] = {
    "f16": np.float16, "bf16": ml_dtypes.bfloat16, "tf32": np.float32, "e4m3": ml_dtypes.float8_e4m3fn,
    "e5m2": ml_dtypes.float8_e5m2, "s8": np.int8, "u8": np.uint8, "f32": np.float32, "s32": np.int32,
}  # fmt: skip
MODES = {0: 0, 128: 1, 64: 2, 32: 3}


@dataclass(frozen=True)
class Case:
    """One wgmma: S is the swizzle in bytes, `a_s` None for A in registers."""

    n: int
    a: str = "f16"
    b: str = "f16"
    d: str = "f32"
    a_s: int | None = 128
    b_s: int = 128
    a_mn: bool = False
    b_mn: bool = False
    depth: int = 2  # k-steps
    accumulate: bool = False
    sign_a: int = 1
    sign_b: int = 1
    saturate: bool = False

    @property
    def id(self) -> str:
        a = "registers" if self.a_s is None else f"{'mn' if self.a_mn else 'k'}{self.a_s}"
        b = f"{'mn' if self.b_mn else 'k'}{self.b_s}"
        rest = "-".join(
            name
            for name, on in (
                ("acc", self.accumulate),
                ("sat", self.saturate),
                ("-a", self.sign_a < 0),
                ("-b", self.sign_b < 0),
            )
            if on
        )
        return f"n{self.n}-{self.d}-{self.a}-{self.b}-{a}-{b}-{rest}"

    @property
    def k(self) -> int:
        return 32 // int(np.dtype(TYPES[self.a]).itemsize)


CASES = [
    *(Case(n) for n in (8, 24, 64, 96, 256)),
    *(
        Case(96, a_s=s, b_s=s, a_mn=a, b_mn=b, depth=3)
        for s in MODES
        for a in (False, True)
        for b in (False, True)
    ),
    Case(64, a_s=64, b_s=128, b_mn=True, accumulate=True, depth=5),
    Case(32, sign_a=-1), Case(32, sign_b=-1, accumulate=True), Case(64, "bf16", "bf16", b_mn=True),
    Case(64, d="f16"), Case(16, d="f16", accumulate=True, depth=4),
    Case(48, a_s=None, b_mn=True, accumulate=True), Case(16, "bf16", "bf16", a_s=None, sign_a=-1),
    Case(64, "tf32", "tf32"), Case(40, "tf32", "tf32", a_s=None, accumulate=True), Case(8, "tf32", "tf32", a_s=0, b_s=0),
    *(Case(64, a, b, accumulate=True) for a in ("e4m3", "e5m2") for b in ("e4m3", "e5m2")),
    Case(24, "e4m3", "e4m3", a_s=None, b_s=64), Case(32, "e4m3", "e5m2", "f16"),
    *(Case(64, a, b, "s32", accumulate=True) for a in ("s8", "u8") for b in ("s8", "u8")),
    Case(32, "s8", "s8", "s32", depth=1, accumulate=True, saturate=True), Case(24, "u8", "s8", "s32", a_s=None),
]  # fmt: skip


def operand_image(tile: Array, s: int, mn_major: bool) -> bytes:
    """The bytes of a tile [mn, k] as hopper's descriptors expect them."""
    rows, depth = tile.shape
    e = tile.itemsize
    data = {}
    for mn in range(rows):
        for k in range(depth):
            if s and mn_major:
                at = (mn * e // s) * depth * s + k * s + (mn * e) % s
            elif s:
                at = (k * e // s) * rows * s + mn * s + (k * e) % s
            elif mn_major:
                at = (mn * e // 16) * depth * 16 + k * 16 + (mn * e) % 16
            else:
                at = (k * e // 16) * rows * 16 + mn * 16 + (k * e) % 16
            mask = {128: 7, 64: 3, 32: 1, 0: 0}[s]
            data[at ^ (((at >> 7) & mask) << 4)] = tile[mn, k].tobytes()
    image = bytearray(b"\xff" * (-(-(max(data) + e) // 1024) * 1024))
    for at, value in data.items():
        image[at : at + e] = value
    return bytes(image)


def descriptor(rows: int, depth: int, e: int, s: int, mn_major: bool) -> int:
    """All of a descriptor but the address."""
    if s:
        stride, leading = 8 * s, depth * s if mn_major else 16
    elif mn_major:
        stride, leading = depth * 16, 128
    else:
        stride, leading = 128, rows * 16
    return (leading >> 4) << 16 | (stride >> 4) << 32 | MODES[s] << 62


def steps(case: Case, rows: int, s: int, mn_major: bool) -> list[int]:
    """Byte offset of each k-step of 32 bytes."""
    if mn_major:
        return [(16 * s if s else 256) * i for i in range(case.depth)]
    if not s:
        return [2 * rows * 16 * i for i in range(case.depth)]
    return [i * 32 // s * rows * s + i * 32 % s for i in range(case.depth)]


def kernel(index: int, case: Case) -> str:
    count = case.n // 4 if case.d == "f16" else case.n // 2
    letter = "f" if case.d == "f32" else "r"
    kind = "float" if case.d == "f32" else "unsigned"
    registers = ", ".join(f"%{i}" for i in range(count))
    halves = case.a in {"f16", "bf16"}
    a = "{%{0}, %{1}, %{2}, %{3}}" if case.a_s is None else "%{0}"
    inputs = 4 if case.a_s is None else 1
    for i in range(inputs):
        a = a.replace(f"%{{{i}}}", f"%{count + i}")
    immediates = [] if case.d == "s32" else [str(case.sign_a), str(case.sign_b)]
    if halves:
        immediates += (
            [str(int(case.b_mn))]
            if case.a_s is None
            else [str(int(case.a_mn)), str(int(case.b_mn))]
        )
    opcode = f"wgmma.mma_async.sync.aligned.m64n{case.n}k{case.k}.{case.d}.{case.a}.{case.b}"
    if case.saturate:
        opcode += ".satfinite"
    tail = "".join(f", {x}" for x in immediates)
    constraints = ", ".join(f'"+{letter}"(acc[{i}])' for i in range(count))
    given = (
        '"l"(a + (a_at[s] >> 4) + start)'
        if case.a_s is not None
        else ", ".join(f'"r"(a_registers[(s * 128 + t) * 4 + {i}])' for i in range(4))
    )
    return f"""
extern "C" __global__ void __launch_bounds__(128, 1)
case{index}(const uint4* image, int chunks, unsigned long long a, unsigned long long b, const int* a_at,
      const int* b_at, const unsigned* a_registers, {kind}* out, int depth, int accumulate) {{
    extern __shared__ __align__(1024) uint4 memory[];
    const int t = threadIdx.x;
    for (int i = t; i < chunks; i += 128) memory[i] = image[i];
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
    __syncthreads();
    const unsigned long long start = (unsigned)__cvta_generic_to_shared(memory) >> 4;
    {kind} acc[{count}];
    for (int i = 0; i < {count}; ++i) acc[i] = out[t * {count} + i];
    asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
    for (int s = 0; s < depth; ++s)
        asm volatile("{{\\n.reg .pred p;\\nsetp.ne.b32 p, %{count + inputs + 1}, 0;\\n"
                     "{opcode} {{{registers}}}, {a}, %{count + inputs}, p{tail};\\n}}"
                     : {constraints}
                     : {given}, "l"(b + (b_at[s] >> 4) + start), "r"(accumulate || s > 0));
    asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
    asm volatile("wgmma.wait_group.sync.aligned 0;" ::: "memory");
    for (int i = 0; i < {count}; ++i) out[t * {count} + i] = acc[i];
}}
"""


@pytest.fixture(scope="module")
def module(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EmulatedModule]:
    path = tmp_path_factory.mktemp("wgmma") / "wgmma.cu"
    path.write_text("".join(kernel(index, case) for index, case in enumerate(CASES)))
    yield load(path, family="cuda", arch="sm_90a", checks=BOTH)


def draw(rng: np.random.Generator, kind: str, shape: tuple[int, ...]) -> Array:
    if kind in {"s8", "u8"}:
        info = np.iinfo(TYPES[kind])
        return rng.integers(info.min, info.max + 1, shape).astype(TYPES[kind])
    x = rng.standard_normal(shape).astype(np.float32)
    if kind == "tf32":
        return (x.view(np.uint32) & np.uint32(0xFFFFE000)).view(np.float32)
    return x.astype(TYPES[kind])


def a_registers(tile: Array) -> Array:
    """[k-step, thread, register]: rows 16w + g + 8 (r odd), k from 32 / 8 bytes' worth."""
    e = tile.itemsize
    per, k = 4 // e, 32 // e
    out = np.zeros((tile.shape[1] // k, 128, 4), np.uint32)
    for s in range(out.shape[0]):
        for t in range(128):
            w, g, q = t // 32, t % 32 // 4, t % 4
            for r in range(4):
                row = 16 * w + g + 8 * (r & 1)
                at = s * k + per * q + 4 * per * (r >> 1)
                out[s, t, r] = np.frombuffer(
                    np.ascontiguousarray(tile[row, at : at + per]).tobytes(), np.uint32
                )[0]
    return out


def to_fragments(tile: Array) -> Array:
    """[thread, value] of a 64 x n accumulator."""
    n = tile.shape[1]
    t, i = np.arange(128)[:, None], np.arange(n // 2)[None, :]
    row = 16 * (t // 32) + t % 32 // 4 + 8 * (i >> 1 & 1)
    col = 8 * (i >> 2) + 2 * (t % 4) + (i & 1)
    return np.ascontiguousarray(tile[row, col])


def aligned(data: bytes) -> Array:
    """A copy at a multiple of 16 bytes, as vector loads want."""
    room = np.zeros(len(data) + 16, np.uint8)
    start = -room.ctypes.data % 16
    view = room[start : start + len(data)]
    view[...] = np.frombuffer(data, np.uint8)
    return view


@pytest.mark.parametrize("index", range(len(CASES)), ids=[case.id for case in CASES])
def test_product(module: EmulatedModule, index: int) -> None:
    case = CASES[index]
    rng = np.random.default_rng(index)
    depth = case.depth * case.k
    a, b = draw(rng, case.a, (64, depth)), draw(rng, case.b, (case.n, depth))
    start = draw(rng, "s8", (64, case.n)).astype(TYPES[case.d])
    if case.saturate:
        start = np.where(start > 0, 2**31 - 1, -(2**31)).astype(np.int32)
    out = to_fragments(start)
    launch_case(module, index, a, b, out, case.accumulate)
    exact = case.sign_a * case.sign_b * (a.astype(np.float64) @ b.astype(np.float64).T)
    wanted = exact + (start.astype(np.float64) if case.accumulate else 0)
    if case.d == "s32":
        if case.saturate:
            wanted = np.clip(wanted, -(2**31), 2**31 - 1)
        np.testing.assert_array_equal(out, to_fragments(wanted.astype(np.int64).astype(np.int32)))
        return
    bound = np.abs(a.astype(np.float64)) @ np.abs(b.astype(np.float64)).T + np.abs(start)
    coarse = case.d == "f16" or case.a.startswith("e")
    error = np.abs(out.astype(np.float64) - to_fragments(wanted)) / to_fragments(bound)
    assert error.max() < (3e-3 if coarse else 1e-6)


def launch_case(
    module: EmulatedModule, index: int, a: Array, b: Array, out: Array, accumulate: bool
) -> None:
    """Runs a case on tiles a [64, k] and b [n, k]; `out` holds fragments."""
    case = CASES[index]
    depth = case.depth * case.k
    image_a = b"" if case.a_s is None else operand_image(a, case.a_s, case.a_mn)
    image = image_a + operand_image(b, case.b_s, case.b_mn)
    b_at = [len(image_a) + x for x in steps(case, case.n, case.b_s, case.b_mn)]
    a_at = steps(case, 64, case.a_s or 0, case.a_mn)
    fields_a = descriptor(64, depth, a.itemsize, case.a_s or 0, case.a_mn)
    fields_b = descriptor(case.n, depth, b.itemsize, case.b_s, case.b_mn)
    registers = a_registers(a) if case.a_s is None else np.zeros(4, np.uint32)
    module.launch(
        f"case{index}", (1, 1, 1), (128, 1, 1), len(image),
        [
            tensor("image", aligned(image), False), ValueArgument(np.int32(len(image) // 16).tobytes()),
            ValueArgument(np.uint64(fields_a).tobytes()), ValueArgument(np.uint64(fields_b).tobytes()),
            tensor("a_at", np.array(a_at, np.int32), False), tensor("b_at", np.array(b_at, np.int32), False),
            tensor("a_registers", registers, False), tensor("out", out),
            ValueArgument(np.int32(case.depth).tobytes()), ValueArgument(np.int32(accumulate).tobytes()),
        ],
    )  # fmt: skip


def test_every_width_is_known() -> None:
    for n in range(8, 257, 8):
        for form in (
            "k16.f32.f16.f16",
            "k16.f16.f16.f16",
            "k16.f32.bf16.bf16",
            "k8.f32.tf32.tf32",
            "k32.f16.e4m3.e5m2",
        ):
            assert find_rule(f"wgmma.mma_async.sync.aligned.m64n{n}{form}")[0]
        known = find_rule(f"wgmma.mma_async.sync.aligned.m64n{n}k32.s32.s8.u8")[0]
        assert (known is not None) == (n <= 24 or n % 16 == 0)
    assert find_rule("wgmma.mma_async.sync.aligned.m64n64k16.f32.f16.bf16")[0] is None
    assert len(CLUSTER_REGISTERS) == 14


# Two products in flight, the accumulators of one as separate variables.
OVERLAP = """
extern "C" __global__ void __launch_bounds__(128, 1)
overlap(const uint4* image, unsigned long long a, unsigned long long b, float* out) {
    __shared__ alignas(1024) uint4 memory[256];
    const int t = threadIdx.x;
    for (int i = t; i < 192; i += 128) memory[i] = image[i];
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
    __syncthreads();
    const unsigned long long start = (unsigned)__cvta_generic_to_shared(memory) >> 4;
    float s0, s1, s2, s3, o[4] = {1, 1, 1, 1};
    asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
    asm volatile("wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {%0, %1, %2, %3}, %4, %5, 0, 1, 1, 0, 0;"
                 : "+f"(s0), "+f"(s1), "+f"(s2), "+f"(s3) : "l"(a + start), "l"(b + start));
    asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
    for (int i = 0; i < 2; ++i) {
        asm volatile("wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {%0, %1, %2, %3}, %4, %5, 1, 1, 1, 0, 0;"
                     : "+f"(o[0]), "+f"(o[1]), "+f"(o[2]), "+f"(o[3]) : "l"(a + start), "l"(b + start));
        asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
    }
    asm volatile("wgmma.wait_group.sync.aligned 2;" ::: "memory");
    out[t * 8] = s0, out[t * 8 + 1] = s1, out[t * 8 + 2] = s2, out[t * 8 + 3] = s3;
    asm volatile("wgmma.wait_group.sync.aligned 0;" ::: "memory");
    for (int i = 0; i < 4; ++i) out[t * 8 + 4 + i] = o[i];
}
"""


def run_overlap(path: Path, text: str) -> tuple[Array, Array]:
    path.write_text(text)
    rng = np.random.default_rng(0)
    a, b = draw(rng, "f16", (64, 16)), draw(rng, "f16", (8, 16))
    image = operand_image(a, 0, False) + operand_image(b, 0, False)
    out = np.zeros((128, 8), np.float32)
    fields_b = descriptor(8, 16, 2, 0, False) + (2048 >> 4)
    launch(
        path,
        "overlap",
        [
            tensor("image", aligned(image), False),
            ValueArgument(np.uint64(descriptor(64, 16, 2, 0, False)).tobytes()),
            ValueArgument(np.uint64(fields_b).tobytes()),
            tensor("out", out),
        ],
    )
    return out, to_fragments(a.astype(np.float32) @ b.astype(np.float32).T)


@pytest.mark.parametrize("schedule", ["latest", "earliest"])
def test_products_overlap(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, schedule: str) -> None:
    monkeypatch.setenv("TILE2C_EMULATE_SCHEDULE", schedule)
    out, product = run_overlap(tmp_path / "overlap.cu", OVERLAP)
    np.testing.assert_allclose(out[:, :4], product, rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(out[:, 4:], 1 + 2 * product, rtol=1e-5, atol=1e-5)


WAIT = '    asm volatile("wgmma.wait_group.sync.aligned 0;" ::: "memory");\n'


@pytest.mark.parametrize(
    ("old", "new", "at", "words"),
    [
        ("wait_group.sync.aligned 2", "wait_group.sync.aligned 3", "out[t * 8] = s0", "reads at line .* an accumulator"),
        (WAIT, "", "out[t * 8 + 4 + i] = o[i]", "reads at line .* an accumulator"),
        (WAIT, f"    o[1] = 5;\n{WAIT}", "o[1] = 5", "writes at line .* an accumulator"),
        (WAIT, f"    memory[t] = memory[0];\n{WAIT}", "memory[t] = memory[0]", "what a wgmma of block .* reads"),
        ('    asm volatile("wgmma.fence.sync.aligned;" ::: "memory");\n', "", 'asm volatile("wgmma.mma', "no wgmma.fence"),
        ('    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");\n', "", 'asm volatile("wgmma.mma',
         "without fence.proxy.async"),
        ("    __syncthreads();\n", "", 'asm volatile("wgmma.mma', "the wgmma of .* reads"),
    ],
)  # fmt: skip
def test_mutants_of_overlap(tmp_path: Path, old: str, new: str, at: str, words: str) -> None:
    assert OVERLAP.count(old) == 1
    text = OVERLAP.replace(old, new)
    with pytest.raises(RaceError, match=words) as caught:
        run_overlap(tmp_path / "overlap.cu", text)
    assert caught.value.line == text[: text.index(at)].count("\n") + 1


def test_threads_disagree(tmp_path: Path) -> None:
    text = OVERLAP.replace(
        '"l"(a + start), "l"(b + start));\n    asm',
        '"l"(a + start + (t == 77)), "l"(b + start));\n    asm',
    )
    assert text != OVERLAP
    with pytest.raises(
        KernelError, match="the threads of one warpgroup issue different wgmmas: thread 77"
    ):
        run_overlap(tmp_path / "overlap.cu", text)
    text = OVERLAP.replace("    float s0", "    if (t >= 96) return;\n    float s0")
    with pytest.raises(KernelError, match=r"wgmma.wait_group for the other warps"):
        run_overlap(tmp_path / "overlap.cu", text)


@pytest.mark.parametrize(("data", "wanted"), [("normal", 1.3e-3), ("uniform", 6.6e-2)])
def test_float8_sums_lose_bits(module: EmulatedModule, data: str, wanted: float) -> None:
    """The relative error of a sum of 4096 products that is never promoted, as measured on a device."""
    index = next(
        i for i, case in enumerate(CASES) if (case.a, case.b, case.n) == ("e4m3", "e4m3", 64)
    )
    rng = np.random.default_rng(0)
    out = to_fragments(np.zeros((64, 64), np.float32))
    exact = np.zeros((64, 64))
    for _ in range(64):
        a, b = (
            (rng.standard_normal((64, 64)) if data == "normal" else rng.random((64, 64))).astype(
                ml_dtypes.float8_e4m3fn
            )
            for _ in range(2)
        )
        exact += a.astype(np.float64) @ b.astype(np.float64).T
        launch_case(module, index, a, b, out, True)
    error = np.linalg.norm(out - to_fragments(exact)) / np.linalg.norm(exact)
    assert wanted / 1.3 < error < wanted * 1.3
