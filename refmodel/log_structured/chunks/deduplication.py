"""Deduplication: chunks with the same data share one place.

The first chunk of its data is stored. The middle map sends any other one on to it: in place of a PBA stands ALIAS with the first one's MBA. So a
chunk that is moved is moved for all that share it, and its segment has one owner. How many views' chunks share it, itself included while a view holds
it, is its references; at 0 it goes. The index finds it by a fingerprint, 24 bytes of BLAKE2b of what is stored; two chunks with the same
fingerprint are taken for the same without being compared.

In the bank the first of its data waits to be destaged; its twins wait with it, and are in the middle map as soon as it is.
"""

from collections.abc import Iterable
from hashlib import blake2b

from refmodel.log_structured.maps.cached_tree import KnownTree
from refmodel.log_structured.maps.cow_btree import Tree
from refmodel.log_structured.maps.node import Kind
from refmodel.log_structured.maps.page_store import Pages

ALIAS = 1 << 63
KEY = 8  # bytes of a fingerprint are its key in the index,
REST = 16  # and these the value's

Place = tuple[int, int]


class Sharing:
    def __init__(self, pages: Pages, fanout: int, middle: KnownTree) -> None:
        self._middle = middle
        self.index = Tree(pages, Kind.FINGERPRINTS, fanout=fanout)  # key -> the rest, MBA
        self.references = Tree(pages, Kind.REFERENCES, fanout=fanout)  # MBA -> how many, key
        self.found = 0  # chunks that were not stored, since the disk was opened
        self._unseen: dict[int, None] = {}  # of the bank; nobody has looked for their like yet
        self._first: dict[bytes, int] = {}  # fingerprint -> the one that will be stored
        self._prints: dict[int, bytes] = {}  # of those
        self._twins: dict[int, list[int]] = {}  # first -> the others
        self._twin_of: dict[int, int] = {}

    @property
    def maps(self) -> tuple[Tree, Tree]:
        return self.index, self.references

    # In the bank.

    def add(self, mbas: Iterable[int]) -> None:
        self._unseen.update(dict.fromkeys(mbas))

    def look(self, bank: dict[int, bytes]) -> tuple[list[int], list[int]]:
        """Find the like of what is new in the bank. Returns what is in the middle map now, and what waits with a twin."""
        aliases, twins = [], []
        for mba in self._unseen:
            mark = fingerprint(bank[mba])
            if (target := self._stored(mark)) is not None:
                count, key = self.references.get(target)
                self.references.put(target, (count + 1, key))
                aliases.append((mba, target))
            elif mark in self._first:
                first = self._first[mark]
                self._twins.setdefault(first, []).append(mba)
                self._twin_of[mba] = first
                twins.append(mba)
            else:
                self._first[mark], self._prints[mba] = mba, mark
        self._unseen.clear()
        self._alias(aliases)
        return [mba for mba, _ in aliases], twins

    def drop_waiting(self, mba: int) -> int | None:
        """No view holds a chunk of the bank any more. Returns the twin that now waits to be destaged in its place, if there is one."""
        if mba in self._unseen:
            del self._unseen[mba]
        elif (first := self._twin_of.pop(mba, None)) is not None:
            self._twins[first].remove(mba)
        else:
            mark, twins = self._prints.pop(mba), self._twins.pop(mba, [])
            if not twins:
                del self._first[mark]
                return None
            heir, *others = twins
            del self._twin_of[heir]
            self._first[mark], self._prints[heir] = heir, mark
            if others:
                self._twins[heir] = others
                self._twin_of.update(dict.fromkeys(others, heir))
            return heir
        return None

    def is_twin(self, mba: int) -> bool:
        return mba in self._twin_of

    def alone(self, mba: int) -> bool:
        """Whether a chunk of the bank has no twin."""
        return mba not in self._twin_of and not self._twins.get(mba)

    # In segments.

    def destaged(self, mbas: list[int]) -> list[int]:
        """Chunks of the bank are in the middle map, in ascending order. Returns their twins, which are now, too."""
        counts, aliases = [], []
        for mba in mbas:
            mark, twins = self._prints.pop(mba), self._twins.pop(mba, [])
            del self._first[mark]
            key = int.from_bytes(mark[:KEY], "little")
            if (
                self.index.get(key) is None
            ):  # else the key is that of other data: this one is not found again
                self.index.put(key, (mark[KEY:], mba))
            counts.append((1 + len(twins), key))
            for twin in twins:
                del self._twin_of[twin]
                aliases.append((twin, mba))
        self.references.put_many(mbas, counts)
        self._alias(aliases)
        return [twin for twin, _ in aliases]

    def resolve(self, places: list[Place | None]) -> list[Place | None]:
        """Where chunks are, of what the middle map says of them."""
        if not any(place is not None and place[0] & ALIAS for place in places):
            return places
        aliased = [at for at, place in enumerate(places) if place is not None and place[0] & ALIAS]
        found = list(places)
        for at, place in zip(
            aliased, self._middle.get_many([target_of(places[at][0]) for at in aliased])
        ):
            found[at] = place
        return found

    def shared(self, mba: int) -> bool:
        """Whether a chunk that is stored stays if one that refers to it is dropped."""
        entry = self.references.get(mba)
        return entry is not None and entry[0] > 1

    def release(self, mbas: Iterable[int]) -> list[int]:
        """No view holds the chunks any more. Returns those that nobody refers to now, which are still in the middle map."""
        freed = []
        for mba in mbas:
            pba, _ = self._middle.get(mba)
            if pba & ALIAS:
                self._middle.remove(mba)
                mba = target_of(pba)
            if (entry := self.references.get(mba)) is None:
                freed.append(mba)  # it was placed, and is in no index
                continue
            count, key = entry
            if count > 1:
                self.references.put(mba, (count - 1, key))
                continue
            self.references.remove(mba)
            if (found := self.index.get(key)) is not None and found[1] == mba:
                self.index.remove(key)
            freed.append(mba)
        return sorted(freed)

    def _stored(self, mark: bytes) -> int | None:
        """The chunk in a segment with the fingerprint."""
        found = self.index.get(int.from_bytes(mark[:KEY], "little"))
        return found[1] if found is not None and found[0] == mark[KEY:] else None

    def _alias(self, aliases: list[tuple[int, int]]) -> None:
        aliases = sorted(aliases)
        self._middle.put_many(
            [mba for mba, _ in aliases], [(ALIAS | target, 0) for _, target in aliases]
        )
        self.found += len(aliases)


def fingerprint(stored: bytes) -> bytes:
    return blake2b(stored, digest_size=KEY + REST).digest()


def target_of(pba: int) -> int:
    """The MBA of the chunk that an alias stands for."""
    return pba & ~ALIAS
