"""How fast the certified checker judges histories of requests that overlap.

python proofs/overlap_speed.py [HISTORIES] [OPERATIONS]

For each crash profile and granularity: CPU time per history, and how many it left undecided.
The histories are of generated programs with up to 8 requests in flight."""

import resource
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

from conformance.contract import trace as traces
from conformance.judging.oracles import certified
from conformance.selftest.overlapping_model import generated

IN_FLIGHT = 8


def main(histories: int = 100, operations: int = 1000) -> None:
    print("| profile | atomic | s, p50 | s, p95 | s, most | undecided |")
    print("|---|---|--:|--:|--:|--:|")
    for profile in ("ack", "prefix", "block"):
        for atomic in ("request", "block"):
            seconds, undecided = [], 0
            for seed in range(histories):
                trace = generated(seed, operations, profile, atomic, IN_FLIGHT)
                spent, verdict = judged(trace)
                if verdict["accepted"] is False:
                    raise SystemExit(f"an honest history is rejected: {profile} {atomic} {seed}")
                seconds.append(spent)
                undecided += verdict["accepted"] is None
            seconds.sort()
            figures = [seconds[len(seconds) * share // 100] for share in (50, 95)] + seconds[-1:]
            shown = " | ".join(f"{figure:.3f}" for figure in figures)
            print(f"| {profile} | {atomic} | {shown} | {undecided} of {histories} |", flush=True)


def judged(trace: traces.Trace) -> tuple[float, dict[str, object]]:
    """Return the CPU time of the checker, in seconds, and its answer."""
    with TemporaryDirectory() as folder:
        path = Path(folder) / "history.jsonl"
        traces.write(trace, path)
        before = _spent()
        (verdict,) = certified.verdicts(certified.oracle(), [path])
        return _spent() - before, verdict


def _spent() -> float:
    spent = resource.getrusage(resource.RUSAGE_CHILDREN)
    return spent.ru_utime + spent.ru_stime


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
