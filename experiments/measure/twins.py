"""A phase and its twin: the same operations on a disk on which no snapshot was taken. What they
waited for has to be the same, to the byte.

Device I/Os alone differ by a few in a thousand: a block is read from the bank if it waits there to
be destaged, and blocks that lie side by side are read in one I/O; what waits and what lies where
depends on what a snapshot keeps. So reads are compared by what they fetched, from devices or from
the bank, and writes, which are those of the durable log, by their I/Os and their bytes. Anything
that a snapshot added would show: a map that is read, a layer, a copy.
"""

from typing import NamedTuple

from refmodel.bench.results import Measured, Part, Result

CAUSE = "foreground"
MIRRORS = 3  # of the log, at most


class Waited(NamedTuple):
    """What the operations of a run, or of a phase, waited for."""

    writes: int
    bytes_written: int
    bytes_read: int  # from devices, or from the bank


def waited(measured: Measured) -> Waited:
    done = measured.devices
    return Waited(
        done.writes[CAUSE],
        done.bytes_written[CAUSE],
        done.bytes_read[CAUSE] + done.from_memory[CAUSE],
    )


def same(measured: Measured, twin: Measured) -> bool:
    """Whether both waited for the same; but for one write more to each mirror, where a record lies
    across the end of the log's ring.
    """
    one, other = waited(measured), waited(twin)
    return one[1:] == other[1:] and abs(one.writes - other.writes) <= MIRRORS


def alike(part: Part, twin: Part) -> bool:
    """Whether both waited for the same, and what was read is what users asked for and not a byte
    more.
    """
    return same(part, twin) and waited(part).bytes_read == part.user_bytes - part.user_bytes_written


def ratios(result: Result, control: Result, *names: str) -> str:
    """In words, of some phases or of all: a range over them."""
    pairs = [(result.part(name), control.part(name)) for name in names or result.requests]
    what = (
        "the device writes",
        "the bytes written",
        "the bytes read, from devices or from the bank",
    )
    found = [
        [_ratio(one, other) for one, other in zip(waited(part), waited(twin))]
        for part, twin in pairs
    ]
    words = [f"{_range(values)} times {name}" for name, values in zip(what, zip(*found))]
    ios = _range([part.foreground / twin.foreground for part, twin in pairs])
    return f"{', '.join(words)}; of the device I/Os, of which the bank spares some, {ios} times"


def _ratio(one: int, other: int) -> float:
    return one / other if other else 1.0 + one


def _range(values: list[float] | tuple[float, ...]) -> str:
    low, high = f"{min(values):.3f}", f"{max(values):.3f}"
    return low if low == high else f"{low} to {high}"
