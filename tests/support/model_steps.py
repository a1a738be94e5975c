"""Events of a trace, and the first one that the model of the contract does not allow."""

from typing import Any

from conformance.contract import model
from conformance.contract.trace import Event


def hello(profile: str, **more: Any) -> dict[str, Any]:
    return {"crash_profile": profile, "capabilities": []} | more


def run(profile: str, *events: Event, **more: Any) -> int | None:
    """Return the index of the first event that is not allowed after create of 4 blocks, or None."""
    states = model.init(hello(profile, **more))
    for index, event in enumerate([{"op": "create", "blocks": 4, "result": {"ok": True}}, *events]):
        states = model.step(states, event)
        if not states:
            return index
    return None


def op(kind: str, result: str | None = "ok", **fields: Any) -> Event:
    answer: dict[str, Any] | None = (
        None
        if result is None
        else {"ok": True}
        if result == "ok"
        else {"ok": False, "error": result}
    )
    if kind == "read" and result == "ok":
        assert answer is not None
        answer["tags"] = fields.pop("tags")
        fields["count"] = len(answer["tags"])
    return {"op": kind, **fields, "result": answer}
