"""The engines of this project as targets in process."""

from pathlib import Path
from typing import Any

from conformance.contract.trace import IMPOSSIBLE
from conformance.targets.base import Message, PowerCut, Unusable
from refmodel.adapter.dialogue import refused
from refmodel.adapter.overlapping import Done, OverlappingAdapter
from refmodel.adapter.requested_faults import ON_REQUEST
from refmodel.bugs import BUGS
from refmodel.core import errors
from refmodel.media.faults import parse
from refmodel.media.host import REFUSES
from refmodel.registry import DEFAULT

FAST = Path("/dev/shm")  # devices of traces that last a second need no disk under them
Knobs = dict[str, list[Any]]  # option -> values

CACHE: Knobs = {
    "cache_bytes": [0, 0, 0, 8192, 1 << 14, 1 << 16],
    "cache_block_bytes": [None, 4096, 8192],
}
REPAIR: Knobs = {
    "spares": [0, 0, 0, 1, 1, 2],
    "repair_timer": [3600, 3600, 60, 0],
    "repair_share": [30, 30, 1, 99],
}
FAULTS: Knobs = {"faults": ["", ON_REQUEST], "fault_seed": [*range(8)]}
REDO_LOG: Knobs = {
    **CACHE,
    "batch": [False, False, True],
    "block_bytes": [512, 512, 1024, 4096],
    "layers": [3, 4, 8, 16, None, None],
    "table_cache": [0, 1, 2, 16, 16],
}
IN_PLACE: Knobs = {
    **CACHE,
    **FAULTS,
    **REPAIR,
    "batch": [False, True],
    "block_bytes": [512],
    "strip_blocks": [1, 1, 2, 4],
    "log_bytes": [1 << 14, (1 << 14) + 512, 6144, 6656, 1 << 17, None],
}
KNOBS: dict[str, Knobs] = {  # options that a trace may choose, by engine
    DEFAULT: {
        **CACHE,
        **FAULTS,
        "batch": [False, True],
        **REPAIR,
        "block_bytes": [*[512] * 10, 1024, 2048],  # a power cut may tear the last two
        "segment_blocks": [1, 2, 2, 4, 8, 16],
        "fanout": [3, 4, 8, 0],
        "capacity_percent": [100, 100, 130, 200, 400, None],
        "log_bytes": [None, None, 8192, 12288, 1 << 14, 1 << 16],
        "memory": [None, None, None, 0, 1 << 16],
        "pages": [*[None] * 6, 256, 96],
        "write_back": [False, False, True],
        "layout": ["mirror", "raid5-2+1", "raid5-4+1", "raid6-4+2"],
        "cleaner": ["cost-benefit", "greedy", "fifo", "random"],
        "compression": [False, False, True],
        "deduplication": [False, False, True],
    },
    "redo-vmfs": {
        **REDO_LOG,
        # 4096: tables of several sectors; 65536: several tables
        "block_bytes": [512, 4096, 65536, 65536],
        "cache_bytes": [0, 0, 0, 1 << 17, 1 << 18],
        "cache_block_bytes": [1 << 16],  # each block size divides it
    },
    "redo-se": REDO_LOG,
    "redo-vsan": {name: values for name, values in REDO_LOG.items() if name != "table_cache"},
    "in-place-raid5": {
        **IN_PLACE,
        "layout": ["raid5-2+1", "raid5-4+1"],
        "block_bytes": [512, 512, 1024],
        "log_bytes": [1 << 14, (1 << 14) + 512, 8192, 8704, 1 << 17, None],
    },
    "in-place-raid6": IN_PLACE,
}
SHARE = {DEFAULT: 5}  # weight among the traces of all engines; the others have 1 each
# Every size and every number is the smallest that is allowed.
TIGHT: Knobs = {
    "engine": [DEFAULT],
    **KNOBS[DEFAULT],
    "block_bytes": [512],
    "segment_blocks": [1, 2],
    "log_bytes": [4096, 4608],
    "fanout": [3, 0],
    "capacity_percent": [100],
    "memory": [0],
    "pages": [None, None, 64],
    "repair_share": [1],
}
# Options that no disk can have: each value is just below or just above its limits.
ARRAY: Knobs = {
    "blocks": [0],
    "block_bytes": [256, 768],
    "layout": ["raid5-3+1"],
    "spares": [-1, 9],
    "repair_timer": [-1],
    "repair_share": [0, 100],
}
CHAIN: Knobs = {
    "blocks": [0],
    "block_bytes": [256, 768],
    "layers": [2, 257],
    "table_cache": [-2],
    "cache_block_bytes": [256],
}
STRIPES: Knobs = {**ARRAY, "strip_blocks": [0, 65537], "log_bytes": [5632, 6145]}
LOG: Knobs = {
    **ARRAY,
    "segment_blocks": [0, 65537],
    "segments": [4],
    "log_bytes": [3584, 4097],
    "pages": [63],
    "fanout": [2, 129],
    "cleaner": ["none"],
}
IMPOSSIBLE_OPTIONS: tuple[dict[str, Any], ...] = tuple(
    {"engine": engine, "block_bytes": 512, "cache_bytes": 8192, name: value, IMPOSSIBLE: name}
    for engine, wrong in ((DEFAULT, LOG), ("redo-se", CHAIN), ("in-place-raid6", STRIPES))
    for name, values in wrong.items()
    for value in values
)
FAMILIES: tuple[Knobs, ...] = (
    *(
        {"engine": [engine], **knobs}
        for engine, knobs in KNOBS.items()
        for _ in range(SHARE.get(engine, 1))
    ),
    TIGHT,
)
# Capabilities that are not used where media have faults for the whole life of a disk: no other
# device may fail, and a scrub reports what it repaired.
NOT_WITH_FAULTS = frozenset(["device", "scrub"])


def wrong_option(options: dict[str, Any]) -> str:
    """Return what is wrong with the options; "" if nothing is."""
    plant, faults, memory = (options.get(name) for name in ("plant", "faults", "memory"))
    if "folder" in options:
        return "there is no option folder: the kit chooses where the devices are"
    if plant is not None and plant not in BUGS:
        return f"there is no planted bug '{plant}': docs/self-test.md lists them"
    if isinstance(memory, int) and memory < 0:
        return f"memory is at least 0 bytes, not {memory}"
    try:
        parse("" if faults in (None, ON_REQUEST) else str(faults).replace("+", ","))
        ReferenceTarget(options).close()
    except (errors.BadRequest, Unusable) as error:
        return str(error)
    return ""


class ReferenceTarget(OverlappingAdapter):
    """Options are those of refmodel.adapter.engine_target.Adapter."""

    cuts = True

    def __init__(self, options: dict[str, Any]) -> None:
        self._refusal = ""  # why no disk can have the options
        folder = FAST if FAST.is_dir() else None
        wanted = {name: value for name, value in options.items() if name != IMPOSSIBLE}
        try:
            super().__init__(folder=folder, **wanted)
        except errors.BadRequest as error:  # an option that the engine does not have, or a value
            self.close()
            if IMPOSSIBLE not in options:
                raise Unusable(str(error)) from None
            self._refusal = str(error)
            super().__init__(folder=folder, engine=options.get("engine", DEFAULT))
        if options.get("faults") not in (None, "", ON_REQUEST):
            asked = [one for one in self.hello["capabilities"] if one not in NOT_WITH_FAULTS]
            self.hello = {**self.hello, "capabilities": asked}

    def request(self, message: Message) -> Message:
        if self._refusal and message.get("op") == "create":
            return refused(errors.BadRequest(self._refusal))
        try:
            return _from_the_engine(super().request(message))
        except errors.PowerCut:
            raise PowerCut(self.drain_events()) from None

    def call(self, message: Message, done: Done) -> None:
        try:
            super().call(message, lambda answer: done(_from_the_engine(answer)))
        except errors.PowerCut:
            raise PowerCut(self.drain_events()) from None

    def step(self) -> bool:
        try:
            return super().step()
        except errors.PowerCut:
            raise PowerCut(self.drain_events()) from None


def _from_the_engine(answer: Message) -> Message:
    """Return the answer, unless the host gave it, where the kit works. Raises Unusable.

    The host has refused a system call: that is no verdict on the engine.
    """
    if not answer.get("ok") and REFUSES in answer.get("message", ""):
        raise Unusable(f"{answer['error']}: {answer['message']}; the devices are in {FAST}")
    return answer
