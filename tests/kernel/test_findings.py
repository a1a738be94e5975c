"""What was found in a kernel is still found (docs/findings). A repaired kernel fails this."""

import pytest

from conformance.campaign.driver import drive
from conformance.judging.judge import judge
from conformance.judging.oracles import named
from conformance.targets.base import Message
from conformance.targets.engines.kernel.btrfs import Btrfs
from conformance.targets.engines.kernel.dm_snapshot import DmSnapshot
from conformance.targets.engines.kernel.dm_thin import DmThin
from conformance.targets.engines.kernel.nilfs2 import Nilfs2

pytestmark = pytest.mark.usefixtures("needs_guest")
SEEDS = range(20, 40)  # of what the power cut leaves; 24 is the one that docs/findings shows


def lost_and_synced(seed: int) -> list[Message]:
    """Unsynced writes, a power cut in the last, then a synced write, and a power cut after it."""
    read = {"op": "read", "lba": 0, "count": 4}
    written = [[2, 3, 4, 5], [6, 7, 8, 9], [10, 11, 12, 13], [14, 15, 16, 17], [18, 19, 21, 22]]
    writes = [{"op": "write", "lba": 0, "tags": tags} for tags in written]
    writes[-1]["cut"] = {"after": 1 + seed % 12, "seed": seed}
    return [
        {"op": "create", "blocks": 4},
        {"op": "write", "lba": 2, "tags": [1]},
        {"op": "flush"},
        *writes,
        {"op": "crash"},
        read,
        {"op": "write", "lba": 0, "tags": [20]},
        {"op": "flush"},
        read,
        {"op": "crash"},
        read,
    ]


def test_nilfs2_brings_back_logs_that_a_power_cut_had_lost() -> None:
    disk = Nilfs2({"spread": 1})
    try:
        for seed in SEEDS:
            trace = drive(disk, lost_and_synced(seed), seed, {})
            (verdict,) = judge([trace], {"model": named("model")})
            if verdict.verdict == "fail":
                assert verdict.kind == "lost-acknowledgement"
                assert verdict.at == len(trace.events) - 1
                return
    finally:
        disk.close()
    pytest.fail("not found in any of the seeds: is this kernel repaired?")


def test_btrfs_cannot_mount_a_torn_superblock_nor_can_it_when_judged_again() -> None:
    torn: list[Message] = [
        {"op": "create", "blocks": 1},
        {"op": "snapshot", "name": "s"},
        {"op": "delete", "name": "s", "cut": {"after": 3, "seed": 0}},
        {"op": "crash"},
    ]
    disk = Btrfs({"spread": 8, "atom": 512})
    whole = Btrfs({"spread": 8, "atom": 4096})
    try:
        for seed in range(40):
            torn[2]["cut"] = {"after": 3, "seed": seed}
            trace = drive(disk, torn, seed, {})
            if trace.events[-1]["result"].get("error") == "data-lost":
                break
        else:
            pytest.fail("no power cut tore the superblock")
        again = drive(whole, trace.program_with(left=True), 0, {})
        assert again.events[-1]["result"]["error"] == "data-lost"
        assert drive(whole, trace.program, 0, {}).events[-1]["result"]["ok"]
    finally:
        disk.close()
        whole.close()


@pytest.mark.parametrize("first, result", [(0, {"ok": True}), (3, {"error": "no-space"})])
def test_a_full_thin_pool_refuses_a_flush_if_block_0_is_not_mapped(
    first: int, result: Message
) -> None:
    written = [first, 1, 2, 4, 5]
    program: list[Message] = [
        {"op": "create", "blocks": 8},
        *({"op": "write", "lba": lba, "tags": [1 + lba]} for lba in written),
        {"op": "flush"},
    ]
    disk = DmThin({"room": 4, "spread": 1})
    try:
        trace = drive(disk, program, 0, {})
    finally:
        disk.close()
    assert [event["result"]["ok"] for event in trace.events[:-1]] == [True] * 5 + [False]
    assert result.items() <= trace.events[-1]["result"].items()


def test_a_thin_pool_whose_metadata_is_full_forgets_what_it_had_acknowledged() -> None:
    program: list[Message] = [{"op": "create", "blocks": 200}]
    for step in range(8):
        program.append({"op": "snapshot", "name": f"s{step}"})
        for place in range(3):
            lba, tag = step * 7 + place * 31, 1 + step * 3 + place
            program.append({"op": "write", "lba": lba, "tags": [tag]})
    program += [{"op": "flush"}, {"op": "read", "lba": 0, "count": 200}]
    disk = DmThin({"metadata": 96, "spread": 1})
    try:
        trace = drive(disk, program, 0, {})
    finally:
        disk.close()
    (verdict,) = judge([trace], {"model": named("model")})
    assert (verdict.verdict, verdict.kind) == ("fail", "stale")
    assert "crash" not in {event["op"] for event in trace.events}
    assert trace.events[-2]["result"]["ok"]  # the flush


@pytest.mark.parametrize(
    "full, kinds", [("invalid", {"snapshot-bleed", "lost-data", ""}), ("refused", {""})]
)
def test_a_snapshot_whose_store_is_full_is_valid_again_after_a_power_cut(
    full: str, kinds: set[str]
) -> None:
    came = set()
    disk = DmSnapshot({"room": 1, "full": full, "spread": 1})
    try:
        for seed in range(12):
            written: list[Message] = [
                {"op": "write", "lba": lba, "tags": [1 + lba]} for lba in range(6)
            ]
            written[-1]["cut"] = {"after": 2, "seed": seed}
            program: list[Message] = [
                {"op": "create", "blocks": 6},
                {"op": "snapshot", "name": "s"},
                *written,
                {"op": "crash"},
                {"op": "read", "lba": 0, "count": 6, "view": "s"},
            ]
            (verdict,) = judge([drive(disk, program, seed, {})], {"model": named("model")})
            came.add(verdict.kind)
    finally:
        disk.close()
    assert came == kinds
