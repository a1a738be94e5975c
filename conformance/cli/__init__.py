"""The command `conformance`."""

from importlib import import_module

import click

COMMANDS = {
    "run": "run",
    "check": "recorded",
    "replay": "recorded",
    "doctor": "doctor",
    "overlap": "overlap",
    "targets": "targets",
    "selftest": "selftest",
}  # the module of each


class Commands(click.Group):
    """A command is imported when it is asked for."""

    def list_commands(self, context: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, context: click.Context, name: str) -> click.Command | None:
        return (
            getattr(import_module(f"conformance.cli.{COMMANDS[name]}"), name)
            if name in COMMANDS
            else None
        )


@click.group(
    cls=Commands, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100}
)
def main() -> None:
    """Is it a virtual disk with snapshots? Test an implementation against the contract, specs/VirtualDisk.tla.

    Exit status: 0 pass, 1 fail, 3 inconclusive, 2 wrong usage."""
