"""qcow2 in qemu-storage-daemon as a target. `make engines` installs qemu."""

import shutil
from collections.abc import Iterator
from typing import Any

import pytest

from conformance import targets
from conformance.campaign.driver import drive
from conformance.campaign.random_campaign import campaign
from conformance.judging.explain import Verdict
from conformance.judging.judge import judge
from conformance.judging.oracles import named
from conformance.media import nbd
from conformance.targets.base import Message, TargetFailure
from conformance.targets.engines.qemu import qcow2_views
from conformance.targets.engines.qemu.qcow2 import Qcow2Target

MISSING = [tool for tool in ("qemu-storage-daemon", "qemu-img") if shutil.which(tool) is None]
try:
    nbd.library()
except nbd.Unavailable as unavailable:
    MISSING.append(str(unavailable))
pytestmark = pytest.mark.skipif(
    bool(MISSING), reason=f"NOT RUN: {', '.join(MISSING)} missing: make engines"
)
MODEL = {"model": named("model")}


@pytest.fixture
def target() -> Iterator[Qcow2Target]:
    opened = Qcow2Target({"cluster_size": 512})
    yield opened
    opened.close()


def ask(target: Qcow2Target, op: str, **more: Any) -> Message:
    return target.request({"op": op, **more})


def test_the_operations(target: Qcow2Target) -> None:
    a, b = b"a" * 512, b"b" * 512
    assert ask(target, "create", blocks=8)["ok"]
    assert ask(target, "write", lba=1, data=a + b)["ok"]
    assert ask(target, "snapshot", name="s")["ok"]
    assert ask(target, "snapshot", name="s")["error"] == "snapshot-exists"
    assert ask(target, "unmap", lba=1, count=1)["ok"]
    assert ask(target, "read", lba=0, count=3)["data"] == bytes(1024) + b
    assert ask(target, "read", lba=0, count=3, view="s")["data"] == bytes(512) + a + b
    assert ask(target, "revert", name="s")["ok"]
    assert ask(target, "read", lba=1, count=1)["data"] == a
    assert ask(target, "restart")["ok"] and ask(target, "read", lba=2, count=1)["data"] == b
    assert ask(target, "delete", name="s")["ok"]
    for op in ("delete", "revert"):
        assert ask(target, op, name="s")["error"] == "no-such-snapshot"
    assert ask(target, "read", lba=0, count=1, view="s")["error"] == "no-such-snapshot"
    assert ask(target, "snapshot", name="a b")["error"] == "bad-request"
    for lba in (7, 8, 1 << 32):
        assert ask(target, "read", lba=lba, count=2)["error"] == "out-of-range"
        assert ask(target, "write", lba=lba, data=a + b)["error"] == "out-of-range"
        assert ask(target, "unmap", lba=lba, count=2)["error"] == "out-of-range"
    assert ask(target, "tick", seconds=1)["error"] == "unsupported"


def test_a_power_cut_keeps_what_was_flushed_and_some_of_the_rest(target: Qcow2Target) -> None:
    found = set()
    for after in range(1, 7):
        for seed in range(6):
            program: list[Message] = [
                {"op": "create", "blocks": 4},
                {"op": "write", "lba": 0, "tags": [1, 2]},
                {"op": "flush"},
                {"op": "write", "lba": 0, "tags": [3, 4, 5]},
                {"op": "flush", "cut": {"after": after, "seed": seed}},
                {"op": "crash"},
                {"op": "read", "lba": 0, "count": 4},
            ]
            trace = drive(target, program)
            assert judge([trace], MODEL)[0].verdict == "pass", judge([trace], MODEL)[0]
            found.add(tuple(trace.events[-1]["result"]["tags"]))
    assert (3, 4, 5, 0) in found and len(found) > 1


def test_without_power_cuts_it_keeps_the_contract() -> None:
    result = campaign(
        targets.resolve("qcow2"),
        count=40,
        ops=40,
        seed=1,
        oracles=MODEL,
        in_flight=1,
        crashes=False,
    )
    assert result.verdict == "pass", [
        f.verdict.words(f.trace) for f in result.failures
    ] or result.reason


@pytest.mark.parametrize(
    "options", [{"cluster_size": 512}, {"cluster_size": 65536, "refcount_bits": 64}]
)
def test_the_daemon_reads_snapshots_as_qemu_img_does(
    options: dict[str, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    """And where it would not, the comparison notices."""
    monkeypatch.setattr("conformance.targets.engines.qemu.qcow2.CONFIRM", 1)
    opened = targets.resolve("qcow2")(options)
    program: list[Message] = [{"op": "create", "blocks": 40}]
    for number, name in enumerate(("s1", "s1.longer-name", "s", "n" * 64)):
        program += [
            {"op": "write", "lba": 9 * number, "tags": [number + 1] * 4},
            {"op": "snapshot", "name": name},
            {"op": "read", "lba": 0, "count": 40, "view": name},
        ]
    program += [
        {"op": "delete", "name": "s"},
        {"op": "write", "lba": 0, "tags": [9]},
        *({"op": "read", "lba": 0, "count": 40, "view": name} for name in ("s1", "s", "n" * 64)),
    ]
    assert judge([drive(opened, program)], MODEL)[0].verdict == "pass"
    the_first = qcow2_views.l1_table
    monkeypatch.setattr(
        "conformance.targets.engines.qemu.qcow2_views.l1_table",
        lambda image, name: the_first(image, "s1"),
    )
    failure = drive(opened, program).events[-1]["failure"]
    opened.close()
    assert "qemu-img convert reads s1.longer-name otherwise" in failure["message"]


def test_a_daemon_that_ends_is_noticed_at_once(target: Qcow2Target) -> None:
    assert ask(target, "create", blocks=8)["ok"]
    target._daemon._process.kill()
    with pytest.raises(TargetFailure) as failure:
        ask(target, "restart")
    assert failure.value.kind == "exit" and "status -9" in failure.value.message


# The findings of docs/findings/. If a newer qemu has mended one, its test fails: then say so there.


def test_the_finding_reuse_before_durable(target: Qcow2Target) -> None:
    """A freed cluster is reused before the freeing is durable: block 2 has the data of block 0."""
    program: list[Message] = [
        {"op": "create", "blocks": 3},
        {"op": "write", "lba": 2, "tags": [1]},
        {"op": "flush"},
        {"op": "unmap", "lba": 2, "count": 1},
        {"op": "write", "lba": 0, "tags": [2]},
        {"op": "crash"},
        {"op": "read", "lba": 0, "count": 3},
    ]
    verdicts = []
    for after in range(1, 6):
        for seed in range(4):
            cut: list[Message] = [
                *program[:4],
                {**program[4], "cut": {"after": after, "seed": seed}},
                *program[5:],
            ]
            verdicts.append(judge([drive(target, cut)], MODEL)[0])
    assert {verdict.kind for verdict in verdicts} == {"", "misplaced"}


def verdict_of(program: list[Message], options: dict[str, Any]) -> Verdict:
    opened = Qcow2Target(options)
    try:
        return judge([drive(opened, program)], MODEL)[0]
    finally:
        opened.close()


def test_the_finding_revert_killed() -> None:
    program: list[Message] = [
        {"op": "create", "blocks": 1},
        {"op": "write", "lba": 0, "tags": [1]},
        {"op": "snapshot", "name": "s3"},
        {"op": "revert", "name": "s3", "cut": {"after": 5, "seed": 29}},
        {"op": "crash"},
        {"op": "write", "lba": 0, "tags": [5]},
        {"op": "flush"},
        {"op": "read", "lba": 0, "count": 1, "view": "s3"},
    ]
    verdict = verdict_of(program, {"cluster_size": 512, "refcount_bits": 64})
    assert verdict.kind == "snapshot-bleed" and verdict.at == 7


def test_the_finding_data_after_metadata() -> None:
    program: list[Message] = [
        {"op": "create", "blocks": 4},
        {"op": "write", "lba": 1, "tags": [3]},
        {"op": "snapshot", "name": "s4"},
        {"op": "write", "lba": 0, "tags": [4, 5, 6, 7]},
        {"op": "flush", "cut": {"after": 1, "seed": 189}},
        {"op": "crash"},
        {"op": "read", "lba": 1, "count": 1},
    ]
    verdict = verdict_of(
        program, {"cluster_size": 2048, "lazy_refcounts": "on", "discard": "ignore"}
    )
    assert verdict.kind == "lost-acknowledgement" and verdict.at == 6
