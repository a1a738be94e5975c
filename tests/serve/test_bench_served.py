"""The bench over NBD runs all three servers, and reports each."""

import json
from pathlib import Path

from refmodel.bench.nbd_comparison import ENGINE, MEMORY, QCOW2, ROUNDS
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
