"""A run of `Trainer.fit` with an optimizer that takes steps: each is tried before it is kept."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from typing import Any

from textgrad_engine import templates
from textgrad_engine.autograd import Variable, example
from textgrad_engine.autograd.value import label_of
from textgrad_engine.data import ids_of
from textgrad_engine.errors import UNANSWERED, is_by_the_request
from textgrad_engine.llm.context import LeftOut, on_left_out
from textgrad_engine.llm.meters import Meter
from textgrad_engine.nn.metric_functions import with_fields
from textgrad_engine.ops.scores import decimal_of
from textgrad_engine.optim.saved import apart
from textgrad_engine.optim.search.found import Found, trimmed_in_words
from textgrad_engine.optim.search.marks import nothing_to_show
from textgrad_engine.optim.search.objective import Texts, handicap_of
from textgrad_engine.optim.search.sparing import spared_in_words
from textgrad_engine.optim.search.vain import Vain
from textgrad_engine.optim.telling import edits_in_words
from textgrad_engine.train.calling import Ran, run_on, run_scored
from textgrad_engine.train.doubtful import Answer
from textgrad_engine.train.evaluation import Evaluation
from textgrad_engine.train.events import StepEnded
from textgrad_engine.train.passes import go_backward, none_reached
from textgrad_engine.train.prediction import said_in
from textgrad_engine.train.proving import prove, wins
from textgrad_engine.train.run import Run, size_of
from textgrad_engine.train.targets import counting_entries, inputs_and_target
from textgrad_engine.train.unguided import does_better


class StepRun(Run):
    """One call of `fit` with an optimizer that steps."""

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self.score, self.entries = with_fields(self.loss), counting_entries(self.loss)
        self.read = inputs_and_target(self.program, self.loss, self.trainer.target)
        self.train_ids = ids_of(self.loader.dataset)
        self.vain, self.proposed = Vain(), set[tuple[tuple[str, ...], tuple[str, ...]]]()
        self.noise: float | None = None  # of the scores by themselves, once it is measured

    @property
    def idle(self) -> str:
        """Why nothing more was proposed, in words."""
        return self.vain.in_words or self.at_the_top

    def most_steps(self) -> int | None:
        """How many optimizer steps there will be at most."""
        most = self.trainer.max_epochs * len(self.loader)
        return most if self.trainer.max_steps is None else min(most, self.trainer.max_steps)

    def train(self, used: Meter) -> None:
        """Go over the training set and keep what does better on the validation set."""
        first = self.loader.index_batches()  # a sampler of the user's is asked before anything is paid for
        self.validate_seed(used)
        since_kept = 0
        if self.at_the_top or self.enough(since_kept):
            return
        for epoch in range(1, self.trainer.max_epochs + 1):
            for positions, rows in first if epoch == 1 else self.loader.index_batches():
                kept = self.step(epoch, positions, rows)
                since_kept = 0 if kept else since_kept + 1
                if self.idle or self.enough(since_kept):
                    return

    @property
    def at_the_top(self) -> str:
        """Why no step could be kept any more, in words; "" where one can, or steps are to be taken all the same."""
        if self.to_the_end or self.best_val is None or self.best_val.not_run:
            return ""
        return nothing_to_show(self.objective, self.best_val.answered)

    def step(self, epoch: int, positions: list[int], rows: list[dict[str, Any]]) -> bool:
        """One minibatch: forward, backward, a change, its validation. Returns whether the change was kept."""
        self.refuse_unfrozen()
        number = len(self.steps) + 1
        names = tuple(self.train_ids[position] for position in positions)
        self.optimizer.zero_grad()
        left_out: list[LeftOut] = []
        with on_left_out(left_out.append):
            every, problems, lost = self.forward_and_backward(number, names, rows)
        scores = [score for score in every if score is not None]
        feedback = sum(len(parameter.grad) for parameter in self.stepped())
        heard = feedback > 0 or not self.optimizer.reads_feedback
        held = apart(self.optimizer.state_dict())
        try:
            found, refusal = self.changed(number, positions, problems, heard=heard)
        except BaseException as error:  # the budget is spent, Ctrl-C: the step has not been
            try:
                self.take_back(held)
            except Exception as also:
                error.add_note(f"nor could the optimizer be set back to before the step: {also}")
            raise
        self.lost_rounds.check(heard and (found is None or not found.lost), problems, number)
        kept, why, val_mean, ended_by = False, "", None, None
        if found is not None:
            kept, why, val_mean, ended_by = self.settle(found, refusal, held, number)
        assert self.best_val is not None
        ended = StepEnded(
            step=number,
            epoch=epoch,
            examples=names,
            train_mean=sum(scores) / len(scores) if scores else None,
            unanswered=len(lost),
            lost=tuple(lost),
            feedback=feedback,
            changes=self.changes(),
            val_mean=val_mean,
            kept=kept,
            best_val=val_mean if kept and val_mean is not None else self.best_val.mean,
            problems=tuple(problems),
            left_out=sum(each.items for each in left_out),
            why=why,
            race=None if found is None else found.race,
        )
        self.steps.append(ended)
        self.emit(ended)
        if ended_by is not None:
            raise ended_by
        return kept

    def changed(
        self, number: int, positions: list[int], problems: list[str], *, heard: bool
    ) -> tuple[Found | None, str]:
        """What is left of a change by the optimizer, and why the guards refuse that; None where there is no change.

        Args:
            number: of the step.
            positions: of its training examples.
            problems: what went unanswered in it, in words; what else does is added.
            heard: whether there was something to answer by a change.
        """
        with self.phases.phase("optimize", number, 1) as advance:
            try:
                self.propose()
            except UNANSWERED as error:  # one proposal lost; the texts are as they were
                problems.append(f"the optimizer gave no answer: {type(error).__name__}: {error}")
            advance()
        self.count_vain(heard, problems)
        if self.texts() == self.best:
            return None, ""
        found, refusal = prove(self, number, positions)
        problems.extend(found.problems)
        return found, refusal

    def refuse_unfrozen(self) -> None:
        """Refuse to step on a text that was not trained when the run began: no race would be about it, nor any record.

        Raises:
            ValueError: a callback has unfrozen it since, or given it to the optimizer.
        """
        known = {id(each) for each in self.trained.values()}
        for variable in self.optimizer.variables():
            if variable.requires_grad and id(variable) not in known:
                raise ValueError(
                    f"the optimizer trains {label_of(variable)} now, which was frozen or not the program's when this "
                    "fit began, so what a step did to it would be neither validated nor taken back; train in phases by "
                    "one fit after the other, and unfreeze it between them"
                )

    def count_vain(self, heard: bool, problems: Sequence[str]) -> None:
        """Take note of whether the step has proposed something new that can be tried."""
        changed = [change for change in self.optimizer.changes if change.after != change.before]
        if not heard or (problems and not changed) or not self.optimizer.changes:
            return
        new = (tuple(self.best.values()), tuple(self.texts().values()))
        why = next((change.problem for change in self.optimizer.changes if change.problem), "nothing was proposed")
        tried = "it was tried before" if changed else why
        refused = [change.refused for change in self.optimizer.changes]
        self.vain.count("" if changed and new not in self.proposed else tried, refused=refused)
        self.proposed.add(new)

    def propose(self) -> None:
        """Have the optimizer change the texts; it chooses among several candidates by the training examples."""
        if self.optimizer.candidates > 1:
            self.optimizer.step(self.objective)
        else:
            self.optimizer.step()

    def forward_and_backward(
        self, number: int, names: tuple[str, ...], rows: list[dict[str, Any]]
    ) -> tuple[list[float | None], list[str], list[str]]:
        """Run a minibatch; each example goes backward as soon as its own loss is there, whatever the others do.

        None does where the optimizer reads no feedback.

        Returns:
            The scores, None for what went unanswered; the answers of the critic that were not to be had, in words; and
            what went unanswered and why, in words.

        Raises:
            AutogradError: no loss so far leads back to a text.
        """
        problems: list[str] = []
        with self.phases.phase("forward", number, len(rows)) as advance:

            def start(position: int) -> tuple[tuple[Ran, Any], Variable]:
                row, name = rows[position], names[position]
                with example(name):
                    fields, wanted = self.read(row, name)
                    ran = run_on(name, self.program, fields, self.score, wanted)
                    return (ran, wanted), ran.loss

            started = run_scored(self.program, start, len(rows), self.trainer.concurrency, lambda _: advance())
            losses = [loss for _, loss in started]
            stepped = self.stepped() if self.optimizer.reads_feedback else []
            roots = self.objective.reach.look(losses, {n: each for n, each in self.trained.items() if each in stepped})
            if roots and stepped:
                with self.phases.phase("backward", number, 0):
                    problems = go_backward(roots, stepped)
            texts = self.objective.texts_of(self.texts())
            found = [self.score_of(name, ran, wanted, texts) for name, ((ran, wanted), _) in zip(names, started)]
        scores = [None if isinstance(each, Exception) else each for each in found]
        failures = [each for each in found if isinstance(each, Exception)]
        lost = [f"{name}: {type(e).__name__}: {e}" for name, e in zip(names, found) if isinstance(e, Exception)]
        self.objective.reach.refuse_if_cut_off(names, scores)
        return scores, problems + none_reached(len(rows), failures), lost

    def score_of(self, name: str, ran: Ran, wanted: Any, texts: Texts) -> float | Exception:
        """The score of an example with the texts of now, which is noted with its answer; or why it has none."""
        try:
            score = ran.score()
        except UNANSWERED as error:
            return error
        with contextlib.suppress(*UNANSWERED):  # an output that the loss does not read
            score = decimal_of(score / self.entries(name, ran.prediction, wanted))
            self.objective.answered.note(Answer("train", name, texts, score, said_in(ran.prediction)))
        return score

    def refusal(self, found: Found) -> str:
        """Why the guards refuse texts that won their race; "" when they do not."""
        if self.trainer.guards is None:
            return ""
        broken = self.objective.refusal(found.base, found.texts)
        return f"refused: {broken}" if broken else ""

    def settle(
        self, found: Found, refusal: str, held: dict[str, Any], number: int
    ) -> tuple[bool, str, float | None, Exception | None]:
        """Keep what is left of a step, or go back to the best texts; the optimizer learns what became of it, and why.

        Args:
            found: what is left of it.
            refusal: why the guards refuse it; "" when they do not.
            held: what the optimizer knew before the step.
            number: of the step.

        Returns:
            Whether it is kept; in a few words why, where there is more to say; the validation score of the new texts:
            of all examples when they are kept, else put together from the race, None where there is none; and what
            ended their validation, which the step is kept in spite of.
        """
        assert self.best_val is not None
        before, after, ended_by = self.best_val.mean, None, None
        kept, validated = wins(found) and not refusal, self.best_val
        if kept:
            validated = self.objective.known(found.texts) or validated  # it stays so if the budget ends now
            # What follows is a part of what is kept for the end, of which the test goes first.
            self.ending.keep_for(size_of(dict(zip(self.objective.names, found.texts))), 0)
            try:
                validated = self.evaluated(found.texts, number)
                after = validated.mean
            except Exception as error:
                if is_by_the_request(error):  # of most answers, and a run that is resumed would ask for them in vain
                    kept = False
                    refusal = f"it won its race, but most of the {len(self.val)} validation answers are lost: {error}"
                else:  # the budget is spent, Ctrl-C: the race has decided, and the step has been
                    ended_by = error
            if after is not None and self.does_worse(found, validated):
                kept, refusal = False, f"it won its race, and does worse on all {len(validated)} validation examples"
        if not kept:
            self.take_back(held)
        self.amend(found, written=kept)
        if kept:
            self.best, self.origins, self.best_val = self.texts(), self.origins_now(), validated
        self.keep_for_the_end()
        if after is not None or found.race is not None:
            self.optimizer.record_outcome(self.in_words(found, before, after, refusal, kept=kept))
        if after is None and found.race is not None:
            after = before + found.race.difference
        without = spared_in_words(found) + trimmed_in_words(found)
        why = refusal or (found.race.in_words + without if without and found.race is not None else "")
        return kept, why, after, ended_by

    def in_words(self, found: Found, before: float, after: float | None, refusal: str, *, kept: bool) -> str:
        """What became of a step, for whoever proposes the next one (the prompt ``outcome``).

        A race that shows no difference is no sign that an edit does harm. Nor is a score that was put together from a
        race one to be told beside that of all examples: who is told two takes one for the other.

        Args:
            found: what was tried.
            before: the validation score of the texts before.
            after: that of the new ones, where they were run on all examples.
            refusal: why they are not kept though they won their race, "" where that is not so.
            kept: whether they are.
        """
        return templates.load("outcome").render(
            kept=kept,
            refusal=refusal,
            worse=found.race is None or found.race.outcome == "worse",
            before=f"{before:.3f}",
            after=None if after is None else f"{after:.3f}",
            edits=sum(len(edits_in_words(change)) for change in found.changes),
        )

    def does_worse(self, found: Found, validated: Evaluation) -> bool:
        """Whether what won its race does worse on the whole validation set than the best texts so far.

        A race ends early. Of 1,000 examples of which 20 fail, those 20 come first, and some of them are right with any
        other words; what the words cost among the 980 others, a race of 50 examples may not see.
        """
        assert self.best_val is not None
        handicap = handicap_of(self.objective, found.base, found.texts)
        return not does_better(validated, self.best_val, handicap, self.objective.latency_weight, ties=True)

    def amend(self, found: Found, *, written: bool) -> None:
        """Tell the optimizer what it has done after all, where that is less than it proposed."""
        gone = {"it did harm beside the others": found.trimmed, f"refused: {found.spared_for}": found.spared}
        if not found.trimmed and not found.spared:
            return
        texts = zip(self.objective.parameters, found.texts, found.origins, self.objective.texts_of(self.texts()))
        changed = {variable: (text, own) for variable, text, own, now in texts if text != now} if written else {}
        self.optimizer.amend(found.changes, changed, {why: changes for why, changes in gone.items() if changes})

    def take_back(self, held: dict[str, Any]) -> None:
        """Go back to the best texts, and to what the optimizer knew before its step; its settings stay."""
        self.load(self.best)
        now = self.optimizer.state_dict()
        self.optimizer.load_state_dict({**held, "steps": now["steps"], "param_groups": now["param_groups"]})

    def stepped(self) -> list[Variable]:
        """What a step reads the feedback on; feedback on other texts would be paid for and used by nobody."""
        wanted = (variable for variable in self.optimizer.variables() if variable.requires_grad)
        return [each for each in wanted if self.optimizer.group_of(each).get("use_feedback", True)]
