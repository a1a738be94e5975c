"""The command line of the engine.

Each module has commands of one kind. refmodel.cli.commands has what they share.
"""

import sys

try:
    # `--help` lists the commands in the order of this import.
    # isort: off
    from refmodel.cli import operations, inspection, devices, upkeep, bench, serving  # noqa: F401
    from refmodel.cli.commands import main
except KeyboardInterrupt:  # the imports take most of a second
    sys.stderr.write("refmodel: interrupted\n")
    sys.exit(130)

__all__ = ["main"]
