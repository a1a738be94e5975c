"""Ctrl-C and SIGTERM end a campaign, also where Python drops the exception."""

import os
import signal
import time

import pytest

from conformance.campaign import interrupts


class Careless:
    """An object that is interrupted while it is put away."""

    def __del__(self) -> None:
        os.kill(os.getpid(), signal.SIGTERM)


def test_an_interrupt_that_was_dropped_is_found() -> None:
    with interrupts.heeded():
        interrupts.look()
        careless = Careless()
        del careless
        with pytest.raises(KeyboardInterrupt):
            interrupts.look()
    interrupts.look()


def test_two_signals_at_once_are_one_interrupt() -> None:
    """`timeout` sends two. The second must not interrupt what the first one lets go."""
    with interrupts.heeded():
        with pytest.raises(KeyboardInterrupt):
            os.kill(os.getpid(), signal.SIGINT)
        os.kill(os.getpid(), signal.SIGINT)
        time.sleep(interrupts.SAME)
        with pytest.raises(KeyboardInterrupt):
            os.kill(os.getpid(), signal.SIGINT)
