"""The example targets, and a short campaign that each of them must pass."""

from pathlib import Path

from conformance import targets
from conformance.campaign.random_campaign import campaign
from conformance.campaign.results import Campaign
from conformance.judging.oracles import named

EXAMPLES = Path(targets.__file__).parents[1] / "examples"
MODEL = {"model": named("model")}


def passes(name: str, count: int = 25) -> Campaign:
    """Run a campaign of `count` traces that must pass, and return its result."""
    result = campaign(targets.resolve(name), count=count, ops=30, seed=3, oracles=MODEL)
    assert result.verdict == "pass", [
        f.verdict.words(f.trace) for f in result.failures
    ] or result.reason
    return result
