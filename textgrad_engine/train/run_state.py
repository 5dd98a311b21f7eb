"""What a run of `Trainer.fit` works with, and where it stands."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from textgrad_engine.autograd import Variable
from textgrad_engine.data import DataLoader
from textgrad_engine.llm.budget import budgets_around
from textgrad_engine.nn import Module
from textgrad_engine.optim import Optimizer, Origin
from textgrad_engine.optim.search.objective import Texts
from textgrad_engine.optim.texts import write_texts
from textgrad_engine.train.controls import Controls
from textgrad_engine.train.deadline import Deadline
from textgrad_engine.train.evaluation import Evaluation
from textgrad_engine.train.evaluator import Attempt, attempt
from textgrad_engine.train.events import (
    Callback,
    Earlier,
    Evaluated,
    Event,
    ParameterChange,
    Phase,
    StepEnded,
)
from textgrad_engine.train.lost_rounds import LostRounds
from textgrad_engine.train.objective import Objective, Phases
from textgrad_engine.train.on_test import OnTest
from textgrad_engine.train.phases import RunPhases
from textgrad_engine.train.result import tried
from textgrad_engine.train.sealed import SealedTest
from textgrad_engine.train.settings import NESTED, TO_THE_END
from textgrad_engine.train.splits import warn_of_overlaps
from textgrad_engine.train.telling import Audience

if TYPE_CHECKING:
    from textgrad_engine.train.trainer import Trainer

Rows = Sequence[dict[str, Any]]


class RunState:
    """One call of `fit`, whatever is done in it: the texts, what is known of them, and who is told."""

    def __init__(
        self,
        trainer: Trainer,
        program: Module,
        loss: Callable[..., Variable],
        optimizer: Optimizer,
        loader: DataLoader[dict[str, Any]],
        val: Rows,
        test: Rows | None,
        callbacks: list[Callback],
    ) -> None:
        self.trainer, self.program, self.loss, self.optimizer = trainer, program, loss, optimizer
        self.loader, self.val = loader, val
        self.test = None if test is None else SealedTest(test)
        shown = any(getattr(each, "shows_overlaps", False) for each in callbacks)
        self.overlaps = warn_of_overlaps(program, loader.dataset, val, test, shown=shown)
        self.trained = {name: p for name, p in program.named_parameters() if p.requires_grad}
        self.audience = Audience(callbacks)
        self.phases = RunPhases(self.audience)
        self.lost_rounds = LostRounds(optimizer)
        self.objective = self.new_objective(self.searched(), self.phases.proposal)
        self.seed = self.texts()
        self.best = dict(self.seed)
        self.origins = self.origins_now()
        self.seed_val: Evaluation | None = None
        self.best_val: Evaluation | None = None
        self.on_test = OnTest()
        self.controls: Controls | None = None
        self.steps: list[StepEnded] = []
        self.shortage = ""
        self.budgets = budgets_around()
        self.refused: set[int] = set()  # proposals for a call of which they had no room; 0 for what is of none
        self.earlier: Earlier | None = next(filter(None, [getattr(each, "earlier", None) for each in callbacks]), None)
        # Runs of before went on where nothing better could be shown, and drew other parts of a test set, so what is
        # played back of one does.
        before = None if self.earlier is None else self.earlier.settings
        self.to_the_end = optimizer.to_the_end or (before is not None and bool(before.get(TO_THE_END, True)))
        self.nested = before is None or bool(before.get(NESTED, False))
        self.deadline = Deadline(trainer.max_minutes, self.earlier)

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

    def texts(self) -> dict[str, str]:
        """The trained texts as they are now."""
        return {name: str(parameter.data) for name, parameter in self.trained.items()}

    def tried(self, seed: Evaluation) -> list[Evaluation]:
        """What is known of the candidates that were tried on the validation set and not taken in the end.

        Args:
            seed: the seed texts on the validation set.
        """
        return tried(seed, self.steps)

    def origins_now(self) -> dict[str, list[Origin | None]]:
        """Why each line of the trained texts reads as it does."""
        return {name: self.optimizer.origins(parameter) for name, parameter in self.trained.items()}

    def load(self, texts: dict[str, str]) -> None:
        """Put texts into the program."""
        write_texts([self.trained[name] for name in texts], texts.values())

    def emit(self, event: Event) -> None:
        """Tell everybody, one event at a time."""
        self.audience.tell(event)

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

    def evaluated(self, texts: Texts, step: int) -> Evaluation:
        """The validation scores of some texts; what is known of them is not paid for again."""
        with self.phases.phase("validate", step, self.objective.missing(texts)) as advance:
            found = self.objective.evaluation(texts, lambda _: advance())
        self.emit(Evaluated(self.phases.last, "validate", step, found))
        return found

    def score_texts(self, phase: Phase, rows: Rows, step: int) -> Attempt:
        """Score the texts of now, as a phase of the run, as far as the budget has room for it."""
        with self.phases.phase(phase, step, len(rows)) as advance:
            return attempt(
                self.program,
                rows,
                self.loss,
                self.trainer.concurrency,
                target=self.trainer.target,
                clusters=self.trainer.clusters,
                timed=self.trainer.latency_weight is not None,
                on_score=lambda _: advance(),
            )
