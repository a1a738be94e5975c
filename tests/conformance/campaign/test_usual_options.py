"""Options that do not matter to a failure get their usual values, and are only counted."""

from typing import Any

import pytest

from conformance.campaign.driver import drive
from conformance.campaign.random_campaign import campaign
from conformance.campaign.usual_options import with_usual_options
from conformance.judging.explain import Verdict
from conformance.judging.oracles import named
from conformance.programs.shrink import Shrunk
from conformance.reports.evidence import options
from conformance.targets import Factory
from conformance.targets.base import Message, Unusable
from conformance.targets.model import ModelTarget

KNOBS: dict[str, list[Any]] = {
    "colour": ["white", "grey", "black"],
    "mode": ["safe", "fast", "wild"],
    "size": [1, 2, 3],
}


class LosesWhenFast(ModelTarget):
    """Ignores some writes unless its mode is safe."""

    def __init__(self, chosen: dict[str, Any]) -> None:
        super().__init__({})
        self._safe = chosen["mode"] == "safe"

    def request(self, message: Message) -> Message:
        if message["op"] == "write" and not self._safe and max(message["tags"]) % 2:
            return {"ok": True}
        return super().request(message)


def test_only_the_option_that_matters_is_kept_and_shown() -> None:
    factory = Factory("loses", LosesWhenFast, knobs=KNOBS)
    judges = {"model": named("model")}
    result = campaign(factory, count=30, ops=20, seed=3, oracles=judges, most_failures=2)
    assert result.failures
    for failure in result.failures:
        chosen = failure.trace.options
        assert chosen["mode"] != "safe" and (chosen["colour"], chosen["size"]) == ("white", 1)
        assert sorted(failure.usual) == ["colour", "size"]
        assert options(failure) == f"mode={chosen['mode']}, 2 others as usual"


@pytest.mark.parametrize(
    "raised", [Unusable("white and 3 do not go together"), KeyboardInterrupt()]
)
def test_what_cannot_be_tried_stays(raised: BaseException) -> None:
    trace = drive(ModelTarget({}), [{"op": "create", "blocks": 1}], 1, {"colour": "grey"})
    found = Shrunk(trace, Verdict("fail", 0, "stale"), 10, 10)

    def attempt(program: list[Message], options: dict[str, Any]) -> None:
        assert options == {"colour": "white"}
        raise raised

    after = with_usual_options(found, {"colour": "white"}, attempt)
    assert after.trace.options == {"colour": "grey"}
    assert after.interrupted == isinstance(raised, KeyboardInterrupt)


def test_options_are_tried_for_a_limited_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("conformance.campaign.usual_options.MOST_SECONDS", 0.1)
    trace = drive(ModelTarget({}), [{"op": "create", "blocks": 1}], 1, {"colour": "grey"})
    found = Shrunk(trace, Verdict("fail", 0, "stale"), 10, 10)

    def attempt(program: list[Message], options: dict[str, Any]) -> None:
        while True:
            pass

    assert with_usual_options(found, {"colour": "white"}, attempt) is found
