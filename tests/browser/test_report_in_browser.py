"""A browser draws the HTML report."""

import shutil
import subprocess
import sys

from PIL import Image

from conformance.campaign.random_campaign import campaign
from conformance.judging.oracles import named
from conformance.reports import html
from conformance.selftest.corpus import SCRIPT as FAULTY
from conformance.targets import Factory
from conformance.targets.process import ProcessTarget

BROWSER = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))))
MODEL = {"model": named("model")}


def test_a_browser_draws_it(tmp_path):
    command = f"{sys.executable} {FAULTY} aliased-snapshots"
    result = campaign(
        Factory("aliased", lambda options: ProcessTarget(command)),
        count=40,
        ops=30,
        seed=1,
        oracles=MODEL,
    )
    assert result.verdict == "fail"
    (tmp_path / "report.html").write_text(html.page(result, 30), encoding="utf-8")
    shot = tmp_path / "shot.png"
    subprocess.run(
        [
            BROWSER,
            "--headless",
            "--no-sandbox",
            "--disable-gpu",
            "--hide-scrollbars",
            f"--user-data-dir={tmp_path}",
            "--window-size=1200,900",
            f"--screenshot={shot}",
            (tmp_path / "report.html").as_uri(),
        ],
        capture_output=True,
        timeout=120,
        check=True,
    )
    with Image.open(shot) as image:
        colours = {
            colour: times for times, colour in image.convert("RGB").getcolors(maxcolors=1 << 24)
        }
    assert colours[0xB3, 0x26, 0x1E] > 500, (
        "the verdict, and the ring around what is wrong, are red"
    )
    assert len(colours) > 50
