"""The commands of `python -m crosscheck`: a mistake of the user ends in one line."""

import pytest
from click.testing import CliRunner

from crosscheck.__main__ import main

DRIVERS = ("engine-mutation", "kit-speed", "model-tests", "overlap-speed", "trace-speed")


@pytest.mark.parametrize("command", DRIVERS)
def test_a_target_that_does_not_exist_is_wrong_usage(command: str) -> None:
    done = CliRunner().invoke(main, [command, "--target", "nosuch"])
    assert done.exit_code == 2
    assert "there is no target 'nosuch'" in done.stderr.splitlines()[-1]


def test_a_target_that_cannot_be_started_is_said() -> None:
    done = CliRunner().invoke(main, ["overlap-speed", "--target", "exec:no-such-command"])
    assert done.exit_code == 3
    words = "cannot start 'no-such-command': No such file or directory"
    assert done.stderr == f"crosscheck: {words}\n"


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("engine-mutation --json /nosuch/x", "'--json': /nosuch/x cannot be written"),
        ("judge-speed --in-flight 65", "'--in-flight': 65 is not in the range 1<=x<=64"),
        ("kit-speed --before nosuchrev", "crosscheck kit-speed: there is no revision nosuchrev"),
    ],
)
def test_what_a_measurement_cannot_use_is_wrong_usage(words: str, said: str) -> None:
    done = CliRunner().invoke(main, words.split(), prog_name="crosscheck")
    assert done.exit_code == 2
    assert said in done.stderr and done.stderr.count("\n") == 1


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--count", "0"], "0 is not in the range x>=1"),
        (["--only", "nosuch"], "there is nothing to change in a module whose name contains"),
    ],
)
def test_a_survey_of_no_mutants_is_wrong_usage(options: list[str], said: str) -> None:
    done = CliRunner().invoke(main, ["engine-mutation", *options])
    assert done.exit_code == 2
    assert said in done.stderr.splitlines()[-1]
