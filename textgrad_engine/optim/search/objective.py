"""What a searching optimizer is given as its closure: scores and feedback for any texts, not only those of now."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, Protocol, TypeAlias, runtime_checkable

from textgrad_engine.errors import UNANSWERED, ReturnError
from textgrad_engine.llm import tokens

if TYPE_CHECKING:
    from textgrad_engine.autograd.variable import Variable
    from textgrad_engine.optim.demo_runs import Run
    from textgrad_engine.optim.demos import Demo

Texts: TypeAlias = tuple[str, ...]
"""A candidate: one text for each parameter of the objective, in order."""

Split: TypeAlias = Literal["train", "val"]


@dataclass(frozen=True)
class FeedbackOn:
    """What a backward pass over a minibatch gave.

    Attributes:
        scores: of the examples, in the order asked for; None where no answer was to be had.
        gradients: for each parameter the feedback that reached it, in order.
        problems: answers of the critic that were not to be had, in words.
    """

    scores: tuple[float | None, ...]
    gradients: tuple[tuple[Variable, ...], ...]
    problems: tuple[str, ...] = ()


@runtime_checkable
class Objective(Protocol):
    """A program, its loss and its examples, as a function of the program's texts; `train.Objective` makes one.

    All methods may be called from several threads at once. A score is paid for only once.

    Attributes:
        parameters: what is trained.
        train: the ids of the examples that feedback may be taken on.
        val: the ids of the examples that decide which texts are kept.
        digest: distinguishes its examples from others with the same ids, as examples without ids have.
        tokens_weight: what 1000 tokens of the texts cost, in units of the score; texts are compared by their mean
            scores less that.
        latency_weight: what a second of an example's forward calls costs, in units of the score; 0 where time does not
            count.
        scale: the worst and the best score that the loss gives; None where it does not say.
        clusters: which validation examples belong together, by position; () if each is independent.
    """

    parameters: tuple[Variable, ...]
    train: tuple[str, ...]
    val: tuple[str, ...]
    digest: str
    tokens_weight: float
    latency_weight: float
    scale: tuple[float, float] | None
    clusters: tuple[str, ...]

    def scores(
        self, texts: Texts, positions: Sequence[int], split: Split = "val", *, repeat: int = 0
    ) -> list[float | None]:
        """The scores of some examples with these texts (higher is better); None where no answer was to be had.

        Args:
            texts: the candidate.
            positions: which examples, by position in the split.
            split: which examples the positions count.
            repeat: which sample of each example, where a model's answers differ from time to time.
        """
        ...

    def matrix(
        self, candidates: Sequence[Texts], positions: Sequence[int], split: Split = "val"
    ) -> list[list[float | None]]:
        """The scores of every candidate (rows) on every example (columns), all at once."""
        ...

    def latencies(self, texts: Texts, positions: Sequence[int], split: Split = "val") -> list[float | None]:
        """The seconds that the forward calls of some examples took with these texts; nothing is run for it.

        None for an example that was not run, or whose answers do not tell.
        """
        ...

    def feedback(self, texts: Texts, positions: Sequence[int]) -> FeedbackOn:
        """Run training examples with these texts and go backward."""
        ...

    def demos(self, positions: Sequence[int]) -> list[Demo | None]:
        """Training examples to be shown, with their right answers; None for one that has none."""
        ...

    def runs(self, texts: Texts, positions: Sequence[int], split: Split = "train") -> list[Run | None]:
        """What the program says of examples with these texts, and what it asks its models for that.

        Examples that were not run with these texts are. None for one that went unanswered, or that was run before
        `note_calls`.
        """
        ...

    def note_calls(self) -> None:
        """Be told that `runs` will be asked for: what the program asks is noted from now on.

        A `Searcher` with `reads_runs` does this. It takes memory, and a part of the time that each call takes.
        """
        ...

    def near(self, positions: Sequence[int], among: Sequence[int]) -> list[int]:
        """The validation examples `among`, those first that have most in common with the training examples."""
        ...

    def proposal(self, number: int) -> AbstractContextManager[None]:
        """Inside the block, what is asked belongs to the proposal of that number."""
        ...

    def adopt(self, texts: Texts, number: int | None = None) -> None:
        """Be told that these are the best texts now; what is scored with them from now on belongs to no proposal.

        Args:
            texts: the best texts.
            number: of the proposal that they come from, where later ones may be under way.
        """
        ...

    def broken(self, before: Texts, after: Texts, number: int = 0) -> tuple[int, ...]:
        """The positions of the validation examples for which `refusal` refuses texts; empty when it does not."""
        ...

    def breaking(self, before: Texts, tries: Sequence[Texts], positions: Sequence[int]) -> list[tuple[int, ...]]:
        """Which of some validation examples do worse with each of several texts, as one that must never break would.

        Where guards run such an example again before it counts as broken, so are these.

        Args:
            before: the best texts of now.
            tries: the others.
            positions: the examples.
        """
        ...

    def refusal(self, before: Texts, after: Texts, number: int = 0) -> str:
        """Why texts that won their race must not be kept all the same, in words; "" when they may be.

        Examples that must never break, and slices with a floor, are run with both texts where they were not yet.

        Args:
            before: the best texts of now.
            after: those that would take their place.
            number: the proposal that has run these; what it bought is used.
        """
        ...


def lacks(closure: object) -> list[str]:
    """What an objective of one's own lacks of `Objective`, by name; [] of what scores no texts, and is meant as none.

    Example:
        >>> lacks(len)
        []
    """
    methods = [name for name, each in vars(Objective).items() if callable(each) and not name.startswith("_")]
    wanted = [*Objective.__annotations__, *methods]
    return [name for name in wanted if not hasattr(closure, name)] if hasattr(closure, "scores") else []


@runtime_checkable
class MetricObjective(Objective, Protocol):
    """An objective that tells what each of several metrics gave, where its score is made of them.

    A search that looks at the score alone takes any `Objective`. `train.Objective` is one of these.

    Attributes:
        metrics: the names of the metrics; () where the score is one.
    """

    metrics: tuple[str, ...]

    def by_metric(self, texts: Texts, positions: Sequence[int], split: Split = "val") -> list[tuple[float, ...] | None]:
        """What each metric gave some examples with these texts, in the order of `metrics`; nothing is run for it.

        Each as its part of its scale, 0 for the worst score that it gives and 1 for the best, as the score is made of
        it. None for an example that was not run, or that has no score.
        """
        ...


def metrics_of(objective: Objective) -> tuple[str, ...]:
    """The names of the metrics that an objective tells apart; () where its score is one, or it does not tell."""
    return objective.metrics if isinstance(objective, MetricObjective) else ()


def scores_by_metric(
    objective: Objective, texts: Texts, positions: Sequence[int], scores: Sequence[float | None]
) -> dict[int, tuple[float, ...]]:
    """What each metric gave the validation examples that have a score, by position.

    Args:
        objective: ran them; it tells of its metrics.
        texts: the candidate.
        positions: of the examples.
        scores: of these; one without a score is left out.

    Raises:
        ReturnError: one with a score has none by each metric.
    """
    assert isinstance(objective, MetricObjective)
    found = {}
    for position, score, parts in zip(positions, scores, objective.by_metric(texts, positions)):
        if score is None:
            continue
        if parts is None or len(parts) != len(objective.metrics):
            raise ReturnError(
                f"{type(objective).__name__}.by_metric gave {parts!r:.80} for validation example {position}, which has "
                f"a score; give a number for each of {', '.join(objective.metrics)}, in this order"
            )
        found[position] = tuple(parts)
    return found


def rows_of(
    objective: Objective, candidates: Sequence[Texts], positions: Sequence[int], split: Split = "val"
) -> list[list[float | None]]:
    """The scores of several candidates, bought all at once; one that breaks the program costs the others nothing.

    Args:
        objective: runs the examples.
        candidates: the candidates.
        positions: which examples, by position in the split.
        split: which examples the positions count.

    Returns:
        A row for each candidate; only None in that of one for which more than half of the examples went unanswered.

    Raises:
        ModelError: the first failure, when that is so of every candidate; or the models cannot be asked at all.
    """
    try:
        rows = objective.matrix(candidates, positions, split)
    except UNANSWERED:
        if len(candidates) == 1:
            raise
        rows = [_row_of(objective, texts, positions, split) for texts in candidates]  # what was answered is known now
        if all(score is None for row in rows for score in row):
            raise
    return [row if row.count(None) <= len(row) / 2 else [None] * len(row) for row in rows]


def _row_of(objective: Objective, texts: Texts, positions: Sequence[int], split: Split) -> list[float | None]:
    try:
        return objective.scores(texts, positions, split)
    except UNANSWERED:
        return [None] * len(positions)


def tokens_of(texts: Texts) -> int:
    """How many tokens texts have.

    Example:
        >>> tokens_of(("Be brief.", "")) == tokens_of(("Be brief.",)) > 0
        True
    """
    return sum(tokens.count(text) for text in texts)


def costs_of(objective: Objective, texts: Texts, positions: Sequence[int], split: Split = "val") -> list[float]:
    """What examples cost with some texts, in units of the score: the tokens of the texts, and the time of the answers.

    A score less its cost is what searches compare where a method has no race: a bandit, a frontier, a list by scores.

    Args:
        objective: says what tokens and seconds cost.
        texts: the candidate.
        positions: the examples, which were run with these texts; an example whose time is not known costs none.
        split: which examples the positions count.
    """
    tokens_cost = objective.tokens_weight * tokens_of(texts) / 1000 if objective.tokens_weight else 0.0
    if not objective.latency_weight:
        return [tokens_cost] * len(positions)
    seconds = objective.latencies(texts, positions, split)
    return [tokens_cost + objective.latency_weight * (each or 0.0) for each in seconds]


def worths(
    objective: Objective, texts: Texts, positions: Sequence[int], scores: Sequence[float | None], split: Split = "val"
) -> list[float | None]:
    """The scores of examples with some texts, each less its cost (`costs_of`); None stays None."""
    costs = costs_of(objective, texts, positions, split)
    return [None if score is None else score - cost for score, cost in zip(scores, costs)]


def after_costs(objective: Objective) -> str:
    """What to say behind a mean of what `worths` gives, which is not the score that is reported; "" where it is."""
    return " after costs" if objective.tokens_weight or objective.latency_weight else ""


def handicap_of(objective: Objective, before: Texts, after: Texts) -> float:
    """By how much the mean score with new texts must be higher to pay for their tokens; negative for fewer tokens.

    Args:
        objective: says what tokens cost.
        before: the texts of now.
        after: the new texts.
    """
    if not objective.tokens_weight:
        return 0.0
    return objective.tokens_weight * (tokens_of(after) - tokens_of(before)) / 1000


def slower_by(objective: Objective, before: Texts, after: Texts) -> Callable[[Sequence[int]], list[float]] | None:
    """What the time of validation examples costs more with new texts, for `run_race`; None where time does not count.

    An example whose time is not known with both costs nothing.

    Args:
        objective: says what a second costs.
        before: the texts of now.
        after: the new texts.
    """
    if not objective.latency_weight:
        return None

    def costs(positions: Sequence[int]) -> list[float]:
        pairs = zip(objective.latencies(before, positions), objective.latencies(after, positions))
        known = [None if old is None or new is None else new - old for old, new in pairs]
        return [0.0 if each is None else objective.latency_weight * each for each in known]

    return costs
