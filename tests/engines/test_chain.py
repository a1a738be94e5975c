"""Chains of files in qemu-storage-daemon as a target. `make engines` installs qemu."""

import shutil
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from conformance import targets
from conformance.campaign.driver import drive
from conformance.campaign.random_campaign import campaign
from conformance.campaign.results import Campaign
from conformance.contract.trace import Trace
from conformance.judging.judge import judge
from conformance.judging.oracles import named
from conformance.media import nbd
from conformance.targets.base import Message

MISSING = [tool for tool in ("qemu-storage-daemon", "qemu-img") if shutil.which(tool) is None]
try:
    nbd.library()
except nbd.Unavailable as unavailable:
    MISSING.append(str(unavailable))
pytestmark = pytest.mark.skipif(
    bool(MISSING), reason=f"NOT RUN: {', '.join(MISSING)} missing: make engines"
)
MODEL = {"model": named("model")}


def run(name: str, count: int, without: Sequence[str] = (), **more: Any) -> Campaign:
    return campaign(
        replace(targets.resolve(name), without=frozenset(without)),
        count=count,
        ops=40,
        seed=1,
        oracles=MODEL,
        in_flight=1,
        **more,
    )


@pytest.mark.parametrize(
    "options, without", [("merge=commit", ()), ("merge=stream", ()), ("format=vmdk", ("delete",))]
)
def test_without_power_cuts_it_keeps_the_contract(options: str, without: tuple[str, ...]) -> None:
    result = run(f"chain:{options}", 20, without, crashes=False)
    assert result.verdict == "pass", [
        f.verdict.words(f.trace) for f in result.failures
    ] or result.reason
    assert result.coverage["snapshot", "ok"] and result.coverage["revert", "ok"]
    assert result.coverage["delete", "ok"] or without


def test_committing_keeps_it_through_power_cuts() -> None:
    result = run("chain:merge=commit", 20)
    assert result.verdict == "pass", [
        f.verdict.words(f.trace) for f in result.failures
    ] or result.reason
    assert result.coverage["crash", "ok"] > 20 and result.coverage["write", "cut"]


def driven(options: dict[str, Any], program: list[Message]) -> Trace:
    target = targets.resolve("chain")(options)
    try:
        return drive(target, program)
    finally:
        target.close()


def test_a_tree_of_files_is_merged_as_it_loses_branches() -> None:
    """Two reverts make three branches; then every snapshot is deleted, branching points first."""
    program: list[Message] = [
        {"op": "create", "blocks": 4},
        {"op": "write", "lba": 0, "tags": [1, 2, 3, 4]},
        {"op": "snapshot", "name": "root"},
    ]
    for number, name in enumerate(("a", "b")):
        program += [
            {"op": "write", "lba": number, "tags": [10 + number]},
            {"op": "snapshot", "name": name},
            {"op": "revert", "name": "root"},
        ]
    program += [{"op": "write", "lba": 3, "tags": [20]}]
    views = [
        {"op": "read", "lba": 0, "count": 4, **({"view": view} if view else {})}
        for view in ("", "a", "b")
    ]
    program += [
        {"op": "delete", "name": "root"},
        *views,
        {"op": "delete", "name": "a"},
        views[0],
        views[2],
        {"op": "restart"},
        {"op": "delete", "name": "b"},
        views[0],
    ]
    for merge in ("commit", "stream"):
        assert (
            judge([driven({"merge": merge, "cluster_size": 512}, program)], MODEL)[0].verdict
            == "pass"
        ), merge


# The findings of docs/findings/. If a newer qemu has mended one, its test fails: then say so there.


def test_the_finding_stream_not_durable() -> None:
    program: list[Message] = [
        {"op": "create", "blocks": 5},
        {"op": "write", "lba": 4, "tags": [8]},
        {"op": "snapshot", "name": "s3"},
        {"op": "delete", "name": "s3"},
        {"op": "crash"},
        {"op": "read", "lba": 4, "count": 1},
    ]
    found = {
        judge([driven({"merge": merge, "cluster_size": 512}, program)], MODEL)[0].kind
        for merge in ("stream",)
    }
    assert found == {"lost-acknowledgement"}
    assert (
        judge([driven({"merge": "commit", "cluster_size": 512}, program)], MODEL)[0].verdict
        == "pass"
    )


def test_the_finding_vmdk_commit() -> None:
    program: list[Message] = [
        {"op": "create", "blocks": 1},
        {"op": "snapshot", "name": "s3"},
        {"op": "snapshot", "name": "s4"},
        {"op": "delete", "name": "s3"},
    ]
    failure = driven({"format": "vmdk"}, program).events[-1]["failure"]
    assert failure["kind"] == "exit" and "status -11" in failure["message"]
    assert "Could not update backing file link" in failure["output"]
