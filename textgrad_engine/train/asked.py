"""What a program asks its models on an example: its calls, the texts that each uses, what it is given and answers.

NOTE [Which call uses a text]
    A level of the stack sees every operation of the program, as `func.trace` does, in the order of the program: those
    of a loop one after the other, those of a `pmap` item by item, each entry of a batch by itself; whether or not
    something is recorded for a backward pass, and whatever answers them (a cache, or the answers of a run that is
    resumed). A call uses a text that is among its values, or that one of them was made of, as far as operations tell;
    not one from which an earlier call's answer came. So a text belongs to the calls that it instructs, and one that
    describes a tool to none. A parameter that is not trained, in a slot, say, tells what to do as well, and is not what
    an example was given. What Python makes of `.data` is a text like any other, and what a tool or a Function asks
    inside of itself is not seen.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from textgrad_engine import pytree
from textgrad_engine.autograd import Function, Layer, Variable
from textgrad_engine.func.pmap import Place, next_place
from textgrad_engine.func.trace import failure_of
from textgrad_engine.ops.images import ContentPart
from textgrad_engine.ops.messages import Plan
from textgrad_engine.ops.model_call import ChatCompletion
from textgrad_engine.ops.pass_on import detached
from textgrad_engine.optim.demo_runs import Asked


@dataclass(eq=False, slots=True)  # not frozen, for which each attribute would be set by a call
class Call:
    """One call of a model, which may be under way.

    Attributes:
        place: where it stands in the order of the program.
        texts: the positions of the trained texts that it uses.
        prompts: the positions of the values that hold them, or other texts of the program's own.
        plan: its messages.
        values: what is in them; None in the place of prompts.
        answer: what is answered.
        before: the calls whose answers its values were made of.
        tools: the positions of the trained texts that describe its tools.
        in_form: whether the answer had to have a form.
    """

    place: Place
    texts: frozenset[int]
    prompts: frozenset[int]
    plan: Plan
    values: tuple[Any, ...]
    answer: Variable
    before: frozenset[Call]
    tools: frozenset[int] = frozenset()
    in_form: bool = False

    def asked(self) -> Asked | None:
        """What was asked and answered, which is waited for; None where there is no answer."""
        if failure_of(self.answer) is not None:  # the end does not depend on it
            return None
        given = self.plan.given(self.values, self.prompts)
        shows_all = ContentPart not in map(type, self.values) and not self.plan.with_parts
        tools = tuple(sorted(self.tools))
        answer = str(self.answer.data)
        return Asked(tuple(sorted(self.texts)), tuple(given), answer, shows_all, tools, self.in_form)


def asked_in(calls: Iterable[Call]) -> tuple[Asked, ...]:
    """What was asked and answered in a run, in the order of the program."""
    return tuple([asked for call in calls if (asked := call.asked()) is not None])


_Origin = tuple[frozenset[int], frozenset[Call]]
"""What a value was made of: trained texts, and answers."""

_NOTHING: _Origin = (frozenset(), frozenset())


class Asking(Layer):
    """The level that sees what is asked; see NOTE [Which call uses a text].

    Args:
        candidates: for each candidate that is run inside of it the leaves that hold its texts, in order.
        others: the program's parameters and buffers; those that are not trained are prompts, too.
    """

    def __init__(self, candidates: Iterable[Sequence[Variable]], others: Iterable[Variable] = ()) -> None:
        self._others = {id(leaf): leaf for leaf in others}
        self._origins: dict[int, tuple[Any, _Origin]] = {
            id(leaf): (leaf, (frozenset((position,)), frozenset()))
            for leaves in candidates
            for position, leaf in enumerate(leaves)
        }
        self._calls: list[Call] = []

    def process(self, function: type[Function], args: tuple[Any, ...]) -> Any:
        """Note what the call is made of, and pass it on."""
        if not issubclass(function, ChatCompletion):
            outs = function.apply(*args)
            origin = self._origin(pytree.leaves(args))
            if origin is not _NOTHING:
                for out in pytree.leaves(outs):
                    if isinstance(out, Variable):
                        self._origins[id(out)] = out, origin  # with the value, so that the id stays its own
            return outs
        place = next_place()
        outs = function.apply(*args)
        settings, plan, *values = args
        tools = frozenset[int]()
        if plan.offered is not None:  # what is told of a tool is no place for examples
            first = len(values) - len(plan.offered.descriptions)
            values, described = values[:first], values[first:]
            tools, _ = self._origin(described)
        texts, before = self._origin(values)
        prompts = frozenset([at for at, value in enumerate(values) if self._is_own(value)] if texts else ())
        held = tuple([None if at in prompts else detached(value) for at, value in enumerate(values)])
        answer = outs[0] if isinstance(outs, tuple) else outs
        in_form = settings.config.response_format is not None
        call = Call(place, texts, prompts, plan, held, detached(answer), before, tools, in_form)
        self._calls.append(call)
        self._origins[id(answer)] = answer, (frozenset(), frozenset((call,)))
        return outs

    def calls(self) -> tuple[Call, ...]:
        """All calls, in the order of the program."""
        return tuple(sorted(self._calls, key=lambda call: call.place))

    def calls_behind(self, value: Any) -> tuple[Call, ...]:
        """The calls that a value depends on, in the order of the program: of many runs those of one."""
        waiting, found = list(self._origin((value,))[1]), set[Call]()
        while waiting:
            call = waiting.pop()
            if call not in found:
                found.add(call)
                waiting.extend(call.before)
        return tuple(sorted(found, key=lambda call: call.place))

    def _is_own(self, value: Any) -> bool:
        return id(value) in self._others or bool(self._origin((value,))[0])

    def _origin(self, values: Iterable[Any]) -> _Origin:
        found = [known[1] for value in values if (known := self._origins.get(id(value))) is not None]
        if len(found) <= 1:
            return found[0] if found else _NOTHING
        texts, answers = zip(*found)
        return frozenset().union(*texts), frozenset().union(*answers)
