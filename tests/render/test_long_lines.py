"""Statements longer than a line are broken wherever they can be."""

from __future__ import annotations

from tile2c.transpile.render.long_lines import break_formula

PAIR = "at_most(at_least(packed_pair(sums[0][n_of_tile][{a}], sums[0][n_of_tile][{b}]), -1.f), 3.f)"


def test_a_line_that_begins_with_the_end_of_a_long_argument() -> None:
    pairs = ", ".join(PAIR.format(a=a, b=a + 1) for a in (0, 2, 4, 6))
    text = f"store_matrices(&tile_of_results[col / 64][row][tile_col(row, col % 64)], {pairs});"
    lines = break_formula(text, 80).split("\n")
    assert max(map(len, lines)) <= 80
    assert " ".join(line.strip() for line in lines) == text
    assert sum(line.strip().startswith("at_most(") for line in lines) == 4
