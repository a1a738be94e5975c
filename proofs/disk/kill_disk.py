"""Kill the proved disk at random moments under load: nothing acknowledged may be lost.

    python proofs/disk/kill_disk.py 500
    python proofs/disk/kill_disk.py 100 --trees

A process serves a disk that lasts and is sent one request after the other. SIGKILL ends it. The
next process opens the disk, and every view is compared: the request in flight happened whole or not
at all.
"""

import base64
import json
import os
import random
import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

PROGRAM = Path(os.environ.get("PROVED_DISK", Path(__file__).parents[2] / "build" / "proved-disk"))
BLOCKS, BLOCK = 96, 4096
LONGEST = 0.15  # seconds that a process lives at most
# Of the command line: numbers, and options of `create`.
NUMBERS = [int(word) for word in sys.argv[1:] if word.isdigit()]
OPTIONS = [word for word in sys.argv[1:] if word.startswith("--")]
Message = dict[str, Any]
# Of a long name the log record takes two sectors: the names differ in the second one.
COMMON = "s" * 58
# The live view and the snapshots, a number per block.
Content = tuple[list[int], dict[str, list[int]]]


def created(disk: Path, log_records: int, snapshots: int) -> None:
    """Create a proved disk of `BLOCKS` blocks."""
    sizes = {
        "--blocks": BLOCKS,
        "--segment-blocks": 8,
        "--log-records": log_records,
        "--snapshots": snapshots,
    }
    options = [str(word) for option in sizes.items() for word in option]
    subprocess.run([PROGRAM, "create", disk, *options, *OPTIONS], check=True)


def requested(
    choose: random.Random,
    content: Content,
    weights: Sequence[int] = (60, 10, 8, 6, 4, 4, 8),
) -> tuple[Message, Content]:
    """Return a request, and what the disk holds after it."""
    live, snaps = list(content[0]), dict(content[1])
    lba = choose.randrange(BLOCKS)
    count = choose.randint(1, min(8, BLOCKS - lba))
    match choose.choices(
        ["write", "unmap", "snapshot", "delete", "revert", "checkpoint", "clean"],
        weights,
    )[0]:
        case "write":
            tag = choose.randrange(1, 1 << 30)
            live[lba : lba + count] = [tag + i for i in range(count)]
            data = b"".join((tag + i).to_bytes(8, "little") * (BLOCK // 8) for i in range(count))
            message = {"op": "write", "lba": lba, "data": base64.b64encode(data).decode()}
        case "unmap":
            live[lba : lba + count] = [0] * count
            message = {"op": "unmap", "lba": lba, "count": count}
        case "snapshot" if len(snaps) < 6:
            name = f"{COMMON}{choose.randrange(10**6):06}"
            snaps[name] = list(live)
            message = {"op": "snapshot", "name": name}
        case "delete" if snaps:
            name = choose.choice(sorted(snaps))
            del snaps[name]
            message = {"op": "delete", "name": name}
        case "revert" if snaps:
            name = choose.choice(sorted(snaps))
            live = list(snaps[name])
            message = {"op": "revert", "name": name}
        case op:
            message = {"op": op if op in ("clean", "checkpoint") else "flush"}
    return message, (live, snaps)


class Process:
    """The adapter on the disk in `folder`."""

    def __init__(self, folder: Path, *options: str | Path) -> None:
        self.child = subprocess.Popen(
            [PROGRAM, "adapter", "--disk", folder, *options],
            text=True,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )

    def ask(self, message: Message) -> Message | None:
        """Return the answer, or None if the process is gone."""
        assert self.child.stdin is not None and self.child.stdout is not None
        try:
            self.child.stdin.write(json.dumps(message) + "\n")
            self.child.stdin.flush()
            line = self.child.stdout.readline()
        except BrokenPipeError:
            return None
        answer: Message | None = json.loads(line) if line.endswith("\n") else None
        return answer

    def reads(self, view: str | None) -> list[int] | None:
        """Return the number in each block of a view, or None if there is no such view."""
        answer = self.ask(
            {"op": "read", "lba": 0, "count": BLOCKS, **({"view": view} if view else {})}
        )
        assert answer is not None, "the process is gone"
        if not answer["ok"]:
            return None
        data = base64.b64decode(answer.get("data", ""))
        blocks = [data[i : i + BLOCK] for i in range(0, len(data), BLOCK)]
        return [
            int.from_bytes(b[:8], "little") if b == b[:8] * (BLOCK // 8) else -1 for b in blocks
        ]


def holds(process: Process, content: Content, names: set[str]) -> bool:
    """Return whether the disk reads as `content`, and has only those snapshots of `names`."""
    live, snaps = content
    return process.reads(None) == live and all(process.reads(n) == snaps.get(n) for n in names)


def main() -> int:
    """Kill so many times as the command line says. Return 1 if something acknowledged is lost."""
    kills = NUMBERS[0] if NUMBERS else 500
    choose = random.Random(1)
    acknowledged = happened = 0
    with TemporaryDirectory() as folder:
        disk = Path(folder) / "disk"
        created(disk, log_records=16, snapshots=8)
        content: Content = ([0] * BLOCKS, {})
        for kill in range(kills):
            process, after = Process(disk), content
            timer = threading.Timer(choose.random() * LONGEST, process.child.kill)
            process.ask({"op": "hello"})
            timer.start()
            while True:
                message, after = requested(choose, content)
                answer = process.ask(message)
                if answer is None:
                    break
                if answer["ok"]:
                    content = after
                    acknowledged += 1
            timer.join()
            process.child.wait()
            again = Process(disk)
            names = set(content[1]) | set(after[1])
            if holds(again, after, names) and after != content:
                happened += 1
                content = after
            elif not holds(again, content, names):
                print(f"kill {kill}: what was acknowledged is not there")
                return 1
            again.ask({"op": "bye"})
            again.child.wait()
    print(
        f"{kills} kills, {acknowledged} acknowledged operations, "
        f"{happened} in flight had happened: nothing lost"
    )
    return 0


if __name__ == "__main__":
    began = time.monotonic()
    status = main()
    print(f"{time.monotonic() - began:.0f} s")
    sys.exit(status)
