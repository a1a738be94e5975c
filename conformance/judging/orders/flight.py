"""The steps in flight while the search walks along a trace, and which of them wait for others."""

from collections.abc import Container, Iterable, Iterator, Sequence

from conformance.contract.model import ZERO
from conformance.contract.trace import Event
from conformance.judging.orders.lookahead import Lookahead
from conformance.judging.orders.steps import Rules, Step, live


class Flight:
    """The steps of the requests that were called and are not answered with certainty."""

    def __init__(self, rules: Rules, known: Lookahead) -> None:
        self.rules, self.known = rules, known
        self.open: dict[int, Step] = {}  # by number
        self.of: dict[int, list[Step]] = {}  # index of a request -> its steps, open or not
        self.called = 0  # steps
        # step -> those that it may have to come after, of the steps up to a number
        self._before: dict[int, tuple[int, set[int]]] = {}
        self._changes: dict[int, dict[int, int]] = {}  # index of a request -> LBA -> its step there
        self._awaited = {index for some in known.later.values() for index in some}
        self._local: dict[int, dict[int, Step]] = {}  # LBA -> those in flight of this block alone
        self._shared: dict[int, Step] = {}  # the others in flight
        # (step, LBA; None: any) -> the called steps that come later, until another such is called
        self._later: dict[tuple[int, int | None], frozenset[int]] = {}

    def call(self, index: int, parts: Iterable[tuple[Event, Sequence[int]]]) -> None:
        """Add the steps of a request that is called, with the blocks judged apart that each
        touches.
        """
        self.of[index] = [self.step(event, index, blocks) for event, blocks in parts]
        for step in self.of[index]:
            self.open[step.number] = step
            place = self._local.setdefault(step.blocks[0], {}) if step.local else self._shared
            place[step.number] = step
        if index in self._awaited:
            self._later.clear()
            self._changes[index] = {
                lba: step.number for step in self.of[index] for lba in live(step.event)
            }

    def answer(self, step: Step) -> None:
        """Take out a step that took effect."""
        del self.open[step.number]
        del (self._local[step.blocks[0]] if step.local else self._shared)[step.number]

    def end(self) -> None:
        """Take out all steps."""
        for steps in (self.open, self._local, self._shared, self._before):
            steps.clear()

    def step(self, event: Event, index: int, blocks: Sequence[int]) -> Step:
        """Return a step with a number of its own."""
        self.called += 1
        return Step(self.called, event, index, blocks)

    def depends(self, numbers: set[int]) -> set[int]:
        """Return the steps in flight that these may have to come after, and themselves."""
        reached = set(numbers)
        waiting = list(numbers)
        while waiting:
            before = self._may_follow(self.open[waiting.pop()])
            waiting += before - reached
            reached |= before
        return reached

    def _may_follow(self, step: Step) -> set[int]:
        """Return the steps in flight that this one may have to come after. Of each two steps it is
        asked only once.
        """
        last, before = self._before.get(step.number, (0, set[int]()))
        before &= self.open.keys()
        for steps in (self._local[step.blocks[0]], self._shared) if step.local else (self.open,):
            for number, other in reversed(steps.items()):
                if number <= last:
                    break
                if self.rules.needs(step.event, other.event):
                    before.add(number)
        self._before[step.number] = self.called, before
        return before

    def coming(self, lbas: Container[int]) -> dict[int, set[int]] | None:
        """LBA -> the tags that steps in flight may write there; None if it may be any."""
        tags: dict[int, set[int]] = {}
        for step in self.open.values():
            event = step.event
            if event["op"] == "revert":
                return None
            if event["op"] in ("write", "unmap"):
                for at, lba in enumerate(step.blocks):
                    if lba in lbas:
                        tag = event["tags"][at] if event["op"] == "write" else ZERO
                        tags.setdefault(lba, set()).add(tag)
        return tags

    def local(self, lba: int, numbers: Container[int]) -> list[Step]:
        """Return those of these steps in flight that are of this block alone."""
        steps = self._local.get(lba)
        return [step for number, step in steps.items() if number in numbers] if steps else []

    def too_late(self, done: frozenset[int], step: Step, lba: int) -> bool:
        """Return whether a write of the block has taken effect that, by what is read later, comes
        after `step`.
        """
        return self._some_is_done(self.later(step, lba), done)

    def too_late_anywhere(self, done: frozenset[int], step: Step) -> bool:
        """Return whether it is too late for a change of the live disk in one of its blocks."""
        key = step.number, None
        later = self._later.get(key)
        if later is None:
            lbas = live(step.event) if step.event["op"] in ("write", "unmap") else ()
            later = self._later[key] = frozenset().union(*[self.later(step, lba) for lba in lbas])
        return self._some_is_done(later, done)

    def later(self, step: Step, lba: int) -> frozenset[int]:
        """Return the steps, of those that were called, that take effect after a change of a block,
        by what is read later.
        """
        key = step.number, lba
        later = self._later.get(key)
        if later is None:
            later = self._later[key] = frozenset(self._called_later(step, lba))
        return later

    def _called_later(self, step: Step, lba: int) -> Iterator[int]:
        if step.event["op"] in ("write", "unmap"):
            for index in self.known.later.get((step.request, lba), ()):
                if lba in self._changes.get(index, ()):
                    yield self._changes[index][lba]

    def _some_is_done(self, later: frozenset[int], done: frozenset[int]) -> bool:
        return bool(later) and (not later.isdisjoint(done) or not later <= self.open.keys())
