"""The `schedule` of requests that overlap: how the target's steps go until the next call
(docs/traces.md), and whether a process gets the request together with the next one.
"""

import random

CHOICES = 20  # digits of a schedule
JUST_GONE = 7  # a digit: the process that took the last step goes on
GOES_ON = (0, 0.5, 0.9, 1)  # of the steps: they are of the process that took the last one
# Last octal digits: a process gets the request together with the next one, or an answer is waited
# for before that.
WITH_THE_NEXT, FIRST_ANSWER = 0, 5
AT_ONCE = (0, 0, 0.5, 0.95)  # of the requests: such a target gets them together with the next one


class Schedules:
    """The schedules of one program.

    Where nearly all steps are of the process that took the last one, it goes on until it waits, and
    others are left behind. Where nearly all requests come together with the next ones, a target has
    many to do at once, however quick it is."""

    def __init__(self, choose: random.Random) -> None:
        self._choose = choose
        self._goes_on = choose.choice(GOES_ON)
        self._at_once = choose.choice(AT_ONCE)

    def left_behind(self) -> int:
        """Return the schedule of a request that stays behind after a few steps."""
        return _number([1 + self._choose.randrange(3), *[JUST_GONE] * CHOICES])

    @staticmethod
    def passing() -> int:
        """Return the schedule of a request that passes what was left behind."""
        return _number([JUST_GONE] * (1 + CHOICES))

    def next(self) -> int:
        """Return a schedule, a number of octal digits."""
        choose = self._choose
        digits = [
            JUST_GONE if choose.random() < self._goes_on else choose.randrange(8)
            for _ in range(CHOICES)
        ]
        at_once = choose.random() < self._at_once
        first = WITH_THE_NEXT if at_once else choose.randrange(8)
        return _number([first, *digits])


def _number(digits: list[int]) -> int:
    """Return the number with these octal digits, the last one first."""
    return sum(digit << 3 * place for place, digit in enumerate(digits))
