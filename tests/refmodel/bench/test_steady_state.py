"""Writes while the cleaner works, beside writes where nothing is cleaned."""

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from refmodel.bench import steady_state
from refmodel.cli import main


@pytest.mark.parametrize("snapshots", [0, 1])
def test_cleaning_writes_more_and_more_so_the_more_is_live(snapshots: int) -> None:
    rows = [steady_state.measure(live, snapshots, blocks=8192, rounds=10) for live in (0.5, 0.8)]
    assert rows[0].before.device_bytes == pytest.approx(rows[1].before.device_bytes, rel=0.02)
    written = [rows[0].before.device_bytes, *(row.steady.device_bytes for row in rows)]
    assert written[0] * 1.02 < written[1] < written[2], written
    assert all(row.ratio > 0 for row in rows)
    lines = list(steady_state.describe(rows))
    assert len(lines) == 4 and lines[3].startswith("0.80")


def test_the_profile_writes_its_rows_as_json(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    cost = steady_state.Cost(1e-6, 4.5)
    row = steady_state.Row(0.5, 0, cost, cost)
    monkeypatch.setattr(steady_state, "table", lambda: iter([row]))
    file = tmp_path / "rows"
    done = CliRunner().invoke(main, ["bench", "--profile", "steady", "--json", str(file)])
    assert done.exit_code == 0, done.output
    costs = {"processor": 1e-6, "device_bytes": 4.5}
    expected = {"profile": "steady", "live": 0.5, "snapshots": 0}
    assert json.loads(file.read_text()) == {**expected, "before": costs, "steady": costs}


def test_the_profile_runs_alone() -> None:
    refused = CliRunner().invoke(main, ["bench", "--profile", "steady", "--blocks", "64"])
    assert refused.exit_code == 2 and "runs alone" in refused.output
