"""Crash states: none is missed, each can be replayed, and what is planted is found by them."""

import json
import random
from itertools import islice, product
from pathlib import Path
from typing import cast

import pytest
from click.testing import CliRunner, Result
from hypothesis import given
from hypothesis import strategies as st

from conformance.campaign.crashes.crash_states import SIZES, Explorer, Workload, workloads
from conformance.campaign.crashes.exhaustive_campaign import campaign
from conformance.campaign.driver import drive
from conformance.campaign.saved.resume_log import BadProgress, Progress
from conformance.cli import main
from conformance.judging.judge import judge
from conformance.judging.oracles import named
from conformance.media.overlay import Overlay
from conformance.media.subsets import FEW, subsets
from conformance.targets import resolve
from conformance.targets.reference import ReferenceTarget
from refmodel.media.device import Device

MODEL = {"model": named("model")}
MIRROR = tuple(sorted({**SIZES, "layout": "mirror"}.items()))
SECTOR = 512


@given(st.lists(st.integers(1, 8), max_size=12), st.integers(0, 99))
def test_subsets(sizes: list[int], seed: int) -> None:
    found = list(subsets(sizes, random.Random(seed)))
    whole = tuple((1 << size) - 1 for size in sizes)
    assert len(found) == len(set(found)) and tuple(0 for _ in sizes) in found and whole in found
    assert all(
        0 <= mask <= most for masks in found for mask, most in zip(masks, whole, strict=True)
    )
    if sum(sizes) <= FEW:
        assert len(found) == 1 << sum(sizes)
    elif len(sizes) <= FEW:
        assert set(product(*((0, mask) for mask in whole))) <= set(found)
    for write in range(len(sizes)):  # every prefix, and all but one
        assert whole[:write] + (0,) * (len(sizes) - write) in found
        assert whole[:write] + (0,) + whole[write + 1 :] in found
    torn = {
        write
        for masks in found
        for write, mask in enumerate(masks)
        if mask not in (0, whole[write])
    }
    assert torn == {write for write, size in enumerate(sizes) if size > 1}


class Blank:
    """A device of zeroes."""

    def __init__(self, name: str) -> None:
        self.name = name

    def read(self, offset: int, length: int) -> bytes:
        return bytes(length)

    def close(self) -> None:
        pass


STEPS = st.lists(st.tuples(st.sampled_from("ab"), st.sampled_from([None, 0, 0, 1])), max_size=6)


@given(STEPS)
def test_points_and_subsets_are_all_that_a_power_cut_may_leave(
    steps: list[tuple[str, int | None]],
) -> None:
    """Held to the definition: at any moment, what a device was given before its last flush, and any
    of the rest.
    """
    may = set()
    now: dict[str, tuple[dict[int, int], list[tuple[str, int, int]]]] = {
        name: ({}, []) for name in "ab"
    }  # what is certain, what is not

    def cut() -> None:
        kept = product(*((None, write) for name in "ab" for write in now[name][1]))
        for some in kept:
            left = {name: dict(now[name][0]) for name in "ab"}
            for name, at, what in filter(None, some):
                left[name][at] = what
            may.add(frozenset((name, at, what) for name in "ab" for at, what in left[name].items()))

    media = Overlay()
    devices = {name: media.feed(cast(Device, Blank(name))) for name in "ab"}
    for number, (name, at) in enumerate(steps, 1):
        if at is None:
            devices[name].flush()
            for _, place, what in now[name][1]:
                now[name][0][place] = what
            now[name][1].clear()
        else:
            devices[name].write(at * SECTOR, bytes([number]) * SECTOR)
            now[name][1].append((name, at, number))
        cut()
    found = set()
    for point in [*media.points, media.point()]:
        for masks in subsets([write.sectors for write in point.pending], random.Random(0)):
            found.add(
                frozenset((name, at, data[0]) for (name, at), data in point.left(masks).items())
            )
    assert found == may or not steps


def test_one_operation_and_replay() -> None:
    """Every crash state of some workloads passes; sent again to an engine on files, the dialogue is
    the same.
    """
    explorer = Explorer()
    for operations in (0,), (1,), (4,), (8,):
        explored = explorer.explore(Workload(MIRROR, "used", operations))
        assert explored.states > 10
        target = ReferenceTarget(dict(MIRROR))
        for trace in explored.traces.values():
            again = drive(target, trace.program, trace.seed)
            assert [event["result"] for event in again.events] == [
                event["result"] for event in trace.events
            ]
        assert all(
            verdict.verdict == "pass" for verdict in judge(list(explored.traces.values()), MODEL)
        )
        target.close()
    explorer.close()


@pytest.mark.parametrize(
    "bug", ["torn-record-accepted", "acknowledged-before-flush", "log-truncated-early"]
)
def test_planted_bugs_are_found(bug: str) -> None:
    result = campaign(
        resolve(f"refmodel:layout=mirror,plant={bug}"), longest=2, oracles=MODEL, most_failures=1
    )
    assert result.verdict == "fail" and result.failures[0].trace.operations <= 12


def test_the_set_of_workloads() -> None:
    names = [workload.name for workload in workloads({})]
    assert len(names) == len(set(names)) == 3 * 2 * (9 + 9**2 + 9**3)
    assert len(list(workloads({"layout": "mirror"}, 1))) == 2 * 2 * 9


def run(*words: object) -> Result:
    command = [
        "run",
        "--target",
        "refmodel:layout=mirror",
        "--crashes",
        "exhaustive",
        "--traces",
        "4",
        *map(str, words),
    ]
    return CliRunner().invoke(main, command)


def test_it_goes_on_where_it_was(tmp_path: Path) -> None:
    kept, found = tmp_path / "runs" / "kept.jsonl", tmp_path / "found.json"
    assert run("--resume", kept, "--json", found).exit_code == 0
    states = json.loads(found.read_text())["states"]
    assert states > 50 and len(kept.read_text().splitlines()) == 5
    kept.write_text(kept.read_text()[:-20])
    again = run("--resume", kept, "--json", found)
    assert again.exit_code == 0 and "3 of the workloads had passed before" in " ".join(
        again.output.split()
    )
    assert (
        json.loads(found.read_text())["states"] == states
        and len(kept.read_text().splitlines()) == 5
    )
    other = run("--resume", kept, "--ops", 2)
    assert other.exit_code == 2 and "of another campaign" in other.output
    kept.write_text(kept.read_text() + '{"workload": 7}\n')
    damaged = run("--resume", kept)
    assert (
        damaged.exit_code == 2
        and "nothing that was done" in damaged.output
        and "Traceback" not in damaged.output
    )


def test_a_workload_that_fails_is_done_again(tmp_path: Path) -> None:
    kept = tmp_path / "kept.jsonl"
    target = resolve("refmodel:layout=mirror,plant=torn-record-accepted")
    before = campaign(target, longest=1, oracles=MODEL, kept=kept)
    assert before.failures and len(list(islice(kept.open(), 99))) <= before.workloads
    assert campaign(target, longest=1, oracles=MODEL, kept=kept).failures


def test_progress_of_another_kind(tmp_path: Path) -> None:
    path = tmp_path / "p"
    path.write_bytes(b"\xff\xfe\x00")
    with pytest.raises(BadProgress, match="another campaign"):
        Progress(path, {}, str)
