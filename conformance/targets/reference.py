"""The engines of this project as targets in process."""

from pathlib import Path
from typing import Any

from conformance.targets.base import Message, PowerCut, Unusable
from refmodel.adapter.overlapping import Done, OverlappingAdapter
from refmodel.adapter.requested_faults import ON_REQUEST
from refmodel.core import errors
from refmodel.media.host import REFUSES
from refmodel.registry import DEFAULT

FAST = Path("/dev/shm")  # devices of traces that last a second need no disk under them
Knobs = dict[str, list[Any]]  # option -> values

CACHE: Knobs = {
    "cache_bytes": [0, 0, 0, 8192, 1 << 14, 1 << 16],
    "cache_block_bytes": [None, 4096, 8192],
}
REPAIR: Knobs = {
    "spares": [0, 0, 1],
    "repair_timer": [3600, 3600, 60],
    "repair_share": [30, 30, 1, 99],
}
FAULTS: Knobs = {"faults": ["", ON_REQUEST], "fault_seed": [*range(8)]}
REDO_LOG: Knobs = {
    **CACHE,
    "batch": [False, False, True],
    "block_bytes": [512, 512, 1024, 4096],  # 4096: a table has several sectors on small disks
    "layers": [3, 5, 16, 16],
    "table_cache": [0, 1, 2, 16],
}
IN_PLACE: Knobs = {
    **CACHE,
    **FAULTS,
    **REPAIR,
    "batch": [False, False, True],
    "block_bytes": [512],
    "strip_blocks": [1, 2, 4],
    "log_bytes": [1 << 14, (1 << 14) + 512, 1 << 17],
}
KNOBS: dict[str, Knobs] = {  # of each engine: what a trace may choose
    DEFAULT: {
        **CACHE,
        **FAULTS,
        "batch": [False, True],
        **REPAIR,
        "block_bytes": [512],
        "segment_blocks": [1, 2, 2, 4, 8],
        "fanout": [3, 4, 8, 0],
        "capacity_percent": [100, 130, 200, 400],
        "log_bytes": [None, None, 8192, 12288, 1 << 14],
        "memory": [None, None, None, 0],
        "pages": [None, None, None, None, None, 256],
        "write_back": [False, False, True],
        "layout": ["mirror", "raid5-2+1", "raid5-4+1", "raid6-4+2"],
        "cleaner": ["cost-benefit", "greedy", "fifo", "random"],
        "compression": [False, False, True],
        "deduplication": [False, False, True],
    },
    "redo-vmfs": REDO_LOG,
    "redo-se": REDO_LOG,
    "redo-vsan": {name: values for name, values in REDO_LOG.items() if name != "table_cache"},
    "in-place-raid5": {**IN_PLACE, "layout": ["raid5-2+1", "raid5-4+1"]},
    "in-place-raid6": IN_PLACE,
}
SHARE = {DEFAULT: 5}  # of the traces of all engines; the others have 1 each
FAMILIES: tuple[Knobs, ...] = tuple(
    {"engine": [engine], **knobs}
    for engine, knobs in KNOBS.items()
    for _ in range(SHARE.get(engine, 1))
)
# What is not asked of a disk whose media have faults for its whole life: no device fails by request
# besides, and a scrub says what it repaired.
NOT_WITH_FAULTS = frozenset(["device", "scrub"])


class ReferenceTarget(OverlappingAdapter):
    """Options are those of refmodel.adapter.engine_target.Adapter."""

    cuts = True

    def __init__(self, options: dict[str, Any]) -> None:
        try:
            super().__init__(folder=FAST if FAST.is_dir() else None, **options)
        except errors.BadRequest as error:  # an option that the engine does not have, or a value
            raise Unusable(str(error)) from None
        if options.get("faults") not in (None, "", ON_REQUEST):
            asked = [one for one in self.hello["capabilities"] if one not in NOT_WITH_FAULTS]
            self.hello = {**self.hello, "capabilities": asked}

    def request(self, message: Message) -> Message:
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
