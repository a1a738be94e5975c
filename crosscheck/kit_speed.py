"""The cost of an operation in the kit and in the engine, compared with an earlier revision.

Both revisions run the same programs, those that the earlier one generates, in turns and each in a
process of its own (crosscheck.kit_probe). An operation also costs what its own revision takes to
generate one. Of several rounds the cheapest counts: other processes only ever add time.
"""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

ROOT = Path(__file__).parents[1]
PROBE = ROOT / "crosscheck" / "kit_probe.py"
PACKAGES = ("commandline", "conformance", "refmodel")  # earlier revisions lack the first
MICRO = 1e6


class NoRevision(Exception):
    """Git does not know the revision. The message is one line."""


class NotMeasured(Exception):
    """The kit of a revision cannot be unpacked or run. The message is one line."""


@dataclass(frozen=True)
class Cost:
    """The cost of an operation at a revision, in microseconds of CPU time."""

    operations: int
    crashes: int
    generator: float
    kit: float  # drive, encode, decode, judge, count
    target: float

    @property
    def alone(self) -> float:
        """The cost of the kit without the engine."""
        return self.generator + self.kit

    @property
    def together(self) -> float:
        """The cost of the kit and the engine."""
        return self.alone + self.target

    @property
    def rate(self) -> float:
        """Operations per CPU second, of the kit and the engine."""
        return MICRO / self.together


def compared(revision: str, target: str, traces: int, ops: int, rounds: int) -> tuple[Cost, Cost]:
    """Return the cost at an earlier revision and now. Raises NoRevision and NotMeasured."""
    with TemporaryDirectory() as name:
        folder = Path(name)
        before = folder / "before"
        _unpack(revision, before)
        found: dict[Path, list[Cost]] = {before: [], ROOT: []}
        for tree in _turns(before, rounds):
            found[tree].append(_probe(tree, target, traces, ops, folder / "programs.json"))
        return _cheapest(found[before]), _cheapest(found[ROOT])


def _turns(before: Path, rounds: int) -> Iterator[Path]:
    """Yield the revisions in turns, first the earlier one, which writes the programs."""
    for _ in range(rounds):
        yield before
        yield ROOT


def _unpack(revision: str, folder: Path) -> None:
    verify = ["git", "rev-parse", "--verify", "--quiet", "--end-of-options"]
    commit = f"{revision}^{{commit}}"
    if subprocess.run([*verify, commit], cwd=ROOT, capture_output=True, check=False).returncode:
        raise NoRevision(f"there is no revision {revision}")
    folder.mkdir()
    listed = subprocess.run(
        ["git", "ls-tree", "--name-only", revision, *PACKAGES],
        cwd=ROOT,
        capture_output=True,
        check=True,
    )
    there = listed.stdout.decode().split()
    packed = subprocess.run(
        ["git", "archive", revision, *there], cwd=ROOT, capture_output=True, check=False
    )
    if packed.returncode:
        raise NotMeasured(f"{revision}: {packed.stderr.decode(errors='replace').strip()}")
    subprocess.run(["tar", "-x"], input=packed.stdout, cwd=folder, check=True)


def _probe(tree: Path, target: str, traces: int, ops: int, programs: Path) -> Cost:
    """Return the measurements that the revision in this folder prints. Raises NotMeasured."""
    run = subprocess.run(
        [sys.executable, "-P", PROBE, target, str(traces), str(ops), programs],
        env=os.environ | {"PYTHONPATH": str(tree)},
        capture_output=True,
        text=True,
        check=False,
    )
    if run.returncode:
        last = (run.stderr.strip() or "it says nothing").splitlines()[-1]
        raise NotMeasured(f"the kit in {tree}: {last}")
    said = json.loads(run.stdout)
    if not Path(said["where"]).is_relative_to(tree):
        raise NotMeasured(f"{said['where']} was measured instead of {tree}")
    return cost_of(said)


def cost_of(said: dict[str, Any]) -> Cost:
    """Return the cost that the probe's answer stands for."""
    own, same = said["own"], said["same"]
    each = MICRO / same["operations"]
    return Cost(
        same["operations"],
        same["crashes"],
        MICRO * own["generator"] / own["operations"],
        each * same["kit"],
        each * same["target"],
    )


def _cheapest(costs: list[Cost]) -> Cost:
    """Return the least of each part over all rounds."""
    first = costs[0]
    return Cost(
        first.operations,
        first.crashes,
        min(cost.generator for cost in costs),
        min(cost.kit for cost in costs),
        min(cost.target for cost in costs),
    )
