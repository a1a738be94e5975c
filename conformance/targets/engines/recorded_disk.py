"""A disk on files whose writes are recorded, so that the kit can cut its power at any write."""

import random
from abc import ABC, abstractmethod
from collections.abc import Collection
from typing import Any

from conformance.contract.model import NAME
from conformance.media.recorded import Recorded
from conformance.targets.base import Message, PowerCut
from conformance.targets.engines.qemu import storage_daemon

BLOCK = 512  # bytes: nothing larger than a sector is written whole when the power fails
UNSYNCED = {"no-flush": True}  # what survives is made from the log, whatever the host's file holds
CAPABILITIES = ["unmap", "flush", "snapshot", "delete", "revert", "crash", "restart"]


class Refusal(Exception):
    """The request is refused: the code, then what the engine said."""


class RecordedDisk(ABC):
    """A disk with power cuts between its operations, in them, and in recovery.

    A subclass has the operations `_write`, `_read`, `_unmap`, `_flush`, `_snapshot`, `_delete` and
    `_revert`. They take the request, return what the answer says besides `ok`, and raise Refusal.
    It also says how the disk is made, opened and shut."""

    cuts = True
    cut_in: Collection[str] = (
        "write",
        *CAPABILITIES,
    )  # operations that write to one file alone, the one of _written

    def __init__(self, name: str, version: str, profile: str) -> None:
        self.hello: Message = {
            "ok": True,
            "name": name,
            "version": version,
            "block_size": BLOCK,
            "crash_profile": profile,
            "capabilities": CAPABILITIES,
            "devices": 1,
            "tolerates": 0,
        }
        self._blocks = self._crashes = 0
        self._choose: random.Random | None = None  # after a cut: what the next crash leaves

    def request(self, message: Message) -> Message:
        op, name = message["op"], message.get("name", message.get("view"))
        if op not in ("create", "write", "read", *CAPABILITIES):
            return {"ok": False, "error": "unsupported"}
        if name is not None and not NAME.fullmatch(name):
            return {
                "ok": False,
                "error": "bad-request",
                "message": "no name of the contract; the engine may take it",
            }
        cut = message.get("cut") if op in self.cut_in else None
        if cut is not None:
            self._take()
        try:
            answer = {"ok": True, **(getattr(self, "_" + op)(message) or {})}
        except Refusal as refused:
            answer = {"ok": False, "error": refused.args[0], "message": refused.args[1]}
        if cut is not None and self._written().cut(cut["after"]):
            self._choose = random.Random(cut["seed"])
            raise PowerCut
        return answer

    def _create(self, message: Message) -> None:
        self._shut()
        self._blocks, self._crashes, self._choose = message["blocks"], 0, None
        self._make()

    def _restart(self, message: Message) -> None:
        self._shut()
        self._take()
        self._open_again()

    def _crash(self, message: Message) -> None:
        self._take()
        choose = self._choose or random.Random(self._crashes)
        self._crashes, self._choose = self._crashes + 1, None
        self._lose(choose)
        self._open_again()

    def _lose(self, choose: random.Random) -> None:
        """The files hold what survives, and nobody has them open."""
        self._shut()
        for file in self._files():
            file.lay(file.survives(choose))

    def _take(self) -> None:
        for file in self._files():
            file.take()

    @abstractmethod
    def _files(self) -> list[Recorded]:
        """The files that the disk is on."""

    @abstractmethod
    def _written(self) -> Recorded:
        """The file that writes go to now."""

    @abstractmethod
    def _make(self) -> None:
        """Make an empty disk of so many blocks; there may be another, shut."""

    @abstractmethod
    def _open_again(self) -> Any:
        """Open the disk. Raises Refusal if the engine finds that it cannot."""

    @abstractmethod
    def _shut(self) -> None:
        """Close the disk as a clean shutdown does, if it is open: nobody has its files."""


def file_node(name: str) -> dict[str, Any]:
    """The file as qemu is to open it."""
    return {
        "driver": "file",
        "filename": name,
        "discard": "unmap",
        "locking": "off",
        "aio": storage_daemon.aio(),
        "cache": UNSYNCED,
    }


def log_writes(
    daemon: storage_daemon.Daemon, room: int, which: str = "", discard: str = "ignore"
) -> None:
    """Have the daemon log what is written to its node `w` into the file `log`.

    The node writes to the file `disk` of `room` bytes, all a hole. `which` ends all three names.
    With `discard` "unmap", discards reach the file."""
    disk, log = "disk" + which, "log" + which
    for name in (disk, log):
        (daemon.folder / name).write_bytes(b"")
    with (daemon.folder / disk).open("r+b") as hole:
        hole.truncate(room)
    daemon.do(
        (
            "blockdev-add",
            {
                "driver": "blklogwrites",
                "node-name": "w" + which,
                "discard": discard,
                "file": file_node(disk),
                "log": {
                    "driver": "file",
                    "filename": log,
                    "aio": storage_daemon.aio(),
                    "cache": UNSYNCED,
                },
            },
        )
    )
