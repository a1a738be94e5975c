"""A failing trace as a picture: the allowed contents of blocks over time, and the wrong read.

This module computes the geometry; picture.svg.j2 draws it. A column is an operation, a band of rows
is a view (the live disk or a snapshot), and a row is a block. The colour of a cell stands for the
value that the contract allows; several colours mean that any of these values is allowed. A cell is
strong where the operation changed it. A ring is what a read returned; it is red if that is wrong.
"""

import re
from dataclasses import dataclass, field
from typing import Any

from conformance.contract import model
from conformance.contract.trace import Event, Trace, line
from conformance.judging.explain import Verdict, allowed

WIDTH, HEIGHT = 68, 26  # pixels of a cell
LEFT, TOP, GAP = 100, 72, 32  # pixels: of the labels, above the first band, between two bands
MOST_ROWS = 12
MOST_CELLS = 8000  # cells of a picture: browsers get slow with more
MOST_TAGS = 4  # allowed tags that a cell shows
LIVE = "live"


@dataclass(frozen=True)
class Cell:
    """The contents that the contract allows for a block of a view after an operation."""

    x: int
    y: int
    parts: list[tuple[float, float, str]]  # x, width and colour of each value
    label: str
    changed: bool
    title: str


@dataclass(frozen=True)
class Ring:
    """The content that a read returned (`kind` read or wrong), or that a cut write had."""

    x: int
    y: int
    colour: str
    label: str
    kind: str
    title: str


@dataclass(frozen=True)
class Column:
    """An operation: its number, name and view, its answer if that is not ok, and its mark."""

    x: int
    number: int
    op: str
    about: str
    answer: str
    mark: str  # "", crash, restart, cut, flush or failed
    title: str


@dataclass(frozen=True)
class Band:
    """The rows of a view: LBA -> y."""

    view: str
    y: int
    height: int
    rows: dict[int, int]


@dataclass
class Picture:
    """Everything to draw, in pixels."""

    width: int
    height: int = 0
    columns: list[Column] = field(default_factory=list)
    bands: list[Band] = field(default_factory=list)
    cells: list[Cell] = field(default_factory=list)
    rings: list[Ring] = field(default_factory=list)
    arrow: tuple[float, float, float, float] | None = None  # from the write of the wrong data
    left_out: str = ""


def picture(trace: Trace, verdict: Verdict) -> Picture:
    """Return the picture of the trace up to the operation that failed."""
    last = len(trace.events) - 1 if verdict.at is None else verdict.at
    rows = _rows(trace, last, verdict)
    histories = _histories(trace, last, rows)
    first = max(0, last + 1 - MOST_CELLS // (len(rows) * len(histories)))
    drawn = Picture(width=(last + 1 - first) * WIDTH + 8)
    places = _places(drawn, histories, rows)
    for index in range(first, last + 1):
        x, event = (index - first) * WIDTH, trace.events[index]
        drawn.columns.append(_column(event, index, x, index == last))
        for view, history in histories.items():
            for lba, tags in history[index].items():
                changed = index == 0 or history[index - 1].get(lba) != tags
                drawn.cells.append(
                    _cell(x, places[view][lba], view, lba, tags, changed and index < last)
                )
        known = histories if index == last or not trace.overlapping else {}
        drawn.rings += _rings(event, x, places, known, index)
    _arrow(drawn, trace, verdict, first, last)
    hidden = trace.events[0]["blocks"] - len(rows)
    left_out = [f"{hidden} block{'s' * (hidden != 1)}"] if hidden > 0 else []
    left_out += [f"the first {first} operations"] if first else []
    unknown = next((at for at, blocks in enumerate(histories[LIVE]) if not blocks), None)
    if unknown is not None:
        left_out.append(f"what blocks may hold from operation {unknown} on, as requests overlap")
    drawn.left_out = " and ".join(left_out)
    return drawn


def _rows(trace: Trace, last: int, verdict: Verdict) -> list[int]:
    """Return the blocks to show: the wrong one, then those that were changed most recently."""
    size = trace.events[0]["blocks"]
    found = dict.fromkeys(int(number) for number in re.findall(r"block (\d+) of", verdict.expected))
    for event in reversed(trace.events[: last + 1]):
        if event["op"] in ("write", "unmap"):
            found |= dict.fromkeys(_range(event))
    fitting = [lba for lba in found if lba < size]
    return sorted(fitting[:MOST_ROWS] or range(min(size, 4)))


def _range(event: Event) -> range:
    return range(
        event["lba"],
        event["lba"] + (len(event["tags"]) if event["op"] == "write" else event["count"]),
    )


def _histories(trace: Trace, last: int, rows: list[int]) -> dict[str, list[dict[int, list[int]]]]:
    """View -> what each block may hold after each operation; empty while there is no view, and from
    where requests that overlap did not take effect in the order of their calls.
    """
    histories: dict[str, list[dict[int, list[int]]]] = {LIVE: []}
    states = model.init(trace.hello)
    for index, event in enumerate(trace.events[: last + 1]):
        if index < last:
            states = model.step(states, event)
        if not states:
            break
        names = {name for state in states for name in state.snaps}
        for view in [LIVE, *sorted(names)]:
            history = histories.setdefault(view, [])
            history += [{}] * (index - len(history))
            history.append(
                {lba: sorted(allowed(states, None if view == LIVE else view, lba)) for lba in rows}
            )
    for history in histories.values():
        history += [{}] * (last + 1 - len(history))
    return histories


def _places(
    drawn: Picture, histories: dict[str, Any], rows: list[int]
) -> dict[str, dict[int, int]]:
    """Return where each block of each view is drawn; sets the bands and the height."""
    places, y = {}, TOP
    for view in histories:
        places[view] = {lba: y + number * HEIGHT for number, lba in enumerate(rows)}
        drawn.bands.append(Band(view, y, len(rows) * HEIGHT, places[view]))
        y += len(rows) * HEIGHT + GAP
    drawn.height = y - GAP + 8
    return places


def _column(event: Event, index: int, x: int, failed: bool) -> Column:
    answer = event["failure"]["kind"] if "failure" in event else model.answer_of(event)
    mark = (
        "failed" if failed else event["op"] if event["op"] in ("crash", "flush", "restart") else ""
    )
    if answer == "cut":
        answer, mark = "power cut", "cut"
    about = event.get("name") or event.get("view") or ""
    return Column(
        x, index, event["op"], about[:9], "" if answer == "ok" else answer, mark, line(event)
    )


def _cell(x: int, y: int, view: str, lba: int, tags: list[int], changed: bool) -> Cell:
    width = WIDTH / len(tags[:MOST_TAGS])
    parts = [
        (x + number * width, width, colour(tag)) for number, tag in enumerate(tags[:MOST_TAGS])
    ]
    shown = [str(tag) if tag else "0" for tag in tags]
    label = "|".join(shown) if len(tags) <= MOST_TAGS else f"{len(tags)} values"
    return Cell(x, y, parts, label, changed, f"block {lba} of {view}: {' or '.join(shown)}")


def _rings(
    event: Event, x: int, places: dict[str, dict[int, int]], histories: dict[str, Any], index: int
) -> list[Ring]:
    """Return rings for what a read returned, or for the data of a write that was cut short.

    Without `histories` it is not known whether a read is wrong."""
    result, rings = event.get("result"), []
    if event["op"] == "write" and result is None:
        for lba, tag in zip(_range(event), event["tags"], strict=True):
            if lba in places[LIVE]:
                rings.append(
                    Ring(
                        x,
                        places[LIVE][lba],
                        colour(tag),
                        str(tag),
                        "flight",
                        f"tag {tag} was in flight",
                    )
                )
    if event["op"] != "read" or not result or not result["ok"]:
        return rings
    view = event.get("view") or LIVE
    found = {one["lba"]: f"{one['kind']}: {one['detail']}" for one in result.get("found", ())}
    for lba, tag in zip(_range(event), result["tags"], strict=True):
        if lba in places.get(view, ()):
            wrong = histories and tag not in histories[view][index].get(lba, ())
            kind = "wrong" if wrong else "read"
            detail = found.get(lba, f"tag {tag}")
            held = re.search(r"tag (\d+)", detail)
            shown = (held[1] if tag != -1 else f"{held[1]}?") if held else "?"
            rings.append(
                Ring(
                    x,
                    places[view][lba],
                    colour(int(held[1]) if held else tag),
                    shown,
                    kind,
                    f"block {lba} of {view} read as {detail}",
                )
            )
    return rings


def _arrow(drawn: Picture, trace: Trace, verdict: Verdict, first: int, last: int) -> None:
    """Draw an arrow from the operation that the wrong data came from to where it was read."""
    wrong = next((ring for ring in drawn.rings if ring.kind == "wrong"), None)
    written = re.search(r"operation (\d+)", verdict.source) or re.search(
        r"operation (\d+)", verdict.actual
    )
    if wrong is None or written is None or not first <= int(written[1]) < last:
        return
    event, live = trace.events[int(written[1])], drawn.bands[0].rows
    shown = [lba for lba in _range(event) if lba in live] if "lba" in event else []
    tags = trace.events[last]["result"]["tags"]
    same = [
        lba for lba in shown if event["op"] == "write" and event["tags"][lba - event["lba"]] in tags
    ]
    if shown:
        x = (int(written[1]) - first) * WIDTH
        drawn.arrow = (
            x + WIDTH * 0.8,
            live[(same or shown)[0]] + HEIGHT * 0.7,
            wrong.x + 3,
            wrong.y + HEIGHT / 2,
        )


def colour(tag: int) -> str:
    """Return a colour for a tag: white for zeroes, grey for foreign data, else hues far apart."""
    if tag <= 0:
        return "#ffffff" if tag == 0 else "#9a9a9a"
    return f"hsl({tag * 137.5 % 360:.0f} 70% 72%)"
