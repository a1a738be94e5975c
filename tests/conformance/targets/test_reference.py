"""The engines of the project as a target: one in some traces has a device that goes wrong."""

import random

from conformance import targets
from conformance.campaign.batches import Plan, drive
from conformance.judging import oracles

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
