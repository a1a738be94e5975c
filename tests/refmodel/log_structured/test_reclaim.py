"""Reclaim of deleted views of large maps: it skips what others hold, many nodes in a step, and
frees the rest.
"""

import random
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from refmodel.log_structured.audit import audit
from refmodel.log_structured.disk import LogStructuredDisk
from refmodel.log_structured.geometry import plan
from refmodel.log_structured.requests import MOST_OWED
from refmodel.log_structured.snapshots import reclaim

BLOCKS, BLOCK = 2048, 512
CHANGES = (1, 5, 60)  # blocks that change between two operations on views


def data(number: int) -> bytes:
    return number.to_bytes(4, "little") * (BLOCK // 4)


def branch(
    disk: LogStructuredDisk, choose: random.Random, live: list[int], kept: dict[str, list[int]]
) -> None:
    """Write, snapshot, revert and delete; `live` and `kept` become what the views hold."""
    for number in range(1 + max(live), 40 + max(live)):
        for lba in choose.sample(range(BLOCKS), choose.choice(CHANGES)):
            disk.write(lba, data(number))
            live[lba] = number
        name, action = choose.choice([*kept, ""]), choose.random()
        if action < 0.5 or not name:
            disk.snapshot(f"s{number}")
            kept[f"s{number}"] = live[:]
        elif action < 0.75:
            disk.revert(name)
            live[:] = kept[name]
        else:
            disk.delete(name)
            del kept[name]


@pytest.mark.parametrize(("seed", "most", "births"), [(1, 64, True), (2, 3, True), (4, 64, False)])
def test_what_is_left_of_branches_is_what_views_hold(
    folder: Path, monkeypatch: pytest.MonkeyPatch, seed: int, most: int, births: bool
) -> None:
    skipped: list[int] = []
    end_of_held = reclaim.Reclaimer._end_of_held

    def counted(self: Any, view: Any, node: Any, first: int, end: int) -> int:
        found = end_of_held(self, view, node, first, end)
        skipped.append(sum(key < found for key in node.keys[first:]))
        return found

    monkeypatch.setattr(reclaim, "MOST_SKIPPED", most)
    monkeypatch.setattr(reclaim.Reclaimer, "_end_of_held", counted)
    sizes = plan(BLOCKS, block_bytes=BLOCK, fanout=8, segments=150, segment_blocks=64)
    LogStructuredDisk.create(folder, sizes, sync=False)
    choose, live, kept = random.Random(seed), [0] * BLOCKS, dict[str, list[int]]()
    with (
        closing(LogStructuredDisk.open(folder, sync=False)) as disk,
        monkeypatch.context() as patch,
    ):
        patch.setattr(reclaim.Reclaimer, "reclaim", lambda _: False)  # what is deleted waits
        for lba in range(0, BLOCKS, 256):
            disk.write(lba, data(0) * 256)
        branch(disk, choose, live, kept)
    with closing(LogStructuredDisk.open(folder, sync=False, memory=0)) as disk:
        if births:
            disk.state.survey.learn_births()
        branch(disk, choose, live, kept)  # else the births of these nodes are known, not of others
        disk.settle()
        assert audit(disk.state) == [] and not disk.state.views.deleted
        for name, blocks in kept.items():
            assert disk.read(0, BLOCKS, name) == b"".join(map(data, blocks))
    assert max(skipped) > 1 and skipped.count(0)


def test_operations_on_views_leave_reclaim_to_writes_unless_many_deleted_views_wait(
    folder: Path,
) -> None:
    LogStructuredDisk.create(folder, plan(BLOCKS, block_bytes=BLOCK), sync=False)
    with closing(LogStructuredDisk.open(folder, sync=False)) as disk:
        deleted, reclaimer = disk.state.views.deleted, disk.state.reclaimer
        waiting: list[int] = []
        disk.write(0, data(1) * BLOCKS)
        disk.checkpoint()  # nothing waits to be merged
        for number in range(2 * MOST_OWED):  # nobody writes, so nobody else reclaims
            disk.snapshot(f"s{number}")
            disk.revert(f"s{number}")
            disk.delete(f"s{number}")
            waiting.append(len(deleted))
            assert reclaimer.steps == 0 or waiting[-1] > MOST_OWED
        assert max(waiting) <= MOST_OWED + 2 < reclaimer.steps
        steps = reclaimer.steps
        disk.write(0, data(2))
        assert reclaimer.steps == steps + 1  # of many
        disk.settle()
        assert not deleted and audit(disk.state) == []
