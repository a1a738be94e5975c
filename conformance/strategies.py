"""Hypothesis strategies and a state machine for tests of one's own virtual disk.

    from conformance import strategies, targets

    @given(strategies.traces(targets.resolve("python:my_disk:MyDisk")))
    def test_my_disk(trace):
        strategies.check(trace)

    TestMyDisk = strategies.machine(targets.resolve("python:my_disk:MyDisk")).TestCase

Hypothesis itself draws, remembers and shrinks: its settings, its seed and its example database work
as they do elsewhere.
"""

from typing import Any

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, precondition, rule

from conformance.campaign.driver import Bench, ask
from conformance.contract.tagged_block import ALIKE
from conformance.contract.trace import Trace, numbered
from conformance.judging.judge import judge
from conformance.judging.oracles import named
from conformance.programs import generate, overlap, woven
from conformance.programs.names import allowed, forbidden
from conformance.targets import Factory
from conformance.targets.base import Message, Unusable

OPS = 30  # operations of a trace
KINDS = ("plain", "woven", "racing")  # of programs; the wide ones do not shrink
ALONE = 1  # the first so many send one request at a time
KEPT = 64  # one operation of so many is left out; Hypothesis shrinks by leaving out more
MOST_IN_FLIGHT = 4  # requests: the judge gives up on more of them more often
SIZES = (16, 5, 64, 300)  # blocks of the disk of a state machine


class Broken(AssertionError):
    """The trace does not keep the contract; the text is the trace and the verdict."""


def programs(
    hello: dict[str, Any], *, ops: int = OPS, crashes: bool = True, cuts: bool = False
) -> st.SearchStrategy[list[Message]]:
    """Return a strategy of programs of up to `ops` operations for a target that says `hello`."""
    return st.randoms(use_true_random=False).map(
        lambda choose: generate.program(
            choose, hello, ops, crashes=crashes, cuts=cuts, any_length=True
        )
    )


def traces(factory: Factory, *, ops: int = OPS, crashes: bool = True) -> st.SearchStrategy[Trace]:
    """Return a strategy of traces of up to about `ops` operations: each drives a new target of the
    factory, if it takes several requests at a time often with several in flight. Without
    `crashes` the power is never cut.

    Raises Unusable while an example is drawn if the target cannot be opened.
    """

    def driven(choose: Any) -> Trace:
        bench = Bench(factory)
        try:
            options = bench.draw(choose)
            return bench.drive(_program(choose, bench, options, ops, crashes), 0, options)
        finally:
            bench.clear()

    return st.randoms(use_true_random=False).map(driven)


def _program(
    choose: Any, bench: Bench, options: dict[str, Any], ops: int, crashes: bool
) -> list[Message]:
    """Return a program of one of KINDS. The least draw is the simplest kind, for Hypothesis."""
    hello, cuts = bench.hello(options), bench.cuts(options)
    most = min(MOST_IN_FLIGHT, hello.get("in_flight", 1))
    kind = KINDS[choose.randrange(len(KINDS) if most > 1 else ALONE)]
    how = {"cuts": cuts, "schedules": bench.schedules(options)}
    if kind == "racing":
        return overlap.written(choose, hello, ops, most, crashes, **how)
    program = generate.program(
        choose,
        hello,
        ops,
        crashes=crashes,
        cuts=cuts,
        options=options,
        any_length=True,
    )
    if kind != "woven":
        return [program[0], *(message for message in program[1:] if choose.randrange(KEPT))]
    tolerates = hello.get("tolerates", 0)
    return woven.woven(choose, program, most, schedules=how["schedules"], tolerates=tolerates)


def check(trace: Trace) -> None:
    """Judge a trace by the model of the contract. Raises Broken if it fails, Unusable if it is
    inconclusive. Requests in flight together may have too many orders: then nothing is decided.
    """
    verdict = judge([trace], {"model": named("model")})[0]
    if trace.overlapping and verdict.verdict == "inconclusive" and verdict.at is None:
        return
    if verdict.verdict == "inconclusive":
        raise Unusable(verdict.reason)
    if verdict.verdict == "fail":
        raise Broken("\n".join([*numbered(trace.events), *verdict.words(trace)]))


@st.composite
def _names(draw: st.DrawFn) -> str:
    if draw(st.integers(0, 7)):
        return draw(st.sampled_from(["s1", "s2", "s3"]))
    choose = draw(st.randoms(use_true_random=False))
    return allowed(choose) if draw(st.booleans()) else forbidden(choose, "s1")


LBAS = st.integers(0, 300)
NAMES = _names()
# Where the power is cut in one operation of four: after so many device writes.
CUTS = st.one_of(
    *[st.none()] * 3,
    st.fixed_dictionaries({"after": st.integers(1, 12), "seed": st.integers(0, 255)}),
)


def machine(factory: Factory, *, blocks: int | None = None) -> type[RuleBasedStateMachine]:
    """Return a rule-based state machine that drives one target, an operation per rule, and judges
    each answer. Its disk has `blocks` blocks; by default Hypothesis draws a size of SIZES. It also
    draws the options of the target, and where the power is cut if the target has `cuts`.
    """
    sizes = st.just(blocks) if blocks is not None else st.sampled_from(SIZES)

    class VirtualDiskMachine(RuleBasedStateMachine):
        """Rules are the operations of the contract that the target declares."""

        def __init__(self) -> None:
            super().__init__()
            self._bench = Bench(factory)

        @initialize(choose=st.randoms(use_true_random=False), blocks=sizes)
        def create(self, choose: Any, blocks: int) -> None:
            """Open the target with some of its options, and create a disk, zero-filled."""
            options = self._bench.draw(choose)
            self._target = self._bench.on(options)
            hello = {key: value for key, value in self._target.hello.items() if key != "ok"}
            self._trace = Trace(hello, [], 0, options)
            self._cuts = self._bench.cuts(options)
            self._blocks, self._tag = blocks, 0
            self._lacking: dict[int, bool] = {}  # device that failed -> whether it is back
            self.send("create", blocks=blocks)

        def declares(self, capability: str) -> bool:
            """Return whether the target declares the capability. Without a crash profile `crash`
            cannot be asked for: nothing is promised."""
            hello = self._trace.hello
            promised = capability != "crash" or hello["crash_profile"] is not None
            return promised and capability in hello["capabilities"]

        def send(self, op: str, cut: Message | None = None, **fields: Any) -> bool:
            """Send one request and judge the trace so far. Return whether it was answered ok.

            The disk recovers from a power cut at once. Raises Broken."""
            trace, request = self._trace, {"op": op, **fields}
            if cut and self._cuts and self.declares("crash"):
                request["cut"] = cut
            trace.events.append(ask(self._target, request, trace.hello, len(trace.events), 0))
            check(trace)
            result = trace.events[-1]["result"]
            if result is None:
                self.send("crash")
            return result is not None and bool(result["ok"])

        @rule(
            lba=LBAS,
            count=st.integers(1, 4),
            long=st.booleans(),
            alike=st.booleans(),
            fua=st.booleans(),
            cut=CUTS,
        )
        def write(
            self, lba: int, count: int, long: bool, alike: bool, fua: bool, cut: Message | None
        ) -> None:
            """Write new data, or a block that is the same everywhere; durable if declared. Past the
            end it has to be refused. A long write is of quarters of the disk."""
            if long:
                count = max(1, self._blocks * count // 4)
            tags = list(range(self._tag + 1, self._tag + 1 + count))
            self._tag += count
            if alike:
                tags = [count * ALIKE] * count
            durable = {"fua": True} if fua and self.declares("fua") else {}
            self.send("write", cut, lba=self._at(lba, count), tags=tags, **durable)

        @rule(lba=LBAS, count=st.integers(1, 16), name=NAMES, old=st.booleans())
        def read(self, lba: int, count: int, name: str, old: bool) -> None:
            """Read live or a snapshot."""
            view: dict[str, Any] = {"view": name} if old and self.declares("snapshot") else {}
            self.send("read", lba=self._at(lba, count), count=count, **view)

        @rule(name=NAMES)
        def read_back(self, name: str) -> None:
            """Read all of live, and of one snapshot."""
            self.send("read", lba=0, count=self._blocks)
            if self.declares("snapshot"):
                self.send("read", lba=0, count=self._blocks, view=name)

        @precondition(lambda self: self.declares("unmap"))
        @rule(lba=LBAS, count=st.integers(1, 16), cut=CUTS)
        def unmap(self, lba: int, count: int, cut: Message | None) -> None:
            """Unmap blocks, which read as zeroes from now on."""
            self.send("unmap", cut, lba=self._at(lba, count), count=count)

        @rule(op=st.sampled_from(["snapshot", "delete", "revert"]), name=NAMES, cut=CUTS)
        def change_views(self, op: str, name: str, cut: Message | None) -> None:
            """Do a snapshot operation, if the target declares it."""
            if self.declares(op):
                self.send(op, cut, name=name)

        @rule(
            op=st.sampled_from(["flush", "restart", "crash", "clean", "checkpoint", "scrub"]),
            cut=CUTS,
        )
        def upkeep(self, op: str, cut: Message | None) -> None:
            """Do what leaves the views as they are, or what the crash profile says; if the target
            declares it.
            """
            if self.declares("clean" if op == "checkpoint" else op):
                self.send(op, cut)

        @precondition(lambda self: self.declares("device"))
        @rule(
            device=st.integers(0, 63),
            mode=st.sampled_from(["absent", "degraded"]),
            back=st.sampled_from(["return", "replace"]),
        )
        def fail_or_give_back(self, device: int, mode: str, back: str) -> None:
            """Let a device fail, as many as are tolerated; or give one back that failed."""
            hello = self._trace.hello
            away = [one for one, is_back in self._lacking.items() if not is_back]
            if len(self._lacking) < hello["tolerates"]:
                device %= hello["devices"]
                if device not in self._lacking:
                    self.send("fail", device=device, mode=mode)
                    self._lacking[device] = False
            elif away:
                device = away[device % len(away)]
                self._lacking[device] = self.send(back, device=device)

        @precondition(lambda self: self.declares("device") and all(self._lacking.values()))
        @rule(cut=CUTS)
        def settle(self, cut: Message | None) -> None:
            """Let the devices that are back catch up."""
            if self.send("settle", cut):
                self._lacking.clear()

        def teardown(self) -> None:
            """Put the target away."""
            self._bench.clear()

        def _at(self, lba: int, count: int) -> int:
            """Return where `count` blocks begin: on the disk, or past its end by one."""
            return lba % max(1, self._blocks - count + 2)

    VirtualDiskMachine.__name__ = f"Machine[{factory.name}]"
    return VirtualDiskMachine
