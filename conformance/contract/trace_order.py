"""The order of a trace: which event may come after which, whatever the target answered."""

from typing import Any

Event = dict[str, Any]

# The operations that may be in flight together (version 2); every other one is sent alone.
OVERLAPPING = frozenset(["read", "write", "unmap", "flush", "snapshot", "delete", "revert"])


def follows(before: list[Event], event: Event, hello: dict[str, Any]) -> None:
    """Raise ValueError unless the event may come next, whatever the target answered."""
    if (event["op"] == "create") != (not before):
        raise ValueError("the first operation, and only the first, is create")
    if event["op"] == "crash" and hello["crash_profile"] is None:
        raise ValueError(
            "a crash, but hello promises nothing about crashes (crash_profile is null)"
        )
    if ("called" in event) != ("answered" in event):
        raise ValueError("called and answered stand together")
    if before and ("called" in event) != ("called" in before[0]):
        raise ValueError("either all events have called and answered, or none has")
    if "called" in event:
        _follows_in_time(before, event)
    elif before and before[-1]["result"] is None and event["op"] != "crash":
        raise ValueError(
            "the operation before was cut short (result is null): only crash may follow"
        )
    if event["op"] == "create" and event["result"] is None and "failure" not in event:
        raise ValueError("create cannot be cut short")
    result = event["result"]
    if (
        event["op"] == "read"
        and result is not None
        and result["ok"]
        and len(result["tags"]) != event["count"]
    ):
        raise ValueError(
            f"result.tags must be {event['count']} tags (count), is {len(result['tags'])}"
        )
    if "failure" in event and result is not None:
        raise ValueError("a failure of the target, and yet a result")


def happens(before: list[Event], inside: Event, events: list[Event]) -> None:
    """Raise ValueError unless a line of what happened inside may come next."""
    if not events or "called" not in events[0]:
        raise ValueError("a line of what happened inside stands behind create, in version 2")
    if before and inside["at"] < before[-1]["at"]:
        raise ValueError("what happened inside stands in its order")


def _follows_in_time(before: list[Event], event: Event) -> None:
    """Raise ValueError unless the positions of the calls grow, and answers come after calls."""
    called, answered = event["called"], event["answered"]
    if type(called) is not int or not (answered is None or type(answered) is int):
        raise ValueError("called must be an integer, answered an integer or null")
    if before and called <= before[-1]["called"] or answered is not None and answered <= called:
        raise ValueError("events stand in the order of their calls, and answers come after calls")
    if (answered is None) != (event["result"] is None and "failure" not in event):
        raise ValueError("a request has a result if and only if it was answered")
    for earlier in reversed(before):
        if earlier["answered"] is None or earlier["answered"] > called:
            _may_be_in_flight(earlier, event)
        if earlier["op"] not in OVERLAPPING:
            break


def _may_be_in_flight(earlier: Event, event: Event) -> None:
    """Raise ValueError unless `earlier` may be in flight when `event` is called."""
    if earlier["op"] not in OVERLAPPING and earlier["answered"] is not None:
        raise ValueError(f"nothing is called while {earlier['op']} is in flight")
    if event["op"] == "crash":
        if (earlier["answered"] or 0) > (event["answered"] or earlier["answered"] or 0):
            raise ValueError("a request is answered after the power cut that ended it")
    elif event["op"] not in OVERLAPPING:
        raise ValueError(f"{event['op']} is called while requests are in flight")
