# ruff: noqa: E501 - a probe is a line
"""For every name of the tile language the shortest program that uses it.

What becomes of it on each kind of target is the table of docs/language-support.md.
"""

from __future__ import annotations

from pathlib import Path
from textwrap import indent

from tile2c.transpile.diagnostics import Diagnostics, Severity
from tile2c.transpile.pipeline import Request, generate
from tile2c.transpile.stage import parse_defines, vocabulary

TARGETS = ("cuda:sm_80", "cuda:sm_90a", "hip:gfx942", "ascendc:ascend910b", "bang:mtp_372")
HEAD = "import tilelang\nimport tilelang.language as T\n\n"
FRAME = """\
@T.prim_func
def main(
    A: T.Tensor((64, 64), "float16"),
    O: T.Tensor((64, 64), "float32"),
    V: T.Tensor((64,), "float32"),
    I: T.Tensor((64,), "int32"),
):
    with T.Kernel(1, threads=128) as bx:
"""

_PAIRS = (
    "pow fmod hypot copysign nextafter atan2 max min ieee_add ieee_sub ieee_mul ieee_fdiv".split()
)
_WHOLE = "clz popcount __ffs".split()
_LOOP = "for i in T.Parallel(64):\n    "
_TX = "tx = T.get_thread_binding()\n"
_GEMM = """\
s = T.alloc_shared((64, 64), "float16")
f = T.alloc_fragment((64, 64), "float32")
T.copy(A, s)
T.clear(f)
{call}
T.copy(f, O)
"""
_REDUCE = """\
x = T.alloc_fragment((64, 64), "{dtype}")
y = T.alloc_fragment((64,), "{dtype}")
T.fill(x, 1)
{call}
T.copy(y, {out})
"""
_SCAN = """\
s = T.alloc_shared((64, 64), "float32")
T.copy(O, s)
T.{name}(s, dim=1)
T.copy(s, O)
"""
_BARRIER = "bar = T.alloc_barrier(128)\n"
_STORE = """\
s = T.alloc_shared((64, 64), "float32")
T.copy(O, s)
T.tma_copy(s, O)
T.tma_store_arrive()
T.tma_store_wait(0)
"""
_GATHER = f"""\
{_TX}{_BARRIER}s = T.alloc_shared((64, 64), "float16")
for r in T.serial(4):
    row = r * 16 + tx // 8
    T.ptx_cp_async(T.access_ptr(s[row, tx % 8 * 8], "w", 8), T.access_ptr(A[row, tx % 8 * 8], "r", 8), 8)
T.cp_async_barrier_noinc(bar)
T.mbarrier_wait_parity(bar, 0)
T.copy(s, O)
"""
# Names that need more than their category's program.
BODIES: dict[str, str] = {
    **{name: f"{_LOOP}V[i] = T.{name}(V[i], 2.0)" for name in _PAIRS},
    **{name: f"{_LOOP}I[i] = T.{name}(I[i])" for name in _WHOLE},
    "ldexp": f"{_LOOP}V[i] = T.ldexp(V[i], 2)",
    "clamp": f"{_LOOP}V[i] = T.clamp(V[i], -1.0, 1.0)",
    "if_then_else": f"{_LOOP}V[i] = T.if_then_else(i > 3, V[i], 0.0)",
    "Select": f"{_LOOP}V[i] = T.Select(i > 3, V[i], 0.0)",
    "isnan": f"{_LOOP}V[i] = T.if_then_else(T.isnan(V[i]), 0.0, V[i])",
    "isinf": f"{_LOOP}V[i] = T.if_then_else(T.isinf(V[i]), 0.0, V[i])",
    "isfinite": f"{_LOOP}V[i] = T.if_then_else(T.isfinite(V[i]), V[i], 0.0)",
    "ieee_fmaf": f"{_LOOP}V[i] = T.ieee_fmaf(V[i], 2.0, 1.0)",
    "truncdiv": f"{_LOOP}I[i] = T.truncdiv(I[i], 3)",
    "truncmod": f"{_LOOP}I[i] = T.truncmod(I[i], 3)",
    "align_up": f"{_LOOP}I[i] = T.align_up(I[i], 8)",
    "dp4a": f'x = T.alloc_local((4,), "int8")\ny = T.alloc_local((1,), "int32")\n{_TX}T.dp4a(x, x, y)\nI[tx] = y[0]',
    **{name: f"{_LOOP}I[i] = T.{name}(I[i], 3)" for name in vocabulary.OPERATORS},
    "And": f"{_LOOP}V[i] = T.if_then_else(T.And(i > 3, i < 9), 1.0, 0.0)",
    "Or": f"{_LOOP}V[i] = T.if_then_else(T.Or(i > 3, i < 9), 1.0, 0.0)",
    "Not": f"{_LOOP}V[i] = T.if_then_else(T.Not(i > 3), 1.0, 0.0)",
    "bitwise_not": f"{_LOOP}I[i] = T.bitwise_not(I[i])",
    "infinity": f'{_LOOP}V[i] = T.infinity("float32")',
    "max_value": f'{_LOOP}V[i] = T.max_value("float32")',
    "min_value": f'{_LOOP}V[i] = T.min_value("float32")',
    **{
        f"warp_reduce_{kind}": f"{_TX}x = T.warp_reduce_{kind}(V[tx % 64])\nif tx < 64:\n    V[tx] = x"
        for kind in ("sum", "max", "min")
    },
    **{
        f"warp_reduce_{kind}": f"{_TX}x = T.warp_reduce_{kind}(I[tx % 64])\nif tx < 64:\n    I[tx] = x"
        for kind in ("bitand", "bitor")
    },
    **{
        name: f's = T.alloc_shared((64, 64), "float16")\nT.copy(A, s)\n{_TX}'
        f"if tx < 64:\n    I[tx] = T.if_then_else(T.{name}(s[tx, :]), 1, 0)"
        for name in ("any_of", "all_of")
    },
    **{
        name: f"{_TX}x = T.{name}(V[tx % 64], 1)\nif tx < 64:\n    V[tx] = x"
        for name in ("shfl_sync", "shfl_xor", "shfl_down", "shfl_up")
    },
    **{
        name: f"{_TX}x = T.{name}(0xFFFFFFFF, V[tx % 64], 1, 32, 32)\nif tx < 64:\n    V[tx] = x"
        for name in ("tvm_warp_shuffle", "tvm_warp_shuffle_up", "tvm_warp_shuffle_down")
    },
    **{
        name: f'{_TX}x = T.cast(T.{name}(I[tx % 64] > 0), "int32")\nif tx < 64:\n    I[tx] = x'
        for name in (
            "ballot",
            "any_sync",
            "all_sync",
            "syncthreads_count",
            "syncthreads_and",
            "syncthreads_or",
        )
    },
    "ballot_sync": f'{_TX}x = T.cast(T.ballot_sync(0xFFFFFFFF, I[tx % 64] > 0), "int32")\nif tx < 64:\n    I[tx] = x',
    "activemask": f'{_TX}x = T.cast(T.activemask(), "int32")\nif tx < 64:\n    I[tx] = x',
    **{
        name: f'{_TX}x = T.cast(T.{name}(I[tx % 64]), "int32")\nif tx < 64:\n    I[tx] = x'
        for name in ("match_any_sync", "match_all_sync")
    },
    **{
        name: f"{_TX}x = T.{name}()\nif tx < 64:\n    I[tx] = x"
        for name in ("get_lane_idx", "get_warp_idx", "get_warp_idx_sync", "get_warp_group_idx")
    },
    "shuffle_elect": "if T.shuffle_elect(128):\n    V[0] = 1",
    **{
        f"ldg{bits}": f"{_TX}if tx < 64:\n    V[tx] = T.ldg{bits}(V[tx])"
        for bits in (32, 64, 128, 256)
    },
    "__ldg": f"{_TX}if tx < 64:\n    V[tx] = T.__ldg(V[tx])",
    "atomic_load": f"{_TX}if tx < 64:\n    I[tx] = T.atomic_load(I[0])",
    "atomic_store": f"{_TX}if tx == 0:\n    T.atomic_store(I[0], 1)",
    **{f"atomic_{op}": f"{_LOOP}T.atomic_{op}(I[i], i)" for op in ("add", "max", "min", "or")},
    "atomic_addx2": f"{_TX}if tx < 16:\n    T.atomic_addx2(V[tx * 2], V[32 + tx * 2])",
    "atomic_addx4": f"{_TX}if tx < 8:\n    T.atomic_addx4(V[tx * 4], V[32 + tx * 4])",
    "get_block_extent": "I[0] = T.get_block_extent(0)",
    "get_thread_extent": "I[0] = T.get_thread_extent(0)",
    "get_thread_extents": "I[0] = T.get_thread_extents()[0]",
    "get_block_binding": "I[0] = T.get_block_binding(0)",
    "get_block_bindings": "I[0] = T.get_block_bindings()[0]",
    "get_thread_binding": f"{_TX}if tx < 64:\n    V[tx] = 0",
    "get_thread_bindings": "tx, ty, tz = T.get_thread_bindings()\nif tx < 64:\n    V[tx] = 0",
    "thread_binding": 'tx = T.thread_binding(0, 128, "threadIdx.x")\nif tx < 64:\n    V[tx] = 0',
    "call_extern": 'V[0] = T.call_extern("float32", "foo", V[1])',
    "call_pure_extern": 'V[0] = T.call_pure_extern("float32", "foo", V[1])',
    "Broadcast": "V[0:4] = T.Broadcast(1.0, 4)",
    "Ramp": "I[0:4] = T.Ramp(0, 1, 4)",
    "address_of": 'T.call_extern("handle", "foo", T.address_of(V[0]))',
    "access_ptr": 'T.call_extern("handle", "foo", T.access_ptr(V[0], "r"))',
    # statements
    "sync_threads": "T.sync_threads()",
    "sync_warp": "T.sync_warp()",
    "sync_grid": "T.sync_grid()",
    "sync_global": "T.sync_global()",
    "tvm_storage_sync": 'T.tvm_storage_sync("shared")',
    "print": "T.print(V[0])",
    "device_assert": "T.device_assert(I[0] > 0)",
    "thread_return": "T.thread_return()",
    "loop_break": "for i in T.serial(8):\n    if I[i] > 0:\n        T.loop_break()\n    V[i] = 0",
    "ptx_commit_group": "T.ptx_commit_group()",
    "ptx_wait_group": "T.ptx_wait_group(0)",
    "assume": "T.assume(I[0] > 0)\nV[0] = 1",
    "annotate_safe_value": 's = T.alloc_shared((64, 64), "float16")\nT.annotate_safe_value({A: 1.0})\nT.copy(A[32, 0], s)\nT.copy(s, O)',
    "annotate_layout": 's = T.alloc_shared((64, 64), "float16")\nT.annotate_layout({s: tilelang.layout.make_swizzled_layout(s)})\nT.copy(A, s)\nT.copy(s, O)',
    "annotate_restrict_buffers": "T.annotate_restrict_buffers(A)",
    "annotate_min_blocks_per_sm": "T.annotate_min_blocks_per_sm(2)",
    "use_swizzle": "T.use_swizzle(4)",
    "evaluate": "T.evaluate(0)",
    "alloc_barrier": f"{_BARRIER}T.mbarrier_arrive(bar)",
    "mbarrier_arrive": f"{_BARRIER}T.mbarrier_arrive(bar)",
    "mbarrier_wait_parity": f"{_BARRIER}T.mbarrier_arrive(bar)\nT.mbarrier_wait_parity(bar, 0)",
    "mbarrier_expect_tx": f"{_BARRIER}T.mbarrier_expect_tx(bar, 128)",
    "mbarrier_arrive_expect_tx": f"{_BARRIER}T.mbarrier_arrive_expect_tx(bar, 128)",
    "alloc_cluster_barrier": "bar = T.alloc_cluster_barrier(128)\nT.mbarrier_arrive(bar)",
    "named_barrier_arrive": "T.named_barrier_arrive(1, 128)",
    "tma_store_arrive": _STORE,
    "tma_store_wait": _STORE,
    "ptx_cp_async": _GATHER,
    "cp_async_barrier_noinc": _GATHER,
    "warpgroup_fence_operand": _GEMM.format(
        call="T.warpgroup_fence_operand(f)\nT.wgmma_gemm(s, s, f)\nT.wait_wgmma(0)"
    ),
    "set_max_nreg": "T.set_max_nreg(240, 1)",
    "inc_max_nreg": "T.inc_max_nreg(240)",
    "dec_max_nreg": "T.dec_max_nreg(24)",
    "import_source": 'T.import_source("__device__ void foo() {}")',
    # tiles
    "copy": 's = T.alloc_shared((64, 64), "float16")\nT.copy(A, s)\nT.copy(s, O)',
    "async_copy": 's = T.alloc_shared((64, 64), "float16")\nT.async_copy(A, s)\nT.ptx_wait_group(0)\nT.copy(s, O)',
    "tma_copy": f's = T.alloc_shared((64, 64), "float16")\n{_BARRIER}T.tma_copy(A, s, barrier=bar)\nT.copy(s, O)',
    "transpose": 's = T.alloc_shared((64, 64), "float32")\nt = T.alloc_shared((64, 64), "float32")\nT.copy(O, s)\nT.transpose(s, t)\nT.copy(t, O)',
    "gemm": _GEMM.format(call="T.gemm(s, s, f)"),
    "wgmma_gemm": _GEMM.format(call="T.wgmma_gemm(s, s, f)\nT.wait_wgmma(0)"),
    "gemm_sp": _GEMM.format(call="T.gemm_sp(s, s, s, f)"),
    "fill": "T.fill(V, 1)",
    "clear": "T.clear(V)",
    **{name: _SCAN.format(name=name) for name in vocabulary.SCANS},
    "reduce": _REDUCE.format(dtype="float32", call='T.reduce(x, y, "sum", 1, True)', out="V"),
    **{
        name: _REDUCE.format(dtype="float32", call=f"T.{name}(x, y, dim=1)", out="V")
        for name in ("reduce_sum", "reduce_max", "reduce_min", "reduce_absmax", "reduce_abssum")
    },
    **{
        name: _REDUCE.format(dtype="int32", call=f"T.{name}(x, y, dim=1)", out="I")
        for name in ("reduce_bitand", "reduce_bitor", "reduce_bitxor")
    },
    "alloc_reducer": 'r = T.alloc_reducer((64,), "float32", op="sum")\nT.clear(r)\nfor i, j in T.Parallel(64, 64):\n    r[i] += A[i, j]\nT.finalize_reducer(r)\nT.copy(r, V)',
    "reducer_update": 'r = T.alloc_reducer((64,), "float32", op="sum")\nT.reducer_init(r)\nfor i, j in T.Parallel(64, 64):\n    T.reducer_update(r[i], O[i, j])\nT.finalize_reducer(r)\nT.copy(r, V)',
    # memory
    "alloc_shared": 's = T.alloc_shared((64,), "float32")\nT.copy(V, s)\nT.copy(s, V)',
    "alloc_fragment": 's = T.alloc_fragment((64,), "float32")\nT.copy(V, s)\nT.copy(s, V)',
    "alloc_local": 'p = T.alloc_local((4,), "float32")\nfor i in T.serial(4):\n    p[i] = V[i]\nV[0] = p[1]',
    "alloc_var": 'v = T.alloc_var("int32", 0)\nv = I[0]\nI[1] = v',
    "alloc_global": 'w = T.alloc_global((64,), "float32")\nfor i in T.Parallel(64):\n    w[i] = V[i]\nfor i in T.Parallel(64):\n    V[i] = w[i]',
    "alloc_buffer": 's = T.alloc_buffer((64,), "float32", scope="shared")\nT.copy(V, s)\nT.copy(s, V)',
    "allocate": 's = T.allocate((64,), "float32", scope="shared")\nT.copy(V, s)\nT.copy(s, V)',
    "sblock_alloc_buffer": 's = T.sblock_alloc_buffer((64,), "float32", scope="shared")\nT.copy(V, s)\nT.copy(s, V)',
    "reshape": 's = T.alloc_shared((64, 64), "float16")\nT.copy(A, s)\nr = T.reshape(s, (4096,))\nV[0] = r[65]',
    "view": 's = T.alloc_shared((64,), "float32")\nT.copy(V, s)\nr = T.view(s, dtype="int32")\nI[0] = r[1]',
    "cast": f'{_LOOP}V[i] = T.cast(I[i], "float32")',
    "Cast": f'{_LOOP}V[i] = T.Cast("float32", I[i])',
    "reinterpret": f'{_LOOP}V[i] = T.reinterpret(I[i], "float32")',
    "ceildiv": f"{_LOOP}I[i] = T.ceildiv(I[i], 3)",
    "next_power_of_2": "I[0] = T.next_power_of_2(5)",
    "load": "V[0] = T.load(V, 1)",
    "store": "T.store(V, 0, 1.0)",
    "ws": "with T.ws(0):\n    T.clear(V)",
    "If": "with T.If(I[0] > 0):\n    with T.Then():\n        V[0] = 1",
    "dtype": f'x = T.dtype("float32")\n{_LOOP}V[i] = 0',
    # loops
    "serial": "for i in T.serial(64):\n    V[i] = 0",
    "Parallel": f"{_LOOP}V[i] = 0",
    "Pipelined": 's = T.alloc_shared((64,), "float16")\nfor k in T.Pipelined(64, num_stages=2):\n    T.copy(A[k, 0], s)\n    T.copy(s, O[k, 0:64])',
    "unroll": "for i in T.unroll(4):\n    V[i] = 0",
    "vectorized": "for i in T.vectorized(4):\n    V[i] = 0",
    "grid": "for i, j in T.grid(4, 4):\n    O[i, j] = 0",
    "Persistent": "for i, j in T.Persistent([4, 4], 1, bx):\n    O[i, j] = 0",
}
BODIES["Then"] = BODIES["If"]
BODIES["Else"] = BODIES["If"] + "\n    with T.Else():\n        V[0] = 2"
BODIES["finalize_reducer"] = BODIES["alloc_reducer"]
BODIES["reducer_init"] = BODIES["reducer_update"]
BODIES["wait_wgmma"] = BODIES["wgmma_gemm"]
# Programs that are no statements of the frame.
_MAIN = "@T.prim_func\ndef main({parameters}):\n    with T.Kernel(1, threads=64) as bx:\n        {body}\n"
_V = 'V: T.Tensor((64,), "float32")'
PROGRAMS: dict[str, str] = {
    "Tensor": _MAIN.format(parameters=_V, body="V[0] = 1"),
    "prim_func": _MAIN.format(parameters=_V, body="V[0] = 1"),
    "Kernel": _MAIN.format(parameters=_V, body="V[0] = 1"),
    "Buffer": _MAIN.format(parameters='V: T.Buffer((64,), "float32")', body="V[0] = 1"),
    "StridedTensor": _MAIN.format(
        parameters='V: T.StridedTensor((8, 8), (16, 1), "float32")', body="V[1, 1] = 1"
    ),
    "dynamic": 'n = T.dynamic("n")\n\n'
    + _MAIN.format(parameters='V: T.Tensor((n,), "float32")', body="V[0] = 1"),
    "macro": "@T.macro\ndef put(V):\n    V[0] = 1\n\n" + _MAIN.format(parameters=_V, body="put(V)"),
    "Ref": "@T.macro\ndef put(x: T.Ref):\n    x = 1\n\n"
    + _MAIN.format(parameters=_V, body="put(V[0])"),
    "const": '@tilelang.jit\ndef k(V):\n    n = T.const("n")\n    V: T.Tensor[[n], T.float32]\n    with T.Kernel(1, threads=64) as bx:\n        V[0] = 1\n',
    "empty": "@tilelang.jit\ndef k(V):\n    V: T.Tensor[[64], T.float32]\n    W = T.empty((64,), T.float32)\n    with T.Kernel(1, threads=64) as bx:\n        W[bx] = V[bx]\n    return W\n",
    "ptr": _MAIN.format(
        parameters="p: T.ptr", body='V = T.make_tensor(p, (64,), "float32")\n        V[0] = 1'
    ),
    "ClusterKernel": _MAIN.replace(
        "T.Kernel(1, threads=64)", "T.ClusterKernel(2, threads=64, cluster_dims=2)"
    ).format(parameters=_V, body="V[0] = 1"),
    **{
        name: _MAIN.replace(
            "T.Kernel(1, threads=64)", "T.Kernel(2, threads=64, cluster_dims=2)"
        ).format(parameters=_V, body=f"{body}\n        V[bx] = 1")
        for name, body in (
            ("cluster_sync", "T.cluster_sync()"),
            ("cluster_arrive", "T.cluster_arrive()\n        T.cluster_wait()"),
            ("cluster_wait", "T.cluster_arrive()\n        T.cluster_wait()"),
            ("block_rank_in_cluster", "V[2 + bx] = T.block_rank_in_cluster()"),
        )
    },
    "match_buffer": _MAIN.format(parameters="h: T.handle", body="V[0] = 1").replace(
        "    with", '    V = T.match_buffer(h, (64,), "float32")\n    with'
    ),
}
PROGRAMS["make_tensor"] = PROGRAMS["ptr"]
PROGRAMS["im2col"] = _MAIN.format(
    parameters='V: T.Tensor((1, 8, 8, 16), "float32"), O: T.Tensor((64, 16), "float32")',
    body='s = T.alloc_shared((64, 16), "float32")\n        '
    "T.im2col(V, s, 0, 4, 3, 1, 1, 1)\n        T.copy(s, O)",
)
# Names that only stand inside others, or mean nothing without them.
INSIDE = {
    "SharedBuffer": "annotation of a macro's parameter", "FragmentBuffer": "annotation of a macro's parameter",
    "LocalBuffer": "annotation of a macro's parameter", "GemmWarpPolicy": "policy of T.gemm",
    "Layout": "in T.annotate_layout", "Fragment": "in T.annotate_layout", "handle": "type of a parameter",
    "meta_class": "decorator of a class", "inline": "decorator of a method", "all": "Python's own", "any": "Python's own",
    "PersistentTileScheduler": "a class of the language", "attr": "hint around statements", "block": "TVM's spelling, no effect",
    "sblock": "TVM's spelling, no effect", "float8": "no type: float8_e4m3 and its like are", "launch_thread": "TVM's spelling",
    "get_mbarrier": "an element of T.alloc_barrier", "tvm_access_ptr": "argument of a foreign call",
    "comm_reducer": "in T.attr, for T.tvm_thread_allreduce", "tvm_thread_allreduce": "in T.attr with T.comm_reducer",
}  # fmt: skip


def body_of(name: str) -> str:
    """The statements that use a name."""
    if name in BODIES:
        return BODIES[name]
    if name in vocabulary.MATH:
        return f"{_LOOP}V[i] = T.{name}(V[i])"
    return f"T.{name}()"


def program_of(name: str) -> str:
    name = vocabulary.RENAMED.get(name, name)
    if name in PROGRAMS:
        return HEAD + PROGRAMS[name]
    return HEAD + FRAME + indent(body_of(name), " " * 8) + "\n"


def answer(name: str, target: str, folder: Path) -> str:
    """ "yes", or the code of the first error."""
    path = folder / "probe.py"
    path.write_text(program_of(name), encoding="utf-8")
    diagnostics = Diagnostics()
    generate(Request(inputs=(path,), targets=(target,), defines=parse_defines(())), diagnostics)
    errors = [item.code for item in diagnostics.items if item.severity is Severity.ERROR]
    return errors[0] if errors else "yes"
