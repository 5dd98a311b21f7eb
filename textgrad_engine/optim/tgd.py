"""Textual gradient descent: one proposal a step, from all feedback gathered, as a patch or as a rewrite.

The idea of descending along feedback in words is ProTeGi's (arXiv 2305.03495) and TextGrad's (arXiv 2406.07496). This
one differs: a step is a short patch of addressed lines by default, each edit names the feedback it answers, and a
proposal must pass its contract before any parameter changes.
"""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

from textgrad_engine import dispatch, templates
from textgrad_engine.autograd import Variable, no_grad
from textgrad_engine.checks import at_least, check, listed, texts_in_order
from textgrad_engine.errors import NoModelError
from textgrad_engine.keywords import names_told
from textgrad_engine.llm.model import Model
from textgrad_engine.ops.fillers import is_template
from textgrad_engine.optim.change import Change
from textgrad_engine.optim.choose import Candidate, best_of, scores_of
from textgrad_engine.optim.contracts import Contract, contracts_for
from textgrad_engine.optim.feedback import FeedbackItem
from textgrad_engine.optim.gather import collect, shown, usual
from textgrad_engine.optim.optimizer import Optimizer, check_step_cancelled
from textgrad_engine.optim.proposers import Brief, Patch, Proposal, Proposer, Rewrite, Several, Unaided, propose_many
from textgrad_engine.optim.proposers.asking import LateModel
from textgrad_engine.optim.proposers.unaided import MOST_SHOWN
from textgrad_engine.optim.search.objective import Objective
from textgrad_engine.optim.showing import numbered
from textgrad_engine.optim.telling import edits_in_words
from textgrad_engine.optim.transforms import Context, FeedbackTransform, Gathered, chain, momentum
from textgrad_engine.optim.transforms.base import Chain
from textgrad_engine.wording import nearest, told

Mode = Literal["patch", "rewrite"]
_Proposed: TypeAlias = tuple[Change, Proposal]


@dataclass(frozen=True)
class _Found:
    """What was proposed for a parameter, and the transforms of its feedback with their state after it."""

    told: bool
    proposed: list[_Proposed]
    transforms: Chain
    state: dict[str, Any]
    asked: str


MOST_ASKED = 2
"""What was answered with no change so often is not asked again while feedback, text and history are the same."""


class TGD(Optimizer):
    r"""Changes each parameter that has feedback, by asking a model for edits; all parameters change together or none.

    If all feedback comes from an evaluator of the text itself, as on an answer that is improved, the model is told to
    correct it as concretely as the feedback says, and braces are no slots. Descending along feedback in words is
    ProTeGi's idea (arXiv 2305.03495) and TextGrad's (arXiv 2406.07496); here a step is a patch of addressed lines.

    Args:
        params: the parameters, or groups of them with their own settings.
        model: the model that is asked; None stands for the optimizer of `use_models`.
        constraints: texts that the model is told, and contracts that are checked (`optim.contracts`).
        momentum: how many past steps the model is shown, with what became of them, if known: a Trainer records it, and
            your own loop does with `record_outcome`. A step that was kept without some of its edits (they did harm, or
            guards refused them) counts twice.
        mode: ``"patch"`` for edits of lines, ``"rewrite"`` for the whole text anew.
        max_edits: the most edits in a step: the step size of a patch. `optim.schedules` change it with time. With few
            edits, a large model packs several lessons into a line and leaves others out. A Trainer drops the edits that
            do harm; your own loop keeps all that the step wrote, so set fewer there for small steps.
        max_tokens: the most tokens in a parameter. None stands for 2,000, or for 1.5 times the longest text of its
            group at the start, if that is more.
        max_feedback_tokens: the most tokens of feedback that are shown, and no more than fit into the model's context,
            if its size is known; beyond it whole items are left out.
        use_feedback: False makes it a control, which shows what rewriting alone does. Each step rewrites every
            parameter (`proposers.Unaided`, unless there is a `proposer`), with or without feedback on it, and is shown
            the last texts that were tried and not kept. `mode`, `max_edits`, `examples` and (unless there is a
            `proposer`) `momentum` then do not matter. A Trainer runs no backward pass if no group has it True.
        examples: texts for other programs that work well, which the model is shown (TextGrad's in-context examples).
        transforms: changes to the feedback before it is shown, e.g. ``[cluster(), newest_first()]``; None is
            ``[dedupe()]``. Momentum and the token limit are applied after it.
        proposer: another way to make a new text (`optim.proposers`); `mode` then does not matter.
        candidates: how many proposals are asked for; the one with the highest score by the closure of `step` is taken,
            among equals the shortest.

    Raises:
        ValueError: there is no parameter, one comes twice, or a setting is unknown or out of range.
        TypeError: a setting is of a wrong kind, such as a constraint that is neither a text nor a contract.

    Example:
        >>> from textgrad_engine.testing import ScriptedModel
        >>> prompt = Variable("Sort the mail.", role="system prompt", requires_grad=True)
        >>> edit = {"op": "add", "line": 1, "text": "Be brief.", "reason": "asked for", "feedback": [1]}
        >>> optimizer = TGD([prompt], model=ScriptedModel([{"edits": [edit]}]))
        >>> (prompt + "").backward("answers are too long")
        >>> optimizer.step()
        >>> prompt.data
        'Sort the mail.\nBe brief.'
    """

    _several = ", and candidates={n} to take the best of so many"

    @names_told
    def __init__(
        self,
        params: Iterable[Variable | Mapping[str, Any]],
        model: str | Model | None = None,
        constraints: Iterable[Contract | str] = (),
        momentum: int = 0,
        *,
        mode: Mode = "patch",
        max_edits: int = 12,
        max_tokens: int | None = None,
        max_feedback_tokens: int = 8000,
        use_feedback: bool = True,
        examples: Iterable[str] = (),
        transforms: Iterable[FeedbackTransform] | None = None,
        proposer: Proposer | None = None,
        candidates: int = 1,
    ) -> None:
        super().__init__(
            params,
            {
                "constraints": constraints,
                "momentum": momentum,
                "mode": mode,
                "max_edits": max_edits,
                "max_tokens": max_tokens,
                "max_feedback_tokens": max_feedback_tokens,
                "use_feedback": use_feedback,
                "examples": examples,
                "transforms": transforms,
                "proposer": proposer,
            },
        )
        check(TGD.__init__, locals(), at_least(1, "candidates"))
        self.model = model
        self.candidates = candidates
        self._judge: Objective | Callable[[], Any] | None = None
        self._best: float | None = None
        self._settled = True  # whether it was said what became of the last step

    @property
    def reads_feedback(self) -> bool:
        """False where all groups have ``use_feedback=False``."""
        return any(group["use_feedback"] for group in self.param_groups)

    def step(self, closure: Objective | Callable[[], Any] | None = None) -> Any:
        """Change the parameters once, all of them or none.

        Args:
            closure: with one candidate, a function that computes losses and calls backward again; its result is
                returned. With several, what scores them: an `Objective`, or a function that scores the program as it is
                (see `optim.choose.scores_of`); the best mean score is returned, None when there was nothing to choose.
                An objective is not asked for anything when there is one candidate.

        Raises:
            ValueError: there are several candidates, and nothing that scores them.
            TypeError: what the closure gave is no score.
        """
        if self.candidates == 1:
            return super().step(None if isinstance(closure, Objective) else closure)
        if closure is None:
            raise ValueError(
                f"TGD(candidates={self.candidates}) takes the candidate with the best score, so step() wants what "
                "scores them: step(train.Objective(program, loss, examples)), or step(function) with a function that "
                "returns the scores of the program as it is"
            )
        self._judge = closure
        try:
            super().step(None)
        finally:
            self._judge = None
        return self._best

    def record_outcome(self, outcome: str) -> None:
        """Remember what became of the last step, for transforms that want to know (`momentum`), and what was tried.

        A step of which nothing is said is remembered without an outcome when the next one begins.

        Args:
            outcome: in words, such as "kept: validation score 0.700 -> 0.750" or "taken back: it got slower".

        Example:
            >>> from textgrad_engine.testing import ScriptedModel
            >>> prompt = Variable("Sort.", role="system prompt", requires_grad=True)
            >>> edit = {"op": "add", "line": 1, "text": "Be brief.", "reason": "asked for", "feedback": [1]}
            >>> model = ScriptedModel([{"edits": [edit]}, {"edits": []}])
            >>> optimizer = TGD([prompt], model=model, momentum=2)
            >>> for outcome in ("taken back: 0.7 -> 0.6", ""):
            ...     prompt.grad = Variable("too long")
            ...     optimizer.step()
            ...     prompt.data = "Sort."
            ...     optimizer.record_outcome(outcome)
            >>> "- added 'Be brief.' — taken back: 0.7 -> 0.6" in model.requests[-1].messages[-1].text
            True
        """
        self._settled = True
        for change in self.changes:
            if change.after != change.before:
                group = self.group_of(change.variable)
                if not group["use_feedback"]:
                    self._note_tried(change)
                transforms = _transforms_of(group)
                told = transforms.record(self._remembered(change.variable, transforms), edits_in_words(change), outcome)
                self._remember(change.variable, transforms, told)

    def state_dict(self) -> dict[str, Any]:
        """State and settings as plain data; a last step whose outcome was not said is remembered in it without one."""
        held, settled = self.state, self._settled
        self.state = {of: dict(entry) if isinstance(of, Variable) else entry for of, entry in held.items()}
        try:
            self._record_unsettled()
            return super().state_dict()
        finally:
            self.state, self._settled = held, settled

    def _reading(self, state: Mapping[str, Any]) -> Callable[[], None]:
        take = super()._reading(state)

        def take_all() -> None:
            take()
            self._settled = True  # what the last step did before is in the state, or was taken back with it

        return take_all

    def _forgets_last_step(self) -> None:
        self._record_unsettled()

    def _record_unsettled(self) -> None:
        """Remember the last step where nobody has said what became of it."""
        if not self._settled:
            self.record_outcome("")

    def _checked(self, settings: Mapping[str, Any]) -> dict[str, Any]:
        own = super()._checked(settings)
        if own.get("mode", "patch") not in ("patch", "rewrite"):
            raise ValueError(
                f"mode is 'patch' or 'rewrite', got {own['mode']!r}{nearest(own['mode'], ['patch', 'rewrite'])}"
            )
        if not isinstance(told_to := own.get("use_feedback", True), bool):
            raise TypeError(f"use_feedback must be True or False, got {told(told_to)}")
        if "examples" in own:
            own["examples"] = listed("examples", texts_in_order(own["examples"]), "texts")
            for number, text in enumerate(own["examples"]):
                if not isinstance(text, str):
                    raise TypeError(f"examples is a sequence of texts, and examples[{number}] is {text!r:.80}")
        return own

    def _step(self) -> None:
        self._best = None
        work = [
            variable
            for variable in self.variables()
            if variable.requires_grad and (variable.grad or not self.group_of(variable)["use_feedback"])
        ]

        async def propose_all() -> list[_Found]:
            return await asyncio.gather(*(self._propose(variable) for variable in work))

        self.changes = []
        found = dispatch.run(propose_all, label="an optimizer step") if work else []
        chosen = self._chosen(found)
        check_step_cancelled()
        with no_grad():
            for each, (change, made) in zip(found, chosen):
                self._remember(change.variable, each.transforms, each.state)
                if change.after != change.before:
                    change.variable.data = change.after
                    self._note_origins([(change.variable, change.after, made.origins)])
                elif not each.told:
                    self._note_tried(change)
                elif change.items and not change.problem:  # what breaks a contract may keep it the next time
                    vain = self._vain(change.variable) + Counter([each.asked])
                    self.state.setdefault(change.variable, {})["vain"] = {each.asked: vain[each.asked]}
        self.changes = [change for change, _ in chosen]
        self._settled = False

    async def _propose(self, variable: Variable) -> _Found:
        """The proposals for a parameter; without feedback a single one that changes nothing."""
        group = self.group_of(variable)
        before, origins = str(variable.data), tuple(self.origins(variable))
        model, transforms = LateModel(self.model), _transforms_of(group)
        state = self._remembered(variable, transforms)
        told = group["use_feedback"]
        gathered = collect(variable.grad) if told else Gathered(())
        if gathered.items or not told:  # more than white space
            context = Context(before, variable.role, self.model, self.steps)
            fixed = [numbered(before), *group["examples"], templates.load("optimizer_patch").system]

            def room(history: Sequence[str]) -> int:
                return model.room(group["max_feedback_tokens"], [*fixed, *history])

            gathered, state = await shown(gathered, transforms, state, context, room)
        tried, repeats = self._tried(variable)
        template = is_template(variable) or not _all_direct(gathered.items)
        brief = Brief(
            role=variable.role,
            text=before,
            origins=origins,
            items=gathered.items,
            left_out=gathered.left_out,
            history=gathered.history,
            contracts=contracts_for(group["constraints"], group["max_tokens"], template=template, variable=variable),
            max_edits=group["max_edits"],
            step=self.steps,
            examples=group["examples"],
            tried=tuple([text for text in tried if text != before][-MOST_SHOWN:]),
            repeats=repeats,
        )
        many = [Proposal(before, origins)]
        asked = _digest(brief, group, model)
        if self._vain(variable)[asked] >= MOST_ASKED:
            problem = f"the same feedback on the same text changed nothing {MOST_ASKED} times, so nobody was asked"
            many = [Proposal(before, origins, problem=problem)]
        elif gathered.items or not told:
            own = Unaided() if not told else Patch() if group["mode"] == "patch" else Rewrite()
            one = group["proposer"] or own
            proposer = one if self.candidates == 1 else Several(one, self.candidates)
            many = await propose_many(proposer, brief, model)
        told_of = brief.items, brief.left_out
        proposed = [
            (Change(variable, before, made.text, made.edits, *told_of, made.problem, made.refused), made)
            for made in many
        ]
        return _Found(told, proposed, transforms, state, asked)

    def _chosen(self, found: Sequence[_Found]) -> list[_Proposed]:
        """One proposal for each parameter: the best of the candidates, which change all parameters together."""
        count = max((len(each.proposed) for each in found), default=0)
        choices = [[each.proposed[min(number, len(each.proposed) - 1)] for each in found] for number in range(count)]
        if count < 2 or self._judge is None:
            return choices[0] if choices else []
        candidates: list[Candidate] = [{change.variable: change.after for change, _ in choice} for choice in choices]
        examples = [name for change, _ in choices[0] for item in change.items for name in item.examples]
        scores = scores_of(self._judge, candidates, examples)
        best = best_of(candidates, scores)
        self._best = scores[best]
        return choices[best]

    def _tried(self, variable: Variable) -> tuple[list[str], int]:
        """The texts tried without feedback, the latest last, and how many steps in a row brought no new one."""
        held = self.state.get(variable, {}).get("tried", {"texts": [], "repeats": 0})
        return held["texts"], held["repeats"]

    def _note_tried(self, change: Change) -> None:
        """Remember what a step without feedback came to, so that the next one asks for something else."""
        texts, repeats = self._tried(change.variable)
        new = change.after != change.before and change.after not in texts
        held = {"texts": [*texts, change.after], "repeats": 0} if new else {"texts": texts, "repeats": repeats + 1}
        self.state.setdefault(change.variable, {})["tried"] = held

    def _vain(self, variable: Variable) -> Counter[str]:
        """How often the last thing that was asked about a parameter was answered with no change, by its digest."""
        return Counter(self.state.get(variable, {}).get("vain", {}))

    def _remembered(self, variable: Variable, transforms: Chain) -> dict[str, Any]:
        held: dict[str, Any] = self.state.get(variable, {}).get("transforms", transforms.init())
        return held

    def _remember(self, variable: Variable, transforms: Chain, state: dict[str, Any]) -> None:
        if state != self._remembered(variable, transforms):
            self.state.setdefault(variable, {})["transforms"] = state


def _digest(brief: Brief, group: Mapping[str, Any], model: LateModel) -> str:
    """Tells what a proposer is told, and who is asked, from all else; the number of the step is no part."""
    said = [brief.role, brief.text, brief.items, brief.left_out, brief.history, brief.max_edits, brief.examples]
    said += [[contract.describe(brief.text) for contract in brief.contracts], brief.tried, brief.repeats]
    said += [group["mode"], type(group["proposer"]).__name__]
    with contextlib.suppress(NoModelError):  # a proposer of one's own may ask nobody
        said.append(model.name)
    return hashlib.sha256(repr(said).encode()).hexdigest()[:16]


def _all_direct(items: Sequence[FeedbackItem]) -> bool:
    """Whether all feedback is on the text itself, as on an answer that is improved: it is no template."""
    return bool(items) and all(item.direct for item in items)


def _transforms_of(group: Mapping[str, Any]) -> Chain:
    own = usual() if group["transforms"] is None else group["transforms"]
    return chain(own, momentum(group["momentum"])) if group["momentum"] else chain(own)
