"""Textual gradient descent: one proposal a step, from all feedback gathered, as a patch or as a rewrite.

The idea of descending along feedback in words is ProTeGi's (arXiv 2305.03495) and TextGrad's (arXiv 2406.07496). This
one differs: a step is a short patch of addressed lines by default, each edit names the feedback it answers, and a
proposal must pass its contract before any parameter changes.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping
from typing import Any, Literal

from textgrad_engine import dispatch
from textgrad_engine.autograd import Variable, no_grad
from textgrad_engine.llm.model import Model
from textgrad_engine.llm.roles import model_for
from textgrad_engine.optim.contracts import Contract, contracts_for
from textgrad_engine.optim.gather import gather
from textgrad_engine.optim.optimizer import Change, Optimizer
from textgrad_engine.optim.patch import Origin
from textgrad_engine.optim.proposers import Brief, Patch, Rewrite, propose

__all__ = ["TGD"]

Mode = Literal["patch", "rewrite"]


class TGD(Optimizer):
    r"""Changes each parameter that has feedback, by asking a model for edits; all parameters change together or none.

    Args:
        params: the parameters, or groups of them with settings of their own.
        model: asks this model; None stands for the optimizer of `use_models`.
        constraints: texts that the model is told, and contracts that are checked (`optim.contracts`).
        momentum: how many past steps the model is shown, with what became of them.
        mode: ``"patch"`` for edits of lines, ``"rewrite"`` for the whole text anew.
        max_edits: at most so many edits a step: the step size of a patch.
        max_tokens: at most so many tokens in a parameter.
        max_feedback_tokens: at most so many tokens of feedback are shown; whole items are left out beyond it.
        use_feedback: False withholds the feedback: a control, which shows what rewriting alone does.

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

    def __init__(
        self,
        params: Iterable[Variable] | Iterable[dict[str, Any]],
        model: str | Model | None = None,
        *,
        constraints: Iterable[Contract | str] = (),
        momentum: int = 0,
        mode: Mode = "patch",
        max_edits: int = 4,
        max_tokens: int = 2000,
        max_feedback_tokens: int = 8000,
        use_feedback: bool = True,
    ) -> None:
        super().__init__(
            params,
            {
                "constraints": constraints if isinstance(constraints, str) else tuple(constraints),
                "momentum": momentum,
                "mode": mode,
                "max_edits": max_edits,
                "max_tokens": max_tokens,
                "max_feedback_tokens": max_feedback_tokens,
                "use_feedback": use_feedback,
            },
        )
        self.model = model

    def add_param_group(self, group: Mapping[str, Any]) -> None:
        """Train further parameters, with settings of their own.

        Raises:
            ValueError: a setting is unknown or out of range, or a parameter comes twice.
            TypeError: a constraint is neither a text nor a contract.
        """
        settings = {**self.defaults, **group}
        if isinstance(settings["constraints"], str):
            raise TypeError(
                f"constraints is a sequence of texts and contracts, got one text; write [{settings['constraints']!r}]"
            )
        settings["constraints"] = tuple(settings["constraints"])
        if settings["mode"] not in ("patch", "rewrite"):
            raise ValueError(f"mode is 'patch' or 'rewrite', got {settings['mode']!r}")
        for name, least in (("momentum", 0), ("max_edits", 1), ("max_tokens", 1), ("max_feedback_tokens", 1)):
            if settings[name] < least:
                raise ValueError(f"{name} must be at least {least}, got {settings[name]}")
        contracts_for(settings["constraints"], settings["max_tokens"])
        super().add_param_group({**group, "constraints": settings["constraints"]})

    def record_outcome(self, outcome: str) -> None:
        """Remember what became of the last step, for `momentum`."""
        for change in self.changes:
            if change.after != change.before:
                state = self.state.setdefault(change.variable, {})
                state.setdefault("history", []).append([f"{line} — {outcome}" for line in _described(change)])

    def _step(self) -> None:
        work = [
            (variable, group)
            for group in self.param_groups
            for variable in group["params"]
            if variable.requires_grad and variable.grad
        ]

        async def propose_all() -> list[tuple[Change, list[Origin | None]]]:
            return await asyncio.gather(*(self._propose(variable, group) for variable, group in work))

        self.changes = []
        proposals = dispatch.run(propose_all, label="an optimizer step") if work else []
        with no_grad():
            for change, origins in proposals:
                if change.after != change.before:
                    change.variable.data = change.after
                    self.state.setdefault(change.variable, {})["origins"] = (change.after, origins)
        self.changes = [change for change, _ in proposals]

    async def _propose(self, variable: Variable, group: dict[str, Any]) -> tuple[Change, list[Origin | None]]:
        before = str(variable.data)
        items, left_out = gather(variable.grad, group["max_feedback_tokens"])
        if not items:  # nothing but white space was said
            return Change(variable, before, before, (), (), 0, ""), self.origins(variable)
        history = self.state.get(variable, {}).get("history", [])
        brief = Brief(
            role=variable.role,
            text=before,
            origins=tuple(self.origins(variable)),
            items=tuple(items) if group["use_feedback"] else (),
            history=tuple(line for lines in history[-group["momentum"] :] for line in lines)
            if group["momentum"]
            else (),
            contracts=contracts_for(group["constraints"], group["max_tokens"]),
            max_edits=group["max_edits"],
            step=self.steps,
        )
        proposer = Patch() if group["mode"] == "patch" else Rewrite()
        made = await propose(proposer, brief, model_for("optimizer", self.model))
        change = Change(variable, before, made.text, made.edits, brief.items, left_out, made.problem)
        return change, list(made.origins)


def _described(change: Change) -> list[str]:
    """What a step changed, a line for each edit."""
    if not change.edits:
        return ["the whole text was written anew"]
    words = {"add": "added", "replace": "replaced a line by", "remove": "removed a line"}
    return [f"{words[edit.op]} {edit.text!r}" if edit.text else words[edit.op] for edit in change.edits]
