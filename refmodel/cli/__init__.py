"""The command line of the engine.

Each module has commands of one kind. refmodel.cli.commands has what they share.
"""

# `--help` lists the commands in the order of this import.
# isort: off
from refmodel.cli import operations, inspection, devices, upkeep, bench, serving  # noqa: F401
from refmodel.cli.commands import main

__all__ = ["main"]
