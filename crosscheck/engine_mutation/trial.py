"""One mutant on trial, in a process of its own: the campaign of `conformance run --target TARGET`,
until it fails.

    python -m crosscheck.engine_mutation.trial MODULE NUMBER TARGET SECONDS SEED FOLDER

prints one JSON object: how it was found (the class of the failure, or "survived"), after how many
operations and CPU seconds, and whether the changed statement ran at all.
"""

import json
import math
import resource
import sys
import time
import traceback
from itertools import count
from pathlib import Path
from typing import Any

from crosscheck.engine_mutation.plant import plant

MEMORY = 4 << 30  # bytes
HANGS = 60  # CPU seconds: what takes so many more than it should is killed
OPS = 30  # operations of a trace, as by default


def main(module: str, number: str, target: str, seconds: str, seed: str, folder: str) -> None:
    """Try one mutant, and print the result."""
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    limit = math.ceil(float(seconds)) + HANGS
    resource.setrlimit(resource.RLIMIT_CPU, (limit, limit + HANGS))
    planted = plant(module, int(number))
    found: dict[str, Any] = {"how": "survived", "operations": 0, "message": ""}
    started = time.process_time()
    try:
        _campaign(target, found, started + float(seconds), int(seed), Path(folder))
    except Exception as error:  # the engine cannot even be imported or opened
        found["how"], found["message"] = "exit", f"{type(error).__name__}: {error}"
        found["output"] = traceback.format_exc()[-2000:]
    found["seconds"] = round(time.process_time() - started, 1)
    found["reached"] = planted.reached
    print(json.dumps(found))


def _campaign(target: str, found: dict[str, Any], ends: float, seed: int, folder: Path) -> None:
    from conformance import targets
    from conformance.campaign.batches import Plan, drive
    from conformance.judging import oracles
    from conformance.targets import reference

    reference.FAST = folder
    factory, judges = targets.resolve(target), {"model": oracles.named("model")}
    plan = Plan(factory.name, factory.without, seed, OPS, True, tuple(judges), 1)
    for part_number in count():
        part = drive(factory, judges, plan, part_number, plan.length, ends, clock=time.process_time)
        found["operations"] += sum(trace.operations for trace, _ in part.judged)
        if part.reason:
            found["how"], found["message"] = "exit", part.reason
            return
        for _, verdict in part.judged:
            if verdict.verdict == "fail" or verdict.at is not None:  # otherwise the judge gave up
                found["how"] = verdict.kind or verdict.verdict
                found["message"] = (verdict.actual or verdict.reason)[:300]
                return
        if time.process_time() > ends:
            return


if __name__ == "__main__":
    main(*sys.argv[1:])
