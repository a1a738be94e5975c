"""Prints docs/counters.md: `python -m refmodel.observe.document > docs/counters.md`."""

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
name, and `_` in place of dots. `refmodel top DIR` shows rates while a server or a bench has the
disk open.

A counter starts at 0 when the disk is opened, and only grows. A gauge says what the disk holds now.
The counters add up: `tests/refmodel/observe/test_counters_add_up.py` checks the identities. Some
gauges need a walk over all maps, which takes time on a large disk.

In the kit's dialogue, `stats` answers with the counters since the disk was created, under flat
names. The labels follow the name (`operations.write`), and devices are added up
(`device.performance.writes.checkpoint`).
"""


def document() -> str:
    """The text of docs/counters.md."""
    parts = [HEAD]
    for heading, families in SECTIONS.items():
        parts += [f"## {heading}", "", "| counter | kind | unit | labels | meaning |"]
        parts += ["|---|---|---|---|---|", *map(_row, families), ""]
    parts += ["## Causes of device I/O", "", "| cause | the I/O was for |", "|---|---|"]
    parts += [f"| `{cause}` | {what} |" for cause, what in common.CAUSES.items()]
    return "\n".join([*parts, ""])


def _row(family: Family) -> str:
    labels = ", ".join(family.labels)
    walks = " (needs a walk over all maps)" if family.walks else ""
    cells = (f"`{family.name}`", family.kind, family.unit, labels, family.help + walks)
    return f"| {' | '.join(cells)} |"


if __name__ == "__main__":
    print(document(), end="")
