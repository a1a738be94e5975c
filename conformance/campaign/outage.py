"""What is not sent while data is lost, because more devices failed than are tolerated.

A program lets such devices return and settle, and goes on. A target may refuse this `settle`: what
it has lost may be lost for good. Then it has to refuse changes, too, which the contract allows of
reads only. So they are not sent until a `settle` is granted.
"""

from typing import Any

from conformance.contract.model import answer_of
from conformance.contract.trace import Event
from conformance.programs.swarm import BEYOND_TOLERANCE

SENT = (*BEYOND_TOLERANCE, "replace")


class Outage:
    """Whether an outage of a target that says `hello` has lost data, by its answers."""

    def __init__(self, hello: dict[str, Any]) -> None:
        self._tolerates = hello.get("tolerates", 0)
        self._failed: set[int] = set()  # until they are back, and a `settle` was granted
        self._back: set[int] = set()  # of these
        self._lost = False

    def forbids(self, request: dict[str, Any]) -> bool:
        """Return whether the request is not sent now."""
        return self._lost and request["op"] not in SENT

    def note(self, event: Event) -> None:
        """Note a request that has ended."""
        op, answer, device = event["op"], answer_of(event), event.get("device", -1)
        if op == "fail" and answer in ("ok", "cut", "unknown-outcome"):
            self._failed.add(device)
            self._back.discard(device)
        elif op in ("return", "replace") and answer == "ok" and device in self._failed:
            self._back.add(device)
        elif op == "settle":
            if answer == "ok":
                self._failed -= self._back
                self._back.clear()
            self._lost = answer == "data-lost" and len(self._failed) > self._tolerates
