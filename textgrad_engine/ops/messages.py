"""Messages with holes: what stays the same over the calls of one place in a program, apart from their values."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

from textgrad_engine import fences, pytree
from textgrad_engine.autograd import Variable
from textgrad_engine.llm.conversation import with_calls
from textgrad_engine.llm.images import is_image, is_part, name_of_part
from textgrad_engine.llm.model import Model
from textgrad_engine.llm.request import GenerateConfig, Message, Purpose, Request
from textgrad_engine.llm.response_format import ResponseFormat
from textgrad_engine.ops.images import ContentPart, Show, in_words, not_shown, pictured
from textgrad_engine.ops.offered import Offered
from textgrad_engine.ops.tools import Tools
from textgrad_engine.slots import fill, fill_around, slots_of

_NO_TOOLS: Mapping[str, Any] = {}

_REMEMBERED = 20_000
"""Characters above which a message is made anew each time, instead of kept for the next call."""


@dataclass(frozen=True, eq=False)
class ChatSettings:
    """What stays the same over the calls of one place in a program.

    Attributes:
        model: asks this model; None stands for the one of `use_models` for the purpose.
        config: sampling settings.
        purpose: why it is asked.
        role: the role of the answer.
        strict: an input that no message has a slot for is an error.
        optional: the inputs of which it is none.
        spelled_out: those of which it is none where a message holds their text all the same.
        silence: the answer when the gate of a call is empty, without asking anybody.
        sample: which sample of equal requests is wanted; see `llm.repeat`.
        of: the settings that these are another sample of; None for the first one.
        tools: the functions that the model may call; None where there are none.
        no_variables_inside: says that it need not be searched for Variables; the same of a `Plan`.
    """

    model: str | Model | None = None
    config: GenerateConfig = field(default_factory=GenerateConfig)
    purpose: Purpose = "forward"
    role: str = ""
    strict: bool = False
    optional: tuple[str, ...] = ()
    spelled_out: tuple[str, ...] = ()
    silence: str = ""
    sample: int = 0
    of: ChatSettings | None = None
    tools: Tools | None = None

    no_variables_inside: ClassVar[bool] = True

    def __deepcopy__(self, memo: dict[int, Any]) -> ChatSettings:
        tools = None if self.tools is None else self.tools.of_copy(memo)
        if tools is self.tools:
            return self  # nothing in it changes, and a copy of a program asks the same model
        return replace(self, tools=tools)


def answer_form(name: str, schema: Mapping[str, Any]) -> GenerateConfig:
    """Sampling settings that ask for JSON of a schema; made once for a place in the library that asks.

    Args:
        name: the schema's name, which the endpoint sees.
        schema: the schema.
    """
    return GenerateConfig(response_format=ResponseFormat(name=name, json_schema=schema))


@dataclass(frozen=True, slots=True)
class Hole:
    """The place of a value, by its position among the values of a call."""

    at: int


@dataclass(frozen=True, slots=True)
class Rendered:
    """A text in a message that a prompt's template makes of several values, instead of slots in a text.

    Attributes:
        render: makes it; gets the data of the values, in order.
        values: the name and the position of each.
        whole: whether it is the one value as it is, so that a critic need not be shown that beside it.
        images: how many of the images among the values are shown at most.
    """

    render: Callable[[list[Any]], str]
    values: tuple[tuple[str, int], ...]
    whole: bool = False
    images: int = 0

    def text(self, data: Sequence[Any]) -> str:
        """The text, with the data of all values of the call."""
        return self.render([data[at] for _, at in self.values])

    def content(self, data: Sequence[Any]) -> Any:
        """The text, or where there are images among the values these and the text."""
        values = [data[at] for _, at in self.values]
        return pictured(values, self.render, self.images) if ContentPart in map(type, values) else self.render(values)


@dataclass(frozen=True, slots=True)
class Plan:
    """Messages with holes; a leaf to all that takes containers apart, since it holds no values.

    Attributes:
        messages: for each message its role and its content: holes for texts, and content parts (dicts with holes). The
            text of a text part is a hole, too, and slots in it are filled as in any other text. Or the content is one
            text that is `Rendered`.
        inputs: for each slot its name and the position of its value, a text or a `ContentPart`.
        gate: the position of a text that must not be empty for the call to be made; None for none.
        tools: by the number of a message the calls of tools in it, or which of them it answers, as `Message` has them.
        offered: the tools that the model may call, where descriptions of them are values; else the settings have them.
        holes: the positions of the texts in the messages, in order.
        with_images: whether images are among the content parts in the messages.
        said: the last message in each place that is text: a system prompt is the same in many calls, and a message
            takes longer to make than most steps of a call.
        questions: what a critic is asked about calls of this plan, as far as `cases.case_of` has found out.
    """

    messages: tuple[tuple[Any, tuple[Any, ...]], ...]
    inputs: tuple[tuple[str, int], ...]
    gate: int | None = None
    tools: Mapping[int, Mapping[str, Any]] = field(default_factory=dict, compare=False)
    offered: Offered | None = None
    holes: tuple[int, ...] = field(init=False, repr=False, compare=False)
    with_images: bool = field(init=False, repr=False, compare=False)
    said: dict[int, Message] = field(init=False, repr=False, compare=False, default_factory=dict)
    questions: dict[Any, Any] = field(init=False, repr=False, compare=False, default_factory=dict)

    no_variables_inside: ClassVar[bool] = True

    def __post_init__(self) -> None:
        texts = [text_of(part) for _, parts in self.messages for part in parts]
        object.__setattr__(self, "holes", tuple([text.at for text in texts if text is not None]))
        object.__setattr__(self, "with_images", any(is_image(part) for _, parts in self.messages for part in parts))

    @property
    def with_parts(self) -> bool:
        """Whether content parts that are no text stand in the messages themselves."""
        return any(is_part(part) for _, parts in self.messages for part in parts)

    def request(self, data: Sequence[Any], settings: ChatSettings) -> Request:
        """The request, with the data of all values.

        Raises:
            ValueError: a text is a batch; a content part is for another message than the user's; or the settings are
                strict, and no message has a slot for an input.
        """
        if list in map(type, data):
            self._refuse_batches(data)
        filled = self._filled_with(data)
        if settings.strict:
            self._check_inputs(data, filled, settings)
        apart: dict[str, Mapping[str, Any]] = {}
        if self.inputs and ContentPart in map(type, data):
            apart = {name: data[at].part for name, at in self.inputs if type(data[at]) is ContentPart}
        messages = []
        for number, (role, parts) in enumerate(self.messages):
            content = self._content(parts, data, filled)
            if apart and (around := _around(role, parts, data, filled, apart)) is not None:
                content = around
            message = self.said.get(number)
            if message is None or message.content != content:
                message = Message(role=role, content=content, **self.tools.get(number, _NO_TOOLS))
                if type(content) is str and len(content) <= _REMEMBERED:
                    self.said[number] = message
            messages.append(message)
        config = settings.config
        if self.offered is not None:
            config = config.model_copy(update={"tools": self.offered.tools(data)})
        return Request(messages=tuple(messages), config=config, purpose=settings.purpose)

    def _check_inputs(self, data: Sequence[Any], filled: dict[str, str], settings: ChatSettings) -> None:
        texts = [str(data[at]) for at in self.holes]
        slots = dict.fromkeys(slot for text in texts for slot in slots_of(text))
        unused = [name for name, _ in self.inputs if name not in slots and name not in settings.optional]
        if unused and settings.spelled_out:
            said = [leaf for _, parts in self.messages for leaf in pytree.leaves(self._content(parts, data, filled))]
            texts = [leaf for leaf in said if isinstance(leaf, str)]
            here = [name for name in settings.spelled_out if any(filled[name] in text for text in texts)]
            unused = [name for name in unused if name not in here]
        if unused:
            raise ValueError(
                f"a value was given for {unused[0]!r}, and no message has the slot {{{unused[0]}}}; "
                f"they have {list(slots)}"
            )

    def _refuse_batches(self, data: Sequence[Any]) -> None:
        for name, index in self.named_values():
            if isinstance(data[index], list):
                raise ValueError(
                    f"{name} is a batch of {len(data[index])} entries, and that was not known when the call was made. "
                    "Wait for the value (read its .data) before the call, or use func.vmap for one call per entry."
                )

    def named_values(self) -> list[tuple[str, int]]:
        """A name, for errors, and the position of each value: of inputs, of what is in messages, of descriptions."""
        named = [(f"the value of {{{name}}}", index) for name, index in self.inputs]
        if self.offered is not None:
            named += [(each.key, each.at) for each in self.offered.descriptions]
        for role, parts in self.messages:
            for leaf in [leaf for part in parts for leaf in pytree.leaves(part)]:
                if isinstance(leaf, Hole):
                    named.append((f"the {role} message", leaf.at))
                elif isinstance(leaf, Rendered):
                    named += leaf.values
        return named

    def texts(self, data: Sequence[Any], show: Show = not_shown) -> list[str]:
        """The text of each message as it was sent, content parts on lines of their own.

        Args:
            data: the data of all values.
            show: what stands for a content part; by default it is named.
        """
        if ContentPart in map(type, data):
            data = in_words(data, show)
        filled = self._filled_with(data)
        texts = []
        for _, parts in self.messages:
            if len(parts) == 1 and type(parts[0]) is Hole:
                texts.append(_filled(data[parts[0].at], filled))
            else:
                between = "" if all(isinstance(part, Hole) for part in parts) else "\n"
                texts.append(between.join([_shown_part(part, data, filled, show) for part in parts]))
        for number, about in self.tools.items():
            texts[number] = with_calls(texts[number], about.get("tool_calls", ()))
        return texts

    def images(self, values: Sequence[Any]) -> list[Mapping[str, Any]]:
        """The images that were sent, in the order in which they stand, as far as they are known without waiting.

        Args:
            values: the values of the call.
        """
        if not self.with_images and ContentPart not in map(type, values):
            return []
        slots = {name: at for name, at in self.inputs if type(values[at]) is ContentPart}
        found: list[Any] = []
        for _, parts in self.messages:
            for part in parts:
                if isinstance(part, Rendered):
                    found += [values[at] for _, at in part.values]
                elif (text := text_of(part)) is not None:
                    names = _slots_in(_plain(values[text.at])) if slots else ()
                    found += [values[slots[name]] for name in names if name in slots]
                elif is_image(part):
                    found.append(ContentPart(_put(part, [_plain(value) for value in values], {})))
        return [each.part for each in found if type(each) is ContentPart and is_image(each.part)]

    def given(self, values: Sequence[Any], prompts: Collection[int]) -> list[tuple[str, str]]:
        """What one call is asked about, apart from what it is told: names and texts, for who reads them beside others.

        These are the values of the slots; each message without such a slot, by its role; and Variables beside slots.
        System prompts and templates are not among them.

        Args:
            values: the values of the call; those of Variables are waited for.
            prompts: the positions of those that tell it what to do, wherever they stand.
        """
        data = in_words([value.data if isinstance(value, Variable) else value for value in values], not_shown)
        filled = self._filled_with(data)
        found = [(name, str(data[at])) for name, at in self.inputs if at not in prompts]
        for number, (role, parts) in enumerate(self.messages):
            if role in ("system", "developer"):
                continue
            rendered = [each for part in parts if isinstance(part, Rendered) for each in part.values]
            calls = self.tools.get(number, _NO_TOOLS).get("tool_calls", ())
            found += [
                (name, with_calls(str(data[at]), calls))
                for name, at in rendered
                if at not in prompts and data[at] is not None
            ]
            pieces = [(part, text_of(part)) for part in parts if not isinstance(part, Rendered)]
            left = [(part, text) for part, text in pieces if text is None or text.at not in prompts]
            with_slots = [part for part, text in left if text and filled.keys() & set(_slots_in(data[text.at]))]
            if with_slots:
                left = [
                    (part, text)
                    for part, text in left
                    if part not in with_slots and text is not None and isinstance(values[text.at], Variable)
                ]
            between = "" if all(isinstance(part, Hole) for part, _ in left) else "\n"
            said = between.join([_shown_part(part, data, filled, not_shown) for part, _ in left]).strip()
            if said:
                found.append((str(role), said))
        return found

    def _filled_with(self, data: Sequence[Any]) -> dict[str, str]:
        filled = {}
        for name, index in self.inputs:
            value = data[index]
            filled[name] = value if type(value) is str else fences.as_text(value)
        return filled

    def _content(self, parts: tuple[Any, ...], data: Sequence[Any], filled: dict[str, str]) -> Any:
        if len(parts) == 1 and type(parts[0]) is Hole:
            text = data[parts[0].at]
            return text if not filled and type(text) is str else _filled(text, filled)
        if len(parts) == 1 and type(parts[0]) is Rendered:
            return parts[0].content(data)
        if all(isinstance(part, Hole) for part in parts):
            return "".join([_filled(data[part.at], filled) for part in parts])
        return [
            {"type": "text", "text": _filled(data[part.at], filled)}
            if isinstance(part, Hole)
            else _put(part, data, filled)
            for part in parts
        ]


def _filled(text: Any, values: dict[str, str]) -> str:
    text = text if type(text) is str else fences.as_text(text)
    return fill(text, values) if values and "{" in text else text


def _plain(value: Any) -> Any:
    """What a value holds; None where that is not known yet, or is another thing for each example of a `vmap`."""
    if not isinstance(value, Variable):
        return value
    below = value._whole()
    return below.data if below._layer is None and below.done() else None


def _around(
    role: str, parts: Sequence[Any], data: Sequence[Any], filled: dict[str, str], apart: Mapping[str, Mapping[str, Any]]
) -> list[dict[str, Any]] | None:
    """The content of a message with slots that content parts fill; None where it has no such slots.

    Raises:
        ValueError: it is not the user's message.
    """
    found: list[dict[str, Any]] = []
    names = []
    for part in parts:
        if isinstance(part, Rendered):
            return None
        text = text_of(part)
        if text is None:
            found.append(_put(part, data, filled))
            continue
        own = {"type": "text"} if isinstance(part, Hole) else _put(part, data, filled)
        written = data[text.at] if type(data[text.at]) is str else fences.as_text(data[text.at])
        for piece, name in fill_around(written, filled, apart):
            if piece.strip():  # endpoints refuse a text part of white space
                found.append({**own, "text": piece.strip("\n")})
            if name:
                found.append(dict(apart[name]))
                names.append(name)
    if names and role != "user":
        raise ValueError(
            f"the slot {{{names[0]}}} of the {role} message was given {name_of_part(apart[names[0]])}, and models take "
            "these in the user's message alone; put the slot there"
        )
    return found if names else None


def _slots_in(text: Any) -> tuple[str, ...]:
    return slots_of(text) if isinstance(text, str) and "{" in text else ()


def text_of(part: Any) -> Hole | None:
    """Where the text of a piece of content is: of a text, or of a text part; None for any other part."""
    if isinstance(part, Hole):
        return part
    if isinstance(part, Rendered):
        return None
    text = part.get("text") if part.get("type") == "text" else None
    return text if isinstance(text, Hole) else None


def _shown_part(part: Any, data: Sequence[Any], filled: dict[str, str], show: Show) -> str:
    """A piece of content for a reader: text as it is sent, anything else as `show` has it."""
    if isinstance(part, Rendered):
        return part.text(data)
    text = text_of(part)
    return show(_put(part, data, filled)) if text is None else _filled(data[text.at], filled)


def _put(part: Mapping[str, Any], data: Sequence[Any], filled: dict[str, str]) -> dict[str, Any]:
    """A content part with its holes filled, and the slots of its text."""
    put: dict[str, Any] = pytree.map_leaves(lambda leaf: data[leaf.at] if isinstance(leaf, Hole) else leaf, part)
    if (text := text_of(part)) is not None:
        put["text"] = _filled(data[text.at], filled)
    return put
