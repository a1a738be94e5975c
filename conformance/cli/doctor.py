"""`conformance doctor`: say whether a target is usable, and what it declares."""

import click

from conformance import targets
from conformance.campaign.doctor import MEANINGS, PROFILES, examine
from conformance.cli.parameters import STATUS, target_option
from conformance.contract.printable import printable
from conformance.programs import swarm
from conformance.reports import terminal
from conformance.targets.base import Message, Unusable


@click.command()
@target_option
@click.pass_context
def doctor(context: click.Context, factory: targets.Factory) -> None:
    """Say whether a target is usable, and what it declares.

    It sends a few operations of each kind, and gives no verdict. Exit status: 0 usable,
    1 a check failed, 3 it cannot be tested."""
    out = terminal.console()

    def say(text: str) -> None:
        out.print(text, markup=False, highlight=False, soft_wrap=True)

    try:
        hello, checks = examine(factory)
    except Unusable as error:
        say(printable(f"unusable: {error.message}\n{error.output}".rstrip()))
        context.exit(STATUS["inconclusive"])
    profile = hello["crash_profile"]
    say(
        f"target        {factory.name}: {hello.get('name', '')} {hello.get('version', '')}".rstrip()
    )
    say(f"blocks        {hello['block_size']} bytes")
    say(f"crash profile {profile or 'none'}: {PROFILES[profile]}")
    say(f"in flight     {_in_flight(hello)}")
    unasked = swarm.unasked(hello)
    if hello.get("cuts") and "crash" not in unasked:
        say("power cuts    also at a device write that the kit chooses")
    if hello.get("devices", 1) > 1:
        spares, tolerates = hello.get("spares", 0), hello.get("tolerates", 0)
        reserve = f", spares included: {spares}" if spares else ""
        say(f"devices       {hello['devices']}{reserve}; {tolerates} may fail")
    for name in swarm.CAPABILITIES:
        declared = "declared" if name in hello["capabilities"] else "not declared, will be skipped"
        if name in unasked:
            declared = f"will be skipped ({unasked.pop(name)})"
        say(f"{name:13} {declared}: {MEANINGS[name]}")
    for name, why in unasked.items():
        say(printable(f"{name:13} will be skipped ({why})"))
    for knob, values in factory.knobs.items():
        say(f"option        {knob}: one of {', '.join(map(str, dict.fromkeys(values)))}")
    shown = ""
    for check in checks:
        detail = f": {check.detail}" if check.detail else ""
        say(printable(f"{'ok' if check.ok else 'WRONG':13} {check.what}{detail}"))
        if check.output and check.output != shown:  # the same panic may end each check
            shown = check.output
            say("              it printed")
            for line in shown.splitlines():
                say(f"                {printable(line, chr(9))}")
    usable = all(check.ok for check in checks)
    say("usable" if usable else "the target can be tested, and will fail")
    context.exit(STATUS["pass" if usable else "fail"])


def _in_flight(hello: Message) -> str:
    """Return how many requests are in flight, in words."""
    most = hello.get("in_flight", 1)
    if most == 1:
        return "one request at a time"
    if hello.get("protocol") != 2:
        return f'one request at a time: its answer to hello says {most}, but not "protocol": 2'
    return f"up to {most} requests; one step is a {hello.get('atomic', 'request')}"
