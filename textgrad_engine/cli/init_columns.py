"""Which columns of a table the model is shown, for ``textgrad-engine init``: not those that hold the answer."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

from textgrad_engine.cli.init_answers import Answers
from textgrad_engine.data import Dataset
from textgrad_engine.data.names import listed, suggest
from textgrad_engine.errors import ConfigError, DataError
from textgrad_engine.slots import SLOT_NAMES, slots_of
from textgrad_engine.train.fields import no_text

_NAMED_BY = {
    "--target": "; the first row names the columns, and --target the one that holds the answer. If none does, write a "
    "config with a judge that scores without one: docs/config.md shows it below [metric]"
}
"""What is said of an option whose column is not there, where no other one has nearly its name."""


def check_named(
    table: Dataset,
    data: Path,
    targets: Sequence[str],
    inputs: Sequence[str],
    clusters: str | None,
    notes: str | None = None,
) -> None:
    """Check that the columns that options name are there, and that the model is shown no answer and no notes.

    Raises:
        ConfigError: one is not there, or is both.
    """
    named = [("--target", name) for name in targets]
    named += [("--clusters", clusters)] if clusters is not None else []
    named += [("--notes", notes)] if notes is not None else []
    for option, name in (*named, *(("--input", name) for name in inputs)):
        if name not in table.columns:
            raise ConfigError(
                f"{option} {name}: {data} has no such column; it has {listed(table.columns)}"
                f"{suggest(name, table.columns) or _NAMED_BY.get(option, '')}"
            )
    for name in inputs:
        if name in targets:
            raise ConfigError(f"--input {name}: that is the right answer, by --target; the model must not be shown it")
        if name == notes:
            raise ConfigError(f"--input {name}: that is what people noted, by --notes; the model must not be shown it")
    if notes in targets:
        raise ConfigError(f"--notes {notes}: that is the right answer, by --target; the critic is shown it anyway")


def shown_columns(
    table: Dataset,
    data: Path,
    answers: Answers,
    inputs: Sequence[str],
    aside: Iterable[str | None],
    leaks: Iterable[str],
) -> tuple[str, ...]:
    """The columns that the model is shown: those that were named, or all that are neither the answer nor tell it.

    Args:
        table: the table.
        data: its file.
        answers: what its answers are.
        inputs: the columns that were named.
        aside: those that are for something else.
        leaks: those that tell the answer.

    Raises:
        ConfigError: one cannot be shown, or there is none.
    """
    leaks = list(leaks)
    apart = (*answers.columns, *aside, "id", *leaks)
    shown = tuple(dict.fromkeys(inputs or [name for name in table.columns if name not in apart]))
    if not shown:
        besides = " and ".join([*answers.columns, *leaks])
        why = f", as {' and '.join(leaks)} {'is' if len(leaks) == 1 else 'are'} the answer itself" if leaks else ""
        raise ConfigError(f"{data} has no column to show the model besides {besides}{why}; add one")
    for name in shown:
        if slots_of(f"{{{name}}}") != (name,):
            raise ConfigError(
                f"{data}: the column {name!r} cannot fill a slot of a prompt: {SLOT_NAMES}; rename it in the table, or "
                "name those to be shown by --input"
            )
    return shown


def check_values(table: Dataset, shown: Sequence[str], clusters: str | None) -> None:
    """Check what the config would be refused for, where it still can be told by the lines of the table.

    Raises:
        DataError: a row has no value in a column, or one that cannot be shown.
    """
    table.require(*([clusters] if clusters else []))
    for name in shown:
        others = f"; --input names the columns to be shown, if {name} is not to be"
        try:
            table.require(name)
        except DataError as error:
            raise DataError(f"{error}{others}") from None
        for index, row in enumerate(table):
            if why := no_text(row[name]):
                raise DataError(f"{table.where(index)}: column {name!r} holds {why}{others}")
