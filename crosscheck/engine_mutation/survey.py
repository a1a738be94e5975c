"""A survey of mutants of the engines, drawn by seed. The campaign of the default command tries
each; the engine's unit tests try those that survive. Results are kept, so an interrupted run
continues, and a run with more seconds tries only the survivors again."""

import hashlib
import json
import os
import random
import subprocess
import sys
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from signal import SIGXCPU
from tempfile import TemporaryDirectory

from crosscheck.engine_mutation.changes import Change, changes
from crosscheck.engine_mutation.plant import VARIABLE

ROOT = Path(__file__).parents[2]
PACKAGES = ("log_structured", "journal", "array", "inplace", "redolog", "cache", "media", "engine")
EQUIPMENT = ("power_supply", "faults")  # modules of the kit: they fail devices on purpose
KEPT = ROOT / "build" / "engine-mutation.jsonl"
LONGEST = 7200  # seconds by the wall: a process that takes them waits for ever
UNIT_TESTS_SECONDS = 900
MEMORY_FOLDER = Path("/dev/shm")
BY = ("contract", "scrub", "crash", "unit tests", "nothing")
UNFOUND = BY[3:]  # the kit did not find it

Mutant = tuple[str, Change]  # a module's name and a change of it


@dataclass(frozen=True)
class Tried:
    """The result of one mutant.

    `by` is one of BY; `how` the class of the failure; `reached` whether the changed statement ran;
    `seconds` of the processor were taken.
    """

    module: str
    number: int
    line: int
    change: str
    by: str
    how: str
    operations: int
    seconds: float
    reached: bool
    message: str

    def settles(self, seconds: float) -> bool:
        """Return whether a trial of `seconds` would come out the same."""
        return self.by not in UNFOUND or self.seconds >= seconds


def population() -> list[Mutant]:
    """Return every change of every module of the engines, in a fixed order."""
    return [
        (name, change)
        for package in PACKAGES
        for file in sorted((ROOT / "refmodel" / package).rglob("*.py"))
        if file.stem not in EQUIPMENT
        for name in [".".join(file.relative_to(ROOT).with_suffix("").parts)]
        for change in changes(file.read_text())
    ]


def drawn(count: int, seed: int, only: str = "") -> list[Mutant]:
    """Return `count` mutants drawn by seed, of modules whose name contains `only`."""
    some = [one for one in population() if only in one[0]]
    return random.Random(seed).sample(some, min(count, len(some)))


def survey(
    mutants: Iterable[Mutant], target: str, seed: int, seconds: float, jobs: int, unit_tests: bool
) -> Iterator[Tried]:
    """Try each mutant for at most `seconds` of the processor, with the programs of this seed for
    the target. Yields each when it is done, in their order.
    """
    known, kit = _known(), fingerprint()

    def attempt(one: Mutant) -> Tried:
        name, change = one
        key = f"{kit} {name} {change.number} {target} {seed}"
        tried = known.get(key)
        if tried is None or not tried.settles(seconds):
            tried = _keep(key, _tried(name, change, target, seconds, seed))
        if tried.by == "nothing" and unit_tests and _fails_unit_tests(name, change):
            tried = _keep(key, replace(tried, by="unit tests"))
        return tried

    with ThreadPoolExecutor(jobs) as pool:
        yield from pool.map(attempt, mutants)


def _tried(name: str, change: Change, target: str, seconds: float, seed: int) -> Tried:
    memory = MEMORY_FOLDER if MEMORY_FOLDER.is_dir() else None
    with TemporaryDirectory(prefix="mutant-", dir=memory) as folder:
        words = [name, change.number, target, seconds, seed, folder]
        try:
            done = subprocess.run(
                [sys.executable, "-m", "crosscheck.engine_mutation.trial", *map(str, words)],
                capture_output=True,
                text=True,
                cwd=ROOT,
                timeout=LONGEST,
            )
            hangs, said, error = done.returncode == -SIGXCPU, done.stdout, done.stderr
        except subprocess.TimeoutExpired:
            hangs, said, error = True, "", ""
    if said:
        found = json.loads(said.splitlines()[-1])
    else:  # it hangs, was out of memory, or was killed
        found = {"how": "hang" if hangs else "exit", "operations": 0, "seconds": 0.0}
        found |= {"reached": True, "message": error[-300:]}
    how = found["how"]
    by = {"survived": "nothing", "scrub": "scrub", "exit": "crash", "hang": "crash"}.get(
        how, "contract"
    )
    return Tried(
        name,
        change.number,
        change.line,
        str(change),
        by,
        how,
        found["operations"],
        found["seconds"],
        found["reached"],
        found["message"],
    )


def _fails_unit_tests(name: str, change: Change) -> bool:
    words = ["-q", "-x", "-p", "crosscheck.engine_mutation.plant", "-p", "no:cacheprovider"]
    environment = {**os.environ, VARIABLE: f"{name}:{change.number}"}
    try:
        done = subprocess.run(
            [sys.executable, "-m", "pytest", *words, "tests/refmodel"],
            capture_output=True,
            cwd=ROOT,
            env=environment,
            timeout=UNIT_TESTS_SECONDS,
        )
    except subprocess.TimeoutExpired:
        return True
    return done.returncode != 0


def fingerprint() -> str:
    """Return what stays the same while neither the engines nor the kit change."""
    files = sorted(
        file for part in ("refmodel", "conformance") for file in (ROOT / part).rglob("*.py")
    )
    return hashlib.sha256(b"\0".join(file.read_bytes() for file in files)).hexdigest()[:16]


def _keep(key: str, tried: Tried) -> Tried:
    KEPT.parent.mkdir(exist_ok=True)
    with KEPT.open("a") as out:
        out.write(json.dumps({"key": key, **asdict(tried)}) + "\n")
    return tried


def _known() -> dict[str, Tried]:
    if not KEPT.exists():
        return {}
    lines = map(json.loads, KEPT.read_text().splitlines())
    return {line.pop("key"): Tried(**line) for line in lines}
