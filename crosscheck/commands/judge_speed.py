"""`judge-speed`: the time that the model takes to judge long histories of overlapping requests."""

import sys

import click

from crosscheck import judge_speed as speed


@click.command("judge-speed")
@click.option(
    "--histories",
    type=click.IntRange(1),
    default=40,
    show_default=True,
    help="Number of histories.",
)
@click.option(
    "--ops", type=click.IntRange(1), default=1000, show_default=True, help="Operations per history."
)
@click.option(
    "--in-flight",
    type=click.IntRange(1, 64),
    default=8,
    show_default=True,
    help="Requests in flight.",
)
@click.option(
    "--seed", type=click.IntRange(0), default=0, show_default=True, help="Seed of the histories."
)
def judge_speed(histories: int, ops: int, in_flight: int, seed: int) -> None:
    """Measure how long the model takes to judge histories.

    They are histories of a correct disk, of each crash profile, with power cuts.

    Times are CPU seconds per history. Exit status: 1 if a history was rejected.
    """
    click.echo("profile   one step    ops each     p50     p95   worst   undecided")
    rejected = 0
    for one in speed.measure(histories, ops, in_flight, seed):
        click.echo(
            f"{one.profile:10}{one.atomic:8}{one.operations / histories:12.0f}"
            f"{one.at(0.5):8.2f}{one.at(0.95):8.2f}{one.seconds[-1]:8.2f}"
            f"{one.undecided:7} of {histories}"
            + (f"   {one.rejected} rejected" * bool(one.rejected))
        )
        rejected += one.rejected
    sys.exit(1 if rejected else 0)
