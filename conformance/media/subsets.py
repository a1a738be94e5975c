"""Crash states: what a power cut may leave of the writes that no flush has covered.

After CrashMonkey and ACE (Mohan et al., "Finding crash-consistency bugs with bounded black-box
crash testing", OSDI 2018). All subsets of few writes are tried, some subsets of many, and each
write is torn at sectors.
"""

import random
from collections.abc import Iterator, Sequence

FEW = 6  # writes or sectors: all their 64 subsets are tried
SAMPLED = 32  # subsets of more writes

Masks = tuple[int, ...]  # one mask per write: bit i says whether its sector i survives


def subsets(
    sizes: Sequence[int], choose: random.Random, few: int = FEW, sampled: int = SAMPLED
) -> Iterator[Masks]:
    """Yield what may survive of writes of `sizes` sectors each, in their order; no mask twice.

    If there are few sectors: all their subsets. Else, if there are few writes: all their subsets;
    of many writes none, all, every prefix, all but one, one alone, and `sampled` at random. Then
    each write is torn, in the middle of a prefix, in the middle of all, and at random."""
    seen: set[Masks] = set()
    for masks in _every_sector(sizes) if sum(sizes) <= few else _some(sizes, choose, few, sampled):
        if masks not in seen:
            seen.add(masks)
            yield masks


def _every_sector(sizes: Sequence[int]) -> Iterator[Masks]:
    for bits in range(1 << sum(sizes)):
        masks = []
        for size in sizes:
            masks.append(bits & (1 << size) - 1)
            bits >>= size
        yield tuple(masks)


def _some(sizes: Sequence[int], choose: random.Random, few: int, sampled: int) -> Iterator[Masks]:
    whole = [(1 << size) - 1 for size in sizes]
    count = len(sizes)

    def keep(*survives: bool) -> Masks:
        return tuple(mask if one else 0 for mask, one in zip(whole, survives, strict=True))

    if count <= few:
        for bits in range(1 << count):
            yield keep(*(bool(bits >> write & 1) for write in range(count)))
    else:
        for write in range(count + 1):
            yield keep(*(other < write for other in range(count)))
        for write in range(count):
            yield keep(*(other != write for other in range(count)))
            yield keep(*(other == write for other in range(count)))
        for _ in range(sampled):
            odds = choose.choice((0.2, 0.5, 0.8))
            yield keep(*(choose.random() < odds for _ in range(count)))
    for write, size in enumerate(sizes):
        if size > 1:
            before, after = whole[:write], whole[write + 1 :]
            some = choose.randrange(1, whole[write])
            for torn in ((1 << size // 2) - 1, whole[write] >> size // 2 << size // 2, some):
                yield (*before, torn, *(0 for _ in after))
                yield (*before, torn, *after)
            yield tuple(choose.randrange(mask + 1) for mask in whole)
