"""The assembler of T-Head's PPU: what resembles PTX has `ppu.` in front, matrices their unit's name.

Models of the matrix products are in include/emulate/ppu.h.
"""

from __future__ import annotations

from tile2c.runtime.emulate.text.instructions import matrix_move, rule

_HINTS = r"(\.L2::128B)?"
rule(rf"ppu\.cp\.async\.(ca|cg)\.shared\.global{_HINTS}", "cp_async", "ppu_10")
rule(r"ppu\.cp\.async\.commit_group", "cp_async_commit", "ppu_10")
rule(r"ppu\.cp\.async\.wait_group", "cp_async_wait", "ppu_10")
rule(r"ppu\.cp\.async\.wait_all", "cp_async_wait_all", "ppu_10")
rule(r"ppu\.bar\.sync", "bar_sync", "ppu_10")
rule(r"ppu\.bar\.arrive", "bar_arrive", "ppu_10")
rule(r"ppu\.cvta\.to\.shared\.u(32|64)", "cvta_to_shared", "ppu_10")

# As the vendor's products of tiles use them; the unit of ppu_15 has its own.
_LOAD = r"ppu\.tc01\.ldmatrix\.sync\.aligned"
_ROWS = rf"{_LOAD}\.m8n8\.x(?P<count>[124])(?P<trans>\.trans)?(\.shared)?\.b16"
rule(_ROWS, matrix_move("ldmatrix"), "ppu_10=")
rule(rf"{_LOAD}\.m16n16\.x1\.trans(\.shared)?\.b16", "ldmatrix_16x16_turned", "ppu_10=")
rule(rf"{_LOAD}\.m16n16\.x2\.diagswap\.trans(\.shared)?\.b8", "ldmatrix_bytes_turned", "ppu_10=")

# unit, exact architecture, types of 8 bits it takes
for _unit, _arch, _bytes in (("tc01", "ppu_10=", ("s8", "u8")), ("tc02", "ppu_15=", ("s8",))):
    _mma = rf"ppu\.{_unit}\.mma\.sync\.aligned"
    for _kind in ("f16", "bf16"):
        rule(
            rf"{_mma}\.m16n16k16\.row\.col\.f32\.{_kind}\.{_kind}\.f32",
            f"matrix<FRAGMENTS_{_unit.upper()}_16, TYPE_{_kind.upper()}, TYPE_F32>",
            _arch,
        )
    for _kind in _bytes:
        rule(
            rf"{_mma}\.m16n16k32\.row\.col\.s32\.{_kind}\.{_kind}\.s32",
            f"matrix<FRAGMENTS_{_unit.upper()}_32, TYPE_{_kind.upper()}, TYPE_S32>",
            _arch,
        )
    for _kind in ("e4m3", "e5m2") if _unit == "tc02" else ():
        rule(
            rf"{_mma}\.m16n16k32\.row\.col\.f32\.{_kind}\.{_kind}\.f32",
            f"matrix<FRAGMENTS_{_unit.upper()}_32, TYPE_{_kind.upper()}, TYPE_F32>",
            _arch,
        )
