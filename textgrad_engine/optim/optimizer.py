"""`Optimizer`: parameter groups, state, hooks and `step`, as `torch.optim.Optimizer`."""

from __future__ import annotations

import contextlib
import copy
import functools
import inspect
import logging
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, replace
from types import MappingProxyType
from typing import Any, ClassVar, TypeAlias

from pydantic import TypeAdapter

from textgrad_engine import dispatch
from textgrad_engine.autograd import Variable
from textgrad_engine.autograd.graph import Handle, add_hook
from textgrad_engine.autograd.value import label_of
from textgrad_engine.optim.change import Change
from textgrad_engine.optim.contracts.standard import kept_by_some
from textgrad_engine.optim.gather import collect
from textgrad_engine.optim.patch import Origin, apply_patch, origins_of_rewrite
from textgrad_engine.optim.search.objective import Objective
from textgrad_engine.optim.settings import most_tokens, named, shared
from textgrad_engine.optim.texts import texts_now, write_texts

__all__ = ["Optimizer", "check_step_cancelled"]

_log = logging.getLogger("textgrad_engine.optim.optimizer")

Closure: TypeAlias = "Callable[[], Any] | Objective"
StepHook: TypeAlias = "Callable[[Optimizer, tuple[Any, ...], dict[str, Any]], None]"


class Optimizer:
    r"""Base of what rewrites parameters from their feedback.

    One of your own has a `step` that changes the texts. Whatever it does not say itself is noted for it when it is
    done: that it was a step, what it changed (`changes`), and which feedback each new line answers (`origins`): what it
    quotes, else all that there was. So a Trainer races it without the lines that do harm, and a report names the
    examples that asked for a line. What is remembered beside the texts belongs into `state_dict` and `load_state_dict`,
    as a step that is not kept is taken back by these.

    Args:
        params: Variables that require grad, or groups: dicts with "params" and settings of their own.
        defaults: the settings of groups that do not name them. Some names mean the same in every optimizer, and are
            checked here (`optim.settings`); a subclass with others extends `_checked`.

    Raises:
        ValueError: there is no parameter, one comes twice, or a setting is unknown or out of range.
        TypeError: a parameter is no leaf Variable, or a setting is of a wrong kind.

    Attributes:
        param_groups: the groups, each a dict of "params" and its settings.
        state: what the optimizer remembers of each parameter.
        steps: how many steps it has begun.
        changes: what the last step did to each parameter that had feedback.
        candidates: how many texts a step takes the best of. Where it is more than one, `step` is given what scores
            them: an `Objective`, which runs each on a few training examples.

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

            @functools.wraps(own)
            def step(self: Optimizer, *args: Any, **kwargs: Any) -> Any:
                with self._whole(args, kwargs):
                    return own(self, *args, **kwargs)

            cls.step = step  # type: ignore[method-assign]

    def __init__(self, params: Iterable[Variable] | Iterable[dict[str, Any]], defaults: Mapping[str, Any]) -> None:
        if isinstance(params, Variable):
            raise TypeError("an optimizer takes an iterable of Variables, e.g. program.parameters(); got a single one")
        self.defaults = self._checked(defaults)
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
        for group in _groups(given):
            self.add_param_group(group)

    def add_param_group(self, group: Mapping[str, Any]) -> None:
        """Train further parameters, with settings of their own; see the class for errors."""
        where = f"param_groups[{len(self.param_groups)}]"
        variables = _trained(group, where)
        for variable in variables:
            if not isinstance(variable, Variable):
                raise TypeError(f"an optimizer trains Variables, got {type(variable).__name__}")
            if not variable.is_leaf:
                raise TypeError(
                    f"{label_of(variable)} is a result, not a leaf: it cannot be trained. To improve the text itself, "
                    "make a leaf of it: answer = nn.Parameter(answer)"
                )
        known = {id(v) for v in self.variables()}
        if len({id(v) for v in variables}) < len(variables) or any(id(v) in known for v in variables):
            raise ValueError("a parameter comes twice; each may be in one group, once")
        if unknown := [name for name in group if name != "params" and name not in self.defaults]:
            settings = ", ".join(sorted(self.defaults))
            raise ValueError(f"{where}: {type(self).__name__} has no setting {unknown[0]!r}; it has {settings}")
        with named(where):
            own = self._checked({name: value for name, value in group.items() if name != "params"})
        made = {**self.defaults, **own, "params": variables}
        if "max_tokens" in made and made["max_tokens"] is None:
            made["max_tokens"] = most_tokens(texts_now(variables))
        self.param_groups.append(made)
        self._warn_of_shared(made)

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

        A search asks its objective for what it wants, and is not asked here.
        """
        return True

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
            lines += [f"    {name}: {value!r:.80}" for name, value in settings.items()]
        return "\n".join([*lines, ")"])

    def zero_grad(self) -> None:
        """Forget the feedback on all parameters."""
        for variable in self.variables():
            variable.grad = None

    def step(self, closure: Closure | None = None) -> Any:
        """Change the parameters once, all of them or none.

        Args:
            closure: computes losses and calls backward again; its result is returned. An `Objective` is for those that
                choose among texts.

        Raises:
            TypeError: it is none that is called.
        """
        if closure is not None and not callable(closure):
            raise TypeError(
                f"{type(self).__name__} calls what step() is given, a function that computes losses and goes backward; "
                f"got {_told(closure)}"
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

    def _checked(self, settings: Mapping[str, Any]) -> dict[str, Any]:
        """Some or all settings of a group, checked; a subclass that has others extends it.

        Raises:
            TypeError: a setting is of a wrong kind.
            ValueError: a setting is out of range.
        """
        return shared(settings, type(self).__name__, self._several, solved=self._has_solved)

    def _warn_of_shared(self, group: Mapping[str, Any]) -> None:
        """Say so where a group asks of all its texts for what only some of them have."""
        variables = group["params"]
        found = kept_by_some(group.get("constraints", ()), [str(variable.data) for variable in variables])
        if found is not None:
            contract, keeps, lacks = found
            _log.warning(
                "%s asks for %r in all texts of a group: %s keeps it, and %s does not, so nothing new in that one is "
                "kept that does not say it, too; a contract of one text goes into its own group, {'params': [...], "
                "'constraints': [...]}",
                type(self).__name__,
                contract,
                label_of(variables[keeps]),
                label_of(variables[lacks]),
            )

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
        write_texts(written, [text for text, _ in written.values()])
        self._note_origins((variable, *each) for variable, each in written.items())

    def record_outcome(self, outcome: str) -> None:
        """Be told in words what became of the last step; an optimizer without memory does nothing with it."""

    def register_step_pre_hook(self, hook: StepHook) -> Handle:
        """Have ``hook(optimizer, args, kwargs)`` called before each step, with what `step` was given.

        As in `torch.optim`, but that `args` does not hold the optimizer once more, and what a hook returns is ignored.
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
            steps, said, variables = self.steps, self.changes, self.variables()
            data = [each.data for each in variables]
            before = [(str(each.data), self.origins(each), list(each.grad)) for each in variables]
            yield
            self._check_written(variables, data)
            if self.steps == steps and not self._counts_itself:
                self.steps += 1
            if self.changes is said:  # they are of the step before
                self.changes = []
            for variable, held in zip(variables, before):
                self._note_change(variable, *held)
            for hook in tuple(self._post_hooks.values()):
                hook(self, args, kwargs)
        finally:
            self._within = False

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in vars(self).items() if name != "_within"}  # a hook may make a copy

    def _check_written(self, variables: Sequence[Variable], before: Sequence[Any]) -> None:
        """A step writes texts, and leaves what does not require grad: nobody would race that, or take it back.

        Raises:
            ValueError: a step has changed such a parameter; all are as before it.
            TypeError: it has made something else than a text of one.
        """
        for variable, data in zip(variables, before):
            wrong: Exception | None = None
            if type(variable.data) is type(data) and variable.data == data:
                continue
            if isinstance(data, str) and not isinstance(variable.data, str):
                kind = type(variable.data).__name__
                wrong = TypeError(f"has made a {kind} of {label_of(variable)}; a parameter is a text")
            elif not variable.requires_grad:
                wrong = ValueError(
                    f"has changed {label_of(variable)}, which does not require grad; leave out what is frozen: `if "
                    "variable.requires_grad`"
                )
            if wrong is not None:
                write_texts(variables, before)
                what = f"{type(self).__name__}.step {wrong}. All parameters are as they were before the step"
                raise type(wrong)(what)

    def _note_change(
        self, variable: Variable, before: str, origins: Sequence[Origin | None], feedback: Sequence[Variable]
    ) -> None:
        """Note what a step did to a parameter, as far as it has not done so itself, or has gone on after it had.

        Args:
            variable: the parameter.
            before: its text before the step.
            origins: of the lines of that.
            feedback: on the parameter before the step; what the step's closure gave counts instead.
        """
        after = str(variable.data)
        change = next((each for each in self.changes if each.variable is variable), None)
        held = self.state.get(variable, {}).get("origins")
        # Of a search, changes are what was proposed, and need not be in the parameters.
        stale = change is not None and not self._counts_itself and (change.before, change.after) != (before, after)
        if after == before and not stale:
            return
        if change is None:
            change = Change(variable, before, after, items=collect(variable.grad or feedback).items)
            self.changes = [*self.changes, change]
        elif stale:
            items = change.items if change.before == before else collect(variable.grad or feedback).items
            whole = Change(variable, before, after, items=items, left_out=change.left_out, problem=change.problem)
            self.changes = [whole if each is change else each for each in self.changes]
            if held is not None and held[0] == change.after and after != before:
                before, origins = held  # what it has done before it went on has its own
            change = whole
        if held is not None and held[0] == after:
            return
        if after == before:
            self._note_origins([(variable, after, origins)])
            return
        evidence = [item.evidence for item in change.items]
        lines: Sequence[Origin | None] = ()
        with contextlib.suppress(ValueError, IndexError):  # edits that are not what was done
            text, made = apply_patch(before, origins, change.edits, evidence, self.steps)
            lines = made if text == after else ()
        if not lines:
            lines = _quoting(after, origins_of_rewrite(before, origins, after, "", evidence, self.steps), self.steps)
        self._note_origins([(variable, after, lines)])

    def state_dict(self) -> dict[str, Any]:
        """State and settings as plain data; parameters are numbered in order.

        JSON can hold it, and give it back to `load_state_dict`, unless a group's settings have objects of your own
        (contracts, transforms, a proposer).
        """
        numbers = {id(v): n for n, v in enumerate(self.variables())}
        groups = [
            {**{k: v for k, v in group.items() if k != "params"}, "params": [numbers[id(v)] for v in group["params"]]}
            for group in self.param_groups
        ]
        state = {numbers[id(variable)]: _plain(entry) for variable, entry in self.state.items()}
        return {"optimizer": type(self).__name__, "state": state, "param_groups": groups, "steps": self.steps}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Take over what `state_dict` gave; the parameters themselves, and their requires_grad, stay as they are.

        So does a setting of a group that the state does not have, as it may have been saved before there was one.

        After an error everything is as before.

        Raises:
            ValueError: it is another optimizer's, belongs to other groups, lacks something, or has a setting that is
                unknown or out of range.
            TypeError: it is no state, or a setting in it is of a wrong kind.
        """
        self._check_owner(state)
        try:
            take = self._reading(state)
        except KeyError as error:
            raise ValueError(f"the state lacks {error}, which that of {type(self).__name__} has") from error
        take()

    def _check_owner(self, state: Mapping[str, Any]) -> None:
        given: object = state
        if not isinstance(given, Mapping):
            raise TypeError(f"load_state_dict takes what state_dict gave, got {type(given).__name__} {given!r:.60}")
        own, name = type(self).__name__, given.get("optimizer")
        if name is None:  # it was saved before states had the name, so that only its shape can tell
            known = _shape(self.state_dict())
            foreign = [part for part in _shape(given) if part not in known]
            if foreign:
                raise ValueError(f"the state is another optimizer's: it has {foreign[0]}, which that of {own} has not")
        elif name not in [kind.__name__ for kind in type(self).__mro__]:
            raise ValueError(
                f"the state is that of {name}, and this optimizer is {own}; load it into {name} with as many parameters"
            )

    def _reading(self, state: Mapping[str, Any]) -> Callable[[], None]:
        """Read a state, and change nothing; what is returned takes it over. A subclass with more in it extends this.

        Raises:
            KeyError: it lacks something.
            ValueError: it belongs to other groups, or a setting is out of range.
            TypeError: a setting is of a wrong kind.
        """
        sizes = [len(group["params"]) for group in self.param_groups]
        theirs = [len(group["params"]) for group in state["param_groups"]]
        if sizes != theirs:
            raise ValueError(f"the state is for groups of {theirs} parameters; this optimizer has groups of {sizes}")
        settings = []
        for number, other in enumerate(state["param_groups"]):
            with named(f"param_groups[{number}] of the state"):
                if strange := [name for name in other if name not in ("params", *self.defaults)]:
                    raise ValueError(f"{type(self).__name__} has no setting {strange[0]!r}")
                settings.append(self._checked({name: value for name, value in other.items() if name != "params"}))
        variables = dict(enumerate(self.variables()))
        steps = int(state["steps"])
        if strange := [number for number in state["state"] if int(number) not in variables]:
            raise ValueError(
                f"the state is of parameter {strange[0]}, too; this optimizer has 0 to {len(variables) - 1}"
            )
        held = {variables[int(number)]: _taken(entry) for number, entry in state["state"].items()}

        def take() -> None:
            for group, own in zip(self.param_groups, settings):
                group.update(own)
            self.steps, self.state = steps, held

        return take


def check_step_cancelled() -> None:
    """Called by a step before it writes parameters.

    Raises:
        CallCancelled: nobody waits for the step any more.
    """
    dispatch.check_cancelled("this step", "the parameters are as they were")


def _groups(given: Sequence[Any]) -> Sequence[Any]:
    """What an optimizer was given, as groups.

    Raises:
        TypeError: some of it are groups, and some are not.
    """
    groups = [isinstance(each, Mapping) for each in given]
    if not any(groups):
        return [{"params": given}]
    if not all(groups):
        number = groups.index(False)
        raise TypeError(
            f"params[{number}] is {_told(given[number])}, and params[{groups.index(True)}] is a group; give parameters "
            'only or groups only: {"params": [...]} makes a group of it'
        )
    return given


def _trained(group: Mapping[str, Any], where: str) -> list[Any]:
    """What a group says is to be trained.

    Raises:
        TypeError: it is no group, or its "params" are no sequence.
        ValueError: it has no "params".
    """
    given: object = group
    if not isinstance(given, Mapping):
        raise TypeError(f'{where}: a group is {{"params": [...]}} with settings of its own, got {_told(given)}')
    if "params" not in given:
        has = f"only {', '.join(map(repr, given))}" if given else "nothing in it"
        raise ValueError(f'{where} has no "params": write {{"params": [...], ...}}; it has {has}')
    params = given["params"]
    if isinstance(params, Variable):
        return [params]
    if not isinstance(params, Iterable):
        raise TypeError(f'{where}: "params" is a sequence of Variables, got {type(params).__name__}')
    return list(params)


def _quoting(text: str, origins: Sequence[Origin | None], step: int) -> list[Origin | None]:
    """The origins of lines; those of a step that quote feedback, or are quoted by it, are edits that answer that alone.

    Args:
        text: the lines.
        origins: of these, where each run of lines that the step wrote is one edit.
        step: the step.
    """
    found: list[Origin | None] = []
    number = sum(1 for _ in {each.edit for each in origins if each is not None and each.step == step})
    run, quoted, edit = "", None, ""
    for line, origin in zip(text.split("\n"), origins):
        if origin is None or origin.step != step:
            found.append(origin)
            continue
        words = line.strip()
        said = tuple(each for each in origin.evidence if words and (words in each.text or each.text in words))
        if origin.edit != run:
            run, quoted, edit = origin.edit, said, origin.edit
        elif words and said != quoted:
            number += 1
            quoted, edit = said, f"{step}.{number}"
        found.append(replace(origin, edit=edit, evidence=quoted or origin.evidence))
    return found


def _told(value: object) -> str:
    return label_of(value) if isinstance(value, Variable) else f"{type(value).__name__} {value!r:.60}"


def _shape(state: Mapping[str, Any]) -> list[str]:
    """What a state is made of, in words: its keys, those of what a search remembers, and the settings of its groups."""
    settings = sorted({name for group in state.get("param_groups", ()) for name in group})
    return [
        *(repr(name) for name in state if name != "optimizer"),
        *(f"memory[{name!r}]" for name in state.get("memory") or ()),
        *(f"the setting {name!r}" for name in settings),
    ]


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
