"""Random histories of operations, with power cuts anywhere, against the contract and the audit."""

from collections import Counter
from pathlib import Path

import pytest

from refmodel.log_structured.audit import audit
from refmodel.log_structured.scrub import scrub
from support.histories import WEIGHTS, History

OVER_FROZEN = ("write", "unmap", "snapshot", "delete", "revert", "checkpoint", "crash")
BETWEEN_STEPS = (*OVER_FROZEN, "cut", "fail", "clean", "settle")


@pytest.mark.parametrize("seed", range(40))
def test_a_random_history_is_what_the_contract_allows(folder: Path, seed: int) -> None:
    history = History(folder, seed)
    for _ in range(150):
        history.step()
    assert history.read_all() == history.content()
    history.disk.settle()
    assert scrub(history.disk).clean and history.read_all() == history.content()
    assert audit(history.disk.state) == []
    history.disk.abandon()


def test_random_histories_have_every_kind_of_operation_and_cut(folder: Path) -> None:
    seen: Counter[str] = Counter()
    for seed in range(16):
        history = History(folder.parent / str(seed), 1000 + seed)
        for _ in range(150):
            history.step()
        seen += history.seen
        history.disk.abandon()
    assert (
        not {*WEIGHTS, "cut", "cut in recovery", "cut and a device gone", "no-space"}
        - {"crash"}
        - seen.keys()
    )
    assert (
        not {f"{op} in {step}" for op in BETWEEN_STEPS for step in ("merge", "nodes")} - seen.keys()
    )
    assert not {f"{op} over a frozen map" for op in OVER_FROZEN} - seen.keys()
