"""Devices that fail and come back, as the model of the contract counts them."""

import pytest

from support.model_steps import op, run


def test_data_may_be_lost_only_beyond_what_is_tolerated() -> None:
    lost, fail = op("read", "data-lost", lba=0, count=1), op("fail", device=1, mode="absent")
    assert run("ack", fail, lost, tolerates=1) == 2
    assert run("ack", fail, op("fail", device=2, mode="absent"), lost, tolerates=1) is None
    both = [fail, op("fail", device=2, mode="absent"), op("return", device=1)]
    assert run("ack", *both, lost, tolerates=1) is None, (
        "a device that is back is not in sync before it settled"
    )
    assert run("ack", *both, op("settle"), lost, tolerates=1) == 5
    write = op("write", "data-lost", lba=0, tags=[1])
    assert run("ack", *both[:2], write, tolerates=1) == 3, "a change is no read"


@pytest.mark.parametrize("comes_back", ["return", "replace"])
def test_a_device_is_back_only_if_it_is_known_to_be(comes_back: str) -> None:
    first, second = (op("fail", device=device, mode="degraded") for device in (1, 2))
    lost = op("read", "data-lost", lba=0, count=1)

    def accused(*answers: str) -> bool:
        """Return whether data may not be lost once the other device has failed, too."""
        asked = [op(comes_back, answer, device=1) for answer in answers]
        events = [first, *asked, op("settle"), second, lost]
        return run("ack", *events, tolerates=1) is not None

    assert accused("ok") and accused("bad-request", "ok") and accused("ok", "bad-request")
    assert not accused("bad-request") and not accused("bad-request", "bad-request")
    assert not accused("unknown-outcome") and accused("unknown-outcome", "bad-request"), (
        "it is refused because it had happened"
    )
    cut = [first, op(comes_back, "cut", device=1), op("crash")]
    rest = [op("settle"), second, lost]
    assert run("ack", *cut, *rest, tolerates=1) is None
    again = [op(comes_back, "bad-request", device=1)]
    assert run("ack", *cut, *again, *rest, tolerates=1) == 7
    failed_again = op("fail", device=1, mode="absent")
    assert run("ack", *cut, failed_again, *again, *rest, tolerates=1) is None


def test_a_refused_replacement_of_a_sound_device_changes_nothing() -> None:
    refused = [op("replace", "bad-request", device=1), op("fail", device=2, mode="absent")]
    assert run("ack", *refused, op("read", "data-lost", lba=0, count=1), tolerates=1) == 3


def test_a_disk_that_cannot_be_opened_does_not_know_its_views_or_its_size() -> None:
    both = [op("fail", device=device, mode="absent") for device in (1, 2)]
    for unknown in ({"lba": 0, "view": "s"}, {"lba": 99}):
        lost = op("read", "data-lost", count=1, **unknown)
        assert run("ack", *both, lost, tolerates=1) is None
        assert run("ack", both[0], lost, tolerates=1) == 2
