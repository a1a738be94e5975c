"""The bench counts what it does; and the claim that snapshots cost nothing, in device I/Os."""

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from refmodel import bench
from refmodel.cli import main
from refmodel.layout import LAYOUTS


@pytest.mark.parametrize("layout", LAYOUTS)
def test_a_write_takes_the_same_device_ios_whatever_snapshots_there_are(layout: str) -> None:
    none, many = (bench.run("4k-random-write", layout=layout, blocks=512, operations=400, depth=1, snapshots=count) for count in (0, 12))
    mirrors = LAYOUTS[layout][1] + 1
    assert none.devices.ios["foreground"] == many.devices.ios["foreground"] == 400 * mirrors
    assert none.digest == many.digest


def test_a_read_takes_one_device_io_whatever_snapshots_there_are() -> None:
    none, many = (bench.run("4k-random-read", blocks=512, operations=300, snapshots=count) for count in (0, 12))
    assert none.devices.ios == many.devices.ios == {"foreground": 300}


def test_the_bench_of_the_command_line(tmp_path: Path) -> None:
    file = tmp_path / "result.json"
    arguments = ["bench", str(tmp_path / "d"), "--profile", "4k-random-write", "--operations", "64", "--blocks", "64", "--compare"]
    done = CliRunner().invoke(main, [*arguments, "--json", str(file)])
    assert done.exit_code == 0, done.output
    assert "times the rate of SQLite" in done.output and "foreground" in done.output and "scale 1:" in done.output
    result = json.loads(file.read_text())
    assert result["operations"] == 64 and result["user_bytes"] == 64 * 4096
    assert result["foreground_device_ios"] == 2 * 64 / 16 and result["device_bytes_by_cause"]["foreground"] == 2 * 4 * (16 * 4096 + 512)
    assert (tmp_path / "d" / "device-0").exists() and not (tmp_path / "d" / "control").exists()
