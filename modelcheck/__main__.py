"""Run the checkers of the specs: `python -m modelcheck`."""

import signal

import click

from modelcheck.commands.group import Commands

NAMES = ("specs", "mutants", "apalache", "explain", "distributed", "mutation")

main = click.version_option(
    package_name="logdisk", prog_name="modelcheck", message="%(prog)s %(version)s"
)(
    Commands(
        "modelcheck.commands",
        NAMES,
        help="""Run TLC over the specs, and compare what comes out with specs/models.toml.

    Exit status: 0 all as listed; 1 something differs; 2 wrong usage; 3 it could not run.
    """,
    )
)

if __name__ == "__main__":
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # like Ctrl-C: ends the checkers
    main(prog_name="python -m modelcheck")
