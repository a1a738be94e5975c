"""Dialogues with the engines, one request at a time, and a hash of all that the engines said.

The requests are drawn by seed, without the kit: its generator may change, and these may not. `main`
prints the hashes of a range of seeds, to compare two revisions, or records them:

    python tests/support/dialogues.py 0 1000
"""

import hashlib
import json
import random
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from refmodel.adapter.engine_target import Adapter
from refmodel.core.errors import PowerCut

Message = dict[str, Any]
RECORDED = Path(__file__).parents[1] / "refmodel/runtime/one_in_flight.json"
OPERATIONS = 60
Knobs = dict[str, list[Any]]  # the values of each option
ARRAY: Knobs = {"block_bytes": [512], "spares": [0, 0, 1], "repair_timer": [3600, 60]}
CACHE: Knobs = {"cache_bytes": [0, 0, 8192, 1 << 14], "cache_block_bytes": [None, 4096]}
LAYERS: Knobs = {**CACHE, "block_bytes": [512, 1024], "layers": [3, 5, 16]}
LOG_STRUCTURED: Knobs = {
    **CACHE,
    **ARRAY,
    "batch": [False, True],
    "repair_share": [30, 1, 99],
    "segment_blocks": [1, 2, 2, 4, 8],
    "fanout": [3, 4, 8, 0],
    "capacity_percent": [100, 130, 200, 400],
    "log_bytes": [None, None, 8192, 1 << 14],
    "pages": [None, None, None, 256],
    "write_back": [False, False, True],
    "layout": ["mirror", "raid5-2+1", "raid5-4+1", "raid6-4+2"],
    "cleaner": ["cost-benefit", "greedy", "fifo", "random"],
    "compression": [False, False, True],
    "deduplication": [False, False, True],
}
IN_PLACE: Knobs = {**CACHE, **ARRAY, "strip_blocks": [1, 2, 4], "log_bytes": [1 << 14, 1 << 17]}
ENGINES: tuple[tuple[str, Knobs], ...] = (
    *[("log-structured", LOG_STRUCTURED)] * 5,
    ("in-place-raid5", {**IN_PLACE, "layout": ["raid5-2+1", "raid5-4+1"]}),
    ("in-place-raid6", IN_PLACE),
    ("redo-vmfs", LAYERS),
    ("redo-se", LAYERS),
    ("redo-vsan", LAYERS),
)
WEIGHTS = {
    "write": 40,
    "read": 12,
    "unmap": 8,
    "flush": 3,
    "snapshot": 8,
    "delete": 6,
    "revert": 3,
    "crash": 3,
    "restart": 2,
    "clean": 2,
    "checkpoint": 2,
    "settle": 1,
    "fail": 2,
    "return": 2,
    "replace": 1,
    "tick": 1,
    "scrub": 1,
}


def digest(seed: int, folder: Path) -> str:
    """Return the hash of the dialogue of a seed: its answers, and the events inside."""
    choose = random.Random(seed)
    engine, knobs = ENGINES[choose.randrange(len(ENGINES))]
    options = {name: choose.choice(values) for name, values in knobs.items()}
    target = Adapter(engine=engine, folder=folder, **options)
    said = hashlib.sha256()
    try:
        for answer in _dialogue(target, choose):
            said.update(json.dumps(answer, sort_keys=True, default=bytes.hex).encode())
    finally:
        target.close()
    return said.hexdigest()[:16]


def _dialogue(target: Adapter, choose: random.Random) -> Iterator[Message]:
    blocks = choose.choice([4, 8, 16, 32])
    yield target.request({"op": "create", "blocks": blocks})
    dark = False  # the power failed during a request
    for number in range(OPERATIONS):
        message: Message = {"op": "crash"} if dark else _drawn(target, choose, blocks, number)
        if choose.random() < 0.06:
            message["cut"] = {"after": choose.randint(1, 12), "seed": choose.randrange(1 << 20)}
        dark = False
        try:
            yield target.request(message)
        except PowerCut:
            dark = True
            yield {"events": target.drain_events()}


def _drawn(target: Adapter, choose: random.Random, blocks: int, number: int) -> Message:
    (op,) = choose.choices([*WEIGHTS], [*WEIGHTS.values()])
    message: Message = {"op": op}
    if op in ("write", "read", "unmap"):
        message["lba"] = choose.randrange(blocks)
        count = min(choose.choice([1, 1, 2, 3, blocks]), blocks - message["lba"])
        if op != "write":
            message["count"] = count
        else:
            size = target.hello["block_size"]
            tags = [choose.choice([number, 7]) for _ in range(count)]
            message["data"] = b"".join(bytes([tag]) * size for tag in tags)
    if op in ("snapshot", "delete", "revert") or op == "read" and choose.random() < 0.4:
        message["view" if op == "read" else "name"] = choose.choice("abcde")
    if op in ("fail", "return", "replace"):
        message["device"] = choose.randrange(max(1, target.hello["devices"]))
        message["mode"] = choose.choice(["absent", "degraded"])
    if op == "tick":
        message["seconds"] = choose.choice([30, 100, 4000])
    return message


if __name__ == "__main__":
    hashes = {seed: digest(seed, Path("/dev/shm")) for seed in range(*map(int, sys.argv[1:3]))}
    if "--record" in sys.argv:
        RECORDED.write_text(json.dumps([*hashes.values()], indent=0) + "\n", encoding="utf-8")
    else:
        print(*(f"{seed} {found}" for seed, found in hashes.items()), sep="\n")
