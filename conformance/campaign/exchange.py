"""One request as the target gets it, and its answer as a trace records it."""

from conformance.contract import tagged_block
from conformance.contract import trace as traces
from conformance.contract.printable import printable
from conformance.contract.trace import Event
from conformance.targets.base import Message, TargetFailure
from conformance.targets.process import ProcessTarget

# Fields of a response that a trace records; of which operation. Others are the target's own.
KEPT = ("ok", "error", "message")
KEPT_OF = {
    "create": ("holds", "snapshots"),
    "scrub": ("problems",),
    "settle": ("problems",),
    "stats": ("counters",),
}
LONGEST_MESSAGE = 300  # characters
TRACE_NUMBER = 0xFFFF_FFFF_FFFF_FFFF


def encoded(event: Event, hello: Message, number: int, seed: int) -> Message:
    """Return the request of an event as the target gets it: with data unless it takes tags."""
    message = {
        key: value
        for key, value in event.items()
        if key not in ("result", "called", "answered", "overlaps")
    }
    if hello.get("payload") != "tags" and event["op"] == "write":
        tags = message.pop("tags")
        message["data"] = b"".join(
            tagged_block.encode(tag, lba, number, hello["block_size"], seed & TRACE_NUMBER)
            for lba, tag in enumerate(tags, event["lba"])
        )
    return message


def record(event: Event, response: Message, hello: Message, seed: int) -> None:
    """Put the response into the event. Raises TargetFailure if it is not a valid answer."""
    if response.get("events"):
        event["events"] = inside(response["events"])
    if event["op"] == "crash" and "left" in response:
        event["left"] = printable(str(response["left"]))
    kept = (*KEPT, *KEPT_OF.get(event["op"], ()))
    tags = hello.get("payload") == "tags"
    read = event["op"] == "read" and response.get("ok") is True
    if read:
        kept = (*kept, "tags" if tags else "data")
    response = {key: response[key] for key in kept if response.get(key) is not None}
    decoded = read and not tags
    if decoded:  # its tags need no checking
        response = _decoded(response, event, hello["block_size"], seed & TRACE_NUMBER)
    wrong = traces.check_response(response, "ok" if decoded else event["op"])
    if wrong:
        said = str(response.get("message", ""))[:LONGEST_MESSAGE]
        code = response.get("error")
        if wrong.startswith("error") and response["ok"] is False and isinstance(code, str):
            # What the target says comes first, and why that is no answer after it.
            text = f"{code[:LONGEST_MESSAGE]!r}" + (said and f": {said}")
            raise TargetFailure("protocol", f"{text} (this error has no code in the contract)")
        raise TargetFailure(
            "protocol", f"invalid answer: {wrong}" + (said and f"; it says: {said}")
        )
    if read and len(response["tags"]) != event["count"]:
        raise TargetFailure(
            "protocol", f"it returned {len(response['tags'])} tags for {event['count']} blocks"
        )
    if "message" in response:
        response["message"] = printable(response["message"][:LONGEST_MESSAGE])
    event["result"] = response


def inside(events: object) -> list[Event]:
    """Return the events inside the target.

    Raises TargetFailure if they are not a list of events.
    """
    if not isinstance(events, list):
        raise TargetFailure(
            "protocol", f"invalid answer: events must be an array, is {events!r:.60}"
        )
    for one in events:
        if not isinstance(one, dict) or not isinstance(one.get("event"), str):
            raise TargetFailure("protocol", f"invalid answer: events holds {one!r:.60}")
        if wrong := traces.check_inside(one):
            raise TargetFailure("protocol", f"invalid answer: events: {wrong}")
    return events


def described(failure: TargetFailure, target: object) -> Message:
    """Return the failure as a trace records it, with what a process printed on stderr last."""
    output = failure.output
    if not output and isinstance(target, ProcessTarget):
        output = target.last_words()
    return {
        "kind": failure.kind,
        "message": printable(failure.message, ""),
        "output": printable(output),
    }


def _decoded(response: Message, event: Event, block_size: int, trace_number: int) -> Message:
    """Return the response to a read, with tags in place of data."""
    data, length = response.get("data"), event["count"] * block_size
    if not isinstance(data, (bytes, bytearray, memoryview)):
        raise TargetFailure("protocol", "its answer to read has no data")
    if len(data) != length:
        raise TargetFailure(
            "protocol", f"it returned {len(data)} bytes for {event['count']} blocks of {block_size}"
        )
    tags, found = [], []
    for lba in range(event["lba"], event["lba"] + event["count"]):
        at = (lba - event["lba"]) * block_size
        tag = tagged_block.decode(bytes(data[at : at + block_size]), lba, trace_number)
        if isinstance(tag, tagged_block.Damage):
            found.append({"lba": lba, "kind": tag.kind, "detail": tag.detail})
            tag = -1
        tags.append(tag)
    decoded = {key: value for key, value in response.items() if key != "data"} | {"tags": tags}
    return decoded | {"found": found} if found else decoded
