"""Bulk copies against NumPy: boxes of every rank and swizzle, tails, reductions, groups, rules."""

# ruff: noqa: E501  (texts of kernels)
from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from tile2c.runtime.emulate import Argument
from tile2c.runtime.errors import AccessError, KernelError, RaceError

sys.path.insert(0, str(Path(__file__).parent))
from hopper_harness import BOTH, NONE, launch, scalar, tensor, tensor_map

Array = np.ndarray[Any, Any]
PRELUDE = """
struct alignas(64) TensorMap { unsigned long long opaque[16]; };
static __device__ __forceinline__ unsigned shared_addr(const void* p) { return (unsigned)__cvta_generic_to_shared(p); }
static __device__ __forceinline__ void barrier_init(unsigned long long* bar, unsigned count) {
    asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" :: "r"(shared_addr(bar)), "r"(count) : "memory");
}
static __device__ __forceinline__ void barrier_expect(unsigned long long* bar, unsigned bytes) {
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" :: "r"(shared_addr(bar)), "r"(bytes) : "memory");
}
static __device__ __forceinline__ void barrier_wait(unsigned long long* bar, unsigned parity) {
    unsigned done = 0;
    while (!done)
        asm volatile("{ .reg .pred p; mbarrier.try_wait.parity.shared::cta.b64 p, [%1], %2; selp.u32 %0, 1, 0, p; }"
                     : "=r"(done) : "r"(shared_addr(bar)), "r"(parity) : "memory");
}
"""


def box_kernel(rank: int) -> str:
    """Loads one box, copies shared memory out as it lies."""
    at = ", ".join(f"%{3 + i}" for i in range(rank))
    given = ", ".join(f'"r"(x[{i}])' for i in range(rank))
    return f"""{PRELUDE}
extern "C" __global__ void boxes(const __grid_constant__ TensorMap map, const int* at, uint4* out, int bytes) {{
    __shared__ alignas(1024) uint4 tile[2048];
    __shared__ unsigned long long bar;
    if (threadIdx.x == 0) {{
        barrier_init(&bar, 1);
        asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
        int x[5];
        for (int i = 0; i < {rank}; ++i) x[i] = at[i];
        barrier_expect(&bar, bytes);
        asm volatile("cp.async.bulk.tensor.{rank}d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1, {{{at}}}], [%2];"
                     :: "r"(shared_addr(tile)), "l"(&map), "r"(shared_addr(&bar)), {given} : "memory");
    }}
    __syncthreads();
    barrier_wait(&bar, 0);
    for (int i = threadIdx.x; i < bytes / 16; i += blockDim.x) out[i] = tile[i];
}}
"""


def cut(array: Array, at: tuple[int, ...], box: tuple[int, ...], step: tuple[int, ...]) -> Array:
    """The box, zeros outside; dimensions innermost first, the result as the array's."""
    shape = [-(-b // s) if i else b for i, (b, s) in enumerate(zip(box, step, strict=True))]
    out = np.zeros(shape[::-1], array.dtype)
    for index in np.ndindex(*out.shape):
        inner_first = index[::-1]
        spot = [
            a + i * (s if d else 1)
            for d, (a, i, s) in enumerate(zip(at, inner_first, step, strict=True))
        ]
        if all(0 <= p < n for p, n in zip(spot, array.shape[::-1], strict=True)):
            out[index] = array[tuple(spot[::-1])]
    return out


def swizzled(box: Array, swizzle: str) -> bytes:
    data = np.frombuffer(np.ascontiguousarray(box).tobytes(), np.uint8)
    at = np.arange(data.size)
    mask = {"none": 0, "32B": 1, "64B": 3, "128B": 7}[swizzle]
    out = np.zeros_like(data)
    out[at ^ (((at >> 7) & mask) << 4)] = data
    return out.tobytes()


BOXES: list[
    tuple[str, tuple[int, ...], tuple[int, ...], tuple[int, ...], str, tuple[int, ...] | None]
] = [
    ("float32", (100,), (32,), (80,), "none", None),
    ("float16", (37, 48), (16, 8), (40, -3), "none", None),
    ("float16", (64, 64), (64, 32), (0, 16), "128B", None),
    ("float16", (50, 72), (64, 32), (24, 30), "128B", None),
    ("float16", (50, 72), (32, 16), (-8, 40), "64B", None),
    ("float16", (50, 72), (16, 32), (64, 0), "32B", None),
    ("float32", (20, 36), (32, 16), (8, 8), "128B", None),
    ("uint8", (40, 160), (128, 16), (64, 32), "128B", None),
    ("float16", (5, 9, 40), (32, 4, 3), (16, 7, -1), "64B", None),
    ("float32", (3, 4, 5, 8), (8, 3, 2, 2), (0, 3, 3, 1), "none", None),
    ("float32", (2, 3, 4, 5, 8), (4, 2, 2, 2, 2), (4, 4, 2, 1, 1), "none", None),
    ("float16", (30, 64), (64, 9), (0, 3), "128B", (1, 2)),
]


@pytest.mark.parametrize("checks", [NONE, BOTH], ids=["plain", "checked"])
def test_boxes(tmp_path: Path, checks: frozenset[str]) -> None:
    rng = np.random.default_rng(0)
    for kind, shape, box, at, swizzle, step in BOXES:
        path = tmp_path / f"box{len(shape)}.cu"
        path.write_text(box_kernel(len(shape)))
        array = rng.integers(0, 200, shape).astype(kind)
        wanted = swizzled(cut(array, at, box, step or (1,) * len(shape)), swizzle)
        out = np.zeros(len(wanted), np.uint8)
        arguments: list[Argument] = [
            tensor_map("X", array, box, swizzle=swizzle, element_strides=step),
            tensor("at", np.array(at, np.int32), False),
            tensor("out", out),
            scalar(len(wanted)),
        ]
        launch(path, "boxes", arguments, block=(64, 1, 1), checks=checks)
        assert out.tobytes() == wanted, (kind, shape, box, at, swizzle)


STORE = f"""{PRELUDE}
extern "C" __global__ void store(const __grid_constant__ TensorMap map, const __grid_constant__ TensorMap sums,
                                 const uint4* in, int bytes, int x, int y) {{
    __shared__ alignas(1024) uint4 tile[1024];
    for (int i = threadIdx.x; i < bytes / 16; i += blockDim.x) tile[i] = in[i];
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
    __syncthreads();
    if (threadIdx.x == 0) {{
        asm volatile("cp.async.bulk.tensor.2d.global.shared::cta.bulk_group [%0, {{%1, %2}}], [%3];"
                     :: "l"(&map), "r"(x), "r"(y), "r"(shared_addr(tile)) : "memory");
        asm volatile("cp.reduce.async.bulk.tensor.2d.global.shared::cta.add.tile.bulk_group [%0, {{%1, %2}}], [%3];"
                     :: "l"(&sums), "r"(x), "r"(y), "r"(shared_addr(tile)) : "memory");
        asm volatile("cp.async.bulk.commit_group;" ::: "memory");
        asm volatile("cp.async.bulk.wait_group 0;" ::: "memory");
    }}
}}
"""


@pytest.mark.parametrize("checks", [frozenset({"memory"}), BOTH])
@pytest.mark.parametrize("schedule", ["latest", "earliest"])
@pytest.mark.parametrize("kind", ["float16", "float32", "bfloat16"])
def test_store_and_sum(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    kind: str,
    schedule: str,
    checks: frozenset[str],
) -> None:
    monkeypatch.setenv("TILE2C_EMULATE_SCHEDULE", schedule)
    path = tmp_path / "store.cu"
    path.write_text(STORE)
    rng = np.random.default_rng(0)
    dtype = np.dtype(getattr(ml_dtypes, kind, None) or kind)
    width = 128 // dtype.itemsize
    box = rng.integers(-9, 9, (16, width)).astype(dtype)
    out, sums = np.ones((20, 80), dtype), np.ones((20, 80), dtype)
    image = np.zeros(2048 + 16, np.uint8)
    image = image[-image.ctypes.data % 16 :][:2048]
    image[...] = np.frombuffer(swizzled(box, "128B"), np.uint8)
    x, y = 80 - width + 8, 10
    launch(
        path,
        "store",
        [
            tensor_map("out", out, (width, 16), writable=True),
            tensor_map("sums", sums, (width, 16), writable=True),
            tensor("in", image, False),
            scalar(2048),
            scalar(x),
            scalar(y),
        ],
        block=(64, 1, 1),
        checks=checks,
    )
    wanted = np.ones((20, 80), dtype)
    wanted[y:, x:] = box[:10, : width - 8]
    np.testing.assert_array_equal(out, wanted)
    total = np.ones((20, 80), dtype)
    total[y:, x:] = 1 + box[:10, : width - 8].astype(np.float32)
    np.testing.assert_array_equal(sums, total)


RUNS = f"""{PRELUDE}
// in -> shared -> out and, added, sums; two groups, the first waited for alone.
extern "C" __global__ void runs(const float* in, float* out, float* sums, int n) {{
    __shared__ alignas(128) float tile[2][256];
    __shared__ unsigned long long bar;
    if (threadIdx.x == 0) {{
        barrier_init(&bar, 1);
        asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
        for (int i = 0; i < 2; ++i)
            asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];"
                         :: "r"(shared_addr(tile[i])), "l"(in + i * 256), "r"(1024), "r"(shared_addr(&bar)) : "memory");
        barrier_expect(&bar, 2048);  // after the copies that it counts
        barrier_wait(&bar, 0);
        asm volatile("cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], %2;"
                     :: "l"(out), "r"(shared_addr(tile[0])), "r"(1024) : "memory");
        asm volatile("cp.async.bulk.commit_group;" ::: "memory");
        asm volatile("cp.reduce.async.bulk.global.shared::cta.bulk_group.add.f32 [%0], [%1], %2;"
                     :: "l"(sums), "r"(shared_addr(tile[1])), "r"(1024) : "memory");
        asm volatile("cp.async.bulk.commit_group;" ::: "memory");
        asm volatile("cp.async.bulk.wait_group.read 1;" ::: "memory");
        tile[0][0] = 5;  // the first is read
        asm volatile("cp.async.bulk.wait_group.read 0;" ::: "memory");
        tile[1][0] = 5;
    }}
}}
"""


def run_runs(tmp_path: Path, old: str = "", new: str = "") -> tuple[Array, Array, Array]:
    assert not old or RUNS.count(old) == 1
    path = tmp_path / "runs.cu"
    path.write_text(RUNS.replace(old, new) if old else RUNS)
    rng = np.random.default_rng(0)
    room = np.zeros(3 * 512 + 4, np.float32)
    room = room[(-room.ctypes.data % 16) // 4 :]
    given, out, sums = room[:512], room[512:1024], room[1024:1536]
    given[...] = rng.standard_normal(512)
    sums[...] = 2
    launch(
        path,
        "runs",
        [tensor("in", given, False), tensor("out", out), tensor("sums", sums), scalar(0)],
        block=(32, 1, 1),
    )
    return given, out, sums


def test_runs(tmp_path: Path) -> None:
    given, out, sums = run_runs(tmp_path)
    np.testing.assert_array_equal(out[:256], given[:256])
    np.testing.assert_array_equal(sums[:256], 2 + given[256:])
    assert not out[256:].any()


def line_of(text: str, part: str) -> int:
    return text[: text.index(part)].count("\n") + 1


@pytest.mark.parametrize(
    ("old", "new", "error", "at", "words"),
    [
        ("wait_group.read 1", "wait_group.read 2", RaceError, "tile[0][0] = 5", "what a bulk store of"),
        ("        tile[0][0] = 5;  // the first is read\n", "        tile[1][1] = 5;\n", RaceError,
         "tile[1][1] = 5", "what a bulk store of"),
        ('        asm volatile("cp.async.bulk.wait_group.read 0;" ::: "memory");\n        tile[1][0] = 5;\n', "", RaceError,
         'asm volatile("cp.reduce', "ends while its bulk store"),
        ("        barrier_wait(&bar, 0);\n", "", RaceError, 'asm volatile("cp.async.bulk.global', "what a bulk copy of"),
        ("barrier_expect(&bar, 2048);", "barrier_expect(&bar, 2064);", KernelError, "asm volatile(\"{ .reg .pred p; mbar",
         "lacks 0 of 1 arrivals and 16 announced bytes"),
        ("barrier_expect(&bar, 2048);", "barrier_expect(&bar, 1024);", RaceError, 'asm volatile("cp.reduce',
         "what a bulk copy of"),
        ("tile[2][256]", "tile[2][257]", AccessError, 'asm volatile("cp.async.bulk.shared', "multiples of 16"),
        ('"r"(1024), "r"(shared_addr(&bar))', '"r"(1032), "r"(shared_addr(&bar))', AccessError,
         'asm volatile("cp.async.bulk.shared', "1032 bytes"),
        ('"l"(in + i * 256)', '"l"(in + i * 8192)', AccessError, 'asm volatile("cp.async.bulk.shared', "outside every tensor"),
        ('"l"(out)', '"l"(in)', AccessError, 'asm volatile("cp.async.bulk.global', "read-only"),
        ("barrier_init(&bar, 1);", "barrier_init(&bar, 1);\n        barrier_init(&bar, 1);", KernelError,
         'asm volatile("mbarrier.init', "not invalidated since"),
        ("barrier_init(&bar, 1);", "", KernelError, 'asm volatile("cp.async.bulk.shared', "no mbarrier.init"),
        ("barrier_init(&bar, 1);", "barrier_init(&bar, 1);\n        bar = 0;", KernelError,
         'asm volatile("cp.async.bulk.shared', "written over"),
        ("barrier_init(&bar, 1);", "barrier_init(&bar, 0);", KernelError, 'asm volatile("mbarrier.init', "1 to 1048575"),
    ],
)  # fmt: skip
def test_mutants_of_runs(
    tmp_path: Path, old: str, new: str, error: type[KernelError], at: str, words: str
) -> None:
    with pytest.raises(error) as caught:
        run_runs(tmp_path, old, new)
    print(caught.value)
    assert type(caught.value) is error
    assert words in str(caught.value)
    assert caught.value.line == line_of((tmp_path / "runs.cu").read_text(), at)


def test_box_rules(tmp_path: Path) -> None:
    path = tmp_path / "box.cu"
    text = box_kernel(2)
    array = np.zeros((64, 64), np.float16)

    def go(
        message: str, error: type[KernelError] = AccessError, text: str = text, **changes: Any
    ) -> None:
        path.write_text(text)
        given = {"box": (64, 8), "swizzle": "128B", **changes}
        with pytest.raises(error, match=message):
            launch(
                path,
                "boxes",
                [
                    tensor_map("X", array, given["box"], swizzle=given["swizzle"]),
                    tensor("at", np.zeros(5, np.int32), False),
                    tensor("out", np.zeros(4096, np.uint8)),
                    scalar(1024),
                ],
            )

    go("128 bytes, more than the swizzle's 64", swizzle="64B")
    go("box has 8 bytes, not a multiple of 16", box=(4, 8), swizzle="none")
    go("its box is 257 wide", box=(64, 257))
    go("not a multiple of 1024", text=text.replace("alignas(1024) uint4", "alignas(128) uint4"))
    go(
        "not a multiple of 128",
        text=text.replace("alignas(1024) uint4", "alignas(16) uint4"),
        swizzle="none",
    )
    go("its map has 2 dimensions", KernelError, text=box_kernel(3))
    go("no tensor map", KernelError, text=text.replace('"l"(&map)', '"l"((const char*)&map + 64)'))
    go("not a multiple of 64", text=text.replace('"l"(&map)', '"l"((const char*)&map + 8)'))


def test_map_of_another_tensor_is_bounded(tmp_path: Path) -> None:
    """A map wider than the tensor that it is said to describe."""
    path = tmp_path / "box.cu"
    path.write_text(box_kernel(2))
    array = np.zeros((64, 64), np.float16)
    good = tensor_map("X", array, (64, 32))
    assert good.tensor is not None
    short = tensor("X", array[:40], False)
    with pytest.raises(AccessError, match="outside every tensor"):
        launch(
            path,
            "boxes",
            [
                type(good)(good.data, short),
                tensor("at", np.array([0, 20], np.int32), False),
                tensor("out", np.zeros(4096, np.uint8)),
                scalar(4096),
            ],
        )
