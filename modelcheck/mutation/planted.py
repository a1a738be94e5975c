"""Planted bugs: each changes a piece of text of one spec, and one property has to fail."""

import re
import tempfile
from dataclasses import dataclass
from pathlib import Path

from modelcheck.checkers import tlc, tlc_config
from modelcheck.checkers.tlc import SPECS, Result
from modelcheck.runs import arguments
from modelcheck.runs.check import LONGEST
from modelcheck.runs.models import Mutant


@dataclass(frozen=True)
class Hunted:
    """A mutant, and what TLC came to."""

    mutant: Mutant
    result: Result

    @property
    def found(self) -> bool:
        """True if the property that has to notice did, and no other first."""
        return self.result.status == "violated" and self.result.violated == self.mutant.property


def hunt(mutant: Mutant, explained: bool = False) -> Hunted:
    """Check one mutant against the property that has to fail. `explained` finds out the arguments
    of the actions that lead there.

    Raises tlc.Unavailable, and ValueError where `plant` does."""
    with tempfile.TemporaryDirectory(prefix="mutant-") as scratch:
        module = plant(mutant, Path(scratch))
        result = tlc.run(module, module.with_suffix(".cfg"), short=True, timeout=LONGEST)
        if explained:
            config = module.with_suffix(".cfg").read_text()
            result = arguments.labelled(result, module, config)
    if result.violated == tlc.UNNAMED:
        result.violated = mutant.property  # the only one that was checked
    return Hunted(mutant, result)


def plant(mutant: Mutant, folder: Path) -> Path:
    """Write the changed spec into a folder, with the model, its config and all modules that it
    needs. Returns the model's module, which any TLC can check there.

    Raises ValueError where the old text is not in the spec exactly once, or where the config does
    not check the property."""
    source = (SPECS / mutant.file).read_text()
    if source.count(mutant.old) != 1:
        times = source.count(mutant.old)
        raise ValueError(f"{mutant.name}: its old text is {times} times in {mutant.file}, not once")
    try:
        config = (SPECS / f"{mutant.config}.cfg").read_text()
        text = tlc_config.only(config, mutant.property)
    except (OSError, ValueError) as error:
        raise ValueError(f"{mutant.name}: {mutant.config}.cfg: {error}") from None
    model = mutant.config.split("-")[0]  # MCSharedTree of MCSharedTree-tiny
    for name in needed(model):
        (folder / f"{name}.tla").write_text((SPECS / f"{name}.tla").read_text())
    (folder / mutant.file).write_text(source.replace(mutant.old, mutant.new))
    (folder / f"{model}.cfg").write_text(text)
    return folder / f"{model}.tla"


def needed(module: str) -> set[str]:
    """Return the module and all of specs/ that it extends or instantiates, directly or not."""
    todo, seen = [module], set[str]()
    while todo:
        name = todo.pop()
        if name in seen or not (SPECS / f"{name}.tla").exists():
            continue
        seen.add(name)
        text = (SPECS / f"{name}.tla").read_text()
        todo += re.findall(r"\bINSTANCE\s+(\w+)", text)
        for extended in re.findall(r"^EXTENDS\s+(.+)$", text, re.M):
            todo += [name.strip() for name in extended.split(",")]
    return seen
