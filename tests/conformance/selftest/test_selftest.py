"""The self-test itself: it finds what is planted, says so, and notices when something is not as it
should be.
"""

import json
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from conformance import targets
from conformance.cli import selftest as command
from conformance.selftest import corpus, hunts
from conformance.selftest.hunts import CHECKS, HONEST, NOT_RUN, Hunt


def call(*words: object) -> tuple[int, str]:
    done = CliRunner().invoke(command.selftest, [str(word) for word in words])
    return done.exit_code, " ".join(done.output.split())


def test_finds_what_is_planted_and_nothing_else(tmp_path: Path) -> None:
    status, said = call(
        HONEST,
        "overwrite-drops-shared",
        "forgotten-page-is-free",
        "--traces",
        40,
        "--json",
        tmp_path / "found.json",
    )
    assert status == 0 and "2 of 2 planted bugs found" in said and "not run: crashes" in said, said
    honest, *planted = json.loads((tmp_path / "found.json").read_text())
    assert honest["class"] is None and honest["good"] and honest["checks"]["scrub"] == "no"
    assert all(bug["shrunk"] <= 10 and set(bug["checks"]) == set(CHECKS) for bug in planted)


def test_an_interrupt_ends_it_with_its_processes() -> None:
    command = [sys.executable, "-m", "conformance", "selftest", "write-hole", HONEST]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as running:
        assert running.stdout is not None and running.stdout.readline(), "a bug is found"
        running.send_signal(signal.SIGINT)
        _, said = running.communicate(timeout=60)  # until no process has the pipe any more
    assert running.returncode == 130 and b"Traceback" not in said


def test_goes_on_where_it_was(tmp_path: Path) -> None:
    kept = tmp_path / "kept.jsonl"
    words = (HONEST, "overwrite-drops-shared", "--traces", 4, "--jobs", 1, "--resume", kept)
    status, said = call(*words)
    assert status == 0 and "1 of 2 (none): nothing, model no, scrub no, " in said, said
    line = re.search(r"2 of 2 overwrite-drops-shared: (\S+), model (\d+) ops, shrunk to ", said)
    assert line, said
    header, honest, planted = kept.read_text().splitlines()
    kept.write_text(
        "\n".join([header, planted, honest[:99]])
    )  # as if it had been killed while it wrote
    again, said_again = call(*words)
    assert again == 0 and "2 of 2 (none)" in said_again and "1 of 2" not in said_again
    kind, operations = line.groups()
    assert f"{kind} {operations} ops not run not run" in said_again
    assert len(kept.read_text().splitlines()) == 3
    kept.write_text("\n".join([header, planted.replace('"events"', '"event"'), ""]))
    for damage, complaint in (
        (kept.read_text(), ":2: nothing that was done"),
        (header.replace("30", "31"), "another campaign"),
    ):
        kept.write_text(damage)
        status, said = call(*words)
        assert status == 2 and complaint in said and "Traceback" not in said


def test_a_bug_that_is_not_found_fails() -> None:
    status, said = call("replayed-not-in-increment", "--traces", 1)
    assert (
        status == 1
        and "0 of 1 planted bugs found; not as it should be: replayed-not-in-increment" in said
    )


def test_a_bug_in_an_honest_engine_would_fail(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(targets, "resolve", lambda name: resolve("refmodel:plant=late-discard"))
    assert not hunts.hunt(HONEST, ("model",), traces=40, ops=30, seed=1).as_it_should_be


def test_a_leak_is_found_by_scrub() -> None:
    found = hunts.hunt("shared-flag-stale", ("scrub",), traces=40, ops=30, seed=1)
    assert "scrub" in found.found and found.as_it_should_be


def test_crash_states_find_what_they_can() -> None:
    found = Hunt("torn-record-accepted", dict.fromkeys(CHECKS, NOT_RUN))
    found.cells["crashes"] = hunts.by_crash_states(resolve("refmodel:plant=torn-record-accepted"))
    assert found.found == ["crashes"]


def test_the_limits_are_kept() -> None:
    good, slow = (
        Hunt("late-discard", {check: NOT_RUN for check in CHECKS} | {"model": "9 ops"}),
        None,
    )
    slow = Hunt("late-discard", dict(good.cells), seconds=100.0)
    failure = hunts.hunt("snapshot-of-earlier-map", ("model",), traces=40, ops=30, seed=1).failure
    good.failure = slow.failure = failure
    assert all(so for _, so in command._verdicts([good, good], []))
    assert [so for _, so in command._verdicts([slow, slow], [])].count(False) == 2


def test_small_targets() -> None:
    found = hunts.faulty("unmap-ignored", traces=30, ops=30, seed=1)
    assert found.as_it_should_be and found.failure is not None
    assert found.failure.verdict.kind in ("resurrected", "stale")
    found.expected = frozenset(["torn"])
    assert not found.as_it_should_be
    assert len(corpus.DISKS) + len(corpus.DIALOGUES) >= 40


def test_honest_targets_of_all_profiles(monkeypatch: pytest.MonkeyPatch) -> None:
    status, said = call("--honest", 300)
    assert (
        status == 0
        and said.count("pass") == 3
        and all(f"{profile}:" in said for profile in ("ack", "prefix", "block"))
    )
    monkeypatch.setattr(corpus, "target", lambda name: corpus_target("crash-loses-snapshots"))
    status, said = call("--honest", 300)
    assert status == 1 and "lost-snapshot, after " in said and "expected" in said


resolve, corpus_target = targets.resolve, corpus.target
