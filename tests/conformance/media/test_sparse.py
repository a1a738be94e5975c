"""A disk that is mostly zeroes survives the way through text."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from conformance.media import sparse
from conformance.media.sparse import PAGE, BadContent

PIECES = st.lists(st.sampled_from([bytes(PAGE), b"a" * PAGE, b"\0" * 99 + b"b"]), max_size=8)


@given(PIECES)
def test_a_round_trip_changes_nothing(pieces: list[bytes]) -> None:
    content = b"".join(pieces)
    assert sparse.unpack(sparse.pack(content), len(content)) == content


def test_zeroes_take_no_room() -> None:
    assert len(sparse.pack(bytes(16 << 20))) < 50


@pytest.mark.parametrize(
    "text", ["", "not base 85 \\", "abcde", sparse.pack(b"a" * PAGE * 2), sparse.pack(b"")[:-5]]
)
def test_damaged_text_is_refused(text: str) -> None:
    with pytest.raises(BadContent):
        sparse.unpack(text, PAGE)
