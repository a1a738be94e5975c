"""The cost of an operation is measured at two revisions, on the same programs."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from crosscheck import kit_speed


def probed(file: Path) -> Any:
    """Return what the probe prints for this revision and a few traces."""
    run = subprocess.run(
        [sys.executable, "-P", kit_speed.PROBE, "refmodel:log-structured", "8", "10", file],
        env=os.environ | {"PYTHONPATH": str(kit_speed.ROOT)},
        capture_output=True,
        text=True,
        check=True,
    )
    return json.loads(run.stdout)


def test_the_programs_of_the_first_revision_are_sent_by_the_second(tmp_path: Path) -> None:
    file = tmp_path / "programs.json"
    first = probed(file)
    assert first["own"]["operations"] == first["same"]["operations"] > 0
    programs = json.loads(file.read_text(encoding="utf-8"))
    file.write_text(json.dumps(programs[:1] * 3), encoding="utf-8")
    second = probed(file)
    assert second["own"]["operations"] == first["own"]["operations"]
    assert second["same"]["operations"] != first["same"]["operations"]
    for part in ("generator", "target", "kit"):
        assert second["own"][part] > 0
    assert second["same"]["generator"] == 0


def test_the_cost_is_per_operation() -> None:
    own = {"operations": 10, "crashes": 1, "generator": 1.0, "kit": 9.0, "target": 9.0}
    same = {"operations": 100, "crashes": 8, "generator": 0.0, "kit": 2.0, "target": 7.0}
    cost = kit_speed.cost_of({"own": own, "same": same})
    assert (cost.generator, cost.kit, cost.target) == pytest.approx((1e5, 2e4, 7e4))
    assert cost.alone == pytest.approx(1.2e5) and cost.rate == pytest.approx(1e6 / 1.9e5)


def test_an_unknown_revision_is_said() -> None:
    with pytest.raises(kit_speed.NoRevision, match="no-such-revision"):
        kit_speed.compared("no-such-revision", "model", 1, 1, 1)
