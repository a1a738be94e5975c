"""Which failures of honest runs a page in docs/findings explains: no more than it says."""

from pathlib import Path
from typing import Any

import pytest

from conformance.contract.trace import Trace
from conformance.targets.engines.kernel import DRIVERS

PAGES = Path(__file__).parents[2] / "docs" / "findings"
REFUSED = {"ok": False, "error": "no-space"}
OK = {"ok": True}


def test_every_page_that_a_driver_names_is_there() -> None:
    for driver in DRIVERS.values():
        for page in driver.findings.values():
            assert (PAGES / page).exists(), page


@pytest.mark.parametrize(
    "driver, kind, op, result, options, known",
    [
        ("dm-thin", "wrong-refusal", "flush", REFUSED, {}, True),
        ("dm-thin", "no-order", "flush", OK, {}, False),
        ("dm-thin", "unopenable", "restart", REFUSED, {}, True),
        ("dm-thin", "unopenable", "flush", REFUSED, {}, False),
        ("dm-thin", "stale", "flush", REFUSED, {}, False),
        ("nilfs2", "lost-data", "write", OK, {"cleaner": "asked"}, True),
        ("nilfs2", "unopenable", "write", OK, {"cleaner": "asked"}, False),
        ("nilfs2", "unopenable", "write", OK, {"cleaner": "running"}, True),
        ("nilfs2", "unopenable", "clean", OK, {"cleaner": "asked"}, True),
        ("dm-snapshot", "stale", "write", OK, {}, False),
    ],
)
def test_a_page_explains_a_failure(
    driver: str, kind: str, op: str, result: dict[str, Any], options: dict[str, Any], known: bool
) -> None:
    trace = Trace({}, [{"op": op, "result": result}], 0, options)
    assert (DRIVERS[driver].finding(trace, kind) is not None) is known
