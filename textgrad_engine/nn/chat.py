"""One call of a model as a module: a system prompt and a user template."""

from __future__ import annotations

import functools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from textgrad_engine.autograd import Variable
from textgrad_engine.autograd.value import as_role, excerpt
from textgrad_engine.checks import check
from textgrad_engine.keywords import names_told
from textgrad_engine.llm.conversation import is_conversation, problem_of, turns_of
from textgrad_engine.llm.model import Model
from textgrad_engine.llm.request import GenerateConfig, config_from
from textgrad_engine.nn.chat_settings import AS_MADE, SETTINGS, Setting, assign, is_setting
from textgrad_engine.nn.containers import ModuleDict
from textgrad_engine.nn.module import Module, OneVariable
from textgrad_engine.nn.tool import Tool
from textgrad_engine.ops.chat_completion import complete
from textgrad_engine.ops.messages import ChatSettings, Hole, Plan
from textgrad_engine.ops.offered import Offered, name_of_tool, part_names, taken_apart, without_values
from textgrad_engine.ops.planning import plan_of_conversation
from textgrad_engine.ops.tools import MAX_TURNS, tools_of
from textgrad_engine.slots import SLOT_NAMES, by_composed_name, doubled, not_slots, slots_of

_SHOWN_BY_ITSELF = ("response_format", "tools", "extra")
"""The settings whose repr is too long for that of a module, or tells what is nobody's business."""


class ChatCompletion(OneVariable):
    """Asks a model: `system` and `user` are texts, Variables or Parameters with ``{slots}``; call it with their values.

    Pass values by the names of their slots; if only one slot is left, its value may be positional. If the user template
    is one slot and nothing else, its value may be a conversation: a list of messages as in OpenAI's API, the last of
    which is to be answered. Tool calls in it, and their results, are sent as they are. A content may be a Variable,
    such as an earlier answer of the program, which then gets feedback, too.

    Its settings may be assigned later under the same names (``chat.model = ...``, ``chat.temperature = 0.7``), for the
    next call on; but not `tools` and `max_turns`.

    Args:
        user: the template of the user message.
        system: the system message; None for none.
        model: asks this model; None stands for the one of `use_models`.
        role: the role of the answer.
        response_format: a pydantic model, a dataclass, a TypedDict, a JSON schema or a ResponseFormat; the answer is
            then JSON.
        tools: functions that the model may call, which are run for it; see `ops.chat_completion`. An `nn.Tool` makes a
            function's description trainable.
        max_turns: with tools, how often the model is asked at most.
        config: sampling settings (temperature, max_tokens, …).

    Raises:
        TypeError: `user`, `system` or `role` is no text. A tool is none (see `ops.chat_completion`). A conversation is
            given to a template that has more than its slot, ends with an answer, or has what is no text. A call names a
            slot that neither template has, leaves one out, or gives None for one; or values come without a name, and it
            is not plain which slots they are for.
        ValueError: a call gives a number that is none (NaN).
        AttributeError: tools or max_turns are assigned later.

    Example:
        >>> from textgrad_engine.testing import FunctionModel
        >>> echo = FunctionModel(lambda request: request.messages[-1].text)
        >>> chat = ChatCompletion(system="Repeat what you hear.", user="I say {what}.", model=echo)
        >>> str(chat(what="hello")), str(chat("hello"))
        ('I say hello.', 'I say hello.')
        >>> chat = ChatCompletion("{said}", system="Repeat what you hear.", model=echo)
        >>> said = [("user", "Hi!"), ("assistant", "Hello, what is it?"), ("user", "My lamp is dark.")]
        >>> str(chat([{"role": role, "content": text} for role, text in said]))
        'My lamp is dark.'
    """

    _offered: tuple[str | Mapping[str, Any], ...] | None = None
    """What is told of each tool, or its name among `tools` where texts of it are trained; None where none is."""

    _apart: _TakenApart | None = None
    """What was told in the last call, taken apart."""

    @names_told
    def __init__(
        self,
        user: str | Variable,
        system: str | Variable | None = None,
        *,
        model: str | Model | None = None,
        role: str = "",
        response_format: Any = None,
        tools: Iterable[Any] | None = None,
        max_turns: int = MAX_TURNS,
        **config: Any,
    ) -> None:
        super().__init__()
        for name, text in (("user", user), ("system", "" if system is None else system)):
            if not isinstance(text, str | Variable):
                raise TypeError(
                    f"ChatCompletion: {name} is a text with {{slots}} or a Variable, "
                    f"got {type(text).__name__} {text!r:.60}"
                )
        check(ChatCompletion.__init__, {"model": model, "max_turns": max_turns})
        role = as_role(role)
        self.system = system
        self.user = user
        if isinstance(tools, Iterator):  # they are gone through more than once
            tools = tuple(tools)
        described, functions = tools_of(tools, max_turns, "ChatCompletion")
        if described is not None:
            config["tools"] = without_values(described)
            self._offer(tools or (), described)
        self.settings = ChatSettings(
            model=model,
            config=config_from({**config, "response_format": response_format}, ChatCompletion.__init__),
            role=role,
            tools=functions,
        )

    def __setattr__(self, name: str, value: Any) -> None:
        if "settings" not in vars(self) or (isinstance(value, Variable | Module) and name != "model"):
            super().__setattr__(name, value)
        elif name in AS_MADE and type(self) is ChatCompletion:  # a subclass may keep what it was given, for its code
            raise AttributeError(
                f"ChatCompletion: {name} is as it was made with; make a new one: nn.ChatCompletion(…, {name}=…)"
            )
        elif is_setting(type(self), name):
            assign(self, name, value, ChatCompletion.__init__)
        else:
            super().__setattr__(name, value)

    @property
    def slots(self) -> tuple[str, ...]:
        """The names of the slots of the user template; a call gives each a value."""
        text = _template(self.user)
        return slots_of(str(self.user) if text is None else text)

    @property
    def optional_slots(self) -> tuple[str, ...]:
        """The names of further slots in the system message, which stay as they are when they get no value."""
        text = _template(self.system)
        return () if text is None else tuple([name for name in slots_of(text) if name not in self.slots])

    def no_slots_of(self, names: Iterable[str]) -> list[str]:
        """Those of the names that stand in braces in its texts and are text there, as no slot can be called so."""
        return not_slots("".join([_template(text) or "" for text in (self.user, self.system)]), names)

    def extra_repr(self) -> str:
        """What it was given that is no Parameter: the texts, a model of its own, the form of answers, tools, settings.

        Of `extra` there are the names alone: a value may be a secret.
        """
        settings = self.settings
        config = settings.config
        given = {name: text for name in ("system", "user") if isinstance(text := getattr(self, name), str)}
        if (model := settings.model) is not None:
            given["model"] = model if isinstance(model, str) else model.name
        if settings.role:
            given["role"] = settings.role
        if config.response_format is not None:
            given["response_format"] = config.response_format.name
        shown = [f"{name}={excerpt(value)}" for name, value in given.items()]
        if config.tools:
            shown.append(f"tools=[{', '.join(map(name_of_tool, config.tools))}]")
        if settings.tools is not None and settings.tools.max_turns != MAX_TURNS:
            shown.append(f"max_turns={settings.tools.max_turns}")
        sampling = {name: getattr(config, name) for name in GenerateConfig.model_fields if name not in _SHOWN_BY_ITSELF}
        shown += [f"{name}={excerpt(value)}" for name, value in sampling.items() if value is not None]
        if config.extra:
            shown.append(f"extra=[{', '.join(config.extra)}]")
        return ", ".join(shown)

    def forward(self, /, *unnamed: Variable | str | list[Any], **values: Variable | str | list[Any]) -> Variable:
        """Fill the slots and ask; lists, and Variables with lists, are batches (see `ops.chat_completion`)."""
        slots, values = self.slots, by_composed_name(values)
        if unnamed:
            values[self._only_left(slots, unnamed, values)] = unnamed[0]
        for name, value in values.items():
            if type(value) is list and is_conversation(value):
                return self._continued(name, value, values)
        system, user, names = self.system, self.user, tuple(values)
        if names != slots:
            self._check(values, slots)
        texts = (user,) if system is None else (system, user)
        plan, given = _plan(system is not None, names), [*texts, *values.values()]
        if self._offered is not None:
            offered, told = self._tools_now()
            plan, given = _plan_offering(plan, offered, len(given)), [*given, *told]
        return complete(self.settings, plan, given, "ChatCompletion")

    def problem_with(self, slot: str, value: list[Mapping[str, Any]]) -> str:
        """Why a conversation cannot be the value of a slot, with the repair; "" where it can.

        Args:
            slot: the name of the slot.
            value: the messages.
        """
        user = _template(self.user) or ""
        if user.strip() != f"{{{slot}}}":
            return (
                f"a conversation, which stands for whole messages, and the user template {excerpt(user)} has more than "
                f"that slot; write user={f'{{{slot}}}'!r}"
            )
        return problem_of(value, own_system=self.system is not None)

    def _continued(self, name: str, said: list[Mapping[str, Any]], values: Mapping[str, Any]) -> Variable:
        """Have the model answer a conversation, which stands in the place of the user message."""
        system, others = self.system, {slot: value for slot, value in values.items() if slot != name}
        self._check(values, self.slots)
        texts_of = [message.get("content") for message in said]
        said = [{**each, "content": ""} if isinstance(each.get("content"), Variable) else each for each in said]
        if why := self.problem_with(name, said):
            raise TypeError(f"ChatCompletion: the value of {{{name}}} is {why}")
        turns = turns_of(said)
        plan = plan_of_conversation(system is not None, tuple(others), turns)
        texts = () if system is None else (system,)
        own = [text if isinstance(text, Variable) else turn.text for text, turn in zip(texts_of, turns)]
        given = [*texts, *others.values(), *own]
        if self._offered is not None:
            offered, told = self._tools_now()
            plan, given = replace(plan, offered=offered.behind(len(given))), [*given, *told]
        return complete(self.settings, plan, given, "ChatCompletion")

    def _offer(self, tools: Iterable[Any], described: Sequence[Mapping[str, Any]]) -> None:
        """Keep what is told of the tools, of which some have texts of their own.

        Raises:
            TypeError: a description has Variables in it, which would be no Parameters of this module.
            ValueError: two have one name.
        """
        own: dict[str, Module] = {}
        offered: list[str | Mapping[str, Any]] = []
        names = [name_of_tool(told) for tool, told in zip(tools, described) if isinstance(tool, Tool)]
        if twice := [name for name in names if names.count(name) > 1]:
            raise ValueError(f"ChatCompletion: two tools are called {twice[0]!r}; rename one")
        parts = part_names(names)
        for tool, told in zip(tools, described):
            name = name_of_tool(told)
            if not isinstance(tool, Tool) and taken_apart([told], 0)[1]:
                raise TypeError(
                    f"ChatCompletion: the description of {name!r} has Variables in it, which would be no Parameters of "
                    "this module; give nn.Tool(described, description=…)"
                )
            if isinstance(tool, Tool):
                own[parts[name]] = tool
            offered.append(parts[name] if isinstance(tool, Tool) else told)
        if own:
            self.tools = ModuleDict(own)
        if any(isinstance(each, str) for each in offered):
            self._offered = tuple(offered)

    def _tools_now(self) -> tuple[Offered, list[Any]]:
        """What is told of the tools, and the texts of this call that are its values."""
        held, offered = self.tools, self._offered or ()
        if held.keys() != {each for each in offered if isinstance(each, str)}:
            raise self._other_tools()
        tools = [held[each] if isinstance(each, str) else each for each in offered]
        own = [tool.texts() for tool in tools if isinstance(tool, Tool)]
        names = [tuple(texts) for texts in own]
        known = self._apart
        if known is None or known.tools != tools or known.names != names:
            run = () if self.settings.tools is None else self.settings.tools.functions
            for tool, as_made in zip(tools, self.settings.config.tools or ()):
                if not isinstance(tool, Module):
                    continue
                function = getattr(tool, "function", None)
                if getattr(tool, "name", None) != name_of_tool(as_made) or (
                    function is not None and function not in run
                ):
                    raise self._other_tools()
            known = self._apart = _TakenApart.of(tools, names)
        texts = [text for each in own for text in each.values()]
        return known.offered, [texts[n] for n in known.order]

    def _other_tools(self) -> ValueError:
        names = ", ".join(map(name_of_tool, self.settings.config.tools or ()))
        now = ", ".join([str(getattr(tool, "name", name)) for name, tool in self.tools.items()])
        return ValueError(
            f"ChatCompletion: it was made with the tools {names}, and has texts of {now or 'none'} now, which would be "
            "told of what is not run; make a new one with tools=[…]"
        )

    def _only_left(self, slots: tuple[str, ...], unnamed: tuple[Any, ...], values: Mapping[str, Any]) -> str:
        """The slot of the one value that has no name."""
        left = [name for name in slots if name not in values]
        if len(unnamed) == len(left) == 1 and not isinstance(unnamed[0], Mapping):
            return left[0]
        if not slots:
            how = "call it without values, as its user template has no slots"
        else:
            how = f"call it with its slots: chat({', '.join([f'{name}=…' for name in slots])})"
        if isinstance(unnamed[0], Mapping):
            how += "; of a dict of them, chat(**values)"
        count = (
            f"{len(unnamed)} values came"
            if len(unnamed) > 1
            else f"{type(unnamed[0]).__name__} {unnamed[0]!r:.40} came"
        )
        raise TypeError(f"ChatCompletion: {count} without a name; {how}")

    def _check(self, values: Mapping[str, Any], slots: tuple[str, ...]) -> None:
        known = {*slots, *self.optional_slots}
        unknown = [name for name in values if name not in known]
        if missing := [name for name in slots if name not in values]:
            raise TypeError(
                f"ChatCompletion: the user template has the slot {{{missing[0]}}}, and no value was given for it"
                + (f", but one for {unknown[0]!r}, which is no slot" if unknown else "")
            )
        if unknown:
            written = "".join([_template(text) or "" for text in (self.user, self.system)])
            why = doubled(written, unknown[:1])
            if self.no_slots_of(unknown[:1]):
                why = f"{{{unknown[0]}}} is text in it, as {SLOT_NAMES}: rename it"
            if not why and not slots:
                why = f"write {{{unknown[0]}}} where it belongs"
            raise TypeError(
                f"ChatCompletion: a value was given for {unknown[0]!r}, which is no slot; the user template "
                + (f"has {list(slots)}" if slots else f"has none: {excerpt(_template(self.user))}")
                + (f"; {why}" if why else "")
            )


for _name in SETTINGS:
    setattr(ChatCompletion, _name, Setting(_name))


def _template(text: str | Variable | None) -> str | None:
    """The text of a template; of a batch of them the first, which has the slots of all. None while it is computed."""
    if isinstance(text, Variable):
        text = text._lowest()
        return str(text.data) if text.done() else None
    return text


@functools.cache
def _plan(has_system: bool, names: tuple[str, ...]) -> Plan:
    roles = ("system", "user") if has_system else ("user",)
    messages = tuple([(role, (Hole(index),)) for index, role in enumerate(roles)])
    return Plan(messages, tuple([(name, len(roles) + index) for index, name in enumerate(names)]))


@functools.lru_cache(maxsize=256)
def _plan_offering(plan: Plan, offered: Offered, values: int) -> Plan:
    return replace(plan, offered=offered.behind(values))


@dataclass(frozen=True, eq=False, slots=True)
class _TakenApart:
    """Tools taken apart, for all calls in which the same of them are texts; to do it takes longer than a call.

    Attributes:
        tools: the tools with texts of their own, and what is told of the others.
        names: by which names each of the former has its texts.
        offered: what is told of them all.
        order: which of their texts, tool by tool, is which of its values.
    """

    tools: list[Any]
    names: list[tuple[str | None, ...]]
    offered: Offered
    order: tuple[int, ...]

    @classmethod
    def of(cls, tools: list[Any], names: list[tuple[str | None, ...]]) -> _TakenApart:
        """Take tools apart."""
        marks: list[Variable] = []
        described = []
        rest = iter(names)
        for tool in tools:
            if isinstance(tool, Tool):
                own = {name: Variable("") for name in next(rest)}
                marks += own.values()
                described.append(tool.described(own))
            else:
                described.append(tool)
        offered, values = taken_apart(described, 0)
        numbers = {id(mark): number for number, mark in enumerate(marks)}
        return cls(tools, names, offered, tuple([numbers[id(value)] for value in values]))
