"""fio parses every job file of the workloads."""

import os
import subprocess
from pathlib import Path

import pytest

from refmodel.bench.workloads.profiles import PROFILES

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize("name", PROFILES)
def test_fio_takes_the_job_file(name: str, tmp_path: Path) -> None:
    environment = os.environ | {"URI": "nbd+unix:///?socket=nobody"}
    done = subprocess.run(
        ["fio", "--parse-only", str(ROOT / "workloads" / f"{name}.fio")],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0 and not done.stderr, done.stdout + done.stderr
