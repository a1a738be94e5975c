"""Pauses between the calls of requests, for targets that take steps in their own time.

Without them, all that may be in flight together is called at once. A request that is called behind
the answer of another one, while a third is still in flight, shows more: a slow snapshot, say, that
holds the later of two writes and lacks the earlier one. The pause is part of the program, as the
number `schedule`, so that a program that is sent again pauses in the same places.
"""

from conformance.targets.base import Message

PAUSE = 0.02  # seconds at most
DIGIT = 8
NONE = 4  # of the values of the last octal digit, those up to this one ask for no pause


def awaited(message: Message) -> int:
    """Return how many answers are awaited behind the call of this request, if so many are due."""
    last: int = message.get("schedule", 0) % DIGIT
    return max(0, last - NONE)
