"""The engines of the project as a target: one in some traces has a device that goes wrong."""

import random
from collections.abc import Iterator
from typing import Any

import pytest

from conformance import targets
from conformance.campaign import batches
from conformance.campaign.batches import Plan, drive
from conformance.campaign.driver import Bench
from conformance.contract.trace import Trace
from conformance.judging import oracles
from conformance.targets import reference
from conformance.targets.base import Unusable
from refmodel.inplace.disk import InPlaceDisk

FAULTY = "faults"


def test_in_some_traces_a_device_goes_wrong_and_no_other_fails_by_request() -> None:
    factory = targets.resolve("refmodel")
    drawn = [factory.draw(random.Random(seed)) for seed in range(60)]
    faulty = [options for options in drawn if FAULTY in options]
    assert 0 < len(faulty) < len(drawn) / 4
    for options in faulty[:2]:
        target = factory(options)
        try:
            assert not {"device", "scrub"} & set(target.hello["capabilities"])
            assert target.hello["tolerates"] > 0
        finally:
            target.close()


def test_a_device_that_goes_wrong_is_left_and_its_data_stays() -> None:
    """In thirty traces a device vanishes in the middle of something, and nothing is lost."""
    factory = targets.resolve("refmodel:faults=vanishing-device,layout=raid5-2+1")
    judges = {"model": oracles.named("model")}
    plan = Plan(factory.name, factory.without, 1, 20, True, tuple(judges), 1)
    part = drive(factory, judges, plan, 0, 30)
    assert [verdict.verdict for _, verdict in part.judged] == ["pass"] * 30
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


@pytest.mark.parametrize("wrong", reference.WRONG, ids=repr)
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
    monkeypatch.setattr(reference, "WRONG", (wrong,))
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
