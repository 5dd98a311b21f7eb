"""One call of `Trainer.fit`: its state, its phases, and what became of it."""

from __future__ import annotations

import contextlib
import functools
import random
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, Literal

from textgrad_engine.autograd import Variable, backward, example
from textgrad_engine.autograd.forgiving import forgiving
from textgrad_engine.data import DataLoader, Subset, ids_of
from textgrad_engine.errors import UNANSWERED, BudgetExceeded, CallCancelled, ModelError, Stopped
from textgrad_engine.llm.context import LeftOut, on_left_out
from textgrad_engine.llm.redact import redacted, secrets_named
from textgrad_engine.llm.usage import CallRecord, Meter, meter, observe
from textgrad_engine.nn import Module
from textgrad_engine.ops import feedback_batch_size as sharing_feedback
from textgrad_engine.optim import Optimizer, Origin
from textgrad_engine.optim.search.found import Found, trimmed_in_words
from textgrad_engine.optim.search.objective import Texts
from textgrad_engine.optim.search.sparing import spared_in_words
from textgrad_engine.optim.texts import write_texts
from textgrad_engine.train.calling import inputs_and_target, run_on, run_scored, with_fields
from textgrad_engine.train.controlled import run_controls
from textgrad_engine.train.controls import Controls
from textgrad_engine.train.ending import Ending
from textgrad_engine.train.evaluator import Evaluation, as_score, compare, evaluate
from textgrad_engine.train.events import (
    Callback,
    CallEnded,
    Earlier,
    Evaluated,
    Event,
    ParameterChange,
    Phase,
    PhaseAdvanced,
    PhaseEnded,
    PhaseStarted,
    RunEnded,
    RunFailed,
    RunStarted,
    Status,
    StepEnded,
    current_phase,
)
from textgrad_engine.train.front import front_of
from textgrad_engine.train.interrupt import finishing_on_interrupt, stopping_on_interrupt
from textgrad_engine.train.objective import Objective, Phases, note_lost
from textgrad_engine.train.proving import prove, wins
from textgrad_engine.train.reach import Reach
from textgrad_engine.train.result import TrainResult, tried
from textgrad_engine.train.sealed import SealedTest
from textgrad_engine.train.splits import warn_of_overlaps
from textgrad_engine.train.telling import Audience

if TYPE_CHECKING:
    from textgrad_engine.train.trainer import Trainer

__all__ = ["Examples", "Run"]

MOST_LOST_ROUNDS = 3
"""So many rounds in a row without an answer of the critic or the optimizer end a run; mostly a round is one step."""

Examples = Sequence[dict[str, Any]]


def failure_of(error: Exception) -> RunFailed:
    """The event of an exception that ends a run."""
    secrets = secrets_named()
    notes = tuple([redacted(str(note), secrets) for note in getattr(error, "__notes__", ())])
    return RunFailed(redacted(f"{type(error).__name__}: {error}", secrets), notes)


class Run:
    """One call of `fit`."""

    def __init__(
        self,
        trainer: Trainer,
        program: Module,
        loss: Callable[..., Variable],
        optimizer: Optimizer,
        loader: DataLoader[dict[str, Any]],
        val: Examples,
        test: Examples | None,
        callbacks: list[Callback],
    ) -> None:
        self.trainer, self.program, self.loss, self.optimizer = trainer, program, loss, optimizer
        self.score = with_fields(loss)
        self.loader, self.val = loader, val
        self.test = None if test is None else SealedTest(test)
        self.overlaps = warn_of_overlaps(program, loader.dataset, val, test)
        self.train_ids = ids_of(loader.dataset)
        self.read = inputs_and_target(program, loss, trainer.target)
        self.trained = {name: p for name, p in program.named_parameters() if p.requires_grad}
        self.objective = self.new_objective(self.searched(), self.proposal_phase)
        self.seed = self.texts()
        self.best = dict(self.seed)
        self.origins = self.origins_now()
        self.seed_val: Evaluation | None = None
        self.best_val: Evaluation | None = None
        self.noise: float | None = None
        self.seed_test: Evaluation | None = None
        self.best_test: Evaluation | None = None
        self.controls: Controls | None = None
        self.steps: list[StepEnded] = []
        self.phases = 0
        self.proposals: dict[int, int] = {}
        self.lost_rounds = 0
        self.round: dict[str, list[str]] = {}  # why steps were lost since a round began ("": not), by kind
        self.reach = Reach()
        self.shortage = ""
        self.left_out: list[LeftOut] = []
        self.earlier: Earlier | None = next(filter(None, [getattr(each, "earlier", None) for each in callbacks]), None)
        self.audience = Audience(callbacks)

    def new_objective(self, parameters: Sequence[Variable], phases: Phases | None = None) -> Objective:
        """The program as a function of some of its texts, by the trainer's settings; nothing is known of it yet.

        Args:
            parameters: these texts.
            phases: makes the context of a proposal's calls, for the journal.
        """
        return Objective(
            self.program,
            self.loss,
            self.loader.dataset,
            self.val,
            target=self.trainer.target,
            concurrency=self.trainer.concurrency,
            parameters=parameters,
            phases=phases,
            guards=self.trainer.guards,
            clusters=self.trainer.clusters,
            tokens_weight=self.trainer.tokens_weight,
            latency_weight=self.trainer.latency_weight,
        )

    def searched(self) -> tuple[Variable, ...]:
        """What the objective is a function of."""
        return tuple(self.trained.values())

    def stepped(self) -> list[Variable]:
        """What a step reads the feedback on; feedback on other texts would be paid for and used by nobody."""
        wanted = (variable for variable in self.optimizer.variables() if variable.requires_grad)
        return [each for each in wanted if self.optimizer.group_of(each).get("use_feedback", True)]

    def texts(self) -> dict[str, str]:
        """The trained texts as they are now."""
        return {name: str(parameter.data) for name, parameter in self.trained.items()}

    def origins_now(self) -> dict[str, list[Origin | None]]:
        """Why each line of the trained texts reads as it does."""
        return {name: self.optimizer.origins(parameter) for name, parameter in self.trained.items()}

    def load(self, texts: dict[str, str]) -> None:
        """Put texts into the program."""
        write_texts([self.trained[name] for name in texts], texts.values())

    def emit(self, event: Event) -> None:
        """Tell everybody, one event at a time."""
        self.audience.tell(event)

    def run(self) -> TrainResult:
        """Train until the end, Ctrl-C, or a spent budget; what was found then is worked out and told in any case."""
        began = time.monotonic()
        with finishing_on_interrupt():
            try:
                status, used = self.ask()
                result = self.result(status, used, time.monotonic() - began)
                self.emit(RunEnded(status, result))
            except Exception as error:
                # Whoever is told may be what failed, and what went wrong first is what is raised.
                with contextlib.suppress(Exception):
                    self.emit(failure_of(error))
                raise
        return result

    def ask(self) -> tuple[Status, Meter]:
        """All of the run that asks models. Returns how it ended and what was used."""
        status: Status = "finished"
        with contextlib.ExitStack() as stack:
            used = stack.enter_context(meter())
            stack.enter_context(observe(self.on_call))
            stack.enter_context(on_left_out(self.left_out.append))
            if self.earlier is not None:
                stack.enter_context(self.earlier.answering())
            stack.enter_context(sharing_feedback(self.trainer.feedback_batch_size))
            stop = stack.enter_context(stopping_on_interrupt())
            self.emit(self.started())
            try:
                status = self.train_until_spent(used)
                searched = Controls(type(self.optimizer).__name__, used.total.calls + used.cached, used.total)
                if self.test is not None:
                    self.test.end_training()
                    drawn = self.ending.drawn(None if self.best == self.seed else _size(self.best))
                    if drawn or status == "finished":  # then it is tried: answers may be in the cache
                        self.evaluate_test(self.some_of(self.test.open(), drawn or len(self.test)))
                if self.trainer.controls:
                    self.controls = searched
                    if status == "finished":
                        run_controls(self)
            except (Stopped, CallCancelled):
                if not stop.is_set:
                    raise
                status = "interrupted"
            except BudgetExceeded as error:
                status = "budget"
                self.shortage = str(error) if error.too_small and not used.total.calls else ""
            finally:
                self.load(self.best)
                self.optimizer.zero_grad()
            wait_for(used)
        return status, used

    def train_until_spent(self, used: Meter) -> Status:
        """Train to the end, or until what is left of the budget is kept for the end of the run.

        Raises:
            BudgetExceeded: it does not allow to score the seed texts.
        """
        status: Status = "finished"
        self.ending = Ending(_size(self.seed), len(self.seed), 0 if self.test is None else len(self.test))
        with self.ending:
            try:
                self.train(used)
            except BudgetExceeded:
                if self.seed_val is None:
                    raise
                status = "budget"
        wait_for(used)
        self.complete()
        self.load(self.best)
        return status

    def validate_seed(self, used: Meter) -> None:
        """Score the seed texts; from now on what the end of the run takes is kept back from the budget."""
        self.seed_val = self.best_val = self.evaluated(self.objective.texts_of(self.seed), 0)
        self.ending.learn(used.total + used.saved, len(self.seed_val))
        self.keep_for_the_end()

    def keep_for_the_end(self) -> None:
        """Keep back what the end of the run takes with the best texts of now."""
        self.ending.keep_for(_size(self.best), self.objective.missing(self.objective.texts_of(self.best)))

    def complete(self) -> None:
        """Score the best texts on all of the validation set, if they were not."""
        texts = self.objective.texts_of(self.best)
        if self.objective.missing(texts):
            self.best_val = self.evaluated(texts, len(self.steps))

    def started(self) -> RunStarted:
        """The first event."""
        tests = 0 if self.test is None else len(self.test)
        return RunStarted(dict(self.seed), len(self.train_ids), len(self.val), tests, self.most_steps(), self.overlaps)

    def most_steps(self) -> int | None:
        """How many optimizer steps there will be at most."""
        most = self.trainer.max_epochs * len(self.loader)
        return most if self.trainer.max_steps is None else min(most, self.trainer.max_steps)

    def on_call(self, record: CallRecord) -> None:
        """Pass on that a call has ended; runs in that call's own context."""
        self.emit(CallEnded(current_phase.get(), record))

    def train(self, used: Meter) -> None:
        """Go over the training set and keep what does better on the validation set."""
        self.validate_seed(used)
        since_kept = 0
        for epoch in range(1, self.trainer.max_epochs + 1):
            for positions, rows in self.loader.index_batches():
                kept = self.step(epoch, positions, rows)
                since_kept = 0 if kept else since_kept + 1
                if self.trainer.max_steps is not None and len(self.steps) >= self.trainer.max_steps:
                    return
                if self.trainer.patience is not None and since_kept >= self.trainer.patience:
                    return

    def step(self, epoch: int, positions: list[int], rows: list[dict[str, Any]]) -> bool:
        """One minibatch: forward, backward, a change, its validation. Returns whether the change was kept."""
        number = len(self.steps) + 1
        names = tuple(self.train_ids[position] for position in positions)
        self.optimizer.zero_grad()
        self.left_out.clear()
        every, problems, lost = self.forward_and_backward(number, names, rows)
        scores = [score for score in every if score is not None]
        left_out = sum(each.messages + each.feedback for each in self.left_out)
        feedback = sum(len(parameter.grad) for parameter in self.stepped())
        heard = feedback > 0 or not self.optimizer.reads_feedback
        held = self.optimizer.state_dict()
        found, refusal = None, ""
        try:
            with self.phase("optimize", number, 1) as advance:
                try:
                    self.propose()
                except UNANSWERED as error:  # one proposal lost; the texts are as they were
                    problems.append(f"the optimizer gave no answer: {type(error).__name__}: {error}")
                advance()
            if self.texts() != self.best:
                found = prove(self, number, positions)
                problems.extend(found.problems)
                if found.lost:
                    heard = False
                refusal = self.refusal(found) if wins(found) else ""
        except BaseException:  # the budget is spent, Ctrl-C: the step has not been
            self.take_back(held)
            raise
        self.check_alive(heard, problems, number)
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
            best_val=self.best_val.mean,
            problems=tuple(problems),
            left_out=left_out,
            why=why,
            race=None if found is None else found.race,
        )
        self.steps.append(ended)
        self.emit(ended)
        if ended_by is not None:
            raise ended_by
        return kept

    def propose(self) -> None:
        """Have the optimizer change the texts; it chooses among several candidates by the training examples."""
        if self.optimizer.candidates > 1:
            self.optimizer.step(self.objective)
        else:
            self.optimizer.step()

    def check_alive(self, heard: bool, problems: list[str], number: int, *, kind: str = "", more: bool = False) -> None:
        """Single lost answers are noted and passed over; a critic or optimizer that never answers ends the run.

        Proposals that were made at the same time are lost together, so it is rounds of them that are counted: those in
        which all that there were of one kind were lost.

        Args:
            heard: whether what the step goes by was to be had: feedback, where its optimizer reads any.
            problems: answers that were not to be had, in words.
            number: of the step.
            kind: of the step.
            more: whether more steps of its round follow.

        Raises:
            ModelError: the last `MOST_LOST_ROUNDS` rounds all lost their answers.
        """
        lost = bool(problems) and (not heard or not self.optimizer.changes)
        self.round.setdefault(kind, []).append(problems[0] if lost else "")
        if more:
            return
        steps, self.round = self.round, {}
        first = next((whys[0] for whys in steps.values() if all(whys)), "")
        self.lost_rounds = self.lost_rounds + 1 if first else 0
        if self.lost_rounds >= MOST_LOST_ROUNDS:
            what = "steps" if sum(map(len, steps.values())) == 1 else "rounds of steps"
            raise ModelError(
                f"{self.lost_rounds} {what} in a row came to nothing, step {number} being the last; "
                f"its first problem: {first}"
            )

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
        with self.phase("forward", number, len(rows)) as advance:

            def start(position: int) -> tuple[None, Variable]:
                row, name = rows[position], names[position]
                with example(name):
                    fields, wanted = self.read(row, name)
                    return None, run_on(name, self.program, fields, self.score, wanted)[1]

            started = run_scored(start, len(rows), self.trainer.concurrency, lambda _: advance())
            losses = [loss for _, loss in started]
            stepped = self.stepped() if self.optimizer.reads_feedback else []
            roots = self.reach.look(losses, {n: each for n, each in self.trained.items() if each in stepped})
            if roots and stepped:
                with self.phase("backward", number, 0), forgiving(functools.partial(note_lost, problems)):
                    backward(roots, inputs=stepped)
            scores: list[float | None] = []
            lost: list[str] = []
            for name, loss in zip(names, losses):
                try:
                    scores.append(as_score(loss))
                except UNANSWERED as error:
                    scores.append(None)
                    lost.append(f"{name}: {type(error).__name__}: {error}")
        self.reach.refuse_if_cut_off(scores)
        return scores, problems, lost

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
        kept = wins(found) and not refusal
        if not kept:
            self.take_back(held)
        self.amend(found, written=kept)
        if kept:
            self.best, self.origins = self.texts(), self.origins_now()
            texts = self.objective.texts_of(self.best)
            self.best_val = self.objective.known(texts) or self.best_val  # it stays so if the budget ends now
            self.ending.release()  # this is a part of what it is kept for
            try:
                self.best_val = self.evaluated(texts, number)
                after = self.best_val.mean
            except Exception as error:  # the budget is spent, Ctrl-C: the race has decided, and the step has been
                ended_by = error
            self.keep_for_the_end()
        if after is None and found.race is not None:
            after = before + found.race.difference
        if after is not None:
            word = "kept" if kept else refusal or "taken back"
            self.optimizer.record_outcome(f"{word}: validation score {before:.3f} -> {after:.3f}")
        without = spared_in_words(found) + trimmed_in_words(found)
        why = refusal or (found.race.in_words + without if without and found.race is not None else "")
        return kept, why, after, ended_by

    def amend(self, found: Found, *, written: bool) -> None:
        """Tell the optimizer what it has done after all, where that is less than it proposed."""
        gone = {"it did harm beside the others": found.trimmed, f"refused: {found.spared_for}": found.spared}
        if not found.trimmed and not found.spared:
            return
        texts = zip(self.objective.parameters, found.texts, found.origins, self.objective.texts_of(self.texts()))
        changed = {variable: (text, own) for variable, text, own, now in texts if text != now} if written else {}
        self.optimizer.amend(found.changes, changed, {why: changes for why, changes in gone.items() if changes})

    def take_back(self, held: dict[str, Any]) -> None:
        """Go back to the best texts, and to what the optimizer knew before its step."""
        self.load(self.best)
        self.optimizer.load_state_dict({**held, "steps": self.optimizer.steps})

    def changes(self) -> tuple[ParameterChange, ...]:
        """What the last step did, by parameter name."""
        names = {id(parameter): name for name, parameter in self.trained.items()}
        return tuple(
            ParameterChange(
                name=names.get(id(change.variable), change.variable.role),
                before=change.before,
                after=change.after,
                edits=change.edits,
                feedback=tuple(item.evidence for item in change.items),
                left_out=change.left_out,
                problem=change.problem,
            )
            for change in self.optimizer.changes
        )

    def some_of(self, rows: Examples, count: int) -> Examples:
        """So many of the examples, drawn at random, in their order."""
        if count == len(rows):
            return rows
        return Subset(rows, sorted(random.Random(self.trainer.seed).sample(range(len(rows)), count)))

    def evaluate_test(self, rows: Examples) -> None:
        """Score the best texts on the test set, and the seed texts when they differ."""
        self.best_test = self.evaluate("test", rows, len(self.steps))
        if self.best == self.seed:
            self.seed_test = self.best_test
            return
        self.load(self.seed)
        self.seed_test = self.evaluate("test", rows, len(self.steps))

    def evaluated(self, texts: Texts, step: int) -> Evaluation:
        """The validation scores of some texts; what is known of them is not paid for again."""
        with self.phase("validate", step, self.objective.missing(texts)) as advance:
            found = self.objective.evaluation(texts, lambda _: advance())
        self.emit(Evaluated(self.phases, "validate", step, found))
        return found

    @contextlib.contextmanager
    def proposal_phase(self, number: int) -> Iterator[None]:
        """The phase of a search's proposal, which goes on after the block; what begins in the block belongs to it."""
        self.phases += 1
        self.proposals[number] = self.phases
        self.emit(PhaseStarted(self.phases, "search", number, 0))
        token = current_phase.set(self.phases)
        try:
            yield
        finally:
            current_phase.reset(token)

    def evaluate(self, phase: Phase, rows: Examples, step: int) -> Evaluation:
        """Score the texts of now, and tell it."""
        found = self.score_texts(phase, rows, step)
        self.emit(Evaluated(self.phases, phase, step, found))
        return found

    def score_texts(self, phase: Phase, rows: Examples, step: int) -> Evaluation:
        """Score the texts of now, as a phase of the run."""
        with self.phase(phase, step, len(rows)) as advance:
            return evaluate(
                self.program,
                rows,
                self.loss,
                self.trainer.concurrency,
                target=self.trainer.target,
                clusters=self.trainer.clusters,
                timed=self.trainer.latency_weight is not None,
                on_score=lambda _: advance(),
            )

    @contextlib.contextmanager
    def phase(self, phase: Phase, step: int, total: int) -> Iterator[Callable[[], None]]:
        """A phase of the run; yields what to call when a unit of it is done."""
        self.phases += 1
        number = self.phases
        done = 0
        over = False
        lock = threading.Lock()
        complete = threading.Event()
        failures: list[Exception] = []

        def advance() -> None:
            nonlocal done
            last = False
            try:
                with lock:  # numbered in the order in which they are told, and none behind the end
                    done += 1
                    last = done >= total
                    told = None if over else self.audience.enter(PhaseAdvanced(number, done))
                if told is not None:
                    self.audience.settle(told)
            except Exception as error:  # raised below: on the event-loop thread it would only be lost
                failures.append(error)
            if last:
                complete.set()

        token = current_phase.set(number)
        self.emit(PhaseStarted(number, phase, step, total))
        try:
            yield advance
            if total:  # a value can be read a moment before its callbacks have run
                complete.wait(1.0)
        finally:
            current_phase.reset(token)
            with lock:
                over = True
            self.emit(PhaseEnded(number))
        if failures:
            raise failures[0]

    def result(self, status: Status, used: Meter, seconds: float) -> TrainResult:
        """What was found, as far as the run came."""
        comparison, compared_on = None, None
        sets: list[tuple[Literal["test", "val"], Evaluation | None, Evaluation | None]] = [
            ("test", self.seed_test, self.best_test),
            ("val", self.seed_val, self.best_val),
        ]
        for name, seed, best in sets:
            if seed is not None and best is not None:
                candidates = tried(seed, self.steps) if name == "val" else ()  # the test set chose nothing
                comparison, compared_on = compare(seed, best, candidates=candidates), name
                break
        return TrainResult(
            status=status,
            seed=self.seed,
            best=self.best,
            origins=self.origins,
            seed_val=self.seed_val,
            best_val=self.best_val,
            seed_test=self.seed_test if self.best_test is not None else None,
            best_test=self.best_test if self.seed_test is not None else None,
            comparison=comparison,
            compared_on=compared_on,
            steps=tuple(self.steps),
            usage=used.by_purpose,
            seconds=seconds,
            openings=self.openings(),
            overlaps=self.overlaps,
            controls=self.controls,
            front=front_of(self.objective, self.objective.texts_of(self.seed)),
            shortage=self.shortage,
            untested=self.untested(status),
        )

    def openings(self) -> int:
        """How often the test set was opened, before the run was resumed too."""
        now = 0 if self.test is None else self.test.openings
        return now if self.earlier is None else now + self.earlier.openings

    def untested(self, status: Status) -> str:
        """Why the budget left the test set, or a part of it, unrun."""
        if status == "interrupted" or self.test is None or self.seed_val is None:
            return ""
        why = f"{self.ending.shortage or 'other calls took a part of it'}; raise it, or test fewer examples"
        if self.seed_test is not None and self.best_test is not None:
            some, every = len(self.best_test), len(self.test)
            drawn = f"the budget had room for {some} of {every} test examples, drawn at random: {why}"
            return drawn if some < every else ""
        if self.test.openings:
            return "the budget was spent before both prompts were run on the test set"
        return f"the budget had no room for the test set: {why}"


def _size(texts: dict[str, str]) -> int:
    """How long texts are, in bytes."""
    return sum(len(text.encode("utf-8", "surrogatepass")) for text in texts.values())


def wait_for(used: Meter, patience: float = 30.0) -> None:
    """Wait until no call is under way, so that every paid answer is counted and recorded."""
    end = time.monotonic() + patience
    while used.in_flight and time.monotonic() < end:
        time.sleep(0.005)
