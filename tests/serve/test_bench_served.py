"""The bench over NBD runs all three servers, and reports each."""

import json
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from refmodel.bench.nbd_comparison import ENGINE, MEMORY, PERCENTILES, QCOW2, ROUNDS, Run, tool
from support.serving.served import refmodel


def test_three_servers_take_turns(tmp_path: Path) -> None:
    done = refmodel(
        "bench",
        "--nbd",
        "--layout",
        "raid5-2+1",
        "--blocks",
        1024,
        "--operations",
        200,
        "--json",
        tmp_path / "runs",
    )
    runs = [json.loads(line) for line in (tmp_path / "runs").read_text().splitlines()]
    assert [run["server"] for run in runs] == [ENGINE, QCOW2, MEMORY] * ROUNDS
    assert all(run["iops"] > 0 and run["server_cpu_ns_per_io"] > 0 for run in runs)
    for run in runs:
        latencies = [*run["clat_ns"]["percentile"].values()]
        assert len(latencies) == 4 and latencies[0] > 0 and latencies == sorted(latencies)
    table = done.stdout.decode()
    assert all(name in table for name in (ENGINE, QCOW2, MEMORY)) and "raid5-2+1" in table
    refmodel("bench", "--nbd", "--depth", 3, status=2)


def test_fields_are_named_as_in_fio(tmp_path: Path) -> None:
    """What reads iops, bw_bytes and percentiles of fio reads them of the bench."""
    options = {
        "name": "run",
        "ioengine": "null",
        "size": "1M",
        "rw": "randread",
        "percentile_list": ":".join(map(str, PERCENTILES)),
        "output-format": "json",
        "output": tmp_path / "fio",
    }
    tool("fio", *(f"--{key}={value}" for key, value in options.items()), folder=tmp_path)
    text = (tmp_path / "fio").read_text()
    fio = json.loads(text[text.index("{") :])["jobs"][0]["read"]
    refmodel("bench", "--profile", "4k-random-read", "--scale", 0.02, "--json", tmp_path / "bench")
    bench = json.loads((tmp_path / "bench").read_text())
    over_nbd: dict[str, Any] = Run(1.0, 1.0, 1.0, (1.0,) * len(PERCENTILES)).as_dict()
    for found in (bench, over_nbd):
        assert isinstance(found["iops"], float) and isinstance(fio["iops"], float)
        assert found["bw_bytes"] > 0 and fio["bw_bytes"] > 0
        latencies = found["clat_ns"]["percentile"]
        assert latencies.keys() == fio["clat_ns"]["percentile"].keys()
        assert all(isinstance(nanoseconds, int) for nanoseconds in latencies.values())


def test_a_tool_of_fio_reads_the_latencies(tmp_path: Path) -> None:
    script = shutil.which("fio_jsonplus_clat2csv")
    system = ["/usr/bin/python3", "-c", "import six"]  # what the script imports
    if script is None or subprocess.run(system, stderr=subprocess.DEVNULL).returncode:
        pytest.skip("NOT RUN: fio_jsonplus_clat2csv, or six, is not installed")
    bench, csv = tmp_path / "bench", tmp_path / "latencies.csv"
    refmodel("bench", "--profile", "4k-random-50-50", "--scale", 0.02, "--json", bench)
    for check in ((), ("--validate",)):
        done = subprocess.run(
            ["/usr/bin/python3", script, bench, csv, *check], capture_output=True, text=True
        )
        assert done.returncode == 0, done.stderr
    assert "validated" in done.stdout
    lines = (tmp_path / "latencies_job0.csv").read_text().splitlines()
    assert "read_clat_ns_count" in lines[0] and len(lines) > 2
