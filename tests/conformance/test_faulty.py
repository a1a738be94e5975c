"""Targets that are wrong in the usual ways get the right verdict: soon, short, and never a traceback."""

import sys
import time
from pathlib import Path

import pytest

from conformance.oracles import named
from conformance.runner import campaign
from conformance.targets import Factory
from conformance.targets.process import ProcessTarget

SCRIPT = Path(__file__).with_name("faulty.py")
PATIENCE = {"hangs": 1.0, "ignores-end-and-signals": 1.0, "hangs-in-hello": 1.0}  # seconds; 10 for the others

# fault -> the classes that are right, and how many operations it takes at most
DISKS = {
    "aliased-snapshots": ({"snapshot-bleed", "stale"}, 4),
    "one-snapshot-for-all": ({"snapshot-bleed"}, 5),
    "revert-aliases": ({"snapshot-bleed", "stale"}, 5),
    "partial-out-of-range-writes": ({"refused-write"}, 3),
    "accepts-out-of-range": ({"missing-refusal"}, 2),
    "wraps-the-address": ({"missing-refusal"}, 2),
    "loses-acknowledged-writes": ({"lost-acknowledgement"}, 4),
    "crash-loses-flushed-data": ({"lost-acknowledgement"}, 4),
    "crash-loses-snapshots": ({"lost-snapshot"}, 3),
    "unmap-ignored": ({"resurrected"}, 3),
    "unmap-forgotten-by-crash": ({"resurrected", "lost-acknowledgement"}, 5),
    "revert-deletes-snapshots": ({"lost-snapshot", "missing-refusal"}, 4),
    "revert-ignored": ({"stale", "resurrected", "foreign", "zeroed", "misplaced"}, 5),
    "wrong-error-code": ({"wrong-refusal"}, 1),
    "accepts-duplicate-names": ({"missing-refusal"}, 2),
    "accepts-bad-names": ({"missing-refusal"}, 1),
    "refuses-reads": ({"wrong-refusal"}, 5),
    "does-not-open-again": ({"unopenable"}, 1),
    "create-keeps-the-old-disk": ({"foreign"}, 2),
    "swaps-neighbours": ({"misplaced", "stale", "zeroed", "lost-acknowledgement"}, 3),
    "tears-blocks": ({"torn", "garbage"}, 3),
}

# fault -> the class, and what the words must say
DIALOGUES = {
    "hangs": ("hang", "no answer to write within"),
    "ignores-end-and-signals": ("hang", "no answer to flush"),
    "prints-garbage": ("protocol", "not JSON"),
    "prints-bytes": ("protocol", "not JSON"),
    "prints-megabytes": ("protocol", "3145728 bytes"),
    "nested": ("protocol", "not JSON"),
    "exits": ("exit", "status 7"),
    "raises": ("exit", "status 1"),
    "closes-the-pipe": ("exit", "closed its stdout"),
    "answers-twice": ("protocol", ""),
    "chats-on-stdout": ("protocol", "DEBUG: writing"),
    "wrong-length": ("protocol", "bytes for"),
    "not-base64": ("protocol", "base64"),
    "no-data": ("protocol", "no data"),
    "not-an-object": ("protocol", "not a JSON object"),
    "null": ("protocol", "not a JSON object"),
    "ok-is-a-word": ("protocol", "ok"),
    "invents-an-error": ("protocol", "error"),
    "floods-stderr": ("exit", "status 1"),
}

UNUSABLE = {
    "hangs-in-hello": "no answer to hello",
    "exits-in-hello": "exited with status 1",
    "bad-hello": "block_size",
    "creates-nothing": "creates no disk",
}


def outcome_of(fault, count=60):
    command = f"{sys.executable} {SCRIPT} {fault}"
    factory = Factory(fault, lambda options: ProcessTarget(command, PATIENCE.get(fault, 10.0)))
    started = time.monotonic()
    result = campaign(factory, count=count, ops=30, seed=5, oracles={"model": named("model")})
    return result, time.monotonic() - started


def test_the_honest_disk_passes():
    result, _ = outcome_of("none", count=15)
    assert result.verdict == "pass" and result.operations > 400


@pytest.mark.parametrize("fault", DISKS)
def test_wrong_disk(fault):
    result, _ = outcome_of(fault)
    kinds, most = DISKS[fault]
    assert result.verdict == "fail"
    first = result.failures[0]
    assert first.verdict.kind in kinds, first.verdict
    shortest = min(failure.trace.operations for failure in result.failures)
    assert shortest <= most, [f.verdict.words(f.trace) for f in result.failures]
    assert first.verdict.expected and first.verdict.actual and first.verdict.clause


@pytest.mark.parametrize("fault", DIALOGUES)
def test_wrong_dialogue(fault):
    result, seconds = outcome_of(fault)
    kind, words = DIALOGUES[fault]
    assert result.verdict == "fail"
    verdict = result.failures[0].verdict
    assert verdict.kind == kind and words in verdict.actual, verdict
    assert "Traceback" not in verdict.actual
    assert seconds < 30


def test_a_line_without_end(monkeypatch):
    monkeypatch.setattr("conformance.targets.process.LONGEST_ANSWER", 4 << 20)
    result, _ = outcome_of("never-ends-the-line")
    assert result.failures[0].verdict.kind == "protocol"
    assert "longer than 4 MiB" in result.failures[0].verdict.actual


def test_last_words_are_kept():
    result, _ = outcome_of("exits")
    assert "disk on fire" in result.failures[0].verdict.reason
    result, _ = outcome_of("floods-stderr")
    assert "noise" in result.failures[0].verdict.reason
    assert len(result.failures[0].verdict.reason) <= 8192


@pytest.mark.parametrize("fault", UNUSABLE)
def test_unusable(fault):
    result, _ = outcome_of(fault)
    assert result.verdict == "inconclusive" and UNUSABLE[fault] in result.reason, result.reason
