"""qcow2 is measured over a ladder of snapshots, by its own tools."""

import pytest

from experiments.measure import qcow2


@pytest.mark.parametrize("how", ["internal", "external"])
def test_qcow2_climbs_and_comes_down(how: str) -> None:
    rungs = list(qcow2.ladder(how, blocks=1024, writes=50, reads=200, most=2))
    assert [rung.snapshots for rung in rungs] == [0, 1, 2, 1, 0] and all(
        rung.read.iops > 0 for rung in rungs
    )
