"""Open the proved disk in crash states of its file while a flush is under way, and the next writes
are, too.

    python proofs/disk/pipeline_states.py [WRITES] [SEED] [--trees]

A client has 12 writes in flight. (The server performs the next ones during a flush only if there is
much to do; the tests build one that always does.) The log of what it writes says where each flush
began and where it ended. Of what no flush covers that has ended, subsets of blocks survive, and
some blocks are torn. Another process opens the disk: it holds the writes of each group whose flush
has ended, and those of the next group or none of them, and nothing of the group behind that one.
"""

import random
import socket
import struct
import subprocess
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory

import kill_server
from crash_states import laid

from conformance.media import logwrites

BLOCKS, BLOCK, LOG_RECORDS = 64, 4096, 1024
IN_FLIGHT = 12
DATA = (3 + LOG_RECORDS) * BLOCK  # what stands before is the log; it is too long for a checkpoint
BEGUN = 32  # the flag of an entry: here a flush began
PAUSE = 0.002  # seconds at most between two writes
SHARE = 0.25  # of the moments of the log at which the power fails


def content(tag: int) -> bytes:
    """Return the block that the write number `tag` writes; 0 is the new disk."""
    return struct.pack(">Q", tag) * (BLOCK // 8)


@dataclass
class Seen:
    """What the log shows up to a moment."""

    stable: bytes  # the file, as flushes that have ended left it
    pending: list[logwrites.Write] = field(default_factory=list)  # what none of them covers
    covered: int = 0  # so many of these are covered by the flush under way
    ended: int = 0  # flushes
    states: list[dict[int, int]] = field(default_factory=lambda: [{}])  # LBA to tag, by groups
    group: dict[int, int] = field(default_factory=dict)  # whose record was not written yet

    def goes_on(self, entry: logwrites.Write, lbas: dict[int, int]) -> None:
        """Take one more entry of the log."""
        if entry.moves:
            self.pending.append(entry)
            if entry.offset >= DATA:
                tag = struct.unpack_from(">Q", entry.data)[0]
                self.group[lbas[tag]] = tag
            else:
                self.states.append(self.states[-1] | self.group)
                self.group = {}
        elif entry.flags & BEGUN:
            self.covered = len(self.pending)
        elif entry.flags & logwrites.FLUSH:
            durable = self.covered or len(self.pending)
            self.stable = laid(self.stable, self.pending[:durable])
            self.pending, self.covered = self.pending[durable:], 0
            self.ended += 1

    @property
    def overlaps(self) -> bool:
        """True if a flush is under way and something was written since it began."""
        return 0 < self.covered < len(self.pending)

    def survives(self, choose: random.Random) -> bytes:
        """Return what the file may hold if the power fails now."""
        keep, survived = choose.choice((0.1, 0.5, 0.9)), []
        for write in self.pending:
            if choose.random() < keep:
                survived.append(write)
            elif choose.random() < 0.3:
                sectors = write.atoms(logwrites.SECTOR)
                survived += [sector for sector in sectors if choose.random() < 0.5]
        return laid(self.stable, survived)


def written(folder: Path, count: int, choose: random.Random) -> dict[int, int]:
    """Write so many blocks over NBD, and end the server. Return the LBA of each tag."""
    server = kill_server.Server(folder, "--log-writes", folder / "log")
    client = server.connect()
    lbas = {tag: choose.randrange(BLOCKS) for tag in range(1, count + 1)}
    received = 0
    for tag, lba in lbas.items():
        head = struct.pack(">IHHQQI", 0x25609513, 0, kill_server.WRITE, tag, lba * BLOCK, BLOCK)
        client.sendall(head + content(tag))
        time.sleep(choose.random() * PAUSE)  # so that not all are in one group
        while received // 16 < (tag - IN_FLIGHT if tag < count else count):
            part = client.recv(1 << 16)
            assert part, "the server hung up"
            received += len(part)
    client.shutdown(socket.SHUT_RDWR)
    server.process.terminate()
    assert server.process.wait() == 0
    return lbas


def judged(count: int, seed: int, *options: str) -> tuple[int, int]:
    """Return how many crash states were good, and in how many of them two groups were in flight.
    Raises AssertionError at the first bad one."""
    choose, good, overlaps = random.Random(seed), 0, 0
    with TemporaryDirectory() as name:
        folder = Path(name)
        disk, copy = folder / "disk", folder / "copy"
        copy.mkdir()
        sizes: list[str] = ["--blocks", str(BLOCKS), "--log-records", str(LOG_RECORDS)]
        create: list[str | Path] = [kill_server.PROGRAM, "create", disk, *sizes, *options]
        subprocess.run(create, check=True)
        seen = Seen((disk / "blocks").read_bytes())
        lbas = written(folder, count, choose)
        for entry in logwrites.read(folder / "log")[0]:
            seen.goes_on(entry, lbas)
            if choose.random() > (1 if seen.overlaps else SHARE):
                continue
            (copy / "blocks").write_bytes(seen.survives(choose))
            read: list[str | Path] = [kill_server.PROGRAM, "read", copy, "0", str(BLOCKS)]
            found = subprocess.run(read, check=True, capture_output=True).stdout
            allowed = [
                b"".join(content(state.get(lba, 0)) for lba in range(BLOCKS))
                for state in seen.states[seen.ended : seen.ended + 2]
            ]
            assert found in allowed, f"after {seen.ended} groups: neither before nor after the next"
            good, overlaps = good + 1, overlaps + seen.overlaps
        assert seen.states[-1] and seen.ended == len(seen.states) - 1, "a group has no flush"
    return good, overlaps


def main() -> None:
    options = [word for word in sys.argv[1:] if word.startswith("--")]
    numbers = [int(word) for word in sys.argv[1:] if word not in options]
    count, seed = [*numbers, *[100, 1][len(numbers) :]]
    good, overlaps = judged(count, seed, *options)
    print(f"{good} crash states, two groups in flight in {overlaps}: nothing answered is lost")


if __name__ == "__main__":
    main()
