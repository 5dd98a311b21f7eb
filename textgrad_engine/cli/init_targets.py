"""The columns of a table that hold the answers, read for ``textgrad-engine init``, and checked."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from textgrad_engine.cli.config_data import not_compared
from textgrad_engine.cli.init_answers import Answer, Answers, object_in
from textgrad_engine.data import Dataset
from textgrad_engine.errors import DataError
from textgrad_engine.ops.evaluators import written


def objects_read(table: Dataset, columns: Sequence[str]) -> Dataset:
    """A table whose answers are objects or lists where it has them as texts: a cell of a CSV holds nothing else.

    Args:
        table: the table.
        columns: that hold the answers; one of which some text is no such JSON stays as it is, and of several one with
            objects.

    Example:
        >>> table = Dataset([{"mail": "a", "target": '{"n": 1}'}, {"mail": "b", "target": '{"n": 2}'}])
        >>> [row["target"] for row in objects_read(table, ["target"])]
        [{'n': 1}, {'n': 2}]
    """
    for column in columns:
        texts = [row.get(column) for row in table]
        read = [object_in(text) for text in texts]
        written_out = [text for text in texts if not (isinstance(text, str) and not text.strip())]
        kinds = {type(each) for each in read if each is not None}
        if len(columns) > 1 and dict in kinds:
            continue
        if any(read) and len(kinds) == 1 and sum(each is not None for each in read) == len(written_out):
            rows = [row if each is None else {**row, column: each} for row, each in zip(table, read)]
            table = Dataset(rows, path=table.path, lines=table._lines)
    return table


def answers_of(table: Dataset, columns: Sequence[str], *, calls: bool = False) -> Answers:
    """What the answers of a table are.

    Args:
        table: the table.
        columns: that hold the answers; of one that holds objects each field is an answer.
        calls: whether they are calls of tools, which are no JSON that a model is asked for.

    Raises:
        DataError: a row has no answer, or one that cannot be compared, or other fields than the rest.
    """
    columns = tuple(dict.fromkeys(columns))
    texts_alone = table.path is not None and table.path.suffix.lower() in (".csv", ".tsv")
    table.require(*columns, null=len(columns) > 1)
    if len(columns) == 1 and any(isinstance(row[columns[0]], dict) for row in table):
        return _of_objects(table, columns[0])
    each = tuple(Answer(column, column, tuple(row[column] for row in table)) for column in columns)
    for answer in each:
        _check_some(table, answer)
    for answer in each:
        _check_kinds(table, answer)
    if len(each) > 1 and (found := next((answer for answer in each if answer.are_criteria), None)) is not None:
        raise DataError(
            f"{table.where(0)}: column {found.name!r}, by --target, has criteria, which no answer has as a field; name "
            f'it alone, or leave it out, and add a [[metric]] to the config, with name = "rubric" and this target'
        )
    # A list is the field of an object, which is what endpoints hold models to.
    fields = len(columns) > 1 or (each[0].metric["name"] == "json_match" and not calls)
    return Answers(columns, each, fields, texts_alone=texts_alone)


def in_one_column(table: Dataset, answers: Answers, clusters: str | None) -> tuple[Dataset, Answers]:
    """A table whose answers are the fields of one object where some of several columns hold objects.

    A metric takes its field of a target that is an object, so such a column cannot be the target of one.

    Args:
        table: the table.
        answers: what its answers are.
        clusters: the column that says which examples belong together, which stays.
    """
    held = [value for each in answers.each for value in each.values]
    if not answers.of_columns or not any(isinstance(value, dict) for value in held):
        return table, answers
    others = [name for name in table.columns if name not in answers.columns or name == clusters]
    name = "target"
    while name in others:
        name += "_"
    rows = [
        {**{key: row[key] for key in others if key in row}, name: {key: row[key] for key in answers.columns}}
        for row in table
    ]
    each = tuple([replace(answer, column=name) for answer in answers.each])
    return Dataset(rows, path=table.path, lines=table._lines), replace(answers, columns=(name,), each=each)


def _of_objects(table: Dataset, column: str) -> Answers:
    rows = [row[column] for row in table]
    for index, value in enumerate(rows):
        if not isinstance(value, dict):
            raise DataError(
                f"{table.where(index)}: column {column!r}, by --target, is {written(value)!r:.40} in this row, and an "
                "object in others; write it as an object, too, or take the row out"
            )
    names = list(dict.fromkeys(name for value in rows for name in value))
    for name in names:
        for index, value in enumerate(rows):
            if name not in value:
                raise DataError(
                    f"{table.where(index)}: column {column!r}, by --target, is an object without the field {name!r}, "
                    f"which others have; write {name!r}: null where there is nothing"
                )
    if not names:
        raise DataError(f"{table.where(0)}: column {column!r}, by --target, is an object without a field in all rows")
    each = tuple(Answer(name, column, tuple(value[name] for value in rows)) for name in names)
    for answer in each:
        _check_some(table, answer)
    return Answers((column,), each, True)


def _check_kinds(table: Dataset, answer: Answer) -> None:
    """Refuse a column that has lists or objects in some rows, and other values in others.

    Raises:
        DataError: it is one; the row is named that is unlike the first one.
    """
    kinds = [None if value is None else not_compared(value) or "a single value" for value in answer.values]
    first = next((kind for kind in kinds if kind is not None), None)
    for index, kind in enumerate(kinds):
        if kind not in (None, first):
            raise DataError(
                f"{table.where(index)}: column {answer.column!r}, by --target, is {kind} in this row, and {first} "
                "before; write all rows alike"
            )


def _check_some(table: Dataset, answer: Answer) -> None:
    """Refuse an answer that there is nowhere.

    Raises:
        DataError: it is null in all rows.
    """
    if all(value is None for value in answer.values):
        raise DataError(f"{table.where(0)}: {answer.name!r}, by --target, is null in all rows; leave it out")
