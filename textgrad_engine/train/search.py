"""A run of `Trainer.fit` with an optimizer that searches: it decides about proposals, one after the other."""

from __future__ import annotations

import logging
from dataclasses import replace
from typing import cast

from textgrad_engine.autograd import Variable
from textgrad_engine.data import RandomSampler, SequentialSampler
from textgrad_engine.errors import UNANSWERED, ReturnError, is_by_the_request
from textgrad_engine.llm.meters import Meter
from textgrad_engine.optim.search.searcher import Decision, Searcher
from textgrad_engine.optim.search.vain import Vain
from textgrad_engine.plain_values import is_number
from textgrad_engine.train.evaluation import Evaluation
from textgrad_engine.train.events import StepEnded
from textgrad_engine.train.run import Run
from textgrad_engine.train.unguided import beats_seed
from textgrad_engine.wording import told

_log = logging.getLogger(__name__)


class SearchRun(Run):
    """One call of `fit` with a `Searcher`."""

    optimizer: Searcher
    expected = 0.0
    """What the best texts are expected to score."""

    def searched(self) -> tuple[Variable, ...]:
        """The optimizer's parameters, in its order: it may be given some of the program's only."""
        return tuple(self.optimizer.variables())

    def tried(self, seed: Evaluation) -> list[Evaluation]:
        """What is known of the candidates that were tried and not taken; of a search without races, of all texts."""
        if self.optimizer._races:
            return super().tried(seed)
        return self.objective.tried([self.objective.texts_of(texts) for texts in (self.seed, self.best)])

    @property
    def idle(self) -> str:
        """Why nothing more was proposed, in words."""
        return self.optimizer.idle

    def most_steps(self) -> int | None:
        """How many decisions there will be at most; a search ends by itself when nothing is left to try."""
        return self.trainer.max_steps

    def train(self, used: Meter) -> None:
        """Decide about proposals until nothing is left to try, or the trainer's limits are reached."""
        if not isinstance(sampler := self.loader.sampler, RandomSampler | SequentialSampler):
            _log.warning(
                "%s draws minibatches of its own from all training examples, and does not ask the DataLoader's "
                "sampler, a %s; give it a dataset of the examples that it is to learn from",
                type(self.optimizer).__name__,
                type(sampler).__name__,
            )
        if self.optimizer.reads_runs:
            self.objective.note_calls()
        with self.phases.phase("score", 0, 0):
            self.objective.adopt(self.objective.texts_of(self.seed))
        self.validate_seed(used)
        if self.seed_val is not None:
            self.expected = self.seed_val.mean
        since_kept, held = 0, self.optimizer.to_the_end
        self.optimizer.to_the_end = self.to_the_end
        self.optimizer.vain = Vain()  # as with an optimizer that steps: settings may be other ones than in a run before
        try:
            # Patience never ends a round that is paid for: the best of its texts may be told last.
            while not self.enough(0 if self.optimizer.has_decided else since_kept):
                if (kept := self.decide()) is None:
                    break
                since_kept = 0 if kept else since_kept + 1
        finally:
            self.optimizer.close()
            self.phases.end_proposals()
            self.optimizer.remaining, self.optimizer.to_the_end = None, held
            # Whatever ends the search, what was found stays; its score is what is known of it without asking.
            self.best_val = self.objective.known(self.objective.texts_of(self.best)) or self.best_val

    def complete(self) -> None:
        """Score the best texts on the whole validation set; the seed texts come back where these do not beat them."""
        try:
            self.best_val = self.evaluated(self.objective.texts_of(self.best), len(self.steps))
        except UNANSWERED as error:  # of most answers, and a run that is resumed would ask for them in vain
            if not is_by_the_request(error):
                raise
            _log.warning(
                "with the texts that were found, most of the %d validation answers are lost, so the seed texts stay: "
                "%s",
                *(len(self.val), error),
            )
            self.best_val = None
        if self.best != self.seed and not self.seed_is_beaten():
            self.best, self.best_val = dict(self.seed), self.seed_val
            self.origins = {name: [None] * len(text.split("\n")) for name, text in self.seed.items()}

    def decide(self) -> bool | None:
        """Decide about one proposal. Returns whether it was kept; None when nothing is left to try."""
        number = len(self.steps) + 1
        if self.trainer.max_steps is not None:
            self.optimizer.remaining = self.trainer.max_steps - len(self.steps)
        with self.phases.phase("score", number, 0):
            decided = self.optimizer.step(self.objective)
            if decided is not None:
                decided = self.guarded(decided)
        if decided is None:
            return None
        self.phases.end_proposal(decided.number)
        val_mean = self.validated(decided)
        if decided.kept:
            self.best, self.origins = self.texts(), self.origins_now()
        problems = list(decided.problems)
        heard = (decided.feedback > 0 or not self.optimizer.reads_feedback) and not decided.lost
        self.lost_rounds.check(heard, problems, number, kind=decided.kind, more=decided.more)
        self.keep_for_the_end()
        self.steps.append(self.ended(number, decided, val_mean))
        self.emit(self.steps[-1])
        return decided.kept

    def guarded(self, decided: Decision) -> Decision:
        """A decision, not kept where the guards refuse the texts that it keeps.

        The library's searches have asked already, so it costs them nothing; one of the user's own need not ask. It goes
        on from what it has, and what it finds is looked at beside the last texts that were not refused.
        """
        if not decided.kept:
            return decided
        best, found = (self.objective.texts_of(texts) for texts in (self.best, self.texts()))
        refused = self.objective.refusal(best, found, decided.number)
        return replace(decided, kept=False, why=f"refused: {refused}") if refused else decided

    def validated(self, decided: Decision) -> float | None:
        """The validation score of what a search without races proposes; None where that was not run on all examples."""
        names = {id(parameter): name for name, parameter in self.trained.items()}
        changed = {names.get(id(change.variable), ""): change.after for change in decided.changes}
        proposed = {name: changed.get(name, text) for name, text in self.best.items()}
        texts = self.objective.texts_of(self.texts() if decided.kept else proposed)
        if self.optimizer._races or texts == self.objective.texts_of(self.best) or self.objective.missing(texts):
            return None
        known = self.objective.known(texts)
        return None if known is None else known.mean

    def ended(self, number: int, decided: Decision, val_mean: float | None) -> StepEnded:
        """The event of a decision."""
        if self.texts() == self.best:  # else these were refused, and what they score says nothing of the best ones
            self.expected = self.expected_now()
        scores = [score for score in decided.scores if score is not None]
        return StepEnded(
            step=number,
            epoch=0,
            examples=decided.examples,
            train_mean=sum(scores) / len(scores) if scores else None,
            unanswered=len(decided.scores) - len(scores),
            lost=tuple(name for name, score in zip(decided.examples, decided.scores) if score is None),
            feedback=decided.feedback,
            changes=self.changes(),
            val_mean=val_mean,
            kept=decided.kept,
            best_val=self.expected,
            problems=decided.problems,
            kind=decided.kind,
            why=decided.why,
            race=decided.race,
            ablated=decided.edits,
        )

    def expected_now(self) -> float:
        """What the search says that its best texts score.

        Raises:
            ReturnError: it is no number.
        """
        expected: object = self.optimizer.expected
        if not is_number(expected):
            raise ReturnError(
                f"{type(self.optimizer).__name__}.expected is {told(expected)}, and is to be the mean validation score "
                "of the best texts so far, a number"
            )
        return float(cast("float", expected))

    def seed_is_beaten(self) -> bool:
        """Whether the best texts do better on the validation set than the seed texts, or as well, and are shorter."""
        assert self.seed_val is not None
        if self.best_val is None:
            return False
        seed, best = self.objective.texts_of(self.seed), self.objective.texts_of(self.best)
        return beats_seed(self.objective, seed, best, self.seed_val, self.best_val)
