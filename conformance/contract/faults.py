"""The faults of a request, by the state of the disk: each is the code of a refusal."""

import re
from typing import Any

from conformance.contract.state import State

Event = dict[str, Any]
NAME = re.compile(r"[A-Za-z0-9._-]{1,64}", re.ASCII)

NONE: frozenset[str] = frozenset()
NO_SPACE = frozenset(["no-space"])
DATA_LOST = frozenset(["data-lost"])
OUT_OF_RANGE = frozenset(["out-of-range"])


def out_of_range(state: State, lba: int, count: int) -> frozenset[str]:
    """Return the code for blocks that reach past the end of the disk; none if they do not."""
    return NONE if 0 <= lba < state.size and lba + count <= state.size else OUT_OF_RANGE


def missing(state: State, name: str) -> frozenset[str]:
    """Return the codes for a snapshot that must exist and does not; none if it exists."""
    if name in state.snaps:
        return NONE
    return frozenset(
        ["no-such-snapshot"] if NAME.fullmatch(name) else ["bad-request", "no-such-snapshot"]
    )


def taken(state: State, name: str) -> frozenset[str]:
    """Return the code for the name of a new snapshot; none if it is valid and free."""
    if name in state.snaps:
        return frozenset(["snapshot-exists"])
    return NONE if NAME.fullmatch(name) else frozenset(["bad-request"])


def faults_of(state: State, event: Event) -> frozenset[str]:
    """Return the codes with one of which the request must be refused; none if it must not be."""
    faults, lba = NONE, event.get("lba")
    if lba is not None:
        faults = out_of_range(
            state, lba, len(event["tags"]) if event["op"] == "write" else event["count"]
        )
    match event["op"]:
        case "snapshot":
            return taken(state, event["name"])
        case "delete" | "revert":
            return missing(state, event["name"])
        case "read" if event.get("view") is not None:
            return faults | missing(state, event["view"])
    return faults
