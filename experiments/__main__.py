"""`python -m experiments`: runs the published experiments, and writes a report in which every claim
is a row.
"""

import sys
import time
from collections.abc import Callable
from pathlib import Path

import click

from experiments import report
from experiments.chapter import Chapter, Settings, Verdict
from experiments.chapters import bounds, cache, chains, native, reduction, steady

EXPERIMENTS: dict[str, Callable[[Settings], Chapter]] = {
    "A": native.run, "B": steady.run, "C": chains.run, "D": cache.run, "E": reduction.run, "F": bounds.run,
}  # fmt: skip


@click.command(
    epilog="Exit status: 1 if something is not reproduced that is counted and about this project's engines; else 0. What was not run is said."
)
@click.option(
    "--scale",
    type=click.FloatRange(min=0.05),
    default=0.5,
    show_default=True,
    help="Of disks, 64 MiB at 1, and of the number of operations.",
)
@click.option("--seed", type=int, default=1, show_default=True)
@click.option(
    "--only",
    multiple=True,
    type=click.Choice(list(EXPERIMENTS)),
    help="One experiment; may be repeated.  [default: all]",
)
@click.option(
    "--figures",
    type=click.Path(path_type=Path),
    metavar="DIR",
    help="Put the figures of docs/what-snapshots-cost.md there, too.",
)
@click.option(
    "--report",
    "folder",
    type=click.Path(path_type=Path),
    default=Path("runs/experiments"),
    show_default=True,
    metavar="DIR",
)
def main(
    scale: float, seed: int, only: tuple[str, ...], figures: Path | None, folder: Path
) -> None:
    """Run the published experiments, A to E, and what theory says, F."""
    started = time.monotonic()

    def say(what: str) -> None:
        click.echo(f"{time.monotonic() - started:5.0f} s  {what}", err=True)

    for wanted in filter(None, (folder, figures)):
        try:
            wanted.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise click.UsageError(
                f"nothing can be written to {wanted}: {error.strerror}"
            ) from None
    settings = Settings(scale, seed, say)
    chapters: list[Chapter] = []
    for letter, experiment in EXPERIMENTS.items():
        if only and letter not in only:
            continue
        began = time.monotonic()
        chapters.append(chapter := experiment(settings))
        chapter.seconds = time.monotonic() - began
        say(f"{letter} took {chapter.seconds:.0f} s")
        for claim in chapter.claims:
            if claim.verdict is Verdict.NOT_RUN:
                click.echo(f"NOT RUN  {letter}: {claim.claim}: {claim.why}", err=True)
        left = sorted(EXPERIMENTS.keys() - {chapter.letter for chapter in chapters})
        report.write(
            folder, chapters, settings, time.monotonic() - started, left
        )  # what is done is kept, if the rest is not
        if figures is not None:
            report.document(figures, chapters)
    click.echo(f"{report.summary(chapters)}; {folder / 'report.html'}, report.md")
    for chapter in chapters:
        for claim in chapter.claims:
            if claim.verdict is Verdict.DIFFERS:
                click.echo(f"not reproduced  {chapter.letter}: {claim.claim}: {claim.measured}")
    sys.exit(
        any(
            claim.must and claim.verdict is Verdict.DIFFERS
            for chapter in chapters
            for claim in chapter.claims
        )
    )


if __name__ == "__main__":
    main()
