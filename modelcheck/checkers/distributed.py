"""TLC's own distributed mode: a server on this machine, and a worker on each host of a list.

That mode checks invariants only. It ignores PROPERTY lines and CHECK_DEADLOCK FALSE silently:
a config that has either is refused.
"""

import os
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from modelcheck.checkers import tlc, tlc_config
from modelcheck.runs.models import Run

LOOPBACK = ("localhost", "127.0.0.1")
PORT = 10997  # TLC's own
# This mode does not say which invariant fails, and prints the last state only.
UNNAMED = "an invariant, or no action is possible"
CLASS = "tlc2.tool.distributed.TLC"


class NotWhole(ValueError):
    """This mode would not check all that the config names. The message is one line."""


def refusal(text: str) -> str | None:
    """Return in a line why a config cannot be checked in distributed mode; None if it can."""
    properties = tlc_config.named(text, ("PROPERTY", "PROPERTIES"))
    if properties:
        return (
            f"distributed mode would silently not check {', '.join(properties)}:"
            " give it a config with invariants only"
        )
    if "FALSE" in tlc_config.named(text, ("CHECK_DEADLOCK",)):
        return (
            "distributed mode would silently ignore CHECK_DEADLOCK FALSE:"
            " take it out, and say deadlock = false in models.toml"
        )
    return None


def check(
    run: Run,
    hosts: Sequence[str],
    *,
    server: str = "127.0.0.1",
    port: int = PORT,
    jar: str = "",
    timeout: float = 3600.0,
) -> tlc.Result:
    """Check the invariants of a run with one worker for each name in `hosts`.

    `server` is the name by which the hosts know this machine. `jar` is TLC's place on the hosts,
    the same as here if left out. Other hosts are reached by ssh. All processes are ended before it
    returns. Raises NotWhole and tlc.Unavailable."""
    reason = refusal(run.config_path.read_text())
    if reason:
        raise NotWhole(f"{run.config_path.name}: {reason}")
    with tempfile.TemporaryDirectory(prefix="tlc-") as scratch:
        folder = Path(scratch)
        processes: list[subprocess.Popen[bytes]] = []
        try:
            config = os.path.relpath(run.config_path, run.module_path.parent)
            options = [] if run.deadlock else ["-deadlock"]
            arguments = ["-metadir", scratch, "-config", config, *options, run.module]
            begun = _java(server, port, f"-Xmx{run.heap}", "-XX:+UseParallelGC")
            processes.append(
                _start(
                    [tlc.java(), *begun, "-cp", str(tlc.jar()), f"{CLASS}Server", *arguments],
                    folder / "server",
                    tlc.SPECS,
                )
            )
            for number, host in enumerate(hosts, 1):
                processes.append(
                    _start(_worker(host, server, port, jar), folder / f"worker{number}", None)
                )
            ended = _wait(processes, timeout)
            output = (folder / "server.out").read_text(errors="replace")
            result = tlc.parse(output)
            if result.trace and not result.violated:
                result.status, result.violated = "violated", UNNAMED
            if ended:
                said = [
                    path.read_text(errors="replace").strip().splitlines()
                    for path in sorted(folder.glob("worker*.out"))
                ]
                result.status, result.message = (
                    ended[0],
                    ended[1] + "".join(f"; a worker said: {lines[-1]}" for lines in said if lines),
                )
            return result
        finally:
            for process in processes:
                _end(process)


def _java(host: str, port: int, *options: str) -> list[str]:
    return [*options, f"-Djava.rmi.server.hostname={host}", f"-D{CLASS}Server.port={port}"]


def _worker(host: str, server: str, port: int, jar: str) -> list[str]:
    """Return the command of a worker: here, or on another machine."""
    options = [*_java(host, port, "-XX:+UseParallelGC", f"-D{CLASS}Worker.threadCount=1"), "-cp"]
    if host in LOOPBACK:
        return [tlc.java(), *options, str(tlc.jar()), f"{CLASS}Worker", server]
    ssh = shutil.which("ssh")
    if not ssh:
        raise tlc.Unavailable(f"there is no `ssh` on the PATH to reach {host} with")
    return [
        ssh,
        "-tt",
        "-o",
        "BatchMode=yes",
        host,
        "java",
        *options,
        jar or str(tlc.jar()),
        f"{CLASS}Worker",
        server,
    ]


def _start(command: list[str], name: Path, folder: Path | None) -> subprocess.Popen[bytes]:
    """Start a process in a session of its own. Its output goes to NAME.out, its files to NAME/."""
    name.mkdir()
    if command[0] == tlc.java():
        command = [command[0], f"-Djava.io.tmpdir={name}", *command[1:]]
    with name.with_suffix(".out").open("wb") as out:
        return subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=subprocess.STDOUT,
            cwd=folder or name,
            start_new_session=True,
        )


def _wait(processes: list[subprocess.Popen[bytes]], timeout: float) -> tuple[str, str] | None:
    """Wait until the server ends; the status and why, if it did not end by itself."""
    server, *workers = processes
    until = time.monotonic() + timeout
    while server.poll() is None:
        if workers and all(worker.poll() is not None for worker in workers):
            try:
                server.wait(10)
                return None
            except subprocess.TimeoutExpired:
                return "error", "no worker is left"
        if time.monotonic() > until:
            return "timeout", f"stopped after {timeout:.0f} s"
        time.sleep(0.2)
    return None


def _end(process: subprocess.Popen[bytes]) -> None:
    if process.poll() is None:
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()
