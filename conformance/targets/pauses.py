"""Pauses between the calls of requests, for targets that take steps in their own time.

Without them, what may be in flight together is called as fast as the kit can. A quick target
answers each request before the next one comes. So some requests are held back, and sent together
with the next ones, in one write to the pipe. A request that is called behind
the answer of another one, while a third is still in flight, shows more: a slow snapshot, say, that
holds the later of two writes and lacks the earlier one. The pause is part of the program, as the
number `schedule`, so that a program that is sent again pauses in the same places.
"""

from conformance.targets.base import Message

PAUSE = 0.02  # seconds at most
DIGIT = 8
HELD = 1  # values of the last octal digit up to this one hold the request back
NONE = 4  # and those up to this one ask for no pause


def awaited(message: Message) -> int:
    """Return how many answers are awaited after the call of this request, if that many are due."""
    last: int = message.get("schedule", 0) % DIGIT
    return max(0, last - NONE)


def held(message: Message) -> bool:
    """Return whether the request is sent together with the next one, if that may be in flight."""
    return "schedule" in message and message["schedule"] % DIGIT <= HELD
