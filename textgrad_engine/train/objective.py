"""`Objective`: a program, its loss and its examples as a function of the program's texts, for searches."""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import replace
from typing import Any, TypeAlias

from textgrad_engine.autograd import Variable
from textgrad_engine.autograd.hooks import call_hooks_of
from textgrad_engine.checks import at_least, check, finite
from textgrad_engine.data import Examples, examples_of, ids_of
from textgrad_engine.errors import UNANSWERED, DataError
from textgrad_engine.keywords import names_told
from textgrad_engine.nn import Module
from textgrad_engine.optim.demo_runs import Run
from textgrad_engine.optim.demos import Demo, demo_of
from textgrad_engine.optim.search.objective import FeedbackOn, Split, Texts
from textgrad_engine.train.asked import asked_in
from textgrad_engine.train.digest import digest_of
from textgrad_engine.train.doubtful import Answered
from textgrad_engine.train.evaluation import Evaluation
from textgrad_engine.train.evaluator import Scored, clusters_of, evaluation_of, refuse_if_mostly_lost
from textgrad_engine.train.feedback_reach import Reach
from textgrad_engine.train.fields import check_examples
from textgrad_engine.train.findings import Findings, OnGuarded
from textgrad_engine.train.grid import Row
from textgrad_engine.train.guarded import Guarded, is_worse
from textgrad_engine.train.guards import Guards, guarded_by
from textgrad_engine.train.known import Key, KnownScores, waited_for
from textgrad_engine.train.leaves import check_texts, leaves_of, named_in
from textgrad_engine.train.metrics_of import parts_of
from textgrad_engine.train.nearness import Nearness
from textgrad_engine.train.passes import go_backward, none_reached
from textgrad_engine.train.reruns import Worse, still_worse
from textgrad_engine.train.scale import scale_of
from textgrad_engine.train.splits import clusters_of_equals
from textgrad_engine.train.targets import answer_in, inputs_and_target, is_field, target_fields
from textgrad_engine.train.trials import Trials

Rows = Sequence[dict[str, Any]]

Phases: TypeAlias = Callable[[int], contextlib.AbstractContextManager[None]]
"""Makes the context in which a proposal's calls are made, from its number."""


class Objective(Findings):
    """What a searching optimizer's `step` takes as its closure.

    Args:
        program: the module whose texts are searched for; it is not changed.
        loss: called with the prediction and the example's target; its data must be a number (higher is better).
        train: the examples that feedback is taken on.
        val: the examples that decide which texts are kept; None for the training examples.
        target: the field that holds an example's target.
        concurrency: at most so many examples at once, over everything that goes on at a time; None leaves it to the
            models' own limits.
        parameters: what is trained, in this order; None for all parameters of the program that require grad.
        phases: makes the context in which a proposal's calls are made, from its number, for the journal.
        guards: what no new texts may break.
        clusters: the field that says which validation examples belong together, for races and `evaluation`; None where
            none do, but such as have the same inputs, if many have.
        tokens_weight: what 1000 tokens of the texts cost, in units of the score; texts are compared by their mean
            scores less that.
        latency_weight: what a second of an example's forward calls costs, in units of the score; the same way. 0 notes
            the time without charging for it, None does not note it (`train.latency` says what it is, and why a search
            that charges for it can be repeated only where the models' latencies can).

    Attributes:
        guarded: the guards by the positions of the validation examples; None where there are none.
        metrics: the names of the metrics that the score is made of (`nn.Weighted`), or of the criteria that all
            examples share (`nn.Rubric`); () where it is one.
        answered: what was answered on training examples beside what is known of candidates.
        guards_refused: whether the guards have refused texts, or edits of some.
        floors_refused: whether floors have, by themselves or beside examples that must never break.
        marks_refused: whether such examples have that were below the best score with the texts of now.

    Raises:
        DataError: a set is empty, or an example lacks a field, or one that the guards name is not there.
        ValueError: there is nothing to train, or a parameter is not the program's.

    Example:
        >>> from textgrad_engine import nn
        >>> from textgrad_engine.testing import FunctionModel
        >>> model = FunctionModel(lambda request: "yes" if "agree" in request.messages[0].text else "no")
        >>> system = nn.Parameter("Answer.", role="system prompt")
        >>> program = nn.ChatCompletion("{question}", system=system, model=model)
        >>> objective = Objective(program, nn.ExactMatch(), [{"question": "Is it?", "target": "yes"}])
        >>> objective.scores(("Answer.",), [0]), objective.scores(("Always agree.",), [0])
        ([0.0], [1.0])
    """

    @names_told
    def __init__(
        self,
        program: Module,
        loss: Callable[..., Variable],
        train: Examples[Mapping[str, Any]],
        val: Examples[Mapping[str, Any]] | None = None,
        *,
        target: str = "target",
        concurrency: int | None = None,
        parameters: Sequence[Variable] | None = None,
        phases: Phases | None = None,
        guards: Guards | None = None,
        clusters: str | None = None,
        tokens_weight: float = 0.0,
        latency_weight: float | None = None,
    ) -> None:
        counts, weights = at_least(1, "concurrency"), at_least(0, "tokens_weight", "latency_weight")
        check(Objective.__init__, locals(), counts, weights, finite("tokens_weight", "latency_weight"))
        self.tokens_weight, self.latency_weight = tokens_weight, latency_weight or 0.0
        self.timed = latency_weight is not None
        self.scale, self._parts = scale_of(loss), parts_of(loss)
        self.metrics = tuple(part.name for part in self._parts) if len(self._parts) > 1 else ()
        self._answer_in, self._is_field = functools.partial(answer_in, program, loss), functools.partial(is_field, loss)
        self._phases = phases
        self._named = named_in(program, parameters)
        self.names = tuple(self._named)
        self.parameters: tuple[Variable, ...] = tuple(self._named.values())
        read = inputs_and_target(program, loss, target)
        self._rows: dict[Split, list[Row]] = {}
        contents = []
        known = check_examples(train, "train", "Objective")
        proven = known if val is None else check_examples(val, "val", "Objective")
        given: tuple[tuple[Split, Rows], ...] = (("train", known), ("val", proven))
        for split, rows in given:
            if len(rows) == 0:
                raise DataError(f"the {split} set is empty")
            contents.append(list(examples_of(rows)))
            self._rows[split] = [(name, *read(row, name)) for row, name in zip(contents[-1], ids_of(rows))]
        of_targets = "\n".join(target_fields(loss, target))
        self.digest = digest_of(of_targets, *contents)
        self.guarded = guarded_by(guards, proven, loss)
        self.clusters = clusters_of_equals(program, proven) if clusters is None else clusters_of(proven, clusters)
        self.train = tuple(name for name, _, _ in self._rows["train"])
        self.val = tuple(name for name, _, _ in self._rows["val"])
        # Those that are named by their positions have the same names in any two sets.
        self._train_validates = self.train == self.val and (
            known is proven or digest_of(of_targets, contents[0]) == digest_of(of_targets, contents[1])
        )
        self._known = KnownScores()
        self.answered = Answered()
        self.guards_refused = self.floors_refused = self.marks_refused = False
        self._trials = Trials(
            program, loss, self._rows, self._named, self._known, concurrency=concurrency, timed=self.timed
        )
        self.reach = Reach(len(self.train))
        self._noting = False

    def scores(
        self, texts: Texts, positions: Sequence[int], split: Split = "val", *, repeat: int = 0
    ) -> list[float | None]:
        """The scores of some examples with these texts; see `optim.search.objective`.

        Raises:
            TypeError: the loss is no number.
            ModelError: the models cannot be asked at all, or the budget is spent.
        """
        return self.matrix([texts], positions, split, repeat=repeat)[0]

    def matrix(
        self, candidates: Sequence[Texts], positions: Sequence[int], split: Split = "val", *, repeat: int = 0
    ) -> list[list[float | None]]:
        """The scores of every candidate on every example, those that are not known yet bought all at once.

        They are those that each candidate gets alone. Several go through nested `vmap` where the program and its loss
        are made of the library's modules alone, fields and targets are texts, and nothing is noted or limited by
        example (`timed`, `concurrency`). Otherwise each is run on each example by itself, as `evaluate` does it, so
        that a forward that branches on a field, and a loss that compares a target, see the same values as there.
        """
        self._check_asked(candidates, positions, split)
        wanted: list[list[Key]] = [[(texts, split, n, repeat) for n in positions] for texts in candidates]
        return [[found.score for found in row] for row in self._results(wanted)]

    def evaluation(self, texts: Texts, on_score: Callable[[int], None] | None = None) -> Evaluation:
        """The validation set with these texts, as `evaluate` would give it; what is known is not paid for again.

        Args:
            texts: the candidate.
            on_score: called when another example's score is there; on any thread. It must not raise.

        Raises:
            ModelError: more than half of the examples went unanswered, or the models cannot be asked at all.
        """
        found = self._results([self._validation(texts)], on_score)[0]
        return evaluation_of(self.val, found, clusters=self.clusters, scale=self.scale, parts=self._parts)

    def texts_of(self, named: Mapping[str, str]) -> Texts:
        """The candidate that texts by dotted name make."""
        return tuple(named[name] for name in self.names)

    def feedback(self, texts: Texts, positions: Sequence[int]) -> FeedbackOn:
        """Run training examples with these texts and go backward; each goes as soon as its own loss is there."""
        self._check_asked([texts], positions, "train")
        leaves = leaves_of(self._named, texts)
        call_hooks_of([*zip(self.parameters, leaves.values())])
        begun = self._trials.begin_recorded(leaves, positions, noted=self._noting)
        problems = go_backward(self.reach.look([ran.loss for ran, _, _ in begun], leaves))
        every = [self._trials.read("train", position, *each) for position, each in zip(positions, begun)]
        self.reach.refuse_if_cut_off(positions, [found.score for found in every])
        for position, found in zip(positions, every):
            self._known.note((texts, "train", position, 0), found)
        gradients = tuple(tuple(leaf.grad) for leaf in leaves.values())
        scores = tuple(found.score for found in every)
        problems += none_reached(len(scores), [found.failure for found in every if found.failure is not None])
        return FeedbackOn(scores, gradients, tuple(problems))

    def demos(self, positions: Sequence[int]) -> list[Demo | None]:
        """Training examples to be shown, with their targets as answers; see `optim.search.objective`."""
        self._check_asked([], positions, "train")
        rows = [self._rows["train"][position] for position in positions]
        return [
            None
            if (answer := self._answer_in(wanted)) is None
            else replace(demo_of(name, fields, answer, wanted), part=self._is_field(wanted))
            for name, fields, wanted in rows
        ]

    def note_calls(self) -> None:
        """Note what the program asks from now on; see `optim.search.objective`."""
        self._noting = True

    def runs(self, texts: Texts, positions: Sequence[int], split: Split = "train") -> list[Run | None]:
        """What the program says of examples with these texts, and asks for that; see `optim.search.objective`.

        Raises:
            ModelError: the models cannot be asked at all, or more than half went unanswered.
        """
        self._check_asked([texts], positions, split)
        keys: list[Key] = [(texts, split, position, 0) for position in positions]
        found = self._results([keys], noted=True)[0]
        rows = [self._rows[split][position] for position in positions]
        return [
            None
            if each.calls is None or each.prediction is None
            else Run(demo_of(name, fields, each.prediction, wanted), asked_in(each.calls))
            for (name, fields, wanted), each in zip(rows, found)
        ]

    def near(self, positions: Sequence[int], among: Sequence[int]) -> list[int]:
        """The validation examples `among`, by the rarer words that they share with the training examples."""
        return self._nearness.by(positions, among)

    @contextlib.contextmanager
    def proposal(self, number: int) -> Iterator[None]:
        """Inside the block, what is asked belongs to the proposal of that number."""
        phase = contextlib.nullcontext() if self._phases is None else self._phases(number)
        with phase, self._known.proposal(number):
            yield

    def adopt(self, texts: Texts, number: int | None = None) -> None:
        """Take these texts for the best of now: what is known of them is shared by proposals begun from now on.

        Args:
            texts: the best texts.
            number: of the proposal that they come from. What later ones found, which may be under way, stays theirs, as
                it depends on how far they are; None shares what all found.
        """
        # By what it found itself guards have let it pass; others may have been refused with the same texts.
        self._known.adopt(texts, number, own_first=self.guarded is not None)

    def move(self, texts: Texts) -> None:
        """Have further calls with adopted texts belong to the phase of now, as where a search is over."""
        self._known.move(texts)

    def refusal(self, before: Texts, after: Texts, number: int = 0, *, again: bool = True) -> str:
        """Why the guards refuse texts that won their race; see `optim.search.objective`.

        Without `again` one run of each example decides, also of those that must never break.

        Raises:
            ModelError: the models cannot be asked at all, or the budget is spent.
        """
        self._check_asked([before, after], (), "val")
        if self.guarded is None or before == after:
            return ""
        try:
            seen = self._on_guarded(self.guarded, before, after, number, self.guarded.reruns if again else 0)
        except UNANSWERED as error:
            return f"the guarded examples could not be run: {type(error).__name__}: {error}"
        return self.guarded.broken(*self._noted(self.guarded, seen))

    def broken(self, before: Texts, after: Texts, number: int = 0) -> tuple[int, ...]:
        """The positions of the examples for which the guards refuse texts; see `optim.search.objective`.

        Raises:
            ModelError: the models cannot be asked at all, or the budget is spent.
        """
        if self.guarded is None or before == after:
            return ()
        try:
            seen = self._on_guarded(self.guarded, before, after, number, self.guarded.reruns)
        except UNANSWERED:
            return ()
        return self.guarded.culprits(*self._noted(self.guarded, seen))

    def breaking(self, before: Texts, tries: Sequence[Texts], positions: Sequence[int]) -> list[tuple[int, ...]]:
        """Which of some validation examples do worse with each of several texts; see `optim.search.objective`.

        Raises:
            ModelError: the models cannot be asked at all, most went unanswered, or the budget is spent.
        """
        reruns = 0 if self.guarded is None else self.guarded.reruns
        self.matrix([before, *tries], positions)
        return self._breaking(before, tries, positions, reruns, by_edit=True)

    def _breaking(
        self, before: Texts, tries: Sequence[Texts], positions: Sequence[int], reruns: int, *, by_edit: bool = False
    ) -> list[tuple[int, ...]]:
        """As `breaking`, of examples that were run; with `by_edit` as `Guarded.due` has it."""

        def run(repeat: int, worse: Worse) -> list[list[float | None]]:
            keys: list[list[Key]] = [[(texts, "val", n, repeat) for n in each] for texts, each in zip(tries, worse)]
            return [[ran.score for ran in row] for row in self._ran(keys)]

        level = self._reached(before, positions, reruns)
        if self.guarded is not None:
            level = self.guarded.due(level, by_edit=by_edit)
        first = [self._reached(texts, positions, 0) for texts in tries]
        found = [[n for n in positions if is_worse(level[n], scores[n])] for scores in first]
        return [tuple(worse) for worse in still_worse(level, found, reruns, run)]

    def _check_asked(self, candidates: Sequence[Texts], positions: Sequence[int], split: Split) -> None:
        """Refuse what cannot be run.

        Raises:
            TypeError: a candidate is no tuple of texts.
            ValueError: one has another number of texts, or there is no such split.
            IndexError: there is no such example.
        """
        for texts in candidates:
            check_texts(self._named, texts)
        if not isinstance(split, str) or split not in self._rows:
            order = "" if isinstance(split, str) else "; write scores(texts, positions, split)"
            raise ValueError(
                f"there are train and val examples to score, got {split!r:.80}{order}; the test set is only opened at "
                "the end of a run"
            )
        count = len(self._rows[split])
        for position in positions:
            if not hasattr(type(position), "__index__") or not 0 <= position < count:
                raise IndexError(
                    f"position {position!r} of the {split} examples: there are {count}, from 0 to {count - 1}; an "
                    "objective says how many with len(objective.train) and len(objective.val), an estimate takes a few"
                )

    def _on_guarded(self, guarded: Guarded, before: Texts, after: Texts, number: int, reruns: int) -> OnGuarded:
        keys: list[list[Key]] = [[(texts, "val", n, 0) for n in guarded.positions] for texts in (before, after)]
        with self._known.proposal(number, told_of_all=True):
            old, new = self._results(keys)
            if reruns:
                self._breaking(before, [after], guarded.never_break, reruns)
            reached = [self._reached(texts, guarded.never_break, reruns) for texts in (before, after)]
        was, now = (dict(zip(guarded.positions, found)) for found in (old, new))
        return self._of_guarded(guarded, was, now, (reached[0], reached[1]))

    def _noted(self, guarded: Guarded, seen: OnGuarded) -> OnGuarded:
        """What was seen on guarded examples, and a note of what refuses it."""
        self.guards_refused |= bool(guarded.broken(*seen))
        self.floors_refused |= bool(guarded.low(*seen[:3]))
        self.marks_refused |= guarded.breaks_below(None if self.scale is None else self.scale[1], *seen[3])
        return seen

    def _results(
        self, wanted: list[list[Key]], on_score: Callable[[int], None] | None = None, *, noted: bool = False
    ) -> list[list[Scored]]:
        found = self._ran(wanted, on_score, noted=noted)
        refuse_if_mostly_lost([each for row in found for each in row])
        return found

    def _ran(
        self, wanted: list[list[Key]], on_score: Callable[[int], None] | None = None, *, noted: bool = False
    ) -> list[list[Scored]]:
        """What came of what is wanted, however many of the answers were lost."""
        held, claimed = self._known.claim(wanted)
        if claimed:
            self._buy(claimed, on_score, noted or self._noting)
        return [[waited_for(each) for each in row] for row in held]

    def _buy(self, claimed: dict[Key, Future[Scored]], on_score: Callable[[int], None] | None, noted: bool) -> None:
        try:
            begun = self._trials.begin(list(claimed), on_score, noted=noted)
            failures: list[Exception] = []
            for key, future in claimed.items():
                try:  # each by itself: what was answered stays known when others could not be asked
                    future.set_result(self._trials.read(key[1], key[2], *begun[key]))
                except Exception as error:
                    failures.append(error)
            if failures:
                raise failures[0]
        except BaseException as error:
            self._known.give_up(claimed, error)
            raise

    @functools.cached_property
    def _nearness(self) -> Nearness:
        train, val = ([fields for _, fields, _ in self._rows[split]] for split in ("train", "val"))
        return Nearness(train, val)
