"""The first kernels beside their rivals on one device: right, then fast.

    python bench/first_kernels.py OUT [--tilelang]

OUT is an output folder with add, row_sum, softmax, gemm and gemm_bias_relu for cuda:sm_80 (and
cuda:sm_90a, where it holds that too): see `make_outputs` for the commands. Prints one table a row of
ratios; rivals are torch's cuBLAS, a device copy, and TileLang's own sm_80 text of the same GEMM.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
from pathlib import Path

import torch
from measure import burst, flush, relative_error, steady

COMMANDS = """
tile2c samples/add.py samples/row_sum.py samples/softmax.py samples/gemm.py samples/gemm_bias_relu.py
    -o OUT --target cuda:sm_80,cuda:sm_90a -D softmax.N=8192
"""


def check(kernels: object, label: str) -> None:
    """Every kernel against torch, at sizes with tails, odd ones and large ones."""
    torch.manual_seed(0)

    def say(name: str, size: object, error: float, bound: float) -> None:
        verdict = "ok" if error <= bound else "WRONG"
        print(f"{label:12} {name:16} {size!s:22} error {error:.2e} {verdict}")
        if error > bound:
            check.failed += 1  # type: ignore[attr-defined]

    for n in (1, 1000, 1003, 1 << 20, (1 << 20) + 3) if "add" in kernels else ():
        a, b = torch.randn(n, device="cuda"), torch.randn(n, device="cuda")
        say("add", n, relative_error(kernels["add"](a, b), a + b), 1e-7)
    shapes = ((1, 1), (5, 7), (100, 777), (4096, 4096), (1000, 10001))
    for m, n in shapes if "row_sum" in kernels else ():
        x = torch.randn(m, n, device="cuda")
        say("row_sum", (m, n), relative_error(kernels["row_sum"](x), x.double().sum(1)), 1e-5)
    for m in (1, 77, 16384) if "softmax" in kernels else ():
        x = torch.randn(m, 8192, device="cuda", dtype=torch.float16)
        say("softmax", m, relative_error(kernels["softmax"](x), torch.softmax(x.float(), 1)), 1e-3)
    sizes = ((1, 1, 1), (77, 33, 65), (128, 128, 32), (129, 136, 40), (1000, 1024, 776), (4095, 4097, 999),
             (4096, 4096, 4096), (8, 8, 0))  # fmt: skip
    for m, n, k in sizes:
        a = torch.randn(m, k, device="cuda", dtype=torch.float16)
        b = torch.randn(k, n, device="cuda", dtype=torch.float16)
        bias = torch.randn(n, device="cuda", dtype=torch.float16)
        exact = a.double() @ b.double()
        if k:
            say("gemm", (m, n, k), relative_error(kernels["gemm"](a, b), exact), 1e-3)
        whole = torch.relu(exact + bias.double())
        if float(whole.norm()) > 0:
            found = kernels["gemm_bias_relu"](a, b, bias)
            say("gemm_bias_relu", (m, n, k), relative_error(found, whole), 1e-3)


def tilelang_gemm(m: int, n: int, k: int, bm: int, bn: int, bk: int, stages: int, threads: int):
    """TileLang's sm_80 text of the same GEMM, compiled for this device, as a launch function."""
    import cupy
    import tilelang
    import tilelang.language as T

    @T.prim_func
    def main(
        A: T.Tensor((m, k), "float16"),
        B: T.Tensor((k, n), "float16"),
        C: T.Tensor((m, n), "float16"),
    ):
        with T.Kernel(T.ceildiv(n, bn), T.ceildiv(m, bm), threads=threads) as (bx, by):
            A_shared = T.alloc_shared((bm, bk), "float16")
            B_shared = T.alloc_shared((bk, bn), "float16")
            C_local = T.alloc_fragment((bm, bn), "float32")
            T.use_swizzle(10)
            T.clear(C_local)
            for ko in T.Pipelined(T.ceildiv(k, bk), num_stages=stages):
                T.copy(A[by * bm, ko * bk], A_shared)
                T.copy(B[ko * bk, bx * bn], B_shared)
                T.gemm(A_shared, B_shared, C_local)
            T.copy(C_local, C[by * bm, bx * bn])

    from tilelang import tvm

    target = tvm.target.Target({"kind": "cuda", "arch": "sm_80"})
    with target:
        source = tilelang.lower(main, target=target).kernel_source
    root = Path(tilelang.__file__).parent
    folder = Path(tempfile.mkdtemp())
    (folder / "tl.cu").write_text(source)
    includes = [
        f"-I{path}" for path in (root / "src", root / "3rdparty/cutlass/include") if path.exists()
    ]
    command = [
        "nvcc",
        "-gencode",
        "arch=compute_80,code=sm_90",
        "-O3",
        "-std=c++17",
        "-w",
        *includes,
    ]
    subprocess.run(
        [*command, "-cubin", "-o", str(folder / "tl.cubin"), str(folder / "tl.cu")], check=True
    )
    module = cupy.RawModule(path=str(folder / "tl.cubin"))
    import re

    entry = re.search(r'extern "C" __global__ void[^(]*\s(\w+)\(', source)
    names = (
        re.findall(r"__restrict__ (\w+)", source[source.index(entry[1]) :].split(")")[0])
        if entry
        else []
    )
    found = re.search(r"__launch_bounds__\([^)]*\)\s*(\w+)\(([^)]*)\)", source)
    if found:
        name, params = found[1], found[2]
        names = [p.split()[-1].strip("*") for p in params.split(",")]
    function = module.get_function(name)
    shared = stages * (bm * bk + bk * bn) * 2
    function.max_dynamic_shared_size_bytes = shared

    def bind(a, b, c):
        by_name = {"A": a, "B": b, "C": c}
        pointers = tuple(by_name[p].data_ptr() for p in names)
        grid = (-(-n // bn), -(-m // bm))

        def launch():
            stream = cupy.cuda.ExternalStream(torch.cuda.current_stream().cuda_stream)
            function(grid, (threads,), pointers, shared_mem=shared, stream=stream)

        return launch

    return bind


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("out")
    parser.add_argument("more", nargs="*", help="folders with the same GEMM in other tile sizes")
    parser.add_argument("--tilelang", action="store_true")
    options = parser.parse_args()
    import tile2c

    check.failed = 0  # type: ignore[attr-defined]
    sets = {}
    for target in ("cuda:sm_80", "cuda:sm_90a"):
        try:
            sets[target] = tile2c.load(options.out, target=target)
        except Exception as problem:  # a target that OUT does not hold
            print(f"{target}: {problem}")
    for target, kernels in sets.items():
        if "add" in kernels:
            check(kernels, target)

    m = n = k = 4096
    a = torch.randn(m, k, device="cuda", dtype=torch.float16)
    b = torch.randn(k, n, device="cuda", dtype=torch.float16)
    outs: list[torch.Tensor] = []

    def output() -> torch.Tensor:
        outs.append(torch.empty(m, n, device="cuda", dtype=torch.float16))
        return outs[-1]

    c = output()
    contenders = {"cuBLAS": lambda: torch.mm(a, b, out=c)}
    for target, kernels in sets.items():
        if "gemm" in kernels:
            kernel, out = kernels["gemm"], output()
            contenders[target] = lambda kernel=kernel, out=out: kernel(a, b, out)
    for folder in options.more:
        found = tile2c.load(folder)
        if "gemm_bias_relu" in found:
            check(found, Path(folder).name)
        kernel, out = found["gemm"], output()
        contenders[Path(folder).name] = lambda kernel=kernel, out=out: kernel(a, b, out)
    if options.tilelang:
        for config in ((128, 128, 32, 3, 128), (128, 256, 32, 3, 256)):
            try:
                out = output()
                bind = tilelang_gemm(m, n, k, *config)
                contenders[f"TileLang sm_80 {config}"] = bind(a, b, out)
            except Exception as problem:
                print(f"TileLang {config}: {type(problem).__name__} {problem}")
    exact = a.double() @ b.double()
    for launch in contenders.values():
        launch()
    torch.cuda.synchronize()
    for name, out in zip(contenders, outs, strict=False):
        print(f"{name}: error {relative_error(out, exact):.2e}")
    flops = 2 * m * n * k
    for title, found in (("burst", burst(contenders)), ("steady", steady(contenders))):
        for name, ms in found.items():
            ratio = found["cuBLAS"] / ms
            print(
                f"GEMM fp16 4096^3 {title:6} {name:32} {ms:.4f} ms "
                f"{flops / ms / 1e9:6.0f} TFLOP/s {ratio:.3f} of cuBLAS"
            )

    x = torch.randn(16384, 8192, device="cuda", dtype=torch.float16)
    y, z = torch.empty_like(x), torch.empty_like(x)
    memory = {"copy": lambda: z.copy_(x)}
    for target, kernels in sets.items():
        if "softmax" in kernels:
            kernel = kernels["softmax"]
            memory[f"softmax {target}"] = lambda kernel=kernel: kernel(x, y)
    found = flush(memory)
    for name, ms in found.items():
        rate = 2 * x.numel() * 2 / ms / 1e6
        print(
            f"16384x8192 fp16 {name:24} {ms:.4f} ms {rate:6.0f} GB/s {found['copy'] / ms:.3f} of copy"
        )
    print("failed checks:", check.failed)  # type: ignore[attr-defined]
    return 1 if check.failed else 0  # type: ignore[attr-defined]


if __name__ == "__main__":
    sys.exit(main())
