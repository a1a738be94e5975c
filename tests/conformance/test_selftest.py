"""The self-test itself: it finds what is planted, says so, and notices when something is not as it should be."""

from click.testing import CliRunner

from conformance import selftest


def test_finds_what_is_planted_and_nothing_else():
    done = CliRunner().invoke(selftest.command, ["(none)", "overwrite-drops-shared", "late-discard", "--traces", "60"])
    assert done.exit_code == 0 and "2 of 2 planted bugs found" in done.output


def test_a_bug_that_is_not_found_fails():
    done = CliRunner().invoke(selftest.command, ["siblings-not-asked", "--traces", "2"])
    assert done.exit_code == 1 and "0 of 1 planted bugs found; not as it should be: siblings-not-asked" in done.output.replace("\n", " ")


def test_a_bug_in_an_honest_engine_would_fail(monkeypatch):
    monkeypatch.setattr(selftest.targets, "resolve", lambda name: resolve("refmodel:plant=late-discard"))
    done = CliRunner().invoke(selftest.command, ["(none)", "--traces", "40"])
    assert done.exit_code == 1 and "not as it should be: (none)" in done.output.replace("\n", " ")


resolve = selftest.targets.resolve
