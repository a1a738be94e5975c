"""The buckets of segments that may be cleaned: the victim is the one that looking at all gives."""

import random
from collections.abc import Callable

import pytest

from refmodel import LogStructuredDisk
from refmodel.log_structured.chunks.cleaner import POLICIES
from refmodel.log_structured.chunks.victims import TIDIED, Cost, Victims
from support.disks import block

MOST_STALE = 16  # entries of a bucket that may be out of date, besides as many as are not


def only(bucket: int) -> Cost:
    """Return a cost by which a bucket is cheaper than all others."""
    return lambda live, filled: live != bucket


def weighted(weight: int) -> Cost:
    """Return a cost of what lives and of age."""
    return lambda live, filled: weight * live + filled


def test_the_oldest_of_each_bucket_comes_first() -> None:
    choose, victims = random.Random(1), Victims(9)
    sealed: dict[int, tuple[int, int]] = {}
    for filled in range(3000):
        segment = choose.randrange(60)
        if choose.random() < 0.2:
            victims.discard(segment)
            sealed.pop(segment, None)
        else:
            live = choose.randrange(10)
            victims.put(segment, live, filled)
            sealed.pop(segment, None)
            if 0 < live < 9:
                sealed[segment] = live, filled
        least = {
            live: min((filled, s) for s, (found, filled) in sealed.items() if found == live)
            for live in {live for live, _ in sealed.values()}
        }
        if choose.random() < 0.3:  # not always: entries that are out of date are to gather
            for live, (_, segment) in least.items():
                assert victims.cheapest(only(live)) == segment
        cost = weighted(choose.choice((1, 10, 100)))
        costs = [(cost(live, at), at, segment) for live, (at, segment) in least.items()]
        assert victims.cheapest(cost) == min(costs, default=(0, 0, None))[2]
        assert victims.bucket_count == len(least)
        assert all((segment in victims) == (segment in sealed) for segment in range(60))
        assert (victims.any(choose) in sealed) if sealed else victims.any(choose) is None
    entries = sum(len(heap) for bucket in victims._buckets for heap in bucket)
    assert entries <= 2 * len(sealed) + 9 * (MOST_STALE + 1)


def test_a_bucket_is_tidied_in_small_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    victims, looked = Victims(9), 0
    is_current = Victims._is_current

    def counted(self: Victims, entry: int) -> bool:
        nonlocal looked
        looked += 1
        return is_current(self, entry)

    monkeypatch.setattr(Victims, "_is_current", counted)
    for segment in range(1000):
        victims.put(segment, 5, segment)
    for segment in range(1, 1000):
        victims.put(segment, 4, segment)  # what it leaves in its bucket is behind segment 0
    for number in range(300):
        before = looked
        victims.put(1000 + number, 5, 1000 + number)
        assert looked - before <= TIDIED
    assert sum(map(len, victims._buckets[5])) <= 2 * 301 + MOST_STALE
    assert victims.cheapest(only(5)) == 0


@pytest.mark.parametrize("policy", [name for name, cost in POLICIES.items() if cost])
def test_the_victim_is_the_one_that_looking_at_every_segment_gives(
    make: Callable[..., LogStructuredDisk], policy: str
) -> None:
    disk = make(256, cleaner=policy, fanout=0, segments=120)
    cost, segments, cleaner = POLICIES[policy], disk.state.segments, disk.cleaner
    assert cost is not None
    choose, asked, victim = random.Random(5), 0, cleaner.victim

    def checked() -> int | None:
        nonlocal asked
        compared, found = cleaner.compared, victim()
        now, units = segments.clock.now, segments.units
        assert (
            found
            == min(
                (
                    (cost(units, now)(usage.live, usage.filled), usage.filled, segment)
                    for segment, usage in segments.sealed.items()
                    if usage.live < units and segment in segments.victims
                ),
                default=(0, 0, None),
            )[2]
        )
        assert cleaner.compared - compared < units
        asked += 1
        return found

    cleaner.victim = checked  # type: ignore[method-assign]  # the test looks over its shoulder
    for tag in range(3000):
        disk.write(choose.randrange(256), block(tag))
        if tag == 1500:  # for a while it holds what live overwrites
            disk.snapshot("s")
        elif tag == 1650:
            disk.delete("s")
    assert asked > 50
    full = {segment for segment, usage in segments.sealed.items() if usage.live == segments.units}
    assert not any(segment in segments.victims for segment in full)
