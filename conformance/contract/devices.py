"""Devices that fail and come back, and hints: operations that do not change the disk's content.

Devices are counted so as never to accuse wrongly. One that failed counts as failed until it is
known to be returned or replaced, and the disk has settled. It is known if that was answered ok. It
is also known if that was refused, but may have happened when it was asked for before: then the
target refuses because the device is back. Beyond tolerance it may refuse for other reasons.
"""

from typing import Any

from conformance.contract.state import Devices, State, States

Event = dict[str, Any]

OPEN = ("cut", "unknown-outcome")  # answers that leave open what happened


def hint(state: State, event: Event, answer: str) -> States:
    """Return the states after an operation that changes no view, such as `fail` or `settle`."""
    if not state.power:
        return ()
    failed, back, asked, lost = state.devices
    device: int = event.get("device", -1)
    match event["op"]:
        case "fail":
            failed, back, asked = failed | {device}, back - {device}, asked - {device}
        case "return" | "replace":
            if event["op"] == "replace" and answer in ("ok", *OPEN):
                failed = failed | {device}
                lost = lost or len(failed) > state.rules.tolerates
            if device in failed and answer in OPEN:
                asked = asked | {device}
            elif device in failed and (
                answer == "ok" or device in asked and not beyond_tolerance(state)
            ):
                back = back | {device}
        case "settle" if answer == "ok":
            failed, back = failed - back, frozenset()
    if answer == "cut":
        state = state._replace(power=False)
    return (state._replace(devices=Devices(failed, back, asked, lost)),)


def beyond_tolerance(state: State) -> bool:
    """Return whether more devices have failed than the target tolerates."""
    return state.devices.lost or len(state.devices.failed) > state.rules.tolerates
