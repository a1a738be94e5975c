"""Snapshots of btrfs: the disk is a file in a subvolume, which is snapshotted read-only.

The subvolume is called `live`.

- `snapshot` is durable when the ioctl returns, with all that was written before: it commits the
  transaction.
- `delete` is made durable by a sync, as `btrfs subvolume delete --commit-after` does it.
- `revert` makes a writable snapshot of the snapshot, exchanges it with `live` by one rename, and
  deletes what was live. A cut leaves one of the two live, and the other is deleted by the next
  mount here.
- `unmap` punches a hole.
"""

import errno
from typing import Any

from conformance.targets.base import Message
from conformance.targets.engines.kernel.files import FILE, ROOT, FileDisk, no_such
from conformance.targets.engines.kernel.machine.line import GuestError
from conformance.targets.engines.recorded_disk import Refusal
from conformance.targets.threads import IN_FLIGHT

LIVE, SPARE, PREFIX = "live", "spare", "s-"


class Btrfs(FileDisk):
    """Options: those of KernelDisk."""

    knobs: dict[str, list[Any]] = {"spread": [4, 1, 8], "atom": [4096, 512]}
    findings = {"unopenable": "btrfs-torn-superblock.md"}
    kind = "btrfs"
    superblock = range(64 << 10, 68 << 10)
    in_flight = IN_FLIGHT
    tool = ("mkfs.btrfs", "-q", "-f", "--mixed")

    def __init__(self, options: dict[str, Any]) -> None:
        super().__init__("btrfs", options)

    def _known(self) -> None:
        """Return nothing: the file system has all names."""

    def _doubt(self, op: str, known: None) -> None:
        pass

    def _snapshot(self, message: Message) -> None:
        name = PREFIX + message["name"]
        if self._exists(name):
            raise Refusal("snapshot-exists", message["name"])
        self._ask("btrfs-snapshot", ROOT, f"{ROOT}/{LIVE}", name, "ro")

    def _delete(self, message: Message) -> None:
        self._existing(message["name"])
        self._destroy(PREFIX + message["name"])

    def _revert(self, message: Message) -> None:
        source = self._existing(message["name"])
        self._ask("btrfs-snapshot", ROOT, source, SPARE, "rw")
        self._ask("close", f"{ROOT}/{LIVE}/")
        self._ask("fs-exchange", f"{ROOT}/{SPARE}", f"{ROOT}/{LIVE}")
        self._ask("fs-sync", ROOT)
        self._destroy(SPARE)

    def _destroy(self, name: str) -> None:
        self._ask("close", f"{ROOT}/{name}/")
        self._ask("btrfs-destroy", ROOT, name)
        self._ask("fs-sync", ROOT)

    def _exists(self, name: str) -> bool:
        try:
            self._ask("fs-size", f"{ROOT}/{name}")
            return True
        except GuestError as error:
            if error.number == errno.ENOENT:
                return False
            raise

    def _existing(self, name: str) -> str:
        if not self._exists(PREFIX + name):
            raise no_such(name)
        return f"{ROOT}/{PREFIX}{name}"

    def _device(self, view: str | None) -> str:
        folder = f"{ROOT}/{LIVE}" if view is None else self._existing(view)
        return f"{folder}/{FILE}"

    def _fresh(self) -> None:
        self._ask("btrfs-subvolume", ROOT, LIVE)
        self._ask("fs-file", f"{ROOT}/{LIVE}/{FILE}", self._length)
        self._ask("fs-sync", ROOT)

    def _up(self) -> None:
        super()._up()
        if self._exists(SPARE):
            self._destroy(SPARE)
