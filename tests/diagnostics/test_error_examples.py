"""Every code of a program has two examples: the wrong one is told, the right one is transpiled."""

from __future__ import annotations

from pathlib import Path

import pytest
from error_examples import Example, examples, told
from tile2c.transpile.diagnostics.codes import CODES

EXAMPLES = {example.code: example for example in examples()}
# Codes of programs without an example, each with the reason.
UNSHOWN = {
    "T2C230": "the reader of the source tells it first, with T2C111 or T2C202",
    "T2C505": "reductions of parts are made whole first",
    "T2C507": "every type of an atomic has an operation or a loop of compare-and-swap",
    "T2C513": "the types of products are checked before a target is asked",
    "T2C532": "loops over run-time sizes are cut into tiles first",
    "T2C535": "one element is spread over tiles and rows alike",
    "T2C537": "tiles of truth values are told with T2C522",
    "T2C545": "parts of one column are copied element by element",
}


@pytest.mark.parametrize("code", sorted(EXAMPLES))
def test_the_wrong_one_is_told_and_the_right_one_is_not(code: str, tmp_path: Path) -> None:
    example: Example = EXAMPLES[code]
    wrong = told(example.wrong, example, tmp_path)
    assert code in {item for item, _, _ in wrong}, wrong
    right = told(example.right, example, tmp_path)
    assert not [item for item in right if item[0] == code or item[1] == "error"], right


def test_every_code_of_a_program_has_an_example() -> None:
    codes = {code for code in CODES if code[3] in "12345"}
    assert codes - EXAMPLES.keys() - UNSHOWN.keys() - COMMANDS == set()
    assert UNSHOWN.keys() & EXAMPLES.keys() == set()


# Of the file itself, not of what it says: tests/read and tests/attack have them.
COMMANDS = {"T2C102", "T2C103", "T2C104"}
