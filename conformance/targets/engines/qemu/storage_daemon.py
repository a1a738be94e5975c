"""qemu's block layer in a process of its own: qemu-storage-daemon, driven over QMP, and qemu-img.

QMP comes in datagrams. qemu 7.2 reads a stream byte by byte, each in a turn of its main loop; it
reads a datagram whole, in a tenth of the CPU time. A multiplexer lies in front, because QMP
greets only once it is connected, which a multiplexer always is. Daemons are kept for the next
target.
"""

import atexit
import json
import os
import select
import shutil
import socket
import subprocess
import tempfile
import time
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

from conformance.targets.base import TargetFailure, Unusable
from conformance.targets.engines.qemu import qemu_img

PATIENCE = 20.0  # seconds for an answer
FAST = Path("/dev/shm")
KEPT_OUTPUT = 8 << 10  # bytes of stderr
LOCAL = "127.0.0.1"
DATAGRAM = 1 << 16  # bytes
TAKEN = 4096  # bytes of a datagram that qemu reads
IDLE = 2  # daemons kept
_ENCODE, _DECODE = json.JSONEncoder(separators=(",", ":")).encode, json.JSONDecoder().decode
TOOLS = ("qemu-storage-daemon", "qemu-img", "setpriv")

Command = tuple[str, dict[str, Any]]
Setup = Callable[["Daemon"], Any]


class QmpError(Exception):
    """The daemon refused a command. The text is its description."""


@cache
def version() -> str:
    """Return the version of qemu's tools. Raises Unusable if they are not installed."""
    missing = [tool for tool in TOOLS if shutil.which(tool) is None]
    if missing:
        raise Unusable(
            f"{' and '.join(missing)} not found: run make engines, or install qemu-utils and "
            "qemu-system-common"
        )
    return image_tool("--version").split()[2]


def image_tool(*words: str, folder: Path | None = None) -> str:
    """Run qemu-img in the folder; return what it printed.

    Raises QmpError with its complaint, TargetFailure if it hangs."""
    try:
        return qemu_img.run(*words, folder=folder)
    except qemu_img.ToolError as error:
        raise QmpError(str(error)) from None


@cache
def aio() -> str:
    """Return how qemu reads and writes files: io_uring if the kernel has it, which is faster."""
    image = {"driver": "raw", "file": {"driver": "file", "filename": __file__, "aio": "io_uring"}}
    try:
        image_tool("info", "json:" + json.dumps(image))
        return "io_uring"
    except QmpError:
        return "threads"


class Daemon:
    """A qemu-storage-daemon in a folder of its own, which is in /dev/shm if that exists.

    Its NBD server listens on `nbd`, its file names are relative to `folder`, and `fitted` is what
    its setup returned. Raises Unusable."""

    fitted: Any = None

    def __init__(self) -> None:
        self._last: list[Callable[[], None]] = []
        _alive.add(self)
        self.folder = Path(
            tempfile.mkdtemp(prefix="conformance-", dir=FAST if FAST.is_dir() else None)
        )
        self.nbd = self.folder / "nbd"
        self._output = (self.folder / "stderr").open("w+b")
        self._socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self._socket.bind((LOCAL, 0))
        monitor = (
            f"udp,id=c,mux=on,host={LOCAL},port={self._socket.getsockname()[1]},localaddr={LOCAL}"
        )
        words = [
            "setpriv",
            "--pdeathsig",
            "KILL",
            "qemu-storage-daemon",
            "--chardev",
            monitor,
            "--monitor",
            "chardev=c",
            "--nbd-server",
            "addr.type=unix,addr.path=nbd",
        ]
        try:
            self._process = subprocess.Popen(
                words,
                cwd=self.folder,
                stdin=subprocess.DEVNULL,
                stdout=self._output,
                stderr=self._output,
            )
        except OSError as error:
            raise Unusable(f"cannot start {words[3]}: {error.strerror}") from None
        self._ended = os.pidfd_open(self._process.pid)
        self._waiting = select.poll()
        self._waiting.register(self._socket, select.POLLIN)
        self._waiting.register(self._ended, select.POLLIN)
        self._received = b""
        self._connect()
        self.do(("qmp_capabilities", {}))

    def do(self, *commands: Command) -> list[Any]:
        """Send commands, all at once; return their results. All are carried out, even if one fails.

        Raises QmpError for the first that is refused, TargetFailure if no answer comes."""
        answers = []
        try:
            lines = [_line(*command) for command in commands]
            for datagram in [b"".join(lines)] if sum(map(len, lines)) <= TAKEN else lines:
                self._socket.send(datagram)
            for command, _ in commands:
                answers.append(self._answer(command))
        except TimeoutError:
            raise self.failure(
                "hang", f"no answer to {command} within {PATIENCE:g} seconds"
            ) from None
        except (OSError, ValueError) as error:
            raise self.failure("exit", f"{commands[0][0]}: {error}") from None
        for answer in answers:
            if "error" in answer:
                raise QmpError(answer["error"]["desc"])
        return [answer["return"] for answer in answers]

    def job(self, command: str, arguments: dict[str, Any]) -> None:
        """Run a job to its end. Raises QmpError if it fails."""
        deadline = time.monotonic() + PATIENCE
        stay = (
            {} if command == "blockdev-create" else {"auto-dismiss": False}
        )  # that one always stays
        self.do((command, {**arguments, **stay, "job-id": "j"}))
        while True:
            job = self.do(("query-jobs", {}))[0][0]
            if job["status"] == "ready":
                self.do(("job-complete", {"id": "j"}))
            if job["status"] == "concluded":
                self.do(("job-dismiss", {"id": "j"}))
                if "error" in job:
                    raise QmpError(job["error"])
                return
            if time.monotonic() > deadline:
                raise self.failure("hang", f"{command} did not end within {PATIENCE:g} seconds")
            time.sleep(0.0005)

    def at_end(self, call: Callable[[], None]) -> None:
        """Have this called before the process ends."""
        self._last.append(call)

    def close(self) -> None:
        """End the process and remove the folder."""
        _alive.discard(self)
        while self._last:
            self._last.pop()()
        self._socket.close()
        os.close(self._ended)
        self._process.kill()
        self._process.wait()
        self._output.close()
        shutil.rmtree(self.folder, ignore_errors=True)

    @property
    def pid(self) -> int:
        """The id of the process."""
        return self._process.pid

    def output(self) -> str:
        """Return what it printed last."""
        self._output.seek(0)
        return self._output.read()[-KEPT_OUTPUT:].decode(errors="replace")

    def failure(self, kind: str, message: str) -> TargetFailure:
        """Return a failure of this daemon, saying how it ended if it did."""
        try:
            status = self._process.wait(timeout=0.3)
            return TargetFailure(
                "exit", f"qemu-storage-daemon ended with status {status} ({message})", self.output()
            )
        except subprocess.TimeoutExpired:
            return TargetFailure(kind, message, self.output())

    def _connect(self) -> None:
        """Connect to the sender of the first datagram, and ignore all others from then on."""
        try:
            up = self._arrives()
        except ConnectionResetError:
            up = False
        if not up:
            output = self.output()
            self.close()
            raise Unusable("qemu-storage-daemon does not come up", output)
        self._socket.connect(self._socket.recvfrom(DATAGRAM)[1])

    def _answer(self, command: str) -> dict[str, Any]:
        while True:
            while b"\n" not in self._received:
                if not self._arrives():
                    raise TimeoutError
                self._received += self._socket.recv(DATAGRAM)
            line, _, self._received = self._received.partition(b"\n")
            answer: dict[str, Any] = _DECODE(line.decode())
            if "return" in answer or "error" in answer:
                return answer

    def _arrives(self) -> bool:
        """Wait for a datagram; False if none comes. Raises OSError if the daemon ends."""
        ready = dict(self._waiting.poll(PATIENCE * 1000))
        if self._ended in ready and self._socket.fileno() not in ready:
            raise ConnectionResetError("it ended")
        return bool(ready)


def _line(command: str, arguments: dict[str, Any]) -> bytes:
    request = {"execute": command, "arguments": arguments} if arguments else {"execute": command}
    return _ENCODE(request).encode() + b"\n"


_idle: dict[Setup, list[Daemon]] = {}
_alive: set[Daemon] = set()


def borrow(setup: Setup) -> Daemon:
    """Return a daemon on which `setup` has been called once; give it back, or close it."""
    idle = _idle.setdefault(setup, [])
    if idle:
        return idle.pop()
    daemon = Daemon()
    daemon.fitted = setup(daemon)
    return daemon


def give_back(daemon: Daemon, setup: Setup) -> None:
    """Keep the daemon for the next who borrows one."""
    if len(_idle[setup]) < IDLE:
        _idle[setup].append(daemon)
    else:
        daemon.close()


@atexit.register
def _end_all() -> None:
    while _alive:
        _alive.pop().close()
