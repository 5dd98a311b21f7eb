"""What a feedback transform is: a pure function of feedback and its own state, which chains with others.

The shape is that of a gradient transformation in optax: ``init`` gives a state, ``update`` maps what was gathered and
the state to new ones, and nothing is kept in the object, so that a state is saved and restored with the optimizer's.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Awaitable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, TypeAlias, runtime_checkable

from textgrad_engine import dispatch
from textgrad_engine.callables import check_method
from textgrad_engine.checks import in_order
from textgrad_engine.errors import ReturnError
from textgrad_engine.llm.model import Model
from textgrad_engine.optim.feedback import FeedbackItem
from textgrad_engine.wording import told


@dataclass(frozen=True)
class Gathered:
    """The feedback on one parameter on its way to the optimizer's model.

    Attributes:
        items: what was said, in the order in which it will be shown.
        history: past edits with what became of them, a line each, oldest first.
        left_out: how many items a transform had no room for.
    """

    items: tuple[FeedbackItem, ...]
    history: tuple[str, ...] = ()
    left_out: int = 0


@dataclass(frozen=True)
class Context:
    """What a transform may know of the step besides the feedback.

    Attributes:
        text: the parameter's text.
        role: the parameter's role.
        model: the model that the optimizer was given; None stands for the optimizer of `use_models`.
        step: the number of the step, from 1.
    """

    text: str
    role: str
    model: Model | str | None
    step: int


Updated: TypeAlias = tuple[Gathered, dict[str, Any]]
"""The feedback changed, and the state after it."""


@runtime_checkable
class FeedbackTransform(Protocol):
    """Changes the feedback on a parameter before a proposal is asked for.

    A state is plain data that JSON can hold: texts, numbers, lists, and dicts with texts as keys. It is never changed
    in place. An `update` that is no ``async def`` is run in a thread, and may wait. A transform that asks the
    optimizer's model may have an attribute `most_requests`, how often it does so in one update at most, which estimates
    count. A class of one's own that inherits from this one needs no `init` and no `record` if it remembers nothing.

    Example:
        >>> from dataclasses import replace
        >>> class First(FeedbackTransform):
        ...     def __init__(self, n):
        ...         self.n = n
        ...     def update(self, gathered, state, context):
        ...         return replace(gathered, items=gathered.items[: self.n]), state
        >>> First(2).update(Gathered((1, 2, 3)), {}, None)
        (Gathered(items=(1, 2), history=(), left_out=0), {})
    """

    def init(self) -> dict[str, Any]:
        """The state for a parameter that it has not seen yet; nothing, unless it is overridden."""
        return {}

    @abstractmethod
    def update(self, gathered: Gathered, state: dict[str, Any], context: Context) -> Updated | Awaitable[Updated]:
        """The feedback changed, and the state after it."""
        ...

    def record(self, state: dict[str, Any], lines: Sequence[str], outcome: str) -> dict[str, Any]:
        """The state after an edit was settled; the one before, unless it is overridden.

        Args:
            state: the state before.
            lines: the edit in words, a text for each thing that it changed.
            outcome: what became of it, in words.
        """
        return state


class Stateless(FeedbackTransform):
    """Base of transforms that look at the feedback alone and remember nothing."""

    @abstractmethod
    def apply(self, gathered: Gathered) -> Gathered:
        """The feedback changed."""
        ...

    async def update(self, gathered: Gathered, state: dict[str, Any], context: Context) -> Updated:
        """What `apply` gives, and the state as it was."""
        return self.apply(gathered), state


@dataclass(frozen=True)
class Chain:
    """Transforms one behind the other; see `chain`."""

    transforms: tuple[FeedbackTransform, ...]

    @property
    def most_requests(self) -> int:
        """How many requests an update makes at most."""
        return sum(getattr(transform, "most_requests", 0) for transform in self.transforms)

    def init(self) -> dict[str, Any]:
        """The states of all, in order."""
        return {"states": [transform.init() for transform in self.transforms]}

    async def update(self, gathered: Gathered, state: dict[str, Any], context: Context) -> Updated:
        """What the last one makes of what the one before it made of the feedback.

        Raises:
            ValueError: the state is of another chain.
        """
        after = []
        for transform, own in zip(self.transforms, self._states(state)):
            made = await dispatch.called(transform.update, gathered, own, context)
            gathered, own = _checked(made, transform)
            after.append(own)
        return gathered, {"states": after}

    def record(self, state: dict[str, Any], lines: Sequence[str], outcome: str) -> dict[str, Any]:
        """All are told.

        Raises:
            ReturnError: one that remembers something gives no state.
        """
        after = []
        for transform, own in zip(self.transforms, self._states(state)):
            told_of: object = transform.record(own, lines, outcome)
            if not isinstance(told_of, dict) and (own or told_of is not None):
                raise ReturnError(
                    f"{type(transform).__name__}.record() gave {told_of!r:.60}, and what it remembers would be lost; "
                    "give the state after it: `return state`"
                )
            after.append(told_of or {})
        return {"states": after}

    def _states(self, state: dict[str, Any]) -> list[dict[str, Any]]:
        states: list[dict[str, Any]] = state.get("states", [])
        if len(states) != len(self.transforms):
            raise ValueError(
                f"the state is of a chain of {len(states)} transforms, and this one has {len(self.transforms)}; "
                "load a state into an optimizer with the transforms that it was saved from"
            )
        return states


def _checked(made: object, transform: object) -> tuple[Gathered, dict[str, Any]]:
    """What a transform gave.

    Raises:
        ReturnError: it is no feedback with a state, or something in it is no item.
    """
    match made:
        case (Gathered() as gathered, dict() | None as state):
            for item in gathered.items:
                if not isinstance(item, FeedbackItem):
                    raise ReturnError(
                        f"{type(transform).__name__}.update() gave the item {item!r:.60}, and items are FeedbackItems: "
                        "one with another text is `dataclasses.replace(item, text=...)`"
                    )
            return gathered, state or {}
    raise ReturnError(
        f"{type(transform).__name__}.update() gave {made!r:.80}; give the feedback and the state after it: "
        "`return dataclasses.replace(gathered, items=...), state`"
    )


def chain(*transforms: FeedbackTransform) -> Chain:
    """Transforms one behind the other, the first one first; a chain in a chain is the same as its parts.

    Args:
        transforms: any number; none is `identity`.

    Raises:
        TypeError: one is no transform.

    Example:
        >>> from textgrad_engine.optim.transforms import cap, dedupe
        >>> chain(dedupe(), chain(cap(4000))) == chain(dedupe(), cap(4000))
        True
    """
    flat: list[FeedbackTransform] = []
    for transform in transforms:
        if isinstance(transform, Chain):
            flat.extend(transform.transforms)
        elif isinstance(transform, FeedbackTransform) and not isinstance(transform, type):
            check_method(transform, "init")
            check_method(transform, "update", "gathered", "state", "context", waits=True)
            check_method(transform, "record", "state", "lines", "outcome")
            flat.append(transform)
        else:
            of = getattr(transform, "__name__", "it")
            raise TypeError(
                f"a feedback transform has init(), update() and record(), such as dedupe(); got {told(transform)}"
                + (f"; give what it makes: {of}(...)" if callable(transform) else "")
            )
    return Chain(tuple(flat))


def chain_of(given: Iterable[FeedbackTransform]) -> Chain:
    """The chain that a setting ``transforms=[...]`` stands for.

    Raises:
        TypeError: it is no sequence of transforms.
    """
    if isinstance(given, Chain):
        return given
    if not isinstance(given, Iterable) or isinstance(given, type):
        raise TypeError(f"transforms is a sequence of feedback transforms, such as [dedupe()]; got {told(given)}")
    return chain(*in_order(given, "transforms: "))


def forgetful(given: Iterable[FeedbackTransform], owner: str) -> Chain:
    """`chain_of` for an optimizer whose proposals go on side by side, so that none can tell another what to remember.

    Args:
        given: the setting.
        owner: whose setting it is, for the error.

    Raises:
        TypeError: it is no sequence of transforms.
        ValueError: one of them remembers something from step to step.
    """
    found = chain_of(given)
    for transform in found.transforms:
        if transform.init():
            raise ValueError(
                f"{owner} makes proposals side by side, and {transform!r:.80} remembers the one before; leave it out "
                "(PatchSearch(momentum=...) shows what was tried), or train with TGD"
            )
    return found


def identity() -> Chain:
    """The transform that changes nothing: the empty chain."""
    return Chain(())
