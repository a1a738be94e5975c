"""Count the block writes of a checkpoint, with whole maps and with trees.

python proofs/disk/checkpoint_writes.py [BLOCKS] [CHANGED]

A disk is filled, and snapshots are taken. After a checkpoint, blocks are written at random; the
block writes of the next checkpoint are counted.
"""

import base64
import json
import random
import subprocess
import sys
from typing import Any

from kill_disk import BLOCK, NUMBERS, PROGRAM


class Adapter:
    """A disk in memory."""

    def __init__(self, *options: str) -> None:
        self.child = subprocess.Popen(
            [PROGRAM, "adapter", "--log-records", "60000", *options],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        self.ask(op="hello")

    def ask(self, **message: Any) -> dict[str, Any]:
        """Return the answer. Raises SystemExit if it is a refusal."""
        assert self.child.stdin is not None and self.child.stdout is not None
        self.child.stdin.write(json.dumps(message) + "\n")
        self.child.stdin.flush()
        answer: dict[str, Any] = json.loads(self.child.stdout.readline())
        if not answer["ok"]:
            raise SystemExit(f"{message['op']}: {answer}")
        return answer

    def write(self, lba: int, count: int) -> None:
        """Write so many blocks."""
        self.ask(op="write", lba=lba, data=base64.b64encode(b"x" * BLOCK * count).decode())

    def writes(self) -> int:
        """Return how many blocks the disk has written to its device."""
        return int(self.ask(op="stats")["counters"]["device_writes"])


def checkpoint_writes(blocks: int, changed: int, snapshots: int, *options: str) -> int:
    """Return the block writes of a checkpoint after so many blocks were written."""
    disk, choose = Adapter(*options), random.Random(1)
    disk.ask(op="create", blocks=blocks)
    for lba in range(0, blocks, 64):
        disk.write(lba, min(64, blocks - lba))
    for number in range(snapshots):
        disk.ask(op="snapshot", name=f"s{number}")
    disk.ask(op="checkpoint")
    for _ in range(changed):
        disk.write(choose.randrange(blocks), 1)
    before = disk.writes()
    disk.ask(op="checkpoint")
    after = disk.writes()
    disk.ask(op="bye")
    disk.child.wait()
    return after - before


def main() -> int:
    """Print a line per number of snapshots."""
    blocks, changed = [*NUMBERS, *[16384, 100][len(NUMBERS) :]]
    for snapshots in (0, 8):
        whole = checkpoint_writes(blocks, changed, snapshots)
        trees = checkpoint_writes(blocks, changed, snapshots, "--trees")
        print(f"{snapshots} snapshots: {whole} with whole maps, {trees} with trees", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
