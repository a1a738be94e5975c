"""`modelcheck apalache`: types, and inductive invariants."""

import hashlib
import json
import re
import sys
from pathlib import Path

import click

from modelcheck.checkers import apalache as symbolic
from modelcheck.checkers import tlc
from modelcheck.checkers.apalache import Outcome
from modelcheck.commands.names import named
from modelcheck.commands.output import console, done, jobs_option, table
from modelcheck.mutation import planted
from modelcheck.runs import models
from modelcheck.runs.models import Run

HOW = (
    "--no-deadlock",
    "--discard-disabled",
    "--tuning-options",
    "--smt-encoding",
)  # they affect Apalache's method, not what it checks
STRING_OR_COMMENT = re.compile(r'"[^"\n]*"|\\\*[^\n]*|\(\*.*?\*\)', re.DOTALL)


@click.command()
@click.argument("names", nargs=-1)
@jobs_option
def apalache(names: tuple[str, ...], jobs: int) -> None:
    """Check the inductive invariants with Apalache.

    NAMES are prefixes of names of runs. Without them all are checked.

    The environment variable APALACHE_MC names Apalache; else it is apalache-mc on the PATH. If a
    check could not run, the command names it and ends with status 3.

    Checks that hold are kept in build/apalache.jsonl, so an interrupted run continues. A check is
    repeated only if it, a module that it reads (comments aside) or Apalache has changed."""
    chosen = named(models.runs(tool="apalache"), names, "run of Apalache", "specs/models.toml")
    try:
        symbolic.command()
    except tlc.Unavailable:
        for run in chosen:
            click.echo(f"NOT RUN  {run.name}: {run.purpose}", err=True)
        raise
    steps = [(run, number) for run in chosen for number in range(len(run.steps))]
    outcomes = done(_checked, steps, jobs, lambda step: _name(*step))
    rows = table("run", "check", "result", "seconds", "for")
    wrong: list[str] = []
    for run, number in steps:
        step, outcome = run.steps[number], outcomes[_name(run, number)]
        good = outcome.status == "ok"
        if not good:
            wrong.append(f"{run.name}: {' '.join(step)}: {outcome.status}: {outcome.message}")
        words = " ".join(word.removeprefix("--") for word in step if not word.startswith(HOW))
        rows.add_row(
            run.name,
            words,
            "holds" if good else f"[red]{outcome.status}[/]",
            f"{outcome.seconds:.0f}",
            run.purpose if number == 0 else "",
        )
    console.print(rows)
    for line in wrong:
        click.echo(line, err=True)
    sys.exit(1 if wrong else 0)


def _checked(step: tuple[Run, int]) -> Outcome:
    """Return the outcome of a check: the one that is kept, or that of Apalache."""
    kept, key = symbolic.kept(), _key(*step)
    lines = kept.read_text().splitlines() if kept.exists() else []
    for line in map(json.loads, lines):
        if line["key"] == key:
            return Outcome("ok", "", line["seconds"])
    outcome = symbolic.check(*step)
    if outcome.status == "ok":
        with kept.open("a") as out:
            line = {"key": key, "check": _name(*step), "seconds": outcome.seconds}
            out.write(json.dumps(line) + "\n")
    return outcome


def _key(run: Run, number: int) -> str:
    """Return a digest of a check, the modules that it reads, and the program."""
    modules = sorted(planted.needed(run.module))
    texts = [without_prose((tlc.SPECS / f"{module}.tla").read_text()) for module in modules]
    program = Path(symbolic.command())
    parts = [*run.steps[number], *texts, str(program), str(program.stat().st_mtime)]
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()


def without_prose(module: str) -> str:
    """Return the text of a module without its comments, but for those that give types."""

    def kept(found: re.Match[str]) -> str:
        return found[0] if found[0].startswith('"') or "@type" in found[0] else ""

    lines = STRING_OR_COMMENT.sub(kept, module).splitlines()
    return "\n".join(line.rstrip() for line in lines if line.strip())


def _name(run: Run, number: int) -> str:
    return f"{run.name}, check {number + 1}"
