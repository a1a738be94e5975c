"""Every crash state of a short workload: its points, what is left there; a fault is found."""

import pytest

from conformance.campaign.crashes import exhaustive_campaign
from conformance.campaign.crashes.kernel_crash_states import Explorer, workloads
from conformance.judging.oracles import named
from conformance.media.logwrites import SECTOR, Write
from conformance.targets import resolve
from conformance.targets.engines.kernel.power import Point


def test_what_is_left_are_the_sectors_of_the_mask_in_the_order_of_the_writes() -> None:
    pending = [Write(0, b"a" * 2 * SECTOR, 0), Write(SECTOR, b"b" * SECTOR, 0)]
    point = Point(2, bytes(SECTOR), pending, SECTOR)
    assert point.sizes == [2, 1]
    assert point.left((3, 1)) == b"a" * SECTOR + b"b" * SECTOR
    assert point.left((2, 0)) == bytes(SECTOR) + b"a" * SECTOR
    assert point.left((0, 0))[:SECTOR] == bytes(SECTOR)


def test_all_workloads_of_two_operations() -> None:
    names = [workload.name for workload in workloads({}, 2)]
    assert len(names) == len(set(names)) == 2 * (7 + 7 * 7)


def test_a_snapshot_has_states_before_and_after_its_flushes(needs_guest: None) -> None:
    explorer = Explorer(resolve("kernel:dm-thin"))
    try:
        (snapshot,) = [w for w in workloads({}, 1) if w.start == "new" and w.operations == (4,)]
        explored = explorer.explore(snapshot)
    finally:
        explorer.close()
    assert explored.states > 5
    said = {
        tuple(event["result"]["ok"] for event in trace.events[-3:] if event["op"] == "read")
        for trace in explored.traces.values()
    }
    assert (True, False, False) in said and (True, False, True) in said  # not there; there


@pytest.mark.parametrize("fault, verdict", [("none", "pass"), ("drop-flushes", "fail")])
def test_a_campaign_of_dm_thin(needs_guest: None, fault: str, verdict: str) -> None:
    factory = resolve(f"kernel:dm-thin:fault={fault}")
    oracles = {"model": named("model")}
    result = exhaustive_campaign.campaign(factory, longest=1, oracles=oracles, most=4)
    assert result.verdict == verdict
