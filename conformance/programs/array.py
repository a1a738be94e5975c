"""The requests about devices: which device fails, returns or is replaced next. Mostly no more
devices fail than are tolerated."""

from collections.abc import Mapping, Sequence
from typing import Any, TypeVar

from conformance.contract.source import Source, rarely
from conformance.programs.situation import ABSENT, BACK, DEGRADED, Situation, failure

Request = dict[str, Any]
Value = TypeVar("Value")

BEYOND_ONE_IN = (12, 12, 12, 2)  # failures, in a program: one device more than is tolerated
WRONG_ONE_IN = 12  # failures and returns: of a device that is away, or that is there, already
STAYS = {"return": (DEGRADED, BACK), "replace": (BACK,)}  # modes of the devices that do not so
FAULTY_ONE_IN = (0, 1, 2, 4)  # failures, in a program: the device is there, and goes wrong; 0: none


class Array:
    """Writes the requests about the devices of one program. Each returns the rest of the request,
    and changes the situation; None if it makes no sense now.
    """

    def __init__(
        self, choose: Source, hello: Mapping[str, Any], openings: Sequence[str] = ()
    ) -> None:
        """`faults` of `hello` are those with which a device of the target can stay there.

        `openings` are the operations that open the disk again."""
        self._choose = choose
        self._faults: Sequence[str] = hello.get("faults", ())
        self._faulty_one_in = self._one_of(FAULTY_ONE_IN) if self._faults else 0
        self.devices: int = hello.get("devices", 0)
        self.tolerates: int = hello.get("tolerates", 0)
        self.spares: int = hello.get("spares", 0) if "device" in hello["capabilities"] else 0
        # Whether too many may be absent: else all that follows may be of unknown outcome.
        self.outages_end = hello.get("outages_end", False) and self.devices > self.tolerates
        self._repair_seconds = hello.get("repair_seconds", 0)
        self._beyond_one_in = self._one_of(BEYOND_ONE_IN)
        self._openings = openings
        self._back: int | None = None  # the device that came back last
        self._replaced: list[int] = []  # devices in whose place spares came: in reserve once back

    @property
    def faulty(self) -> bool:
        """Return whether devices of this program may have faults while they are there."""
        return self._faulty_one_in > 0

    def request(self, op: str, now: Situation) -> Request | None:
        """Return the rest of a request `op`. If `op` names no device, only note that it is sent."""
        match op:
            case "fail" | "return" if now.failed and rarely(self._choose, WRONG_ONE_IN):
                return self._once_more(now, op)
            case "fail":
                return self.fail(now)
            case "return" | "replace":
                return self.bring_back(now, op)
            case "settle":
                return self.settle(now)
        now.note(op)
        return {}

    def fail(self, now: Situation) -> Request | None:
        """Let a sound device fail, or one that is back and has not caught up. Now and then this is
        one failure more than is tolerated."""
        again = [device for device, mode in now.failed.items() if mode == BACK]
        if again and self._choose.randrange(2):
            device = self._one_of(again)
        else:
            sound = [device for device in range(self.devices) if device not in now.failed]
            if not sound or len(now.failed) > self.tolerates:
                return None
            if len(now.failed) == self.tolerates and (
                not {*now.failed.values()}.isdisjoint(self._faults)
                or not rarely(self._choose, self._beyond_one_in)
            ):
                return None
            others = [device for device in sound if device != self._back]
            device = self._one_of(others if others and self._choose.randrange(2) else sound)
        how = self._one_of((ABSENT, ABSENT, DEGRADED))
        if (
            self.faulty
            and len({*now.failed, device}) <= self.tolerates
            and rarely(self._choose, self._faulty_one_in)
        ):
            how = self._one_of(self._faults)
        return self._failure(now, device, how)

    def go_wrong(self, now: Situation) -> Request | None:
        """Begin a fault of a device, if all devices are sound and the program may have faults."""
        if not self.faulty or now.failed:
            return None
        return self._failure(now, self._choose.randrange(self.devices), self._one_of(self._faults))

    def onto_spares(self, now: Situation) -> list[Request]:
        """Let as many devices fail as are tolerated, for good or until the repair timer has run
        out, often in two parts with an opening between them, and settle. Spares replace some."""
        some: list[Request] = []
        most = self.tolerates - len(now.failed)
        for _ in range(min(1 + self._choose.randrange(self.spares), most)):
            how = self._one_of((ABSENT, DEGRADED))
            some.append({"op": "fail", **self._failure(now, self._sound(now), how)})
        self._replaced = [request["device"] for request in some]
        first = self._one_of((0, 1, self._repair_seconds - 1))
        parts = [seconds for seconds in (first, self._repair_seconds - first) if seconds > 0]
        ticks = [{"op": "tick", "seconds": seconds} for seconds in parts]
        if opening := self._one_of((None, *self._openings)):
            ticks.insert(1, {"op": opening})
        now.settle()
        return [*some, *ticks, {"op": "settle"}]

    def spare_away(self, now: Situation) -> list[Request]:
        """Let a device that is likely to be in reserve be absent, and come back."""
        device = self._one_of(self._replaced or range(self.devices))
        gone = {"op": "fail", **self._failure(now, device, ABSENT)}
        now.bring_back(device)
        some = [gone, {"op": "return", "device": device}]
        if self.tolerates > 1 and self._choose.randrange(2):
            return some
        now.settle()
        return [*some, {"op": "settle"}]

    def all_that_may(self, now: Situation) -> list[Request]:
        """Let as many more devices fail as are tolerated, besides those that spares replace."""
        return [
            {"op": "fail", **self._failure(now, self._sound(now), ABSENT)}
            for _ in range(self.tolerates)
        ]

    def _sound(self, now: Situation) -> int:
        return self._one_of([device for device in range(self.devices) if device not in now.failed])

    def _failure(self, now: Situation, device: int, how: str) -> Request:
        now.note("fail")
        now.fail(device, how)
        return {"device": device, **failure(how, self._faults)}

    def bring_back(self, now: Situation, op: str) -> Request | None:
        """Return or replace a device that failed, as `op` says."""
        devices = [device for device, mode in now.failed.items() if mode not in STAYS[op]]
        if not devices:
            return None
        device = self._one_of(devices)
        now.note(op)
        now.bring_back(device)
        self._back = device
        return {"device": device}

    def _once_more(self, now: Situation, op: str) -> Request | None:
        """Let a failed device fail for good, or return a device that is there."""
        now.note(op)
        if op == "return":
            there = [one for one in range(self.devices) if now.failed.get(one, BACK) == BACK]
            last = self._back if self._back in there else None
            return {"device": self._one_of(there) if last is None else last} if there else None
        device = self._one_of(list(now.failed))
        now.fail(device, DEGRADED)
        return {"device": device, "mode": DEGRADED}

    def settle(self, now: Situation) -> Request | None:
        """Let the devices that are back catch up."""
        if len(now.failed) > self.tolerates and set(now.failed.values()) != {BACK}:
            return None
        now.note("settle")
        now.settle()
        return {}

    def _one_of(self, values: Sequence[Value]) -> Value:
        return values[self._choose.randrange(len(values))]
