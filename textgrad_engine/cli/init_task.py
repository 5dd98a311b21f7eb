"""What the table of ``textgrad-engine init`` is about: which columns are shown, and what the right answers are."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from textgrad_engine.cli.init_answers import Answers
from textgrad_engine.cli.init_chats import Chats, answers_read, calls_joined, chats_in, chats_read
from textgrad_engine.cli.init_columns import check_named, check_values, shown_columns
from textgrad_engine.cli.init_images import image_columns
from textgrad_engine.cli.init_targets import answers_of, in_one_column, objects_read
from textgrad_engine.cli.leaks import Leak, leaking
from textgrad_engine.data import Dataset, load
from textgrad_engine.slots import composed


@dataclass(frozen=True)
class Task:
    """What a folder is made of.

    Attributes:
        table: the examples as the file has them.
        seen: the examples as the model is shown them.
        data: the file.
        shown: the columns that the model is shown.
        images: those of them that name images.
        leaks: the columns that hold an answer itself.
        answers: the right answers.
        clusters: the column that says which examples belong together, if any do.
        notes: the column of what people noted, if there is one.
        seed: draws the parts.
        chats: what was made of a column of chats; None where the table has none.
        is_plain: whether the user has no prompt to begin with.
    """

    table: Dataset
    seen: Dataset
    data: Path
    shown: tuple[str, ...]
    images: tuple[str, ...]
    leaks: Mapping[str, Leak]
    answers: Answers
    clusters: str | None
    notes: str | None
    seed: int
    chats: Chats | None = None
    is_plain: bool = True

    @property
    def is_judged(self) -> bool:
        """Whether a judge scores: answers of chats are seldom the same to the letter."""
        answer = self.answers.each[0]
        texts = not self.answers.fields and answer.metric["name"] == "exact_match"
        if self.chats is None or not texts:
            return False
        return self.chats.calls == "some" or (answer.is_long and answer.final is None)

    @property
    def tools(self) -> tuple[Mapping[str, Any], ...]:
        """The descriptions of the tools that chats call."""
        return () if self.chats is None else self.chats.tools


def task_of(
    data: Path,
    targets: Sequence[str],
    inputs: Sequence[str],
    *,
    clusters: str | None,
    notes: str | None,
    seed: int,
    has_prompt: bool,
) -> Task:
    """What a table is about.

    Args:
        data: its file.
        targets: the columns that hold the right answer.
        inputs: the columns that the model is shown; where none is named, all that are for nothing else.
        clusters: the column that says which examples belong together, if any do.
        notes: the column of what people noted, if there is one.
        seed: draws the parts.
        has_prompt: whether the user has a prompt to begin with.

    Raises:
        ConfigError: a column that was named is not there, or cannot be what it was named as.
        DataError: the table cannot be read.
    """
    targets, inputs = list(map(composed, targets)), list(map(composed, inputs))
    clusters, notes = (None if name is None else composed(name) for name in (clusters, notes))
    table, targets = calls_joined(chats_read(load(data)), targets)
    table = answers_read(table, targets)
    if (chats := chats_in(table, targets, inputs, has_prompt=has_prompt)) is not None:
        table, inputs = chats.table, inputs or [chats.column]
    check_named(table, data, targets, inputs, clusters, notes)
    table = objects_read(table, targets)
    answers = answers_of(table, targets, calls=chats is not None and chats.calls == "all")
    table, answers = in_one_column(table, answers, clusters)
    leaks = leaking(table, answers, (clusters, notes))
    shown = shown_columns(table, data, answers, inputs, (clusters, notes), leaks)
    images = image_columns(table, data.parent, shown)
    seen = table if chats is not None else load(data, images=images)
    check_values(seen, shown, clusters)
    return Task(table, seen, data, shown, images, leaks, answers, clusters, notes, seed, chats, not has_prompt)
