"""fio runs a job file of the workloads on a served disk, with the declared operations."""

import json
import os
import subprocess
from collections.abc import Callable
from pathlib import Path

from refmodel.bench.workloads.profiles import PROFILES
from support.serving.served import BOUND, Server

JOBS = Path(__file__).parents[2] / "workloads"


def test_fio_runs_a_workload(serve: Callable[..., Server], tmp_path: Path) -> None:
    server = serve("--blocks", 16384)
    output = tmp_path / "out.json"
    command = [
        "fio",
        "--output-format=json",
        f"--output={output}",
        str(JOBS / "hcibench-8k-70.fio"),
    ]
    done = subprocess.run(
        command,
        cwd=tmp_path,
        env=os.environ | {"URI": server.uri()},
        capture_output=True,
        timeout=2 * BOUND,
    )
    assert done.returncode == 0, (done.stdout + done.stderr).decode()
    text = output.read_text()
    jobs = json.loads(text[text.index("{") :])["jobs"]
    profile = PROFILES["hcibench-8k-70"]
    assert [job["jobname"] for job in jobs] == [phase.name for phase in profile.phases]
    for job, phase in zip(jobs, profile.phases, strict=True):
        reads, writes = job["read"]["total_ios"], job["write"]["total_ios"]
        assert (
            reads + writes == phase.length * profile.unit and 0.6 < reads / (reads + writes) < 0.8
        )
        assert job["read"]["io_bytes"] == 8192 * reads
