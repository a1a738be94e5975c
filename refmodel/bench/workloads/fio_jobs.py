"""Writes the workload profiles as job files for fio.

`python -m refmodel.bench.workloads.fio_jobs FOLDER` writes them into a folder.

`URI=... fio FILE` runs a job file on any NBD server. A phase is a job that waits for the one before
it (`stonewall`). fio takes no snapshots and fails no devices: a comment says where that is due.
"""

import sys
import textwrap
from itertools import groupby
from pathlib import Path

from refmodel.bench.workloads.profiles import PROFILES
from refmodel.bench.workloads.workload import BLOCK, DISK, Access, Phase, Profile

IOPS = 10_000  # a rate in percent is a share of it; the first phase shows what a server can do
CLIENTS = 8  # clients that share a constant rate


def job_file(name: str) -> str:
    """Return the job file of a profile. Raises KeyError if there is no such profile."""
    profile = PROFILES[name]
    head = [
        *_comment(f"{name}: {profile.what}"),
        *_comment(f"Taken from {profile.published}" if profile.published else "Our own"),
        *_comment("refmodel/bench/workloads/fio_jobs.py has written this file."),
        *_comment("Set URI to that of a server, for example to nbd+unix:///?socket=PATH"),
        "[global]",
        "ioengine=nbd",
        "uri=${URI}",
        "group_reporting=1",
        "randseed=1",
        "norandommap=1",
        f"filesize={DISK * BLOCK}",
    ]
    rated = any(phase.rate for phase in profile.phases)
    if rated:
        head += [
            f"# A rate is a share of {IOPS:,} IOPS; {CLIENTS} clients share it.",
            "# Requests are sent when they are due, even if earlier ones were not answered:",
            "# so a stall of the server counts for every request that it delays.",
            "io_submit_mode=offload",
        ]
    jobs = [
        line for number, phase in enumerate(profile.phases) for line in _job(profile, phase, number)
    ]
    return "\n".join([*head, *jobs]) + "\n"


def _comment(text: str) -> list[str]:
    """Return a comment in lines of at most 100 columns."""
    return textwrap.wrap(text, 100, initial_indent="# ", subsequent_indent="# ")


def _job(profile: Profile, phase: Phase, number: int) -> list[str]:
    access = phase.access or profile.access
    operations = max(1, round(phase.length * profile.unit))
    lines = [""]
    for action, times in groupby(phase.actions):
        count = len(list(times))
        lines.append(
            f"# To be done here, by other means: {action}"
            + (f", {count} times, spread over the phase" if count > 1 else "")
        )
    lines += [f"[{phase.name}]", "stonewall"] if number else [f"[{phase.name}]"]
    lines += [*kind(access), f"bs={access.blocks * BLOCK >> 10}k"]
    if access.span < 1:
        lines.append(f"size={int(DISK * access.span) // access.blocks * access.blocks * BLOCK}")
    if phase.rate:
        clients = [
            f"numjobs={CLIENTS}",
            f"rate_iops={round(IOPS * phase.rate / CLIENTS)}",
            "iodepth=64",
        ]
        lines += [*clients, f"io_size={max(1, operations // CLIENTS) * access.blocks * BLOCK}"]
    else:
        lines += [f"iodepth={access.in_flight}", f"io_size={operations * access.blocks * BLOCK}"]
    return lines


def kind(access: Access) -> list[str]:
    """Return the lines of a job file that say what requests are drawn from."""
    words = {0.0: ("write", "randwrite"), 1.0: ("read", "randread")}.get(
        access.reads, ("rw", "randrw")
    )
    lines = [f"rw={words[access.random > 0]}"]
    if 0 < access.reads < 1:
        lines.append(f"rwmixread={round(100 * access.reads)}")
    if 0 < access.random < 1:
        lines.append(f"percentage_random={round(100 * access.random)}")
    if access.skew:
        lines.append(f"random_distribution=zipf:{access.skew:g}")
    return lines


if __name__ == "__main__":
    folder = Path(sys.argv[1])
    folder.mkdir(exist_ok=True)
    for name in PROFILES:
        (folder / f"{name}.fio").write_text(job_file(name))
