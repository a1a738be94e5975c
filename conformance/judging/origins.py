"""The origin of data: who wrote it, what a block held over time, which snapshots hold it."""

from collections.abc import Sequence

from conformance.contract import model
from conformance.contract.trace import Event, Trace, line


def allowed(states: Sequence[model.State], view: str | None, lba: int) -> frozenset[int]:
    """Return the tags that a block of the view may hold in any of the states."""
    tags: frozenset[int] = frozenset()
    for state in states:
        if view is None or view in state.snaps:
            blocks = state.live if view is None else state.snaps[view]
            tags |= model.possible(blocks.get(lba, model.ZERO), state.bound)
    return tags


def never_together(
    states: Sequence[model.State], view: str | None, blocks: Sequence[tuple[int, int]]
) -> list[tuple[int, int]]:
    """Return some of these blocks, as LBA and tag, that no state has together.

    Each by itself is in some state. None of those returned can be left out. Returns all of them if
    the reason is another one.
    """
    holding = {
        block: {i for i, state in enumerate(states) if block[1] in allowed([state], view, block[0])}
        for block in blocks
    }
    chosen: list[tuple[int, int]] = []
    left = set(range(len(states)))
    while left:
        block = min(blocks, key=lambda one: len(left & holding[one]))
        if left <= holding[block]:
            return list(blocks)
        chosen.append(block)
        left &= holding[block]
    for block in list(chosen):
        rest = [holding[one] for one in chosen if one != block]
        if rest and not set.intersection(*rest):
            chosen.remove(block)
    return sorted(chosen)


def history_of(trace: Trace, at: int, lba: int) -> list[tuple[int, frozenset[int]]]:
    """Return the changes of the live block: the index of the event, the tags possible since."""
    states = model.init(trace.hello)
    history: list[tuple[int, frozenset[int]]] = []
    for index, event in enumerate(trace.events[:at]):
        states = model.step(states, event)
        tags = allowed(states, None, lba)
        if not history or tags != history[-1][1] and event["op"] not in ("read", "crash"):
            history.append((index, tags))
    return history


def writers_of(trace: Trace, at: int, tag: int) -> list[tuple[int, Event]]:
    """Return the writes of a tag before event `at`, with their indices."""
    return [
        (index, event)
        for index, event in enumerate(trace.events[:at])
        if event["op"] == "write" and tag in event["tags"]
    ]


def covers(event: Event, lba: int) -> bool:
    """Return whether a write has the block."""
    return bool(event["lba"] <= lba < event["lba"] + len(event["tags"]))


def meaning_of(trace: Trace, at: int, lba: int, tag: int) -> str:
    """Return a tag that was allowed, and who wrote it."""
    if tag == model.ZERO:
        unmapped = [
            index
            for index, event in enumerate(trace.events[:at])
            if event["op"] == "unmap"
            and event["lba"] <= lba < event["lba"] + event["count"]
            and model.answer_of(event) == "ok"
        ]
        return f"zeroes (unmapped by operation {unmapped[-1]})" if unmapped else "zeroes"
    writers = [index for index, event in writers_of(trace, at, tag) if covers(event, lba)]
    return f"tag {tag} (written by operation {writers[-1]})" if writers else f"tag {tag}"


def origins_of(trace: Trace, at: int, lba: int, tag: int) -> str:
    """Return in words which operations wrote a tag, and which snapshots hold it."""
    if tag == model.ZERO:
        meaning = meaning_of(trace, at, lba, tag)
        return "never written, or unmapped" if meaning == "zeroes" else meaning
    writers = writers_of(trace, at, tag)
    if not writers:
        return f"tag {tag}: no operation of this trace wrote it"
    here = [w for w in writers if covers(w[1], lba)] or writers
    text = "; ".join(f"operation {index}: {line(event)}" for index, event in here[-3:])
    states = model.init(trace.hello)
    for event in trace.events[:at]:
        states = model.step(states, event)
    holding = sorted(
        {name for state in states for name in state.snaps if tag in allowed([state], name, lba)}
    )
    return text + (f" (snapshot {', '.join(holding)} holds it)" if holding else "")
