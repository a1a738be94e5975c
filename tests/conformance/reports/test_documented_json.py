"""docs/test-your-own-engine.md lists the fields of `conformance run --json`, and no others."""

import re
from pathlib import Path

from conformance.campaign.results import Campaign, Failure
from conformance.contract.trace import Trace
from conformance.judging.verdict import Verdict
from conformance.reports import machine

GUIDE = Path(__file__).parents[3] / "docs" / "test-your-own-engine.md"
FIELDS = re.compile(r"^\| (`.*?) \|", re.MULTILINE)


def test_the_guide_lists_the_fields_of_the_json() -> None:
    section = GUIDE.read_text(encoding="utf-8").partition("\n## The JSON of a run\n")[2]
    of_run, of_failure = (
        {name for cell in FIELDS.findall(part) for name in re.findall(r"`(\w+)`", cell)}
        for part in section.split("\n## ")[0].split("A failure is about")
    )
    trace = Trace({}, [{"op": "create", "blocks": 1, "result": {"ok": True}}])
    failure = Failure(trace, Verdict("fail", 0), 0, 1)
    found = machine.as_json(Campaign("model", 1, failures=[failure]))
    assert of_run == found.keys()
    assert of_failure == found["failures"][0].keys()
