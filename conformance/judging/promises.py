"""What a target promises beyond the contract of the specs: `scrub` finds nothing, and `holds`
blocks fit.

A target that declares `scrub` verifies itself; a problem that it reports while no device is failed
is a failure. A target that declares `holds` (in `hello` or in the answer to `create`) must not
answer `no-space` while all views together hold at most that many different blocks, those of the
request counted besides.
"""

from collections import Counter
from typing import NamedTuple

from conformance.contract import model
from conformance.contract.trace import Event, Trace

CHANGES = ("write", "unmap", "snapshot", "revert")  # the operations that may need space


class Broken(NamedTuple):
    """A promise that was not kept: by which event, the class of failure, and the two sides in
    words.
    """

    at: int
    kind: str
    expected: str
    actual: str


def broken(trace: Trace) -> Broken | None:
    """Return the first promise that the trace does not keep, or None."""
    holds = trace.events[0].get("result") or {}
    most = holds.get("holds", trace.hello.get("holds"))
    suspects = [
        index
        for index, event in enumerate(trace.events)
        if event["op"] == "scrub"
        and (event["result"] or {}).get("problems")
        or most is not None
        and event["op"] in CHANGES
        and (event["result"] or {}).get("error") == "no-space"
    ]
    if not suspects:
        return None
    states, repeats = model.init(trace.hello), _repeats(trace)
    for index, event in enumerate(trace.events[: suspects[-1] + 1]):
        if index in suspects:
            found = _scrubbed(states, event) or _refused(states, event, most, repeats)
            if found:
                return Broken(index, *found)
        states = model.step(states, event)
        if not states:
            return None
    return None


def _scrubbed(states: model.States, event: Event) -> tuple[str, str, str] | None:
    problems = event["result"].get("problems")
    if not problems or any(state.devices.failed or state.devices.lost for state in states):
        return None
    said = "; ".join(problems[:3]) + ("; ..." if len(problems) > 3 else "")
    return "scrub", "no problems: every device is sound", said


def _refused(
    states: model.States, event: Event, most: int | None, repeats: int
) -> tuple[str, str, str] | None:
    """A refusal for want of space. `repeats` is how many blocks the count may miss."""
    if most is None or event["result"].get("error") != "no-space":
        return None
    held = max(map(_held, states)) + repeats + len(event.get("tags", ()))
    if held > most:
        return None
    return (
        "false-no-space",
        f"ok: {held} blocks at most, those of the request included; the target holds {most}",
        f"no-space ({event['result'].get('message', '')})",
    )


def _held(state: model.State) -> int:
    """How many different blocks all views hold."""
    return len({pair for view in (state.live, *state.snaps.values()) for pair in view.items()})


def _repeats(trace: Trace) -> int:
    """How often a tag was written again to the same block: the engine may hold both."""
    written = Counter(
        pair
        for event in trace.events
        if event["op"] == "write"
        for pair in enumerate(event["tags"], event["lba"])
    )
    return sum(times - 1 for times in written.values())
