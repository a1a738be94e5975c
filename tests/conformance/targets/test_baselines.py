"""Every engine of this project keeps the contract, alone and behind a read cache."""

import sys
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from conformance import targets
from conformance.campaign.crashes import exhaustive_campaign
from conformance.campaign.random_campaign import campaign
from conformance.contract.trace import Trace
from conformance.judging import oracles
from conformance.selftest import hunts
from refmodel.bugs import BUGS
from refmodel.registry import DEFAULT, ENGINES

JUDGES = {"model": oracles.named("model")}
BASELINES = [name for name in ENGINES if name != DEFAULT]
PROFILES = {name: "ack" if name.startswith("in-place") else "block" for name in BASELINES}


@pytest.mark.parametrize(
    "target", [*BASELINES, "redo-se:cache_bytes=8192", "in-place-raid5:cache_bytes=8192"]
)
def test_a_baseline_keeps_the_contract(target: str) -> None:
    result = campaign(
        targets.resolve(f"refmodel:{target}"), count=30, ops=30, seed=11, oracles=JUDGES
    )
    assert result.verdict == "pass", result.failures
    first = [trace for trace, _ in result.judged.values() if isinstance(trace, Trace)][:10]
    assert {trace.hello["crash_profile"] for trace in first} == {PROFILES[target.partition(":")[0]]}
    assert result.crashes > 30


def test_the_default_engine_behind_a_cache_keeps_the_contract() -> None:
    result = campaign(
        targets.resolve("refmodel:cache_bytes=16384"), count=40, ops=30, seed=12, oracles=JUDGES
    )
    assert result.verdict == "pass", result.failures
    assert result.counters["cache.blocks.hit"] > 0


@pytest.mark.parametrize(
    "options",
    [
        "--engine redo-vsan --block-bytes 512",
        "--engine in-place-raid6",
        "--engine redo-se --cache-bytes 65536",
    ],
)
def test_the_adapter_of_an_engine_as_a_process(options: str) -> None:
    factory = targets.resolve(f"exec:{sys.executable} -m refmodel adapter {options}")
    result = campaign(factory, count=6, ops=30, seed=13, oracles=JUDGES)
    assert result.verdict == "pass", (result.reason, result.failures)


IN_FLIGHT = "flush-joins-earlier"  # test_overlapping_engine finds it


@pytest.mark.parametrize("bug", [name for name in BUGS if BUGS[name].needs and name != IN_FLIGHT])
def test_what_is_planted_in_a_baseline_is_found(bug: str) -> None:
    """With one of two seeds: what takes hundreds of traces on the average may take a thousand."""
    assert any(
        hunts.hunt(bug, ("model",), traces=1000, ops=30, seed=seed).found == ["model"]
        for seed in (1, 2)
    )


@pytest.mark.parametrize("engine", ["redo-se", "redo-se:cache_bytes=4096"])
def test_every_crash_state_of_every_short_workload_of_a_chain(engine: str) -> None:
    result = exhaustive_campaign.campaign(
        targets.resolve(f"refmodel:{engine}"), longest=2, oracles=JUDGES
    )
    assert result.verdict == "pass", result.failures
    assert len(result.judged) > 300


def test_an_entry_that_counts_before_its_data_is_found_in_a_crash_state() -> None:
    result = exhaustive_campaign.campaign(
        targets.resolve("refmodel:redo-se:plant=entry-before-data"), longest=2, oracles=JUDGES
    )
    assert result.verdict == "fail"


def test_an_engine_that_does_not_exist() -> None:
    with pytest.raises(targets.NoSuchTarget, match="there is no engine 'zfs'"):
        targets.resolve("refmodel:zfs")


def test_commands_that_an_engine_lacks_say_so(tmp_path: Path) -> None:
    from refmodel.cli import main

    def run(*arguments: str) -> Result:
        return CliRunner().invoke(main, list(arguments))

    folder = str(tmp_path / "d")
    refused = run("create", folder, "--engine", "redo-se", "--blocks", "64", "--layout", "mirror")
    assert refused.exit_code == 2 and "no option --layout" in refused.output
    assert run("create", folder, "--engine", "redo-vmfs", "--blocks", "64").exit_code == 0
    assert run("write", folder, "3", "--text", "hello").exit_code == 0
    assert run("snapshot", folder, "s").exit_code == 0
    assert run("read", folder, "3", "--view", "s").output.startswith("hello")
    assert run("stats", folder).exit_code == 0
    assert run("scrub", folder).exit_code == 0
    for command in (
        ["unmap", folder, "3"],
        ["inspect", folder],
        ["status", folder],
        ["fail", folder, "0"],
        ["migrate", folder],
    ):
        done = run(*command)
        assert done.exit_code == 2 and done.output.startswith("refmodel: unsupported: "), command
