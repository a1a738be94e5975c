"""The bench: its counts are exact, and snapshots cost no device I/O."""

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from refmodel.array.layout import LAYOUTS
from refmodel.bench import runner
from refmodel.bench.clients import Tally, Window
from refmodel.bench.fio_json import job, jobs
from refmodel.bench.results import Result
from refmodel.bench.workloads.workload import Request
from refmodel.cli import main


@pytest.mark.parametrize("layout", LAYOUTS)
def test_a_write_takes_the_same_device_ios_with_and_without_snapshots(layout: str) -> None:
    none, many = (
        runner.run(
            "4k-random-write", layout=layout, blocks=512, operations=400, depth=1, snapshots=count
        )
        for count in (0, 12)
    )
    mirrors = LAYOUTS[layout][1] + 1
    assert none.devices.ios["foreground"] == many.devices.ios["foreground"] == 400 * mirrors
    assert none.digest == many.digest


def test_a_read_takes_one_device_io_with_and_without_snapshots() -> None:
    none, many = (
        runner.run("4k-random-read", blocks=512, operations=300, snapshots=count)
        for count in (0, 12)
    )
    assert none.devices.ios == many.devices.ios == {"foreground": 300}


def test_the_bench_of_the_command_line(tmp_path: Path) -> None:
    file = tmp_path / "result.json"
    arguments = [
        "bench",
        str(tmp_path / "d"),
        "--profile",
        "4k-random-write",
        "--operations",
        "64",
        "--blocks",
        "64",
        "--compare",
    ]
    done = CliRunner().invoke(main, [*arguments, "--json", str(file)])
    assert done.exit_code == 0, done.output
    for text in (
        "times that of SQLite",
        "wall second",
        "CPU us",
        "p99.9",
        "per user byte",
        "scale 1:",
    ):
        assert text in done.output
    result = json.loads(file.read_text())
    assert result["clock"] == "wall" and result["cpu_ns_per_io"] > 0 and result["bw_bytes"] > 0
    latencies = result["clat_ns"]["percentile"]
    assert [*latencies] == ["50.000000", "90.000000", "99.000000", "99.900000"]
    assert 0 < latencies["50.000000"] <= latencies["99.900000"]
    assert result["operations"] == 64 and result["user_bytes"] == 64 * 4096
    assert result["foreground_device_ios"] == 2 * 64 / 16 and result["device_bytes_by_cause"][
        "foreground"
    ] == 2 * 4 * (16 * 4096 + 512)
    assert (tmp_path / "d" / "device-0").exists() and not (tmp_path / "d" / "control").exists()


@pytest.mark.parametrize(
    "arguments, status, said",
    [
        (
            ["--profile", "hpe-8k-50", "--engine", "in-place-raid5"],
            2,
            "has no snapshots: it cannot run hpe-8k-50",
        ),
        (
            ["--profile", "4k-random-read", "--engine", "in-place-raid5", "--snapshots", "2"],
            2,
            "has no snapshots",
        ),
        (["--profile", "netone-steady", "--engine", "redo-se"], 2, "has no devices that may fail"),
        (
            ["--profile", "4k-random-read", "--engine", "redo-se", "--layout", "mirror"],
            2,
            "no option --layout",
        ),
        (["--profile", "4k-random-read", "--cache-block-bytes", "8192"], 2, "--cache-bytes"),
        (["--profile", "4k-random-read", "--json", "/nowhere/file"], 2, "/nowhere/file"),
        (["--profile", "4k-random-read", "--json", ""], 2, "'' names no file"),
        (["--profile", "cleaning", "--seed", "2"], 2, "takes no options"),
        (["--profile", "scale", "--profile", "steady"], 2, "runs alone"),
        (["--profile", "scale", "--blocks", "64"], 2, "needs 16384 blocks"),
        (["--profile", "hpe"], 2, "'hpe' is not one of"),
        (["--scale", "0"], 2, "range"),
        (["--scale", "1e300"], 2, "range"),
    ],
)
def test_a_run_that_is_impossible_is_refused_before_it_begins(
    monkeypatch: pytest.MonkeyPatch, arguments: list[str], status: int, said: str
) -> None:
    monkeypatch.setattr(runner, "prepare", lambda *arguments: pytest.fail("a disk was filled"))
    done = CliRunner().invoke(main, ["bench", *arguments])
    assert (done.exit_code, said in done.output) == (status, True), done.output


@pytest.mark.parametrize(
    "arguments",
    [
        ["--profile", "steady", "--seed", "2"],
        ["--profile", "scale", "--layout", "mirror"],
        ["--profile", "4k-random-read", "--engine", "redo-se", "--layout", "mirror"],
    ],
)
def test_a_refused_bench_leaves_the_file_as_it_was(tmp_path: Path, arguments: list[str]) -> None:
    file = tmp_path / "results.json"
    file.write_text("earlier")
    done = CliRunner().invoke(main, ["bench", *arguments, "--json", str(file)])
    assert done.exit_code == 2 and file.read_text() == "earlier"


def test_latencies_are_counted_as_in_the_json_of_fio() -> None:
    read, write = Request(True, 0, 1), Request(False, 0, 1)
    requests = [read, write, write, read, read]
    nothing = Tally.of([])
    windows = [
        Window("p", 0.0, 1.0, 1.0, 4, 2, [1e-6, 3e-6], nothing),
        Window("p", 1.0, 1.0, 1.0, 1, 2, [1e-3], nothing),
    ]
    found = job("p", windows, requests)
    assert found["read"]["clat_ns"]["bins"] == {"1000": 1, "2976": 1, "999424": 1}
    assert found["write"]["clat_ns"]["bins"] == {"1000": 1, "2976": 1}
    assert (found["read"]["total_ios"], found["trim"]) == (3, {"total_ios": 0})
    assert job("p", [], [])["read"] == {"total_ios": 0}
    result = runner.run("4k-random-50-50", blocks=64, operations=100)
    counted = [jobs(result)[0][name]["total_ios"] for name in ("read", "write")]
    assert sum(counted) == 100 and counted[0] == sum(one.read for one in result.phases[0].requests)


def test_results_that_cannot_be_written_name_the_file() -> None:
    arguments = ["--profile", "4k-random-read", "--operations", "1", "--blocks", "64"]
    done = CliRunner().invoke(main, ["bench", *arguments, "--json", "/dev/full"])
    assert done.exit_code == 1 and "/dev/full: No space left on device" in done.output
    assert "1 operation\n" in done.output and "1 operations" not in done.output


def test_an_interrupted_bench_keeps_its_results(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    run, file = runner.run, tmp_path / "results.json"

    def interrupted(profile: str, **options: Any) -> Result:
        if profile == "4k-random-write":
            raise KeyboardInterrupt
        return run(profile, **options)

    monkeypatch.setattr(runner, "run", interrupted)
    file.write_text("earlier")
    none = CliRunner().invoke(main, ["bench", "--profile", "4k-random-write", "--json", str(file)])
    assert none.exit_code == 130 and file.read_text() == "earlier"
    profiles = ["--profile", "4k-random-read", "--profile", "4k-random-write"]
    done = CliRunner().invoke(
        main, ["bench", *profiles, "--operations", "64", "--blocks", "64", "--json", str(file)]
    )
    assert done.exit_code == 130 and "interrupted" in done.output
    assert [json.loads(line)["profile"] for line in file.read_text().splitlines()] == [
        "4k-random-read"
    ]
