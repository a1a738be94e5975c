"""Kills the engine at random moments under load, and checks that no acknowledged operation is lost.

A child process works on the disk, and reports each acknowledged operation until SIGKILL ends it.
The parent opens the disk and compares every view. Now and then a device is lost at the same time.
The operation that was in flight may have happened or not. `python -m refmodel.bench.kill_test N`
kills N times per layout.
"""

import os
import random
import signal
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from refmodel.array.member import ComponentState
from refmodel.core.errors import NoSpace
from refmodel.log_structured.disk import LogStructuredDisk, create, open_disk
from refmodel.log_structured.geometry import plan
from refmodel.media.enclosure import Enclosure

BLOCKS, BLOCK = 96, 512  # size of the disk in blocks, and of a block in bytes
LONGEST = 0.03  # seconds that a child works at most

Operation = tuple[Any, ...]  # name, arguments


@dataclass
class Content:
    """The content of a disk: LBA (logical block address) -> tag of the block."""

    live: dict[int, int] = field(default_factory=dict)
    snaps: dict[str, dict[int, int]] = field(default_factory=dict)

    def after(self, operation: Operation) -> "Content":
        """Return the content after an operation."""
        live, snaps = dict(self.live), dict(self.snaps)
        match operation:
            case ("write", lba, count, tag):
                live |= {lba + at: tag for at in range(count)}
            case ("unmap", lba, count):
                live = {at: tag for at, tag in live.items() if not lba <= at < lba + count}
            case ("snapshot", name):
                snaps[name] = dict(live)
            case ("delete", name):
                del snaps[name]
            case ("revert", name):
                live = dict(snaps[name])
        return Content(live, snaps)


@dataclass
class Outcome:
    """The result of a campaign."""

    kills: int = 0
    acknowledged: int = 0  # operations
    in_flight: int = 0  # operations that were killed before the answer, and had happened
    without_a_device: int = 0  # number of openings without a device
    redundant: bool = True  # whether a device may be lost now
    wrong: list[str] = field(default_factory=list)


def campaign(folder: Path, kills: int, layout: str, seed: int = 1) -> Outcome:
    """Kill a process `kills` times. Returns the outcome, with a line for each error."""
    shape = plan(
        BLOCKS,
        block_bytes=BLOCK,
        segment_blocks=8,
        segments=60,
        fanout=8,
        layout=layout,
        log_bytes=1 << 16,
    )
    create(folder, shape, sync=False)
    choose = random.Random(seed)
    found, content = Outcome(), Content()
    while found.kills < kills and not found.wrong:
        content = _life(folder, choose, content, found)
    return found


def _life(folder: Path, choose: random.Random, content: Content, found: Outcome) -> Content:
    """Run and kill one child process. Returns what the disk holds afterwards."""
    seed = choose.randrange(1 << 30)
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        _work(folder, seed, content, writer)
    os.close(writer)
    os.read(reader, 1)  # the disk is open
    time.sleep(choose.random() * LONGEST)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    found.kills += 1
    with os.fdopen(reader, "rb") as pipe:
        acknowledged = len(pipe.read())
    found.acknowledged += acknowledged
    operations = _operations(seed, content)
    for _ in range(acknowledged):
        _, content = next(operations)
    _, happened = next(operations)
    if found.redundant and choose.random() < 0.3:
        _lose_a_device(folder, choose)
        found.without_a_device += 1
    disk = open_disk(folder, sync=False)
    read = _read(disk)
    if read == happened != content:
        found.in_flight += 1
        content = happened
    elif read != content:
        found.wrong.append(
            f"kill {found.kills}, seed {seed}: after {acknowledged} acknowledged operations "
            "the views differ"
        )
    for member in disk.array.in_state(ComponentState.ABSENT):
        disk.return_(member.index)
    if choose.random() < 0.5:
        disk.settle()
    found.redundant = disk.array.redundant
    disk.close()
    return content


def _work(folder: Path, seed: int, content: Content, report: int) -> None:
    """Do operations until killed; runs in the child."""
    try:
        disk = open_disk(folder, sync=False)
        os.write(report, b"o")
        for operation, _ in _operations(seed, content):
            name, *arguments = operation
            if name == "write":
                lba, count, tag = arguments
                arguments = [lba, _block(tag) * count]
            try:
                getattr(disk, name)(*arguments)
            except NoSpace:
                break
            os.write(report, b"a")
        while True:
            signal.pause()
    finally:
        os._exit(1)


def _operations(seed: int, content: Content) -> Iterator[tuple[Operation, Content]]:
    """Yield operations, each with the content after it: the same ones in child and parent."""
    choose = random.Random(seed)
    tag = seed << 20
    while True:
        tag += 1
        lba = choose.randrange(BLOCKS)
        count = min(choose.choice((1, 1, 1, 2, 20)), BLOCKS - lba)
        name = f"s{choose.randrange(4)}"
        roll = choose.random()
        if roll < 0.75:
            operation: Operation = ("write", lba, count, tag)
        elif roll < 0.85:
            operation = ("unmap", lba, count)
        elif name not in content.snaps:
            operation = ("snapshot", name)
        else:
            operation = (choose.choice(("delete", "delete", "revert")), name)
        content = content.after(operation)
        yield operation, content


def _lose_a_device(folder: Path, choose: random.Random) -> None:
    enclosure = Enclosure(folder)
    enclosure.pull(choose.choice(enclosure.present()))
    enclosure.close()


def _read(disk: LogStructuredDisk) -> Content:
    def tags(view: str | None) -> dict[int, int]:
        data = disk.read(0, BLOCKS, view)
        found = {}
        for lba in range(BLOCKS):
            block = data[lba * BLOCK : (lba + 1) * BLOCK]
            if any(block):
                tag = int.from_bytes(block[:8], "little")
                found[lba] = tag if block == _block(tag) else -1
        return found

    return Content(tags(None), {name: tags(name) for name in disk.state.views.names})


def _block(tag: int) -> bytes:
    return tag.to_bytes(8, "little") * (BLOCK // 8)


if __name__ == "__main__":
    import sys
    import tempfile

    from refmodel.array.layout import LAYOUTS

    failed = False
    for layout in LAYOUTS:
        memory = Path("/dev/shm")
        with tempfile.TemporaryDirectory(dir=memory if memory.is_dir() else None) as name:
            outcome = campaign(Path(name) / "disk", int(sys.argv[1]), layout)
        print(
            f"{layout:<10} {outcome.kills} kills, {outcome.acknowledged} operations acknowledged, "
            f"{outcome.in_flight} more had happened, "
            f"opened {outcome.without_a_device} times without a device: "
            f"{outcome.wrong or 'nothing lost'}",
            flush=True,
        )
        failed = failed or bool(outcome.wrong)
    sys.exit(failed)
