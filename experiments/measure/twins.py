"""Compares a phase with its twin: the same operations on a disk without snapshots.

What operations wait for must be the same, to the byte. The number of device I/Os alone differs by a
few in a thousand: a block that is still in the bank is read from there, and neighbouring blocks are
read in one I/O. Which blocks these are depends on what a snapshot holds. So reads are compared by
the bytes that they fetch, from devices or from the bank. Writes, which go to the durable log, are
compared by their I/Os and their bytes. Anything that a snapshot adds would show: a map that is
read, a layer, a copy.
"""

from typing import NamedTuple

from refmodel.bench.results import Measured, Part, Result

CAUSE = "foreground"
MIRRORS = 3  # largest number of mirrors of the log


class Waited(NamedTuple):
    """The parts of the time that the operations of a run or a phase waited."""

    writes: int
    bytes_written: int
    bytes_read: int  # bytes read from devices or from the bank


def waited(measured: Measured) -> Waited:
    """Return the foreground I/O of a run or of a phase."""
    done = measured.devices
    return Waited(
        done.writes[CAUSE],
        done.bytes_written[CAUSE],
        done.bytes_read[CAUSE] + done.from_memory[CAUSE],
    )


def same(measured: Measured, twin: Measured) -> bool:
    """Return whether both waited for the same.

    One more write per mirror is allowed: a record that wraps around the end of the log's ring.
    """
    one, other = waited(measured), waited(twin)
    return one[1:] == other[1:] and abs(one.writes - other.writes) <= MIRRORS


def alike(part: Part, twin: Part) -> bool:
    """Return whether both waited for the same, and read only the bytes that users asked for."""
    return same(part, twin) and waited(part).bytes_read == part.user_bytes - part.user_bytes_written


def ratios(result: Result, control: Result, *names: str) -> str:
    """Return the ratios of with to without snapshots, as text: a range over some or all phases."""
    pairs = [(result.part(name), control.part(name)) for name in names or result.requests]
    what = (
        "the device writes",
        "the bytes written",
        "the bytes read, from devices or from the bank",
    )
    found = [
        [_ratio(one, other) for one, other in zip(waited(part), waited(twin), strict=True)]
        for part, twin in pairs
    ]
    words = [
        f"{_range(values)} times {name}"
        for name, values in zip(what, zip(*found, strict=True), strict=True)
    ]
    ios = _range([part.foreground / twin.foreground for part, twin in pairs])
    return f"{', '.join(words)}; {ios} times the device I/Os, of which the bank saves some"


def _ratio(one: int, other: int) -> float:
    return one / other if other else 1.0 + one


def _range(values: list[float] | tuple[float, ...]) -> str:
    low, high = f"{min(values):.3f}", f"{max(values):.3f}"
    return low if low == high else f"{low} to {high}"
