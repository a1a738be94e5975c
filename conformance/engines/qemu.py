"""qemu's block layer in a process of its own: qemu-storage-daemon, driven over QMP, and qemu-img.

qemu 7.2 takes QMP a byte at a time, about 10 microseconds each, which is most of what a trace costs. So node names
are one letter, what can stay between traces stays, and daemons are kept for the next target.
"""

import atexit
import json
import os
import shutil
import socket
import subprocess
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from conformance.targets.base import TargetFailure, Unusable

PATIENCE = 20.0  # seconds for an answer
FAST = Path("/dev/shm")
KEPT_OUTPUT = 8 << 10  # bytes of stderr
IDLE = 2  # daemons kept
TOOLS = ("qemu-storage-daemon", "qemu-img", "setpriv")

Command = tuple[str, dict[str, Any]]
Setup = Callable[["Daemon"], None]


class QmpError(Exception):
    """The daemon refused a command. The text is its description."""


def version() -> str:
    """The version of qemu's tools. Raises Unusable where they are not installed."""
    missing = [tool for tool in TOOLS if shutil.which(tool) is None]
    if missing:
        raise Unusable(f"{' and '.join(missing)} not found: run make engines, or install qemu-utils and qemu-system-common")
    return image_tool("--version").split()[2]


def image_tool(*words: str, folder: Path | None = None) -> str:
    """Run qemu-img in the folder; what it printed. Raises QmpError with its complaint, TargetFailure if it hangs."""
    try:
        done = subprocess.run(["qemu-img", *words], cwd=folder, capture_output=True, text=True, timeout=PATIENCE)
    except subprocess.TimeoutExpired:
        raise TargetFailure("hang", f"qemu-img {words[0]} did not end within {PATIENCE:g} seconds") from None
    if done.returncode < 0:
        raise TargetFailure("exit", f"qemu-img {words[0]} was killed by signal {-done.returncode}", done.stderr)
    if done.returncode:
        raise QmpError(done.stderr.strip().removeprefix("qemu-img: "))
    return done.stdout


class Daemon:
    """A qemu-storage-daemon in a folder of its own, in memory where there is /dev/shm. Raises Unusable.

    Its NBD server listens on `nbd`, its file names are relative to `folder`."""

    def __init__(self) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="conformance-", dir=FAST if FAST.is_dir() else None))
        self.nbd = self.folder / "nbd"
        self._output = (self.folder / "stderr").open("w+b")
        words = ["setpriv", "--pdeathsig", "KILL", "qemu-storage-daemon",
                 "--chardev", "socket,id=c,path=qmp,server=on,wait=off", "--monitor", "chardev=c",
                 "--nbd-server", "addr.type=unix,addr.path=nbd"]
        try:
            self._process = subprocess.Popen(words, cwd=self.folder, stdin=subprocess.DEVNULL,
                                             stdout=self._output, stderr=self._output)
        except OSError as error:
            raise Unusable(f"cannot start {words[3]}: {error.strerror}") from None
        self._socket = socket.socket(socket.AF_UNIX)
        self._socket.settimeout(PATIENCE)
        self._connect()
        self._lines = self._socket.makefile("rb")
        self._lines.readline()  # the greeting
        self.do(("qmp_capabilities", {}))

    def do(self, *commands: Command) -> list[Any]:
        """Send commands, all at once; what they return. Every one is carried out, whatever becomes of the others.

        Raises QmpError for the first that is refused, TargetFailure if no answer comes."""
        answers = []
        try:
            self._socket.sendall(b"".join(_line(*command) for command in commands))
            for command, _ in commands:
                answers.append(self._answer(command))
        except TimeoutError:
            raise self.failure("hang", f"no answer to {command} within {PATIENCE:g} seconds") from None
        except (OSError, ValueError) as error:
            raise self.failure("exit", f"{commands[0][0]}: {error}") from None
        for answer in answers:
            if "error" in answer:
                raise QmpError(answer["error"]["desc"])
        return [answer["return"] for answer in answers]

    def close(self) -> None:
        """End the process and remove the folder."""
        self._socket.close()
        self._process.kill()
        self._process.wait()
        self._output.close()
        shutil.rmtree(self.folder, ignore_errors=True)

    def output(self) -> str:
        """What it printed last."""
        self._output.seek(0)
        return self._output.read()[-KEPT_OUTPUT:].decode(errors="replace")

    def failure(self, kind: str, message: str) -> TargetFailure:
        """A failure of this daemon, saying how it ended if it did."""
        try:
            status = self._process.wait(timeout=0.3)
            return TargetFailure("exit", f"qemu-storage-daemon ended with status {status} ({message})", self.output())
        except subprocess.TimeoutExpired:
            return TargetFailure(kind, message, self.output())

    def _connect(self) -> None:
        deadline = time.monotonic() + PATIENCE
        path = self.folder / "qmp"
        while not (path.exists() and self.nbd.exists()):
            if self._process.poll() is not None or time.monotonic() > deadline:
                output = self.output()
                self.close()
                raise Unusable("qemu-storage-daemon does not come up", output)
            time.sleep(0.002)
        self._socket.connect(os.fspath(path))

    def _answer(self, command: str) -> dict[str, Any]:
        while line := self._lines.readline():
            answer = json.loads(line)
            if "return" in answer or "error" in answer:
                return answer
        raise self.failure("exit", f"it closed its monitor at {command}")


def _line(command: str, arguments: dict[str, Any]) -> bytes:
    request = {"execute": command, "arguments": arguments} if arguments else {"execute": command}
    return json.dumps(request, separators=(",", ":")).encode() + b"\n"


_idle: dict[Setup, list[Daemon]] = {}


def borrow(setup: Setup) -> Daemon:
    """A daemon on which `setup` has been called once; give it back, or close it."""
    idle = _idle.setdefault(setup, [])
    if idle:
        return idle.pop()
    daemon = Daemon()
    setup(daemon)
    return daemon


def give_back(daemon: Daemon, setup: Setup) -> None:
    """Keep the daemon for the next who borrows one."""
    if len(_idle[setup]) < IDLE:
        _idle[setup].append(daemon)
    else:
        daemon.close()


@atexit.register
def _end_all() -> None:
    for idle in _idle.values():
        while idle:
            idle.pop().close()
