"""The engines of the project as a target: one in some traces has a device that goes wrong."""

import random
from collections.abc import Iterator

import pytest

from conformance import targets
from conformance.campaign.batches import Plan, drive
from conformance.judging import oracles
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
