"""The cleaner against theory, on small disks.

`refmodel bench --profile cleaning` measures more policies, on larger disks.
"""

import random
from collections.abc import Callable

import pytest

from refmodel import LogStructuredDisk
from refmodel.bench.cleaning_theory import HOT_COLD, UNIFORM, fifo, greedy, measure
from support.disks import block


def test_the_formulas_give_the_published_figures() -> None:
    for live, by_fifo, greedy_16, greedy_64 in [
        (0.5, 1.255, 1.193, 1.239),
        (0.7, 1.876, 1.716, 1.833),
        (0.8, 2.693, 2.353, 2.598),
        (0.9, 5.179, 3.986, 4.816),
    ]:
        assert fifo(live) == pytest.approx(by_fifo, abs=0.001)
        assert greedy(live, 16) == pytest.approx(greedy_16, abs=0.001)
        assert greedy(live, 64) == pytest.approx(greedy_64, abs=0.001)


def test_greedy_cleaning_of_uniform_writes_costs_what_theory_says() -> None:
    found = measure(UNIFORM, "greedy", 0.7, 16, slots=2400)
    assert found.live == pytest.approx(0.7, abs=0.015)
    assert found.ratio == pytest.approx(1, abs=0.03)


def test_streams_keep_hot_and_cold_apart() -> None:
    one_log = measure(HOT_COLD[1], "greedy", 0.8, 16, slots=2400)
    streams = measure(HOT_COLD[1], "cost-benefit", 0.8, 16, slots=2400)
    assert streams.amplification < 0.65 * one_log.amplification


@pytest.mark.parametrize("policy", ["greedy", "fifo", "cost-benefit"])
def test_no_more_is_moved_than_the_free_segments_take(
    make: Callable[..., LogStructuredDisk], policy: str
) -> None:
    disk = make(20, segment_blocks=4, segments=9, cleaner=policy)
    chunks, segments, cleaner = disk.state.chunks, disk.state.segments, disk.cleaner
    choice = random.Random(1)
    for tag in range(1, 300):
        disk.write(choice.randrange(20), block(tag))
        for _ in range(choice.randrange(4)):
            cleaner.clean()
            assert len(chunks.bank) + len(chunks.moving) <= segments.free_count() * segments.units


def test_nothing_is_gained_from_victims_that_are_not_dead_though_nothing_moves(
    make: Callable[..., LogStructuredDisk],
) -> None:
    """Their usage may be wrong where devices lost what they said was durable."""
    disk = make(20, segment_blocks=4, segments=12)
    for lba in range(20):
        disk.write(lba, block(lba))
    disk.checkpoint()
    cleaner, sealed = disk.cleaner, disk.state.segments.sealed
    for segment, usage in list(sealed.items())[:3]:
        cleaner._emptied[segment] = usage.filled
    assert not cleaner.clean()
