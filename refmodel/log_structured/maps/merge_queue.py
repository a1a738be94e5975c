"""The frozen maps of one disk whose changes wait, and the order in which they are merged.

A map is frozen after its base, so the first one in the queue has no base. When it is merged, the
maps that are based on it get its tree.
"""

from collections import deque

from refmodel.log_structured.maps.logical_map import LiveMap, LogicalMap


class MergeQueue(deque[LogicalMap]):
    """Frozen maps that wait to be merged, the oldest first."""

    def add(self, map: LogicalMap) -> None:
        """Queue a map that has just been frozen, unless nothing of it waits."""
        if map.recent:
            self.append(map)

    def merge(self, most: int, live: LiveMap, *, whole: bool = False) -> bool:
        """Merge at most `most` changes, the oldest frozen map first, live behind the last one.

        Live is merged when enough changes wait there, or if the `whole` of them is asked for.
        Returns whether nothing is left of what has to be merged. Raises NoSpace, DataLost.
        """
        while self and most > 0:
            most -= len(self[0].merge(most))
            if not self[0].recent:
                self.popleft().give_tree()
        if self:
            return False
        if whole or live.is_merging():
            live.merge(most)
        return not (live.recent if whole else live.is_merging())
