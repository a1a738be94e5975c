"""The parts of a workload profile, and the requests that are drawn from it.

The same profile, size and seed give the same operations in the same order: `digest` shows that in
eight letters. Sizes are in blocks of 4 KiB.
"""

import hashlib
import random
import struct
from bisect import bisect
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import accumulate
from typing import NamedTuple

BLOCK = 4096  # bytes
DISK = 16384  # blocks of the disk at scale 1: 64 MiB
PACKED = struct.Struct("<?QI")  # a request, for the digest


class Access(NamedTuple):
    """The distribution that the requests of a phase are drawn from."""

    reads: float  # share of the requests that read
    blocks: int  # per request
    random: float = 1.0  # share of the requests at a random place; the others are sequential
    in_flight: int = 16  # requests at the same time
    span: float = 1.0  # share of the disk that is used, from its beginning
    skew: float = 0.0  # exponent of Zipf's law for the random places; 0: uniform

    def __str__(self) -> str:
        kind = {1.0: "random", 0.0: "sequential"}.get(self.random, f"{self.random:.0%} random")
        law = f", Zipf {self.skew:g}" if self.skew else ""
        part = f" on {self.span:.0%} of the disk" if self.span < 1 else ""
        size = f"{self.blocks * BLOCK >> 10} KiB"
        return f"{size}, {self.reads:.0%} read, {kind}{law}{part}, {self.in_flight} in flight"


class Phase(NamedTuple):
    """A phase of a run. Its actions are spread evenly over it, the first at its beginning.

    Actions: `snapshot`, `delete-oldest`, `delete-all`, `settle` (finish reclaim or consolidation),
    `fail N MODE`, `return N`, `timer` (the repair timer runs out). `and` joins several.
    """

    name: str
    length: float  # in units of the profile
    actions: tuple[str, ...] = ()
    rate: float = 0.0  # share of the first phase's rate at which requests arrive; 0: closed loop
    access: Access | None = None  # default: the profile's


@dataclass(frozen=True)
class Profile:
    """A workload: what clients do in each phase, and what happens to the disk meanwhile."""

    what: str  # in one line
    published: str  # the set-up that it is taken from; "" for this project's own
    access: Access
    phases: tuple[Phase, ...] = (Phase("run", 20),)
    unit: int = 1000  # operations of a phase of length 1, at scale 1
    layout: str = "mirror"  # default layout of the capacity leg

    @property
    def length(self) -> float:
        """The length of all phases, in units."""
        return sum(phase.length for phase in self.phases)

    @property
    def options(self) -> dict[str, int]:
        """Options of the disk. If devices fail: a spare, and little I/O for repair."""
        fails = any(action.startswith("fail") for phase in self.phases for action in phase.actions)
        return {"spares": 1, "repair_share": 10} if fails else {}


class Request(NamedTuple):
    """A read or a write of blocks, from an LBA (logical block address) on."""

    read: bool
    lba: int
    blocks: int


def requests(access: Access, blocks: int, count: int, choose: random.Random) -> Iterator[Request]:
    """Yield `count` requests to a disk of `blocks` blocks, which must hold at least one request."""
    places = max(1, int(blocks * access.span) // access.blocks)
    weights = (
        list(accumulate((place + 1) ** -access.skew for place in range(places)))
        if access.skew
        else []
    )
    order = choose.sample(range(places), places) if weights else range(places)
    following = 0
    for _ in range(count):
        read = choose.random() < access.reads
        if access.random < 1 and choose.random() >= access.random:
            place, following = following, (following + 1) % places
        else:
            place = (
                order[bisect(weights, choose.random() * weights[-1])]
                if weights
                else choose.randrange(places)
            )
        yield Request(read, place * access.blocks, access.blocks)


class Stretch(NamedTuple):
    """A phase of a run with its requests, and the actions that are done before some of them."""

    phase: Phase
    access: Access
    requests: list[Request]
    actions: dict[int, list[str]]  # by the index of the request


def stretches(profile: Profile, blocks: int, unit: float, seed: int) -> Iterator[Stretch]:
    """Yield the phases of a run in order; a phase of length 1 has `unit` operations."""
    choose = random.Random(seed)
    for phase in profile.phases:
        access = phase.access or profile.access
        count = max(1, round(phase.length * unit))
        actions: dict[int, list[str]] = {}
        for number, action in enumerate(phase.actions):
            actions.setdefault(count * number // len(phase.actions), []).append(action)
        yield Stretch(phase, access, list(requests(access, blocks, count, choose)), actions)


def digest(run: list[Stretch]) -> str:
    """Return a digest of all operations in their order: it differs if any of them does."""
    found = hashlib.blake2b(digest_size=4)
    for stretch in run:
        for number, request in enumerate(stretch.requests):
            for action in stretch.actions.get(number, ()):
                found.update(action.encode())
            found.update(PACKED.pack(*request))
    return found.hexdigest()
