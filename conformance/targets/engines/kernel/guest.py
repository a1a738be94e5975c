"""A guest of user-mode Linux: a kernel that is a process, with an agent and a disk for the driver.

The disk is a vhost-user export of qemu-storage-daemon over `blklogwrites`: all that the guest
writes is recorded."""

import atexit
import os
import shutil
import signal
import socket
import subprocess
import time
from contextlib import suppress
from functools import cache
from mmap import mmap
from pathlib import Path

from conformance.targets.base import TargetFailure, Unusable
from conformance.targets.engines import recorded_disk
from conformance.targets.engines.kernel import image
from conformance.targets.engines.qemu import storage_daemon

KERNEL = "linux.uml"
MODULES = Path("/usr/lib/uml/modules")
WANTED = ("virtio_blk", "dm-thin-pool", "dm-snapshot", "nilfs2", "btrfs")
ROOM = 16 << 20  # bytes of the disk: the multiple that a bare device is
LARGE = 160 << 20  # bytes of the disk of a file system
MAILBOX = 4 << 20  # bytes
PATIENCE = 30.0  # seconds for an answer
BOOT = 60.0  # seconds until the agent is ready
DISK = "/dev/vda"


class GuestError(Exception):
    """The agent's answer is an error: `number` is the errno."""

    def __init__(self, number: int, words: str):
        super().__init__(f"{words}: {os.strerror(number)}")
        self.number = number


@cache
def version() -> str:
    """The version of the guest's kernel. Raises Unusable where user-mode Linux is not installed."""
    program = shutil.which(KERNEL)
    if program is None:
        raise Unusable(f"{KERNEL} not found: run make kernel, or install user-mode-linux")
    return subprocess.run([program, "--version"], capture_output=True, text=True).stdout.strip()


def _modules() -> Path:
    folder = MODULES / version()
    if not (folder / "modules.dep").exists():
        raise Unusable(f"{folder} has no modules of this kernel")
    return folder


class Guest:
    """A guest that has booted; its disk is `size` bytes. Raises Unusable. Close it.

    `mailbox` holds what the agent has read, or is to write; `folder` has the files `disk` and `log`
    of the disk."""

    def __init__(self, size: int) -> None:
        self._daemon = storage_daemon.Daemon()
        self.folder = self._daemon.folder
        self.size = size
        self._process: subprocess.Popen[bytes] | None = None
        self._watcher: subprocess.Popen[bytes] | None = None
        try:
            self._boot()
        except BaseException:
            self.close()
            raise
        _alive.add(self)

    def _boot(self) -> None:
        recorded_disk.log_writes(self._daemon, self.size, discard="unmap")
        self._daemon.do(
            (
                "block-export-add",
                {
                    "type": "vhost-user-blk",
                    "id": "disk",
                    "node-name": "w",
                    "addr": {"type": "unix", "path": "vhost"},
                    "writable": True,
                    "logical-block-size": recorded_disk.BLOCK,
                },
            )
        )
        with (self.folder / "mailbox").open("w+b") as file:
            file.truncate(MAILBOX)
            self.mailbox = mmap(file.fileno(), MAILBOX)
        needed = image.modules(_modules(), WANTED)
        files = {f"m/{path.name}": path.read_bytes() for path in needed}
        files["init"] = image.agent(image.BUILT).read_bytes()
        (self.folder / "image").write_bytes(image.archive(files))
        self._port, theirs = socket.socketpair()
        self._port.settimeout(BOOT)
        self._received = b""
        words = [
            KERNEL,
            "mem=96M",
            "initrd=image",
            "rdinit=/init",
            "quiet",
            "panic=-1",
            f"ssl0=fd:{theirs.fileno()}",
            "agent_port=/dev/ttyS0",
            "con=null",
            "con0=null,fd:1",
            "ubd0=mailbox",
            "virtio_uml.device=vhost:2",
            f"uml_dir={self.folder}",
        ]
        self._console = (self.folder / "console").open("w+b")
        self._process = subprocess.Popen(
            words,
            cwd=self.folder,
            stdin=subprocess.DEVNULL,
            stdout=self._console,
            stderr=self._console,
            pass_fds=[theirs.fileno()],
            start_new_session=True,
            env={
                **os.environ,
                "TMPDIR": str(self.folder),
                "LD_PRELOAD": str(image.long_fp_registers(image.BUILT).absolute()),
            },
        )
        self._watch()
        theirs.close()
        if self._line() != "ready":
            raise Unusable("the guest's agent says something else than ready", self.console())
        self._port.settimeout(PATIENCE)
        for path in needed:
            self.ask("load", f"/m/{path.name}")
        self.ask("put", "/sys/block/vda/cache_type", "write", "back")

    def _watch(self) -> None:
        """Have the guest's processes end when this one does, however it ends."""
        assert self._process is not None
        self._watcher = subprocess.Popen(
            ["sh", "-c", f"read _; kill -9 -{self._process.pid}"],
            stdin=subprocess.PIPE,  # at its end nobody holds the other side any more
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )

    def ask(self, *words: object) -> str:
        """Have the agent do this; what it says. Raises GuestError, TargetFailure for no answer."""
        text = " ".join(map(str, words))
        try:
            self._port.sendall(text.encode() + b"\n")
        except OSError as error:
            raise self._ended(str(error)) from None
        kind, _, rest = self._line().partition(" ")
        if kind == "ok":
            return rest
        raise GuestError(int(rest.split()[0]), text[:200])

    def _line(self) -> str:
        deadline = time.monotonic() + (self._port.gettimeout() or 0)
        try:
            while b"\n" not in self._received:
                more = self._port.recv(1 << 16)
                if not more:
                    raise self._ended("its port is closed")
                self._received += more
                if b"\n" not in self._received and time.monotonic() > deadline:
                    raise TimeoutError
        except TimeoutError:
            raise TargetFailure(
                "hang", "the guest's agent does not answer", self.console()
            ) from None
        except OSError as error:
            raise self._ended(str(error)) from None
        line, _, self._received = self._received.partition(b"\n")
        return line.decode(errors="replace").rstrip("\r")

    def _ended(self, how: str) -> TargetFailure:
        return TargetFailure("exit", f"the guest has ended: {how}", self.console())

    def console(self) -> str:
        """What the guest's kernel printed last."""
        self._console.seek(0)
        return self._console.read()[-8192:].decode(errors="replace")

    def processor_seconds(self) -> float:
        """Processor time that the guest and its disk have used."""
        assert self._process is not None
        ticks = 0
        for status in Path("/proc").glob("[0-9]*/stat"):
            try:
                fields = status.read_text().rpartition(")")[2].split()
            except OSError:
                continue  # it has ended
            if int(fields[2]) == self._process.pid or status.parent.name == str(self._daemon.pid):
                ticks += int(fields[11]) + int(fields[12])
        return ticks / os.sysconf("SC_CLK_TCK")

    def close(self) -> None:
        """End the guest and its disk."""
        _alive.discard(self)
        if self._process is not None:
            _used.append(self.processor_seconds())
            with suppress(ProcessLookupError):
                os.killpg(self._process.pid, signal.SIGKILL)
            if self._watcher is not None:
                self._watcher.communicate()
            self._process.wait()
            self._port.close()
        self._daemon.close()


def processor_seconds() -> float:
    """Processor time that this process and its guests with their disks have used, in seconds."""
    return time.process_time() + sum(_used) + sum(guest.processor_seconds() for guest in _alive)


_alive: set[Guest] = set()
_used: list[float] = []  # processor time of guests that have ended, in seconds
_idle: dict[int, list[Guest]] = {}


def borrow(size: int) -> Guest:
    """A guest with such a disk and no device on it; give it back, or close it."""
    idle = _idle.setdefault(size, [])
    return idle.pop() if idle else Guest(size)


def give_back(guest: Guest) -> None:
    """Keep the guest for the next who borrows one."""
    _idle[guest.size].append(guest)


@atexit.register
def _end_all() -> None:
    while _alive:
        _alive.pop().close()
