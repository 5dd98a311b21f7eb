"""`Optimizer`: parameter groups, state, hooks and `step`, as `torch.optim.Optimizer`."""

from __future__ import annotations

import asyncio
import contextlib
import functools
import inspect
from collections import defaultdict
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, ClassVar, TypeAlias, TypeVar

from textgrad_engine import dispatch
from textgrad_engine.autograd import Variable
from textgrad_engine.autograd.graph import Handle, add_hook
from textgrad_engine.autograd.value import label_of
from textgrad_engine.checks import check, in_order
from textgrad_engine.keywords import names_told
from textgrad_engine.optim.cells import Origin
from textgrad_engine.optim.change import Change
from textgrad_engine.optim.noted import Before, check_heard, check_written, note
from textgrad_engine.optim.other_libraries import ELSEWHERE
from textgrad_engine.optim.param_groups import (
    given_as,
    groups_of,
    trained_in,
    warn_of_frozen_nowhere,
    warn_of_no_room,
    warn_of_shared,
    warn_of_unread,
)
from textgrad_engine.optim.saved import check_owner, check_sizes, remembered_in, state_of
from textgrad_engine.optim.search.objective import Objective
from textgrad_engine.optim.settings import most_tokens, named, shared
from textgrad_engine.optim.texts import texts_now, write_texts
from textgrad_engine.wording import nearest

Closure: TypeAlias = "Callable[[], Any] | Objective"
_OURS = f"{__name__.partition('.')[0]}."
T = TypeVar("T")
StepHook: TypeAlias = "Callable[[Optimizer, tuple[Any, ...], dict[str, Any]], None]"


class Optimizer:
    r"""Base of what rewrites parameters from their feedback.

    Your own subclass has a `step` that changes the texts. The base class notes what `step` does not say itself: that
    there was a step, what it changed (`changes`), and which feedback each new line answers (`origins`: what it quotes,
    else all feedback). So a Trainer can race the step without the lines that do harm, and a report names the examples
    that asked for a line. Keep what you remember besides the texts in `state_dict` and `load_state_dict`: they take
    back a step that is not kept.

    Args:
        params: Variables that require grad, or groups: dicts with "params" and settings of their own.
        defaults: the settings of groups that do not name them. Some names mean the same in every optimizer, and are
            checked here (`optim.settings`); a subclass with others extends `_checked`.

    Raises:
        ValueError: there is no parameter, one comes twice, or a setting is unknown or out of range.
        TypeError: a parameter is no leaf Variable, or a setting is of a wrong kind.

    Attributes:
        param_groups: the groups, each a dict of "params" and its settings.
        state: what the optimizer remembers about each parameter; at first an empty dict, as in PyTorch. What is not
            about a parameter is stored under names.
        steps: how many steps it has begun.
        changes: what the last step did to each parameter that had feedback.
        candidates: from how many texts a step takes the best. If it is more than one, `step` gets an `Objective` to
            score them, on a few training examples each.
        to_the_end: whether a Trainer and a search go on when nothing better can be shown (`optim.search.marks`).

    Example:
        >>> class Append(Optimizer):
        ...     def __init__(self, params, most=1):
        ...         super().__init__(params, {"most": most})
        ...     def step(self, closure=None):
        ...         for group in self.param_groups:
        ...             for parameter in group["params"]:
        ...                 said = [item.data for item in parameter.grad]
        ...                 parameter.data = "\n".join([parameter.data, *said[: group["most"]]])
        >>> prompt = Variable("Sort the mail.", role="system prompt", requires_grad=True)
        >>> optimizer = Append([prompt])
        >>> (prompt + "").backward("Be brief.")
        >>> optimizer.step()
        >>> optimizer.steps, [change.after for change in optimizer.changes]
        (1, ['Sort the mail.\nBe brief.'])
        >>> [origin and origin.evidence[0].text for origin in optimizer.origins(prompt)]
        [None, 'Be brief.']
    """

    candidates: int = 1
    to_the_end: bool = False
    _counts_itself: ClassVar[bool] = False
    """Whether its own `step` says what counts as one."""
    _within: bool = False
    """Whether a step is under way: one that calls the step of its base is one step."""
    _has_solved: ClassVar[bool] = False
    """Whether it has solved examples for a proposer to show."""
    _several: ClassVar[str] = ""
    """How it comes by several candidates, for `optim.settings.proposer_of`."""

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        if inspect.isfunction(own := vars(cls).get("step")):
            if inspect.iscoroutinefunction(own):
                raise TypeError(
                    f"{cls.__name__}.step is an `async def`, and nobody awaits a step: write `def step`, and wait in "
                    "it by reading values; `astep` is its twin for code with an event loop"
                )
            if inspect.isgeneratorfunction(own) or inspect.isasyncgenfunction(own):
                raise TypeError(
                    f"{cls.__name__}.step has a `yield`, so a call of it would give a generator, and change nothing; "
                    "write to `parameter.data` in it, and `return` what there is to return"
                )

            @dispatch.waits("await optimizer.astep(...)")
            @functools.wraps(own)
            def step(self: Optimizer, *args: Any, **kwargs: Any) -> Any:
                with self._whole(args, kwargs):
                    return own(self, *args, **kwargs)

            cls.step = step  # type: ignore[method-assign]

    def __init__(self, params: Iterable[Variable | Mapping[str, Any]], defaults: Mapping[str, Any]) -> None:
        if isinstance(params, Variable):
            raise TypeError("an optimizer takes an iterable of Variables, e.g. program.parameters(); got a single one")
        check(Optimizer.__init__, {"defaults": defaults})
        if isinstance(params, str | type) or not isinstance(params, Iterable):
            raise TypeError(
                f"{type(self).__name__}: params must be a sequence of Variables or groups, such as "
                f"program.parameters(), got {given_as(params)}"
            )
        self.defaults = self._checked(defaults)
        self.param_groups: list[dict[str, Any]] = []
        self.state: dict[Variable, dict[str, Any]] = defaultdict(dict)
        self.steps: int = 0
        self.changes: list[Change] = []
        self._told_unread: set[str] = set()
        self._pre_hooks: dict[int, Any] = {}
        self._post_hooks: dict[int, Any] = {}
        given = list(in_order(params, f"{type(self).__name__}: params: "))
        if not given:
            raise ValueError(
                "the optimizer got no parameters: program.parameters() finds each nn.Parameter that __init__ assigns "
                "to self, also in nn.ModuleList, nn.ParameterList and their like, but none in plain lists or dicts, or "
                "in the class"
            )
        for group in groups_of(given):
            self.add_param_group(group)
        warn_of_frozen_nowhere(self.param_groups, type(self).__name__)

    if not TYPE_CHECKING:  # for type checkers there are no other attributes

        def __getattr__(self, name: str) -> Any:
            if name in ("param_groups", "_pre_hooks"):
                raise AttributeError(
                    f"{type(self).__name__}.__init__ did not call super().__init__(params, defaults), which comes "
                    "first in it"
                )
            if hasattr(type(self), name):  # a property, in whose own code something is missing: that is said again
                return object.__getattribute__(self, name)
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}{ELSEWHERE.get(name, '')}")

    def add_param_group(self, group: Mapping[str, Any]) -> None:
        """Train further parameters, with settings of their own.

        Raises:
            ValueError: there is no parameter, one comes twice, or a setting is unknown or out of range.
            TypeError: a setting is of a wrong kind.
        """
        where = f"param_groups[{len(self.param_groups)}]"
        variables = trained_in(group, where)
        known = {id(v) for v in self.variables()}
        if len({id(v) for v in variables}) < len(variables) or any(id(v) in known for v in variables):
            raise ValueError("a parameter comes twice; each may be in one group, once")
        given = {**self.defaults, **group, "params": variables}
        made = given | self._settings_of(given, where)
        warn_of_no_room(made, type(self).__name__)
        self.param_groups.append(made)
        warn_of_shared(made, type(self).__name__)

    def _settings_of(self, group: Mapping[str, Any], where: str) -> dict[str, Any]:
        """The settings of a group, checked.

        Raises:
            ValueError: one is unknown or out of range.
            TypeError: one is of a wrong kind.
        """
        given = {name: value for name, value in group.items() if name != "params"}
        if unknown := [name for name in given if name not in self.defaults]:
            settings = ", ".join(sorted(self.defaults))
            raise ValueError(f"{where}: {type(self).__name__} has no setting {unknown[0]!r}; it has {settings}")
        with named(where):
            own = self._checked(given)
        if "max_tokens" in own and own["max_tokens"] is None:
            own["max_tokens"] = most_tokens(texts_now(group["params"]))
        return own

    def _is_kept(self, name: str) -> bool:
        """Whether what has a name in a group is no setting, nor nearly one, but kept there by a subclass or a hook."""
        return name not in ("params", *self.defaults) and not nearest(name, self.defaults)

    def variables(self) -> list[Variable]:
        """All parameters, in the order of the groups.

        Example:
            >>> from textgrad_engine import optim
            >>> system, style = (Variable(text, requires_grad=True) for text in ("Sort.", "Be kind."))
            >>> optimizer = optim.TGD([{"params": [system]}, {"params": [style], "max_edits": 1}])
            >>> [variable.data for variable in optimizer.variables()]
            ['Sort.', 'Be kind.']
            >>> optimizer.group_of(style)["max_edits"]
            1
        """
        return [variable for group in self.param_groups for variable in group["params"]]

    def group_of(self, variable: Variable) -> dict[str, Any]:
        """The group that a parameter is in; what is set in it counts from the next step on.

        Raises:
            ValueError: it is none of this optimizer's.
        """
        for group in self.param_groups:
            if any(each is variable for each in group["params"]):
                return group
        raise ValueError(
            f"{label_of(variable)} is in no group of this {type(self).__name__}; add_param_group() would train it, too"
        )

    @property
    def reads_feedback(self) -> bool:
        """Whether a step reads the feedback on its parameters: a Trainer runs no backward pass for one that does not.

        A search asks its objective for what it wants; of one that reads none, no step is lost for want of feedback.
        """
        return True

    @property
    def hears_critic(self) -> bool:
        """Whether anybody reads what a critic says: where nobody does, none is asked."""
        return self.reads_feedback

    @property
    def reads_runs(self) -> bool:
        """Whether a step asks its objective for `runs`: what a program asks its models is noted for one that does."""
        return False

    def most_asked_by_transforms(self) -> int:
        """Requests to the optimizer's model that it takes at most to transform the feedback on one parameter."""
        given = (group.get("transforms") for group in self.param_groups)
        return max([0 if each is None else each.most_requests for each in given], default=0)

    def __repr__(self) -> str:
        lines = [f"{type(self).__name__} ("]
        for number, group in enumerate(self.param_groups):
            lines.append(f"Parameter Group {number}")
            roles = [variable.role for variable in group["params"]]
            settings = {"params": roles} | {name: group[name] for name in sorted(group) if name != "params"}
            shown = {name: repr(value) for name, value in settings.items()}
            lines += [f"    {name}: {s if len(s) <= 80 else s[:79] + '…'}" for name, s in shown.items()]
        return "\n".join([*lines, ")"])

    @names_told
    def zero_grad(self) -> None:
        """Forget the feedback on all parameters."""
        for variable in self.variables():
            variable.grad = None

    @dispatch.waits("await optimizer.astep(...)")
    def step(self, closure: Closure | None = None) -> Any:
        """Change the parameters once, all of them or none.

        Args:
            closure: computes losses and calls backward again; its result is returned. An `Objective` is for those that
                choose among texts.

        Raises:
            TypeError: it is none that is called; or a setting that a group was given since is of a wrong kind.
            ValueError: such a setting is out of range, or misspelt.
        """
        if closure is not None and not callable(closure):
            raise TypeError(
                f"{type(self).__name__} calls what step() is given, a function that computes losses and goes backward; "
                f"got {given_as(closure)}"
            )
        with self._whole(() if closure is None else (closure,), {}):
            result = closure() if closure is not None else None
            self._forgets_last_step()
            self.steps += 1
            self.changes = []
            check_step_cancelled()
            self._step()
        return result

    async def astep(self, closure: Closure | None = None) -> Any:
        """`step` for code that has an event loop of its own; the loop is not blocked.

        When the wait for it is cancelled, so are its calls. The wait is over when the step is, and leaves the
        parameters as they were, unless they were written already.
        """
        given = () if closure is None else (closure,)
        return await dispatch.aside(lambda: self.step(*given), stop=dispatch.Scope.cancel)

    @dispatch.waits("await asyncio.gather(...)")
    def wait_for(self, *asked: Awaitable[T]) -> list[T]:
        """The results of what is awaited, in order; for a `step` or `decide` of one's own, which is not ``async``.

        All run concurrently on the library's own event loop, so it may be called where another loop runs, as in a
        notebook. Of several failures the first in order is raised.

        Args:
            asked: coroutines, such as those of `proposers.propose` and of a model's `complete`.

        Raises:
            TypeError: something is none.

        Example:
            >>> from textgrad_engine import llm, optim
            >>> from textgrad_engine.testing import FunctionModel
            >>> model = llm.resolve(FunctionModel(lambda request: request.messages[0].text.upper()))
            >>> def asked(text):
            ...     message = llm.Message(role="user", content=text)
            ...     return model.complete(llm.Request(messages=(message,), purpose="optimizer"))
            >>> optimizer = optim.TGD([Variable("Sort.", requires_grad=True)])
            >>> [answer.text for answer in optimizer.wait_for(asked("one"), asked("two"))]
            ['ONE', 'TWO']
        """
        for each in asked:
            if not isinstance(each, Awaitable):
                raise TypeError(f"wait_for takes what is awaited, such as proposers.propose(...), got {each!r:.60}")

        async def every() -> list[T | BaseException]:
            return await asyncio.gather(*asked, return_exceptions=True)

        results: list[T] = []
        for result in dispatch.run(every, label=f"what {type(self).__name__} waits for") if asked else ():
            if isinstance(result, BaseException):
                raise result
            results.append(result)
        return results

    def _checked(self, settings: Mapping[str, Any]) -> dict[str, Any]:
        """Some or all settings of a group, checked; a subclass that has others extends it.

        Raises:
            TypeError: a setting is of a wrong kind.
            ValueError: a setting is out of range.
        """
        return shared(settings, type(self).__name__, self._several, solved=self._has_solved)

    def _step(self) -> None:
        raise NotImplementedError(f"{type(self).__name__} needs a `step` that changes its parameters")

    def origins(self, variable: Variable) -> list[Origin | None]:
        """For each line of a parameter, why it reads as it does; None for lines that no step of this one wrote."""
        text = str(variable.data)
        held = self.state.get(variable, {}).get("origins")
        if held is not None and held[0] == text:
            return list(held[1])
        return [None] * len(text.split("\n"))

    def _note_origins(self, written: Iterable[tuple[Variable, str, Sequence[Origin | None]]]) -> None:
        """Remember for `origins` why the lines of texts read as they do."""
        for variable, text, origins in written:
            self.state.setdefault(variable, {})["origins"] = (text, list(origins))

    def amend(
        self,
        changes: Sequence[Change],
        written: Mapping[Variable, tuple[str, Sequence[Origin | None]]],
        gone: Mapping[str, Sequence[Change]] = MappingProxyType({}),
    ) -> None:
        """Keep only part of the last step, such as some of its edits.

        Args:
            changes: what the step has done now.
            written: for each parameter that the step changed its text now, with the origins of its lines.
            gone: what it has not done after all, by why, in a few words; the optimizer learns it (`record_outcome`).
        """
        for why, undone in gone.items():
            self.changes = list(undone)
            self.record_outcome(why)
        self.changes = list(changes)
        write_texts(written, [text for text, _ in written.values()])
        self._note_origins((variable, *each) for variable, each in written.items())

    def record_outcome(self, outcome: str) -> None:
        """Record in words what became of the last step; an optimizer without memory ignores it."""

    def register_step_pre_hook(self, hook: StepHook) -> Handle:
        """Have ``hook(optimizer, args, kwargs)`` called before each step, with what `step` was given.

        As in `torch.optim`, except that `args` does not contain the optimizer, and the hook's return value is ignored.
        """
        return add_hook(self._pre_hooks, hook)

    def register_step_post_hook(self, hook: StepHook) -> Handle:
        """Have ``hook(optimizer, args, kwargs)`` called after each step; see `register_step_pre_hook`."""
        return add_hook(self._post_hooks, hook)

    def _forgets_last_step(self) -> None:
        """Called in a step before `changes` of the last one go; what hooks and the closure say of these comes first."""

    @contextlib.contextmanager
    def _whole(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Iterator[None]:
        """Around a step, once: hooks before it and, if nothing went wrong, after it, and a note of what it did."""
        if self._within:
            yield
            return
        self._within = True
        try:
            for hook in tuple(self._pre_hooks.values()):
                hook(self, args, kwargs)
            for number, group in enumerate(self.param_groups):  # what was set since counts from this step on
                # Another name is a typing error where it is nearly one of these, else what a subclass keeps there.
                settings = {name: group[name] for name in group if not self._is_kept(name)}
                group.update(self._settings_of(settings, f"param_groups[{number}]"))
                if type(self).__module__.startswith(_OURS):  # others may read what they keep there
                    unread = [name for name in group if self._is_kept(name) and name not in self._told_unread]
                    warn_of_unread(unread, f"param_groups[{number}]", type(self).__name__, self.defaults)
                    self._told_unread.update(unread)
            steps, said, variables = self.steps, self.changes, self.variables()
            data = [each.data for each in variables]
            check_heard(variables)
            before = [Before(str(each.data), self.origins(each), list(each.grad)) for each in variables]
            yield
            check_written(type(self).__name__, variables, data)
            if self.steps == steps and not self._counts_itself:
                self.steps += 1
            if self.changes is said:  # they are of the step before
                self.changes = []
            for variable, was in zip(variables, before):
                self._note(variable, was)
            for hook in tuple(self._post_hooks.values()):
                hook(self, args, kwargs)
        finally:
            self._within = False

    def _note(self, variable: Variable, was: Before) -> None:
        """Note what a step did to a parameter, as far as it has not done so itself; see `noted.note`."""
        said = next((each for each in self.changes if each.variable is variable), None)
        held = self.state.get(variable, {}).get("origins")
        change, written = note(variable, was, said, held, self.steps, proposes=self._counts_itself)
        if change is not None and said is None:
            self.changes = [*self.changes, change]
        elif change is not None and change is not said:
            self.changes = [change if each is said else each for each in self.changes]
        if written is not None and written is not held:
            self._note_origins([(variable, *written)])

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in vars(self).items() if name != "_within"}  # a hook may make a copy

    def state_dict(self) -> dict[str, Any]:
        """State and settings as plain data; parameters are numbered in order.

        JSON can hold it, and give it back to `load_state_dict`, unless a group's settings have objects of your own
        (contracts, transforms, a proposer).
        """
        held = state_of(self.param_groups, self.variables(), self.state)
        return {"optimizer": type(self).__name__, **held, "steps": self.steps}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Take over what `state_dict` gave; the parameters themselves, and their requires_grad, stay as they are.

        So does a setting of a group that the state does not have, as it may have been saved before there was one.

        After an error everything is as before.

        Raises:
            ValueError: it is another optimizer's, belongs to other groups, lacks something, or has a setting that is
                unknown or out of range.
            TypeError: it is no state, or a setting in it is of a wrong kind.
        """
        check_owner(state, type(self), self.state_dict)
        try:
            take = self._reading(state)
        except KeyError as error:
            raise ValueError(f"the state lacks {error}, which that of {type(self).__name__} has") from error
        take()

    def _reading(self, state: Mapping[str, Any]) -> Callable[[], None]:
        """Read a state, and change nothing; what is returned takes it over. A subclass with more in it extends this.

        Raises:
            KeyError: it lacks something.
            ValueError: it belongs to other groups, or a setting is out of range.
            TypeError: a setting is of a wrong kind.
        """
        check_sizes(state, self.param_groups)
        every = [[name for name in group if self._is_kept(name)] for group in self.param_groups]
        settings = [
            self._settings_of(
                {name: other[name] for name in other if name not in kept} | {"params": group["params"]},
                f"param_groups[{number}] of the state",
            )
            | {name: other[name] for name in kept if name in other}
            for number, (group, other, kept) in enumerate(zip(self.param_groups, state["param_groups"], every))
        ]
        steps, remembered = int(state["steps"]), remembered_in(state, self.variables())

        def take() -> None:
            for group, own in zip(self.param_groups, settings):
                group.update(own)
            self.steps, self.state = steps, defaultdict(dict, remembered)

        return take


def check_step_cancelled() -> None:
    """Called by a step before it writes parameters.

    Raises:
        CallCancelled: nobody waits for the step any more.
    """
    dispatch.check_cancelled("this step", "the parameters are as they were")
