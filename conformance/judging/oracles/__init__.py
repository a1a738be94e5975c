"""Oracles, which judge traces: each names the first event that the contract does not allow.

An oracle is a function from traces to opinions, one each, in their order: `model.judge`,
`certified.judge`, `tlc.judge`.
"""

from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from importlib import import_module

from conformance.contract.trace import Trace


@dataclass(frozen=True)
class Opinion:
    """The opinion of one oracle on one trace.

    `at` is the index in `trace.events` of the first event that the contract does not allow, None if
    it allows all. `unsure` is why the oracle gave up instead; `at` is None then. `inside` is set by
    an oracle that judges what happened inside: which spec does not allow which event there. `held`
    is set by the model where requests overlap: the `held` of its search for an order.
    """

    at: int | None
    unsure: str = ""
    inside: str = ""
    held: dict[int, int] = field(default_factory=dict)


Oracle = Callable[[Sequence[Trace]], list[Opinion]]

INNER = "tlc inner"  # the oracle that comes with "tlc"
NAMES = ("model", "certified", "tlc")
OF_ORDERS = NAMES  # those that judge requests that overlap


class NoSuchOracle(Exception):
    """Raised when an oracle does not exist or cannot be used here. The message is one line."""


def named(name: str) -> Oracle:
    """Return the oracle of that name. Raises NoSuchOracle."""
    if name not in NAMES:
        raise NoSuchOracle(f"there is no oracle '{name}': use {', '.join(NAMES)}")
    module = import_module(f"conformance.judging.oracles.{name}")
    if name == "certified":
        module.oracle()  # is it built?
    oracle: Oracle = module.judge
    return oracle


def together(names: Iterable[str]) -> dict[str, Oracle]:
    """Return the oracles of these names; with TLC its judge of what happened inside, and the
    certified one wherever it is built.

    Raises NoSuchOracle.
    """
    judges = {name: named(name) for name in dict.fromkeys(names)}
    if "tlc" in judges:
        judges[INNER] = import_module("conformance.judging.oracles.inner").judge
    if "certified" not in judges:
        with suppress(NoSuchOracle):  # the summary says that it did not judge
            judges["certified"] = named("certified")
    return judges
