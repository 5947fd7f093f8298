"""Two blocks an SM, where rounds multiply twice and tiles are small.

The matrix unit idles while a block works on what it multiplied, at its start and at its end. A second
block covers all of these, so that nothing else has to: no product is late, and no block stays.
"""

from __future__ import annotations

from tile2c.transpile.lower.plan import Choice
from tile2c.transpile.lower.simt.context import Context
from tile2c.transpile.lower.simt.hopper import memory
from tile2c.transpile.lower.simt.hopper.roles import Roles
from tile2c.transpile.lower.simt.hopper.warpgroups import Registers, half_of_registers
from tile2c.transpile.lower.simt.unread import shared_tiles

BLOCKS_OF_SM = 2
_SPARE = 24  # registers beside sums and operands, all of which are dead in turn
_RESERVED = 1024  # bytes of shared memory that each block costs beside its own


def for_two_blocks(ctx: Context, roles: Roles, taken: int) -> Registers | None:
    """Each block's share of the registers; None where one block has an SM to itself.

    `taken`: registers of a consumer's thread for sums and operands.
    """
    share = half_of_registers(roles.groups)
    if len(roles.batches) != 2 or share is None or taken + _SPARE > share.consumer:
        return None
    loaded = {load.tile.name for load in (*roles.loads, *roles.once)}
    if shared_tiles(ctx) - loaded:
        return None
    size = sum(memory.tile_bytes(load, roles.depth) for load in roles.loads)
    size += sum(memory.tile_bytes(load, 1) for load in roles.once) + memory.BARRIERS
    if BLOCKS_OF_SM * (size + _RESERVED) > ctx.target.max_shared + _RESERVED:
        return None
    reason = "one multiplies while the other works on what it has multiplied"
    ctx.choices.append(Choice(name="blocks of an SM", value=str(BLOCKS_OF_SM), reason=reason))
    return share
