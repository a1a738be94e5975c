"""D: a host-side read cache (vFRC)."""

from experiments.chapter import Chapter, Settings

MISSING = "the read cache is not there yet"


def run(settings: Settings) -> Chapter:
    chapter = Chapter(
        "D", "A read cache in the host",
        "vFRC: a disk of 32 GB, a cache of 6 GB with blocks of 4 KB, write-through. Sequential reads 3.5 times, 4K queued random reads 5 times the rate; hit rate 42 % with 6 GB and 47 % with 12 GB at a 50:50 mix. Resizing empties it; "
        "migration takes it along or drops it.",
        "Profiles vfrc-crystal and vfrc-sizing.",
    )  # fmt: skip
    chapter.not_run("Sequential and queued random reads are several times as fast with a cache", MISSING)
    chapter.not_run("The hit rate rises with the size of the cache, and less and less", MISSING)
    return chapter
