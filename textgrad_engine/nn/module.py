"""`Module`: a program with named parameters and parts, as `torch.nn.Module`."""

from __future__ import annotations

import asyncio
import copy
import inspect
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any, Self, cast

from textgrad_engine import pytree
from textgrad_engine.autograd import Variable
from textgrad_engine.autograd.graph import Handle
from textgrad_engine.autograd.value import as_flag
from textgrad_engine.dispatch import Scope, aside
from textgrad_engine.keywords import names_told
from textgrad_engine.llm.model import Model
from textgrad_engine.nn.covered import cover, put, take_out, uncover, was_buffer
from textgrad_engine.nn.module_hooks import WithKwargs, register
from textgrad_engine.nn.names import check_free, check_name, check_seen, dotted, each_once, walk
from textgrad_engine.nn.other_libraries import ELSEWHERE
from textgrad_engine.nn.overlooked import tell_of_overlooked
from textgrad_engine.nn.parameter import Parameter
from textgrad_engine.nn.replaced import REPLACED, in_this_call, replacing
from textgrad_engine.nn.side_by_side import ASSIGNED
from textgrad_engine.nn.state import IncompatibleKeys, load_state, state_of
from textgrad_engine.nn.trained import TRAINED, WATCHED, check_known, notice
from textgrad_engine.tracebacks import hide


class Module:
    """Base of programs: assign Parameters, buffers and other Modules in `__init__`, write `forward`, call the module.

    A deep copy is a program of its own that asks the same models: a model that a module holds, by itself or in a list,
    tuple or dict, is shared, with its connections, limits and counts. Pickle shares nothing: a module that is to be
    pickled names its models (``"openai/gpt-5-mini"``) instead of holding them, as those of the library hold locks.

    Example:
        >>> class Greeter(Module):
        ...     def __init__(self):
        ...         super().__init__()
        ...         self.greeting = Parameter("Hello", role="greeting")
        ...     def forward(self, name):
        ...         return self.greeting + ", " + name
        >>> str(Greeter()("Ann"))
        'Hello, Ann'
        >>> [name for name, _ in Greeter().named_parameters()]
        ['greeting']
    """

    training: bool
    _parameters: dict[str, Parameter | None]
    _buffers: dict[str, Variable | None]
    _modules: dict[str, Module]
    _forward_hooks: dict[int, Callable[..., Any]]
    _forward_pre_hooks: dict[int, Callable[..., Any]]

    @names_told
    def __init__(self) -> None:
        for name in ("_parameters", "_buffers", "_modules", "_forward_hooks", "_forward_pre_hooks"):
            object.__setattr__(self, name, {})
        object.__setattr__(self, "training", True)

    def forward(self, /, *args: Any, **kwargs: Any) -> Any:
        """Compute the result; to be written by every subclass."""
        raise NotImplementedError(f"{type(self).__name__} needs a `forward`")

    def __call__(self, /, *args: Any, **kwargs: Any) -> Any:
        """Run the hooks and `forward`.

        Raises:
            DispatchError: a run trains the module, and this thread knows nothing of the run (a thread pool's).
        """
        try:
            if TRAINED:
                check_known(self, TRAINED.get(id(self), ()))
            if WATCHED:
                notice(self, WATCHED.get(id(self), ()))
            for hook in tuple(self._forward_pre_hooks.values()):
                if isinstance(hook, WithKwargs):
                    args, kwargs = hook.before(self, args, kwargs)
                    continue
                changed = hook(self, args)
                if changed is not None:
                    args = changed if isinstance(changed, tuple) else (changed,)
            result = self.forward(*args, **kwargs)
            for hook in tuple(self._forward_hooks.values()):
                keywords = (kwargs,) if isinstance(hook, WithKwargs) else ()
                changed = hook(self, args, *keywords, result)
                if changed is not None:
                    result = changed
        except BaseException as error:
            hide(error, boundary=__name__)
            raise
        return result

    async def aforward(self, /, *args: Any, **kwargs: Any) -> Any:
        """Call the module from code that has an event loop of its own; the loop is not blocked.

        The module is called in a thread, so its forward may wait for answers. All Variables in the result, also in
        tuples, lists and dicts, are computed. A forward that is an ``async def`` is awaited. When the wait is
        cancelled, so are its calls. A module whose forward does not wait may also be called directly; then ``await``
        its Variable.

        Raises:
            ModelError: an answer that the result depends on is not to be had.

        Example:
            >>> import asyncio
            >>> class Shout(Module):
            ...     def forward(self, text):
            ...         return Variable(text.upper(), role="shout")
            >>> asyncio.run(Shout().aforward("hello")).data
            'HELLO'
        """

        def call() -> Any:
            result = self(*args, **kwargs)
            return result if inspect.iscoroutine(result) else _computed(result)

        result = await aside(call)
        if not inspect.iscoroutine(result):
            return result
        with Scope() as calls:
            try:
                awaited = await result
                return await aside(lambda: _computed(awaited))
            except asyncio.CancelledError:
                calls.cancel()
                raise

    # attributes

    def __setattr__(self, name: str, value: Any) -> None:
        if "_parameters" not in self.__dict__:
            if isinstance(value, Variable | Module):
                raise AttributeError(
                    f"{type(self).__name__}.{name} was assigned before super().__init__() was called in its __init__"
                )
            object.__setattr__(self, name, value)
            return
        if (assigned := ASSIGNED.get()) is not None:
            assigned.note(self, name, vars(self).get(name, self), value)
        if isinstance(value, Parameter):
            check_name(self, name, "parameter")
            self._put(self._parameters, name, value)
        elif isinstance(value, Module):
            self._put(self._modules, name, value)
        elif name in self._parameters:
            if value is not None:
                raise TypeError(
                    f"{type(self).__name__}.{name} is a Parameter and was assigned {type(value).__name__}. "
                    f"Assign nn.Parameter(...), or set its text: .{name}.data = ..."
                )
            self._parameters[name] = None
        elif name in self._buffers and (value is None or isinstance(value, Variable)):
            self._buffers[name] = value
        elif isinstance(value, Variable) and was_buffer(self, name):
            self._put(self._buffers, name, value)
        else:
            cover(self, name, value)
            for store in self._stores():
                store.pop(name, None)
            object.__setattr__(self, name, value)

    def __getattr__(self, name: str) -> Any:
        replaced = REPLACED.get()
        if replaced and (id(self), name) in replaced:
            return replaced[id(self), name][1]
        for store in ("_parameters", "_buffers", "_modules"):
            found = self.__dict__.get(store)
            if found is not None and name in found:
                return found[name]
        if name.startswith("_") and "_parameters" not in self.__dict__:
            raise AttributeError(
                f"{type(self).__name__}.__init__ did not call super().__init__(), which comes first in it"
            )
        if hasattr(type(self), name):  # a property, in whose own code something is missing: that is said again
            return object.__getattribute__(self, name)
        raise AttributeError(f"{type(self).__name__} has no attribute {name!r}{ELSEWHERE.get(name, '')}")

    def __delattr__(self, name: str) -> None:
        if not take_out(self, name):
            object.__delattr__(self, name)
            uncover(self, name)

    def __dir__(self) -> list[str]:
        held = [name for store in ("_parameters", "_buffers", "_modules") for name in vars(self).get(store, ())]
        return [*super().__dir__(), *filter(str.isidentifier, held)]

    def _stores(self) -> tuple[dict[str, Any], ...]:
        return self._parameters, self._buffers, self._modules

    def _put(self, store: dict[str, Any], name: str, value: Any) -> None:
        """Keep a value under a name: in its place where the store has the name, and nowhere else."""
        check_seen(self, name)
        for other in (self.__dict__, *self._stores()):
            if other is not store:
                other.pop(name, None)
        put(self, store, name, value)

    def register_parameter(self, name: str, parameter: Parameter | None) -> None:
        """Make `parameter` one of the module's, under `name`; None keeps the name for one that there is not yet.

        Raises:
            KeyError: the name is empty, has a dot in it, or is one of the class's attributes; or a buffer or a part has
                it.
            TypeError: it is no Parameter.
        """
        check_name(self, name, "parameter")
        if not isinstance(parameter, Parameter | None):
            raise TypeError(
                f"{type(self).__name__}: {name!r} was to be a parameter, and is {type(parameter).__name__} "
                f"{parameter!r:.40}. Give nn.Parameter(text, role=...), or None for one that there is not yet."
            )
        check_free(self, name, "parameter")
        self._put(self._parameters, name, parameter)

    @names_told
    def register_buffer(self, name: str, value: Variable | None) -> None:
        """Keep a Variable that belongs to the state but is never trained; None keeps the name, and is in no state.

        Raises:
            KeyError: the name is empty, has a dot in it, or is one of the class's attributes; or a parameter or a part
                has it.
            TypeError: it is no Variable.
        """
        check_name(self, name, "buffer")
        if not isinstance(value, Variable | None):
            raise TypeError(
                f"{type(self).__name__}: {name!r} was to be a buffer, and is {type(value).__name__} {value!r:.40}. "
                "Give Variable(text, role=...), or None for one that there is not yet."
            )
        check_free(self, name, "buffer")
        self._put(self._buffers, name, value)

    # walking

    def children(self) -> Iterator[Module]:
        """The modules that are parts of this one, each once."""
        return (module for _, module in self.named_children())

    def named_children(self) -> Iterator[tuple[str, Module]]:
        """The parts with their names; one that has several comes once, under the first."""
        first = {id(part): name for name, part in reversed(self._modules.items())}
        return ((name, part) for name, part in self._modules.items() if first[id(part)] == name)

    def modules(self) -> Iterator[Module]:
        """This module and all below it, each once."""
        return (module for _, module in self.named_modules())

    def named_modules(self, prefix: str = "", remove_duplicate: bool = True) -> Iterator[tuple[str, Module]]:
        """This module and all below it with dotted names ("" is this one).

        Args:
            prefix: stands before the names.
            remove_duplicate: a module that has several names comes once, under the first; False gives it under each
                (not inside itself; and what is inside of one that is, or holds, a part of itself has one name for it,
                or there would be names without end).
        """
        return walk(self, prefix, remove_duplicate)

    def parameters(self, recurse: bool = True) -> Iterator[Parameter]:
        """The parameters, those of the parts included; one that is used twice comes once.

        Parameters in plain lists and dicts are not included; the log warns of them, once.
        """
        if recurse:
            tell_of_overlooked(self)
        return (parameter for _, parameter in self.named_parameters(recurse=recurse))

    def named_parameters(
        self, prefix: str = "", recurse: bool = True, remove_duplicate: bool = True
    ) -> Iterator[tuple[str, Parameter]]:
        """The parameters with their dotted names; inside a `func.functional_call`, the values that stand for them.

        Args:
            prefix: stands before the names.
            recurse: False leaves those of the parts out.
            remove_duplicate: one that has several names comes once, under the first; False gives it under each.
        """
        return cast("Iterator[tuple[str, Parameter]]", self._named("_parameters", prefix, recurse, remove_duplicate))

    def buffers(self, recurse: bool = True) -> Iterator[Variable]:
        """The buffers, those of the parts included; one that is used twice comes once."""
        return (buffer for _, buffer in self.named_buffers(recurse=recurse))

    def named_buffers(
        self, prefix: str = "", recurse: bool = True, remove_duplicate: bool = True
    ) -> Iterator[tuple[str, Variable]]:
        """The buffers with their dotted names; see `named_parameters`."""
        return self._named("_buffers", prefix, recurse, remove_duplicate)

    def _named(self, store: str, prefix: str, recurse: bool, remove_duplicate: bool) -> Iterator[tuple[str, Variable]]:
        """What modules keep in one of their stores, with dotted names."""
        seen: set[int] = set()
        for path, module in self.named_modules(prefix, remove_duplicate) if recurse else [(prefix, self)]:
            for name, value in getattr(module, store).items():
                if value is None or id(value) in seen:
                    continue
                if remove_duplicate:
                    seen.add(id(value))
                yield dotted(path, name), in_this_call(module, name, value)

    # state

    @names_told
    def state_dict(self) -> dict[str, dict[str, Any]]:
        """Every parameter and buffer by dotted name, as plain data: ``{"data", "role", "requires_grad"}``; a copy."""
        return state_of(self)

    @names_told
    def load_state_dict(self, state: Mapping[str, Mapping[str, Any] | str], strict: bool = True) -> IncompatibleKeys:
        """Take over the values of a `state_dict`; nothing changes when it does not fit.

        Args:
            state: what `state_dict` gave. Where an entry is a text, as in ``store.read_run(path).best``, role and
                requires_grad stay as they are.
            strict: False ignores names that only one side has.

        Returns:
            The names that only one side has; with `strict` there are none.

        Raises:
            KeyError: strict, and names are missing or unexpected; all are named. Or two names of one parameter come
                with different values.
            TypeError: the state, or an entry of it, has another form; or strict is neither True nor False.
        """
        return load_state(self, state, strict)

    def _with_parameters(self, overrides: Mapping[str, Any]) -> AbstractContextManager[None]:
        """Inside the block, for this task or thread and what it starts, other values stand for some of the state."""
        return replacing(self, overrides)

    # modes

    def train(self, mode: bool = True) -> Self:
        """Set training mode here and in all parts: `training` is for your own `forward` to read.

        A run and `tg.evaluate` leave it as it is: training and validation scores are compared and not bought twice, so
        both come from the same mode. If the program answers differently in evaluation mode, call `eval` before either.

        Raises:
            TypeError: it is neither True nor False, such as examples, which `Trainer.fit` takes.
        """
        mode = as_flag(mode, "train() sets the mode, which")
        for module in self.modules():
            module.training = mode
        return self

    def eval(self) -> Self:
        """Set evaluation mode: `train(False)`."""
        return self.train(False)

    def requires_grad_(self, requires_grad: bool = True) -> Self:
        """Freeze or unfreeze all parameters."""
        for _, parameter in self.named_parameters():
            parameter.requires_grad_(requires_grad)
        return self

    @names_told
    def zero_grad(self) -> None:
        """Forget the feedback on all parameters."""
        for _, parameter in self.named_parameters():
            parameter.grad = None

    # hooks

    @names_told
    def register_forward_pre_hook(
        self, hook: Callable[..., Any], *, prepend: bool = False, with_kwargs: bool = False
    ) -> Handle:
        """Have ``hook(module, args)`` called before forward; what it returns replaces the positional arguments.

        Args:
            hook: what is called; None from it keeps the arguments.
            prepend: call it before the hooks that are registered already.
            with_kwargs: call ``hook(module, args, kwargs)``, which returns None or a pair ``(args, kwargs)``.

        Returns:
            A handle whose `remove()` takes the hook away.
        """
        return register(self._forward_pre_hooks, hook, prepend, with_kwargs)

    @names_told
    def register_forward_hook(
        self, hook: Callable[..., Any], *, prepend: bool = False, with_kwargs: bool = False
    ) -> Handle:
        """Have ``hook(module, args, result)`` called after forward; what it returns replaces the result.

        Args:
            hook: what is called; None from it keeps the result.
            prepend: call it before the hooks that are registered already.
            with_kwargs: call ``hook(module, args, kwargs, result)``.

        Returns:
            A handle whose `remove()` takes the hook away.
        """
        return register(self._forward_hooks, hook, prepend, with_kwargs)

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        for value in pytree.leaves(vars(self)):
            if isinstance(value, Model) and not isinstance(value, Module):
                memo[id(value)] = value
        other = type(self).__new__(type(self))
        memo[id(self)] = other
        state: Any = copy.deepcopy(self.__getstate__(), memo)
        if hasattr(other, "__setstate__"):
            other.__setstate__(state)
        else:  # a pair where a subclass has slots
            attributes, slots = state if isinstance(state, tuple) else (state, {})
            vars(other).update(attributes or {})
            for name, value in slots.items():
                object.__setattr__(other, name, value)
        return other

    def extra_repr(self) -> str:
        """What `repr` shows beside parameters and parts; for a module of one's own to write."""
        return ""

    def _shown_parts(self) -> dict[str, Any]:
        return {**self._parameters, **self._modules}

    @each_once
    def __repr__(self) -> str:
        extra = self.extra_repr()
        lines = [f"({name}): {value!r}" for name, value in self._shown_parts().items()]
        if not lines and "\n" not in extra:
            return f"{type(self).__name__}({extra})"
        lines = [extra, *lines] if extra else lines
        inside = "".join("\n  " + line.replace("\n", "\n  ") for line in lines)
        return f"{type(self).__name__}({inside}\n)"


if TYPE_CHECKING:

    class OneVariable(Module):
        """A module that gives one Variable, as type checkers see it; others may give anything."""

        def __call__(self, /, *args: Any, **kwargs: Any) -> Variable:
            """See `Module`."""

        async def aforward(self, /, *args: Any, **kwargs: Any) -> Variable:
            """See `Module.aforward`."""

else:
    OneVariable = Module

_WithKwargs = WithKwargs  # modules with such a hook were pickled under this name


def _computed(result: Any) -> Any:
    """What a program gave, when all Variables in it are there.

    Raises:
        BaseException: what the computation of one raised.
    """
    for leaf in pytree.leaves(result):
        if isinstance(leaf, Variable):
            _ = leaf.data
    return result
