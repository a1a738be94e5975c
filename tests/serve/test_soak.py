"""The short form of `make soak`, and what it would notice."""

from pathlib import Path

import pytest

from support.serving.soak import Sample, Wrong, require_steady, soak

STEADY = [Sample(float(number), 50 << 20, 15, 10_000) for number in range(40)]


def test_a_server_stays_as_it_was(tmp_path: Path) -> None:
    assert len(list(soak(tmp_path, 60, seed=1))) >= 4


@pytest.mark.parametrize(
    "late, said",
    [
        ({"memory": 70 << 20}, "memory grew"),
        ({"files": 20}, "open files grew"),
        ({"rate": 5_000}, "the rate fell"),
    ],
)
def test_what_changes_is_noticed(late: dict[str, int], said: str) -> None:
    require_steady(STEADY, rates=True)
    changed = STEADY[:30] + [sample._replace(**late) for sample in STEADY[30:]]
    with pytest.raises(Wrong, match=said):
        require_steady(changed, rates=True)
