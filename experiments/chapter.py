"""The result of an experiment: claims with their measurements, and figures."""

from collections.abc import Callable
from dataclasses import dataclass, field
from enum import StrEnum


class Verdict(StrEnum):
    """The verdict on a published claim: was it reproduced?"""

    REPRODUCED = "reproduced"
    DIFFERS = "not reproduced"
    NOT_RUN = "not run"


@dataclass(frozen=True)
class Claim:
    """A published claim, or one of theory, and what was measured here."""

    claim: str
    measured: str
    verdict: Verdict
    why: str = ""  # why it was not reproduced, or what differs from the published set-up
    must: bool = True  # it must hold: it is counted, not timed, and about this project's engine


@dataclass(frozen=True)
class Figure:
    """A figure of the report."""

    name: str  # name of its file, without .svg
    title: str
    caption: str
    svg: str


@dataclass
class Chapter:
    """The result of one experiment."""

    letter: str
    title: str
    published: str  # the set-up of the publication
    here: str  # what was run here
    claims: list[Claim] = field(default_factory=list)
    figures: list[Figure] = field(default_factory=list)
    seconds: float = 0.0  # wall-clock time that it took

    def judge(
        self, claim: str, measured: str, holds: bool, why: str = "", *, must: bool = True
    ) -> None:
        """Add a claim that was measured, and whether it holds."""
        self.claims.append(
            Claim(claim, measured, Verdict.REPRODUCED if holds else Verdict.DIFFERS, why, must)
        )

    def not_run(self, claim: str, why: str) -> None:
        """Add a claim that could not be measured, and why."""
        self.claims.append(Claim(claim, "", Verdict.NOT_RUN, why, must=False))


@dataclass(frozen=True)
class Settings:
    """The settings of the experiments."""

    scale: float  # scale of every profile; 1: disks of 64 MiB
    seed: int
    say: Callable[[str], None] = print  # called with the name of each run, for the terminal
