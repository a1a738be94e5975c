"""What is in flight while the search walks along a trace, and which step has to wait for which."""

from collections.abc import Iterable, Sequence

from conformance.contract.trace import Event
from conformance.judging.orders.lookahead import Lookahead
from conformance.judging.orders.steps import Rules, Step, live


class Flight:
    """The steps of the requests that were called and are not answered with certainty."""

    def __init__(self, rules: Rules, known: Lookahead) -> None:
        self.rules, self.known = rules, known
        self.open: dict[int, Step] = {}  # by number
        self.of: dict[int, list[Step]] = {}  # index of a request -> its steps, open or not
        self._steps = 0

    def call(self, index: int, parts: Iterable[tuple[Event, Sequence[int]]]) -> None:
        """A request is called: its steps, and which of the blocks judged apart each touches."""
        self.of[index] = [self.step(event, index, blocks) for event, blocks in parts]
        self.open |= {step.number: step for step in self.of[index]}

    def step(self, event: Event, index: int, blocks: Sequence[int]) -> Step:
        """Return a step with a number of its own."""
        self._steps += 1
        return Step(self._steps, event, index, blocks)

    def depends(self, numbers: set[int]) -> set[int]:
        """The steps in flight that these may have to come after, and themselves."""
        reached = set(numbers)
        waiting = list(numbers)
        while waiting:
            current = self.open[waiting.pop()]
            for number, other in self.open.items():
                if number not in reached and self.rules.needs(current.event, other.event):
                    reached.add(number)
                    waiting.append(number)
        return reached

    def local(self, lba: int, numbers: Iterable[int]) -> list[Step]:
        """Those of these steps that are of this block alone."""
        steps = (self.open[number] for number in numbers)
        return [step for step in steps if step.local and step.blocks[0] == lba]

    def too_late(self, done: frozenset[int], step: Step, lba: int) -> bool:
        """Whether a write of the block has taken effect that, by what is read later, comes after
        `step`."""
        if step.event["op"] not in ("write", "unmap") or not self.known.later:
            return False
        return any(
            other.number in done or other.number not in self.open
            for index in self.known.later.get((step.request, lba), ())
            for other in self.of.get(index, ())
            if lba in live(other.event)
        )
