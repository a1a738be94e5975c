"""Packed columns: what a node keeps of its entries. A value of several fields is a table's row."""

from array import array
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, TypeAlias

Column: TypeAlias = "array[int]"
Row = tuple[int, ...]


class Table:
    """A sequence of rows; each field of them is a column. It is changed as a list is."""

    __slots__ = ("columns",)

    def __init__(self, columns: list[Column]) -> None:
        self.columns = columns

    @classmethod
    def of(cls, fields: str, rows: "Iterable[Row] | Table") -> "Table":
        """Return a table of rows, or the table that it is given.

        Each character of `fields` is the array type of a column.
        """
        if isinstance(rows, Table):
            return rows
        table = cls([array(field) for field in fields])
        table.extend(rows)
        return table

    def __len__(self) -> int:
        return len(self.columns[0])

    def __iter__(self) -> Iterator[Row]:
        return zip(*self.columns, strict=True)

    def __getitem__(self, at: Any) -> Any:
        """Return a row, or a table of the rows of a slice."""
        if isinstance(at, slice):
            return Table([column[at] for column in self.columns])
        return tuple([column[at] for column in self.columns])

    def __setitem__(self, at: int, row: Row) -> None:
        for column, field in zip(self.columns, row, strict=True):
            column[at] = field

    def __delitem__(self, at: int | slice) -> None:
        for column in self.columns:
            del column[at]

    def insert(self, at: int, row: Row) -> None:
        """Put a row before another."""
        for column, field in zip(self.columns, row, strict=True):
            column.insert(at, field)

    def extend(self, rows: Iterable[Row]) -> None:
        """Put rows behind the last one."""
        for column, fields in zip(self.columns, zip(*rows, strict=True), strict=False):
            column.extend(fields)


def put_between(column: "Column | Table", at: int, values: Sequence[Any]) -> None:
    """Put values, in their order, before the one at `at`."""
    if isinstance(column, Table):
        for part, fields in zip(column.columns, zip(*values, strict=True), strict=False):
            part[at:at] = array(part.typecode, fields)
    else:
        column[at:at] = array(column.typecode, values)


def taken(column: "Column | Table", slots: Sequence[int]) -> list[Any]:
    """Return the values in some slots."""
    if isinstance(slots, range):  # neighbours
        return [*column[slots.start : slots.stop]]
    if isinstance(column, Table) and len(column.columns) == 2:  # most tables
        first, second = column.columns
        return [(first[slot], second[slot]) for slot in slots]
    return [column[slot] for slot in slots]


def put_at(column: "Column | Table", slots: Sequence[int], values: Sequence[Any]) -> None:
    """Replace the values in some slots."""
    if isinstance(column, Table):
        for part, fields in zip(column.columns, zip(*values, strict=True), strict=False):
            put_at(part, slots, fields)
    elif slots and slots[-1] - slots[0] == len(slots) - 1:  # neighbours
        column[slots[0] : slots[-1] + 1] = array(column.typecode, values)
    else:
        for at, slot in enumerate(slots):
            column[slot] = values[at]


def remove_at(columns: Iterable[Column], slots: Sequence[int]) -> None:
    """Remove what some slots of columns hold; the slots are in ascending order."""
    first, end = slots[0], slots[-1] + 1
    if end - first == len(slots):  # neighbours
        for column in columns:
            del column[first:end]
        return
    for column in columns:
        for slot in reversed(slots):
            del column[slot]
