"""Traces: the dialogue with a target, recorded as JSON Lines (trace.schema.json), and reading them
safely.

It has more than 400 lines because it is the one place that knows the fields of an event.
"""

import json
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import fastjsonschema

from conformance.contract.printable import one_word
from conformance.contract.trace_order import OVERLAPPING, Event, follows, happens
from refmodel.core.whole_file import replacing

__all__ = ["OVERLAPPING", "BadTrace", "Event", "Passed", "Trace"]

# Option of a disk that cannot be: the name of the option for which `create` has to refuse it.
IMPOSSIBLE = "impossible"
LONGEST_LINE = 8 << 20  # bytes
SHOWN = 16  # blocks of a request, in a line for people
SCHEMA = Path(__file__).with_name("trace.schema.json")


class BadTrace(Exception):
    """Raised for a file that is no trace. The message is one line that starts with file:line."""


class Unreadable(BadTrace):
    """Raised for a file that cannot be read; it may be a trace."""


@dataclass
class Trace:
    """A recorded dialogue. `events[0]` is `create`; `origin` says where it was read from, or is
    empty. `inside` has lines of version 2 of their own: what happened in the engine before the call
    or the answer whose position is their `at`. What is sent alone has its `events` itself. `before`
    is the number of operations before it was shrunk, None if it never was; `unfinished` says that
    shrinking stopped early.
    """

    hello: dict[str, Any]
    events: list[Event]
    seed: int | None = None
    options: dict[str, Any] = field(default_factory=dict)
    origin: str = ""
    inside: list[Event] = field(default_factory=list)
    before: int | None = None
    unfinished: bool = False

    @property
    def operations(self) -> int:
        """Number of operations after the creation of the disk."""
        return sum(event["op"] != "create" for event in self.events)

    @property
    def crashes(self) -> int:
        """The number of power cuts."""
        return sum(event["op"] == "crash" for event in self.events)

    @property
    def geometry(self) -> Event | None:
        """The sizes of an engine that says what happens inside; None of one that does not."""
        return next(
            (
                inside
                for inside in self.events[0].get("events", ())
                if inside.get("event") == "create"
            ),
            None,
        )

    @property
    def program(self) -> list[Event]:
        """The requests alone, as they may be sent again."""
        return self.program_with(left=False)

    def program_with(self, left: bool) -> list[Event]:
        """Return the program; with `left`, each crash says what the power cut left on the disk."""
        recorded = [
            "result",
            "events",
            "failure",
            "called",
            "answered",
            *([] if left else ["left"]),
        ]
        program = [
            {key: value for key, value in event.items() if key not in recorded}
            for event in self.events
        ]
        if self.overlapping:
            for index, request in enumerate(program):
                if "overlaps" not in request and (together := self._together(index)):
                    request["overlaps"] = together
        return program

    @property
    def overlapping(self) -> bool:
        """True if the trace is of version 2: events say when they were called and answered."""
        return any("called" in event for event in self.events)

    @property
    def in_turn(self) -> bool:
        """True if each request was answered before the next was called."""
        last = -1
        for event in self.events:
            if event.get("called", last + 1) < last or event.get("answered", 0) is None:
                return False
            last = event.get("answered", last)
        return True

    def _together(self, index: int) -> int:
        """Return the distance back to the first request that was in flight when this one was
        called.
        """
        event = self.events[index]
        if event["op"] not in OVERLAPPING and event["op"] != "crash":
            return 0
        together = 0
        for before in range(index - 1, -1, -1):
            other = self.events[before]
            if other["op"] not in OVERLAPPING:
                break
            if event["op"] == "crash" and other["answered"] is None and "cut" in other:
                return 0  # it was in flight when the power failed by itself: the crash came later
            if other["answered"] is None or other["answered"] > event["called"]:
                together = index - before
        return together


class Passed(NamedTuple):
    """The length of a trace whose events were dropped because it passed."""

    operations: int
    crashes: int


def _no_constant(name: str) -> None:
    raise ValueError(f"{name} is no number")


def _number(text: str) -> int | float:
    """Return a number with a fraction or an exponent; 2.0 is the integer 2."""
    value = float(text)
    return int(value) if value.is_integer() else value


DECODER = json.JSONDecoder(parse_constant=_no_constant, parse_float=_number)


def write(trace: Trace, path: Path) -> None:
    """Write the trace as JSON Lines. Raises OSError; then what was there is as it was."""
    header = {
        "trace": 2 if trace.overlapping else 1,
        "hello": trace.hello,
        "seed": trace.seed,
        "options": trace.options,
    }
    if trace.before is not None:
        header |= {"before": trace.before, "unfinished": trace.unfinished}
    with replacing(path) as out:
        for line in (header, *_in_order(trace)):
            out.write(_as_json(line) + "\n")


def _in_order(trace: Trace) -> Iterator[Event]:
    """Yield the events in the order of their calls, and where they were, what happened inside."""
    waiting = deque(trace.inside)
    for event in trace.events:
        while waiting and waiting[0]["at"] <= event.get("called", -1):
            yield waiting.popleft()
        yield event
    yield from waiting


def _as_json(value: dict[str, Any]) -> str:
    """Return the value on one line. Values of a target in process that JSON lacks become text."""
    text = json.dumps(value, separators=(",", ":"), ensure_ascii=False, default=repr)
    try:
        text.encode()
    except UnicodeEncodeError:  # half a surrogate pair
        return json.dumps(value, separators=(",", ":"), default=repr)
    return text


def read(path: Path | str) -> Trace:
    """Return the trace in the file.

    Raises BadTrace if it is invalid, Unreadable if it cannot be read.
    """
    path = Path(path)
    hello: dict[str, Any] | None = None
    trace = Trace({}, [], origin=str(path))
    number = 0
    try:
        with path.open("rb") as lines:
            for line in iter(lambda: lines.readline(LONGEST_LINE + 1), b""):
                number += 1
                value = _parsed(line)
                if hello is None:
                    _check("header", value)
                    hello = value["hello"]
                    trace.hello, trace.seed, trace.options = (
                        hello,
                        value.get("seed"),
                        value.get("options", {}),
                    )
                    trace.before = value.get("before")
                    trace.unfinished = value.get("unfinished", False)
                elif value.get("op") == "inside":
                    _check("happened", value)
                    _check_all_inside(value)
                    happens(trace.inside, value, trace.events)
                    trace.inside.append(value)
                else:
                    op = value.get("op")
                    if not isinstance(op, str) or op not in _operations():
                        raise ValueError(f"op must be one of {', '.join(sorted(_operations()))}")
                    _check(op, value)
                    _check_all_inside(value)
                    follows(trace.events, value, hello)
                    trace.events.append(value)
    except OSError as error:
        raise Unreadable(f"{path}: {error.strerror or error}") from None
    except ValueError as error:
        raise BadTrace(f"{path}:{number}: {error}") from None
    if hello is None:
        raise BadTrace(f"{path}:1: empty: a trace starts with a header line")
    if not trace.events:
        raise BadTrace(f"{path}:2: no operations: the first is create")
    return trace


def _parsed(line: bytes) -> dict[str, Any]:
    if len(line) > LONGEST_LINE:
        raise ValueError(f"the line is longer than {LONGEST_LINE >> 20} MiB")
    if not line.endswith(b"\n"):
        raise ValueError("the last line is cut off: it has no end of line")
    try:
        value = DECODER.decode(line.decode("utf-8"))
    except UnicodeDecodeError as error:
        raise ValueError(f"not UTF-8 (byte {error.start + 1})") from None
    except json.JSONDecodeError as error:
        raise ValueError(f"not JSON: {error.msg} (column {error.colno})") from None
    except RecursionError:
        raise ValueError("nested too deeply") from None
    except ValueError as error:  # such as an integer of ten thousand digits
        raise ValueError(f"not JSON that can be read: {str(error).split(';')[0]}") from None
    if not isinstance(value, dict):
        raise ValueError("not a JSON object")
    return value


def _check(definition: str, value: Any) -> None:
    try:
        _checker(definition)(value)
    except fastjsonschema.JsonSchemaValueException as error:
        name = error.name or "data"
        where = name.removeprefix("data.") if name != "data" else "the line"
        if error.rule == "required":
            lacking = sorted(set(error.rule_definition) - set(error.value))
            raise ValueError(f"{where} lacks {', '.join(lacking)}") from None
        shown = repr(error.value)
        shown = shown if len(shown) <= 60 else shown[:60] + "..."
        text = error.message.removeprefix(name).strip()
        if len(text) > 160:
            text = text[:160] + "..."
        raise ValueError(f"{where} {text}, is {shown}") from None


@cache
def _schema() -> dict[str, Any]:
    schema: dict[str, Any] = json.loads(SCHEMA.read_text(encoding="utf-8"))
    return schema


@cache
def _checker(name: str) -> Callable[[Any], Any]:
    """Return the check of one definition of the schema. Raises JsonSchemaValueException."""
    return fastjsonschema.compile(
        {"$ref": f"#/definitions/{name}", "definitions": _schema()["definitions"]}
    )


@cache
def _operations() -> frozenset[str]:
    refs = (ref["$ref"].rpartition("/")[2] for ref in _schema()["oneOf"])
    return frozenset(refs) - {"header", "happened"}


NUMBERS = ("block_size", "devices", "tolerates", "in_flight")  # numbers in a hello
RESULTS = {
    "read": "read_result",
    "create": "create_result",
    "scrub": "scrub_result",
    "settle": "settle_result",
}


def check_response(response: Any, op: str) -> str | None:
    """Return why `response` is not a valid answer to the operation `op`, or None if it is valid."""
    try:
        _check(RESULTS.get(op, "result"), response)
    except ValueError as error:
        return str(error)
    return None


def _check_all_inside(value: Event) -> None:
    if wrong := next(filter(None, map(check_inside, value.get("events", ()))), None):
        raise ValueError(f"events: {wrong}")


def check_inside(inside: Event) -> str | None:
    """Return why an event that happened inside is not a valid event of its name.

    None if it is valid, or if nothing is known of that name.
    """
    try:
        if inside["event"] in _schema()["definitions"]["inside"]:
            _check(f"inside/{inside['event']}", inside)
    except ValueError as error:
        return f"{inside['event']}: {error}"
    return None


def check_hello(hello: Any) -> str | None:
    """Return why `hello` is not a valid answer to hello, or None if it is valid."""
    try:
        _check("hello", hello)
        json.dumps(hello, allow_nan=False, ensure_ascii=False).encode()
    except (ValueError, TypeError, RecursionError) as error:
        return str(error)
    return next(
        (
            f"{key} must be integer, is {hello[key]}"
            for key in NUMBERS
            if type(hello.get(key, 0)) is not int
        ),
        None,
    )


def numbered(events: Iterable[Event]) -> list[str]:
    """Return each event on a line with its index, for people."""
    return [f"{index:4}  {line(event)}" for index, event in enumerate(events)]


def line(event: Event, around: int | None = None) -> str:
    """Return the event in a few words, such as `write 3: 7 8 -> ok`.

    Of many blocks only the first are shown, and those next to LBA `around`."""
    words = [event["op"]]
    if "lba" in event:
        words.append(
            str(event["lba"]) if event["op"] == "write" else f"{event['lba']}+{event['count']}"
        )
    words += [
        one_word(event[key])
        for key in ("name", "blocks", "device", "mode", "fault", "seconds")
        if key in event
    ]
    if event.get("view") is not None:
        words.append(f"of {one_word(event['view'])}")
    if event.get("fua"):
        words.append("durably")
    text = " ".join(words)
    if "tags" in event:
        text += ": " + _shortened(event["tags"], event.get("lba", 0), around)
    if "wait" in event:
        text += f" (waits until {event['wait']} later requests were answered)"
    if "cut" in event and event.get("result") is not None:
        text += f" (answered before device write {event['cut']['after']}: no power cut)"
    elif "cut" in event:
        text += f" (power cut at device write {event['cut']['after']})"
    if event["op"] == "crash" and "kept" in event:
        text += f" (kept of each write: {_masks(event['kept'])})"
    if "failure" in event:
        return f"{text} -> {event['failure']['kind']}"
    if "result" not in event:
        return text
    result = event["result"]
    if result is None:
        return text + " -> cut short"
    if not result["ok"]:
        return f"{text} -> {result['error']}"
    lba = event.get("lba", 0)  # a trace may be damaged
    read = _shortened(result["tags"], lba, around) if "tags" in result else "ok"
    return f"{text} -> {read}"


def _masks(kept: list[int]) -> str:
    """Return what survived of each write that no flush had covered: the sectors that are 1, the
    first at the left.
    """
    return " ".join(f"{mask & (1 << 32) - 1:b}"[::-1] for mask in kept[:24]) + (
        " ..." if len(kept) > 24 else ""
    )


def _shortened(tags: list[int], lba: int, around: int | None) -> str:
    """Return the tags of the blocks from `lba` on: of many the first SHOWN, or fewer of them and
    then those next to LBA `around`, behind the LBA of the first of these."""
    words = ["?" if tag == -1 else str(tag) for tag in tags]
    if len(words) <= SHOWN:
        return " ".join(words)
    parts, near = [" ".join(words[:SHOWN])], -1 if around is None else around - lba
    if SHOWN - 2 <= near < len(words):
        first = min(near - SHOWN // 4, len(words) - SHOWN // 2)
        parts = [" ".join(words[: SHOWN // 4])]
        parts.append(f"{lba + first}: " + " ".join(words[first : first + SHOWN // 2]))
    return f"{' ... '.join(parts)} ... ({len(tags)} blocks)"
