"""`Searcher`: base of the optimizers that try texts out before they change a parameter."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, ClassVar

from textgrad_engine import ops
from textgrad_engine.attributes import attributes_told
from textgrad_engine.autograd import Variable
from textgrad_engine.autograd.value import label_of
from textgrad_engine.callables import check_method
from textgrad_engine.checks import check
from textgrad_engine.errors import ReturnError
from textgrad_engine.llm import tokens
from textgrad_engine.optim.change import Change
from textgrad_engine.optim.optimizer import Optimizer, check_step_cancelled
from textgrad_engine.optim.proposers import Proposer
from textgrad_engine.optim.search.objective import Objective, Texts, lacks, metrics_of
from textgrad_engine.optim.search.racing import RaceRecord
from textgrad_engine.optim.search.vain import Vain
from textgrad_engine.optim.search.volume import Sizes, Volume
from textgrad_engine.optim.settings import proposer_of
from textgrad_engine.optim.texts import write_texts
from textgrad_engine.optim.transforms.base import forgetful


@attributes_told
@dataclass(frozen=True)
class Decision:
    """The result of one step of a search.

    Attributes:
        number: which proposal it was about, from 1.
        kind: what was proposed, e.g. ``"patch"`` or ``"ablation"``.
        examples: the ids of the training examples whose feedback it answers.
        scores: their scores before; None if there was no answer.
        feedback: how many pieces of feedback reached the parameters.
        changes: for each parameter in the proposal, the text before and the one proposed.
        race: the race that decided; None when there was none.
        kept: whether the parameters were changed; the base class sets it if they were.
        why: why it was kept or not, in a few words.
        edits: the ids of the edits that an ablation was about.
        problems: which answers of the critic or the optimizer are missing, in words.
        lost: whether the proposal failed because of these.
        more: whether more decisions about proposals made at the same time follow.
        vain: whether a proposal was asked for and contained nothing new to try.

    Raises:
        TypeError: one of these is of another kind.
    """

    number: int
    kind: str
    examples: tuple[str, ...] = ()
    scores: tuple[float | None, ...] = ()
    feedback: int = 0
    changes: tuple[Change, ...] = ()
    race: RaceRecord | None = None
    kept: bool = False
    why: str = ""
    edits: tuple[str, ...] = ()
    problems: tuple[str, ...] = ()
    lost: bool = False
    more: bool = False
    vain: bool = False

    def __post_init__(self) -> None:
        check(Decision, vars(self))
        for name in ("examples", "scores", "changes", "edits", "problems"):
            object.__setattr__(self, name, tuple(getattr(self, name)))


_NEEDED = {
    "decide": "`def decide(self, objective)`, which gives an optim.Decision, or None when nothing is left to try",
    "texts": "`def texts(self)`, which gives the best texts so far, one for each parameter in order",
}
"""What a search of one's own has to have."""


class Searcher(Optimizer):
    """Base of optimizers whose `step` takes an `Objective` and decides about one proposal.

    Your own subclass has `texts`, `expected`, and a `decide` that takes the objective and returns a `Decision`, or None
    if nothing is left to try (docs/extending.md).

    After each step the parameters hold the best texts so far. `finished` says that nothing is left to try, and `close`
    ends the work in the background; `Trainer.fit` uses both.

    Args:
        params: the parameters, or groups of them with their own settings.
        defaults: the settings of groups that do not name them.

    Raises:
        TypeError: a subclass lacks `decide` or `texts`.

    Attributes:
        finished: whether there is nothing left to try.
        decided: the decision of the last step; None before the first one.
        vain: how many proposals in a row could not be tried; after too many of them the search is finished.
        at_the_top: why nothing better can be shown, in words; else "".
        remaining: how many more decisions are wanted, so that no proposal is started in vain; None if unknown.
    """

    _counts_itself = True
    _races: ClassVar[bool] = False
    """Whether its decisions have a race of all that they tried on validation examples; one of a user's own has none."""

    def __init__(self, params: Iterable[Variable | Mapping[str, Any]], defaults: Mapping[str, Any]) -> None:
        kind = type(self)
        for name, repair in _NEEDED.items():
            if getattr(kind, name) is getattr(Searcher, name) and (name != "decide" or kind.step is Searcher.step):
                raise TypeError(f"{kind.__name__} is a Searcher without `{name}`; give it {repair}")
        check_method(self, "decide", "objective")
        check_method(self, "texts")
        super().__init__(params, defaults)
        self.finished = False
        self.decided: Decision | None = None
        self.remaining: int | None = None
        self.vain = Vain()
        self.at_the_top = ""
        self._objective: Objective | None = None

    @contextlib.contextmanager
    def hearing(self, batch_size: int) -> Iterator[None]:
        """Inside the block, backward passes go as this search wants them.

        Args:
            batch_size: how many examples may share one feedback call.
        """
        with contextlib.ExitStack() as stack:
            if not self.hears_critic:
                stack.enter_context(ops.critic(None))
            stack.enter_context(ops.feedback_batch_size(batch_size))
            yield

    def step(self, closure: Callable[[], Any] | Objective | None = None) -> Decision | None:
        """Decide about one proposal, and change the parameters if it is better.

        Args:
            closure: the objective; the same one at every step.

        Returns:
            What was decided; None when there was nothing left to try.

        Raises:
            TypeError: it is no objective.
            ValueError: it is about other parameters, or another objective than before; or its score is not made of
                the metrics that the search needs.
            ModelError: the models cannot be asked at all, or the budget is spent.
        """
        if not isinstance(closure, Objective):
            lacking = ", ".join(lacks(closure))
            about = f", which lacks {lacking} (optim.Objective says what it gives)" if lacking else ""
            raise TypeError(
                f"{type(self).__name__} tries texts out, so step() takes an Objective: "
                f"step(train.Objective(program, loss, examples)); got {type(closure).__name__}{about}. "
                "Trainer.fit does it for you."
            )
        if self._objective is None:
            self._begin(closure)
            if self.reads_runs:
                closure.note_calls()
        elif self._objective is not closure:
            raise ValueError(f"{type(self).__name__} was begun with another objective; close() it first")
        with self._whole((closure,), {}):
            self.changes = []
            self.decided = None if self.vain.over else self.decide(closure)
            self._check_decided()
            check_step_cancelled()
            if self.decided is None:
                self.finished = True
            else:
                self.steps += 1
                tried = "" if self.decided.changes and not self.decided.lost else None
                self.vain.count(
                    self.decided.why if self.decided.vain else tried,
                    more=self.decided.more,
                    refused=[change.refused for change in self.decided.changes],
                )
                self.changes = list(self.decided.changes)
                before = [variable.data for variable in self.variables()]
                write_texts(self.variables(), self.texts())
                if not self.decided.kept and before != [variable.data for variable in self.variables()]:
                    self.decided = replace(self.decided, kept=True)
        return self.decided

    def _check_decided(self) -> None:
        """What a search of one's own gives is looked at before parameters are written.

        Raises:
            ReturnError: it is no decision, or there is not a text for each parameter.
        """
        given: object = self.decided
        if given is None:
            return
        if not isinstance(given, Decision):
            raise ReturnError(
                f"{type(self).__name__}.decide gave {given!r:.80}; give an optim.Decision, or None when nothing is "
                "left to try"
            )
        texts: object = self.texts()
        count = len(self.variables())
        if not (
            isinstance(texts, tuple | list) and len(texts) == count and all(isinstance(text, str) for text in texts)
        ):
            raise ReturnError(
                f"{type(self).__name__}.texts() gave {texts!r:.80}; give a tuple with a text for each of the {count} "
                f"parameter{'s' if count > 1 else ''}, in the order of variables()"
            )

    def decide(self, objective: Objective) -> Decision | None:
        """Decide about the next proposal; a search of one's own has this instead of a `step`.

        Args:
            objective: gives scores and feedback for any texts.

        Returns:
            What was decided; None when nothing is left to try.
        """
        raise NotImplementedError(f"{type(self).__name__} needs a `decide`")

    @property
    def idle(self) -> str:
        """Why it asked for nothing more, in words; "" where it was not ended by that."""
        return self.vain.in_words or (self.at_the_top if self.finished else "")

    @property
    def has_decided(self) -> bool:
        """Whether the next step only tells what is worked out already, as of a round of texts."""
        return False

    @property
    def expected(self) -> float:
        """The mean validation score that the best texts have, or are expected to have by what was scored so far."""
        raise NotImplementedError(f"{type(self).__name__} needs `expected`")

    def texts(self) -> Texts:
        """The best texts so far, a text for each parameter in order."""
        raise NotImplementedError(f"{type(self).__name__} needs `texts`")

    def volume(self, sizes: Sizes) -> Volume:
        """How much it will do, for `train.estimate`.

        Args:
            sizes: what it works on.

        Raises:
            TypeError: nobody has said.
        """
        raise TypeError(
            f"{type(self).__name__} does not say how much it will do, so there is no estimate; give it a method "
            "volume(sizes), or limit the run with tg.budget(dollars=...)"
        )

    def check_metrics(self, metrics: Sequence[str]) -> None:
        """Refuse a score that is made of other metrics than the search needs; most look at the score alone.

        `Trainer.fit` asks it before a run, and `step` of an objective.

        Args:
            metrics: the names of those that the score is made of; one, or none, where it is one.

        Raises:
            ValueError: they do not do.
        """

    def close(self) -> None:
        """End what goes on in the background; the next step begins anew from the texts of then."""
        self._objective = None

    def __getstate__(self) -> dict[str, Any]:
        if self._objective is not None:
            raise TypeError(
                f"{type(self).__name__} is under way: keep its state_dict(), or close() it before it is copied or "
                "pickled"
            )
        return super().__getstate__()

    def room_to_grow(self) -> float:
        """Tokens that all texts may gain, by their groups' limits."""
        room = 0
        for variable in self.variables():
            room += max(0, self.group_of(variable).get("max_tokens", 0) - tokens.count(str(variable.data)))
        return room

    def most_told(self) -> float:
        """Tokens of feedback that are shown at once at most."""
        return max([float(group.get("max_feedback_tokens", 0)) for group in self.param_groups], default=0.0)

    def _checked(self, settings: Mapping[str, Any]) -> dict[str, Any]:
        """As every optimizer's, and feedback transforms that remember nothing."""
        own = super()._checked(settings)
        if own.get("transforms") is not None:
            own["transforms"] = forgetful(own["transforms"], type(self).__name__)
        return own

    def state_dict(self) -> dict[str, Any]:
        """State and settings as plain data, with how many proposals in a row could not be tried."""
        return {**super().state_dict(), "vain": asdict(self.vain)}

    def _reading(self, state: Mapping[str, Any]) -> Callable[[], None]:
        take = super()._reading(state)
        vain = Vain(**state.get("vain", {}))

        def close_and_take() -> None:
            self.close()
            take()
            self.vain = vain

        return close_and_take

    def _proposer(self, given: object, usual: Proposer | None = None) -> Proposer:
        """The setting ``proposer=``, checked; the usual one where it is None.

        Raises:
            TypeError: it is no proposer of one text at a time.
        """
        chosen = usual if given is None else given
        return proposer_of(chosen, type(self).__name__, self._several, solved=self._has_solved)

    def _begin(self, objective: Objective) -> None:
        """Take up an objective; a subclass extends it.

        Raises:
            ValueError: it is about other parameters, or its score is made of other metrics than the search needs.
        """
        own = self.variables()
        if [id(variable) for variable in objective.parameters] != [id(variable) for variable in own]:
            raise ValueError(
                f"the objective is about {', '.join(label_of(v) for v in objective.parameters)}, and the optimizer "
                f"trains {', '.join(label_of(v) for v in own)}; make both with program.parameters(), or the objective "
                "with parameters=[...], those of the optimizer in its order"
            )
        self.check_metrics(metrics_of(objective))
        self._objective = objective
        self.finished, self.at_the_top = False, ""
