"""A virtual disk in a list, as a Python class. It has no snapshots, and says so.

cd conformance/examples && conformance run --target python:list_disk:ListDisk
"""

from typing import Any

BLOCK = 512  # bytes


class ListDisk:
    """A target in process: `hello`, `request` and `close`. Data is bytes here, not base64.

    `knobs`, if a class has any, are the options that each trace may choose: here, whether the disk
    keeps everything in one bytearray, or each block by itself."""

    knobs = {"one_piece": [True, False]}

    def __init__(self, options: dict[str, Any]) -> None:
        self.hello = {
            "ok": True,
            "name": "list-disk",
            "version": "1",
            "block_size": BLOCK,
            "crash_profile": None,
            "capabilities": ["unmap", "restart"],
        }
        self.one_piece = options.get("one_piece", True)
        self.piece = bytearray()
        self.blocks: list[bytes] = []

    def request(self, message: dict[str, Any]) -> dict[str, Any]:
        """Return the answer to a request; both are dicts, as in docs/traces.md."""
        if message["op"] == "create":
            size = message["blocks"]
            self.piece = bytearray(size * BLOCK if self.one_piece else 0)
            self.blocks = [] if self.one_piece else [bytes(BLOCK)] * size
            return {"ok": True}
        if message["op"] == "restart":
            return {"ok": True}
        if message["op"] not in ("write", "read", "unmap"):
            return {"ok": False, "error": "unsupported"}
        lba = message["lba"]
        count = len(message["data"]) // BLOCK if message["op"] == "write" else message["count"]
        size = len(self.piece) // BLOCK if self.one_piece else len(self.blocks)
        if lba + count > size:
            return {"ok": False, "error": "out-of-range"}
        if message["op"] == "read":
            return {"ok": True, "data": self.read(lba, count)}
        self.write(lba, count, message.get("data", bytes(count * BLOCK)))
        return {"ok": True}

    def read(self, lba: int, count: int) -> bytes:
        """Return `count` blocks from logical block address (LBA) `lba` on."""
        if self.one_piece:
            return bytes(self.piece[lba * BLOCK : (lba + count) * BLOCK])
        return b"".join(self.blocks[lba : lba + count])

    def write(self, lba: int, count: int, data: bytes) -> None:
        """Replace `count` blocks from `lba` on."""
        if self.one_piece:
            self.piece[lba * BLOCK : (lba + count) * BLOCK] = data
        else:
            self.blocks[lba : lba + count] = [
                data[i * BLOCK : (i + 1) * BLOCK] for i in range(count)
            ]

    def close(self) -> None:
        """Put the disk away: there is nothing to do."""
