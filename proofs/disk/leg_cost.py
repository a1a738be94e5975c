"""CPU time of the proved disk per write and per read of one block, on several devices.

python proofs/disk/leg_cost.py [PROGRAM...]     # another program, to compare
"""

import base64
import json
import random
import subprocess
import sys
from pathlib import Path
from typing import Any

PROGRAM = Path(__file__).parents[2] / "build" / "proved-disk"
LAYOUTS = ("--mirrors 2", "--raid5 4", "--raid6 5")
BLOCKS, BLOCK, REQUESTS = 2000, 4096, 3000
TICKS = 100  # per second, in /proc


class Disk:
    """A new disk in a process that answers requests."""

    def __init__(self, program: str, layout: str) -> None:
        command = [program, "adapter", *layout.split(), "--log-records", "1024"]
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self.ask(op="create", blocks=BLOCKS)

    def ask(self, **message: Any) -> None:
        assert self._process.stdin and self._process.stdout
        self._process.stdin.write(json.dumps(message).encode() + b"\n")
        self._process.stdin.flush()
        answer = json.loads(self._process.stdout.readline())
        assert answer["ok"], answer

    def seconds(self) -> float:
        """Return the CPU time that the process has taken."""
        fields = Path(f"/proc/{self._process.pid}/stat").read_text().split()
        return (int(fields[13]) + int(fields[14])) / TICKS

    def close(self) -> None:
        self.ask(op="bye")
        self._process.wait()


def main() -> None:
    for layout in LAYOUTS:
        for program in sys.argv[1:] or [str(PROGRAM)]:
            disk, chosen = Disk(program, layout), random.Random(1)
            contents = [base64.b64encode(chosen.randbytes(BLOCK)).decode() for _ in range(8)]
            start = disk.seconds()
            for i in range(REQUESTS):
                disk.ask(op="write", lba=chosen.randrange(BLOCKS), data=contents[i % 8])
            written = disk.seconds()
            for _ in range(REQUESTS):
                disk.ask(op="read", lba=chosen.randrange(BLOCKS), count=1)
            read = disk.seconds()
            disk.close()
            print(
                f"{layout}: {(written - start) / REQUESTS * 1e6:.0f} us per write, "
                f"{(read - written) / REQUESTS * 1e6:.0f} us per read: {program}",
                flush=True,
            )


if __name__ == "__main__":
    main()
