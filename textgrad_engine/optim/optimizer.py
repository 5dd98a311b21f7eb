"""`Optimizer`: parameter groups, state, hooks and `step`, as `torch.optim.Optimizer`."""

from __future__ import annotations

import asyncio
import copy
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextvars import copy_context
from dataclasses import asdict, dataclass
from types import MappingProxyType
from typing import Any

from pydantic import TypeAdapter

from textgrad_engine.autograd import Variable, no_grad
from textgrad_engine.autograd.graph import Handle, add_hook
from textgrad_engine.optim.gather import FeedbackItem
from textgrad_engine.optim.patch import Edit, Origin

__all__ = ["Change", "Optimizer"]

Closure = Callable[[], Any]


@dataclass(frozen=True)
class Change:
    """What a step did to one parameter.

    Attributes:
        variable: the parameter.
        before: its text before the step.
        after: its text after the step; as before when nothing was changed.
        edits: the edits, in patch mode.
        items: the feedback that the optimizer was shown.
        left_out: how many items of feedback the token budget had no room for.
        problem: why the proposal was dropped; "" when it was used.
    """

    variable: Variable
    before: str
    after: str
    edits: tuple[Edit, ...]
    items: tuple[FeedbackItem, ...]
    left_out: int
    problem: str


class Optimizer:
    """Base of what rewrites parameters from their feedback.

    Args:
        params: Variables that require grad, or groups: dicts with "params" and settings of their own.
        defaults: the settings of groups that do not name them.

    Raises:
        ValueError: there is no parameter, one comes twice, or a setting is unknown.
        TypeError: a parameter is no leaf Variable.

    Attributes:
        param_groups: the groups, each a dict of "params" and its settings.
        state: what the optimizer remembers of each parameter.
        steps: how many steps it has begun.
        changes: what the last step did to each parameter that had feedback.
    """

    def __init__(self, params: Iterable[Variable] | Iterable[dict[str, Any]], defaults: Mapping[str, Any]) -> None:
        if isinstance(params, Variable):
            raise TypeError("an optimizer takes an iterable of Variables, e.g. program.parameters(); got a single one")
        self.defaults = dict(defaults)
        self.param_groups: list[dict[str, Any]] = []
        self.state: dict[Variable, dict[str, Any]] = {}
        self.steps = 0
        self.changes: list[Change] = []
        self._pre_hooks: dict[int, Any] = {}
        self._post_hooks: dict[int, Any] = {}
        given = list(params)
        if not given:
            raise ValueError(
                "the optimizer got no parameters; program.parameters() is empty when nothing is an nn.Parameter"
            )
        for group in given if isinstance(given[0], dict) else [{"params": given}]:
            self.add_param_group(group)  # type: ignore[arg-type]

    def add_param_group(self, group: Mapping[str, Any]) -> None:
        """Train further parameters, with settings of their own; see the class for errors."""
        params = group["params"]
        variables = [params] if isinstance(params, Variable) else list(params)
        for variable in variables:
            if not isinstance(variable, Variable):
                raise TypeError(f"an optimizer trains Variables, got {type(variable).__name__}")
            if not variable.is_leaf:
                raise TypeError(f"{variable._name()} is a result, not a leaf: it cannot be trained")
        known = {id(v) for other in self.param_groups for v in other["params"]}
        if len({id(v) for v in variables}) < len(variables) or any(id(v) in known for v in variables):
            raise ValueError("a parameter comes twice; each may be in one group, once")
        if unknown := [name for name in group if name != "params" and name not in self.defaults]:
            raise ValueError(
                f"{type(self).__name__} has no setting {unknown[0]!r}; it has {', '.join(sorted(self.defaults))}"
            )
        self.param_groups.append({**self.defaults, **group, "params": variables})

    def zero_grad(self) -> None:
        """Forget the feedback on all parameters."""
        for group in self.param_groups:
            for variable in group["params"]:
                variable.grad = None

    def step(self, closure: Closure | None = None) -> Any:
        """Change the parameters once, all of them or none.

        Args:
            closure: computes losses and calls backward again; its result is returned.
        """
        for hook in tuple(self._pre_hooks.values()):
            hook(self)
        result = closure() if closure is not None else None
        self.steps += 1
        self.changes = []
        self._step()
        for hook in tuple(self._post_hooks.values()):
            hook(self)
        return result

    async def astep(self, closure: Closure | None = None) -> Any:
        """`step` for code that has an event loop of its own; the loop is not blocked."""
        context = copy_context()
        return await asyncio.to_thread(context.run, self.step, closure)

    def _step(self) -> None:
        raise NotImplementedError(f"{type(self).__name__} needs a `_step`")

    def origins(self, variable: Variable) -> list[Origin | None]:
        """For each line of a parameter, why it reads as it does; None for lines that no step of this one wrote."""
        text = str(variable.data)
        held = self.state.get(variable, {}).get("origins")
        if held is not None and held[0] == text:
            return list(held[1])
        return [None] * len(text.split("\n"))

    def amend(
        self,
        changes: Sequence[Change],
        written: Mapping[Variable, tuple[str, Sequence[Origin | None]]],
        gone: Mapping[str, Sequence[Change]] = MappingProxyType({}),
    ) -> None:
        """Have less of the last step than it proposed, such as some of its edits only.

        Args:
            changes: what the step has done now.
            written: for each parameter that the step changed its text now, with the origins of its lines.
            gone: what it has not done after all, by why, in a few words; the optimizer learns it (`record_outcome`).
        """
        for why, undone in gone.items():
            self.changes = list(undone)
            self.record_outcome(why)
        self.changes = list(changes)
        with no_grad():
            for variable, (text, origins) in written.items():
                if variable.data != text:
                    variable.data = text
                self.state.setdefault(variable, {})["origins"] = (text, list(origins))

    def record_outcome(self, outcome: str) -> None:
        """Be told in words what became of the last step; an optimizer without memory does nothing with it."""

    def register_step_pre_hook(self, hook: Callable[[Optimizer], None]) -> Handle:
        """Have ``hook(optimizer)`` called before each step."""
        return add_hook(self._pre_hooks, hook)

    def register_step_post_hook(self, hook: Callable[[Optimizer], None]) -> Handle:
        """Have ``hook(optimizer)`` called after each step."""
        return add_hook(self._post_hooks, hook)

    def state_dict(self) -> dict[str, Any]:
        """State and settings as plain data; parameters are numbered in order.

        JSON can hold it, and give it back to `load_state_dict`, unless a group's settings have objects of your own
        (contracts, transforms, a proposer).
        """
        numbers = {id(v): n for n, v in enumerate(self._variables())}
        groups = [
            {**{k: v for k, v in group.items() if k != "params"}, "params": [numbers[id(v)] for v in group["params"]]}
            for group in self.param_groups
        ]
        state = {numbers[id(variable)]: _plain(entry) for variable, entry in self.state.items()}
        return {"state": state, "param_groups": groups, "steps": self.steps}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Take over what `state_dict` gave; the parameters themselves, and their requires_grad, stay as they are.

        Raises:
            ValueError: it belongs to other groups.
        """
        sizes = [len(group["params"]) for group in self.param_groups]
        theirs = [len(group["params"]) for group in state["param_groups"]]
        if sizes != theirs:
            raise ValueError(f"the state is for groups of {theirs} parameters; this optimizer has groups of {sizes}")
        for group, other in zip(self.param_groups, state["param_groups"]):
            group.update({name: value for name, value in other.items() if name != "params"})
        variables = self._variables()
        self.steps = int(state["steps"])
        self.state = {variables[int(number)]: _taken(entry) for number, entry in state["state"].items()}

    def _variables(self) -> list[Variable]:
        return [variable for group in self.param_groups for variable in group["params"]]


_ORIGINS = TypeAdapter(list[Origin | None])


def _plain(entry: Mapping[str, Any]) -> dict[str, Any]:
    """What is remembered of a parameter, as plain data."""
    held = copy.deepcopy(dict(entry))
    if "origins" in held:
        text, origins = held["origins"]
        held["origins"] = [text, [None if origin is None else asdict(origin) for origin in origins]]
    return held


def _taken(entry: Mapping[str, Any]) -> dict[str, Any]:
    """The other way round of `_plain`."""
    held = copy.deepcopy(dict(entry))
    if "origins" in held:
        text, origins = held["origins"]
        held["origins"] = (text, _ORIGINS.validate_python(origins))
    return held
