"""With one request in flight, first come first served, the engines say what they always said.

one_in_flight.json has the hashes of dialogues, in the order of their seeds, recorded before
requests could overlap. A change that is meant to change answers or events records them anew:

    python tests/support/dialogues.py 0 150 --record
"""

import json
from pathlib import Path

import pytest

from support.dialogues import RECORDED, digest

HASHES = json.loads(RECORDED.read_text(encoding="utf-8"))


@pytest.mark.parametrize("seed", range(len(HASHES)))
def test_a_dialogue_is_as_it_was(tmp_path: Path, seed: int) -> None:
    assert digest(seed, tmp_path) == HASHES[seed]


def test_the_hash_is_of_all_that_was_said(tmp_path: Path) -> None:
    assert len(set(HASHES)) == len(HASHES)
