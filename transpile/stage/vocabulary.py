"""The names of the tile language, as data: what each is, and how it is spelled canonically."""

from __future__ import annotations

import difflib
from collections.abc import Iterable

_SHORT = {
    "half": "float16",
    "float": "float32",
    "double": "float64",
    "short": "int16",
    "int": "int32",
    "uint": "uint32",
    "long": "int64",
    "e4m3_float8": "float8_e4m3",
    "e5m2_float8": "float8_e5m2",
    "e4m3fnuz_float8": "float8_e4m3fnuz",
    "bfloat": "bfloat16",
}

SCALAR_DTYPES = (
    "bool",
    *(f"{sign}int{bits}" for sign in ("", "u") for bits in (4, 8, 16, 32, 64)),
    *("float16", "bfloat16", "float32", "float64", "tfloat32"),
    *("float8_e4m3", "float8_e4m3fn", "float8_e4m3fnuz", "float8_e5m2", "float8_e5m2fnuz"),
    *("float8_e8m0fnu", "float8_e3m4", "float6_e2m3fn", "float6_e3m2fn", "float4_e2m1fn"),
    "handle",
)
LANES = (2, 3, 4, 8, 16, 32, 64)
_DTYPES = frozenset(SCALAR_DTYPES) | {f"{base}x{n}" for base in SCALAR_DTYPES for n in LANES}


def dtype_name(spelling: str) -> str | None:
    """The canonical name of an element type; None when it is none."""
    spelling = _SHORT.get(spelling, spelling)
    return spelling if spelling in _DTYPES else None


# Expressions of a value's own type. The right-hand names are the canonical ones.
MATH = frozenset(
    """exp exp2 exp10 log log2 log10 log1p sqrt rsqrt sin cos tan asin acos atan atan2 sinh cosh
    tanh asinh acosh atanh erf pow fmod hypot copysign ldexp nextafter abs floor ceil trunc round
    nearbyint sigmoid clamp isnan isinf isfinite clz popcount max min __exp __exp10 __log __log2
    __log10 __sin __cos __tan fast_rcp ieee_add ieee_sub ieee_mul ieee_fmaf ieee_fdiv ieee_frcp
    ieee_fsqrt ieee_frsqrt add2 sub2 mul2 fma2 max2 min2 abs2 truncdiv truncmod align_up dp4a
    if_then_else Select""".split()
)
RENAMED = {
    "fabs": "abs",
    "cdiv": "ceildiv",
    "power": "pow",
    "Min": "min",
    "Max": "max",
    "If_then_else": "if_then_else",
    "symbolic": "dynamic",
    "var": "dynamic",
    "Serial": "serial",
    "Unroll": "unroll",
    "Vectorized": "vectorized",
    "parallel": "Parallel",
    "WarpSpecialize": "ws",
    "barrier_arrive": "mbarrier_arrive",
    "barrier_wait": "mbarrier_wait_parity",
    "gemm_v1": "gemm",
    "gemm_v2": "gemm",
    "create_list_of_mbarrier": "alloc_barrier",
    "c2d_im2col": "im2col",
}
OPERATORS = {
    "floordiv": "//",
    "floormod": "%",
    "bitwise_and": "&",
    "bitwise_or": "|",
    "bitwise_xor": "^",
    "shift_left": "<<",
    "shift_right": ">>",
    "And": "and",
    "Or": "or",
}
CONVERSIONS = frozenset(("cast", "Cast", "reinterpret"))
UNARY_OPERATORS = {"bitwise_not": "~", "Not": "not"}
VALUES = frozenset(
    """infinity max_value min_value warp_reduce_sum warp_reduce_max warp_reduce_min
    warp_reduce_bitand warp_reduce_bitor any_of all_of shfl_sync shfl_xor shfl_down shfl_up
    tvm_warp_shuffle tvm_warp_shuffle_up tvm_warp_shuffle_down ballot ballot_sync activemask
    any_sync all_sync match_any_sync match_all_sync get_lane_idx get_warp_idx get_warp_idx_sync
    get_warp_group_idx shuffle_elect syncthreads_count syncthreads_and syncthreads_or ldg32 ldg64
    ldg128 ldg256 __ldg __ffs __fns atomic_load Broadcast Ramp Shuffle extract_lane rng_rand rng_rand_float
    address_of access_ptr call_extern call_pure_extern block_rank_in_cluster get_block_extent
    get_thread_extent get_block_binding get_mbarrier tvm_thread_allreduce comm_reducer
    tvm_access_ptr""".split()
)
# Statements that stay as they are, arguments spelled canonically.
STATEMENTS = frozenset(
    """sync_threads sync_warp sync_grid sync_global tvm_storage_sync print device_assert
    thread_return loop_break ptx_commit_group ptx_wait_group ptx_cp_async cp_async_barrier_noinc
    mbarrier_arrive mbarrier_wait_parity mbarrier_expect_tx mbarrier_arrive_expect_tx
    tma_store_arrive tma_store_wait fence_proxy_async cluster_sync cluster_arrive cluster_wait
    warpgroup_fence_operand warpgroup_arrive warpgroup_commit_batch warpgroup_wait wait_wgmma
    named_barrier_arrive annotate_producer_reg_dealloc annotate_consumer_reg_alloc set_max_nreg
    inc_max_nreg dec_max_nreg evaluate import_source rng_init atomic_store stg32 stg64
    stg128 stg256 assume annotate_safe_value annotate_layout annotate_restrict_buffers
    annotate_min_blocks_per_sm use_swizzle finalize_reducer reducer_init reducer_update""".split()
)
HINTS = frozenset(
    """annotate_l2_hit_ratio annotate_compile_flags annotate_pass_configs func_attr likely
    no_set_max_nreg disable_warp_group_reg_alloc pdl_trigger pdl_sync annotate_ws_schedule reads
    writes""".split()
)
REDUCTIONS = frozenset(
    """reduce_sum reduce_max reduce_min reduce_absmax reduce_abssum reduce_bitand reduce_bitor
    reduce_bitxor reduce""".split()
)
SCANS = frozenset(("cumsum", "cummax"))
ATOMICS = frozenset(
    ("atomic_add", "atomic_max", "atomic_min", "atomic_or", "atomic_addx2", "atomic_addx4")
)
COPIES = frozenset(("copy", "async_copy", "tma_copy", "transpose", "im2col", "copy_cluster"))
GEMMS = frozenset(("gemm", "wgmma_gemm", "gemm_sp"))
FILLS = frozenset(("fill", "clear"))
ALLOCATIONS = frozenset(
    """alloc_shared alloc_fragment alloc_local alloc_var alloc_global alloc_reducer alloc_barrier
    alloc_cluster_barrier alloc_buffer allocate sblock_alloc_buffer""".split()
)
LOOPS = frozenset("serial Parallel Pipelined unroll vectorized grid Persistent".split())
DECLARATIONS = frozenset(
    """Tensor Buffer StridedTensor SharedBuffer FragmentBuffer LocalBuffer ptr Ref const dynamic
    empty match_buffer make_tensor prim_func macro inline meta_class Kernel ClusterKernel
    thread_binding get_thread_binding get_thread_bindings get_thread_extents get_block_bindings
    reshape view cast Cast reinterpret ceildiv next_power_of_2 load store ws attr block sblock If Then Else
    While Layout Fragment PersistentTileScheduler GemmWarpPolicy dtype float8 CUDASourceCodeKernel
    all any launch_thread""".split()
)
REFUSED = {
    **dict.fromkeys(
        """alloc_tmem tcgen05_gemm tcgen05_gemm_blockscaled mma_gemm_blockscaled gemm_blockscaled
        tcgen05_mma_arrive tcgen05_cp_warpx4 tcgen05_sf_warp_transpose tma_gather4 tma_scatter4
        clc_is_canceled clc_try_cancel_multicast clc_get_first_ctaid_x""".split(),
        "it exists on sm_100 alone, which no target of tile2c offers yet",
    ),
    **dict.fromkeys(
        "alloc_ub alloc_L1 alloc_L0C alloc_L0A alloc_L0B Scope tile set_flag wait_flag".split(),
        "it belongs to a vendor's dialect, which is a different language",
    ),
    **dict.fromkeys(
        "call_intrin call_packed axis tvm_mfma mma_store ptx_mma ptx_ldmatrix".split(),
        "it reaches under the tile language; T.gemm and T.copy say the same to every target",
    ),
}

KNOWN = (
    MATH
    | frozenset(RENAMED)
    | frozenset(OPERATORS)
    | frozenset(UNARY_OPERATORS)
    | VALUES
    | STATEMENTS
    | HINTS
    | REDUCTIONS
    | SCANS
    | ATOMICS
    | COPIES
    | GEMMS
    | FILLS
    | ALLOCATIONS
    | LOOPS
    | DECLARATIONS
    | frozenset(REFUSED)
)


def nearest(word: str, candidates: Iterable[str]) -> str | None:
    """The candidate that `word` was most likely meant to be."""
    known = sorted(candidates)
    same = [
        name for name in known if name.lower() == word.lower()
    ]  # `block_m` is block_M, not block_N
    found = same or difflib.get_close_matches(word, known, n=1, cutoff=0.6)
    return found[0] if found else None
