"""The search for an order of overlapping requests that the contract admits.

A request is in flight from its call to its answer. The search walks along the calls and answers
of a trace. It keeps every configuration that is still possible: which requests in flight have taken
effect, and the state of the contract (`conformance.contract.model`) after them. A request takes
effect no later than its answer, so only an answer makes the search take steps. This is just-in-time
linearization (Lowe, "Testing for linearizability", 2017), with six reductions that lose nothing:

- Blocks that every request names together are one block (`conformance.judging.orders.extents`).
- Blocks are judged apart, between the steps that they share (`conformance.judging.orders.columns`).
  Under the profile `prefix`, what a power cut leaves is chosen by such a step, the mark
  (`conformance.judging.orders.worlds`).
- What later reads rule out is not tried (`conformance.judging.orders.lookahead`).
- Before a request, only those are tried that it may need, directly or through others. The rest can
  take effect afterwards. A flush takes effect when it is called.
- Tags that no read returned are one tag: no answer can tell them apart.
- Configurations that differ in one block only are one with what may have happened in either.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import chain

from conformance.contract import model
from conformance.contract.state import State
from conformance.contract.trace import OVERLAPPING, Event, Trace
from conformance.judging.orders.budget import Budget
from conformance.judging.orders.columns import Disks, looked_at, touched, without_data
from conformance.judging.orders.configurations import (
    UNSEEN,
    Config,
    Hashes,
    agrees,
    held,
    merged,
    times_written,
)
from conformance.judging.orders.flight import Flight
from conformance.judging.orders.levels import levels
from conformance.judging.orders.lookahead import lookahead
from conformance.judging.orders.one_block import OneBlock
from conformance.judging.orders.steps import (
    CHANGE_NOTHING,
    SNAPSHOTS,
    UNDOING,
    Rules,
    Step,
    by_block,
    changing,
    cut_profile,
    parts_of,
    timeline,
)
from conformance.judging.orders.worlds import MARK, World, after


@dataclass
class Search:
    """The search for an order of one trace; with `whole`, no blocks are judged apart.

    That is quicker while there are few configurations. It needs a trace that `may_be_whole`.

    Where blocks of the trace stand for extents (`orders.extents`), these have `sizes`.

    `held` has, for each request that is refused for want of space, by its index, an upper bound on
    the number of blocks that all views together held when it was called, but for what was in flight
    then."""

    trace: Trace
    most_steps: int
    whole: bool = False
    sizes: Sequence[int] = ()
    configs: list[Config] = field(default_factory=list)
    held: dict[int, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        hello, events = self.trace.hello, self.trace.events
        rules = Rules(cut_profile(self.trace))
        # Under "prefix" the worlds say what is left of the disk, and it is what the mark has saved.
        promised = {**hello, "crash_profile": "block" if rules.profile == "block" else "ack"}
        self._budget = Budget(self.most_steps)
        self._flight = Flight(rules, lookahead(events, rules.profile in UNDOING))
        self._disks = Disks(promised, self._budget)
        self._apart = () if self.whole else looked_at(events)
        self._block = OneBlock(self._flight, self._disks, self._budget, self._apart)
        self._seen = {
            tag
            for event in events
            if event["op"] == "read" and event["result"] is not None and event["result"]["ok"]
            for tag in event["result"]["tags"]
        }
        self.configs = [Config(frozenset(), World(state), ()) for state in model.init(promised)]
        self._hashes: Hashes = {}  # of views
        self._mark: Step | None = None  # the mark of the next power cut, once it is chosen
        self._tried = 0  # number of steps called when the mark was last tried
        self._position = self._last_flush = 0  # in the count of calls and answers

    @property
    def taken(self) -> int:
        """The number of steps that the search has taken."""
        return self._budget.taken

    def run(self) -> int | None:
        """Return the index of the first event whose answer has no order; None if all have one."""
        for position, answered, index in timeline(self.trace.events):
            event, self._position = self.trace.events[index], position
            if not answered:
                if model.answer_of(event) == "no-space":
                    self.held[index] = self._held()
                self._call(index, event)
            elif "failure" in event:
                return None
            elif event["op"] not in OVERLAPPING:
                if not self._alone(event):
                    return index
            elif not self._answer(index, event):
                return index
        return None

    def _held(self) -> int:
        written = self._written
        if self.whole:
            return max(held(config.world.now, written, sizes=self.sizes) for config in self.configs)
        known: dict[tuple[int, int], int] = {}  # by disk and block: configurations share most

        def of_block(disk: int, lba: int) -> int:
            if (disk, lba) not in known:
                known[disk, lba] = held(self._disks.worlds[disk].now, written, lba, self.sizes)
            return known[disk, lba]

        return max(
            sum(
                max(of_block(column.disk, lba) for column in columns)
                for lba, columns in zip(self._apart, config.blocks, strict=True)
            )
            for config in self.configs
        )

    @cached_property
    def _written(self) -> Mapping[tuple[int, int], int]:
        return times_written(self.trace.events)

    def _call(self, index: int, event: Event) -> None:
        if event["op"] not in OVERLAPPING or "failure" in event:
            return
        parts: list[Event] = []
        if event["op"] == "flush" and model.answer_of(event) == "ok":
            self._advance(event)  # at once: the sooner it is, the more a power cut may leave
        elif event["op"] == "write":
            tags = [tag if tag in self._seen else UNSEEN for tag in event["tags"]]
            parts = parts_of({**event, "tags": tags}, by_block(self.trace))
        else:
            parts = parts_of(event, by_block(self.trace))
        self._flight.call(index, ((part, touched(part, self._apart)) for part in parts))

    def _answer(self, index: int, event: Event) -> bool:
        """Require that the request has taken effect.

        Return False if no configuration admits that.
        """
        if model.answer_of(event) == "unknown-outcome":
            return True  # it takes effect later, or never
        steps = self._flight.of[index]
        local = all(step.local for step in steps)
        for some in [steps] if local and steps else [[step] for step in steps]:
            before = self._flight.depends({step.number for step in some})
            if any(changing(self._flight.open[number].event) for number in before):
                self._try_mark()
            self._block.moment()
            self.configs = self._merged(
                self._with_local(some, before) if local else self._with_shared(some[0], before)
            )
            for step in some:
                self._flight.answer(step)
            if not self.configs:
                return False
        return True

    def _merged(self, configs: Iterable[Config]) -> list[Config]:
        return merged(configs, self._disks.both, self._hashes)

    def _try_mark(self) -> None:
        """Add the configurations in which the mark is set now, after any steps in flight."""
        if self._mark is None or self._tried == self._flight.called:
            return  # without a new call, it was tried after all that it can come after
        if self._position < self._last_flush:
            return  # what it saves now does not survive that flush
        self._tried, mark = self._flight.called, self._mark
        self._block.moment()
        image = self._flight.known.images.get(mark.request, {})
        coming = self._flight.coming(image)
        unmarked = [one for one in self.configs if mark.number not in one.done]
        able = [one for one in unmarked if self._block.may_become(one.blocks, image, coming)]
        marked = [one for one in self.configs if mark.number in one.done]
        if able:
            marked += self._until(able, mark, self._changes())
        self.configs = self._merged([*unmarked, *marked])

    def _changes(self) -> set[int]:
        """Return the steps in flight that change the disk, and those that come before them."""
        steps = self._flight.open.values()
        return self._flight.depends({step.number for step in steps if changing(step.event)})

    def _with_shared(self, step: Step, before: set[int]) -> Iterator[Config]:
        """Yield the configurations in which `step` has taken effect; it is in flight no more."""
        for config in self._until(self.configs, step, before):
            yield config._replace(done=config.done - {step.number})

    def _with_local(self, steps: list[Step], before: set[int]) -> Iterator[Config]:
        """Yield the configurations after the steps of a request, each of another block; they are in
        flight no more.

        Other steps of these blocks, and steps that blocks share, are tried before each. What is
        left to try after a single step is only that it comes later.
        """
        others = before - {step.number for step in steps}
        alone = len(steps) == 1
        for configs in self._ways(self.configs, others if alone else before):
            waiting = []
            for config in configs:
                taken = self._block.all_answered(config.blocks, config.done, steps, others)
                if taken is not None:
                    yield config._replace(blocks=taken)
                if alone:
                    (lba,) = steps[0].blocks
                    columns = self._block.columns(config.blocks, lba)
                    left = frozenset(one for one in columns if steps[0].number not in one.done)
                    blocks = self._block.replaced(config.blocks, lba, left)
                    config = config._replace(blocks=blocks)
                    if not left:
                        continue
                waiting.append(config)
            configs[:] = waiting

    def _until(self, start: list[Config], step: Step, before: set[int]) -> Iterator[Config]:
        """Yield the configurations in which a shared step has taken effect, by all ways to get
        there.
        """
        for configs in self._ways(start, before, step):
            for config in configs:
                if step.number in config.done:
                    yield config
            configs[:] = [config for config in configs if step.number not in config.done]

    def _ways(self, start: list[Config], before: set[int], *more: Step) -> Iterator[list[Config]]:
        """Yield what configurations become by the steps of `before` that blocks share, and more."""
        steps = [self._flight.open[number] for number in before]
        shared = {step.number: step for step in (*steps, *more) if not step.local}

        def after(config: Config) -> Iterator[Config]:
            for number in shared.keys() - config.done:
                yield from self._after(config, shared[number], before)

        return levels(start, self._merged, after)

    def _after(self, config: Config, step: Step, before: set[int]) -> Iterator[Config]:
        """Yield the configurations after a step that blocks share; before it, each block takes what
        it may of `before`.
        """
        self._budget.take()
        if step is self._mark and not self._may_be_left(config.world.now):
            return
        if self.whole:
            yield from self._whole_after(config, step)
            return
        for part in _durable_or_not(step, config.world):
            for world in after(config.world, without_data(part.event)):
                blocks = self._block.shared(config.blocks, config.done, part, before)
                if blocks is None:
                    return
                yield Config(config.done | {part.number}, world, blocks)

    def _whole_after(self, config: Config, step: Step) -> Iterator[Config]:
        """Yield the configurations after a shared step if no blocks are judged apart."""
        if self._flight.too_late_anywhere(config.done, step):
            return
        image = self._flight.known.images.get(step.request, {})
        for world in after(config.world, step.event):
            if agrees(world.now, image):
                yield Config(config.done | {step.number}, world, config.blocks)

    def _may_be_left(self, state: State) -> bool:
        """Return whether the next power cut may leave these snapshots, by what is answered after
        it.
        """
        assert self._mark is not None
        names = self._flight.known.names.get(self._mark.request, {})
        return all((name in state.snaps) == there for name, there in names.items())

    def _alone(self, event: Event) -> bool:
        """Apply an operation with nothing in flight, or a power cut, which ends those in flight.

        The power may fail in an operation, too.
        """
        if event["op"] == "crash" or model.answer_of(event) == "cut":
            self._cut()
        self._advance(event)
        if event["op"] == "create":
            blank = self._block.blank()
            self.configs = [config._replace(blocks=blank) for config in self.configs]
        if event["op"] in ("create", "crash") and model.answer_of(event) == "ok":
            self._new_mark(event["answered"])
        return bool(self.configs)

    def _advance(self, event: Event) -> None:
        """Let the event take effect in every configuration."""
        self._tried = 0  # a flush leaves no mark
        self._block.moment()
        self.configs = self._merged(
            Config(config.done, world, self._block.all_after(config.blocks, event))
            for config in self.configs
            for world in after(config.world, event)
        )

    def _new_mark(self, start: int) -> None:
        """Choose a new mark: from here on the disk may be as the next power cut will leave it."""
        cuts = [
            index
            for index, event in enumerate(self.trace.events)
            if event["op"] == "crash" and event["called"] > start
        ]
        if cuts and self._flight.rules.profile == "prefix":
            end = self.trace.events[cuts[0]]["called"]
            self._last_flush = max(
                (
                    event["called"]
                    for event in self.trace.events
                    if event["op"] in ("flush", "restart")
                    and start < event["called"] < end
                    and model.answer_of(event) == "ok"
                ),
                default=0,
            )
            event = {"op": MARK, "result": {"ok": True}}
            self._mark = self._flight.step(event, cuts[0], self._apart)

    def _cut(self) -> None:
        """Cut the power: each step in flight took effect before, or never does."""
        flight = self._flight
        able = {n for n, step in flight.open.items() if step.event["op"] not in CHANGE_NOTHING}
        first = able
        if flight.rules.profile == "block":  # a write only adds to what a power cut may leave
            ordered = {n for n in able if flight.open[n].event["op"] in SNAPSHOTS}
            first = flight.depends(ordered) & able
        steps = [flight.open[number] for number in able]
        self._block.moment()
        if self._mark is None:
            found: Iterable[Config] = chain.from_iterable(self._ways(self.configs, first))
        elif any(step.event.get("fua") for step in steps):  # may be durable without what was before
            ways = chain.from_iterable(self._ways(self.configs, first, self._mark))
            found = (config for config in ways if self._mark.number in config.done)
        else:
            found, steps = self._until(self.configs, self._mark, first), []
        self.configs = self._merged(
            Config(frozenset(), one.world, self._block.all_cut(one.blocks, one.done, steps))
            for one in found
        )
        self._mark = None
        flight.end()


def _durable_or_not(step: Step, world: World) -> Iterator[Step]:
    """Yield the step; twice if a power cut may keep it or not although what was before is lost.

    All blocks of a write with `fua` that nobody was told of are durable then, or none is."""
    event = step.event
    if event.get("fua") and not event.get("told", True) and world.saved is not None:
        yield step._replace(event={**event, "told": True})
        yield step._replace(event={**event, "fua": False})
    else:
        yield step
