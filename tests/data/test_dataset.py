"""Datasets and subsets: ids, columns and places."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import textgrad_engine as tg
from textgrad_engine import nn
from textgrad_engine.data import DataLoader, check_splits, random_split
from textgrad_engine.data.dataset import Dataset, Subset, as_no_rows, examples_of, ids_of
from textgrad_engine.data.names import suggest
from textgrad_engine.errors import DataError


def tickets() -> Dataset:
    rows = [{"id": "a", "text": "x", "queue": "one"}, {"text": "y"}, {"text": None, "queue": "two"}]
    return Dataset(rows, path=Path("train.jsonl"), lines=[1, 2, 5])


def test_a_column_that_no_row_has_is_named_with_those_there_are() -> None:
    """A typing error in a column name is answered with the columns and the near one."""
    with pytest.raises(
        DataError, match=r"train\.jsonl:1: .*'txt'.* the columns are id, text, queue; did you mean 'text'"
    ):
        tickets().require("txt")


def test_the_row_that_lacks_a_column_is_named() -> None:
    """A column that is missing in one row is found at its line, not when the row is used."""
    with pytest.raises(DataError, match=r"train\.jsonl:2: this row has no column 'queue'; it has text"):
        tickets().require("queue")


def test_a_name_is_suggested_for_a_column_that_a_row_lacks_where_other_rows_do_not_have_it() -> None:
    """`text` is near `target`, and a column that all rows have is no misspelled one."""
    with pytest.raises(DataError, match="it has id, text; add the column, or take the row out"):
        Dataset([{"id": 1, "text": "x", "target": "a"}, {"id": 2, "text": "y"}]).require("target")
    rows = [{"text": "x", "queue": "one"}, {"text": "y", "queu": "one"}, {"text": "z", "queu": "one"}]
    with pytest.raises(DataError, match=r"example 1: .*; did you mean 'queu'"):
        Dataset(rows).require("queue")


def test_the_row_where_a_column_is_null_is_named() -> None:
    """Null is no value."""
    with pytest.raises(DataError, match=r"train\.jsonl:5: column 'text' is null"):
        tickets().require("text")


def test_a_subset_names_the_place_in_the_file() -> None:
    """Splitting does not lose where a row came from."""
    part = tickets()[1:]
    with pytest.raises(DataError, match=r"train\.jsonl:5: there is no value in column 'text'"):
        part.require("text")
    with pytest.raises(DataError, match=r"train\.jsonl:5: "):
        part[1:].require("text")
    tickets()[:1].require("text", "queue")
    assert part.path == Path("train.jsonl")
    assert part.columns == ("text", "queue")


@pytest.mark.parametrize("make", [DataLoader, ids_of, lambda given: random_split(given, [1, 2], seed=0)])
def test_a_set_is_refused(make: Any) -> None:
    """Its order is another one in each process, and views of a dict have one."""
    with pytest.raises(TypeError, match=r"a set has no order that two runs share; give a list: sorted\(examples\)"):
        make({"a", "b", "c"})
    make(dict.fromkeys("abc").keys())


def test_rows_that_are_no_dicts_and_wrong_line_counts_are_refused() -> None:
    """A list of strings is not a dataset."""
    with pytest.raises(DataError, match="example 1: a row is a dict of fields, got a str; an example is a dict"):
        Dataset([{"a": 1}, "b"])  # type: ignore[list-item]
    with pytest.raises(ValueError, match="1 rows and 2 line numbers"):
        Dataset([{}], lines=[1, 2])


def test_rows_are_kept_as_they_were_given() -> None:
    """The id that a dataset makes up is not added to the row."""
    row = {"text": "x"}
    dataset = Dataset([row])
    assert dataset[0] is row
    assert row == {"text": "x"}
    assert dataset.ids == ("0",)


def test_an_empty_id_counts_as_none() -> None:
    """A CSV file with a partly filled id column can be read."""
    rows = [{"id": ""}, {"id": None}, {"id": 0}]
    assert Dataset(rows, path="f.csv", lines=[2, 3, 4]).ids == ("f:2", "f:3", "0")


def test_subsets_keep_ids_whatever_is_below() -> None:
    """An example has one id in the dataset, in a subset, and in a subset of that."""
    dataset = tickets()
    part = Subset(dataset, [2, 0])
    assert part.ids == ("train:5", "a")
    assert Subset(part, [1]).ids == part[1:].ids == ("a",)
    assert list(part[::-1]) == [dataset[0], dataset[2]]
    assert Subset(list("abc"), [1]).ids == ("1",)
    assert Subset(list("abc"), [1]).where(0) == "example 1"
    assert Subset(list("abc"), [1]).columns == ()
    assert Subset(list("abc"), [1]).path is None


def test_a_subset_refuses_positions_outside() -> None:
    """A negative position does not silently count from the end."""
    with pytest.raises(IndexError, match="index -1 is outside of a dataset of 3"):
        Subset(list("abc"), [-1])
    with pytest.raises(IndexError, match="index 3"):
        Subset(list("abc"), [3])


def test_plain_sequences_have_ids_too() -> None:
    """Evaluation of a list of dicts pairs by their ids."""
    assert ids_of([{"id": "b"}, {"id": 2}]) == ("b", "2")
    assert ids_of(["x", "y"]) == ("0", "1")
    assert ids_of([{"id": "b"}, "y"]) == ("0", "1")
    assert ids_of(tickets()) == ("a", "train:2", "train:5")
    with pytest.raises(DataError, match="example 1: the id 'b' was already given at example 0"):
        ids_of([{"id": "b"}, {"id": "b"}])


def test_examples_are_not_all_made_for_ids_that_are_positions() -> None:
    """A map-style dataset may read a file for each."""
    made = []

    class Files:
        def __len__(self) -> int:
            return 1000

        def __getitem__(self, index: int) -> str:
            made.append(index)
            return f"text {index}"

    assert ids_of(Files())[-1] == "999"  # type: ignore[arg-type]
    assert len(made) == 1


@pytest.mark.parametrize("part", [Dataset(tickets()), tickets()[1:]], ids=["Dataset", "Subset"])
def test_a_column_is_no_position(part: Any) -> None:
    """Tables of other libraries give a column by its name."""
    with pytest.raises(
        TypeError, match=r"its examples are at 0, 1, .*; a column of them is \[row\['text'\] for row in"
    ):
        part["text"]


def test_names_are_suggested_whatever_their_case() -> None:
    """`Ticket` for `ticket` is the commonest slip."""
    assert suggest("TICKET", ["ticket", "queue"]) == "; did you mean 'ticket'?"
    assert suggest("zzz", ["ticket"]) == ""


def test_a_name_that_looks_the_same_is_told_as_that() -> None:
    """To be asked whether one meant what one has written helps nobody."""
    said = suggest("gro\u0308\u00dfe", ["gr\u00f6\u00dfen", "gr\u00f6\u00dfe"])
    assert said == "; 'gr\u00f6\u00dfe' there looks the same and is written with other characters: copy it from there"


def test_text_is_no_slip_for_target() -> None:
    """Most tables have the one, and the other is what is looked for where nobody names a column."""
    assert suggest("target", ["text", "label"]) == ""
    assert suggest("target", ["text", "taget"]) == "; did you mean 'taget'?"


def test_what_a_dataset_is_is_seen_at_a_glance() -> None:
    """The repr names file, size and columns."""
    assert repr(tickets()) == "Dataset('train.jsonl', 3 examples, columns: id, text, queue)"
    assert repr(Dataset([{"n": 1}])[:0]) == "Subset(0 of Dataset(1 examples, columns: n))"
    assert repr(Subset([{"n": 1}, {"n": 2}], [1])) == "Subset(1 of 2 examples)"  # not all of the list


class Frame:
    """As pandas' tables are: a length in rows, and an iteration over the names of columns."""

    columns = ("text", "target")

    def __len__(self) -> int:
        return 2

    def __iter__(self) -> Iterator[str]:
        return iter(self.columns)

    def __getitem__(self, name: str) -> list[str]:
        return ["a", "b"]

    def to_dict(self, orient: str) -> list[dict[str, str]]:
        return [{"text": "a", "target": "b"}] * 2


@pytest.mark.parametrize(
    ("rows", "said"),
    [
        (Frame(), r'a table \(Frame\); give its rows, \.to_dict\("records"\)'),
        ({"text": ["a", "b"], "target": ["x", "y"]}, r"a dict of text, target.*\.select\(range"),
        ({"train": [{"text": "a"}], "test": []}, r"a dict of train, test; of several splits give one"),
        ("d/val.jsonl", r"the path 'd/val\.jsonl'; data\.load\('d/val\.jsonl'\) reads them"),
        (Path("val.jsonl"), r"the path 'val\.jsonl'; data\.load\('val\.jsonl'\) reads them"),
        ({"text": "a", "target": "b"}, r"one example, with text, target; give a list of it: \[example\]"),
        (DataLoader([{"text": "a"}]), r"a DataLoader, which gives minibatches; give the dataset .*, its \.dataset"),
    ],
)
@pytest.mark.parametrize(
    "use",
    [
        Dataset,
        DataLoader,
        lambda rows: random_split(rows, [0.5, 0.5], seed=0),
        lambda rows: check_splits(rows, rows),
        lambda rows: tg.evaluate(nn.ChatCompletion("{text}"), rows, nn.ExactMatch()),
    ],
)
def test_what_is_no_sequence_of_rows_is_refused_with_the_way_to_its_rows(rows: Any, said: str, use: Any) -> None:
    """The letters of a path, or the names of columns, were taken for the examples, or it failed with `KeyError: 0`."""
    with pytest.raises(TypeError, match=said):
        use(rows)


def test_a_dataset_of_ones_own_may_know_its_columns() -> None:
    """It is no table where it gives examples, whatever methods of one it has."""

    class Own(list[dict[str, str]]):
        columns = ("word",)

        def to_dict(self) -> dict[str, list[str]]:
            return {"word": [row["word"] for row in self]}

    rows = Own([{"word": "ant"}, {"word": "bee"}])
    assert as_no_rows(rows) == ""
    assert list(examples_of(rows)) == rows
    assert list(DataLoader(rows)) == [[row] for row in rows]
