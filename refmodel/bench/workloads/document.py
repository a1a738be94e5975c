"""Prints docs/workloads.md: `python -m refmodel.bench.workloads.document > docs/workloads.md`."""

import textwrap
from itertools import groupby

from refmodel.bench.workloads.profiles import PROFILES
from refmodel.bench.workloads.workload import Phase, Profile

MOST_PHASES = 12  # a longer list of phases is shortened

HEAD = """# Workloads

`python -m refmodel.bench.workloads.document` prints this file. A test compares the two.

`refmodel bench --profile NAME` fills a new disk and runs a profile on it. `--engine` chooses
another engine than the log-structured one. [workloads/](../workloads) has the same profiles as job
files for fio, which run on any NBD server:

    URI='nbd+unix:///?socket=PATH' fio workloads/NAME.fio

fio takes no snapshots and fails no devices. If a profile does, a comment in its job file says so.

## What a run does

- **Scale.** At scale 1 the disk has 64 MiB, and a run has the number of operations given below.
  `--scale` multiplies both. A published measurement used terabytes and minutes: a run reproduces
  the shape of its result, not its figures.
- **Seed.** The same seed gives the same operations in the same order. Each run prints a digest of
  them.
- **Closed loop.** In a phase without a rate, clients send as many requests as may be in flight.
  When all are answered, they send the next ones.
- **Constant rate.** A rate of 25 % is a quarter of what the first phase could do. Requests arrive
  at that rate, whatever the disk does. The latency of a request counts from the moment at which it
  was due. So a stall counts for every request that it delays (no coordinated omission).
- **Time** is wall-clock time, and CPU time per operation stands beside it. `--clock processor`
  measures rates and latencies by CPU time: other work on the machine does not change it, and it
  contains no waiting. `--sync` waits for the medium at every flush.
- **Snapshots.** With `--snapshots N` the disk has N snapshots before the run, with writes between
  them.

## What it prints

A table with a row per phase, and one with a row per cause of device I/O. The header lines name the
columns and their units. *Foreground* device I/Os are those that an operation waits for; all others
are *background*. [counters.md](counters.md) lists the causes. Flushes are not counted: they move no
data.

`--json FILE` writes one JSON object per line and run. FILE is written whole at the end; after
Ctrl-C it has the runs that were complete. Of the profiles `cleaning`, `steady` and `scale` it has a
line per row of their tables, with the fields of the row; `table` says which table of `scale`. Of
each run it has:

| field | meaning |
|---|---|
| `profile`, `engine`, `layout`, `snapshots`, `cache_bytes` | what was run |
| `scale`, `blocks`, `seed` | scale, size of the disk in blocks, seed |
| `digest` | digest of the operations |
| `clock` | `processor` (CPU seconds) or `wall` |
| `operations`, `seconds`, `iops`, `bw_bytes` | operations, time, operations and bytes per second |
| `cpu_ns_per_io` | CPU time per operation in nanoseconds |
| `clat_ns` | `percentile`: the latency in nanoseconds, as in fio's JSON |
| `foreground_device_ios` | device I/Os that operations waited for |
| `device_ios_by_cause`, `device_bytes_by_cause` | reads and writes of devices, by cause |
| `device_bytes_written_by_cause` | writes of devices, by cause |
| `user_bytes` | bytes that clients read and wrote |
| `phases` | the same fields for each phase |
| `jobs` | for each phase, the latencies of reads and of writes, as a job of fio's `json+` |
| `actions` | name, time and device I/Os of each action |
| `reduction_ratio` | with data reduction: blocks per block of space that they take |
| `ratio_to_peers` | with `--compare`: rate of the engine, divided by that of each peer |

## The profiles

Each entry says what clients do, what a request is, the phases (with the rate, if it is constant),
the number of operations at scale 1, and the layout of the capacity leg.
"""


def document() -> str:
    """Return the text of docs/workloads.md."""
    parts = [HEAD]
    for published, profiles in groupby(PROFILES.items(), lambda item: item[1].published):
        parts.append(_wrapped(f"**Taken from {published}.**" if published else "**Our own.**"))
        parts += [_entry(name, profile) for name, profile in profiles]
        parts.append("")
    return "\n".join(parts)


def _entry(name: str, profile: Profile) -> str:
    phases = list(dict.fromkeys(map(_shown, profile.phases)))
    if len(phases) > MOST_PHASES:
        phases = [*phases[:2], "...", *phases[-2:]]
    operations = f"{round(profile.length * profile.unit):,} operations"
    text = f"- `{name}`: {profile.what}. Requests: {profile.access}. "
    if len(profile.phases) > 1:
        text += f"Phases: {', '.join(phases)}. "
    return _wrapped(f"{text}{operations}; layout {profile.layout}.", "  ")


def _shown(phase: Phase) -> str:
    if not phase.rate or phase.name == f"{100 * phase.rate:.0f} %":
        return phase.name
    return f"{phase.name} ({100 * phase.rate:.0f} %)"


def _wrapped(text: str, indent: str = "") -> str:
    if not indent:
        text += "\n"
    lines = textwrap.wrap(text, 100, subsequent_indent=indent, break_on_hyphens=False)
    return "\n".join(lines) + ("" if indent else "\n")


if __name__ == "__main__":
    print(document(), end="")
