"""Loading: all nodes that an operation needs are in memory before it changes anything.

Maps need not fit in memory. An operation that is logged can no longer be refused, so a node that
cannot be read has to be found out before.
"""

from refmodel.engine.array_disk import ArrayDisk
from refmodel.journal.record import Record, RecordKind
from refmodel.log_structured.geometry import Geometry
from refmodel.log_structured.state import DiskState
from refmodel.runtime.effects import READ, Process


def loaded(disk: ArrayDisk[Geometry], state: DiskState, record: Record) -> Process[None]:
    """Load what an operation needs, if something may have to be read; others may come before.

    Raises DataLost, UnknownOutcome if the disk has become unusable.
    """
    yield READ
    disk.require_usable()
    disk.guarded(load, state, record)


def load(state: DiskState, record: Record) -> None:
    """Have in memory the nodes that the operation of a record looks into. Raises DataLost.

    They stay there as others do that were just used, so the operation rarely reads one again.
    """
    views, size = state.views, state.geometry.block_bytes
    with state.pages.held():
        if record.kind is RecordKind.UNMAP:
            mapped = list(views.live_map.items(record.lba, record.lba + record.count))
        else:
            extents = [(lba, len(data) // size) for lba, data in record.writes]
            lbas = [
                at
                for lba, count in extents or [(record.lba, record.count)]
                for at in range(lba, lba + count)
            ]
            found = zip(lbas, views.live_map.get_many(lbas), strict=True)
            mapped = [(lba, mba) for lba, mba in found if mba is not None]
        for lba, mba in mapped:
            views.owns_alone(lba, mba)
