"""Larger statements: products of tiles, rings of loads, states that loops carry, histograms."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from expressions_drawn import drawn, stored
from number_rules import FLOATS, INTEGERS, STORED_FLOATS, Number, fits

if TYPE_CHECKING:
    from statements_drawn import Launch


def second_product(launch: Launch) -> None:
    """A tile of M x N as the left operand of another product, as in attention: M x N by N x K."""
    tile = launch.full()
    if tile.dtype in STORED_FLOATS or not fits("float16", tile.low, tile.high):
        return
    dtype = launch.random.choice(("float16", "float16", "bfloat16"))
    tensor = launch.input(launch.random.choice(("NK", "KN")), (dtype,))
    dims = tensor.dims[-2:]
    left = launch.tile("MN", dtype)
    right = launch.tile(dims, dtype, "shared")
    total = launch.tile("MK", "float32", "fragment")
    place = ", ".join("0" if d == "K" else launch.base(d) for d in tensor.dims)
    transposed = ", transpose_B=True" if dims == "KN" else ""
    cleared = launch.random.random() < 0.3
    lines = [f"T.copy({tile.name}, {left.name})", f"T.copy({tensor.name}[{place}], {right.name})"]
    if not cleared:
        lines.append(f"T.clear({total.name})")
    option = ", clear_accum=True" if cleared else ""
    lines.append(f"T.gemm({left.name}, {right.name}, {total.name}{transposed}{option})")
    launch.statements.append(lines)
    bound = max(abs(tile.low), abs(tile.high)) * 2 * launch.shape.tile["N"]
    launch.know(left, tile, tile.loose or not tile.exact)
    launch.know(total, Number("", "float32", -bound, bound, False), tile.loose)
    if launch.random.random() < 0.5:
        rows = launch.tile("M", "float32")
        launch.statements.append([f"T.reduce_max({total.name}, {rows.name}, dim=1)"])
        launch.know(rows, total)
    else:
        target = launch.tensor("MK", "float32", "sum")
        corner = ", ".join("0" if d == "K" else launch.base(d) for d in target.dims)
        launch.statements.append([f"T.atomic_add({target.name}[{corner}], {total.name})"])
        launch.outcome(target, Number("", "float32", -bound, bound, False), total.loose)


def weighted_rows(launch: Launch) -> None:
    """A ring of loads that a parallel loop uses, without a product."""
    kinds = ("float16", "float32", "bfloat16", "int32")
    tensor = launch.input("MK", (launch.random.choice(kinds),))
    weight = launch.input("K", (tensor.dtype,))
    wide = "int32" if tensor.dtype in INTEGERS else "float32"
    x = launch.tile("MK", tensor.dtype, "shared")
    w = launch.tile("K", tensor.dtype)
    y = launch.tile("MK", wide, launch.random.choice(("shared", "fragment")))
    total = launch.tile("M", wide, "fragment")
    stages = launch.random.randint(0, 3)
    kind = launch.random.choice(("sum", "max", "min"))
    start = {"sum": "0", "max": "-50", "min": "50"}[kind]
    launch.statements.append(
        [
            f"T.fill({total.name}, {start})",
            f"for ko in T.Pipelined(T.ceildiv(K, block_K), num_stages={stages}):",
            f"    T.copy({launch.corner(tensor)}, {x.name})",
            f"    T.copy({launch.corner(weight)}, {w.name})",
            "    for i, k in T.Parallel(block_M, block_K):",
            f"        {y.name}[i, k] = {x.name}[i, k] * {w.name}[k] + k",
            f"    T.reduce_{kind}({y.name}, {total.name}, dim=1, clear=False)",
        ]
    )
    most = max(abs(tensor.low), abs(tensor.high)) * max(abs(weight.low), abs(weight.high)) + 64
    steps = launch.shape.blocks("K")
    bound = most * steps * launch.shape.tile["K"] if kind == "sum" else most + 50
    exact = wide == "int32" or (kind != "sum" and tensor.exact and weight.exact)
    launch.know(total, Number("", wide, -bound, bound, exact))


def online(launch: Launch) -> None:
    """A running maximum that scales a running sum: three fragments that a loop carries."""
    tensor = launch.input("MK", (launch.random.choice(("float16", "float32")),))
    x = launch.tile("MK", "float32", launch.random.choice(("shared", "fragment")))
    before, most, part, total = (launch.tile("M", "float32", "fragment") for _ in range(4))
    loop = launch.random.choice(("T.serial({0})", "T.Pipelined({0}, num_stages=2)", "range({0})"))
    launch.statements.append(
        [
            f"T.fill({most.name}, -100)",
            f"T.clear({total.name})",
            f"for ko in {loop.format('T.ceildiv(K, block_K)')}:",
            f"    T.copy({launch.corner(tensor)}, {x.name})",
            f"    T.copy({most.name}, {before.name})",
            f"    T.reduce_max({x.name}, {most.name}, dim=1, clear=False)",
            "    for i, k in T.Parallel(block_M, block_K):",
            f"        {x.name}[i, k] = T.exp2({x.name}[i, k] - {most.name}[i])",
            f"    T.reduce_sum({x.name}, {part.name}, dim=1)",
            "    for i in T.Parallel(block_M):",
            f"        {total.name}[i] = {total.name}[i] * "
            f"T.exp2({before.name}[i] - {most.name}[i]) + {part.name}[i]",
        ]
    )
    elements = launch.shape.blocks("K") * launch.shape.tile["K"]
    launch.know(most, Number("", "float32", -100, max(0, tensor.high), tensor.exact))
    launch.know(total, Number("", "float32", 0, 2.0 * elements, False))


def histogram(launch: Launch) -> None:
    """Counts in shared memory, by atomics of many elements on few."""
    dims = launch.random.choice("MN")
    counts = launch.tile(dims, launch.random.choice(("int32", "uint32")), "shared")
    value = drawn(launch.random, [n for n in launch.leaves("MN") if not n.is_float], 2)
    if value.is_float or "uint" in value.dtype or not fits("int32", value.low, value.high):
        return
    step = launch.random.randint(1, 3)
    call = f"T.atomic_add({counts.name}[{value.text} % block_{dims}], {step})"
    launch.statements.append([f"T.clear({counts.name})", *launch.loop("MN", [call])])
    elements = launch.shape.tile["M"] * launch.shape.tile["N"]
    launch.know(counts, Number("", counts.dtype, 0, step * elements))


def rows_in_turn(launch: Launch) -> None:
    """Rows of a tensor one after the other, gathered in a vector that the loop carries."""
    tensor = launch.input("MN")
    if tensor.dtype in STORED_FLOATS:
        return
    row = launch.tile("N", tensor.dtype)
    wide = "int32" if tensor.dtype in INTEGERS else "float32"
    total = launch.tile("N", wide)
    count = launch.random.randint(1, launch.shape.tile["M"])
    places = [launch.base(d) for d in tensor.dims]
    places[-2] += " + q"
    bound = max(abs(tensor.low), abs(tensor.high)) * count
    if not fits(wide, -bound, bound) or tensor.dtype in ("uint32", "int64"):
        return
    launch.statements.append(
        [
            f"T.clear({total.name})",
            f"for q in T.serial({count}):",
            f"    T.copy({tensor.name}[{', '.join(places)}], {row.name})",
            "    for j in T.Parallel(block_N):",
            f"        {total.name}[j] = {total.name}[j] + {row.name}[j] * (q % 3)",
        ]
    )
    launch.know(total, Number("", wide, -2 * bound, 2 * bound, wide == "int32"))


def bits(launch: Launch) -> None:
    """Reductions over bits of whole numbers."""
    tile = launch.full()
    if tile.dtype not in ("int32", "uint32", "int64", "uint8", "int16"):
        return
    axis = launch.random.choice((0, 1))
    target = launch.tile("NM"[axis], tile.dtype)
    kind = launch.random.choice(("bitand", "bitor", "bitxor"))
    launch.statements.append([f"T.reduce_{kind}({tile.name}, {target.name}, dim={axis})"])
    most = 2 * max(abs(tile.low), abs(tile.high)) + 2
    if fits(tile.dtype, 0 if tile.low >= 0 else -most, most):
        launch.know(target, Number("", tile.dtype, 0 if tile.low >= 0 else -most, most))


def scan_of_most(launch: Launch) -> None:
    """Running maxima, or sums in place."""
    tile = launch.full()
    axis, reverse = launch.random.choice((0, 1)), launch.random.choice(("", ", reverse=True"))
    if tile.dtype in STORED_FLOATS:
        return
    if launch.random.random() < 0.5:
        target = launch.tile("MN", tile.dtype, tile.scope)
        launch.statements.append([f"T.cummax({tile.name}, {target.name}, dim={axis}{reverse})"])
        launch.know(target, tile)
        return
    count = launch.shape.tile["MN"[axis]]
    low, high = min(tile.low * count, tile.low), max(tile.high * count, tile.high)
    if fits(tile.dtype, low, high):
        launch.statements.append([f"T.cumsum({tile.name}, dim={axis - 2}{reverse})"])
        exact = tile.exact and tile.dtype in INTEGERS
        launch.know(tile, Number("", tile.dtype, low, high, exact), tile.loose)


def reducer(launch: Launch) -> None:
    """Partial results of threads, put together at the end."""
    tile = launch.full()
    if tile.dtype in STORED_FLOATS:
        return
    letter = launch.random.choice("MN")
    other = "N" if letter == "M" else "M"
    wide = "float32" if tile.dtype in FLOATS else "int32"
    count = launch.shape.tile[other]
    if not fits(wide, tile.low * count, tile.high * count) or tile.dtype in ("float64", "int64"):
        return
    if tile.dtype == "uint32":
        return
    name = launch.fresh("r")
    variable = {"M": "i", "N": "j"}[letter]
    target = launch.tile(letter, wide, "fragment")
    launch.statements.append(
        [
            f'{name} = T.alloc_reducer((block_{letter},), "{wide}", op="sum")',
            f"T.clear({name})",
            *launch.loop("MN", [f"{name}[{variable}] += {launch.at(tile)}"]),
            f"T.finalize_reducer({name})",
            f"T.copy({name}, {target.name})",
        ]
    )
    low, high = min(tile.low * count, tile.low), max(tile.high * count, tile.high)
    launch.know(target, Number("", wide, low, high, wide == "int32"), tile.loose)


def exchange(launch: Launch) -> None:
    """Threads hand a value to a neighbour of their warp, and the vector goes back to shared memory."""
    if launch.shape.threads % 64:
        return
    known = [
        tile
        for dims in "MN"
        for tile in launch.defined(dims, scope="shared")
        if tile.dtype in ("int32", "float32", "uint32")
    ]
    if not known:
        return
    tile = launch.random.choice(known)
    dims = tile.dims
    if launch.shape.tile[dims] > launch.shape.threads:
        return
    target = launch.tile(dims, tile.dtype, "shared")
    step = launch.random.choice((1, 2, 3, 7, 16, 31))
    name, tx = f"w{len(launch.tiles)}", f"tx{len(launch.tiles)}"
    launch.statements.append(
        [
            f"{tx} = T.get_thread_binding()",
            f"{name} = T.shfl_xor({tile.name}[{tx} % block_{dims}], {step})",
            f"if {tx} < block_{dims}:",
            f"    {target.name}[{tx}] = {name}",
        ]
    )
    launch.know(target, tile)


def vectors(launch: Launch) -> None:
    """Elements walked by few iterations, each with a loop of neighbours."""
    tile = launch.full()
    columns = launch.shape.tile["N"]
    if tile.scope != "shared" or tile.dtype in STORED_FLOATS:
        return
    width = launch.random.choice([w for w in (1, 2, 4, 8) if columns % w == 0])
    dtype = tile.dtype
    target = launch.tile("MN", dtype, "shared")
    loop = launch.random.choice(("T.vectorized", "T.serial", "T.unroll"))
    launch.statements.append(
        [
            f"for i, j in T.Parallel(block_M, block_N // {width}):",
            f"    for v in {loop}({width}):",
            f"        {target.name}[i, j * {width} + v] = {tile.name}[i, j * {width} + v]",
        ]
    )
    launch.know(target, tile)


def some_blocks(launch: Launch) -> None:
    """Several tile statements of some blocks only, a tile changed under a condition."""
    tile = launch.full()
    if tile.dtype in STORED_FLOATS:
        return
    source = launch.input("MN")
    if source.dtype in STORED_FLOATS:
        return
    value = stored(
        launch.random, Number("", source.dtype, source.low, source.high, source.exact), tile.dtype
    )
    if value is None or not fits(tile.dtype, source.low, source.high) or value.text:
        return
    other = launch.tile("MN", tile.dtype)
    condition = launch.random.choice(("bx > 0", "by % 2 == 0", "bx == by", "bx + by < 2"))
    launch.statements.append(
        [
            f"if {condition}:",
            f"    T.copy({launch.corner(source)}, {other.name})",
            f"    T.copy({other.name}, {tile.name})",
        ]
    )
    tile.low, tile.high = min(tile.low, source.low, 0), max(tile.high, source.high, 0)
    tile.exact = tile.exact and source.exact


MORE: tuple[tuple[int, Callable[[Launch], None]], ...] = (
    (2, second_product),
    (2, weighted_rows),
    (1, online),
    (1, histogram),
    (1, rows_in_turn),
    (1, bits),
    (1, scan_of_most),
    (1, reducer),
    (1, exchange),
    (1, vectors),
    (1, some_blocks),
)
# Those for targets without threads.
WHOLE_TILES = (second_product, weighted_rows, online, rows_in_turn, some_blocks)
