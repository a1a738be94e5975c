"""Deduplication: chunks with the same data share one place on the capacity leg.

The first chunk with its data is stored. For any other one the middle map holds an alias: ALIAS with
the MBA of the first, in place of a PBA. So one move serves all that share it, and each place has
one owner. `references` counts the chunks that share a place, the first included while a view holds
it; at 0 the place is free. `index` finds a place by a fingerprint: 24 bytes of BLAKE2b of what is
stored. Two chunks with the same fingerprint are taken for the same; their data is not compared.

In the bank, the first chunk with its data is the primary and waits to be destaged. Its duplicates
wait with it, and get their aliases as soon as it is destaged.
"""

import struct
from collections.abc import Iterable
from hashlib import blake2b

from refmodel.log_structured.maps.cow_btree import Tree
from refmodel.log_structured.maps.node import MapKind, MiddleEntry
from refmodel.log_structured.maps.page_store import PageStore

ALIAS = 1 << 63
PARTS = struct.Struct("<3Q")  # a fingerprint as the index has it: its key, two of its value


class Deduplication:
    """Finds chunks with the same data, and counts who shares what is stored."""

    def __init__(self, pages: PageStore, fanout: int, middle: Tree[MiddleEntry]) -> None:
        self._middle = middle
        # the key of a fingerprint -> its rest, MBA
        self.index: Tree[tuple[int, int, int]] = Tree(pages, MapKind.FINGERPRINTS, fanout=fanout)
        # MBA -> how many chunks share it, the key of its fingerprint
        self.references: Tree[tuple[int, int]] = Tree(pages, MapKind.REFERENCES, fanout=fanout)
        self.found = 0  # chunks that were not stored, since the disk was opened
        self._new: dict[int, None] = {}  # chunks of the bank that are not compared yet
        self._primaries: dict[bytes, int] = {}  # fingerprint -> primary
        self._fingerprints: dict[int, bytes] = {}  # primary -> fingerprint
        self._duplicates: dict[int, list[int]] = {}  # primary -> its duplicates
        self._primary_of: dict[int, int] = {}  # duplicate -> primary

    @property
    def maps(self) -> tuple[Tree[tuple[int, int, int]], Tree[tuple[int, int]]]:
        """The index and the references."""
        return self.index, self.references

    # In the bank.

    def add(self, mbas: Iterable[int]) -> None:
        """Note new chunks of the bank; `find_duplicates` compares them."""
        self._new.update(dict.fromkeys(mbas))

    def find_duplicates(self, bank: dict[int, bytes]) -> tuple[list[int], list[int]]:
        """Compare the new chunks of the bank with all others. Raises NoSpace, DataLost.

        Returns those that now are aliases of a stored chunk, and those that wait with a primary.
        """
        aliases: list[tuple[int, int]] = []
        duplicates: list[int] = []
        for mba in self._new:
            mark = fingerprint(bank[mba])
            if (target := self.find_stored(mark)) is not None:
                entry = self.references.get(target)
                assert entry is not None, "what is in the index has references"
                self.references.put(target, (entry[0] + 1, entry[1]))
                aliases.append((mba, target))
            elif mark in self._primaries:
                primary = self._primaries[mark]
                self._duplicates.setdefault(primary, []).append(mba)
                self._primary_of[mba] = primary
                duplicates.append(mba)
            else:
                self._primaries[mark], self._fingerprints[mba] = mba, mark
        self._new.clear()
        self._add_aliases(aliases)
        return [mba for mba, _ in aliases], duplicates

    def drop_banked(self, mba: int) -> int | None:
        """Forget a chunk of the bank that no view holds any more.

        Returns the duplicate that is destaged in its place, or None.
        """
        if mba in self._new:
            del self._new[mba]
        elif (primary := self._primary_of.pop(mba, None)) is not None:
            self._duplicates[primary].remove(mba)
        else:
            mark, duplicates = self._fingerprints.pop(mba), self._duplicates.pop(mba, [])
            if not duplicates:
                del self._primaries[mark]
                return None
            successor, *others = duplicates
            del self._primary_of[successor]
            self._primaries[mark], self._fingerprints[successor] = successor, mark
            if others:
                self._duplicates[successor] = others
                self._primary_of.update(dict.fromkeys(others, successor))
            return successor
        return None

    def has_duplicate(self, mba: int) -> bool:
        """Return whether another chunk of the bank has the same data, as far as it is compared."""
        return mba in self._primary_of or bool(self._duplicates.get(mba))

    def known(self) -> set[int]:
        """Return the chunks of the bank that it knows: new ones, primaries and duplicates."""
        return {*self._new, *self._fingerprints, *self._primary_of}

    # In segments.

    def destaged(self, mbas: list[int]) -> list[int]:
        """Learn that primaries, in ascending order, are in the middle map.

        Returns their duplicates, which now are aliases. Raises NoSpace, DataLost.
        """
        counts, aliases = [], []
        for mba in mbas:
            mark, duplicates = self._fingerprints.pop(mba), self._duplicates.pop(mba, [])
            del self._primaries[mark]
            key, *rest = PARTS.unpack(mark)
            if (
                self.index.get(key) is None
            ):  # otherwise other data has the key, and this is not found
                self.index.put(key, (*rest, mba))
            counts.append((1 + len(duplicates), key))
            for duplicate in duplicates:
                del self._primary_of[duplicate]
                aliases.append((duplicate, mba))
        self.references.put_many(mbas, counts)
        self._add_aliases(aliases)
        return [duplicate for duplicate, _ in aliases]

    def resolve(self, entries: list[MiddleEntry | None]) -> list[MiddleEntry | None]:
        """Return entries of the middle map with every alias replaced by what it stands for."""
        aliased = [
            (at, target_of(entry[0]))
            for at, entry in enumerate(entries)
            if entry is not None and entry[0] & ALIAS
        ]
        if not aliased:
            return entries
        found = list(entries)
        targets = self._middle.get_many([target for _, target in aliased])
        for (at, _), entry in zip(aliased, targets, strict=True):
            found[at] = entry
        return found

    def reference_count(self, mba: int) -> int:
        """Return how many chunks share the place of a stored chunk; 1 if it is in no index."""
        entry = self.references.get(mba)
        return 1 if entry is None else entry[0]

    def is_shared(self, mba: int) -> bool:
        """Return whether a stored chunk stays when one chunk that refers to it is dropped."""
        return self.reference_count(mba) > 1

    def release(self, mbas: Iterable[int]) -> list[int]:
        """Take stored chunks that no view holds out of the references. Raises DataLost.

        Returns those whose place is no longer shared; the middle map still has them.
        """
        freed = []
        for mba in mbas:
            stored = self._middle.get(mba)
            assert stored is not None, "a stored chunk is in the middle map"
            if stored[0] & ALIAS:
                self._middle.remove(mba)
                mba = target_of(stored[0])
            if (entry := self.references.get(mba)) is None:
                freed.append(mba)  # a large write placed it; it is in no index
                continue
            count, key = entry
            if count > 1:
                self.references.put(mba, (count - 1, key))
                continue
            self.references.remove(mba)
            if (found := self.index.get(key)) is not None and found[-1] == mba:
                self.index.remove(key)
            freed.append(mba)
        return sorted(freed)

    def find_stored(self, mark: bytes) -> int | None:
        """Return the MBA of the stored chunk with this fingerprint, or None."""
        key, *rest = PARTS.unpack(mark)
        found = self.index.get(key)
        return found[-1] if found is not None and [*found[:-1]] == rest else None

    def _add_aliases(self, aliases: list[tuple[int, int]]) -> None:
        aliases = sorted(aliases)
        self._middle.put_many(
            [mba for mba, _ in aliases], [(ALIAS | target, 0) for _, target in aliases]
        )
        self.found += len(aliases)


def fingerprint(stored: bytes) -> bytes:
    """Return the fingerprint of what is stored, 24 bytes."""
    return blake2b(stored, digest_size=PARTS.size).digest()


def target_of(pba: int) -> int:
    """Return the MBA of the chunk that an alias stands for."""
    return pba & ~ALIAS
