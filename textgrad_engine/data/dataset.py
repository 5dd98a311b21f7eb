"""A dataset: a sequence of examples that knows where each one was read from."""

from __future__ import annotations

import dataclasses
import itertools
import os
import uuid
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence, Sized
from pathlib import Path
from typing import Any, Generic, Protocol, TypeVar, cast, overload

from textgrad_engine.checks import check, in_order
from textgrad_engine.data.names import listed, suggest
from textgrad_engine.errors import DataError
from textgrad_engine.plain_values import is_whole
from textgrad_engine.wording import a_class, told

Example = dict[str, Any]
"""One example: its fields by name."""

T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)


class Examples(Protocol[T_co]):
    """Anything with a length and an example at each position: any sequence, and datasets of PyTorch and Hugging Face.

    Views of a dict and pandas' Series are taken, too, though types do not say so.
    """

    def __len__(self) -> int: ...
    def __getitem__(self, index: int, /) -> T_co: ...


class Dataset(Sequence[Example]):
    """Examples in order, each with a stable id and the place it came from.

    The rows are kept as they were given: an id made up by the dataset is not added to them.

    Args:
        rows: the examples.
        path: the file they were read from; None for rows made in memory.
        lines: the line (from 1) of each row in that file; by default rows are counted from 1.

    Raises:
        DataError: a row is no dict or other mapping, an id is no string, whole number or UUID, or two rows have one id.
        ValueError: there are more or fewer lines than rows.

    Example:
        >>> tickets = Dataset([{"id": "a", "text": "no signal"}, {"text": "wrong bill"}])
        >>> tickets.ids, tickets.columns
        (('a', '1'), ('id', 'text'))
    """

    def __init__(
        self,
        rows: Iterable[Mapping[str, Any]],
        *,
        path: str | Path | None = None,
        lines: Sequence[int] | None = None,
    ) -> None:
        one_by_one = {"rows": ()} if isinstance(rows, Iterable | os.PathLike) else {}  # each row is looked at below
        check(Dataset.__init__, locals() | one_by_one)
        self._rows: list[Example] = list(examples_of(cast("Iterable[Example]", rows)))
        self.path = None if path is None else Path(path)
        self._lines = list(range(1, len(self._rows) + 1)) if lines is None else list(lines)
        if len(self._lines) != len(self._rows):
            raise ValueError(f"got {len(self._rows)} rows and {len(self._lines)} line numbers")
        for index, row in enumerate(self._rows):
            if not isinstance(row, Mapping):
                raise DataError(f"{self.where(index)}: a row is a dict of fields, got {as_example(row)}")
        self.columns: tuple[str, ...] = tuple(dict.fromkeys(name for row in self._rows for name in row))
        self.ids: tuple[str, ...] = self._make_ids()

    @overload
    def __getitem__(self, index: int) -> Example: ...
    @overload
    def __getitem__(self, index: slice) -> Subset[Example]: ...
    def __getitem__(self, index: int | slice) -> Example | Subset[Example]:
        if isinstance(index, slice):
            return Subset(self, range(len(self))[index])
        try:
            return self._rows[index]
        except TypeError as error:
            raise _no_position(self, index, error) from None

    def __len__(self) -> int:
        return len(self._rows)

    def __repr__(self) -> str:
        source = f"{str(self.path)!r}, " if self.path else ""
        return f"Dataset({source}{len(self)} examples, columns: {listed(self.columns)})"

    def where(self, index: int) -> str:
        """The place of one example, for messages: ``file:line``, or its position when it has no file."""
        if self.path is None:
            return f"example {index}"
        return f"{self.path}:{self._lines[index]}"

    def require(self, *columns: str, null: bool = False) -> None:
        """Check that every row has these columns, and, unless they may be, not as null.

        Raises:
            DataError: a row lacks one; the message names the file, the line and the columns there are.
        """
        for column in columns:
            if self._rows and column not in self.columns:
                raise DataError(
                    f"{self.where(0)}: there is no column {column!r} in any row; the columns are {listed(self.columns)}"
                    f"{suggest(column, self.columns)}"
                )
            for index, row in enumerate(self._rows):
                if column not in row:
                    others = {name for other in self._rows if column in other for name in other}
                    raise DataError(
                        f"{self.where(index)}: this row has no column {column!r}; it has {listed(row)}"
                        f"{suggest(column, [name for name in row if name not in others])}; add the column, or take the "
                        "row out"
                    )
                if row[column] is None and not null:
                    raise DataError(
                        f"{self.where(index)}: column {column!r} is null in this row, of the columns {listed(row)}; "
                        "give it a value, or take the row out"
                    )

    def _make_ids(self) -> tuple[str, ...]:
        first: dict[str, int] = {}
        nth = 0  # of the rows on a line: a JSON list may hold several, or all, on one
        for index, row in enumerate(self._rows):
            nth = nth + 1 if index and self.path and self._lines[index] == self._lines[index - 1] else 1
            given = row.get("id")
            if not isinstance(given, str | uuid.UUID | None) and not is_whole(given):
                raise DataError(
                    f"{self.where(index)}: an id is a string or a whole number, got {type(given).__name__}; "
                    "repair it, or rename the column if it is no id"
                )
            if given is None or given == "":
                name = self._made_up_id(index, nth)
            else:
                name = str(given)
            if name in first:
                raise DataError(
                    f"{self.where(index)}: the id {name!r} was already given at {self.where(first[name])}; "
                    "give each example an id of its own, or rename the column if it is no id"
                )
            first[name] = index
        return tuple(first)

    def _made_up_id(self, index: int, nth: int) -> str:
        if self.path is None:
            return str(index)
        return f"{self.path.stem}:{self._lines[index]}" + (f".{nth}" if nth > 1 else "")


class Subset(Sequence[T], Generic[T]):
    """Some examples of a sequence, in any order, with the ids they have there.

    Args:
        dataset: the sequence that holds the examples.
        indices: positions in it.

    Raises:
        IndexError: a position is outside of the sequence.

    Example:
        >>> part = Subset(Dataset([{"n": 1}, {"n": 2}, {"n": 3}]), [2, 0])
        >>> list(part), part.ids
        ([{'n': 3}, {'n': 1}], ('2', '0'))
    """

    def __init__(self, dataset: Examples[T], indices: Iterable[int]) -> None:
        check(Subset.__init__, locals())
        self.dataset = by_position(dataset)
        self.indices = tuple(indices)
        for index in self.indices:
            if not 0 <= index < len(self.dataset):
                raise IndexError(f"index {index} is outside of a dataset of {len(self.dataset)} examples")
        names = ids_of(self.dataset)
        self.ids: tuple[str, ...] = tuple(names[index] for index in self.indices)

    @overload
    def __getitem__(self, index: int) -> T: ...
    @overload
    def __getitem__(self, index: slice) -> Subset[T]: ...
    def __getitem__(self, index: int | slice) -> T | Subset[T]:
        if isinstance(index, slice):
            return Subset(self.dataset, self.indices[index])
        try:
            position = self.indices[index]
        except TypeError as error:
            raise _no_position(self, index, error) from None
        return self.dataset[position]

    def __len__(self) -> int:
        return len(self.indices)

    def __repr__(self) -> str:
        whole = repr(self.dataset) if isinstance(self.dataset, Dataset | Subset) else f"{len(self.dataset)} examples"
        return f"Subset({len(self)} of {whole})"

    @property
    def columns(self) -> tuple[str, ...]:
        """The field names of its examples, in order of first appearance; none when they are not dicts."""
        return tuple(dict.fromkeys(name for row in self if isinstance(row, Mapping) for name in row))

    @property
    def path(self) -> Path | None:
        """The file that the examples were read from, or None."""
        path: Path | None = getattr(self.dataset, "path", None)
        return path

    def where(self, index: int) -> str:
        """The place of one example, for messages."""
        outer = self.dataset
        if isinstance(outer, (Dataset, Subset)):
            return outer.where(self.indices[index])
        return f"example {self.indices[index]}"

    def require(self, *columns: str) -> None:
        """Check that each of its examples has these columns, and not as null.

        Raises:
            DataError: one lacks a column; the message names its place and the columns there are.
        """
        for column in columns:
            for index, row in enumerate(self):
                if not isinstance(row, Mapping):
                    raise DataError(f"{self.where(index)}: there is no column {column!r} in {as_example(row)}")
                if row.get(column) is None:
                    names = listed(row)
                    raise DataError(
                        f"{self.where(index)}: there is no value in column {column!r}; this row has {names}"
                        f"{'' if column in self.columns else suggest(column, self.columns)}"
                    )


def _no_position(dataset: Dataset | Subset[Any], index: Any, error: TypeError) -> TypeError:
    """What is said where a dataset is asked for something else than an example or a slice."""
    if not isinstance(index, str):
        return error
    column = f"[row[{index!r}] for row in dataset]"
    return TypeError(f"{type(dataset).__name__}: its examples are at 0, 1, …; a column of them is {column}")


def examples_of(dataset: Iterable[T] | Examples[T]) -> Iterator[T]:
    """The examples of a dataset in order, as many as its length says.

    A map-style dataset, as PyTorch has them, promises `__len__` and `__getitem__` and no IndexError behind the last
    example: a plain ``for`` over it may never end.

    Example:
        >>> class Squares:
        ...     def __len__(self):
        ...         return 3
        ...     def __getitem__(self, index):
        ...         return index * index
        >>> list(examples_of(Squares()))
        [0, 1, 4]

    Raises:
        TypeError: it is a path, one example, a table or a dict of columns.
    """
    if why := as_no_rows(dataset):
        raise TypeError(f"examples are a sequence of dicts, and this is {why}")
    rows = cast("Iterable[T]", dataset)
    if isinstance(rows, type) or not (hasattr(rows, "__iter__") or hasattr(rows, "__getitem__")):
        raise TypeError(f"examples_of: dataset must be a sequence, got {told(rows)}")
    return itertools.islice(rows, len(rows)) if isinstance(rows, Sized) else iter(rows)


def by_position(dataset: Examples[T], named: str = "") -> Sequence[T]:
    """A dataset that has its examples at 0, 1, …: itself, or a list of what is in a view of a dict or a pandas Series.

    Args:
        dataset: what was given.
        named: how an error begins that names it.

    Example:
        >>> by_position({"t1": "no signal", "t2": "wrong bill"}.values())
        ['no signal', 'wrong bill']

    Raises:
        TypeError: it has no length, or its examples are not there one by one.
    """
    if why := as_no_rows(dataset):
        raise TypeError(f"{named}examples are a sequence of dicts, and this is {why}")
    given: Any = dataset
    by_label = hasattr(given, "iloc")  # as in pandas' Series, whose labels may be any numbers
    in_order(given, named, "sorted(examples)")
    if isinstance(given, Collection) and (by_label or not hasattr(given, "__getitem__")):
        return list(given)
    if not isinstance(given, Sized) or not hasattr(given, "__getitem__"):
        raise TypeError(
            f"{named}a dataset has a length, and an example at each position, as a list has; got "
            f"{type(given).__name__}; of a stream take a part: list(itertools.islice(stream, 500))"
        )
    return cast("Sequence[T]", given)


def as_example(row: Any) -> str:
    """What something is that is no dict of its fields, with the repair.

    Example:
        >>> from collections import namedtuple
        >>> as_example(namedtuple("Row", "text target")("no signal", "technical"))
        'a Row; give row._asdict()'
    """
    own = next((f"row.{name}()" for name in ("model_dump", "_asdict", "to_dict") if hasattr(row, name)), "")
    if dataclasses.is_dataclass(row) and not isinstance(row, type):
        own = own or "dataclasses.asdict(row)"
    if hasattr(row, "keys") and hasattr(row, "__getitem__"):  # sqlite3.Row, and those of other databases
        own = own or "dict(row)"
    repair = f"give {own}" if own else 'an example is a dict of its fields, such as {"text": ..., "target": ...}'
    return f"{a_class(type(row))}; {repair}"


def as_no_rows(dataset: Any) -> str:
    """What something is whose parts are no examples, with the repair; "" for what holds them one by one.

    A ``for`` over it would go on all the same: over the letters of a path, the names of columns, or of an example's
    fields.

    Example:
        >>> as_no_rows([{"text": "no signal"}])
        ''
        >>> as_no_rows({"text": ["no signal"], "queue": ["technical"]})[:26]
        'a dict of text, queue; of '
        >>> as_no_rows("train.jsonl")
        "the path 'train.jsonl'; data.load('train.jsonl') reads them"
    """
    if isinstance(dataset, str | os.PathLike):
        path = f"{os.fspath(dataset)!r:.300}"
        return f"the path {path}; data.load({path}) reads them"
    if hasattr(dataset, "dataset") and hasattr(dataset, "batch_size"):  # PyTorch's, too
        return (
            f"{a_class(type(dataset))}, which gives minibatches; give the dataset that it was made with, its .dataset"
        )
    if isinstance(dataset, Mapping) and 0 in dataset:
        return "a dict of examples by their numbers; give them in a list: list(examples.values())"
    if isinstance(dataset, Mapping) and dataset and all(isinstance(it, str | int | float) for it in dataset.values()):
        return f"one example, with {listed(dataset)}; give a list of it: [example]"
    if isinstance(dataset, Mapping):
        return (
            f"a dict of {listed(dataset)}; of several splits give one, "
            "and in the place of a slice of a `datasets` dataset its .select(range(...))"
        )
    for method, said in _ROWS_OF_TABLES.items():
        if hasattr(dataset, "columns") and hasattr(dataset, method) and not _begins_with_a_row(dataset):
            return f"a table ({type(dataset).__name__}); give its rows, {said}"
    return ""


def _begins_with_a_row(dataset: Any) -> bool:
    """Whether the first thing in it is an example, as in a dataset of the user's own that knows its columns."""
    try:
        return isinstance(dataset[0], Mapping)
    except Exception:  # a table may have any way to say that there is no column 0
        return False


_ROWS_OF_TABLES = {"to_dicts": ".to_dicts()", "to_pylist": ".to_pylist()", "to_dict": '.to_dict("records")'}
"""By the method that polars', Arrow's and pandas' tables have for it."""


def ids_of(dataset: Examples[Any]) -> tuple[str, ...]:
    """The id of each example of any sequence: its own ids where it has them, else positions.

    Raises:
        DataError: the examples are dicts, and their ids are malformed or not unique.

    Example:
        >>> ids_of([{"id": 7, "text": "a"}, {"text": "b"}]), ids_of(["a", "b"])
        (('7', '1'), ('0', '1'))
    """
    if isinstance(dataset, (Dataset, Subset)):
        return dataset.ids
    every = by_position(dataset)
    rows = list(itertools.takewhile(lambda row: isinstance(row, Mapping), examples_of(every)))
    if len(rows) == len(every):
        return Dataset(rows).ids
    return tuple(str(index) for index in range(len(every)))
