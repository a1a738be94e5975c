"""What an experiment hands to the report: claims with what was measured here, and figures."""

from collections.abc import Callable
from dataclasses import dataclass, field
from enum import StrEnum


class Verdict(StrEnum):
    REPRODUCED = "reproduced"
    DIFFERS = "not reproduced"
    NOT_RUN = "not run"


@dataclass(frozen=True)
class Claim:
    claim: str  # as it was published, or as theory has it
    measured: str  # here
    verdict: Verdict
    why: str = ""  # not, or what the difference is
    must: bool = True  # hold: it is counted, not timed, and about this project's own engine


@dataclass(frozen=True)
class Figure:
    name: str  # of its file
    title: str
    caption: str
    svg: str


@dataclass
class Chapter:
    letter: str
    title: str
    published: str  # the set-up of the publication
    here: str  # what was run in its place
    claims: list[Claim] = field(default_factory=list)
    figures: list[Figure] = field(default_factory=list)
    seconds: float = 0.0  # that it took, by the wall

    def judge(
        self, claim: str, measured: str, holds: bool, why: str = "", *, must: bool = True
    ) -> None:
        """A claim that was measured."""
        self.claims.append(
            Claim(claim, measured, Verdict.REPRODUCED if holds else Verdict.DIFFERS, why, must)
        )

    def not_run(self, claim: str, why: str) -> None:
        self.claims.append(Claim(claim, "", Verdict.NOT_RUN, why, must=False))


@dataclass(frozen=True)
class Settings:
    scale: float  # of every profile; 1: disks of 64 MiB
    seed: int
    say: Callable[[str], None] = print  # is told what is being run
