"""The model against VirtualDisk.tla taken literally: every disk and every image spelled out, on a
tiny disk.
"""

import random
from collections.abc import Iterator
from itertools import product

import pytest

from conformance.contract import model
from conformance.contract.trace import Event
from support.model_steps import hello, op, run

SIZE, VALUES, NAMES = 2, (0, 1, 2), ("s", "t")
CODES = ("out-of-range", "no-such-snapshot", "snapshot-exists", "bad-request", "no-space")


Blocks = tuple[int, ...]  # the live disk, or a snapshot
Views = frozenset[tuple[str, Blocks]]
Image = tuple[tuple[frozenset[int], ...], Views]  # for each block what it may hold, and the views
State = tuple[Blocks, Views, frozenset[Image], bool]


class Literal:
    """The specification, one operator after the other. A state is (live, snaps, survivors,
    power).
    """

    def __init__(self, profile: str) -> None:
        self.profile = profile
        self.states: set[State] = set()

    def step(self, event: Event) -> bool:
        if event["op"] == "create":
            live = (0,) * event["blocks"]
            self.states = {(live, frozenset(), frozenset([exactly(live, frozenset())]), True)}
        else:
            self.states = {new for state in self.states for new in self.act(state, event)}
        return bool(self.states)

    def act(self, state: State, event: Event) -> Iterator[State]:
        live, snaps, survivors, power = state
        op, result, named = event["op"], event["result"], dict(snaps)
        r = "cut" if result is None else "ok" if result["ok"] else result["error"]
        name, lba = event.get("name", ""), event.get("lba", -1)
        excuses = {"no-space"} if op in ("write", "unmap", "snapshot", "revert") else set()
        if op == "crash":
            if r == "ok":
                for sets, kept in survivors:
                    for image in product(*sets):
                        yield image, kept, frozenset([exactly(image, kept)]), True
            if r == "cut":
                yield live, snaps, survivors, False
            return
        if not power:
            return
        if op == "clean":
            yield live, snaps, survivors, r != "cut"
            return
        faults, after, kept = set(), live, snaps
        if "lba" in event:
            count = len(event["tags"]) if op == "write" else event["count"]
            if not (0 <= lba < len(live) and 0 <= lba + count - 1 < len(live)):
                faults.add("out-of-range")
        if op == "snapshot":
            faults |= (
                {"bad-request"}
                if name not in NAMES
                else {"snapshot-exists"}
                if name in named
                else set()
            )
        target = name if op in ("delete", "revert") else event.get("view")
        if target is not None:
            faults |= (
                {"bad-request", "no-such-snapshot"}
                if target not in NAMES
                else set()
                if target in named
                else {"no-such-snapshot"}
            )
        if not faults:
            match op:
                case "write":
                    after = live[:lba] + tuple(event["tags"]) + live[lba + len(event["tags"]) :]
                case "unmap":
                    after = live[:lba] + (0,) * event["count"] + live[lba + event["count"] :]
                case "snapshot":
                    kept = frozenset((named | {name: live}).items())
                case "delete":
                    kept = frozenset((n, b) for n, b in snaps if n != name)
                case "revert":
                    after = named[name]
                case "read" if r == "ok":
                    blocks = live if event.get("view") is None else named[event["view"]]
                    if tuple(result["tags"]) != blocks[lba : lba + event["count"]]:
                        return
        left = survivors
        if op in ("write", "unmap"):
            left = self.buffered(after, snaps, survivors)
            if event.get("fua") and not faults:
                changed = range(lba, lba + len(event["tags"]))
                forced = frozenset(
                    (
                        tuple(
                            frozenset([after[at]]) if at in changed else s
                            for at, s in enumerate(sets)
                        ),
                        kept_,
                    )
                    for sets, kept_ in survivors
                )
                left = forced if r == "ok" else forced | left
        elif op in ("snapshot", "delete", "revert"):
            left = frozenset([exactly(after, kept)]) | (
                survivors if self.profile == "prefix" else set()
            )
        elif op in ("flush", "restart"):
            left = frozenset([exactly(live, snaps)])
        if faults:
            if r in faults | {"unknown-outcome"}:
                yield state
            if r == "cut":
                yield live, snaps, survivors, False
            return
        if r in ("ok", "unknown-outcome"):
            yield after, kept, left, True
        if r in excuses | {"unknown-outcome"}:
            yield state
        if r == "cut":
            yield live, snaps, survivors | left, False

    def buffered(
        self, after: Blocks, snaps: Views, survivors: frozenset[Image]
    ) -> frozenset[Image]:
        match self.profile:
            case "ack":
                return frozenset([exactly(after, snaps)])
            case "prefix":
                return survivors | {exactly(after, snaps)}
        return frozenset(
            (tuple(s | {v} for s, v in zip(sets, after, strict=False)), kept)
            for sets, kept in survivors
        )


def exactly(live: Blocks, snaps: Views) -> Image:
    return tuple(frozenset([v]) for v in live), snaps


MIXED = (
    "write",
    "write",
    "read",
    "read",
    "read",
    "unmap",
    "snapshot",
    "delete",
    "revert",
    "flush",
    "restart",
    "crash",
    "crash",
    "clean",
)
OPEN = (
    "write",
    "write",
    "crash",
    "snapshot",
    "revert",
    "read",
)  # many crashes and few reads leave much open


def random_event(choose: random.Random, names: tuple[str, ...], ops: tuple[str, ...]) -> Event:
    op = choose.choice(ops)
    event: Event = {"op": op}
    if op in ("write", "read", "unmap"):
        event["lba"] = choose.choice((0, 0, 0, 1, 1, 2))
        count = choose.choice((1, 1, 2))
        if op == "write":
            event["tags"] = [choose.choice(VALUES) for _ in range(count)]
            event["fua"] = choose.random() < 0.5
        else:
            event["count"] = count
        if op == "read" and choose.random() < 0.5:
            event["view"] = choose.choice(names)
    elif op in ("snapshot", "delete", "revert"):
        event["name"] = choose.choice(names)
    answer = choose.choice(("ok",) * 12 + ("cut",) * 3 + ("unknown-outcome", *CODES))
    event["result"] = (
        None
        if answer == "cut"
        else {"ok": True}
        if answer == "ok"
        else {"ok": False, "error": answer}
    )
    if op == "read" and answer == "ok":
        event["result"]["tags"] = [choose.choice(VALUES) for _ in range(event["count"])]
    return event


@pytest.mark.parametrize(
    "profile, ops", [(profile, MIXED) for profile in model.PROFILES] + [("block", OPEN)]
)
def test_equal_to_the_specification(
    profile: str,
    ops: tuple[str, ...],
) -> None:
    """Verdicts and indices are equal on random traces, most of whose events the specification
    allows.
    """
    choose = random.Random(profile)
    rejected, longest, crashes = 0, 0, 0
    for _ in range(400):
        literal, states = (
            Literal(profile),
            model.init({"crash_profile": profile, "capabilities": []}),
        )
        event = {"op": "create", "blocks": SIZE, "result": {"ok": True}}
        for index in range(40):
            assert literal.step(event)
            states = model.step(states, event)
            assert states, event
            for _ in range(20):  # tries for an event that is allowed, comparing the verdict of each
                event = random_event(choose, ("s", "t", "b d"), ops)
                before = literal.states
                allowed = literal.step(event)
                assert bool(model.step(states, event)) == allowed, (index, event)
                literal.states = before
                if allowed:
                    break
                rejected += 1
            else:
                break
            longest = max(longest, index)
            crashes += event["op"] == "crash"
    assert rejected > 1000 and crashes > 500 and longest == 39


def test_a_write_with_fua_is_durable_and_nothing_else_becomes_so() -> None:
    first, durable = op("write", lba=0, tags=[1]), op("write", lba=1, tags=[2], fua=True)
    for profile in ("prefix", "block"):
        for kept, allowed in (([1, 2], True), ([0, 2], True), ([1, 0], False), ([0, 0], False)):
            read = op("read", lba=0, tags=kept)
            found = run(profile, first, durable, op("crash"), read)
            assert found == (None if allowed else 4), (profile, kept)


def test_a_choice_is_shared_by_the_views_that_copied_it() -> None:
    before = [
        op("write", lba=0, tags=[1]),
        op("flush"),
        op("write", lba=0, tags=[2]),
        op("crash"),
        op("snapshot", name="s"),
        op("write", lba=0, tags=[3]),
    ]
    assert (
        run(
            "block",
            *before,
            op("read", lba=0, tags=[2], view="s"),
            op("revert", name="s"),
            op("read", lba=0, tags=[2]),
        )
        is None
    )
    assert (
        run(
            "block",
            *before,
            op("read", lba=0, tags=[2], view="s"),
            op("revert", name="s"),
            op("read", lba=0, tags=[1]),
        )
        == 9
    )


def test_what_came_through_another_choice_decides_that_one_too() -> None:
    before = [
        op("write", lba=0, tags=[1]),
        op("flush"),
        op("write", lba=0, tags=[2]),
        op("crash"),
        op("snapshot", name="s"),
        op("write", lba=0, tags=[3]),
        op("crash"),
    ]
    assert (
        run("block", *before, op("read", lba=0, tags=[2]), op("read", lba=0, tags=[2], view="s"))
        is None
    )
    assert (
        run("block", *before, op("read", lba=0, tags=[2]), op("read", lba=0, tags=[1], view="s"))
        == 9
    )
    assert (
        run("block", *before, op("read", lba=0, tags=[3]), op("read", lba=0, tags=[1], view="s"))
        is None
    )


def test_a_refused_write_changes_nothing() -> None:
    assert run("ack", op("write", "no-space", lba=0, tags=[1]), op("read", lba=0, tags=[1])) == 2
    assert (
        run("ack", op("write", "out-of-range", lba=3, tags=[1, 2]), op("read", lba=3, tags=[0]))
        is None
    )


def test_reads_flushes_and_deletes_have_no_excuse() -> None:
    assert run("ack", op("flush", "no-space")) == 1
    assert run("ack", op("snapshot", name="s"), op("delete", "no-space", name="s")) == 2
    assert run("ack", op("read", "data-lost", lba=0, count=1)) == 1


def test_unsupported_is_for_what_was_not_declared() -> None:
    assert run("ack", op("unmap", "unsupported", lba=0, count=1)) is None
    assert run("ack", op("unmap", "unsupported", lba=0, count=1), capabilities=["unmap"]) == 1
    assert run("ack", op("write", "unsupported", lba=0, tags=[1])) == 1


def test_too_many_states_are_said_to_be_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(model, "MOST_STATES", 8)
    writes = [op("write", "unknown-outcome", lba=at_lba, tags=[at_lba + 1]) for at_lba in range(4)]
    with pytest.raises(model.Undecided):
        run("ack", *writes)


@pytest.mark.parametrize("profile", model.PROFILES)
def test_an_unmap_of_what_is_zero_leaves_one_disk(profile: str) -> None:
    """Else each one that is cut short would double the disks that are possible."""
    states = model.init(hello(profile, capabilities=["unmap"]))
    states = model.step(states, op("create", blocks=8))
    for index in range(30):
        states = model.step(states, op("unmap", "unknown-outcome", lba=index % 8, count=1))
        states = model.step(states, op("unmap", None, lba=index % 8, count=1))
        states = model.step(states, op("crash"))
        assert len(states) == 1


@pytest.mark.parametrize("profile", model.PROFILES)
def test_long_histories_stay_linear(profile: str) -> None:
    states = model.init(hello(profile))
    states = model.step(states, op("create", blocks=8))
    for index in range(20_000):
        states = model.step(states, op("write", lba=index % 8, tags=[index]))
    states = model.step(states, op("crash"))
    states = model.step(
        states, op("read", lba=0, tags=[19992, 19993, 19994, 19995, 19996, 19997, 19998, 19999])
    )
    assert len(states) == 1
