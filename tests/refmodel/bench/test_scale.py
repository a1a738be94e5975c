"""What operations cost by the size of the disk: by counts, the same at every size."""

import gc
import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from refmodel.bench.cleaning_theory import greedy
from refmodel.bench.scale import cleaning_in_steps, node_writes, table
from refmodel.bench.scale.cleaning_in_steps import Amplification, Row
from refmodel.cli import main
from refmodel.log_structured.geometry import plan
from refmodel.log_structured.increments import Increments

STEP = 32  # nodes that the steps which an operation earns may make


@pytest.fixture(scope="module")
def rows() -> list[table.Row]:
    return [table.measure(blocks, 3, writes=300, cleaned=False) for blocks in (1 << 11, 1 << 15)]


@pytest.mark.parametrize("operation", ["snapshot", "revert", "delete"])
def test_snapshots_cost_the_same_at_every_size(rows: list[table.Row], operation: str) -> None:
    small, large = (getattr(row, operation) for row in rows)
    assert small.ios == large.ios == 2  # the record, to both mirrors of the log
    assert max(small.nodes, large.nodes) <= STEP


def test_snapshots_cost_no_more_while_the_cleaner_is_at_work() -> None:
    row = table.measure(1 << 14, 1, writes=300)
    assert row.snapshot.ios == row.revert.ios == row.delete.ios == 2
    assert gc.isenabled()


@pytest.mark.parametrize("pages", [None, 2600])
def test_no_write_waits_for_a_checkpoint_or_a_cleaning_while_many_snapshots_are_held(
    tmp_path: Path, pages: int | None
) -> None:
    """Nearly all segments are nearly dead, or nearly all pages are in use: there is more to do."""
    bench = table.Bench(tmp_path / "disk", plan(1 << 12, segments=230, pages=pages), None)
    bench.age(60, cleaned=True)
    most = 0
    for _ in range(9000):
        before = bench._ios()
        bench.write(1)
        most = max(most, bench._ios() - before)
    assert bench.disk.cleaning.steps
    assert most <= 40  # 94 to 102 when the last segment was filled, or nodes written, at once
    bench.disk.abandon()


def test_the_engine_makes_no_cycles(tmp_path: Path) -> None:
    """So Python's collector, which waits while the profile measures, has nothing to find."""
    bench = table.Bench(tmp_path / "disk", plan(1 << 12, segments=80), None)
    bench.age(2, cleaned=True)
    gc.collect()
    gc.disable()
    bench.write(1000)
    bench.disk.read(0, 256)
    bench.disk.snapshot("s")
    bench.disk.unmap(0, 256)
    bench.disk.revert("s")
    bench.disk.delete("s")
    bench.disk.fail(1)
    bench.write(100)
    bench.disk.return_(1)
    bench.disk.settle()
    bench.disk.clean()
    bench.disk.checkpoint()
    assert bench.disk.cleaning.steps
    assert gc.collect() == 0
    gc.enable()
    bench.disk.abandon()


def test_nodes_are_packed_and_written_as_often_as_they_must(rows: list[table.Row]) -> None:
    _, large = rows
    assert large.memory < 128  # bytes per block: full leaves are split by writes at random
    assert 0 < large.node_bytes < 3  # at most a leaf of each of the three maps per write
    assert large.misses == 0


def test_writes_are_measured_while_a_snapshot_is_reclaimed_and_a_device_is_rebuilt() -> None:
    row = table.measure(1 << 12, 0, writes=600)
    assert row.reclaim_steps > 16 and row.rebuild_steps > 100  # more than the leaves of a map
    assert 0 < row.repairing.p999 <= row.repairing.longest


def test_whole_checkpoints_write_no_more_nodes_than_the_trees_allow(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Beside the leaves that change by chance, a checkpoint writes inner nodes and new leaves.

    Chunks that were written together are often moved together, so fewer leaves change.
    """
    monkeypatch.setattr(Increments, "may_be_next", lambda self: False)
    row = node_writes.measure(1 << 14, "uniform", writes=2000)
    assert row.ratio is not None and 0.7 < row.ratio < 1.1


def test_increments_write_far_less() -> None:
    row = node_writes.measure(1 << 14, "uniform", writes=6000)
    assert row.ratio is not None and row.ratio < 0.25
    assert node_writes.measure(1 << 14, "zipf", writes=6000).node_bytes < 0.25


def test_sequential_writes_change_few_nodes() -> None:
    assert node_writes.measure(1 << 13, "sequential", writes=2000).node_bytes < 0.05


def test_changes_that_fall_by_chance_touch_few_leaves_twice() -> None:
    assert node_writes.touched(1000, 1) == pytest.approx(1, rel=1e-3)
    assert node_writes.touched(1000, 1000) == pytest.approx(1000 * (1 - 1 / 2.718281828))
    assert node_writes.touched(10, 1e6) == 10


def test_little_memory_is_enough(rows: list[table.Row]) -> None:
    tight = table.measure(1 << 15, 3, writes=300, memory=1 << 20, cleaned=False)
    assert tight.memory * (1 << 15) < 2 << 20
    assert tight.misses > 0
    assert tight.snapshot.ios == rows[1].snapshot.ios


def test_what_fuller_segments_cost_is_told_from_what_steps_cost() -> None:
    in_steps = Amplification(1.1 * greedy(0.82, 64), 0.82, 0, 1.0)
    at_once = Amplification(greedy(0.78, 64), 0.78, 5, 5.0)
    row = Row(0.0, 0.8, in_steps, at_once)
    assert row.ratio > 1.2 and row.ratio_at_same_share == pytest.approx(1.1)
    assert Row(0.99, 0.8, in_steps, at_once).ratio_at_same_share is None
    assert row.ratio_with_nodes == pytest.approx((in_steps.written + 1) / (at_once.written + 5))


def test_the_profile_prints_a_row_for_each_size(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(table, "SIZES", (1 << 10, 1 << 12, 1 << 30))
    monkeypatch.setattr(table, "SNAPSHOTS", (0, 1))
    monkeypatch.setattr(node_writes, "SIZES", (1 << 12,))
    monkeypatch.setattr(cleaning_in_steps, "LIVE", (0.5,))
    monkeypatch.setattr(cleaning_in_steps, "SEGMENTS", 64)
    monkeypatch.setattr(cleaning_in_steps, "TURNS", 1)
    arguments = ["--operations", "50", "--json", str(tmp_path / "rows")]
    done = CliRunner().invoke(main, ["bench", "--profile", "scale", *arguments])
    assert done.exit_code == 0, done.output
    lines = done.output.splitlines()
    assert [line.split()[:3] for line in lines[1:5]] == [
        [size, "MiB", held] for held in ("0", "1") for size in ("4", "16")
    ]
    assert [line.split()[2] for line in lines[6:9]] == [*node_writes.WORKLOADS]
    assert [line.split()[0] for line in lines[10:]] == ["uniform", "zipf"]
    rows = [json.loads(line) for line in (tmp_path / "rows").read_text().splitlines()]
    tables = 4 * ["operations"] + 3 * ["nodes"] + 2 * ["cleaning in steps"]
    assert [(row["profile"], row["table"]) for row in rows] == [("scale", one) for one in tables]
    assert rows[0]["snapshot"]["ios"] == 2 and rows[-1]["in_steps"]["written"] > 1
    refused = CliRunner().invoke(main, ["bench", "--profile", "scale", "--layout", "mirror"])
    assert refused.exit_code == 2
