"""Recorded traces, followed by TLC through a Trace module of the specs."""

import hashlib
import json
import os
import shutil
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from modelcheck.checkers import tlc

Lines = Sequence[Mapping[str, Any]]  # a trace: its header, then its events
SOURCE = tlc.SPECS / "java" / "TraceFile.java"


class Inconclusive(Exception):
    """TLC came to no verdict. One line that says why."""


def follow(traces: Sequence[Lines], module: str, config: str) -> list[int]:
    """Return how many events of each trace the module can match.

    A trace is accepted if that is all of them. Raises Inconclusive and tlc.Unavailable."""
    return reached_in(run(traces, module, config), len(traces)) if traces else []


def run(
    traces: Sequence[Lines],
    module: str,
    config: str,
    *,
    timeout: float | None = None,
    folder: Path = tlc.SPECS,
    most: int | None = None,
) -> tlc.Result:
    """Follow the traces through a module of `folder`. Returns the output of TLC.

    A trace is given up once it has more than `most` states.

    Raises Inconclusive and tlc.Unavailable."""
    with tempfile.TemporaryDirectory(prefix="traces-") as scratch:
        path = Path(scratch) / "traces.jsonl"
        with path.open("w", encoding="utf-8") as out:
            out.writelines(
                json.dumps(line, separators=(",", ":")) + "\n" for trace in traces for line in trace
            )
        result = tlc.run(
            folder / f"{module}.tla",
            tlc.SPECS / f"{config}.cfg",
            heap="4g",
            stack="256m",
            properties={"traces": str(path)} | ({"most": str(most)} if most else {}),
            classpath=[reader()],
            timeout=timeout,
            short=True,
        )
    if result.status != "ok":
        raise Inconclusive(f"TLC, on {module}: {result.message or result.violated}")
    return result


def reached_in(result: tlc.Result, count: int) -> list[int]:
    """Read from TLC's output how many events of each trace were matched. Raises Inconclusive."""
    for line in result.output.splitlines():
        if line.startswith("Reached: "):
            reached = [int(next_event) - 1 for next_event in line.split()[1:]]
            if len(reached) == count:
                return reached
    raise Inconclusive(f"TLC ended, but did not say how far it followed the {count} traces")


def given_up(result: tlc.Result) -> set[int]:
    """Read from TLC's output which traces it gave up, by their indices."""
    lines = result.output.splitlines()
    return {int(i) for line in lines if line.startswith("Given up:") for i in line.split()[2:]}


def reader() -> Path:
    """Return the folder of the compiled TraceFile.java, which is compiled for this jar if need be.

    Raises Unavailable."""
    jar = tlc.jar()
    version = hashlib.sha256(SOURCE.read_bytes() + str(jar.stat().st_size).encode()).hexdigest()[
        :16
    ]
    folder = tlc.BUILD / "java" / version
    if folder.exists():
        compiled_class = folder / SOURCE.with_suffix(".class").name
        if not os.access(compiled_class, os.R_OK):
            raise tlc.Unavailable(f"{compiled_class} cannot be read: remove its folder")
        return folder
    javac = shutil.which("javac")
    if not javac:
        raise tlc.Unavailable(
            "reading traces needs `javac` once, and there is none on the PATH "
            "(Debian: apt-get install default-jdk-headless)"
        )
    folder.parent.mkdir(parents=True, exist_ok=True)
    fresh = Path(tempfile.mkdtemp(dir=folder.parent))
    compiled = subprocess.run(
        [javac, "-cp", str(jar), "-d", str(fresh), str(SOURCE)], capture_output=True, text=True
    )
    if compiled.returncode:
        shutil.rmtree(fresh)
        raise tlc.Unavailable(
            f"javac cannot compile {SOURCE.name} against {jar.name}:"
            f" {compiled.stderr.strip()[:200]}"
        )
    fresh.chmod(0o755)  # other users of this checkout judge traces, too
    try:
        os.rename(fresh, folder)
    except OSError:  # another process was first
        shutil.rmtree(fresh)
    return folder
