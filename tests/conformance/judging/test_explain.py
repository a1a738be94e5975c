"""A verdict names the clause that is broken: one about crashes only if there was a crash."""

import pytest

from conformance.contract.trace import Event, Trace
from conformance.judging.explain import CLAUSES
from conformance.judging.judge import judge
from conformance.judging.oracles import named
from conformance.judging.verdict import Verdict, alike

OK = {"ok": True}
HELLO = {
    "block_size": 512,
    "crash_profile": "ack",
    "capabilities": ["snapshot", "delete", "crash", "restart", "fua"],
}
READ: Event = {"op": "read", "lba": 1, "count": 1, "result": {"ok": True, "tags": [0]}}
WRITE: Event = {"op": "write", "lba": 1, "tags": [7], "result": OK}
TAKEN: Event = {"op": "snapshot", "name": "s", "result": OK}
DELETED: Event = {"op": "delete", "name": "s", "result": OK}
GONE: Event = {"op": "delete", "name": "s", "result": {"ok": False, "error": "no-such-snapshot"}}
EXISTS: Event = {"op": "snapshot", "name": "s", "result": {"ok": False, "error": "snapshot-exists"}}


@pytest.mark.parametrize(
    ("before", "answered", "kind", "with_nothing"),
    [
        ([WRITE], READ, "stale", "read"),
        ([{**WRITE, "fua": True}], READ, "stale", "read"),
        ([TAKEN], GONE, "lost-snapshot", "snapshot"),
        ([TAKEN, DELETED], EXISTS, "resurrected-snapshot", "refusal"),
        ([TAKEN, DELETED], DELETED, "resurrected-snapshot", "refusal"),
    ],
)
def test_the_clause_is_about_what_happened_since(
    before: list[Event], answered: Event, kind: str, with_nothing: str
) -> None:
    durably = "fua" if before[-1].get("fua") else "ack"
    for between, clause in (
        ([], with_nothing),
        (["restart"], "restart"),
        (["crash"], durably),
        (["crash", "restart"], durably),
    ):
        opened: list[Event] = [{"op": op, "result": OK} for op in between]
        create: Event = {"op": "create", "blocks": 4, "result": OK}
        events = [create, *before, *opened, answered]
        verdict = judge([Trace(HELLO, events)], {"model": named("model")})[0]
        lost = "lost-acknowledgement" if kind == "stale" and between else kind
        assert (verdict.at, verdict.kind) == (len(events) - 1, lost)
        assert verdict.clause == CLAUSES[clause]


@pytest.mark.parametrize(("profile", "kind"), [("prefix", "not-a-prefix"), ("ack", "half-done")])
def test_blocks_that_never_were_so_together_are_named(profile: str, kind: str) -> None:
    """Of many blocks only the two that contradict each other."""
    hello = {**HELLO, "crash_profile": profile}
    cut = profile == "ack"
    events: list[Event] = [
        {"op": "create", "blocks": 8, "result": OK},
        {"op": "write", "lba": 0, "tags": [1, 2, 3, 4, 5, 6, 7, 8], "result": OK},
        {"op": "flush", "result": OK},
        {"op": "write", "lba": 2, "tags": [9, 10, 11], "result": None if cut else OK},
        {"op": "crash", "result": OK},
        {
            "op": "read",
            "lba": 0,
            "count": 8,
            "result": {"ok": True, "tags": [1, 2, 9, 4, 11, 6, 7, 8]},
        },
    ]
    verdict = judge([Trace(hello, events)], {"model": named("model")})[0]
    assert (verdict.at, verdict.kind) == (5, kind)
    assert verdict.expected == (
        "block 2 of the live disk and block 3 of the live disk as at one moment: "
        "each may be so, but not together"
    )
    assert verdict.actual == (
        "block 2: tag 9 (written by operation 3); block 3: tag 4 (written by operation 1)"
    )


@pytest.mark.parametrize("version", [1, 2])
def test_a_disk_that_is_not_open_for_want_of_devices_is_told_what_to_answer(version: int) -> None:
    """Two failed, and one is tolerated: `crash` and `restart` are answered, and reads refused."""
    fails: list[Event] = [
        {"op": "fail", "device": device, "mode": "absent", "result": OK} for device in (0, 1)
    ]
    refused = {"ok": False, "error": "data-lost", "message": "one device of three"}
    hello = {**HELLO, "devices": 3, "tolerates": 1}
    for op in ("crash", "restart"):
        for failed, expected in (
            (fails[:1], "ok: the disk is open again"),
            (fails, "ok: reads may be refused then, since too many devices have failed"),
        ):
            create: Event = {"op": "create", "blocks": 4, "result": OK}
            events = [create, *failed, {"op": op, "result": refused}]
            if version == 2:  # with two writes in flight together
                events[1:1] = [WRITE, WRITE]
                times = [(0, 1), (2, 4), (3, 5), *((at, at + 1) for at in range(6, 20, 2))]
                events = [
                    {**event, "called": called, "answered": answered}
                    for event, (called, answered) in zip(events, times, strict=False)
                ]
            verdict = judge([Trace(hello, events)], {"model": named("model")})[0]
            assert (verdict.at, verdict.kind) == (len(events) - 1, "unopenable")
            assert verdict.expected == expected
            assert verdict.actual == "data-lost (one device of three)"


@pytest.mark.parametrize("kind", ["not-a-prefix", "half-done"])
def test_blocks_that_do_not_go_together_are_wrong_data(kind: str) -> None:
    """A shrinker may then leave out the power cut: without it a block is wrong by itself."""
    assert alike(Verdict("fail", 1, kind), Verdict("fail", 1, "stale"))
    assert not alike(Verdict("fail", 1, kind), Verdict("fail", 1, "wrong-refusal"))


@pytest.mark.parametrize(
    ("lba", "expected"), [(3, "an answer"), (4, "a refusal with out-of-range")]
)
def test_an_invalid_answer_to_a_read_past_the_end_should_have_been_a_refusal(
    lba: int, expected: str
) -> None:
    failure = {"kind": "protocol", "message": "it returned 0 tags for 1 blocks", "output": ""}
    read: Event = {"op": "read", "lba": lba, "count": 1, "result": None, "failure": failure}
    create: Event = {"op": "create", "blocks": 4, "result": OK}
    verdict = judge([Trace(HELLO, [create, read])], {"model": named("model")})[0]
    assert (verdict.kind, verdict.expected) == ("protocol", expected)
