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
from refmodel import __version__
from refmodel.core.finite_range import FiniteRange

EXPERIMENTS: dict[str, Callable[[Settings], Chapter]] = {
    "A": native.run,
    "B": steady.run,
    "C": chains.run,
    "D": cache.run,
    "E": reduction.run,
    "F": bounds.run,
}


@click.command(
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog="Exit status: 1 if a claim about this project's engines that is counted, not timed, "
    "was not reproduced; else 0. Claims that were not run are listed.",
)
@click.option(
    "--scale",
    type=FiniteRange(min=0.05),
    default=0.5,
    show_default=True,
    help="Multiplies the size of the disks (64 MiB at 1) and the number of operations.",
)
@click.option("--seed", type=int, default=1, show_default=True, help="Seed of the operations.")
@click.option(
    "--only",
    multiple=True,
    type=click.Choice(list(EXPERIMENTS)),
    help="Run this experiment; may be repeated.  [default: all]",
)
@click.option(
    "--figures",
    type=click.Path(path_type=Path),
    metavar="DIR",
    help="Write the figures of docs/what-snapshots-cost.md to DIR, too.",
)
@click.option(
    "--report",
    "folder",
    type=click.Path(path_type=Path),
    default=Path("runs/experiments"),
    show_default=True,
    metavar="DIR",
    help="Folder of the report.",
)
@click.version_option(__version__, prog_name="experiments")
def main(
    scale: float, seed: int, only: tuple[str, ...], figures: Path | None, folder: Path
) -> None:
    """Run the published experiments (A to E) and compare snapshots with theory (F).

    It prints what is being run on stderr, and writes a report in which every claim is a row.
    """
    started = time.monotonic()

    def say(what: str) -> None:
        click.echo(f"{time.monotonic() - started:5.0f} s  {what}", err=True)

    for wanted in filter(None, (folder, figures)):
        try:
            wanted.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise click.UsageError(
                f"the folder {wanted} cannot be written to: {error.strerror}"
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
        )  # so that an interruption loses no result
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
