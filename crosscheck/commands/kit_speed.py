"""`kit-speed`: the cost of an operation, compared with an earlier revision."""

import sys

import click

from crosscheck import kit_speed as speed
from crosscheck.commands.parameters import target_option

BEFORE = "5e23143"  # the revision before programs were led by what was seldom asked


@click.command("kit-speed")
@click.option(
    "--before", default=BEFORE, show_default=True, help="Earlier revision to compare with."
)
@target_option("refmodel:log-structured", "The target.")
@click.option(
    "--traces", type=click.IntRange(1), default=200, show_default=True, help="Number of traces."
)
@click.option(
    "--ops", type=click.IntRange(1), default=30, show_default=True, help="Operations per trace."
)
@click.option(
    "--rounds", type=click.IntRange(1), default=5, show_default=True, help="Number of rounds."
)
def kit_speed(before: str, target: str, traces: int, ops: int, rounds: int) -> None:
    """Compare the kit's speed with that of an earlier revision.

    Both run the same programs, in turns, and the model judges them.

    It prints CPU microseconds per operation, the least of all rounds, and the speed now
    divided by the speed before. Exit status: 1 if the kit without the engine became slower.
    """
    try:
        first, now = speed.compared(before, target, traces, ops, rounds)
    except speed.NoRevision as error:
        raise click.UsageError(str(error)) from None
    click.echo(
        f"{first.operations:,} operations of {target}, {first.crashes:,} of them crashes\n"
        f"us per operation   {before:>9}       now     ratio"
    )
    for name, old, new in (
        ("generate", first.generator, now.generator),
        ("drive and judge", first.kit, now.kit),
        ("kit", first.alone, now.alone),
        ("engine", first.target, now.target),
        ("kit and engine", first.together, now.together),
    ):
        click.echo(f"{name:16}{old:12.1f}{new:10.1f}{old / new:10.2f}")
    click.echo(f"{'operations/CPU s':16}{first.rate:12,.0f}{now.rate:10,.0f}")
    sys.exit(now.alone > first.alone)
