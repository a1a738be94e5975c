"""A leg: what a write that spans several stripes says of the components that have it."""

from collections.abc import Callable
from typing import Any

import pytest

from refmodel.array.component import Component
from support.array_disks import TrackedDisk


@pytest.mark.parametrize("layout", ["mirror", "raid5-2+1", "raid6-4+2"])
def test_a_component_that_missed_the_first_stripe_of_a_write_does_not_have_it(
    tracked: Callable[..., TrackedDisk], monkeypatch: pytest.MonkeyPatch, layout: str
) -> None:
    leg = tracked(layout).disk.state.capacity
    missing, write = leg.components[1], leg.write_component

    def write_but_once(component: Component, offset: int, *rest: Any) -> bool:
        return not (component is missing and offset == 0) and write(component, offset, *rest)

    monkeypatch.setattr(leg, "write_component", write_but_once)
    data = bytes(2 * leg.stripe_bytes)
    assert leg.write(0, data, "destage") == [c for c in leg.components if c is not missing]
    assert leg.write(2 * leg.stripe_bytes, data, "destage") == leg.components
