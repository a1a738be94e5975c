"""Tests made of the contract: TLC's steps judge what an engine answers, and what traces reach is
counted.
"""

from collections.abc import Iterator
from dataclasses import replace

import pytest

from conformance.contract.trace import Event
from crosscheck import contract_behaviours, contract_tests
from crosscheck.contract_behaviours import Contract
from crosscheck.contract_tests import SERIES
from modelcheck.runs import reached

OK = {"ok": True}


@pytest.fixture(scope="module")
def ack() -> Iterator[Contract]:
    yield contract_behaviours.load("ack")


def test_the_contract_is_what_tlc_prints(ack: Contract) -> None:
    assert len(ack.states) == 120  # as TLC counts them
    assert len(ack.requests()) == 51
    assert {
        ("write", "no-space"),
        ("crash", "cut"),
        ("snapshot", "snapshot-exists"),
    } <= ack.outcomes()
    assert ("delete", "no-space") not in ack.outcomes()


def test_an_answer_that_the_contract_does_not_give_is_found(ack: Contract) -> None:
    write = {"op": "write", "lba": 0, "tags": [1, 0], "result": OK}
    snapshot = {"op": "snapshot", "name": "s", "result": OK}

    def look(*tags: int) -> Event:
        return {
            "op": "read",
            "lba": 0,
            "count": 2,
            "view": "s",
            "result": {"ok": True, "tags": list(tags)},
        }

    assert ack.follow([write, snapshot, look(1, 0)]) is None
    assert ack.follow([write, snapshot, look(0, 1)]) == (2, ["ok [1, 0]", "unknown-outcome"])
    found = ack.follow([write, {"op": "snapshot", "name": "?", "result": OK}])
    assert found is not None and found[0] == 1
    cut = {"op": "unmap", "lba": 0, "count": 1, "result": None}
    crash = {"op": "crash", "result": OK}
    read = {"op": "read", "lba": 0, "count": 2, "result": {"ok": True, "tags": [0, 0]}}
    assert ack.follow([write, cut, crash, read]) is None
    found = ack.follow([write, cut, crash, read | {"result": {"ok": True, "tags": [0, 1]}}])
    assert found is not None and found[0] == 3


def test_the_engine_passes_and_one_that_forgets_does_not(ack: Contract) -> None:
    short = replace(SERIES[1], depth=1)
    sound = contract_tests.replay(short, ack)
    assert sound.tests == 117 and not sound.failures and sound.outcomes["write", "cut"]
    forgetful = contract_tests.replay(
        replace(short, depth=2, options={"profile": "prefix"}), ack, "model", 7, 20
    )
    assert any("may only be answered ok [" in line for line in forgetful.failures)


def test_every_path_is_a_test(ack: Contract) -> None:
    for series, count in zip(SERIES, (33**3, 117**2, 117**2), strict=False):
        assert sum(1 for _ in contract_tests.programs(ack.requests(), series)) == count


def test_what_no_trace_reaches_is_listed() -> None:
    hello = {"trace": 1, "hello": {"crash_profile": "ack", "capabilities": []}}
    lines = [
        hello,
        {"op": "create", "blocks": 1, "result": OK},
        {"op": "write", "lba": 0, "tags": [1], "result": OK},
    ]
    found = reached.coverage([("TraceVirtualDisk-ack", [lines])], "TraceVirtualDisk", "VirtualDisk")
    missed = {statement.text for statement in found.unreached}
    assert {
        "BeyondTolerance",
        "Flush(r)",
        "Reverted(disk, name)",
        "Deleted(disk, name)",
    } - missed == {"Reverted(disk, name)", "Deleted(disk, name)"}
    assert "Write(e.lba, e.tags, r)" not in missed
    assert 0.1 < found.share("TraceVirtualDisk") < 0.7


def test_a_trace_that_is_not_accepted_reaches_nothing() -> None:
    hello = {"trace": 1, "hello": {"crash_profile": "ack", "capabilities": []}}
    lines = [hello, {"op": "create", "blocks": 1, "result": {"ok": False, "error": "no-space"}}]
    with pytest.raises(ValueError, match="does not accept event 1 of a trace"):
        reached.coverage([("TraceVirtualDisk-ack", [lines])], "TraceVirtualDisk", "VirtualDisk")


def test_traces_made_by_hand_are_there() -> None:
    assert [len(contract_tests.by_hand(profile)) for profile in ("ack", "prefix", "block")] == [
        6,
        0,
        5,
    ]
