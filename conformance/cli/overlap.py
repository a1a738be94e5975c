"""`conformance overlap`: requests in flight together, on a device over NBD."""

import click

from conformance.campaign.overlap import BLOCKS, SECTOR, Wrong, drive
from conformance.cli.parameters import STATUS
from conformance.judging.linearizable import judge
from conformance.media import nbd

PATIENCE = 20.0  # seconds for an answer


@click.command()
@click.argument("uri", metavar="NBD_URI")
@click.option(
    "--threads",
    type=click.IntRange(2, 64),
    default=4,
    show_default=True,
    help="Number of connections, each with a thread of its own.",
)
@click.option(
    "--requests",
    type=click.IntRange(1, 100_000),
    default=500,
    show_default=True,
    help="Number of requests per connection.",
)
@click.option(
    "--seed",
    type=click.IntRange(0, 2**40),
    default=1,
    show_default=True,
    help="Seed of the requests. It does not determine how they interleave.",
)
@click.pass_context
def overlap(context: click.Context, uri: str, threads: int, requests: int, seed: int) -> None:
    """Judge overlapping requests to an NBD device.

    The first 5 blocks of 512 bytes are overwritten. They have to be zero-filled: otherwise nothing
    is written, and the result is inconclusive.

    It passes if there is an order of the requests in which every answer is right.

    Exit status: 0 pass, 1 fail, 3 inconclusive."""
    try:
        if _in_use(uri):
            click.echo("inconclusive: the device is not zero-filled: nothing is written", err=True)
            context.exit(STATUS["inconclusive"])
        history = drive(lambda: nbd.NbdDevice(uri, PATIENCE), threads, requests, seed)
        opinion = judge(history)
    except Wrong as wrong:
        click.echo(f"fail: {wrong}")
        context.exit(STATUS["fail"])
    except (nbd.NbdError, nbd.Unavailable, TimeoutError) as error:
        click.echo(f"inconclusive: {error}", err=True)
        context.exit(STATUS["inconclusive"])
    where = "" if opinion.lba is None else f": block {opinion.lba}"
    click.echo(
        f"{opinion.verdict}{where}; {threads} connections, {len(history)} calls to single blocks, "
        f"seed {seed}"
    )
    for call in opinion.stuck:
        click.echo(
            f"  none of these can come next: {call.op} tag {call.tag}, from {call.invoked} to "
            f"{call.returned} ns"
        )
    context.exit(STATUS[opinion.verdict])


def _in_use(uri: str) -> bool:
    """Return whether a block that the requests would overwrite is not zero-filled."""
    device = nbd.NbdDevice(uri, PATIENCE)
    try:
        return any(device.read(0, BLOCKS * SECTOR))
    finally:
        device.close()
