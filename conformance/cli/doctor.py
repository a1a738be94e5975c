"""`conformance doctor`: say whether a target is usable, and what it declares."""

import click

from conformance import targets
from conformance.campaign.doctor import MEANINGS, PROFILES, examine
from conformance.cli.parameters import STATUS, target_option
from conformance.contract.printable import printable
from conformance.programs import swarm
from conformance.targets.base import Message, Unusable


@click.command()
@target_option
@click.pass_context
def doctor(context: click.Context, factory: targets.Factory) -> None:
    """Say whether a target is usable, and what it declares.

    It sends a few operations of each kind, and gives no verdict. Exit status: 0 usable,
    1 a check failed, 3 it cannot be tested."""
    try:
        hello, checks = examine(factory)
    except Unusable as error:
        click.echo(f"unusable: {error.message}\n{error.output}".rstrip())
        context.exit(STATUS["inconclusive"])
    profile = hello["crash_profile"]
    click.echo(
        f"target        {factory.name}: {hello.get('name', '')} {hello.get('version', '')}".rstrip()
    )
    click.echo(f"blocks        {hello['block_size']} bytes")
    click.echo(f"crash profile {profile or 'none'}: {PROFILES[profile]}")
    click.echo(f"in flight     {_in_flight(hello)}")
    unasked = swarm.unasked(hello)
    if hello.get("cuts") and "crash" not in unasked:
        click.echo("power cuts    also at a device write that the kit chooses")
    if hello.get("devices", 1) > 1:
        spares, tolerates = hello.get("spares", 0), hello.get("tolerates", 0)
        reserve = f", spares included: {spares}" if spares else ""
        click.echo(f"devices       {hello['devices']}{reserve}; {tolerates} may fail")
    for name in swarm.CAPABILITIES:
        declared = "declared" if name in hello["capabilities"] else "not declared, will be skipped"
        if name in unasked:
            declared = f"will be skipped ({unasked.pop(name)})"
        click.echo(f"{name:13} {declared}: {MEANINGS[name]}")
    for name, why in unasked.items():
        click.echo(printable(f"{name:13} will be skipped ({why})"))
    for knob, values in factory.knobs.items():
        click.echo(f"option        {knob}: one of {', '.join(map(str, dict.fromkeys(values)))}")
    shown = ""
    for check in checks:
        detail = f": {check.detail}" if check.detail else ""
        click.echo(printable(f"{'ok' if check.ok else 'WRONG':13} {check.what}{detail}"))
        if check.output and check.output != shown:  # the same panic may end each check
            shown = check.output
            click.echo("              it printed")
            for line in shown.splitlines():
                click.echo(f"                {printable(line, chr(9))}")
    usable = all(check.ok for check in checks)
    click.echo("usable" if usable else "the target can be tested, and will fail")
    context.exit(STATUS["pass" if usable else "fail"])


def _in_flight(hello: Message) -> str:
    """Return how many requests are in flight, in words."""
    most = hello.get("in_flight", 1)
    if most == 1:
        return "one request at a time"
    if hello.get("protocol") != 2:
        return f'one request at a time: its answer to hello says {most}, but not "protocol": 2'
    return f"up to {most} requests; one step is a {hello.get('atomic', 'request')}"
