"""A corpus of small targets that are wrong in one way each, and the expected verdict on each."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from conformance.targets import Factory

SCRIPT = Path(__file__).parent
PATIENCE = {
    "hangs": 1.5,
    "ignores-end-and-signals": 1.5,
    "hangs-in-hello": 1.5,
}  # seconds; 10 for the others

# fault -> the classes that are right, and how many operations it takes at most
DISKS = {
    "aliased-snapshots": ({"snapshot-bleed", "stale"}, 4),
    "one-snapshot-for-all": ({"snapshot-bleed", "stale"}, 5),
    "revert-aliases": ({"snapshot-bleed", "stale"}, 5),
    "partial-out-of-range-writes": ({"refused-write"}, 3),
    "accepts-out-of-range": ({"missing-refusal"}, 2),
    "wraps-the-address": ({"missing-refusal"}, 2),
    "loses-acknowledged-writes": ({"lost-acknowledgement"}, 4),
    "crash-loses-flushed-data": ({"lost-acknowledgement"}, 4),
    "crash-loses-snapshots": ({"lost-snapshot"}, 3),
    "unmap-ignored": ({"resurrected", "stale"}, 3),
    "unmap-forgotten-by-crash": ({"resurrected", "lost-acknowledgement"}, 5),
    "revert-deletes-snapshots": ({"lost-snapshot", "missing-refusal"}, 4),
    "revert-ignored": ({"stale", "resurrected", "foreign", "zeroed", "misplaced"}, 5),
    "wrong-error-code": ({"wrong-refusal"}, 1),
    "accepts-duplicate-names": ({"missing-refusal"}, 2),
    "accepts-bad-names": ({"missing-refusal"}, 1),
    "refuses-reads": ({"lost-data"}, 5),
    "does-not-open-again": ({"unopenable"}, 1),
    "create-keeps-the-old-disk": ({"foreign"}, 3),
    "swaps-neighbours": ({"misplaced", "stale", "zeroed", "lost-acknowledgement"}, 3),
    # Half of a block that is nearly all zeroes may be the block that was there before.
    "tears-blocks": ({"torn", "garbage", "stale"}, 3),
    "fua-ignored": ({"lost-acknowledgement"}, 3),
    "fua-of-the-first-block": ({"lost-acknowledgement", "not-a-prefix"}, 3),
}

# fault -> the class, and what the words must say
DIALOGUES = {
    "hangs": ("hang", "no answer to write within"),
    "ignores-end-and-signals": ("hang", "no answer to flush"),
    "prints-garbage": ("protocol", "not JSON"),
    "prints-bytes": ("protocol", "not JSON"),
    "prints-megabytes": ("protocol", "3145728 bytes"),
    "nested": ("protocol", "not JSON"),
    "dies-at-once": ("exit", "status 3"),
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
    "events-are-a-word": ("protocol", "events must be an array"),
    "floods-stderr": ("exit", "status 1"),
}

UNUSABLE = {
    "hangs-in-hello": "no answer to hello",
    "exits-in-hello": "exited with status 1",
    "bad-hello": "block_size",
    "creates-nothing": "creates no disk",
    "in-flight-is-a-word": "in_flight",
    "no-number": "not JSON",
}


def target(fault: str) -> Factory:
    """Return the target that is wrong like this; or that is honest, by its name in `honest`."""
    from conformance.targets import Factory  # not above: a target of the corpus starts without it
    from conformance.targets.process import ProcessTarget

    command = f"{sys.executable} {SCRIPT} {fault}"
    return Factory(fault, lambda options: ProcessTarget(command, PATIENCE.get(fault, 10.0)))
