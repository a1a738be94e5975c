"""The oracle that is proved correct: the checker of proofs/theories/Checker.v, extracted to OCaml.

`make proofs` builds it. It accepts a trace if and only if the contract admits it (theorem
`recorded_checker_exact`); what is trusted besides is in proofs/README.md.
"""

import json
import os
import subprocess
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from conformance.contract import trace as traces
from conformance.contract.trace import Trace
from conformance.judging.oracles import NoSuchOracle, Opinion

BUILT = Path(__file__).parents[3] / "proofs" / "build" / "oracle"
BATCH = 200  # traces per process


def judge(batch: Sequence[Trace]) -> list[Opinion]:
    """Return one opinion per trace, in their order.

    Raises NoSuchOracle where the checker has not been built.
    """
    program = oracle()
    # Of a target that failed at once the contract says nothing.
    opinions = [Opinion(None)] * len(batch)
    begun = [i for i, trace in enumerate(batch) if "failure" not in trace.events[0]]
    for first in range(0, len(begun), BATCH):
        some = begun[first : first + BATCH]
        with TemporaryDirectory() as folder:
            paths = [Path(folder) / f"{i}.jsonl" for i in some]
            for i, path in zip(some, paths, strict=False):
                traces.write(_known(batch[i]), path)
            for i, verdict in zip(some, verdicts(program, paths), strict=True):
                opinions[i] = _opinion(verdict)
    return opinions


def _known(trace: Trace) -> Trace:
    """Return the trace in the checker's words: to the contract `scrub` is a hint."""
    events = [
        {**event, "op": "stats"} if event["op"] == "scrub" else event for event in trace.events
    ]
    return replace(trace, events=events)


def oracle() -> Path:
    """Return the checker's program: $CERTIFIED_ORACLE, or what `make -C proofs` builds. Raises
    NoSuchOracle.
    """
    program = Path(os.environ.get("CERTIFIED_ORACLE", BUILT))
    if not os.access(program, os.X_OK):
        raise NoSuchOracle(f"the oracle 'certified' is not built ({program}): run make proofs")
    return program


def verdicts(program: Path, paths: Sequence[Path]) -> Iterator[dict[str, Any]]:
    """Yield the program's JSON object for each file, in their order.

    proofs/extraction/oracle.ml prints them.
    """
    done = subprocess.run([program, *paths], capture_output=True, text=True)
    lines = done.stdout.splitlines()
    for _path, line in zip(paths, lines, strict=False):
        yield json.loads(line)
    for _ in paths[len(lines) :]:
        yield {
            "accepted": None,
            "error": f"the oracle ended with status {done.returncode}: {done.stderr.strip()}",
        }


def _opinion(verdict: dict[str, Any]) -> Opinion:
    if verdict["accepted"] is None:
        return Opinion(None, verdict["error"])
    return Opinion(verdict["at"])
