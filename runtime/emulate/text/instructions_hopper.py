"""The instructions of sm_90 and sm_90a: mbarriers, bulk copies, wgmma, clusters, register budgets.

Their models are in include/emulate/ptx_hopper.h.
"""

from __future__ import annotations

from tile2c.runtime.emulate.text.instructions import Match, rule, typed

# Special registers that a cluster adds.
CLUSTER_REGISTERS = {
    "%cluster_ctarank": "emu_cluster_value(0)",
    "%cluster_nctarank": "emu_cluster_value(1)",
    **{
        f"%{name}.{axis}": f"emu_cluster_value({first + index})"
        for first, name in (
            (2, "cluster_ctaid"),
            (5, "cluster_nctaid"),
            (8, "clusterid"),
            (11, "nclusterid"),
        )
        for index, axis in enumerate("xyz")
    },
}

_SPACE = r"(?P<shared>\.shared(::cta|::cluster)?)?"
_SCOPE = r"(\.(release|acquire|relaxed))?(\.(cta|cluster))?"


def _barrier(pattern: str, model: str, *flags: str) -> None:
    """One mbarrier instruction: its model is told whether the address is a shared one."""
    extra = "".join(f", {flag}" for flag in flags)

    def call(match: Match) -> str:
        return f"{model}<{'true' if match.group('shared') else 'false'}{extra}>"

    rule(pattern, call, "sm_80")


_barrier(rf"mbarrier\.init{_SPACE}\.b64", "mbarrier_init")
_barrier(rf"mbarrier\.inval{_SPACE}\.b64", "mbarrier_inval")
for _name, _drops in (("arrive", "false"), ("arrive_drop", "true")):
    _barrier(rf"mbarrier\.{_name}{_SCOPE}{_SPACE}\.b64", "mbarrier_arrive", _drops)
    _barrier(
        rf"mbarrier\.{_name}\.expect_tx{_SCOPE}{_SPACE}\.b64", "mbarrier_arrive_expect", _drops
    )
_barrier(rf"mbarrier\.expect_tx{_SCOPE}{_SPACE}\.b64", "mbarrier_expect")
_barrier(rf"mbarrier\.complete_tx{_SCOPE}{_SPACE}\.b64", "mbarrier_complete")
for _name, _tries in (("try_wait", "true"), ("test_wait", "false")):
    _barrier(rf"mbarrier\.{_name}\.parity{_SCOPE}{_SPACE}\.b64", "mbarrier_wait", "true", _tries)
    _barrier(rf"mbarrier\.{_name}{_SCOPE}{_SPACE}\.b64", "mbarrier_wait", "false", _tries)
_barrier(rf"cp\.async\.mbarrier\.arrive\.noinc{_SPACE}\.b64", "cp_async_mbarrier_arrive", "true")
_barrier(rf"cp\.async\.mbarrier\.arrive{_SPACE}\.b64", "cp_async_mbarrier_arrive", "false")

rule(r"fence\.mbarrier_init\.release\.cluster", "fence_mbarrier_init", "sm_90")
rule(r"fence\.proxy\.async\.shared::(cta|cluster)", "fence_proxy<true, false>", "sm_90")
rule(r"fence\.proxy\.async\.global", "fence_proxy<false, true>", "sm_90")
rule(r"fence\.proxy\.async", "fence_proxy<true, true>", "sm_90")
rule(r"fence\.proxy\.tensormap.*", "fence_proxy_tensormap", "sm_90")

# ---- bulk copies
_REDUCTIONS = r"(?P<op>add|min|max|inc|dec|and|or|xor)"
_LOAD = r"\.shared::(cluster|cta)\.global"
_DONE = r"\.mbarrier::complete_tx::bytes"
_HINT = r"(?P<hint>\.L2::cache_hint)?"
# Element types of a bulk reduction, as a tensor map numbers them.
_KINDS = {"u16": 1, "u32": 2, "b32": 2, "s32": 3, "u64": 4, "b64": 4, "s64": 5, "f16": 6, "f32": 7, "f64": 8,
          "bf16": 9}  # fmt: skip


def _tensor_load(match: Match) -> str:
    form = "_multicast" if match.group("many") else "_hint" if match.group("hint") else ""
    return f"tensor_load{form}<{match.group('rank')}>"


def _bulk_reduce(match: Match) -> str:
    kind = _KINDS[match.group("type")]
    return f"bulk_store<ATOMIC_{match.group('op').upper()}, {kind}>"


rule(rf"cp\.async\.bulk\.tensor\.(?P<rank>[1-5])d{_LOAD}(\.tile)?{_DONE}(?P<many>\.multicast::cluster)?"
     rf"(\.cta_group::1)?{_HINT}", _tensor_load, "sm_90")  # fmt: skip
rule(rf"cp\.async\.bulk\.tensor\.(?P<rank>[3-5])d{_LOAD}\.im2col{_DONE}{_HINT}", "im2col_load<{rank}>",
     "sm_90")  # fmt: skip
rule(rf"cp\.async\.bulk\.tensor\.(?P<rank>[1-5])d\.global\.shared::cta(\.tile)?\.bulk_group{_HINT}",
     "tensor_store<{rank}, -1>", "sm_90")  # fmt: skip
rule(rf"cp\.reduce\.async\.bulk\.tensor\.(?P<rank>[1-5])d\.global\.shared::cta\.{_REDUCTIONS}(\.tile)?"
     rf"\.bulk_group{_HINT}",
     lambda m: f"tensor_store<{m.group('rank')}, ATOMIC_{m.group('op').upper()}>", "sm_90")  # fmt: skip
rule(rf"cp\.async\.bulk\.prefetch\.tensor\.(?P<rank>[1-5])d\.L2\.global(\.tile)?{_HINT}",
     "tensor_prefetch<{rank}>", "sm_90")  # fmt: skip
rule(r"prefetch(\.param|\.const)?\.tensormap", "map_prefetch", "sm_90")
rule(rf"cp\.async\.bulk{_LOAD}{_DONE}\.multicast::cluster{_HINT}", "bulk_load_multicast", "sm_90")
rule(rf"cp\.async\.bulk{_LOAD}{_DONE}{_HINT}", "bulk_load", "sm_90")
rule(rf"cp\.async\.bulk\.shared::cluster\.shared::cta{_DONE}", "bulk_push", "sm_90")
rule(rf"cp\.async\.bulk\.global\.shared::cta\.bulk_group{_HINT}", "bulk_store<-1, 0>", "sm_90")
rule(rf"cp\.reduce\.async\.bulk\.global\.shared::cta\.bulk_group{_HINT}\.{_REDUCTIONS}(\.noftz)?"
     r"\.(?P<type>[usb](16|32|64)|f16|bf16|f32|f64)", _bulk_reduce, "sm_90")  # fmt: skip
rule(rf"cp\.async\.bulk\.prefetch\.L2\.global{_HINT}", "nothing", "sm_90")
rule(r"cp\.async\.bulk\.commit_group", "bulk_commit", "sm_90")
rule(r"cp\.async\.bulk\.wait_group\.read", "bulk_wait<true>", "sm_90")
rule(r"cp\.async\.bulk\.wait_group", "bulk_wait<false>", "sm_90")
rule(r"st\.async(\.weak)?\.shared::cluster\.mbarrier::complete_tx::bytes(\.v[24])?\.(?P<type>[bus](32|64)|f32|f64)",
     typed("st_async<{t}>"), "sm_90")  # fmt: skip

# ---- wgmma
_EVERY_8 = "|".join(str(n) for n in range(8, 257, 8))
_INTEGER_N = "|".join(str(n) for n in (8, 16, 24, *range(32, 257, 16)))


def _wgmma(match: Match) -> str:
    types = ", ".join(f"TYPE_{match.group(key).upper()}" for key in ("d", "a", "b"))
    saturate = "true" if match.groupdict().get("saturate") else "false"
    return f"wgmma<{match.group('n')}, {match.group('k')}, {types}, {saturate}>"


for _widths, _depth, _types in (
    (_EVERY_8, 16, r"\.(?P<d>f16|f32)\.(?P<a>f16)\.(?P<b>f16)"),
    (_EVERY_8, 16, r"\.(?P<d>f32)\.(?P<a>bf16)\.(?P<b>bf16)"),
    (_EVERY_8, 8, r"\.(?P<d>f32)\.(?P<a>tf32)\.(?P<b>tf32)"),
    (_EVERY_8, 32, r"\.(?P<d>f16|f32)\.(?P<a>e4m3|e5m2)\.(?P<b>e4m3|e5m2)"),
    (_INTEGER_N, 32, r"\.(?P<d>s32)\.(?P<a>[su]8)\.(?P<b>[su]8)(?P<saturate>\.satfinite)?"),
    (_INTEGER_N, 32, r"(?P<saturate>\.satfinite)?\.(?P<d>s32)\.(?P<a>[su]8)\.(?P<b>[su]8)"),
):
    rule(
        rf"wgmma\.mma_async\.sync\.aligned\.m64n(?P<n>{_widths})k(?P<k>{_depth}){_types}",
        _wgmma,
        "sm_90a",
    )
rule(r"wgmma\.fence\.sync\.aligned", "wgmma_fence", "sm_90a")
rule(r"wgmma\.commit_group\.sync\.aligned", "wgmma_commit", "sm_90a")
rule(r"wgmma\.wait_group\.sync\.aligned", "wgmma_wait", "sm_90a")

# ---- clusters, roles
rule(r"barrier\.cluster\.arrive(\.release)?(\.aligned)?", "cluster_arrive<true>", "sm_90")
rule(r"barrier\.cluster\.arrive\.relaxed(\.aligned)?", "cluster_arrive<false>", "sm_90")
rule(r"barrier\.cluster\.wait(\.acquire)?(\.aligned)?", "cluster_wait", "sm_90")
rule(r"mapa\.shared::cluster\.u(32|64)", "mapa_shared", "sm_90")
rule(r"mapa\.u(32|64)", "mapa_generic", "sm_90")
rule(r"getctarank\.shared::cluster\.u(32|64)", "getctarank", "sm_90")
rule(r"elect\.sync", "elect", "sm_90")
rule(r"setmaxnreg\.inc\.sync\.aligned\.u32", "set_registers<true>", "sm_90a")
rule(r"setmaxnreg\.dec\.sync\.aligned\.u32", "set_registers<false>", "sm_90a")
