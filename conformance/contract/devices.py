"""Devices that fail and come back, and hints: operations that do not change the disk's content.

Devices are counted so as never to accuse wrongly: one that is returned or replaced counts as failed
until the disk has settled.
"""

from typing import Any

from conformance.contract.state import Devices, State, States

Event = dict[str, Any]


def hint(state: State, event: Event, answer: str) -> States:
    """Return the states after an operation that changes no view, such as `fail` or `settle`."""
    if not state.power:
        return ()
    failed, back, lost = state.devices
    device: int = event.get("device", -1)
    if answer == "cut":  # it is not counted: a program sends it again before it reads
        return (state._replace(power=False),)
    match event["op"]:
        case "fail":
            failed, back = failed | {device}, back - {device}
        case "return" if device in failed:
            back = back | {device}
        case "replace":
            lost = lost or len(failed | {device}) > state.rules.tolerates
            failed, back = failed | {device}, back | {device}
        case "settle" if answer == "ok":
            failed, back = failed - back, frozenset()
        case _:
            return (state,)
    return (state._replace(devices=Devices(failed, back, lost)),)


def beyond_tolerance(state: State) -> bool:
    """Return whether more devices have failed than the target tolerates."""
    return state.devices.lost or len(state.devices.failed) > state.rules.tolerates
