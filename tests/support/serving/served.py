"""A disk that is served over NBD: the server as a process, and real clients."""

import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

ENGINE = [sys.executable, "-m", "refmodel"]
PROGRAMS = ("fio", "qemu-io", "qemu-img", "nbdcopy", "nbdinfo")
MISSING = [program for program in PROGRAMS if shutil.which(program) is None]
BOUND = 120  # seconds; the machine may be busy


def run(
    *arguments: object, status: int | None = 0, stdin: bytes = b""
) -> subprocess.CompletedProcess[bytes]:
    """Run a program, and return its output. It must end with the status, unless that is None."""
    done = subprocess.run([*map(str, arguments)], input=stdin, capture_output=True, timeout=BOUND)
    assert status is None or done.returncode == status, (
        f"{arguments} ended with {done.returncode}: {done.stdout!r} {done.stderr!r}"
    )
    return done


def refmodel(
    *arguments: object, status: int | None = 0, stdin: bytes = b""
) -> subprocess.CompletedProcess[bytes]:
    """Run `refmodel` with arguments."""
    return run(*ENGINE, *arguments, status=status, stdin=stdin)


class Server:
    """`refmodel serve` of a disk in a folder, as a process; or that of another program."""

    def __init__(self, folder: Path, program: Sequence[str] = ENGINE) -> None:
        self._program = program
        self.disk = folder / "disk"
        self.socket = folder / "nbd.sock"
        self._log = folder / "server.log"
        self._process: subprocess.Popen[bytes] | None = None

    def uri(self, snapshot: str = "") -> str:
        """Return the NBD URI of the live disk or of a snapshot."""
        return f"nbd+unix:///{snapshot}?socket={self.socket}"

    @property
    def log(self) -> str:
        """Return what the server has printed."""
        return self._log.read_text()

    def start(self, *options: str) -> None:
        """Start the server, and wait until it serves."""
        with self._log.open("wb") as log:
            command = [*self._program, "serve", str(self.disk), "--socket", str(self.socket)]
            command += ["--no-sync", *options]
            self._process = subprocess.Popen(
                command, stdout=log, stderr=log, stdin=subprocess.DEVNULL
            )
        deadline = time.monotonic() + BOUND
        while "serving" not in self.log:
            assert self._process.poll() is None and time.monotonic() < deadline, self.log
            time.sleep(0.05)

    def end(self, how: signal.Signals = signal.SIGTERM) -> int:
        """End the server with a signal. Returns its exit status, or minus the signal."""
        assert self._process is not None
        self._process.send_signal(how)
        return self._process.wait(BOUND)

    def peak_bytes(self) -> int:
        """Return the most memory that the server has held, in bytes."""
        assert self._process is not None
        status = Path(f"/proc/{self._process.pid}/status").read_text()
        peak = next(line for line in status.splitlines() if line.startswith("VmHWM:"))
        return int(peak.split()[1]) * 1024

    def memory(self) -> int:
        """Return the memory that the server holds now, in bytes."""
        assert self._process is not None
        pages = Path(f"/proc/{self._process.pid}/statm").read_text().split()[1]
        return int(pages) * os.sysconf("SC_PAGE_SIZE")

    def open_files(self) -> int:
        """Return how many files the server has open."""
        assert self._process is not None
        return len(os.listdir(f"/proc/{self._process.pid}/fd"))

    def cpu_seconds(self) -> float:
        """Return the CPU time that the server has taken, in seconds."""
        assert self._process is not None
        return time.clock_gettime(~self._process.pid << 3 | 2)  # see clock_getcpuclockid(3)

    def stop(self) -> None:
        """Kill the server, if it runs."""
        if self._process is not None and self._process.poll() is None:
            self.end(signal.SIGKILL)

    def fio(self, name: str, **options: object) -> subprocess.CompletedProcess[bytes]:
        """Run one fio job on the live disk: by default random writes of 4 KiB, verified."""
        job = {
            "ioengine": "nbd",
            "uri": self.uri(),
            "rw": "randwrite",
            "bs": "4k",
            "iodepth": 16,
            "verify": "crc32c",
            "verify_fatal": 1,
            "verify_state_save": 0,
            "randseed": 7,
        } | options
        folder = self.disk.parent
        text = "\n".join(f"{key}={value}" for key, value in job.items())
        (folder / f"{name}.fio").write_text(f"[{name}]\n{text}\n")
        environment = os.environ | {"HOME": str(folder)}
        return subprocess.run(
            ["fio", f"--output={folder / name}.out", str(folder / f"{name}.fio")],
            cwd=folder,
            env=environment,
            capture_output=True,
            timeout=4 * BOUND,
        )
