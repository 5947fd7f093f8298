"""The order of helpers in a text: each stands above those that call it."""

from __future__ import annotations

_ORDER = (
    "unroll",
    "rolled",
    "infinity",
    "not_a_number",
    "float_of_float8",
    "float8_of_float",
    "vector_type",
    "swizzle",
    "row_groups",
    "shared_struct",
    "shared_size",
    "shared_memory",
    "pack",
    "load_vector",
    "store_vector",
    "load_whole_vector",
    "store_whole_vector",
    "copy_async",
    "copies_commit",
    "copies_wait",
    "load_matrices",
    "load_operand",
    "load_registers",
    "register_of",
    "round_to_tf32",
    "widened_float8_e4m3fn",
    "widened_float8_e5m2",
    "mma_m16n8k16",
    "mma_m16n8k16_of_k8",
    "mma_m16n8k32_widened",
    "floor_div",
    "floor_mod",
    "ceil_div",
    "clamp",
    "bits_as",
    "keeps_nan",
    "lanes_reduce",
    "lanes_scan",
    "lane_below",
    "last_lane",
    "compare_swap",
    "atomic_swap",
    "tensor_map",
    "shared_addr",
    "barrier_init",
    "barriers_visible",
    "barrier_expect",
    "barrier_arrive",
    "barrier_wait",
    "ring",
    "stage_before",
    "consumers_sync",
    "warpgroup_sync",
    "tma_load",
    "tma_store",
    "tma_store_commit",
    "tma_store_wait_read",
    "publish_to_async",
    "fewer_registers",
    "more_registers",
    "k_major",
    "mn_major",
    "mma_begin",
    "mma_wgmma",
    "mma_commit",
    "mma_wait",
    "pin",
    "packed_pair",
    "store_matrices",
)


def ordered(helpers: list) -> list:  # type: ignore[type-arg]
    """Helpers in a fixed order, whatever order they were asked for in."""

    def place(helper: object) -> tuple[int, str, str]:
        template: str = helper.template  # type: ignore[attr-defined]
        known = _ORDER.index(template) if template in _ORDER else len(_ORDER)
        return known, template, str(helper.fields)  # type: ignore[attr-defined]

    return sorted(helpers, key=place)
