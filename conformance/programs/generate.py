"""Programs: flat lists of requests. Any subsequence of a program that keeps `create` is a program,
so shrinking may drop any request.

Generation is written once against the interface of `random.Random`. With `random.Random` it is the
fast path of campaigns; under `hypothesis.strategies.randoms(use_true_random=False)` Hypothesis
draws, remembers and shrinks (conformance.strategies).

Each program is a swarm of its own (conformance.programs.swarm) on a disk of its own size. Of a few
operations that the swarm offers next, the one is sent that was asked least often in a situation
like this (conformance.programs.situation).
"""

import random
from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from itertools import accumulate, count
from typing import Any

from conformance.contract.source import Source
from conformance.programs.explored import Begun, Explored
from conformance.programs.power_cuts import Reach
from conformance.programs.situation import Asked
from conformance.programs.wide import WideWriter
from conformance.programs.wide_devices import DevicesWriter

Request = dict[str, Any]
Hello = dict[str, Any]

MOST_OPS = 2000  # operations of a program, as users may ask for
LONG_LIFE = 300  # operations of a long program
TIMES = (1, 1, 2, 3)  # as many operations as were asked for, in the other programs
LONG_ONE_IN = 10  # programs
WIDE_ONE_IN = 3  # programs
MOST_BLOCKS = 200_000  # of all requests of a program, where a judge follows each block
CUT_COSTS = 20  # times the blocks of the disk, for a power cut: any of them may be older then


def program(
    choose: Source,
    hello: Hello,
    ops: int,
    *,
    crashes: bool = True,
    cuts: bool = False,
    options: Mapping[str, Any] | None = None,
    asked: Asked | None = None,
    any_length: bool = False,
    begun: Begun | None = None,
    reach: Mapping[str, Reach] | None = None,
    wide: bool = False,
) -> list[Request]:
    """Return a program of about `ops` operations for a target that says `hello`.

    `crashes` False leaves crashes out; `cuts` cuts the power in the middle of operations too.
    `options` are those that the target was opened with: their numbers tell where its structures may
    begin. `asked` counts what earlier programs asked in which situation, and this one is added to
    it. With `any_length` each operation is the last with a small chance: Hypothesis can then leave
    out any of them when it shrinks. The program goes on from where `begun` ends, if that is given.
    `reach` says at which device writes of operations the power was cut so far.
    `wide` programs have the shapes of conformance.programs.wide.
    """
    kind = WideWriter if wide else DevicesWriter
    asked = Counter() if asked is None else asked
    writer = kind(choose, hello, crashes, cuts, options or {}, asked, begun, reach)
    return writer.program(ops, any_length)


def length(choose: Source, ops: int) -> int:
    """Return how many operations a program of a campaign has: a few times `ops`, and at least
    LONG_LIFE in one of LONG_ONE_IN.
    """
    if choose.randrange(LONG_ONE_IN) == 0:
        return max(ops, LONG_LIFE)
    return min(ops * TIMES[choose.randrange(len(TIMES))], max(ops, LONG_LIFE))


def judged_by_block(hello: Mapping[str, Any]) -> bool:
    """Return whether a judge of requests that overlap follows each block: one step is a block, or a
    power cut may leave each block as it was at another moment."""
    return "block" in (hello.get("atomic"), hello.get("crash_profile"))


def followed(program: list[Request]) -> list[Request]:
    """Return as much of the program as a judge that follows each block decides in some seconds."""
    largest = program[0]["blocks"]
    blocks = (
        CUT_COSTS * largest
        if one["op"] == "crash"
        else min(one.get("count", len(one.get("tags", ()))), largest)
        for one in program
    )
    return program[: bisect_right(list(accumulate(blocks)), MOST_BLOCKS)]


def cases(
    draw: Callable[[Source], dict[str, Any]],
    hello_of: Callable[[dict[str, Any]], Hello],
    ops: int,
    seed: object,
    *,
    crashes: bool = True,
    cuts: bool = False,
    long: bool = False,
    explored: Explored | None = None,
    lives: bool = False,
) -> Iterator[tuple[dict[str, Any], list[Request]]]:
    """Yield creation options, as `draw` chooses them, and a program for such a target; without end.

    The same seed gives the same ones. `hello_of` tells what a target with these options says. With
    `long` one program in LONG_ONE_IN is a long one, if there are `lives`; without them none goes on
    for hundreds of operations, and with them every WIDE_ONE_IN-th is a wide one.
    What the earlier ones asked leads the later ones, and so does what they showed, if the caller
    tells it to `explored`.
    """
    asked: Asked = Counter()
    for number in count():
        choose = random.Random(f"{seed} {number}")
        widely = lives and number % WIDE_ONE_IN == WIDE_ONE_IN - 1
        begun = explored.beginning(choose) if explored and not widely else None
        options = dict(begun.options) if begun else draw(choose)
        most = length(choose, ops) if long else ops
        most = most // 2 + len(begun.requests) if begun else most
        yield (
            options,
            program(
                choose,
                hello_of(options),
                most if lives else min(most, TIMES[-1] * ops),
                crashes=crashes,
                cuts=cuts,
                options=options,
                asked=asked,
                begun=begun,
                reach=explored.reach if explored else None,
                wide=widely,
            ),
        )


def programs(
    hello: Hello, ops: int, seed: object, *, crashes: bool = True, cuts: bool = False
) -> Iterator[list[Request]]:
    """Yield programs for a target that says `hello` and has no options; without end."""
    for _, one in cases(
        lambda choose: {}, lambda options: hello, ops, seed, crashes=crashes, cuts=cuts
    ):
        yield one
