"""Changes that wait: a snapshot freezes them, and bounded steps merge them. No view shows it."""

import random
from collections.abc import Callable
from pathlib import Path

import pytest

from refmodel import LogStructuredDisk, create, open_disk, plan
from refmodel.log_structured.audit import audit
from support.disks import block

Make = Callable[..., LogStructuredDisk]


def fill(disk: LogStructuredDisk, count: int, seed: int = 1) -> dict[int, int]:
    """Write so many random blocks. Returns LBA -> tag."""
    choose = random.Random(seed)
    written = {}
    for tag in range(1, count + 1):
        lba = choose.randrange(disk.geometry.blocks)
        disk.write(lba, block(tag))
        written[lba] = tag
    return written


def content(disk: LogStructuredDisk, view: str | None = None) -> dict[int, int]:
    data = disk.read(0, disk.geometry.blocks, view)
    tags = [int.from_bytes(data[at : at + 8], "little") for at in range(0, len(data), 512)]
    return {lba: tag for lba, tag in enumerate(tags) if tag}


@pytest.mark.parametrize("act", ["snapshot", "revert", "delete"])
def test_snapshot_revert_and_delete_merge_at_most_one_step(folder: Path, act: str) -> None:
    costs = []
    for blocks in (512, 4096):
        path = folder.parent / str(blocks)
        create(path, plan(blocks, block_bytes=512, segment_blocks=16), sync=False)
        disk = open_disk(path, sync=False)
        written = fill(disk, blocks)
        disk.checkpoint()
        disk.snapshot("base")
        written |= fill(disk, 400, seed=2)
        state = disk.state
        waiting, created = sum(state.views.waiting_changes()), state.pages.created
        assert waiting > 200
        ios = disk.array.performance.ios, disk.array.capacity.ios
        if act == "snapshot":
            disk.snapshot("s")
        else:
            getattr(disk, act)("base")
        assert state.pages.created - created <= 64
        # `delete` lets reclaim begin, which merges a step of its own, before the next operation
        assert waiting - sum(state.views.waiting_changes()) <= 16 + 64
        after = disk.array.performance.ios, disk.array.capacity.ios
        costs.append([now - then for now, then in zip(after, ios, strict=True)])
        assert audit(state) == []
        if act == "snapshot":
            assert content(disk, "s") == content(disk) == written
        disk.abandon()
    assert costs[0] == costs[1]


def test_views_over_frozen_maps_read_what_they_are(make: Make) -> None:
    disk = make(64, fanout=4, segments=200, log_bytes=1 << 22)
    choose, live, views, deepest, remembered = random.Random(3), {}, {}, 0, 0
    for tag in range(1, 500):
        busy = tag % 100 < 60  # first changes come to wait, then views are made on top of them
        match choose.choice("wwwwu" if busy else "wwusssr" if tag % 100 < 95 else "d"):
            case "w":
                live[lba := choose.randrange(64)] = tag
                disk.write(lba, block(tag))
            case "u":
                live.pop(lba := choose.randrange(64), None)
                disk.unmap(lba, 1)
            case "s":
                views[f"s{tag}"] = dict(live)
                disk.snapshot(f"s{tag}")
            case "r" if views:
                live = dict(views[name := choose.choice([*views])])
                disk.revert(name)
            case "d" if views:
                del views[name := choose.choice([*views])]
                disk.delete(name)
        deepest = max(deepest, len(disk.state.views.frozen_maps))
        assert content(disk) == live
        assert all(content(disk, name) == held for name, held in views.items())
        assert audit(disk.state) == []  # also of what live remembers
        remembered += len(list(disk.state.views.live_map.remembered()))
    assert deepest > 4 and remembered > 10_000
    disk.state.update_maps()
    assert not sum(disk.state.views.waiting_changes()) and content(disk) == live
    assert all(content(disk, name) == held for name, held in views.items())
    assert audit(disk.state) == []


def test_the_price_of_a_write_rises_with_the_maps_that_wait(make: Make) -> None:
    disk = make(4096, fanout=0, segment_blocks=16)
    fill(disk, 2500)
    waiting = []
    for number in range(200):
        disk.write(number, block(1))
        disk.snapshot(f"s{number}")
        waiting.append(len(disk.state.views.frozen_maps))
    assert 8 < max(waiting) < 64 and waiting[-1] <= 1
