"""Requests that overlap, on qemu's own servers."""

import json
import subprocess
import time
from itertools import pairwise
from pathlib import Path

import pytest
from click.testing import CliRunner

from conformance.campaign import overlap
from conformance.cli import main
from conformance.judging.linearizable import judge
from conformance.media import nbd


def test_a_run_of_qcow2_has_them(tmp_path: Path) -> None:
    said = CliRunner().invoke(
        main,
        [
            "run",
            "--target",
            "qcow2",
            "--without",
            "unmap",
            "--traces",
            "2",
            "--ops",
            "20",
            "--seed",
            "1",
            "--overlap",
            "3",
            "--json",
            str(tmp_path / "json"),
            "--junit",
            str(tmp_path / "junit"),
        ],
    )
    found = json.loads((tmp_path / "json").read_text())["overlap"]
    assert said.exit_code == 0 and found["verdict"] == "pass" and found["calls"] >= 60, said.output
    assert (
        "1 round of 3 connections at once" in " ".join(said.output.split())
        and "overlap" in (tmp_path / "junit").read_text()
    )


@pytest.mark.parametrize("kind", ["raw", "qcow2"])
def test_qemu_nbd(tmp_path: Path, kind: str) -> None:
    subprocess.run(["qemu-img", "create", "-q", "-f", kind, tmp_path / "disk", "64k"], check=True)
    server = subprocess.Popen(
        ["qemu-nbd", "-f", kind, "-t", "-e", "4", "-k", tmp_path / "socket", tmp_path / "disk"]
    )
    try:
        while not (tmp_path / "socket").exists():
            time.sleep(0.01)
        uri = f"nbd+unix:///?socket={tmp_path / 'socket'}"
        history = overlap.drive(lambda: nbd.NbdDevice(uri, 20.0), 4, 100, seed=2)
        said = CliRunner().invoke(main, ["overlap", uri, "--requests", "20"])
    finally:
        server.terminate()
        server.wait()
    assert judge(history).verdict == "pass"
    assert said.exit_code == 3 and "is not zero-filled: nothing is written" in said.output
    ends = sorted((call.invoked, call.returned) for call in history)
    assert any(later[0] < earlier[1] for earlier, later in pairwise(ends)), "requests did overlap"
