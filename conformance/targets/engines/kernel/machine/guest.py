"""A guest of user-mode Linux: a kernel that is a process, with an agent and a disk for the driver.

The disk is a vhost-user export of qemu-storage-daemon over `blklogwrites`: all that the guest
writes is recorded."""

import atexit
import os
import queue
import shutil
import signal
import socket
import subprocess
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import cache
from mmap import mmap
from pathlib import Path

from conformance.targets.base import Unusable
from conformance.targets.engines import recorded_disk
from conformance.targets.engines.kernel.machine import image
from conformance.targets.engines.kernel.machine.line import Line
from conformance.targets.engines.qemu import storage_daemon

KERNEL = "linux.uml"
MODULES = Path("/usr/lib/uml/modules")
WANTED = ("virtio_blk", "dm-thin-pool", "dm-snapshot", "nilfs2", "btrfs")
ROOM = 16 << 20  # bytes of the disk: the multiple that a bare device is
LARGE = 160 << 20  # bytes of the disk of a file system
LINES = 8  # lines to the agent, one for each request in flight
MAILBOX = 4 << 20  # bytes of each line's part of it
BOOT = 60.0  # seconds until the agent is ready
DISK = "/dev/vda"


@cache
def version() -> str:
    """Return the version of the guest's kernel.

    Raises Unusable where user-mode Linux is not installed.
    """
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

    `folder` has the files `disk` and `log` of the disk; `version` is the kernel's."""

    def __init__(self, size: int) -> None:
        self.version = self._found()
        storage_daemon.version()  # raises Unusable if it is not installed
        self._daemon = storage_daemon.Daemon()
        self.folder = self._daemon.folder
        self.size = size
        self._process: subprocess.Popen[bytes] | None = None
        self._watcher: subprocess.Popen[bytes] | None = None
        self._lines: list[Line] = []
        self._free: queue.LifoQueue[Line] = queue.LifoQueue()  # lines that nobody uses
        try:
            self._boot()
        except BaseException:
            self.close()
            raise
        _alive.add(self)

    def _found(self) -> str:
        """Return the version of the kernel. Raises Unusable if it is not there."""
        return version()

    def _boot(self) -> None:
        """Start the guest, and wait for its agent. Raises Unusable."""
        self._make_disk()
        needed = self._make_image(_modules(), WANTED)
        self._make_mailbox()
        ours, theirs = zip(*(socket.socketpair() for _ in range(LINES)), strict=True)
        ports = [port.fileno() for port in theirs]
        words = [
            KERNEL,
            "mem=96M",
            "initrd=image",
            "rdinit=/init",
            "quiet",
            "panic=-1",
            *(f"ssl{number}=fd:{port}" for number, port in enumerate(ports)),
            f"agent_port={','.join(f'/dev/ttyS{number}' for number in range(LINES))}",
            "con=null",
            "con0=null,fd:1",
            "ubd0=mailbox",
            "virtio_uml.device=vhost:2",
            f"uml_dir={self.folder}",
        ]
        library = image.long_fp_registers(image.BUILT).absolute()
        self._start(words, ports, TMPDIR=str(self.folder), LD_PRELOAD=str(library))
        for port in theirs:
            port.close()
        self._connect(ours, BOOT)
        self._load(needed)

    def _make_disk(self) -> None:
        """Make the disk, which the guest reaches at the socket `vhost`."""
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

    def _make_image(self, modules: Path, wanted: tuple[str, ...]) -> list[str]:
        """Make the guest's first file system, with these modules of the kernel.

        Return the paths of the modules in it, in the order of loading.
        """
        needed = {
            f"m/{image.plain(path)}": image.content(path) for path in image.modules(modules, wanted)
        }
        files = {**needed, "init": image.agent(image.BUILT).read_bytes()}
        (self.folder / "image").write_bytes(image.archive(files))
        return [f"/{path}" for path in needed]

    def _load(self, modules: Iterable[str]) -> None:
        for path in modules:
            self.ask("load", path)
        self.ask("put", "/sys/block/vda/cache_type", "write", "back")

    def _start(self, words: Sequence[str], files: Sequence[int] = (), **environment: str) -> None:
        """Start the guest by this command, which inherits the open files."""
        self._console = (self.folder / "console").open("w+b")
        self._process = subprocess.Popen(
            words,
            cwd=self.folder,
            stdin=subprocess.DEVNULL,
            stdout=self._console,
            stderr=self._console,
            pass_fds=files,
            start_new_session=True,
            env={**os.environ, **environment},
        )
        self._watch()

    def _watch(self) -> None:
        """Have the guest's processes end when this one does, however it ends."""
        assert self._process is not None
        self._watcher = subprocess.Popen(
            ["sh", "-c", f"read _; kill -9 -{self._process.pid}"],
            stdin=subprocess.PIPE,  # at its end nobody holds the other side any more
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )

    def _make_mailbox(self) -> None:
        with (self.folder / "mailbox").open("w+b") as file:
            file.truncate(LINES * MAILBOX)
            self._mailbox = memoryview(mmap(file.fileno(), LINES * MAILBOX))

    def _connect(self, ports: Sequence[socket.socket], seconds: float) -> None:
        """Wait for the agent on these ports. Raises TargetFailure."""
        for number, port in enumerate(ports):
            mailbox = self._mailbox[number * MAILBOX : (number + 1) * MAILBOX]
            self._lines.append(Line(port, mailbox, self.console))
        for line in reversed(self._lines):
            line.await_ready(seconds)
            self._free.put(line)

    @contextmanager
    def line(self) -> Iterator[Line]:
        """Yield a line to the agent that nobody else uses in this block."""
        line = self._free.get()
        try:
            yield line
        finally:
            self._free.put(line)

    def ask(self, *words: object) -> str:
        """Ask on any line, as Line.ask does."""
        with self.line() as line:
            return line.ask(*words)

    def console(self) -> str:
        """Return what the guest's kernel printed last."""
        self._console.seek(0)
        return self._console.read()[-8192:].decode(errors="replace")

    def processor_seconds(self) -> float:
        """CPU time that the guest and its disk have used."""
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
            for line in self._lines:
                line.close()
        self._daemon.close()


def processor_seconds() -> float:
    """CPU time that this process and its guests with their disks have used, in seconds."""
    return time.process_time() + sum(_used) + sum(guest.processor_seconds() for guest in _alive)


_alive: set[Guest] = set()
_used: list[float] = []  # CPU time of guests that have ended, in seconds


@atexit.register
def _end_all() -> None:
    while _alive:
        _alive.pop().close()
