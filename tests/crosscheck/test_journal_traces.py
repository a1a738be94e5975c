"""The engine's log, checkpoint slots and members, followed by TLC through MirroredLog: honest
histories, changed events, planted bugs.
"""

import copy
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from conformance import targets
from conformance.campaign.driver import Bench
from conformance.contract.trace import Trace
from conformance.judging.oracles import inner, journal
from crosscheck import inner_traces
from modelcheck.checkers.tlc import SPECS
from refmodel.array.layout import LAYOUTS
from support.inner_events import Inside, events, first_rejected

Request = dict[str, Any]
Change = Callable[[Trace], object]

LOG_BYTES = 12288  # small, so that records come into the place of older ones
BUGS = {  # where it is noticed
    "acknowledged-after-one-mirror": {"append"},
    "acknowledged-before-flush": {"submit"},
    "append-behind-torn-tail": {"append"},
    "good-one-is-thrown-away": {"active"},
    "partly-rebuilt-is-in-sync": {"active"},
    "returned-without-resync": {"return"},
    "sequence-starts-again": {"submit"},
    "torn-record-accepted": {"found"},
}


def program(layout: str) -> Iterator[Request]:
    """Too few devices, and openings that find only who is not current; power cuts at each write of
    a record and of recovery; then all that may become of devices.
    """
    tags = iter(range(1000, 2000))

    def write(lba: int, count: int = 1, **more: object) -> Request:
        return {"op": "write", "lba": lba, "tags": [next(tags) for _ in range(count)], **more}

    def device(op: str, number: int) -> Request:
        return {"op": op, "device": number} | ({"mode": "absent"} if op == "fail" else {})

    _, m = LAYOUTS[layout]
    mirrors, crash = range(m + 1), {"op": "crash"}
    create, *history = ({**request, "cut": None} for request in inner_traces.history(layout))
    yield from (create, write(0, 3), device("fail", 0), write(3))
    yield from (device("fail", number) for number in mirrors[1:])
    yield from (crash, device("return", 0), {"op": "restart"})
    yield from (device("return", number) for number in mirrors[1:])
    yield from (write(4), {"op": "settle"}, write(5), {"op": "restart"}, write(6), crash)
    for seed in range(16):
        yield write(seed % 8, 1 + seed % 3, cut={"after": 1 + seed % 4, "seed": seed})
        if seed % 3 == 0:
            yield crash | {"cut": {"after": 1 + seed // 3, "seed": seed}}
        yield crash
        yield write(seed % 8, 2)
    for after in range(1, 13):  # of each write that was not flushed one sector is kept
        yield from (write(9, cut={"after": after, "seed": 0}), crash | {"kept": [1] * 9}, write(8))
    yield from (*history, write(7), crash)


def driven(target: str = "refmodel", layouts: Sequence[str] = tuple(LAYOUTS)) -> list[Trace]:
    """Return the traces of the program on each of the layouts."""
    bench = Bench(targets.resolve(target))
    options = inner_traces.OPTIONS | {"log_bytes": LOG_BYTES}
    try:
        return [
            bench.drive(
                [
                    {key: value for key, value in request.items() if value is not None}
                    for request in program(layout)
                ],
                number,
                options | {"layout": layout},
            )
            for number, layout in enumerate(layouts)
        ]
    finally:
        bench.clear()


@pytest.fixture(scope="module")
def honest() -> list[Trace]:
    return driven()


def rejected(batch: list[Trace], config: str = "TraceMirroredLog") -> list[Inside | None]:
    """Return the first line of each trace that TraceMirroredLog does not allow."""
    together = defaultdict(list)
    for index, trace in enumerate(batch):
        for lines, _ in journal.lines(trace):
            together[journal.shape(lines[0])].append((index, lines))
    found: dict[int, Inside] = {}
    for some in together.values():
        found |= first_rejected(some, "TraceMirroredLog", config)
    return [found.get(index) for index in range(len(batch))]


def other(name: str, field: str, value: Callable[[Any], object], which: int = 3) -> Change:
    """Return a change: another value in a field of one of the events. The first events are of an
    empty disk, so a later one is taken."""

    def change(trace: Trace) -> None:
        some = [one for _, one in events(trace, name) if value(one[field]) != one[field]]
        some[min(which, len(some) - 1)][field] = value(some[min(which, len(some) - 1)][field])

    return change


def overlooked(trace: Trace) -> None:
    """Recovery ends before the last record that it found."""
    found, gone = next(
        (some, one)
        for some, one in events(trace, "found")
        if some.index(one) + 3 < len(some) and some[-1]["event"] != "found"
        if [after["event"] for after in some[some.index(one) :]].count("found") == 1
    )
    found.remove(gone)


def opened_with_too_few(trace: Trace) -> None:
    """Report the members in a place where the disk was not opened."""
    at = refused(trace)
    before = [one for event in trace.events[:at] for one in event.get("events", ())]
    members = [one for one in before if one["event"] == "members"][-1]
    trace.events[at]["events"] = [{**members, "term": members["term"] + 5}]


def not_opened(trace: Trace) -> None:
    """Remove all events of the last power cut: the disk stays closed."""
    last = [event for event in trace.events if event["op"] == "crash"][-1]
    last["events"] = []


def refused(trace: Trace) -> int:
    """Return the operation after which the disk was closed, because no current mirror was there."""
    return [
        index
        for index, event in enumerate(trace.events)
        if event["op"] == "restart" and not event.get("events")
    ][-1]


def shorter_log(trace: Trace) -> None:
    assert trace.geometry is not None
    trace.geometry["log"] = LOG_BYTES // 4


CHANGES: dict[str, tuple[Change, str]] = {  # what is changed -> where it is noticed
    "a record is on one mirror": (other("append", "devices", lambda all: all[:1]), "append"),
    "a record begins elsewhere": (other("append", "position", lambda at: at + 512), "append"),
    "a record is longer than the log has room": (shorter_log, "append"),
    "a record is of another generation": (other("submit", "generation", lambda g: g - 1), "submit"),
    "a record says that less was flushed": (other("submit", "flushed", lambda f: f - 1), "submit"),
    "more was flushed than was written": (
        other("log_append", "sequence", lambda sequence: sequence + 1),
        "log_append",
    ),
    "an older checkpoint is loaded": (other("load", "number", lambda number: number - 1), "load"),
    "recovery overlooks a record": (overlooked, "recover"),
    "recovery takes a record that no mirror has whole": (
        other("found", "devices", lambda all: []),
        "found",
    ),
    "recovery takes a record of another generation": (
        other("found", "generation", lambda generation: generation + 1),
        "found",
    ),
    "a term is used twice": (other("members", "term", lambda term: max(0, term - 1)), "open"),
    "the disk opens without a current mirror": (opened_with_too_few, "open"),
    "the disk does not open, though all are there": (not_opened, "shut"),
    "who was away is current": (other("return", "state", lambda state: "active", 0), "return"),
    "a checkpoint counts that was not written": (
        other("checkpoint_commit", "number", lambda number: number + 1),
        "checkpoint_commit",
    ),
}


def test_the_engine_is_a_behaviour_of_mirrored_log(honest: list[Trace]) -> None:
    assert [len(list(journal.lines(trace))) for trace in honest] == [1] * len(LAYOUTS)
    assert all(refused(trace) > 0 for trace in honest)
    told = {
        line["event"] for trace in honest for lines, _ in journal.lines(trace) for line in lines[1:]
    }
    assert told >= journal.CLAUSES.keys()
    assert rejected(honest) == [None] * len(honest)


def test_what_the_spec_promises_holds_all_along(honest: list[Trace], tmp_path: Path) -> None:
    """The steps that are no action of MirroredLog keep its promises too."""
    promises = (
        "INVARIANTS Remembered Mirrored RecordHeld Unharmed\nPROPERTIES Faithful NotSilently\n"
    )
    (tmp_path / "checked.cfg").write_text((SPECS / "TraceMirroredLog.cfg").read_text() + promises)
    assert rejected(honest[:1], str(tmp_path / "checked")) == [None]


def test_changed_events_are_no_behaviour(honest: list[Trace]) -> None:
    changed = []
    for number, (change, _) in enumerate(CHANGES.values()):
        changed.append(copy.deepcopy(honest[number % len(honest)]))
        change(changed[-1])
    noticed = [line and line["event"] for line in rejected(changed)]
    expected = {name: event for name, (_, event) in CHANGES.items()}
    assert dict(zip(CHANGES, noticed, strict=True)) == expected


def test_planted_bugs_are_found_in_the_journal() -> None:
    batches = {bug: driven(f"refmodel:plant={bug}", ("mirror",)) for bug in BUGS}
    found = iter(rejected([trace for some in batches.values() for trace in some]))
    assert {
        bug: {(line := next(found)) and line["event"] for _ in some}
        for bug, some in batches.items()
    } == BUGS


def test_a_verdict_names_the_clause(honest: list[Trace]) -> None:
    trace = copy.deepcopy(honest[0])
    del trace.events[10:]
    CHANGES["a record is on one mirror"][0](trace)
    [opinion] = inner.judge([trace])
    assert opinion.at is not None and "specs/MirroredLog.tla" in opinion.inside
    assert journal.CLAUSES["append"] in opinion.inside


def test_the_log_of_faulty_media_is_not_followed(honest: list[Trace]) -> None:
    trace = copy.deepcopy(honest[0])
    trace.options["faults"] = "bit-rot"
    assert list(journal.lines(trace)) == []
    trace.hello["faults"] = ["bit-rot"]  # on request: none came
    assert list(journal.lines(trace)) == list(journal.lines(honest[0]))
    fault = {
        "op": "fail",
        "device": 0,
        "mode": "degraded",
        "fault": "bit-rot",
        "result": {"ok": True},
    }
    trace.events.append(fault)
    assert list(journal.lines(trace)) == []
