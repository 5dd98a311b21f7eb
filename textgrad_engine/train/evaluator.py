"""Running a program on every example of a dataset, and scoring what it says."""

from __future__ import annotations

import traceback
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple

from textgrad_engine.autograd import Variable, example, no_grad
from textgrad_engine.callables import check_told
from textgrad_engine.checks import at_least, check
from textgrad_engine.data.contents import contents_of
from textgrad_engine.data.dataset import Examples, examples_of, ids_of
from textgrad_engine.dispatch import waits
from textgrad_engine.errors import (
    UNANSWERED,
    BudgetExceeded,
    CallCancelled,
    DataError,
    ScoreError,
    Stopped,
)
from textgrad_engine.keywords import names_told
from textgrad_engine.llm.cachekey import repeat
from textgrad_engine.llm.stop import stopped_by_errors
from textgrad_engine.nn.metric_functions import with_fields
from textgrad_engine.nn.trained import watched
from textgrad_engine.ops.fillers import is_nan
from textgrad_engine.ops.scores import decimal_of
from textgrad_engine.train.asked import Call
from textgrad_engine.train.calling import Ran, not_to_be_had, run_on, run_scored
from textgrad_engine.train.evaluation import Evaluation
from textgrad_engine.train.fields import check_examples, lacking
from textgrad_engine.train.interrupt import interruptible, stopping_on_interrupt
from textgrad_engine.train.latency import Stopwatch
from textgrad_engine.train.metric_scores import MetricScores, filled
from textgrad_engine.train.metrics_of import parts_of
from textgrad_engine.train.prediction import said_in
from textgrad_engine.train.repeats import item_means
from textgrad_engine.train.scale import as_score, held_to, scale_of
from textgrad_engine.train.splits import clusters_of_equals
from textgrad_engine.train.targets import counting_entries, inputs_and_target

MOST_UNANSWERED = 0.5
"""When a larger share than this went unanswered, nothing can be said, and the first error is raised."""

ENDED = (BudgetExceeded, Stopped, CallCancelled)
"""What ends an evaluation before every example was asked about."""


@waits("await tg.aevaluate(...)")
@names_told
def evaluate(
    program: Callable[..., Any],
    dataset: Examples[Mapping[str, Any]],
    loss: Callable[..., Variable],
    concurrency: int | None = None,
    *,
    target: str = "target",
    repeats: int = 1,
    clusters: str | None = None,
    timed: bool = False,
    on_score: Callable[[int], None] | None = None,
) -> Evaluation:
    """Run a program on every example, concurrently, and score its predictions; nothing is recorded for backward.

    Args:
        program: called with the fields of an example that its `forward` names. It returns a Variable, or, for a loss of
            your own, several in a dict, tuple, list or dataclass. A program that waits for answers is run in threads,
            so keep what belongs to one example in `forward`, not in `self`.
        dataset: the examples.
        loss: called with the prediction and the example's target, and with ``inputs=`` (the fields that the program was
            called with) if its `forward` names that, as nn.Judge's does; its data must be a number (higher is better).
        concurrency: at most so many examples at once; None leaves it to the models' own limits. With 1 a program that
            waits is run in one thread.
        target: the name of the target's field.
        repeats: how often each example is run. At a temperature above 0 each time is a sample of its own (in the cache,
            too), and the example's score is the mean of its samples.
        clusters: the name of a field that says which examples belong together, such as the document that several
            questions are about; they are then not taken for independent. None: each stands for itself, but where more
            than a tenth have the same inputs as another one, those with the same inputs belong together.
        timed: note how long the answers took (`Evaluation.latency`).
        on_score: called with an example's position when a sample of it has its score; on any thread, in any order. It
            must not raise. `report.score_bar` returns one that shows progress.

    Returns:
        The scores, in dataset order.

    Raises:
        DataError: the dataset is empty; an example lacks a field, has a list for a slot, or shows the program its
            target; or a prediction is a batch and its target is not.
        ValueError: `repeats` or `concurrency` is less than 1.
        TypeError: the dataset is no sequence of dicts, or the loss is no number (a TextLoss, for instance).
        ModelError: the key is wrong, the budget is spent, the run was stopped, or more than half went unanswered.

    Example:
        >>> from textgrad_engine import nn
        >>> from textgrad_engine.testing import ScriptedModel
        >>> program = nn.ChatCompletion("{question}", model=ScriptedModel(["4", "5"]))
        >>> rows = [{"question": "2 + 2?", "target": "4"}, {"question": "3 + 3?", "target": "6"}]
        >>> evaluate(program, rows, nn.ExactMatch()).scores
        (1.0, 0.0)
    """
    evaluation, ended = attempt(
        program,
        dataset,
        loss,
        concurrency,
        target=target,
        repeats=repeats,
        clusters=clusters,
        timed=timed,
        on_score=on_score,
    )
    if ended is not None:
        raise ended
    assert evaluation is not None
    return evaluation


class Attempt(NamedTuple):
    """An evaluation that may have ended before its end.

    Attributes:
        evaluation: what was answered; None where nothing was.
        ended: the spent budget or the stop that ended it; None where every example was asked about.
    """

    evaluation: Evaluation | None
    ended: Exception | None


def attempt(
    program: Callable[..., Any],
    dataset: Examples[Mapping[str, Any]],
    loss: Callable[..., Variable],
    concurrency: int | None = None,
    *,
    target: str = "target",
    repeats: int = 1,
    clusters: str | None = None,
    timed: bool = False,
    on_score: Callable[[int], None] | None = None,
) -> Attempt:
    """`evaluate`, with what was answered until then where the budget is spent or the run is stopped.

    Its arguments are those of `evaluate`, and so are its errors, but for these two.
    """
    if callable(dataset) and not callable(loss):
        raise TypeError(
            "evaluate: the examples come before the loss, as in evaluate(program, dataset, loss); got "
            f"{type(dataset).__name__} for the dataset and {type(loss).__name__} for the loss"
        )
    every = check_examples(dataset, "dataset", "evaluate")
    check(evaluate, locals(), at_least(1, "concurrency", "repeats"))
    if on_score is not None:
        check_told("evaluate", "on_score", on_score, "position")
    if len(every) == 0:
        raise DataError("there is nothing to evaluate on: the dataset is empty")
    names = ids_of(every)
    groups = clusters_of_equals(program, every) if clusters is None else clusters_of(every, clusters)
    read, score, entries = inputs_and_target(program, loss, target), with_fields(loss), counting_entries(loss)
    given = [read(row, name) for row, name in zip(examples_of(every), names)]  # before anything is paid
    scale, held = scale_of(loss), held_to(loss)

    def start(number: int) -> tuple[tuple[Ran, Stopwatch], Variable]:
        sample, position = divmod(number, len(given))
        fields, wanted = given[position]
        watch = Stopwatch()
        with example(names[position]), no_grad(), repeat(sample), watch.running() if timed else nullcontext():
            try:
                ran = run_on(names[position], program, fields, score, wanted)
            except ENDED as error:  # of a program that waits for an answer
                ran = not_to_be_had(error)
            return (ran, watch), ran.loss

    tell = None if on_score is None else lambda number: on_score(number % len(given))
    found = []
    with watched(program, "evaluate"), stopped_by_errors():
        results = run_scored(program, start, len(given) * repeats, concurrency, tell)
        for number, ((ran, watch), _) in enumerate(results):
            position = number % len(given)
            count = partial(entries, names[position], ran.prediction, given[position][1])
            found.append(_scored_until(ran, watch if timed else None, count, held))
    ended = next((each.failure for each in found if isinstance(each.failure, ENDED)), None)
    if all(each.score is None for each in found) and ended is not None:
        return Attempt(None, ended)
    parts = parts_of(loss)
    made = evaluation_of(names, found, repeats=repeats, clusters=groups, scale=scale, parts=parts)
    return Attempt(replace(made, contents=contents_of(every)), ended)


async def aevaluate(*args: Any, **kwargs: Any) -> Evaluation:
    """`evaluate` for code that has an event loop of its own; the loop is not blocked.

    When the wait for it is cancelled, nothing more is sent, and the wait is over when the evaluation is.

    Example:
        >>> import asyncio
        >>> from textgrad_engine import nn
        >>> from textgrad_engine.testing import ScriptedModel
        >>> program = nn.ChatCompletion("{question}", model=ScriptedModel(["4"]))
        >>> rows = [{"question": "2 + 2?", "target": "4"}]
        >>> asyncio.run(aevaluate(program, rows, nn.ExactMatch())).scores
        (1.0,)
    """

    def work() -> Evaluation:
        with stopping_on_interrupt():
            return evaluate(*args, **kwargs)

    return await interruptible(work)


class Scored(NamedTuple):
    """What came of one example: its score and what the program said, or why there is neither.

    The calls are what the program asked for it, where that was noted, and the parts what each of several metrics gave.
    """

    score: float | None
    prediction: Any = None
    failure: Exception | None = None
    latency: float | None = None
    calls: tuple[Call, ...] | None = None
    parts: tuple[float, ...] = ()


def scored(
    ran: Ran,
    watch: Stopwatch | None = None,
    entries: Callable[[], int] = lambda: 1,
    *,
    scale: tuple[float, float] | None = None,
) -> Scored:
    """Wait for an example and read what came of it.

    Args:
        ran: what the program said, and its score.
        watch: ran while the example was begun; None where nobody wants to know how long it took.
        entries: counts the scores that the loss has added up (`targets.counting_entries`).
        scale: that its score must be on (`held_to`); None for any.

    Raises:
        ScoreError: the loss is no number, or outside of the scale.
        ModelError: the models cannot be asked at all, or not any more.
    """
    try:
        total = ran.score()
        count = entries()
        score, *parts = [decimal_of(each / count) for each in (total, *map(as_score, ran.parts))]
        if scale is not None and not scale[0] <= score <= scale[1]:
            raise ScoreError(
                f"the loss gave {score:g}, and its `scale` is from {scale[0]:g} to {scale[1]:g}; let it say from where "
                "to where its scores go"
            )
        latency = None if watch is None else watch.seconds
        return Scored(score, said_in(ran.prediction), latency=latency, parts=tuple(parts))
    except UNANSWERED as error:
        _forget_locals(error)
        return Scored(None, failure=error)


def _forget_locals(error: BaseException) -> None:
    """Let go of what the frames of a failure hold, which is its request; lines and names of the traceback stay.

    A document that no model has room for fails with each text that is tried: of 1 MB, in a run of 1,000, that is 2 GB.
    """
    seen: set[int] = set()
    each: BaseException | None = error
    while each is not None and id(each) not in seen:
        seen.add(id(each))
        traceback.clear_frames(each.__traceback__)
        each = each.__cause__ or each.__context__


def _scored_until(
    ran: Ran, watch: Stopwatch | None, entries: Callable[[], int], scale: tuple[float, float] | None
) -> Scored:
    """`scored`, where a spent budget and a stop are failures of the example."""
    try:
        return scored(ran, watch, entries, scale=scale)
    except ENDED as error:
        return Scored(None, failure=error)


def refuse_if_mostly_lost(found: Sequence[Scored], what: str = "examples") -> None:
    """Raise the first failure when so many of those that were asked went unanswered that nothing can be said.

    Args:
        found: what came of each.
        what: what they are, for the note on the error.
    """
    asked = [each for each in found if not isinstance(each.failure, ENDED)]
    failures = [each.failure for each in asked if each.failure is not None]
    if len(failures) > MOST_UNANSWERED * len(asked):
        first, told = failures[0], "went unanswered; this is the first error"
        # A search may have come upon it before, among other examples, and gone on.
        notes = [note for note in getattr(first, "__notes__", ()) if not note.endswith(told)]
        first.__notes__ = [*notes, f"{len(failures)} of {len(asked)} {what} {told}"]
        raise first


def evaluation_of(
    names: tuple[str, ...],
    found: Sequence[Scored],
    *,
    repeats: int = 1,
    clusters: tuple[str, ...] = (),
    scale: tuple[float, float] | None = None,
    parts: Sequence[MetricScores] = (),
) -> Evaluation:
    """The evaluation that single results make.

    Args:
        names: the ids of the examples.
        found: what came of each; with repeats first the first sample of each, then the second of each, and so on.
        repeats: how many samples of each there are.
        clusters: the cluster of each example, or empty.
        scale: the lowest and the highest possible score, if known.
        parts: the metrics that the score is made of, without their scores; none where it is one.

    Raises:
        ModelError: the first failure, when more than half went unanswered.
    """
    refuse_if_mostly_lost(found, "examples" if repeats == 1 else "samples")
    rows = [found[position :: len(names)] for position in range(len(names))]
    scores: list[float | None] = []
    failures: dict[str, str] = {}
    not_run: list[str] = []
    for name, row in zip(names, rows):
        known = [each.score for each in row if each.score is not None]
        scores.append(item_means([known])[0] if known else None)
        if known:
            continue
        failure = next((each.failure for each in row if not isinstance(each.failure, ENDED)), None)
        if failure is None:
            not_run.append(name)
        else:
            failures[name] = f"{type(failure).__name__}: {failure}"
    said = [row[0].prediction if repeats == 1 else [each.prediction for each in row] for row in rows]
    samples = () if repeats == 1 else tuple(tuple(each.score for each in row) for row in rows)
    times = [[each.latency for each in row if each.latency is not None] for row in rows]
    latency = tuple(item_means([row])[0] if row else None for row in times) if any(times) else ()
    each = filled(parts, [[sample.parts for sample in row if sample.parts] for row in rows])
    return Evaluation(
        names, tuple(scores), tuple(said), failures, samples, clusters, scale, latency, tuple(not_run), each
    )


def clusters_of(dataset: Sequence[dict[str, Any]], field: str) -> tuple[str, ...]:
    """The cluster of each example, as text.

    Args:
        dataset: the examples.
        field: that says which belong together.

    Raises:
        DataError: an example has no such field, or nothing in it.

    Example:
        >>> clusters_of([{"q": "a", "page": 7}, {"q": "b", "page": 7}], "page")
        ('7', '7')
    """
    found = []
    for row, name in zip(examples_of(dataset), ids_of(dataset)):
        if (of := row.get(field)) is None or is_nan(of):
            raise DataError(lacking(row, name, field, ", which says which examples belong together"))
        found.append(str(of))
    return tuple(found)
