"""One check by Apalache: start it, read how it ended."""

import os
import shutil
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

from modelcheck.checkers import process
from modelcheck.checkers.tlc import BUILD, Unavailable
from modelcheck.runs.models import Run

RELEASES = "https://github.com/apalache-mc/apalache/releases"
STATUS = {
    0: "ok",
    12: "violated",
    75: "parse error",
    120: "type error",
}  # apalache-mc's; any other: "error"
FAST = {
    "JVM_ARGS": "-Xmx4g -XX:TieredStopAtLevel=1"
}  # most checks are over before Java's second compiler pays
LONGEST = 3600  # CPU seconds, for one check


@dataclass(frozen=True)
class Outcome:
    """The result of a check. `status` is a value of STATUS, "error" or "timeout".

    Only "ok" means that the property holds."""

    status: str
    message: str  # one line; empty where it holds
    seconds: float


def command() -> str:
    """Return the apalache-mc that APALACHE_MC names, or the one on the PATH. Raises Unavailable."""
    named = os.environ.get("APALACHE_MC")
    found = shutil.which(named or "apalache-mc")
    if not found:
        missing = (
            "APALACHE_MC names no program"
            if named
            else "there is no `apalache-mc` on the PATH, and APALACHE_MC is not set"
        )
        raise Unavailable(
            f"{missing}; its releases are at {RELEASES} (0.61.0 is the last one for Java 17)"
        )
    return found


def kept() -> Path:
    """Return the file that lists the checks that hold, so that a run that was cut off goes on."""
    return BUILD / "apalache.jsonl"


def check(run: Run, number: int, *, timeout: float | None = None) -> Outcome:
    """Do the step of that number (from 0) of a run; `timeout` in seconds, none where it is None.

    Apalache's files, with the counterexample, stay in build/apalache/<run>-<number>.
    Raises Unavailable."""
    verb, *options = run.steps[number]
    output = BUILD / "apalache" / f"{run.name}-{number + 1}"
    shutil.rmtree(output, ignore_errors=True)
    output.mkdir(parents=True)
    started = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="apalache-") as scratch:
        arguments = [
            command(),
            verb,
            f"--out-dir={scratch}",
            f"--run-dir={output}",
            *options,
            run.module_path.name,
        ]
        exit_status, printed = process.run(
            arguments,
            timeout,
            most=LONGEST,
            folder=run.module_path.parent,
            environment=FAST | os.environ | {"TMPDIR": scratch},
        )
    seconds = time.monotonic() - started
    if exit_status is None:
        return Outcome("timeout", f"stopped after {seconds:.0f} s", seconds)
    status = STATUS.get(exit_status, "error")
    return Outcome(status, "" if status == "ok" else _problem(printed), seconds)


def _problem(output: str) -> str:
    """Return one line that says why the check does not hold."""
    said = [line.split(" E@")[0].strip() for line in output.splitlines() if " E@" in line]
    return (
        " ".join(said)
        or next((line for line in reversed(output.splitlines()) if line.strip()), "it said nothing")
    )[:300]
