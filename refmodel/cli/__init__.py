"""The command line of the engine. Commands of a kind are in a module, what they share is in `commands`; `--help` lists
them in the order of this import."""

# isort: off
from refmodel.cli import operations, inspection, devices, upkeep, bench, serving  # noqa: F401
from refmodel.cli.commands import explained, main

__all__ = ["explained", "main"]
