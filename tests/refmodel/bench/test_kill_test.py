"""SIGKILL under load; `make kill` does it 500 times per layout."""

from pathlib import Path

import pytest

from refmodel.array.layout import LAYOUTS
from refmodel.bench import kill_test


@pytest.mark.parametrize("layout", LAYOUTS)
def test_no_acknowledged_operation_is_lost(folder: Path, layout: str) -> None:
    found = kill_test.campaign(folder, 12, layout)
    assert found.wrong == [] and found.kills == 12 and found.acknowledged > 12
