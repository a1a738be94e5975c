"""What becomes of devices, followed by TLC through Redundancy: honest histories, changed events,
planted bugs.
"""

import copy
from collections.abc import Callable
from pathlib import Path

import pytest

from conformance.contract.trace import Trace
from conformance.judging import oracles
from conformance.judging.judge import judge
from conformance.judging.oracles import inner, legs
from crosscheck import inner_traces
from modelcheck.checkers.tlc import SPECS
from modelcheck.runs import reached, traces
from support.inner_events import Inside, events, first_rejected

# where it is noticed; what the other bugs of devices do to data or parity is below this level
BUGS = {
    "missed-is-forgotten": {"missed"},
    "partly-rebuilt-is-in-sync": {"members"},
    "returned-without-resync": {"return"},
    "write-skips-resyncing": {"write"},
    "missed-is-cleared": {"missed"},
    "good-one-is-thrown-away": {"resync", "rebuild"},
    "rebuild-without-snapshots": {"missed"},
    "half-built-is-read": {"resync"},
}
Change = Callable[[Trace], object]


@pytest.fixture(scope="module")
def honest() -> list[Trace]:
    return list(inner_traces.histories())


def rejected(batch: list[Trace]) -> list[Inside | None]:
    """Return the first line of each trace that TraceRedundancy does not allow on one leg."""
    followed = [
        (index, lines) for index, trace in enumerate(batch) for lines, _ in legs.lines(trace)
    ]
    found = first_rejected(followed, "TraceRedundancy", "TraceRedundancy")
    return [found.get(index) for index in range(len(batch))]


def dropped(name: str, which: int = 0) -> Change:
    def change(trace: Trace) -> None:
        found, gone = list(events(trace, name))[which]
        found[:] = [inside for inside in found if inside is not gone]

    return change


def other(
    name: str,
    field: str,
    value: Callable[[Inside], object],
    where: Callable[[Inside], bool] = lambda inside: True,
) -> Change:
    """Return a change: another value in a field of the first such event."""

    def change(trace: Trace) -> None:
        _, inside = next(
            pair
            for pair in events(trace, name)
            if where(pair[1]) and value(pair[1]) != pair[1][field]
        )
        inside[field] = value(inside)

    return change


def twice(name: str) -> Change:
    def change(trace: Trace) -> None:
        found, inside = next(events(trace, name))
        found.insert(found.index(inside), inside)

    return change


def earlier_tick(trace: Trace) -> None:
    tick = next(
        operation
        for operation in trace.events
        if operation["op"] == "tick" and operation["seconds"] == 600
    )
    tick["seconds"] = 599


def active_before_the_last_copy(trace: Trace) -> None:
    """Move the event `active` before the copy of the last stripe."""
    found, active = next(events(trace, "active"))
    found.remove(active)
    copying = found
    for some, _ in events(trace, "resync"):
        copying = some
        if some is found:
            break
    last = max(at for at, inside in enumerate(copying) if inside["event"] == "resync")
    copying.insert(last, active)


def forgotten(trace: Trace) -> None:
    """Remove the copy of a segment that lives on. (A node may have died by the time that it
    counts.)"""
    found, gone = next(pair for pair in events(trace, "resync") if capacity(pair[1]))
    found.remove(gone)


def never_stale(trace: Trace) -> None:
    """Report a member that is catching up as active when the disk is opened."""
    for _, inside in events(trace, "members"):
        for member in inside["members"]:
            if member[1] == "stale":
                member[1] = "active"
                return


def read_though_stale(trace: Trace) -> None:
    """Add a read from a member that is back and not yet copied to, of a stripe that it does not
    lack."""
    found, missed = next(events(trace, "missed"))
    spared = min(set(missed["living"]) - set(missed["stripes"]))
    read = {"event": "read", "leg": missed["leg"], "devices": [missed["device"]]}
    found.append(read | {"stripes": [spared]})


def only_absent(inside: Inside) -> object:
    """Report degraded members as absent."""
    return [
        [device, "absent" if state == "degraded" else state] for device, state in inside["members"]
    ]


def onto_a_member(inside: Inside) -> int:
    return int(inside["device"]) + 1


def capacity(inside: Inside) -> bool:
    return bool(inside["leg"] == "capacity")


CHANGES: dict[str, tuple[Change, str]] = {  # what is changed -> where it is noticed
    "a stale component is read": (
        other("read", "devices", lambda read: [1], lambda read: 1 not in read["devices"]),
        "read",
    ),
    "nothing is read, and data comes": (other("read", "devices", lambda read: []), "read"),
    "a rebuild begins before the repair timer has run out": (earlier_tick, "rebuild"),
    "a rebuild begins on a device in use": (other("rebuild", "onto", onto_a_member), "rebuild"),
    "an active component is rebuilt": (
        other("rebuild", "device", lambda rebuild: 1 - rebuild["device"]),
        "rebuild",
    ),
    "resync forgets a stripe": (forgotten, "active"),
    "what was missed is forgotten": (other("missed", "stripes", lambda missed: []), "missed"),
    "a component is active before the last stripe is copied": (
        active_before_the_last_copy,
        "active",
    ),
    "a component is active without a checkpoint": (dropped("checkpoint_commit", 3), "active"),
    "a device returns, and is admitted without resync": (
        other("return", "state", lambda back: "active"),
        "return",
    ),
    "a degraded device returns": (other("fail", "mode", lambda fail: "degraded"), "return"),
    "a device returns that is there": (twice("return"), "return"),
    "a device fails that is gone": (twice("fail"), "fail"),
    "nobody noticed that a device failed": (dropped("fail"), "write"),
    "a write skips a component that is caught up": (
        other("write", "devices", lambda write: write["devices"][1:]),
        "write",
    ),
    "a write reaches a device that is gone": (
        other("write", "devices", lambda write: sorted({1, *write["devices"]})),
        "write",
    ),
    "what is copied comes from the component that lacks it": (
        other("resync", "devices", lambda resync: [resync["device"], *resync["devices"][1:]]),
        "resync",
    ),
    "what is copied comes from too few": (
        other("resync", "devices", lambda resync: resync["devices"][1:]),
        "resync",
    ),
    "another stripe is copied": (
        other("resync", "stripe", lambda resync: resync["stripe"] - 1, capacity),
        "active",
    ),
    "a device is replaced that is active": (
        other("replace", "device", lambda replace: 0, lambda replace: replace["device"] != 0),
        "replace",
    ),
    "a disk opens without one of its spares": (
        other("members", "spares", lambda inside: []),
        "members",
    ),
    "a stale component is read of what it does not lack": (read_though_stale, "read"),
    "a disk opens with a stale component active": (never_stale, "members"),
    "a disk opens and has forgotten a failure on record": (
        other("members", "members", only_absent),
        "members",
    ),
}


def test_histories_of_devices_are_behaviours_of_the_spec(honest: list[Trace]) -> None:
    assert {trace.options["layout"] for trace in honest} == {
        "mirror",
        "raid5-2+1",
        "raid5-4+1",
        "raid6-4+2",
    }
    assert all(len(list(legs.lines(trace))) == 2 for trace in honest)
    assert [
        opinion for opinion in inner.judge(honest) if opinion.at is not None or opinion.unsure
    ] == []


def test_what_the_spec_promises_holds_all_along(honest: list[Trace], tmp_path: Path) -> None:
    """The steps that are no action of Redundancy, and those that stand for several, keep its
    promises too.
    """
    promises = "INVARIANTS InSync NeverStale Recoverable Apart Timed\nPROPERTIES Patient Reusable\n"
    (tmp_path / "checked.cfg").write_text((SPECS / "TraceRedundancy.cfg").read_text() + promises)
    followed = [lines for trace in honest[:2] for lines, _ in legs.lines(trace)]
    matched = traces.follow(followed, "TraceRedundancy", str(tmp_path / "checked"))
    assert matched == [len(lines) - 1 for lines in followed]


def test_histories_reach_all_of_the_judge_that_a_trace_can_reach(honest: list[Trace]) -> None:
    followed = [lines for trace in honest for lines, _ in legs.lines(trace)]
    found = reached.coverage([("TraceRedundancy", followed)], "TraceRedundancy", "Redundancy")
    assert found.share("TraceRedundancy") > 0.95 and found.share("Redundancy") == 1
    assert all(found.unreached.values()) and found.stale == []


def test_changed_events_are_no_behaviour(honest: list[Trace]) -> None:
    changed = []
    for change, _ in CHANGES.values():
        for trace in honest:
            changed.append(copy.deepcopy(trace))
            change(changed[-1])
    found = iter(rejected(changed))
    noticed = {name: [(line := next(found)) and line["event"] for _ in honest] for name in CHANGES}
    assert noticed == {name: [event] * len(honest) for name, (_, event) in CHANGES.items()}


def test_planted_bugs_are_found_inside() -> None:
    batches = {bug: list(inner_traces.histories(f"refmodel:plant={bug}")) for bug in BUGS}
    found = iter(rejected([trace for some in batches.values() for trace in some]))
    assert {
        bug: {(line := next(found)) and line["event"] for _ in some}
        for bug, some in batches.items()
    } == BUGS


def test_a_verdict_names_event_and_clause(honest: list[Trace]) -> None:
    trace = copy.deepcopy(honest[1])
    CHANGES["a device returns, and is admitted without resync"][0](trace)
    at = next(index for index, operation in enumerate(trace.events) if operation["op"] == "return")
    [verdict] = judge([trace], {"model": oracles.named("model"), oracles.INNER: inner.judge})
    assert (verdict.verdict, verdict.kind, verdict.at) == ("fail", "inside", at)
    assert "specs/Redundancy.tla" in verdict.actual and '"event": "return"' in verdict.actual
    assert legs.CLAUSES["return"] in verdict.actual


def test_a_trace_in_which_no_device_fails_is_not_followed() -> None:
    told = [t for t in inner_traces.generated("refmodel:log-structured", 12, ops=1) if t.geometry]
    quiet = [t for t in told if all(event["op"] != "fail" for event in t.events)]
    assert quiet and all(list(legs.lines(trace)) == [] for trace in quiet)
