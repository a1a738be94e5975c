"""The promise of spares: after `settle` they replace failed devices.

A target that declares `spares` and `repair_seconds` has so many of its devices in reserve. `settle`
rebuilds on them what was on devices that failed as `degraded`, or that have been absent for
`repair_seconds`. So of n such devices at most n - `spares` are lacking afterwards, whichever of all
devices they are; and a read may not be refused as `data-lost` unless more are lacking than are
tolerated.
"""

import math

from conformance.contract import model
from conformance.contract.trace import Trace

NEVER = math.inf  # seconds, of a device that will not come back


def unreplaced(trace: Trace) -> int | None:
    """Return the index of the first read that was refused as `data-lost` though spares stand in for
    enough of the devices that failed, or None.

    A device that came back, or has a fault, or of which an answer left open what became of it, ends
    the count until all devices have caught up. Where too many were lacking it ends for good.
    """
    spares, timer = trace.hello.get("spares", 0), trace.hello.get("repair_seconds", 0)
    tolerates = trace.hello.get("tolerates", 0)
    away: dict[int, float] = {}  # device that failed -> for how many seconds
    back: set[int] = set()  # of these: returned or replaced
    lacking: float = 0  # devices, at most; NEVER if it is not known how many
    for index, event in enumerate(trace.events if spares else ()):
        op, answer = event["op"], model.answer_of(event)
        if op == "read" and answer == "data-lost" and lacking <= tolerates:
            return index
        if op not in ("fail", "return", "replace", "tick", "settle"):
            continue
        if op in ("return", "replace"):
            back.add(event["device"])
        elif op == "settle" and answer == "ok" and away.keys() <= back:
            away, back, lacking = {}, set(), 0
            continue
        elif op == "fail":
            lacking += 1 if answer == "ok" and event["device"] not in away else NEVER
            lacking += NEVER if "fault" in event else 0
            away[event["device"]] = NEVER if event["mode"] == "degraded" else 0
            back.discard(event["device"])
        elif op == "tick" and answer == "ok":
            away = {device: seconds + event["seconds"] for device, seconds in away.items()}
        elif op == "settle" and answer == "ok" and not back:
            due = sum(seconds >= timer for seconds in away.values())
            if lacking <= tolerates:
                lacking = len(away) - due + max(0, due - spares)
        if back or answer != "ok":
            lacking = NEVER
        if lacking > tolerates and len(away) > tolerates:
            return None
    return None
