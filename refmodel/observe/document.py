"""Prints docs/counters.md: `python -m refmodel.observe.document > docs/counters.md`."""

from refmodel.core.time_spent import PARTS
from refmodel.observe.families import baselines, common, log_structured
from refmodel.observe.families.family import Family

SECTIONS = {
    "Every disk": common.FAMILIES,
    "The log-structured engine": log_structured.FAMILIES,
    "Redo-log chains": baselines.REDO_LOG,
    "In-place arrays": baselines.IN_PLACE,
    "A read cache in front of any engine": baselines.CACHE,
}

HEAD = """# Counters of the engines

`python -m refmodel.observe.document` prints this file. A test compares the two.

`refmodel stats DIR` prints the counters as a table. With `--json` it prints one JSON object, in
which a histogram is a list of buckets (upper bound, number of values at or below it). With
`--openmetrics` it prints OpenMetrics text, as Prometheus reads it: `refmodel_` stands before each
name, and `_` in place of dots; a histogram has the same buckets in every scrape there, whose bounds
are powers of 2 (of nanoseconds for a time). `refmodel top DIR` shows rates while a server or a
bench has the disk open.

A counter starts at 0 when the disk is opened, and only grows. `counters.since` (in OpenMetrics
`_created` of each counter) is that moment, in seconds of Unix time; the table begins with it. A
server that had to open its disk again counts from then. A gauge says what the disk holds now.
The counters add up: `tests/refmodel/observe/test_counters_add_up.py` checks the identities. Some
gauges need a walk over all maps, which takes time on a large disk.

In the kit's dialogue, `stats` answers with the counters since the disk was created, under flat
names. The labels follow the name (`operations.write`), and devices are added up
(`device.performance.writes.checkpoint`).
"""

WAITS = """## What a request waits for

A server does everything in one thread. So a request waits, from its arrival to its answer, for all
that the thread does meanwhile: for this request, for its group, for others. The parts add up to
the latency. A breakdown shows them for p50, p90, p99 and p99.9, as means of the requests whose
latency is within 6 % of the percentile, with the requests that were in flight and in the group. In
OpenMetrics, `refmodel_serving_latency_part_seconds_total` has the sums, and
`refmodel_serving_latency_percentile_part_seconds` the percentiles. What a client sees above that is
the time in the socket: a request arrives when the server receives it, between two groups.

If several parts apply, the last one in this table counts.
"""


def document() -> str:
    """Return the text of docs/counters.md."""
    parts = [HEAD]
    for heading, families in SECTIONS.items():
        parts += [f"## {heading}", "", "| counter | kind | unit | labels | meaning |"]
        parts += ["|---|---|---|---|---|", *map(_row, families), ""]
    parts += [WAITS, "| part | the request waited for |", "|---|---|"]
    parts += [f"| `{part}` | {what} |" for part, what in PARTS.items()]
    parts += ["", "## Causes of device I/O", "", "| cause | the I/O was for |", "|---|---|"]
    parts += [f"| `{cause}` | {what} |" for cause, what in common.CAUSES.items()]
    return "\n".join([*parts, ""])


def _row(family: Family) -> str:
    labels = ", ".join(family.labels)
    walks = " (needs a walk over all maps)" if family.walks else ""
    cells = (f"`{family.name}`", family.kind, family.unit, labels, family.help + walks)
    return f"| {' | '.join(cells)} |"


if __name__ == "__main__":
    print(document(), end="")
