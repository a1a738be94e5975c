"""Runs that have to come out as listed: the result, the number of states, the depth, and every action taken."""

from collections.abc import Iterator
from dataclasses import dataclass

from modelcheck import tlc
from modelcheck.models import Mutant, Run
from modelcheck.tlc import SPECS, Result

LONGEST = 1200.0  # seconds, for a small run or a mutant on a busy machine


@dataclass(frozen=True)
class Checked:
    """A run, what came of it, and in what it differs from the list, one line each."""

    run: Run
    result: Result
    differences: list[str]


def check(run: Run, *, workers: int = 1, timeout: float | None = LONGEST) -> Checked:
    """Run TLC as listed. With more than one worker, for speed, depth and actions are not compared. Raises tlc.Unavailable."""
    exact = workers == 1
    result = tlc.run(run.module_path, run.config_path, workers=workers, heap=run.heap, coverage=exact, timeout=timeout)
    counts = ("distinct", "depth") if exact else ("distinct",)
    return Checked(run, result, list(_differences(run, result, counts)))


def _differences(run: Run, result: Result, counts: tuple[str, ...]) -> Iterator[str]:
    came = result.violated if result.status == "violated" else result.status
    if came != run.expect:
        yield f"{run.expect} was expected; it came to {came}" + (f": {result.message}" if result.message else "")
        return
    for what in counts:
        listed, counted = getattr(run, what), getattr(result, what)
        if listed != counted:
            yield f"{what}: {counted}; listed is {'nothing' if listed is None else listed}"
    for action in result.unused:
        if action not in run.unused:
            yield f"action {action} was never taken"
    for action in run.unused:
        if result.taken.get(action):
            yield f"action {action} was taken, though listed as unused"


@dataclass(frozen=True)
class Hunted:
    mutant: Mutant
    result: Result

    @property
    def found(self) -> bool:
        """Whether the property that has to notice did, and no other first."""
        return self.result.status == "violated" and self.result.violated in (self.mutant.property, "temporal")


def hunt(mutant: Mutant) -> Hunted:
    """Check one mutant against the property that has to fail. Raises tlc.Unavailable."""
    config = _only(SPECS / f"{mutant.config}.cfg", mutant)
    module = SPECS / "mutants" / f"{mutant.module}.tla"
    return Hunted(mutant, tlc.run(module, config, timeout=LONGEST))


SECTIONS = ("INVARIANT", "INVARIANTS", "PROPERTY", "PROPERTIES")
OTHERS = ("SPECIFICATION", "INIT", "NEXT", "CONSTANT", "CONSTANTS", "CONSTRAINT", "CONSTRAINTS", "ACTION_CONSTRAINT",
          "ACTION_CONSTRAINTS", "SYMMETRY", "VIEW", "CHECK_DEADLOCK")  # fmt: skip


def _only(config, mutant: Mutant) -> str:
    """The config with the override, and with no property but the one that has to fail."""
    kept, kind, section = [], None, ""
    for line in config.read_text().splitlines():
        words = line.split("\\*")[0].split()
        if words and words[0] in SECTIONS + OTHERS:
            section = words[0]
        elif not words:
            kept.append(line)
            continue
        if section not in SECTIONS:
            kept.append(line)
        elif mutant.property in words:
            kind = section
    if kind is None and mutant.property != "Deadlock":
        raise ValueError(f"{mutant.module}: {config.name} does not check {mutant.property}")
    kept.append(f"CONSTANT {mutant.override}")
    if kind is not None:
        kept.append(f"{'INVARIANT' if kind.startswith('INV') else 'PROPERTY'} {mutant.property}")
    return "\n".join(kept) + "\n"
