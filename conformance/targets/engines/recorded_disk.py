"""A disk on files whose writes are recorded, so that the kit can cut its power at any write.

Several requests may be in flight, each in a thread. Then the power fails at the write that a `cut`
names, or at the call of `crash`: what the log has of later writes is ignored.
"""

import random
from abc import ABC, abstractmethod
from collections.abc import Collection
from typing import Any

from conformance.contract.model import NAME
from conformance.contract.trace import OVERLAPPING
from conformance.media.recorded import Recorded
from conformance.targets.base import Message, PowerCut
from conformance.targets.engines.qemu import storage_daemon
from conformance.targets.threads import IN_FLIGHT, Done, Threads

BLOCK = 512  # bytes: nothing larger than a sector is written whole when the power fails
UNSYNCED = {"no-flush": True}  # survivors come from the log, not from the host's file
CAPABILITIES = ["unmap", "flush", "snapshot", "delete", "revert", "crash", "restart"]


class Refusal(Exception):
    """The request is refused: the code, then what the engine said."""


class RecordedDisk(ABC):
    """A disk with power cuts between its operations, in them, and in recovery.

    A subclass has the operations `_write`, `_read`, `_unmap`, `_flush`, `_snapshot`, `_delete` and
    `_revert`. They take the request, return what the answer says besides `ok`, and raise Refusal.
    It also says how the disk is made, opened and shut."""

    cuts = True
    schedules = True  # the kit's pauses between calls
    cut_in: Collection[str] = (
        "write",
        *CAPABILITIES,
    )  # operations that write to one file alone, the one of _written

    def __init__(
        self,
        name: str,
        version: str,
        profile: str | None,
        atomic: str = "",
        most: int = IN_FLIGHT,
    ) -> None:
        """`profile` None: the power does not fail. `atomic`: if several requests may be in flight,
        up to `most`, what is one step, a "request" or a "block"."""
        self.hello: Message = {
            "ok": True,
            "name": name,
            "version": version,
            "block_size": BLOCK,
            "crash_profile": profile,
            "capabilities": [op for op in CAPABILITIES if profile or op != "crash"],
            "devices": 1,
            "tolerates": 0,
        }
        if atomic:
            self.hello |= {"protocol": 2, "in_flight": most, "atomic": atomic}
        self._blocks = self._crashes = 0
        self._choose: random.Random | None = None  # after a cut: what the next crash leaves
        self._threads = Threads(self._carry_out, self._power_failed)
        self._cutting: tuple[Message, int] | None = None  # a request in flight, and its last write

    def request(self, message: Message) -> Message:
        cut = message.get("cut") if message["op"] in self.cut_in else None
        if cut is not None:
            self._take()
        answer = self._answer(message)
        if cut is not None and self._written().cut(cut["after"]):
            self._choose = random.Random(cut["seed"])
            raise PowerCut
        return answer

    def call(self, message: Message, done: Done) -> None:
        """Start a request; `done` is called by its thread. What is sent alone is answered here."""
        if message["op"] in OVERLAPPING:
            if "cut" in message and message["op"] in self.cut_in:
                self._cutting = message, self._written().written() + message["cut"]["after"]
            self._threads.call(message, done)
            return
        if message["op"] == "crash":
            self._cut_in_flight()
        done(self.request(message))

    def _answer(self, message: Message) -> Message:
        """Carry out the request; return its answer."""
        op, name = message["op"], message.get("name", message.get("view"))
        able = self.hello["capabilities"]
        if op not in ("create", "write", "read", *able, *("checkpoint",) * ("clean" in able)):
            return {"ok": False, "error": "unsupported"}
        if name is not None and not NAME.fullmatch(name):
            return {
                "ok": False,
                "error": "bad-request",
                "message": "no name of the contract; the engine may take it",
            }
        try:
            return {"ok": True, **(getattr(self, "_" + op)(message) or {})}
        except Refusal as refused:
            return {"ok": False, "error": refused.args[0], "message": refused.args[1]}

    def _carry_out(self, message: Message) -> Message:
        """Answer a request while others are in flight."""
        return self._answer(message)

    def _power_failed(self, message: Message) -> bool:
        """Return whether the power has failed before this request is answered."""
        if self._cutting is None:
            return False
        cutting, last = self._cutting
        if self._written().written() >= last:
            return True
        if message is cutting:
            self._cutting = None
        return False

    def _cut_in_flight(self) -> None:
        """Cut the power, unless it failed at a `cut`. Return when nothing is in flight."""
        self._threads.cut()
        end = self._written().end()
        self._threads.wait()
        if self._cutting is None:
            self._cut_short(end, None)
            self._written().cut_at(end)
            return
        message, last = self._cutting
        self._cutting = None
        self._cut_short(end, last)
        if self._written().cut(last):
            self._choose = random.Random(message["cut"]["seed"])

    def _cut_short(self, end: int, last: int | None) -> None:  # noqa: B027
        """Note that the power failed at write number `last`, or where the log had `end` bytes. What
        was in flight has ended meanwhile. A subclass notes what is in doubt now."""

    def _create(self, message: Message) -> None:
        self._shut()
        self._blocks, self._crashes, self._choose = message["blocks"], 0, None
        self._cutting = None
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
        """Let the files hold what survives. Nobody has them open."""
        self._shut()
        for file in self._files():
            file.lay(file.survives(choose))

    def _take(self) -> None:
        for file in self._files():
            file.take()

    @abstractmethod
    def _files(self) -> list[Recorded]:
        """Return the files that the disk is on."""

    @abstractmethod
    def _written(self) -> Recorded:
        """Return the file that writes go to now."""

    @abstractmethod
    def _make(self) -> None:
        """Make an empty disk of the right size; there may be another one, shut."""

    @abstractmethod
    def _open_again(self) -> Any:
        """Open the disk. Raises Refusal if the engine finds that it cannot."""

    @abstractmethod
    def _shut(self) -> None:
        """Close the disk as a clean shutdown does, if it is open: its files are not open."""


def file_node(name: str) -> dict[str, Any]:
    """Return the file as qemu is to open it."""
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
