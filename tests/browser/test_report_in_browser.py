"""A browser draws the HTML report; the failing column is in sight, and one can step through it."""

import json
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

from conformance.campaign.results import Campaign, Failure
from conformance.contract.trace import Event, Trace
from conformance.judging.judge import judge
from conformance.judging.oracles import named
from conformance.reports import html

BROWSER = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))))
OK = {"ok": True}
HELLO = {"name": "t", "block_size": 512, "crash_profile": "ack", "capabilities": ["snapshot"]}
PROBE = """<script>
  const failure = document.querySelector(".failure"), said = failure.querySelector("output");
  const seen = failure.querySelector(".time").getBoundingClientRect();
  const place = at => failure.querySelectorAll(".column")[at].getBoundingClientRect();
  const inSight = at => place(at).left >= seen.left - 1 && place(at).right <= seen.right + 10;
  const found = { opened: inSight(120), first: inSight(0), said: [said.textContent] };
  const [back, next] = failure.querySelectorAll("button");
  back.click(); found.said.push(said.textContent); next.click(); next.click();
  found.said.push(said.textContent);
  for (let step = 0; step < 200; step++) back.click();
  found.said.push(said.textContent); found.firstAfter = inSight(0);
  document.body.dataset.found = JSON.stringify(found);
</script>"""


@pytest.fixture
def report(tmp_path: Path) -> Path:
    """A report on a trace of 120 operations: the last reads what is stale."""
    events: list[Event] = [
        {"op": "create", "blocks": 8, "result": OK},
        *({"op": "write", "lba": n % 8, "tags": [n], "result": OK} for n in range(1, 119)),
        {"op": "snapshot", "name": "s", "result": OK},
        {"op": "read", "lba": 2, "count": 1, "result": {"ok": True, "tags": [106]}},
    ]
    trace = Trace(HELLO, events)
    verdict = judge([trace], {"model": named("model")})[0]
    assert verdict.kind == "stale" and verdict.at == 120
    campaign = Campaign("t", 1, judged={0: (trace, verdict)})
    campaign.failures.append(Failure(trace, verdict, 0, 120))
    path = tmp_path / "report.html"
    path.write_text(html.page(campaign), encoding="utf-8")
    return path


def browse(page: Path, *words: str) -> str:
    folder = page.parent
    done = subprocess.run(
        [
            BROWSER,
            "--headless",
            "--no-sandbox",
            "--disable-gpu",
            "--hide-scrollbars",
            f"--user-data-dir={folder / 'profile'}",
            "--window-size=1200,900",
            *words,
            page.as_uri(),
        ],
        capture_output=True,
        text=True,
        timeout=120,
        check=True,
    )
    return done.stdout


def test_a_browser_draws_it(report: Path) -> None:
    shot = report.with_name("shot.png")
    browse(report, f"--screenshot={shot}")
    with Image.open(shot) as image:
        whole: Any = image.convert("RGB")
        right = whole.crop((900, 300, 1200, 900))
    colours = {colour: times for times, colour in whole.getcolors(maxcolors=1 << 24)}
    assert colours[0xB3, 0x26, 0x1E] > 500 and len(colours) > 50, "the verdict is red"
    ring = {colour: times for times, colour in right.getcolors(maxcolors=1 << 24)}
    assert ring[0xB3, 0x26, 0x1E] > 100, "the wrong read is in sight, at the right"


def test_the_failing_column_is_in_sight_and_a_trace_can_be_stepped_through(report: Path) -> None:
    report.write_text(report.read_text().replace("</body>", PROBE + "</body>"))
    dumped = browse(report, "--dump-dom")
    match = re.search(r"data-found=\"([^\"]*)\"", dumped)
    assert match, dumped[:500]
    found = json.loads(match[1].replace("&quot;", '"').replace("&gt;", ">"))
    assert found["opened"] and not found["first"] and found["firstAfter"], found
    assert found["said"] == [
        "121 operations",
        "operation 119: snapshot s -> ok",
        "operation 120: read 2+1 -> 106",
        "operation 0: create 8 -> ok",
    ]
