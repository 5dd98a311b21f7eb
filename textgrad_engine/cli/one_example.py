"""One example with what each of several prompts made of it: what `compare --example` shows."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from textgrad_engine.cli import run_data
from textgrad_engine.cli.comparing import Arm, Failure, Result, name_of
from textgrad_engine.cli.evaluating import Task
from textgrad_engine.cli.evaluation_words import examples_of
from textgrad_engine.cli.output import colors, said_of, width
from textgrad_engine.data import Dataset
from textgrad_engine.data.load import load
from textgrad_engine.data.names import suggest
from textgrad_engine.errors import DataError, RunError
from textgrad_engine.llm.attachments import in_names
from textgrad_engine.report.looked_at import LookedAt, answer_in_full, expected_of, in_full, looked_at
from textgrad_engine.report.printing import hanging, is_shown_as, printed, styled
from textgrad_engine.report.words import count, score

if TYPE_CHECKING:
    from rich.console import RenderableType

_LONGEST = 100
"""Characters of an id that is looked at for what a wrong one may have meant."""


def only_this(arms: Sequence[Arm], name: str) -> list[Arm]:
    """The arms on one of their examples alone, so that others are not paid for where no cache keeps answers.

    That is no evaluation of a run, so its folder keeps nothing of it.

    Args:
        arms: what was checked.
        name: the example's id, or what reports show of it.

    Raises:
        RunError: it is the id of none, or of a test example, or several are shown so.
    """
    first = arms[0].task
    name = _id_of(name, first)
    if is_tested(first.about, first.subject.kept, Dataset([first.dataset[first.dataset.ids.index(name)]])):
        raise RunError(
            f"--example {name!r}: it is a test example, and whoever changes a prompt by these flatters the next test "
            "on them, so none is shown; name validation examples with --data FILE"
        )
    return [_only(arm, name) for arm in arms]


def _id_of(name: str, task: Task) -> str:
    """The id of the example that is meant, which reports show cut where it is long.

    Raises:
        RunError: there is none of this id, or several are shown so.
    """
    ids, data = task.dataset.ids, task.about["data"]
    meant = [name] if name in ids else [each for each in ids if is_shown_as(each, name)]
    if not meant:
        near = suggest(name, [each for each in ids if len(each) <= _LONGEST])
        raise RunError(f"--example {name!r}: {data} has no example with this id{near}")
    if len(meant) > 1:
        raise RunError(
            f"--example {name!r}: {count(len(meant))} examples of {data} are shown so; give the whole id of one, which "
            "--json has"
        )
    return meant[0]


def is_tested(about: dict[str, Any], kept: Any, rows: Dataset) -> bool:
    """Whether some rows of what is evaluated are of the test split, which nobody is to look at one by one.

    Args:
        about: what ``evals.jsonl`` says of the evaluation beforehand.
        kept: what tells the splits from other data.
        rows: which of its rows.
    """
    if not run_data.opens_test(about):
        return False
    return about["split"] == "test" or "test" in run_data.rows_of_splits(kept, rows)


def _only(arm: Arm, name: str) -> Arm:
    dataset = arm.task.dataset
    row = dataset[dataset.ids.index(name)]
    task = replace(
        arm.task,
        subject=replace(arm.task.subject, run=None),
        dataset=Dataset([row if str(row.get("id")) == name else {**row, "id": name}]),
        clusters=None,
        floors=(),
        keeps=False,
        unkept="",
    )
    return replace(arm, task=task)


def as_document(arms: Sequence[Arm], rows: Sequence[Result | Failure], whole: Arm) -> dict[str, Any]:
    """What ``--json`` prints.

    Args:
        arms: what `only_this` gave.
        rows: what came of them, in their order; of those that were not come to there is none.
        whole: the first arm as it was before.
    """
    first, targets = arms[0].task, arms[0].task.config.target_columns()
    (name,) = first.dataset.ids
    row = _as_written(whole.task, name)
    done = {each.arm.number: each for each in rows}
    return {
        "config" if whole.task.subject.run is None else "run": str(first.subject.path),
        "data": first.about["data"],
        "split": first.about["split"],
        "example": {
            "id": name,
            "row": row,
            "expected": expected_of(row, targets),
        },
        "arms": [_arm_as_json(arm, done.get(arm.number)) for arm in arms],
    }


def _as_written(task: Task, name: str) -> dict[str, Any]:
    """A row as its table has it, where images go by their paths; those whose bytes stand there have a short name.

    Args:
        task: on all examples.
        name: the id of the row.
    """
    dataset, images = task.dataset, task.config.data.images
    row = dataset[dataset.ids.index(name)]
    if images and dataset.path is not None:
        with contextlib.suppress(DataError, ValueError):  # changed or taken away while models were asked
            again = load(dataset.path)
            named = again[again.ids.index(name)]
            row = {**row, **{column: named[column] for column in images if _is_name(named.get(column))}}
    return {column: in_names(value) for column, value in row.items()}


def _is_name(value: Any) -> bool:
    return isinstance(value, str) and value.lstrip()[:5].lower() != "data:"


def in_words(arms: Sequence[Arm], rows: Sequence[Result | Failure], whole: Arm) -> str:
    """What is printed for people; arguments as for `as_document`."""
    first = arms[0].task
    (name,) = first.dataset.ids
    on = examples_of(whole.task.subject, first.about)
    # Of ids that others wrote no line begins with what would end the block of a summary.
    parts: list[RenderableType] = [hanging("", " " * 4, f"{first.subject.path}: {name} in {on}", "bold"), ""]
    parts += in_full(_as_written(whole.task, name), first.config.target_columns())
    done = {each.arm.number: each for each in rows}
    for arm in arms:
        parts += ["", *_arm_in_words(arm, arms, done.get(arm.number))]
    return "\n" + printed(parts, width(), colors())


def in_one_line(arms: Sequence[Arm], rows: Sequence[Result | Failure]) -> str:
    """What ``--quiet`` prints; arguments as for `as_document`."""
    done = {each.arm.number: each for each in rows}
    scores = [f"{name_of(arm, arms)} {_score(done.get(arm.number))}" for arm in arms]
    return styled(f"{arms[0].task.subject.path}: {arms[0].task.dataset.ids[0]}: {', '.join(scores)}").plain


def _arm_in_words(arm: Arm, arms: Sequence[Arm], done: Result | Failure | None) -> Iterator[RenderableType]:
    yield styled(f"  {arm.number:<{len(str(len(arms)))}}  {name_of(arm, arms)}   {_score(done)}", "bold")
    if (found := _looked_at(done)) is not None:
        yield from answer_in_full(found)


def _score(done: Result | Failure | None) -> str:
    if (found := _looked_at(done)) is None:
        return "not asked"
    return "no answer" if found.after is None else score(found.after)


def _arm_as_json(arm: Arm, done: Result | Failure | None) -> dict[str, Any]:
    found = _looked_at(done)
    return {
        "number": arm.number,
        "prompt": arm.task.about["prompt"],
        "config": arm.config or None,
        "models": arm.task.about["models"],
        "score": None if found is None else found.after,
        "samples": None if found is None else list(found.samples),
        "said": None if found is None else found.said,
        "why": None if found is None else found.why or None,
        "parts": {} if found is None else {name: one for name, one, _ in found.parts},
    }


def _looked_at(done: Result | Failure | None) -> LookedAt | None:
    """What a prompt made of the example; an arm without any answer ends by an error, and that is what there is."""
    if done is None:
        return None
    row = done.arm.task.dataset[0]
    if isinstance(done, Failure):
        return LookedAt(str(row["id"]), None, None, None, None, worse=False, why=said_of(done.error), row=row)
    return None if done.evaluation is None else looked_at(row, done.evaluation)
