"""A verdict names the clause that is broken: one about crashes only if there was a crash."""

import pytest

from conformance.contract.trace import Event, Trace
from conformance.judging.explain import CLAUSES
from conformance.judging.judge import judge
from conformance.judging.oracles import named

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
