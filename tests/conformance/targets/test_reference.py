"""The engines of the project as a target: devices of some traces go wrong."""

import random
from collections.abc import Iterator
from typing import Any

import pytest

from conformance import targets
from conformance.campaign import batches
from conformance.campaign.batches import Part, Plan, drive
from conformance.campaign.driver import Bench
from conformance.contract.trace import Event, Passed, Trace
from conformance.judging import oracles
from conformance.programs.requests import MOST_BYTES, SIZES
from conformance.targets import reference
from conformance.targets.base import Unusable
from refmodel.adapter import operations
from refmodel.array.component import Component
from refmodel.array.leg import Check, Leg
from refmodel.inplace.disk import InPlaceDisk
from refmodel.log_structured import scrub
from refmodel.log_structured.disk import LogStructuredDisk
from refmodel.log_structured.scrub import Findings
from refmodel.media.faults import FAULTS
from refmodel.redolog.geometry import SECTOR_ENTRIES, TABLE_ENTRIES, plan
from refmodel.registry import DEFAULT


def test_some_chains_have_several_grain_tables_and_several_sectors_of_one() -> None:
    tables, sectors = [], []
    for size in reference.KNOBS["redo-vmfs"]["block_bytes"]:
        shapes = [plan("redo-vmfs", n, block_bytes=size) for n in SIZES if n * size <= MOST_BYTES]
        tables.append(max(shape.tables for shape in shapes))
        grains = max(shape.blocks * shape.block_grains for shape in shapes)
        sectors.append(min(grains, TABLE_ENTRIES) // SECTOR_ENTRIES)
    assert max(tables) > 1 and max(sectors) > 1, (tables, sectors)


def test_in_some_traces_devices_go_wrong_for_a_while() -> None:
    factory = targets.resolve("refmodel")
    drawn = [factory.draw(random.Random(seed)) for seed in range(60)]
    faulty = [options for options in drawn if options.get("faults")]
    assert len(drawn) / 6 < len(faulty) < len(drawn) / 2
    for options in faulty[:6]:
        target = factory(options)
        try:
            modes = set(FAULTS) if options["engine"] == DEFAULT else {"vanishing-device"}
            assert set(target.hello["faults"]) == modes and target.hello["tolerates"] > 0
        finally:
            target.close()


def traces(target: str, count: int) -> Part:
    factory = targets.resolve(target)
    judges = {"model": oracles.named("model")}
    plan = Plan(factory.name, factory.without, 1, 30, True, tuple(judges), 1)
    return drive(factory, judges, plan, 0, count)


@pytest.mark.parametrize("layout", ["mirror", "raid6-4+2"])
def test_what_went_wrong_is_repaired(layout: str) -> None:
    part = traces(f"refmodel:faults=on-request,layout={layout}", 20)
    assert [verdict.verdict for _, verdict in part.judged] == ["pass"] * 20
    how = {event.get("fault", event["mode"]) for trace, _ in part.judged for event in failed(trace)}
    assert how == {"absent", "degraded", *FAULTS}


def failed(trace: Trace | Passed) -> list[Event]:
    events = trace.events if isinstance(trace, Trace) else []
    return [event for event in events if event["op"] == "fail" and event["result"] == {"ok": True}]


def forget_to_repair(self: Leg, component: Component, offset: int, data: bytes) -> None:
    self.repairs += 1


def verify_nothing(self: Leg, *_: object) -> tuple[int, list[Check]]:
    return 0, []


def without_checkpoint(disk: LogStructuredDisk) -> Findings:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(LogStructuredDisk, "checkpoint", lambda self: None)
        return scrub.scrub(disk)


@pytest.mark.parametrize(
    "where, name, instead",
    [
        (Leg, "_repair", forget_to_repair),
        (Leg, "verify", verify_nothing),
        (operations, "scrub", without_checkpoint),
    ],
)
def test_what_is_not_repaired_is_found(
    monkeypatch: pytest.MonkeyPatch, where: Any, name: str, instead: Any
) -> None:
    monkeypatch.setattr(where, name, instead)
    part = traces("refmodel:faults=on-request,layout=mirror", 100)
    assert part.judged[-1][1].verdict == "fail"


def test_no_device_goes_wrong_or_fails_beyond_what_is_tolerated() -> None:
    target = targets.resolve("refmodel:faults=on-request")(
        {"layout": "mirror", "engine": DEFAULT, "block_bytes": 512}
    )

    def ask(op: str, device: int = 0, fault: str | None = None) -> Any:
        request = {"op": op, "device": device, "mode": "degraded" if fault else "absent"}
        request |= {"fault": fault} if fault else {"blocks": 8}
        return target.request(request).get("error", "ok")

    try:
        assert ask("create") == "ok"
        assert ask("fail", 0, "bit-flip") == "ok"
        assert ask("fail", 1, "bit-flip") == ask("fail", 1) == "bad-request"
        assert ask("return", 0) == "ok" and ask("fail", 1) == "bad-request", "not yet repaired"
        assert ask("settle") == ask("fail", 1) == "ok"
        assert ask("fail", 0, "lying-flush") == "bad-request"
        assert ask("return", 1) == ask("settle") == ask("fail", 1, "vanishing-device") == "ok"
        assert ask("replace", 1) == ask("settle") == "ok"
        assert ask("fail", 0, "lost-write") == ask("return", 0) == ask("fail", 0) == "ok"
        assert ask("settle") == ask("return", 0) == "ok", "it was away, so it is not repaired"
        assert ask("fail", 1) == "bad-request" and ask("settle") == ask("fail", 1) == "ok"
    finally:
        target.close()


def test_a_device_that_goes_wrong_is_left_and_its_data_stays() -> None:
    """In a hundred traces a device vanishes in the middle of something, and nothing is lost."""
    factory = targets.resolve("refmodel:faults=vanishing-device,layout=raid5-2+1")
    judges = {"model": oracles.named("model")}
    plan = Plan(factory.name, factory.without, 3, 20, True, tuple(judges), 1)
    part = drive(factory, judges, plan, 0, 100)
    assert [verdict.verdict for _, verdict in part.judged] == ["pass"] * 100
    assert part.coverage.inside["fail"] > 5


@pytest.mark.parametrize("together", [False, True])
def test_writes_in_flight_together_to_one_stripe_wait_for_each_other(
    monkeypatch: pytest.MonkeyPatch, together: bool
) -> None:
    """The default command asks for such writes: without the wait, parity does not fit the data."""
    Writes = list[tuple[int, bytes]]

    def at_once(disk: InPlaceDisk, writes: Writes) -> Iterator[Writes]:
        yield writes

    factory = targets.resolve("refmodel")
    assert any(one.get("batch") for one in factory.families if one["engine"] == ["in-place-raid5"])
    factory = targets.resolve("refmodel:in-place-raid5:batch=True")
    judges = {"model": oracles.named("model")}
    plan = Plan(factory.name, factory.without, 1, 20, True, tuple(judges), 1)
    if together:
        monkeypatch.setattr(InPlaceDisk, "_batches", at_once)
    part = drive(factory, judges, plan, 0, 30)
    failed = any(verdict.verdict == "fail" for _, verdict in part.judged)
    assert failed == together


@pytest.mark.parametrize("wrong", reference.IMPOSSIBLE_OPTIONS, ids=repr)
def test_options_beyond_their_limits_are_refused_and_only_they(wrong: dict[str, Any]) -> None:
    def created(options: dict[str, Any]) -> Any:
        target = targets.resolve("refmodel")({k: v for k, v in options.items() if k != "blocks"})
        answer = target.request({"op": "create", "blocks": options.get("blocks", 16)})
        target.close()
        return answer.get("error", "ok")

    assert created(wrong) == "bad-request"
    others = {k: v for k, v in wrong.items() if k not in ("impossible", wrong["impossible"])}
    assert created(others | {"block_bytes": 512}) == "ok"


def test_impossible_disks_are_all_refused_and_teach_nothing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(batches, "IMPOSSIBLE_ONE_IN", 1)
    factory = targets.resolve("refmodel")
    judges = {"model": oracles.named("model")}
    plan = Plan(factory.name, factory.without, 1, 30, True, tuple(judges), 1)
    part = drive(factory, judges, plan, 0, 20)
    assert {verdict.verdict for _, verdict in part.judged} == {"pass"}
    assert not part.coverage.outcomes and not part.counters
    assert {trace.operations for trace, _ in part.judged} == {0}


def test_an_impossible_disk_that_is_made_is_a_failure(monkeypatch: pytest.MonkeyPatch) -> None:
    wrong = {"engine": "redo-se", "layers": 4, "impossible": "layers"}
    monkeypatch.setattr(reference, "IMPOSSIBLE_OPTIONS", (wrong,))
    factory = targets.resolve("refmodel")
    judges = {"model": oracles.named("model")}
    plan = Plan(factory.name, factory.without, 1, 30, True, tuple(judges), 1)
    found = drive(factory, judges, plan, 0, 60).judged
    kinds = [verdict.kind for _, verdict in found]
    assert kinds[-1] == "missing-refusal" and set(kinds[:-1]) == {""}
    last = found[-1][0]
    assert isinstance(last, Trace)
    with pytest.raises(Unusable, match="not asked to refuse"):
        Bench(targets.resolve("model")).drive(last.program, last.seed, last.options)
