"""What a run tells while it goes on: events up, imports down. Progress bars and run folders listen to these."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import AbstractContextManager
from contextvars import ContextVar
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Literal, Protocol, TypeAlias

from textgrad_engine.attributes import attributes_told
from textgrad_engine.llm.redact import redacted, secrets_named
from textgrad_engine.llm.toolcalls import ToolRecord
from textgrad_engine.llm.usage import CallRecord
from textgrad_engine.optim.cells import Evidence
from textgrad_engine.optim.patch import Edit
from textgrad_engine.optim.search.racing import RaceRecord
from textgrad_engine.train.evaluation import Evaluation
from textgrad_engine.train.settings import Setting

if TYPE_CHECKING:
    from textgrad_engine.train.result import TrainResult

Phase = Literal["validate", "forward", "backward", "optimize", "test", "search", "score", "control"]
Status = Literal["finished", "interrupted", "budget"]


@attributes_told
@dataclass(frozen=True)
class RunStarted:
    """A run begins.

    Attributes:
        parameters: the trained texts by dotted name, as they are before the run.
        train: how many examples there are to train on.
        val: how many to validate on.
        test: how many to test on, 0 for none.
        steps: how many optimizer steps there will be at most; None where that is not known, as in a search.
        overlaps: which examples are in two sets, exactly or nearly, in words.
        settings: what decides what is asked, by name (`train.settings`); empty in runs of before.
        part: which run of a cross-validation it is, in words; "" of one by itself.
    """

    parameters: dict[str, str]
    train: int
    val: int
    test: int
    steps: int | None
    overlaps: tuple[str, ...] = ()
    settings: Mapping[str, Setting] = field(default_factory=dict)
    part: str = ""


@attributes_told
@dataclass(frozen=True)
class PhaseStarted:
    """A phase begins.

    Attributes:
        number: phases are numbered from 1 in the order in which they begin.
        phase: what is done.
        step: the optimizer step it belongs to, 0 before the first.
        total: how many units it has: examples, or nodes for backward, or 1.
    """

    number: int
    phase: Phase
    step: int
    total: int


@attributes_told
@dataclass(frozen=True)
class PhaseAdvanced:
    """Another unit of a phase is done; may come on any thread."""

    number: int
    done: int


@attributes_told
@dataclass(frozen=True)
class PhaseEnded:
    """A phase is over, and the calls that it has begun are.

    Attributes:
        number: its number.
        lacking: whether some of these calls found no room in the budget, or were given up.
    """

    number: int
    lacking: bool = False


@attributes_told
@dataclass(frozen=True)
class Evaluated:
    """The texts of now were scored on the validation or the test set.

    Attributes:
        number: the number of the phase that did it.
        phase: which set it was.
        step: the optimizer step it belongs to, 0 before the first.
        evaluation: the scores.
    """

    number: int
    phase: Phase
    step: int
    evaluation: Evaluation


@attributes_told
@dataclass(frozen=True)
class CallEnded:
    """A call of a model ended; comes on the event-loop thread.

    Attributes:
        phase: the number of the phase that made it.
        record: request, answer and usage.
    """

    phase: int
    record: CallRecord


@attributes_told
@dataclass(frozen=True)
class ToolEnded:
    """A call of a tool ended, or what it had given was played back; comes on the event-loop thread.

    Attributes:
        phase: the number of the phase that made it.
        record: name, arguments and result.
    """

    phase: int
    record: ToolRecord


@attributes_told
@dataclass(frozen=True)
class ParameterChange:
    """What a step did to one parameter.

    Attributes:
        name: its dotted name.
        before: its text before.
        after: its text after.
        edits: the edits, when it was a patch. Without those of a proposer of one's own, or of a damaged file, that
            speak of lines or feedback which is not there.
        feedback: the feedback that the optimizer was shown.
        left_out: how many items of feedback there was no room for.
        problem: why the proposal was dropped, "" when it was used.
    """

    name: str
    before: str
    after: str
    edits: tuple[Edit, ...] = ()
    feedback: tuple[Evidence, ...] = ()
    left_out: int = 0
    problem: str = ""

    def __post_init__(self) -> None:
        lines, items = self.before.count("\n") + 1, len(self.feedback)
        fitting: tuple[Edit, ...] = ()
        if all((edit.op != "add") <= edit.line <= lines for edit in self.edits):  # else it is told by lines that differ
            fitting = tuple(
                edit
                if all(1 <= number <= items for number in edit.feedback)
                else replace(edit, feedback=tuple(number for number in edit.feedback if 1 <= number <= items))
                for edit in self.edits
            )
        if fitting != self.edits:
            object.__setattr__(self, "edits", fitting)


@attributes_told
@dataclass(frozen=True)
class StepEnded:
    """An optimizer step is over.

    Attributes:
        step: its number, from 1.
        epoch: the epoch, from 1; 0 in a search.
        examples: the ids of its minibatch.
        train_mean: the mean score of the minibatch before the step.
        unanswered: how many of the minibatch had no answer.
        feedback: how many pieces of feedback reached the parameters.
        changes: what became of each parameter that had feedback.
        val_mean: the validation score of the new texts; None when nothing changed, and in a search, which races. Of a
            search of one's own, that of what it proposed, where it was run on all validation examples.
        kept: whether the new texts are kept.
        best_val: the best validation score so far; in a search what it is expected to be by what was run, where
            `optim.PatchSearch` takes examples that its new texts were not run on to be as before. So a curve of it lies
            below the scores, which the `Evaluated` at the end has.
        problems: answers of the critic or the optimizer that were not to be had, in words.
        left_out: how many messages and pieces of feedback the critic's context had no room for, in a step of an
            optimizer that goes step by step; the log names them.
        kind: what a search proposed, such as ``"patch"`` or ``"ablation"``; "" elsewhere.
        why: in a few words why it was kept or not.
        race: the paired race that decided; None when there was none.
        ablated: the ids of the edits that an ablation was about.
        lost: the examples of the minibatch that had no answer, each with the reason; in a search their ids alone.
    """

    step: int
    epoch: int
    examples: tuple[str, ...]
    train_mean: float | None
    unanswered: int
    feedback: int
    changes: tuple[ParameterChange, ...]
    val_mean: float | None
    kept: bool
    best_val: float
    problems: tuple[str, ...] = ()
    left_out: int = 0
    kind: str = ""
    why: str = ""
    race: RaceRecord | None = None
    ablated: tuple[str, ...] = ()
    lost: tuple[str, ...] = ()


@attributes_told
@dataclass(frozen=True)
class RunEnded:
    """A run is over.

    Attributes:
        status: ``"finished"``, ``"interrupted"`` (Ctrl-C) or ``"budget"`` (it is spent).
        result: the `TrainResult`.
    """

    status: Status
    result: TrainResult = field(repr=False)


@attributes_told
@dataclass(frozen=True)
class RunFailed:
    """A run is over, and there is no result: an exception is on its way out of `Trainer.fit`.

    Attributes:
        error: its class and message, without secrets.
        notes: what was noted on it, such as the example it was about.
    """

    error: str
    notes: tuple[str, ...] = ()

    @classmethod
    def of(cls, error: Exception) -> RunFailed:
        """That of an exception."""
        secrets = secrets_named()
        notes = tuple([redacted(str(note), secrets) for note in getattr(error, "__notes__", ())])
        return cls(redacted(f"{type(error).__name__}: {error}", secrets), notes)


@attributes_told
@dataclass(frozen=True)
class TimeIsUp:
    """No further step is begun, as the end of the run would come too late; `Trainer(max_minutes=)`.

    Attributes:
        steps: so many were taken.
        minutes: the limit; None where a run is played back without one.
    """

    steps: int
    minutes: float | None


Event: TypeAlias = (
    RunStarted
    | PhaseStarted
    | PhaseAdvanced
    | PhaseEnded
    | Evaluated
    | CallEnded
    | ToolEnded
    | StepEnded
    | TimeIsUp
    | RunEnded
    | RunFailed
)


class StopTraining(Exception):
    """Raised by a callback, on any event, to end the training early.

    No further step begins, and the run goes on to its end, test set included: its status is ``"finished"``. A resumed
    run needs the callback again.

    Example:
        >>> class GoodEnough:
        ...     def __init__(self, score):
        ...         self.score = score
        ...     def on_event(self, event):
        ...         if isinstance(event, StepEnded) and event.best_val >= self.score:
        ...             raise StopTraining
    """


class Callback(Protocol):
    """Anything with an `on_event`, which gets one event at a time, from any thread, and must be quick.

    If it raises, the run ends and `fit` raises the error; `StopTraining` ends only the training.

    If it has a ``for_run()``, that is called when `fit` begins, and returns the callback for this run. A callback that
    counts needs it, as a Trainer may run more than once, and several runs at a time.

    If it has an ``on_end()``, that is called when `fit` is left, however it ends. If it has ``earlier``, like a run
    folder that is resumed, its contents are replayed (`Earlier`).

    It may read a value, such as a sample answer of the program, except on `CallEnded`, `ToolEnded` and `PhaseAdvanced`:
    these come on the thread that delivers values. With ``at_once = True``, as a run folder has it, it gets the event of
    a call before the answer is used, and must never wait for a value. With ``shows_overlaps = True`` it puts the
    overlaps of `RunStarted` on stderr itself, so the log does not.

    Example:
        >>> from textgrad_engine import Trainer, optim, use_models
        >>> from textgrad_engine.testing import simulated_task
        >>> class Notes:
        ...     def on_event(self, event):
        ...         if isinstance(event, StepEnded):
        ...             print("step", event.step, "kept" if event.kept else "taken back")
        >>> task = simulated_task(rules=4, seed=1, train=16, val=16)
        >>> program = task.program()
        >>> with use_models(forward=task.model):
        ...     result = Trainer(max_steps=1, callbacks=[Notes()]).fit(
        ...         program, task.loss, optim.TGD(program.parameters()), task.train, task.val
        ...     )
        step 1 kept
    """

    def on_event(self, event: Event) -> None:
        """Take note of an event."""


class Earlier(Protocol):
    """What there is of a run that is resumed."""

    def answering(self) -> AbstractContextManager[None]:
        """Inside the block, what was paid for answers the calls that ask for it again."""
        ...

    @property
    def settings(self) -> Mapping[str, Setting] | None:
        """What it was set to, as `RunStarted.settings` has it; None where it had not begun."""
        ...

    def search_ended(self, minutes: float | None) -> float | None:
        """After how many steps its time was up, without end where it never is; None where these minutes decide."""
        ...

    @property
    def validated_in(self) -> float:
        """How many seconds the first validation took when it was paid for; 0 where that is not on record."""
        ...

    @property
    def openings(self) -> int:
        """How often the test set was opened before, as far as that is not the same look as that of now."""
        ...

    def confirmed(self, result: TrainResult) -> TrainResult:
        """What is told as the result, where the run has come to this one.

        Raises:
            RunError: it cannot be, as the run had come to another one.
        """
        ...


current_part: ContextVar[str] = ContextVar("textgrad_engine_part", default="")
"""Which run of a cross-validation begins, in words, such as "fold 1 of 5"; "" for one by itself."""

part_mark: ContextVar[str] = ContextVar("textgrad_engine_part_mark", default="")
"""What each line about such a run begins with, such as "1/5", where several go on at once; "" where no other does."""

current_phase: ContextVar[int] = ContextVar("textgrad_engine_phase", default=0)
"""The number of the phase that code belongs to; captured when calls are dispatched."""
