"""Mechanical mutants of the specs, tried on small runs: which ones break a property."""

import hashlib
import json
import shutil
import tempfile
import threading
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from modelcheck.checkers import tlc
from modelcheck.checkers.tlc import SPECS, Result
from modelcheck.mutation import changes, planted
from modelcheck.mutation.changes import Edit
from modelcheck.runs import check, models, naming
from modelcheck.runs.models import Run, Subject

KEPT = tlc.BUILD / "mutation.jsonl"  # results so far, from which an interrupted run continues
LONGEST = 120  # CPU seconds a run; what takes longer has too many states
HOW = ("property", "error", "equivalent", "survived")


@dataclass(frozen=True)
class Tried:
    """The result for one mutant.

    `how` is "property" (one fails, a deadlock is reached, or an action that the runs take is never
    taken), "error" (TLC cannot evaluate the mutant), "equivalent" (specs/mutation.toml says why) or
    "survived". `by` gives the details. A number of states that is not the listed one is no
    property: `by` tells it of a survivor."""

    spec: str
    edit: str
    line: int
    how: str
    by: str


def share(tried: Sequence[Tried]) -> float:
    """Return which part of the mutants breaks a property, of those that TLC can evaluate and that
    are no equivalents."""
    counted = [one for one in tried if one.how in ("property", "survived")]
    return sum(one.how == "property" for one in counted) / max(1, len(counted))


def survey(
    count: int, seed: int, jobs: int, specs: tuple[str, ...] = (), kept: Path | None = None
) -> Iterator[Tried]:
    """Yield `count` mutants of each subject, drawn by the seed, and what came of them.

    What is in `kept` is not tried again, but for survivors when any module of their runs has
    changed since: a property may have been added for them.

    Raises BadList, ValueError and tlc.Unavailable."""
    kept = kept or KEPT
    runs = {run.name: run for run in models.runs()}
    reasons, known, lock = models.equivalents(), _known(kept), threading.Lock()
    chosen = [subject for subject in models.subjects() if not specs or subject.spec in specs]
    todo = [
        (subject, edit)
        for subject in chosen
        for edit in changes.sample(
            subject.spec, _source(subject.spec), count, seed, _below(subject.spec)
        )
    ]

    def attempt(task: tuple[Subject, Edit]) -> Tried:
        subject, edit = task
        key, read = _key(subject, edit, runs), _read(subject, runs)
        how, by, then = known.get(key, ("", "", ""))
        if not how or how == "survived" and then != read:
            how, by = _tried(subject, edit, runs)
            line = {"key": key, "spec": subject.spec, "edit": edit.name, "how": how, "by": by}
            with lock, kept.open("a") as out:
                out.write(json.dumps({**line, "read": read}) + "\n")
        if how == "survived" and (subject.spec, edit.name) in reasons:
            how, by = "equivalent", reasons[subject.spec, edit.name]
        return Tried(subject.spec, edit.name, edit.line, how, by)

    kept.parent.mkdir(exist_ok=True)
    for _, tried in check.side_by_side(attempt, todo, jobs):
        yield tried


def _source(spec: str) -> bytes:
    return (SPECS / f"{spec}.tla").read_bytes()


def _below(spec: str) -> list[bytes]:
    """Return the modules of specs/ that a spec extends, directly or not."""
    return [_source(name) for name in sorted(planted.needed(spec) - {spec})]


def _tried(subject: Subject, edit: Edit, runs: dict[str, Run]) -> tuple[str, str]:
    """Return how the mutant is killed, and by what."""
    differs = ""
    with tempfile.TemporaryDirectory(prefix="mutation-") as scratch:
        folder = Path(scratch)
        (folder / f"{subject.spec}.tla").write_bytes(edit.apply(_source(subject.spec)))
        for run in (runs[name] for name in subject.runs):
            shutil.copy(run.module_path, folder)
            result = _checked(folder / run.module_path.name, run.config_path)
            if result.status == "violated":
                return "property", f"{run.name}: {result.violated}"
            if result.status == "error":
                return "error", result.message
            if result.status == "timeout":
                return "survived", f"{run.name}: {result.message}"
            unreached = [action for action in result.unused if action not in run.unused]
            if unreached:
                return "property", f"{run.name}: {unreached[0]} is never taken"
            counts, listed = (result.distinct, result.depth), (run.distinct, run.depth)
            if counts != listed and not differs:
                differs = f"{run.name}: {_counted(*counts)}; listed {_counted(*listed)}"
    return "survived", differs


def _checked(module: Path, config: Path) -> Result:
    """Return what TLC comes to, with the name of the property that fails."""

    def again(text: Path | str) -> Result:
        return tlc.run(module, text, coverage=True, short=True, most=LONGEST)

    result = again(config)
    result.violated = naming.named(result, module, config.read_text(), again)
    return result


def _counted(states: int | None, depth: int | None) -> str:
    return f"{states} states, depth {depth}"


def _known(kept: Path) -> dict[str, tuple[str, str, str]]:
    """Return earlier results by the mutant's key: how, by what, and what its runs read then."""
    if not kept.exists():
        return {}
    lines = (json.loads(line) for line in kept.read_text().splitlines())
    return {line["key"]: (line["how"], line["by"], line.get("read", "")) for line in lines}


def _read(subject: Subject, runs: dict[str, Run]) -> str:
    """Return a digest of all modules that the runs of a subject read."""
    modules = {name for run in subject.runs for name in planted.needed(runs[run].module)}
    return hashlib.sha256(b"\0".join(_source(name) for name in sorted(modules))).hexdigest()


def _key(subject: Subject, edit: Edit, runs: dict[str, Run]) -> str:
    """Return a digest of the mutant and of all that it is tried on."""
    parts = [edit.apply(_source(subject.spec))]
    for name in subject.runs:
        if name not in runs:
            raise models.BadList(f"mutation.toml: there is no run {name}")
        parts += [
            runs[name].module_path.read_bytes(),
            runs[name].config_path.read_bytes(),
            repr(asdict(runs[name])).encode(),
        ]
    return hashlib.sha256(b"\0".join(parts)).hexdigest()
