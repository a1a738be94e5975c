"""A file with the result of a campaign so far, so that it can continue where it stopped.

The file is rewritten after each part.
"""

import json
from collections import Counter
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

from conformance.campaign.batches import Plan
from conformance.campaign.results import Campaign, Failure
from conformance.contract.coverage import Coverage
from conformance.contract.trace import Passed, Trace
from conformance.judging.explain import PASS
from conformance.judging.judge import judge
from conformance.judging.oracles import Oracle
from refmodel.core.whole_file import write_whole

HOW = (
    "number",
    "before",
    "failed",
    "repeats",
    "unfinished",
    "usual",
)  # fields of a failure, besides its trace


class BadKept(Exception):
    """The file holds no campaign, or another one. The message is one line."""


class Kept:
    """The file of one campaign, made by the first `save`."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self.traces = 0  # on file

    def resume(self, plan: Plan, result: Campaign, oracles: Mapping[str, Oracle]) -> int:
        """Put what the file holds into the result. Returns the number of the part that comes next.

        Raises BadKept.
        """
        if not self._path.exists():
            return 0
        try:
            held = json.loads(self._path.read_text(encoding="utf-8"))
            if held["plan"] != _of(plan):
                raise BadKept(
                    f"{self._path}: of another campaign: give another file, or the same target, "
                    "seed and options"
                )
            result.happened = Coverage.from_json(held["coverage"])
            result.counters, result.declared = (
                Counter(held["counters"]),
                frozenset(held["declared"]),
            )
            result.judges, result.seconds = tuple(held["judges"]), float(held["seconds"])
            whole = [(number, Trace(**trace)) for number, trace in held["traces"]]
            in_full = dict(whole)
            failed = [(Trace(**one["trace"]), one["how"]) for one in held["failures"]]
            verdicts = (
                judge([trace for _, trace in whole] + [trace for trace, _ in failed], oracles)
                if whole
                else []
            )
            judged = {
                number: verdict for (number, _), verdict in zip(whole, verdicts, strict=False)
            }
            result.judged = {
                number: (Passed(*short), PASS) if short else (in_full[number], judged[number])
                for number, short in held["judged"]
            }
            result.failures = [
                Failure(trace, verdict, **how)
                for (trace, how), verdict in zip(failed, verdicts[len(whole) :], strict=True)
            ]
            self.traces = len(result.judged)
            return int(held["next"])
        except OSError as error:
            raise BadKept(f"{self._path}: {error.strerror}") from None
        except (ValueError, KeyError, TypeError, IndexError, AttributeError):
            raise BadKept(
                f"{self._path}: no campaign that can go on: it is damaged, or of another kind: "
                "give another file, or remove it"
            ) from None

    def save(self, plan: Plan, result: Campaign, following: int) -> None:
        """Write the result down; `following` is the number of the part that comes next."""
        whole = [
            (number, trace)
            for number, (trace, _) in result.judged.items()
            if isinstance(trace, Trace)
        ]
        held = {
            "plan": _of(plan),
            "next": following,
            "seconds": result.seconds,
            "judges": result.judges,
            "declared": sorted(result.declared),
            "counters": result.counters,
            "coverage": result.happened.as_json(),
            "judged": [
                [number, list(trace) if isinstance(trace, Passed) else None]
                for number, (trace, _) in result.judged.items()
            ],
            "traces": [(number, asdict(trace)) for number, trace in whole],
            "failures": [
                {"trace": asdict(one.trace), "how": {name: getattr(one, name) for name in HOW}}
                for one in result.failures
            ],
        }
        write_whole(self._path, json.dumps(held))
        self.traces = len(result.judged)


def _of(plan: Plan) -> dict[str, Any]:
    return {
        **asdict(plan),
        "without": sorted(plan.without),
        "oracles": sorted(plan.oracles),
        "faults": list(plan.faults),
    }
