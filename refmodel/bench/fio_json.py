"""The latencies of a run as jobs of fio's `json+`, which `fio_jsonplus_clat2csv` reads."""

from collections import Counter
from typing import Any

from refmodel.bench.clients import Window
from refmodel.bench.results import Result
from refmodel.bench.workloads.workload import Request

DIGITS = 7  # binary digits of a latency that are kept, as in fio


def jobs(result: Result) -> list[dict[str, Any]]:
    """Return a job for each phase of a run."""
    return [job(part.name, part.windows, part.requests) for part in result.phases]


def job(phase: str, windows: list[Window], requests: list[Request]) -> dict[str, Any]:
    """Return a job: for reads and for writes, the number of requests by latency (nanoseconds)."""
    bins: dict[str, Counter[int]] = {"read": Counter(), "write": Counter()}
    at = 0
    for window in windows:
        end = at + window.operations
        for latency in window.latencies:
            together = requests[at : min(end, at + window.batch)]
            for request in together:
                bins["read" if request.read else "write"][_rounded(round(1e9 * latency))] += 1
            at += len(together)
    directions = {name: _direction(counts) for name, counts in bins.items()}
    return {"jobname": phase, **directions, "trim": {"total_ios": 0}}


def _direction(counts: Counter[int]) -> dict[str, Any]:
    if not counts:
        return {"total_ios": 0}
    bins = {str(nanoseconds): count for nanoseconds, count in sorted(counts.items())}
    return {"total_ios": counts.total(), "clat_ns": {"bins": bins}}


def _rounded(nanoseconds: int) -> int:
    """Return the number with its first binary digits, and zeroes behind them."""
    shift = max(0, nanoseconds.bit_length() - DIGITS)
    return nanoseconds >> shift << shift
