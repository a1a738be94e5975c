"""XFS and btrfs reflinks as disks. They need the right to mount a loop device."""

import os
import subprocess
from functools import cache
from pathlib import Path

import pytest

from conformance import targets
from conformance.campaign.driver import drive
from conformance.campaign.random_campaign import campaign
from conformance.judging.judge import judge
from conformance.judging.oracles import named
from conformance.targets.base import Message

EXAMPLES = Path(targets.__file__).parents[1] / "examples"
MODEL = {"model": named("model")}


@cache
def obstacle(kind: str, folder: Path) -> str:
    """Return why there is no such file system here; empty if there is one."""
    environment = {**os.environ, "BYTES": "4096", "NAME": "s"}
    for operation in ("create", "snapshot", "stop"):
        done = subprocess.run(
            [EXAMPLES / "reflink.sh", kind, operation],
            cwd=folder,
            env=environment,
            timeout=60,
            capture_output=True,
            text=True,
        )
        if done.returncode:
            return f"{operation}: {(done.stdout + done.stderr).strip()[-300:] or 'failed'}"
    return ""


@pytest.fixture(params=["xfs", "btrfs"])
def hooks(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    trouble = obstacle(request.param, tmp_path)
    if trouble:
        pytest.skip(f"NOT RUN: no {request.param} on a loop device: {trouble}")
    return str(EXAMPLES / f"{request.param}_reflink.toml")


def test_it_keeps_the_contract(hooks: str) -> None:
    result = campaign(targets.resolve(hooks), count=8, ops=30, seed=1, oracles=MODEL)
    assert result.verdict == "pass", [
        f.verdict.words(f.trace) for f in result.failures
    ] or result.reason
    assert {"snapshot", "delete", "revert", "restart"}.isdisjoint(result.skipped)
    assert not Path("/proc/mounts").read_text().count("disk.d"), "it cleans up"


@pytest.mark.parametrize("hooks", ["xfs"], indirect=True)
def test_the_power_cut_is_no_fake(hooks: str) -> None:
    target = targets.resolve(hooks)({})
    program: list[Message] = [
        {"op": "create", "blocks": 2},
        {"op": "write", "lba": 0, "tags": [1]},
        {"op": "flush"},
        {"op": "write", "lba": 0, "tags": [2]},
        {"op": "crash"},
        {"op": "read", "lba": 0, "count": 1},
    ]
    trace = drive(target, program)
    target.close()
    assert trace.events[-1]["result"]["tags"] == [1]
    trace.hello["crash_profile"] = "ack"
    assert judge([trace], MODEL)[0].kind == "lost-acknowledgement"
