"""Mutants are drawn from the functions that run."""

import drawn_mutants
from drawn_mutants import explained, extracted, population
from mutants import PROOFS


def test_each_mutant_changes_a_function_that_is_extracted() -> None:
    names, found = extracted(), [*population()]
    assert {"ProvedDisk.v", "ProvedTreeDisk.v", "Leg.v", "WriteBack.v"} <= {
        one.file for one in found
    }
    for one in found:
        assert one.name in names[one.file.removesuffix(".v")]
        text = (PROOFS / "theories" / one.file).read_text()
        assert text.startswith(one.old, one.start) and one.old != one.new


def test_survivors_that_are_explained_are_mutants() -> None:
    assert explained().keys() <= {str(one) for one in population()}


def test_comments_are_no_code() -> None:
    bare = drawn_mutants.COMMENT.sub(lambda found: " " * len(found[0]), "1 (* S n *) + 2")
    assert bare == "1           + 2"
