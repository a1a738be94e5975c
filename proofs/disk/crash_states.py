"""Open the proved disk in crash states of its file, made by the kit's media from a log of writes.

    python proofs/disk/crash_states.py [OPERATIONS] [SEED] [--trees]

After every block I/O of every operation the power fails. Of what no flush covered, subsets of
blocks survive (`conformance.media.subsets`), and headers and log records are torn: a subset of
their sectors survives. Another process opens the disk: every view must be as before the operation
or as after it.
"""

import random
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

from kill_disk import BLOCK, BLOCKS, NUMBERS, Content, Process, created, holds, requested

from conformance.media import logwrites, subsets

LOG_RECORDS = 4
SEALED = 3 + LOG_RECORDS  # superblock, two headers and the log: where the other blocks begin
# As many snapshots, deletions and reverts as writes: their records name a snapshot, in two sectors.
WEIGHTS = (30, 5, 25, 20, 10, 4, 6)


def crash_states(
    stable: bytes, entries: list[logwrites.Write], choose: random.Random
) -> Iterator[bytes]:
    """Yield what the file may hold if the power fails after one of the entries, each once; then
    what it holds for certain."""
    pending: list[logwrites.Write] = []
    for entry in [None, *entries]:
        if entry is not None and entry.flags & logwrites.FLUSH:
            stable, pending = laid(stable, pending), []
        if entry is not None and entry.moves:
            pending.append(entry)
        sizes = [len(parts(write)) for write in pending]
        for masks in subsets.subsets(sizes, choose, few=3, sampled=2):
            survived = [
                part
                for write, mask in zip(pending, masks, strict=True)
                for i, part in enumerate(parts(write))
                if mask >> i & 1
            ]
            yield laid(stable, survived)


def parts(write: logwrites.Write) -> list[logwrites.Write]:
    """Return what a power cut keeps or loses on its own: the sectors of a header or a log record,
    another block whole."""
    return write.atoms(logwrites.SECTOR) if write.offset < SEALED * BLOCK else [write]


def laid(stable: bytes, writes: list[logwrites.Write]) -> bytes:
    """Return the content after the writes."""
    content = bytearray(stable)
    for offset, data, _ in writes:
        content.extend(bytes(max(0, offset + len(data) - len(content))))
        content[offset : offset + len(data)] = data
    return bytes(content)


def main() -> int:
    """Return 1 if a crash state is neither what was before the operation nor what is after it."""
    operations, seed = [*NUMBERS, *[60, 1][len(NUMBERS) :]]
    choose = random.Random(seed)
    states = 0
    with TemporaryDirectory() as folder:
        disk, copy, log = Path(folder) / "disk", Path(folder) / "copy", Path(folder) / "log"
        copy.mkdir()
        created(disk, log_records=LOG_RECORDS, snapshots=6)
        process = Process(disk, "--log-writes", log)
        process.ask({"op": "hello"})
        content: Content = ([0] * BLOCKS, {})
        stable, at = (disk / "blocks").read_bytes(), logwrites.START
        for operation in range(operations):
            message, after = requested(choose, content, WEIGHTS)
            answer = process.ask(message)
            assert answer is not None, "the process is gone"
            if not answer["ok"]:
                after = content
            entries, at = logwrites.read(log, at)
            names = set(content[1]) | set(after[1])
            for state in crash_states(stable, entries, choose):
                states += 1
                (copy / "blocks").write_bytes(state)
                opened = Process(copy)
                good = holds(opened, content, names) or holds(opened, after, names)
                opened.ask({"op": "bye"})
                opened.child.wait()
                if not good:
                    print(
                        f"operation {operation}, {message['op']}: "
                        "a crash state is neither before nor after"
                    )
                    return 1
            content, stable = after, laid(stable, entries)
            if stable != (disk / "blocks").read_bytes():
                print(f"operation {operation}, {message['op']}: the file is not what the log says")
                return 1
        process.ask({"op": "bye"})
    print(f"{states} crash states of {operations} operations: each is the disk before or after")
    return 0


if __name__ == "__main__":
    began = time.monotonic()
    status = main()
    print(f"{time.monotonic() - began:.0f} s")
    sys.exit(status)
