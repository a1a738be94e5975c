"""The chain read path: of each block, what the topmost layer has that has it. It costs more the longer the chain is."""

from collections.abc import Iterable

from refmodel.redolog.layer import ABSENT, ZERO, Layer
from refmodel.redolog.store import DATA, Store


def places(chain: list[Layer], lbas: Iterable[int], cause: str) -> dict[int, int | None]:
    """Where blocks are: byte offsets on the device, ZERO, or ABSENT if no layer has it. Raises DataLost."""
    missing = list(lbas)
    found: dict[int, int | None] = dict.fromkeys(missing, ABSENT)
    for layer in chain:
        for lba in missing:
            found[lba] = layer.place(lba, cause)
        missing = [lba for lba in missing if found[lba] is ABSENT]
        if not missing:
            break
    return found


def read(
    store: Store, found: dict[int, int | None], block_bytes: int, cause: str
) -> dict[int, bytes]:
    """Blocks by their places, in as few reads as places that follow each other allow."""
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


def _runs(found: dict[int, int | None], block_bytes: int) -> list[tuple[list[int], int | None]]:
    """Blocks that lie one behind the other, and where the first is; each that has no place alone."""
    runs: list[tuple[list[int], int | None]] = []
    end: int | None = None
    for lba, place in found.items():
        if runs and place is not ABSENT and place == end:
            runs[-1][0].append(lba)
        else:
            runs.append(([lba], place))
        end = None if place is ABSENT or place == ZERO else place + block_bytes
    return runs
