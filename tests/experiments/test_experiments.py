"""The experiments: false claims are reported as not reproduced; the report needs no other file."""

import functools
import re
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from experiments import __main__ as command
from experiments import report
from experiments.chapter import Chapter, Figure, Settings, Verdict
from experiments.chapters import chains, native, steady
from experiments.figures import plots
from experiments.measure import ladder, qcow2, snapshot_cost, twins
from experiments.measure.timeline import timeline
from refmodel.bench import runner
from refmodel.bench.results import Result
from refmodel.log_structured.snapshots.reclaim import Reclaimer

SMALL = Settings(0.05, 1, lambda what: None)


def chapter() -> Chapter:
    return Chapter("X", "A <title>", "published", "here")


def test_the_claim_of_no_added_io_holds_for_the_log_and_fails_for_a_chain(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    log = chapter()
    native._counts(log, SMALL)
    assert {claim.verdict for claim in log.claims} == {Verdict.REPRODUCED}

    def on_a_chain(profile: str, *, layout: str, **options: Any) -> Result:
        return runner.run(profile, engine="redo-se", **options)

    monkeypatch.setattr(native, "runner", type("Bench", (), {"run": staticmethod(on_a_chain)}))
    chain = chapter()
    native._counts(chain, SMALL)
    assert all(
        claim.verdict is Verdict.DIFFERS for claim in chain.claims if "No added I/O" in claim.claim
    )


def test_reads_of_a_chain_grow_with_it_and_those_of_the_log_do_not() -> None:
    log, chain = (
        [point.foreground for point in ladder.depths(engine, SMALL)["read"]]
        for engine in ("log-structured", "redo-se")
    )
    assert log == [1.0] * len(log)
    assert (
        chain[0] < chain[3] < chain[4] < chain[5]
    )  # a short chain's tables fit the cache of so small a disk


def test_reclaim_that_frees_too_little_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(snapshot_cost, "FREED", (250, 500, 1000))
    good = chapter()
    snapshot_cost.reclaim(good, SMALL)
    assert {claim.verdict for claim in good.claims} == {Verdict.REPRODUCED}
    monkeypatch.setattr(Reclaimer, "held_alone", lambda self, view, leaf: [])
    leaking = chapter()
    snapshot_cost.reclaim(leaking, SMALL)
    assert leaking.claims[0].verdict is Verdict.DIFFERS


def test_rebuild_that_does_not_wait_for_the_timer_is_noticed() -> None:
    result, control = (
        runner.run(steady.PROFILE, scale=0.05, still=still) for still in (False, True)
    )
    claims = chapter()
    steady._faults(claims, control, control)  # nothing fails, so nothing is rebuilt
    assert claims.claims[-1].verdict is Verdict.DIFFERS
    steadily, absent = (
        twins.alike(result.part(name), control.part(name)) for name in ("hold", "absent")
    )
    assert steadily and not absent  # what the device held is read from the others
    claims = chapter()
    steady._faults(claims, result, control)
    assert claims.claims[-1].verdict is Verdict.REPRODUCED


def test_without_qemu_its_rows_are_not_run(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(qcow2, "missing", lambda: ["qemu-nbd"])
    claims = chapter()
    assert chains._qcow2(claims, SMALL) == {}
    assert [(claim.verdict, "qemu-nbd" in claim.why) for claim in claims.claims] == [
        (Verdict.NOT_RUN, True)
    ]


def drawn(name: str) -> str:
    drawing, (axis,) = plots.panels(1)
    axis.plot([1, 2], [3, 4])
    plots.bands([axis], [1, 1.5, 2], ["one", "two"])
    return plots.svg(drawing, name)


def test_a_figure_is_the_same_for_the_same_data_and_shares_no_identifier() -> None:
    assert drawn("a") == drawn("a")
    identifiers = functools.partial(re.findall, r'id="([^"]+)"')
    assert not set(identifiers(drawn("a"))) & set(identifiers(drawn("b")))
    assert set(re.findall(r'(?:url\(|href=")#([^")]+)', drawn("a"))) <= set(identifiers(drawn("a")))


@pytest.mark.parametrize("wall, clock", [(False, "CPU"), (True, "wall")])
def test_a_timeline_says_by_which_clock_it_is(wall: bool, clock: str) -> None:
    run = runner.run("4k-random-write", blocks=64, operations=1024, wall=wall)
    drawn = timeline(run, run, name="t", title="", caption="").svg
    assert f"per {clock} second" in drawn and f"latency, ms of {clock} time" in drawn


def test_the_report_has_every_verdict_and_needs_no_other_file(tmp_path: Path) -> None:
    one = chapter()
    one.judge("a claim", "1 < 2", True)
    one.judge("another", "2 | 1", False, "since <b>")
    one.not_run("a third", "no such tool")
    one.figures.append(Figure("plot", "A plot", "caption", drawn("plot")))
    report.write(tmp_path, [one], SMALL, 60.0)
    page, text = (tmp_path / "report.html").read_text(), (tmp_path / "report.md").read_text()
    assert (
        "1 reproduced" in page
        and "1 not reproduced" in page
        and "1 not run" in page
        and "A &lt;title&gt;" in page
        and "<b>since" not in page
    )
    assert not re.search(r"<(script|img|link)\b|<[^>]*\b(src|href)=\"(?!#)|@import", page)
    assert (
        "| another | 2 \\| 1 | **not reproduced** |" in text
        and "![A plot](plot.svg)" in text
        and (tmp_path / "plot.svg").exists()
    )


def test_results_before_an_interruption_are_reported(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def interrupted(settings: Settings) -> Chapter:
        raise KeyboardInterrupt

    monkeypatch.setattr(command, "EXPERIMENTS", {"X": lambda settings: chapter(), "Y": interrupted})
    done = CliRunner().invoke(command.main, ["--report", str(tmp_path / "r")])
    assert done.exit_code == 1 and "Aborted" in done.output
    text = (tmp_path / "r" / "report.md").read_text()
    assert "## X. A <title>" in text and "chapters Y" in text


def test_a_folder_that_cannot_be_written_to_is_refused_before_the_run(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setattr(command, "EXPERIMENTS", {"X": lambda settings: pytest.fail("it was run")})
    done = CliRunner().invoke(command.main, ["--report", str(tmp_path / "file" / "r")])
    assert done.exit_code == 2 and "cannot be written to" in done.output


def test_the_document_shows_the_figures_that_the_experiments_make() -> None:
    docs = Path(__file__).parents[2] / "docs"
    shown = re.findall(r"\(figures/([a-z-]+)\.svg\)", (docs / "what-snapshots-cost.md").read_text())
    assert sorted(shown) == sorted(report.DOCUMENTED) and all(
        (docs / "figures" / f"{name}.svg").exists() for name in shown
    )
