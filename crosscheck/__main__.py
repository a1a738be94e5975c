"""Checks of the specs against recorded traces: `python -m crosscheck`."""

from conformance.targets.base import Unusable
from crosscheck.kit_speed import NotMeasured
from modelcheck.commands.group import EXIT_STATUS, Commands

NAMES = (
    "engine-mutation",
    "judge-speed",
    "kit-speed",
    "model-tests",
    "overlap-speed",
    "trace-speed",
)


class _Comparisons(Commands):
    """The commands of crosscheck."""

    failures = (*Commands.failures, Unusable, NotMeasured)


main = _Comparisons(
    "crosscheck",
    NAMES,
    help=f"""Compare the specs with the conformance kit and the engines.

    {EXIT_STATUS}
    """,
)

if __name__ == "__main__":
    main(prog_name="python -m crosscheck")
