"""A virtual disk with snapshots in a dictionary: the smallest honest target.

conformance run --target 'exec:python3 conformance/examples/dict_disk.py'
"""

import base64
import json
import re
import sys
from typing import Any

Answer = dict[str, Any]

BLOCK = 512  # bytes
HELLO: Answer = {
    "ok": True,
    "name": "dict-disk",
    "version": "1",
    "block_size": BLOCK,
    "crash_profile": "ack",
    "capabilities": ["unmap", "flush", "snapshot", "delete", "revert", "crash", "restart"],
}


class Refused(Exception):
    """Raised for a request with a fault; the text is the error code."""


class DictDisk:
    """A disk. Each method is an operation of the dialogue, and returns its answer without `ok`."""

    def create(self, blocks: int) -> None:
        """Make a zero-filled disk of `blocks` blocks; forget any earlier one."""
        self.blocks = blocks
        self.live: dict[int, bytes] = {}
        self.snapshots: dict[str, dict[int, bytes]] = {}

    def write(self, lba: int, data: bytes) -> None:
        """Write whole blocks from logical block address (LBA) `lba` on."""
        count = len(data) // BLOCK
        self.check(lba, count)
        for i in range(count):
            self.live[lba + i] = data[i * BLOCK : (i + 1) * BLOCK]

    def read(self, lba: int, count: int, view: str | None = None) -> Answer:
        """Read blocks of a snapshot, or of the live disk if `view` is None."""
        self.check(lba, count)
        blocks = self.live if view is None else self.existing(view)
        return {"data": b"".join(blocks.get(lba + i, bytes(BLOCK)) for i in range(count))}

    def unmap(self, lba: int, count: int) -> None:
        """Make blocks read as zeroes."""
        self.check(lba, count)
        for i in range(count):
            self.live.pop(lba + i, None)

    def snapshot(self, name: str) -> None:
        """Keep the live disk as it is now under a name."""
        if not re.fullmatch(r"[A-Za-z0-9._-]{1,64}", name):
            raise Refused("bad-request")
        if name in self.snapshots:
            raise Refused("snapshot-exists")
        self.snapshots[name] = dict(self.live)

    def delete(self, name: str) -> None:
        """Delete a snapshot."""
        self.existing(name)
        del self.snapshots[name]

    def revert(self, name: str) -> None:
        """Make the live disk a copy of a snapshot; every snapshot stays."""
        self.live = dict(self.existing(name))

    def flush(self) -> None:
        """Make durable what was written before: everything stays in memory."""

    def restart(self) -> None:
        """Close the disk and open it."""

    def crash(self) -> None:
        """Cut the power and recover: nothing is lost, because everything stays in memory."""

    def check(self, lba: int, count: int) -> None:
        """Raise Refused if the range reaches past the end of the disk."""
        if lba + count > self.blocks:
            raise Refused("out-of-range")

    def existing(self, name: str) -> dict[int, bytes]:
        """Return the blocks of a snapshot. Raises Refused if there is none with this name."""
        if name not in self.snapshots:
            raise Refused("no-such-snapshot")
        return self.snapshots[name]


def answer(disk: DictDisk, request: Answer) -> Answer:
    """Return the answer to a request."""
    op = request.pop("op")
    if op == "hello":
        return HELLO
    if op not in ("create", "write", "read", *HELLO["capabilities"]):
        return {"ok": False, "error": "unsupported"}
    if "data" in request:
        request["data"] = base64.b64decode(request["data"])
    try:
        result = getattr(disk, op)(**request) or {}
    except Refused as fault:
        return {"ok": False, "error": str(fault)}
    if "data" in result:
        result["data"] = base64.b64encode(result["data"]).decode()
    return {"ok": True, **result}


def main() -> None:
    """Answer requests until the dialogue ends."""
    disk = DictDisk()
    for line in sys.stdin:
        request = json.loads(line)
        if request["op"] == "bye":
            break
        print(json.dumps(answer(disk, request)), flush=True)


if __name__ == "__main__":
    main()
