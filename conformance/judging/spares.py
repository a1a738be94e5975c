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

    A device that is back lacks something until it has caught up. After a fault, or where an answer
    left open what became of a device, it is not known what is lacking until all devices have caught
    up. Where too many were lacking it ends for good.
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
        if answer not in ("ok", "cut", "unknown-outcome"):
            continue
        device: int = event.get("device", -1)
        if op == "fail" or op == "replace" and device not in away:
            lacking += device not in away or device in back
            away[device] = NEVER if op == "replace" or event["mode"] == "degraded" else 0
            lacking = lacking if lacking == NEVER else min(lacking, len(away))
            back.discard(device)
        if "fault" in event or answer != "ok" and op in ("fail", "return", "replace"):
            lacking = NEVER
        elif op in ("return", "replace"):
            back.add(device)
        elif op == "tick" and answer == "ok":
            away = {one: seconds + event["seconds"] for one, seconds in away.items()}
        elif op == "settle" and answer == "ok":
            away = {one: seconds for one, seconds in away.items() if one not in back}
            back = set()
            due = sum(seconds >= timer for seconds in away.values())
            if lacking <= tolerates or not away:
                lacking = len(away) - due + max(0, due - spares)
        if lacking > tolerates and len(away) > tolerates:
            return None
    return None
