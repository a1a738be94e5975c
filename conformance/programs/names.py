"""Names of snapshots: all that are allowed, and the ones next to them that are not.

A name is 1 to 64 of letters, digits, `.`, `_`, `-` (ASCII).
"""

import string

from conformance.contract.source import Source, rarely

LONGEST = 64  # characters
MARKS = "._-"  # who keeps a name in a file or on a command line may change these
ALLOWED = string.ascii_letters + string.digits + MARKS
STEM_ONE_IN = 8  # programs
LENGTHS = (1, 1, 2, 3, 8, 31, 32, 33, 63, 64)
SPECIAL = (
    *(".", "..", "-", "--", "_", "-n", ".a", "A" * LONGEST, "a.b_c-D9"),
    *("0", "00", "0.0", "1e3", "null", "None", "true"),  # what a parser may take for a value
    *("constructor", "__proto__", "toString", "__class__"),  # what objects have already
    *("live", "current", "tmp", "HEAD", "CON"),  # what an engine or a file system may use itself
)
SUFFIXES = (".tmp", ".new", ".old", ".bak", "-1", ".0")  # what an engine may append itself
STEM = 62  # characters that all names have in common, where they do: a cut leaves them alike
SWAPPED = str.maketrans("._", "_.")  # what who escapes names may confuse
# The characters on both sides of each allowed range, and others that are easily let through.
NEIGHBOURS = "/:@[`{^,+'\"\\ *?\t\n\r\x00\x1f\x7f\x80é٠Ａſ"


def some(choose: Source, count: int, begin: str = "") -> list[str]:
    """Return `count` different allowed names: easy to read in most programs, alike in some.

    If `begin` is a stem, all of them have it in common."""
    names = [called(f"s{number + 1}", begin) for number in range(count)]
    if not begin and rarely(choose, 3):
        names[0] = allowed(choose)
        for at in range(1, count):
            like = names[choose.randrange(at)]
            name = near(choose, like) if choose.randrange(4) else allowed(choose)
            if name not in names:
                names[at] = name
    return names


def stem(choose: Source) -> str:
    """Return the beginning of all names of a program: mostly nothing, or as much as leaves room
    for what tells them apart. Who cuts names off, or compares only a part, takes them for one."""
    if not rarely(choose, STEM_ONE_IN):
        return ""
    return "".join(ALLOWED[choose.randrange(len(ALLOWED))] for _ in range(STEM))


def called(name: str, begin: str) -> str:
    """Return the name behind a stem, as long as names may be; if it has the stem, as it is."""
    return (begin + name)[-LONGEST:]


def near(choose: Source, like: str) -> str:
    """Return an allowed name that may be taken for `like`: a part of it, or little different."""
    at, others = choose.randrange(len(like)), (ALLOWED, MARKS)[choose.randrange(2)]
    other = others[choose.randrange(len(others))]
    ways = (
        like + other,
        like + like[at:],
        like[: at + 1],
        like.swapcase(),
        like[:at] + other + like[at + 1 :],
        like[:-1] + other,
        other + like,
        like[::-1],
        like.translate(SWAPPED),
        like + SUFFIXES[choose.randrange(len(SUFFIXES))],
    )
    return ways[choose.randrange(len(ways))][:LONGEST]


def allowed(choose: Source) -> str:
    """Return an allowed name, of any length and any characters."""
    if rarely(choose, 3):
        return SPECIAL[choose.randrange(len(SPECIAL))]
    length = LENGTHS[choose.randrange(len(LENGTHS))]
    return "".join(ALLOWED[choose.randrange(len(ALLOWED))] for _ in range(length))


def forbidden(choose: Source, like: str) -> str:
    """Return a name that is not allowed, mostly one that differs little from `like`."""
    kind = choose.randrange(8)
    if kind == 0:
        return ""
    if kind == 1:
        return (like * (LONGEST + 1))[: LONGEST + 1]
    wrong = NEIGHBOURS[choose.randrange(len(NEIGHBOURS))]
    if kind == 2:
        return wrong
    at = choose.randrange(len(like) + 1)
    return (like[:at] + wrong + like[at:])[: LONGEST + 2]
