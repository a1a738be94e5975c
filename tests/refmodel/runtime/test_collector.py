"""The collector of cycles: full collections wait for an idle moment, and then find all cycles."""

import gc
import weakref

from refmodel.runtime.collector import collect_if_due, full_collections_in_idle_moments


class Cycle:
    def __init__(self) -> None:
        self.itself = self


def full_collections() -> int:
    return int(gc.get_stats()[2]["collections"])


def test_a_full_collection_waits_for_an_idle_moment() -> None:
    usual = gc.get_threshold()
    with full_collections_in_idle_moments():
        before, keeper = full_collections(), [Cycle()]
        old = weakref.ref(keeper[0])
        kept = [[number] for number in range(200_000)]  # enough for several full collections
        keeper.clear()  # the cycle has survived collections of young objects by now
        assert full_collections() == before
        assert old() is not None
        collect_if_due()
        assert full_collections() == before + 1
        assert old() is None
        collect_if_due()
        assert full_collections() == before + 1, "none is due so soon"
        assert len(kept) == 200_000
    assert gc.get_threshold() == usual


def test_young_objects_are_collected_meanwhile() -> None:
    with full_collections_in_idle_moments():
        young = weakref.ref(Cycle())
        kept = [[number] for number in range(2_000)]
        assert young() is None and kept


def test_a_server_that_is_never_idle_does_full_collections_rarely() -> None:
    young, middle, old = gc.get_threshold()
    gc.collect()
    gc.freeze()  # so that what other tests have left does not count as old objects
    gc.collect()
    try:
        gc.set_threshold(10, 1, old)
        with full_collections_in_idle_moments():
            before, keeper = full_collections(), [Cycle()]
            lost = weakref.ref(keeper[0])
            kept = [[number] for number in range(100_000)]  # some 500 younger collections
            keeper.clear()
            assert full_collections() == before and lost() is not None
            kept += [[number] for number in range(300_000)]
            assert full_collections() > before and lost() is None and kept
    finally:
        gc.unfreeze()
        gc.set_threshold(young, middle, old)
