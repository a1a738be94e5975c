"""A virtual disk with snapshots in a dictionary: the smallest honest target.

conformance run --target 'exec:python3 conformance/examples/dict_disk.py'
"""

import base64
import json
import re
import sys

BLOCK = 512  # bytes
HELLO = {
    "ok": True,
    "name": "dict-disk",
    "version": "1",
    "block_size": BLOCK,
    "crash_profile": "ack",
    "capabilities": ["unmap", "flush", "snapshot", "delete", "revert", "crash", "restart"],
}


class Refused(Exception):
    """The request has a fault; the text is the error code."""


class DictDisk:
    """Every method is an operation of the dialogue; it returns what its response holds besides `ok`."""

    def create(self, blocks):
        self.blocks, self.live, self.snapshots = blocks, {}, {}

    def write(self, lba, data):
        count = len(data) // BLOCK
        self.check(lba, count)
        for i in range(count):
            self.live[lba + i] = data[i * BLOCK : (i + 1) * BLOCK]

    def read(self, lba, count, view=None):
        self.check(lba, count)
        blocks = self.live if view is None else self.existing(view)
        return {"data": b"".join(blocks.get(lba + i, bytes(BLOCK)) for i in range(count))}

    def unmap(self, lba, count):
        self.check(lba, count)
        for i in range(count):
            self.live.pop(lba + i, None)

    def snapshot(self, name):
        if not re.fullmatch(r"[A-Za-z0-9._-]{1,64}", name):
            raise Refused("bad-request")
        if name in self.snapshots:
            raise Refused("snapshot-exists")
        self.snapshots[name] = dict(self.live)

    def delete(self, name):
        self.existing(name)
        del self.snapshots[name]

    def revert(self, name):
        self.live = dict(self.existing(name))

    def flush(self):
        pass

    def restart(self):
        pass

    def crash(self):
        pass  # nothing to lose: it all stays in memory

    def check(self, lba, count):
        if lba + count > self.blocks:
            raise Refused("out-of-range")

    def existing(self, name):
        if name not in self.snapshots:
            raise Refused("no-such-snapshot")
        return self.snapshots[name]


def answer(disk, request):
    """The response to a request."""
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


def main():
    disk = DictDisk()
    for line in sys.stdin:
        request = json.loads(line)
        if request["op"] == "bye":
            break
        print(json.dumps(answer(disk, request)), flush=True)


if __name__ == "__main__":
    main()
