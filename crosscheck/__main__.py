"""Checks of the specs against recorded traces: `python -m crosscheck`."""

from modelcheck.commands.group import Commands

NAMES = (
    "engine-mutation",
    "judge-speed",
    "kit-speed",
    "model-tests",
    "overlap-speed",
    "trace-speed",
)

main = Commands(
    "crosscheck.commands",
    NAMES,
    help="""Compare the specs with the conformance kit and the engines.

    Exit status: 0 all as listed; 1 something differs; 2 wrong usage; 3 it could not run.
    """,
)

if __name__ == "__main__":
    main(prog_name="python -m crosscheck")
