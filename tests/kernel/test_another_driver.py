"""The driver that docs/kernel-targets.md shows is a target as it stands there."""

import re
import textwrap
from pathlib import Path
from typing import Any

import pytest

from conformance.campaign.driver import drive
from conformance.contract.trace import Trace
from conformance.judging.judge import judge
from conformance.judging.oracles import named
from conformance.targets.base import Message
from conformance.targets.engines.kernel.disk import KernelDisk
from conformance.targets.engines.kernel.machine.guest import DISK

DOCS = Path(__file__).parents[2] / "docs" / "kernel-targets.md"
PROGRAM: list[Message] = [
    {"op": "create", "blocks": 8},
    {"op": "write", "lba": 2, "tags": [1, 2, 3, 4, 5]},
    {"op": "unmap", "lba": 3, "count": 2},
    {"op": "flush"},
    {"op": "write", "lba": 0, "tags": [6], "cut": {"after": 1, "seed": 1}},
    {"op": "crash"},
    {"op": "read", "lba": 0, "count": 8},
    {"op": "restart"},
    {"op": "read", "lba": 0, "count": 8},
]


def shown() -> str:
    """The code of the driver."""
    block = re.search(r"^    class Linear.*?(?=^\S)", DOCS.read_text(), re.M | re.S)
    assert block is not None
    return textwrap.dedent(block[0])


def driven(options: dict[str, Any]) -> Trace:
    scope: dict[str, Any] = {"KernelDisk": KernelDisk, "DISK": DISK}
    exec(shown(), scope)  # noqa: S102
    disk = scope["Linear"](options)
    try:
        return drive(disk, PROGRAM, 0, options)
    finally:
        disk.close()


def test_the_driver_takes_twenty_lines() -> None:
    lines = [line for line in shown().splitlines() if line.strip()]
    assert len(lines) <= 20


@pytest.mark.parametrize("fault, verdict", [("none", "pass"), ("forget-flush", "fail")])
def test_the_driver_passes_and_a_fault_in_it_is_found(
    needs_guest: None, fault: str, verdict: str
) -> None:
    trace = driven({"fault": fault})
    assert trace.events[6]["result"]["ok"]
    (found,) = judge([trace], {"model": named("model")})
    assert found.verdict == verdict
