"""Snapshots of NILFS2: the disk is a file, a snapshot is a checkpoint turned into one.

Which snapshot is which checkpoint is known here, and is durable; what a cut leaves in doubt is
asked of the file system.

- `snapshot` makes a checkpoint, turns it into a snapshot, and makes that durable by another
  checkpoint: the ioctl that turns it does not.
- There is no `revert`: NILFS2 has none.
- `clean` cleans segments, the oldest first, as the daemon of nilfs-utils does with a protection
  period of 0. With `cleaner=running` a thread does so all the time.
- `unmap` writes zeroes: NILFS2 punches no holes.
"""

from contextlib import suppress
from typing import Any

from conformance.contract.trace import Trace
from conformance.targets.base import Message, PowerCut
from conformance.targets.engines.kernel.disk import KernelDisk
from conformance.targets.engines.kernel.files import BLOCK, FILE, ROOT, FileDisk, no_such, space
from conformance.targets.engines.kernel.machine import image
from conformance.targets.engines.kernel.machine.guest import DISK
from conformance.targets.engines.kernel.machine.line import GuestError
from conformance.targets.engines.recorded_disk import Refusal
from conformance.targets.threads import IN_FLIGHT

SMALL = 16  # blocks of a segment, the least: a small disk has many
SEGMENTS = 17  # number of segments, if these are larger
PAUSE = 2  # milliseconds, of a cleaner that is running


class Nilfs2(FileDisk):
    """Options: `segment` (blocks; 2048 is the default of mkfs, and takes a larger disk), `order`
    (of mount: "relaxed" or "strict"), `cleaner` ("asked" or "running"), `spread`, `fault`."""

    knobs: dict[str, list[Any]] = {"spread": [4, 1, 8], "cleaner": ["asked", "running"]}
    fixed_options = {
        **FileDisk.fixed_options,
        "segment": [SMALL],
        "order": ["relaxed", "strict"],
    }
    kind = "nilfs2"
    findings = dict.fromkeys(
        ["lost-acknowledgement", "resurrected", "lost-data", "no-order", "unopenable"],
        "nilfs2-stale-logs.md",
    )
    shown_by = dict.fromkeys(  # options under which the finding does not show
        [
            "old-superblock",
            "lost-data",
            "lost-metadata",
            "misplaced",
            "torn-flushed",
            "forget-unmap",
            "forget-write",
        ],
        "cache=through,",
    )
    cut_in = (*FileDisk.cut_in, "clean", "checkpoint")
    superblock = range(1024, 2048)
    in_flight = IN_FLIGHT

    def __init__(self, options: dict[str, Any]) -> None:
        segment = int(options.get("segment", SMALL))
        self.tool = ("mkfs.nilfs2", "-q", "-f", "-b", str(BLOCK), "-B", str(segment))
        self.size = KernelDisk.size if segment == SMALL else SEGMENTS * segment * BLOCK
        self.mounted_with = (f"order={options.get('order', 'relaxed')}",)
        super().__init__("nilfs2", options)
        able = [one for one in self.hello["capabilities"] if one != "revert"]
        self.hello["capabilities"] = [*able, "clean"] if image.NILFS_UTILS.exists() else able
        self._runs = options.get("cleaner") == "running"
        self._names: dict[str, int] = {}
        self._before: dict[str, int] = {}
        self._mounted: set[int] = set()

    @classmethod
    def finding(cls, trace: Trace, kind: str) -> str | None:
        """Return the finding; for a mount only if a cleaner has left super roots."""
        cleaned = trace.options.get("cleaner") == "running" or any(
            event["op"] in ("clean", "checkpoint") for event in trace.events
        )
        return super().finding(trace, kind) if kind != "unopenable" or cleaned else None

    def _known(self) -> tuple[dict[str, int], dict[str, int]]:
        return self._names, self._before

    def _doubt(self, op: str, known: tuple[dict[str, int], dict[str, int]]) -> None:
        if op == "crash":
            self._names, self._before = known
        else:
            self._before = known[0]

    def _snapshot(self, message: Message) -> None:
        name = message["name"]
        if name in self._names:
            raise Refusal("snapshot-exists", name)
        self._flush(message)
        with space():
            number = int(self._ask("nilfs-checkpoint", ROOT))
            self._ask("nilfs-mode", ROOT, number, "snapshot")
        self._make_durable()
        self._names = {**self._names, name: number}

    def _delete(self, message: Message) -> None:
        number = self._number(message["name"])
        if number in self._mounted:
            self._unmount(number)
        with space():
            self._ask("nilfs-mode", ROOT, number, "checkpoint")
        self._make_durable()
        self._names = {n: i for n, i in self._names.items() if i != number}

    def _make_durable(self) -> None:
        """Make the change of a checkpoint durable. Where this takes more space than there is, the
        change may or may not last: then the power is cut, which may leave either."""
        try:
            with space():
                self._ask("nilfs-checkpoint", ROOT)
        except Refusal:
            raise PowerCut from None

    def _clean(self, message: Message) -> None:
        with suppress(Refusal), space():
            self._ask("nilfs-clean", DISK, ROOT)

    def _checkpoint(self, message: Message) -> None:
        with space():
            self._ask("nilfs-checkpoint", ROOT)

    def _unmap(self, message: Message) -> None:
        self._changed("zero", message["lba"], message["count"])

    def _number(self, name: str) -> int:
        if name not in self._names:
            raise no_such(name)
        return self._names[name]

    def _device(self, view: str | None) -> str:
        if view is None:
            return f"{ROOT}/{FILE}"
        with self._changes.lock:
            number = self._number(view)
            if number not in self._mounted:
                try:
                    self._ask("fs-mount", DISK, f"/mnt/{number}", self.kind, "ro", f"cp={number}")
                except GuestError as error:
                    raise Refusal("data-lost", str(error)) from None
                self._mounted.add(number)
        return f"/mnt/{number}/{FILE}"

    def _unmount(self, number: int) -> None:
        self._ask("close", f"/mnt/{number}/")
        self._ask("fs-umount", f"/mnt/{number}")
        self._mounted.discard(number)

    def _fresh(self) -> None:
        self._names = self._before = {}
        self._ask("fs-file", f"{ROOT}/{FILE}", self._length)
        self._ask("nilfs-checkpoint", ROOT)

    def _up(self) -> None:
        super()._up()
        there = {int(number) for number in self._ask("nilfs-snapshots", ROOT).split()}
        sure = self._names.items() & self._before.items()
        doubt = (self._names.items() | self._before.items()) - sure
        self._names = dict(sure) | {name: number for name, number in doubt if number in there}
        self._before = self._names
        self._start_cleaner()

    def _start_cleaner(self) -> None:
        if self._runs:
            self._ask("nilfs-cleaner", DISK, ROOT, PAUSE)

    def _down(self) -> None:
        if self._runs:
            self._ask("nilfs-cleaner", "off")
        for number in list(self._mounted):
            self._unmount(number)
        super()._down()
