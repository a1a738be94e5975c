"""The contract itself as a target: perfect, and free in all that the contract leaves free."""

import random
from typing import Any

from conformance.contract import model
from conformance.targets.base import Message, PowerCut

CAPABILITIES = [
    "unmap",
    "flush",
    "fua",
    "snapshot",
    "delete",
    "revert",
    "crash",
    "restart",
    "clean",
]


class ModelTarget:
    """A disk in memory that does what the contract allows; `seed` chooses what a crash leaves.

    Options: `profile` ("ack", "prefix" or "block") and `seed`."""

    knobs: dict[str, list[Any]] = {"profile": ["ack", "prefix", "block"]}
    cuts = True

    def __init__(self, options: dict[str, Any]) -> None:
        self.hello: Message = {
            "ok": True,
            "name": "model",
            "version": "1",
            "block_size": 512,
            "payload": "tags",
            "crash_profile": options.get("profile", "ack"),
            "capabilities": list(CAPABILITIES),
            "devices": 0,
            "tolerates": 0,
        }
        self._seed = options.get("seed", 0)
        self._random = random.Random(self._seed)
        self._states = model.init(self.hello)

    def request(self, message: Message) -> Message:
        op, cut = message["op"], message.get("cut")
        if op == "create":
            self._random = random.Random(self._seed)  # the same requests get the same answers
            self._states, self._random = model.init(self.hello), random.Random(self._seed)
        if op == "crash":
            return self._crash(message)
        state = self._states[0]
        faults = model.faults_of(state, message)
        if cut is not None and random.Random(cut["seed"]).random() < 0.7:
            self._states = model.step(self._states, {**message, "result": None})
            raise PowerCut
        if faults:
            return {"ok": False, "error": min(faults)}
        result: Message = {"ok": True}
        if op == "read":
            result["tags"] = self._tags(state, message)
        self._states = model.step(self._states, {**message, "result": result})
        return result

    def close(self) -> None:
        pass

    def _crash(self, message: Message) -> Message:
        if "cut" in message and self._random.random() < 0.5:
            self._states = model.step(self._states, {**message, "result": None})
            raise PowerCut
        after = model.step(self._states, {**message, "result": {"ok": True}})
        self._states = (self._random.choice(after),)
        return {"ok": True}

    def _tags(self, state: model.State, message: Message) -> list[int]:
        view, lba = message.get("view"), message["lba"]
        blocks = state.live if view is None else state.snaps[view]
        return [
            self._settled(blocks.get(at, model.ZERO), state)
            for at in range(lba, lba + message["count"])
        ]

    def _settled(self, held: int | model.Choice, state: model.State) -> int:
        while isinstance(held, model.Choice) and held not in state.bound:
            ways = [held.base, *sorted(held.tags)]
            held = self._random.choice(ways)
        return state.bound[held] if isinstance(held, model.Choice) else held
