"""What happened inside an engine, for tests that change it and have TLC follow it."""

from collections.abc import Iterator
from typing import Any

from conformance.contract.trace import Trace
from modelcheck.runs import traces

Inside = dict[str, Any]


def events(trace: Trace, name: str) -> Iterator[tuple[list[Inside], Inside]]:
    """Return each event of that name, with the list that it is in."""
    for operation in trace.events:
        for inside in list(operation.get("events", ())):
            if inside["event"] == name:
                yield operation["events"], inside


def first_rejected(
    followed: list[tuple[int, list[Inside]]], module: str, config: str
) -> dict[int, Inside]:
    """Follow lines, each list with the number of its trace, through a module of the specs.

    Returns the first line that the module does not allow, by the number of the trace. A trace that
    is accepted has none. Raises Inconclusive and tlc.Unavailable.
    """
    found: dict[int, Inside] = {}
    matched = traces.follow([lines for _, lines in followed], module, config)
    for (index, lines), count in zip(followed, matched, strict=True):
        if count < len(lines) - 1:
            found.setdefault(index, lines[count + 1])
    return found
