"""A plugin of pytest: `pytest --conformance-target TARGET` adds a test for each class of properties of the contract.

Each test is a campaign of its own that asks the target for nothing but what its class is about.
"""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

# class of properties -> the capabilities that it is about, and those that it uses besides where they are declared
PROPERTIES = {
    "data": (set(), {"flush"}),
    "unmap": ({"unmap"}, {"flush"}),
    "snapshots": ({"snapshot"}, {"delete", "revert", "unmap"}),
    "restart": ({"restart"}, {"flush", "snapshot", "delete", "revert", "unmap"}),
    "background work": ({"clean"}, {"flush", "snapshot", "delete", "revert", "unmap"}),
    "power cuts": (
        {"crash"},
        {"flush", "snapshot", "delete", "revert", "unmap", "restart", "clean"},
    ),
    "devices": (
        {"device"},
        {"flush", "snapshot", "delete", "revert", "unmap", "restart", "clean", "crash"},
    ),
}


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("conformance", "a virtual disk against the contract")
    group.addoption(
        "--conformance-target",
        metavar="TARGET",
        help="Add the tests of this target: see `conformance targets`.",
    )
    group.addoption(
        "--conformance-traces",
        type=int,
        default=50,
        metavar="N",
        help="Traces for each class of properties.",
    )
    group.addoption(
        "--conformance-ops",
        type=int,
        default=30,
        metavar="N",
        help="About how many operations a trace.",
    )
    group.addoption(
        "--conformance-seed",
        type=int,
        default=1,
        metavar="N",
        help="The same seed sends the same programs.",
    )


def pytest_collection_modifyitems(
    session: pytest.Session, config: pytest.Config, items: list[pytest.Item]
) -> None:
    name = config.getoption("--conformance-target")
    if name:
        from conformance import targets

        try:
            factory = targets.resolve(name)
        except targets.NoSuchTarget as error:
            raise pytest.UsageError(f"--conformance-target: {error}") from None
        items += [
            Property.from_parent(
                session, name=f"conformance[{name}] {kind}", kind=kind, factory=factory
            )
            for kind in PROPERTIES
        ]


class Failed(Exception):
    """The target does not keep the contract, or cannot be tested; the text says how."""


class Property(pytest.Item):
    """One class of properties of one target."""

    def __init__(self, *, kind: str, factory: Any, **more: Any) -> None:
        super().__init__(**more)
        self._kind, self._factory = kind, factory

    def runtest(self) -> None:
        from conformance.campaign import random_campaign
        from conformance.judging import oracles
        from conformance.programs import swarm

        about, besides = PROPERTIES[self._kind]
        missing = about - random_campaign.declared(self._factory)
        if missing:
            pytest.skip(f"the target does not declare {', '.join(sorted(missing))}")
        factory = replace(self._factory, without=frozenset(swarm.CAPABILITIES) - about - besides)
        option = self.config.getoption
        ops = option("--conformance-ops")
        result = random_campaign.campaign(
            factory,
            count=option("--conformance-traces"),
            ops=ops,
            seed=option("--conformance-seed"),
            oracles={"model": oracles.named("model")},
        )
        if result.failures:
            raise Failed("\n".join(_words(result, ops)))
        if result.verdict != "pass":
            raise Failed(
                f"inconclusive: {result.reason or 'the checker gave up'}\n{result.output}".rstrip()
            )

    def repr_failure(self, excinfo: pytest.ExceptionInfo[BaseException], style: Any = None) -> Any:
        return (
            str(excinfo.value)
            if isinstance(excinfo.value, Failed)
            else super().repr_failure(excinfo, style)
        )

    def reportinfo(self) -> tuple[Any, int | None, str]:
        return self.path, None, self.name


def _words(result: Any, ops: int) -> Iterator[str]:
    """The first failure: its shortest trace, what is wrong with it, and a line that shows it again."""
    from conformance.contract import trace
    from conformance.reports import report

    failure = result.failures[0]
    yield from trace.numbered(failure.trace.events)
    yield from failure.verdict.words(failure.trace)
    yield f"  replay    {report.replay_line(result, failure, ops)}"
