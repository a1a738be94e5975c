"""The read path of a chain: each block comes from the topmost layer that has it.

A read costs more the longer the chain is.
"""

from collections.abc import Iterable, Mapping

from refmodel.redolog.layer import ABSENT, ZERO, Layer
from refmodel.redolog.store import DATA, Store


def look_up(chain: list[Layer], lbas: Iterable[int], cause: str) -> dict[int, int | None]:
    """Return where each block is: a byte offset on the device, ZERO, or ABSENT if no layer has it.

    `chain` has the topmost layer first. Raises DataLost.
    """
    missing = list(lbas)
    found: dict[int, int | None] = dict.fromkeys(missing, ABSENT)
    for layer in chain:
        for lba in missing:
            found[lba] = layer.look_up(lba, cause)
        missing = [lba for lba in missing if found[lba] is ABSENT]
        if not missing:
            break
    return found


def read(
    store: Store, found: Mapping[int, int | None], block_bytes: int, cause: str
) -> dict[int, bytes]:
    """Return the data of blocks by LBA (logical block address).

    `found` says where each block is, as look_up returns it. Neighbours are read together.
    """
    data: dict[int, bytes] = {}
    for lbas, start in _runs(found, block_bytes):
        raw = (
            bytes(block_bytes)
            if start is ABSENT or start == ZERO
            else store.read(DATA, start, len(lbas) * block_bytes, cause)
        )
        data.update(
            (lba, raw[at * block_bytes : (at + 1) * block_bytes]) for at, lba in enumerate(lbas)
        )
    return data


def _runs(found: Mapping[int, int | None], block_bytes: int) -> list[tuple[list[int], int | None]]:
    """Return blocks that follow each other on the device, and where the first is.

    A block that is ZERO or ABSENT is alone.
    """
    runs: list[tuple[list[int], int | None]] = []
    end: int | None = None
    for lba, offset in found.items():
        if runs and offset is not ABSENT and offset == end:
            runs[-1][0].append(lba)
        else:
            runs.append(([lba], offset))
        end = None if offset is ABSENT or offset == ZERO else offset + block_bytes
    return runs
