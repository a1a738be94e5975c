"""The promise of `outages_end`: devices that were absent come back with all that they had.

While more devices have failed than a target tolerates, it may refuse nearly everything. But once
each of them has returned, nothing is missing. So a target that declares `outages_end` may not
refuse `settle` as `data-lost` then. Others may: an array may need an operator after that.
"""

from conformance.contract import model
from conformance.contract.trace import Trace


def unended(trace: Trace) -> int | None:
    """Return the index of the first `settle` that was refused as `data-lost` although no device
    was away, or None.

    A device that failed is back once its `return` was answered ok. After a fault, or where a device
    failed for good or was replaced, too little may be left, until all devices have caught up. If a
    device was replaced while too many had failed, it ends for good.
    """
    tolerates = trace.hello.get("tolerates", 0)
    away: set[int] = set()  # devices that failed, and are not known to be back
    back: set[int] = set()  # those that are back, and may not have caught up
    whole = True  # whether the devices that are not away have together all that there was
    for index, event in enumerate(trace.events if trace.hello.get("outages_end") else ()):
        op, answer, device = event["op"], model.answer_of(event), event.get("device", -1)
        if op == "settle" and answer == "data-lost" and whole and back and not away:
            return index
        if op == "fail":
            away.add(device)
            back.discard(device)
            whole = whole and event["mode"] == "absent" and "fault" not in event
        elif op == "replace" and answer in ("ok", "cut", "unknown-outcome"):
            whole = False
            if len({*away, *back, device}) > tolerates:
                return None
            if answer == "ok":
                away.discard(device)
            back.add(device)
        elif op == "return" and answer == "ok" and device in away:
            away.discard(device)
            back.add(device)
        elif op == "settle" and answer == "ok":
            back.clear()
            whole = whole or not away
    return None
