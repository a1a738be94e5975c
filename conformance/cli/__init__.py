"""The command `conformance`."""

from importlib import import_module

import click

COMMANDS = {
    "run": "run",
    "check": "recorded",
    "replay": "recorded",
    "shrink": "shrink",
    "doctor": "doctor",
    "overlap": "overlap",
    "targets": "targets",
    "selftest": "selftest",
}  # the module of each
INTERRUPTED = 130  # exit status after Ctrl-C


def _show_version(context: click.Context, _: click.Parameter, wanted: bool) -> None:
    if wanted and not context.resilient_parsing:
        from refmodel import __version__  # it loads the engine, which no other option needs

        click.echo(f"conformance {__version__}")
        context.exit()


version_option = click.option(
    "--version",
    is_flag=True,
    is_eager=True,
    expose_value=False,
    callback=_show_version,
    help="Show the version and exit.",
)


class Commands(click.Group):
    """A group whose commands are imported when they are asked for."""

    def list_commands(self, context: click.Context) -> list[str]:
        """Return the names of all commands."""
        return list(COMMANDS)

    def get_command(self, context: click.Context, name: str) -> click.Command | None:
        """Return the command with this name, or None."""
        if name not in COMMANDS:
            return None
        module = import_module(f"conformance.cli.{COMMANDS[name]}")
        command: click.Command = getattr(module, name)
        if not any(parameter.name == "version" for parameter in command.params):
            version_option(command)
        return command

    def invoke(self, context: click.Context) -> None:
        """Run the command. Ctrl-C ends it with one line and status 130."""
        try:
            super().invoke(context)
        except KeyboardInterrupt:
            click.echo("inconclusive: interrupted", err=True)
            context.exit(INTERRUPTED)


@click.group(
    cls=Commands, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100}
)
@version_option
def main() -> None:
    """Test a virtual disk with snapshots against the contract, specs/VirtualDisk.tla.

    \b
    Exit status: 0 pass, 1 fail, 2 wrong usage, 3 inconclusive,
    130 interrupted by Ctrl-C (inconclusive)."""
