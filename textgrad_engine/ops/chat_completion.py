"""A model's answer to messages that hold Variables: one call forward, one call for all feedback backward."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from pydantic_core import PydanticSerializationError

from textgrad_engine import dispatch, templates
from textgrad_engine.autograd import Function, Variable
from textgrad_engine.autograd.examples import EXAMPLE
from textgrad_engine.autograd.layers import LAYERS, is_observed
from textgrad_engine.errors import AutogradError, NoModelError, UnknownModelError
from textgrad_engine.llm.model import Model, defaults_of
from textgrad_engine.llm.places import in_place
from textgrad_engine.llm.request import GenerateConfig, Purpose, unknown_setting
from textgrad_engine.llm.roles import model_for
from textgrad_engine.ops.asking import SHARED, SharedSamples, completion_of, conversation
from textgrad_engine.ops.cases import case_of
from textgrad_engine.ops.entries import each_entry, stacked
from textgrad_engine.ops.feedback import FEEDBACK_BATCH_SIZE, Extract, Texts, feedback_on, texts_at
from textgrad_engine.ops.fillers import as_plain, is_nan, note_template, unfit
from textgrad_engine.ops.images import Gallery
from textgrad_engine.ops.messages import ChatSettings, Hole, Plan, Rendered, plan_of
from textgrad_engine.ops.sizes import common_size, size_of
from textgrad_engine.ops.tools import shown, tools_of
from textgrad_engine.ops.what_if import what_if
from textgrad_engine.slots import by_composed_name

__all__ = [
    "SHARED",
    "ChatCompletion",
    "SharedSamples",
    "ask",
    "ask_texts",
    "chat_completion",
    "complete",
    "config_from",
]


class ChatCompletion(Function):
    """`ChatCompletion.apply(settings, plan, *values)`; see `chat_completion`."""

    only_saves = True

    @staticmethod
    async def forward(settings: ChatSettings, plan: Plan, *values: Any) -> Variable:
        """Send the messages and wait for the answer."""
        data = [value.data if isinstance(value, Variable) else value for value in values]
        completion = await completion_of(settings, plan, data)
        said = completion.calls_as_text() if completion.tool_calls else completion.text
        return Variable(said, role=settings.role)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Any) -> None:
        """Save the values and the answer."""
        ctx.settings, ctx.plan, *values = inputs
        ctx.save_for_backward(*values, output)

    @staticmethod
    def output_role(settings: ChatSettings, plan: Plan, *values: Any) -> str:
        """The role given in the settings, else one made of the first message's role."""
        if settings.role:
            return settings.role
        for _, parts in plan.messages:
            for part in parts:
                value = values[part.at] if isinstance(part, Hole) else None
                if isinstance(value, Variable) and value.role:
                    return f"answer of the model to the {value.role}"
        return "answer of the model"

    @classmethod
    def is_random(cls, *args: Any) -> bool:
        """Whether the settings ask for sampling, or the model does where they say nothing."""
        settings: ChatSettings = args[0]
        return bool(_in_effect(settings).temperature)

    @classmethod
    def resample(cls, args: tuple[Any, ...], number: int) -> tuple[Any, ...]:
        """Another seed, where one is set; else another sample of equal requests, for the cache."""
        settings: ChatSettings = args[0]
        of, seed = settings.of or settings, _in_effect(settings).seed
        if seed is None:
            return (replace(settings, sample=settings.sample + number, of=of), *args[1:])
        config = settings.config.model_copy(update={"seed": seed + number})
        return (replace(settings, config=config, of=of), *args[1:])

    @staticmethod
    def describe_output(ctx: Any) -> str:
        """The answer."""
        return str(ctx.saved_data(-1))

    @staticmethod
    def backward_group(ctx: Any) -> Any:
        """Calls of the same place in a program, on the same trained texts, may share a feedback call."""
        if FEEDBACK_BATCH_SIZE.get() == 1:
            return ()  # nobody shares a call, so there is nothing to tell apart
        # Results (the answer of an earlier call in a chain) differ from example to example and may still share a call.
        wanted = [number for number, needed in enumerate(ctx.needs_input_grad[2:]) if needed]
        return (_place(ctx.settings.of or ctx.settings, ctx.plan), ctx.leaf_ids(wanted))

    @staticmethod
    def backward_many(ctxs: list[Any], grad_outputs: list[list[Variable | None]]) -> list[Any]:
        """Ask the critic for all inputs of all these calls, about as many at once as `feedback_batch_size` says."""
        cases = []
        arguments: list[Mapping[int, int] | None] = []
        observed = is_observed()
        for ctx, (grad_out, *_) in zip(ctxs, grad_outputs):
            saved = ctx.saved_variables if observed else ctx.saved_for_reading()
            assert grad_out is not None
            if not (grad_out._data if grad_out._call is None else grad_out.data):
                role = ctx.saved_variables[-1].role
                raise AutogradError(
                    f"a backward pass without words reached {role or 'a chat completion'!r}: it began at a "
                    "number that was computed from text by no evaluator. Begin with feedback in words, or use a loss "
                    "(nn.ExactMatch, …)."
                )
            needs: Sequence[bool] = ctx.needs_input_grad[2:]
            config = ctx.settings.config
            plan, edge, late = ctx.plan, ctx.edge, None
            if ctx.settings.tools is not None:
                plan, saved, needs, edge, late = _with_turns(ctx, saved)
            *values, answer = saved
            cases.append(case_of(plan, values, needs, answer, grad_out.grad, edge, ctx.example, config))
            arguments.append(late)
        gradients = []
        size = FEEDBACK_BATCH_SIZE.get()
        shares = [cases[start : start + size] for start in range(0, len(cases), size)]
        for ctx, late, by_position in zip(ctxs, arguments, feedback_on(shares, ask_texts)):
            found: list[Variable | None] = [None] * len(ctx.needs_input_grad)
            for position, feedback in by_position.items():
                found[2 + position if late is None else late.get(position, 2 + position)] = feedback
            gradients.append(tuple(found))
        return gradients

    @staticmethod
    def jvp(ctx: Any, settings: None, plan: None, *edits: Variable | None) -> Variable | None:
        """Ask what would change in the answer if the inputs were edited."""
        *values, answer = ctx.saved_variables
        return what_if(ctx.plan, values, edits, answer, ask)


class ToolLoop(ChatCompletion):
    """A chat completion with functions as tools; see NOTE [Tools] in ``tools.py``.

    Its second output is what was said between the messages and the answer (`tools.shown`), for the rules alone. What
    tools gave that feedback may go through are late inputs, each with its place among the turns and the tool's name.
    """

    num_outputs = 2
    only_saves = True
    finds_inputs = True

    @classmethod
    def apply(cls, *args: Any, **kwargs: Any) -> Any:
        """As that of every Function; where it is dispatched, it is given its place among the conversations."""
        if LAYERS.get():
            return super().apply(*args, **kwargs)
        with in_place(args[0].tools.functions, EXAMPLE.get()):
            return super().apply(*args, **kwargs)

    @staticmethod
    async def forward(settings: ChatSettings, plan: Plan, *values: Any) -> Any:
        """Send the messages, run the tools that are called, and wait for the answer."""
        data = [value.data if isinstance(value, Variable) else value for value in values]
        completion, turns = await conversation(settings, plan, data)
        said = completion.calls_as_text() if completion.tool_calls else completion.text
        answer = Variable(said, role=settings.role)
        return answer, Variable(shown(turns), role="turns before the answer")

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Any) -> None:
        """Save the values, the turns and the answer."""
        ctx.settings, ctx.plan, *values = inputs
        answer, turns = output
        ctx.save_for_backward(*values, turns, answer)

    @staticmethod
    def output_role(settings: ChatSettings, plan: Plan, *values: Any) -> Any:
        """That of the answer, and one for the turns."""
        return ChatCompletion.output_role(settings, plan, *values), "turns before the answer"

    @staticmethod
    def backward_group(ctx: Any) -> Any:
        """As of any chat completion; one whose tools are to hear something shares no call, as it has its own turns."""
        return (id(ctx),) if ctx.late and FEEDBACK_BATCH_SIZE.get() > 1 else ChatCompletion.backward_group(ctx)

    @staticmethod
    def jvp(ctx: Any, settings: None, plan: None, *edits: Variable | None) -> Any:
        """Ask what would change in the answer if the inputs were edited, and the tools gave what they gave."""
        plan_of_turns, saved, *_ = _with_turns(ctx, list(ctx.saved_variables))
        *values, answer = saved
        return what_if(plan_of_turns, values, [*edits, *[None] * (len(values) - len(edits))], answer, ask), None


def _as_said(texts: list[Any]) -> str:
    return str(texts[0])


def _place(settings: ChatSettings, plan: Plan) -> Any:
    """What calls of one place in a program have in common.

    Those of a module have its settings. Each call of `chat_completion` has its own: of these, such calls are taken to
    be of one place as ask the same model in the same way, with messages of the same shape.
    """
    if not settings.strict:
        return settings
    model = settings.model if isinstance(settings.model, str | None) else id(settings.model)
    tools = None if settings.tools is None else (settings.tools.functions, settings.tools.max_turns)
    place = (model, settings.purpose, settings.role, tools, plan.messages, plan.inputs)
    try:
        hash(place)  # content parts are dicts, and settings of one endpoint may be anything
        return (*place, settings.config.model_dump_json())
    except (TypeError, PydanticSerializationError):
        return settings


class _Turns(NamedTuple):
    """A call with tools as one whose messages hold all of its turns.

    Attributes:
        plan: its plan.
        saved: its values, and behind them the answer.
        needs: for each value whether it is asked about.
        edge: where feedback on a value flows, by its number from the end.
        arguments: for what tools gave that is asked about, by the position of its value, which argument of the rule it
            is.
    """

    plan: Plan
    saved: list[Any]
    needs: Sequence[bool]
    edge: Callable[[int], Any]
    arguments: Mapping[int, int]


def _with_turns(ctx: Any, saved: Sequence[Any]) -> _Turns:
    *values, turns, answer = saved
    said = json.loads(str(turns.data if isinstance(turns, Variable) else turns))
    first, count = len(values), len(said)
    texts: list[Any] = [text for _, text in said]
    names = ["turn"] * count
    needs = [*ctx.needs_input_grad[2 : 2 + first], *[False] * count]
    arguments = {}
    for number, (given, (turn, tool)) in enumerate(ctx.late_inputs, 2 + first):
        texts[turn], names[turn] = given, f"{tool}_result"
        needs[first + turn] = ctx.needs_input_grad[number]
        arguments[first + turn] = number
    # Not holes: what a tool gave may have slots in it, and is not scanned for them.
    messages = tuple(
        [
            (role, (Rendered(_as_said, ((name, first + number),), whole=True),))
            for number, ((role, _), name) in enumerate(zip(said, names))
        ]
    )
    plan = replace(ctx.plan, messages=(*ctx.plan.messages, *messages))

    def edge(number: int) -> Any:
        position = number + first + count
        return ctx.edge(arguments.get(position, 2 + position))

    return _Turns(plan, [*values, *texts, answer], needs, edge, arguments)


def chat_completion(
    model: str | Model | None,
    messages: Sequence[Mapping[str, Any]],
    inputs: Mapping[str, Any] | None = None,
    *,
    role: str = "",
    purpose: Purpose = "forward",
    tools: Sequence[Any] | None = None,
    max_turns: int = 5,
    **config: Any,
) -> Variable:
    """A model's answer, as a pending Variable; feedback on it becomes feedback on the Variables in the messages.

    Where inputs (or Variables in messages) are batches, the model is asked once for each entry, all at the same time.
    The answer is then a batch, feedback on it is a list with one text for each entry, and an empty text costs no call;
    what is no batch is the same for all entries, and a prompt collects one feedback for each, in order.

    Where `tools` are Python functions, those that the model calls are run, it is told what they gave, and asked again
    until it answers: all of it is this one operation, of which the critic is shown every turn. What a tool raises is
    told to the model. What tools give is recorded in run folders and cassettes, and given again on `resume` and in a
    replay without running them, so a mail is not sent twice; a cache keeps none of it.

    A tool that returns a Variable, such as the answer of another part of the program, takes feedback on to the prompts
    behind it: agents that are called as tools are trained with the one that calls them. Such a tool is run again on
    `resume` where a backward pass needs its graph; what it asked is answered from the record. So keep it to asking, and
    have what must not be done twice in a tool of its own. No feedback goes through a tool that returns text, nor
    through any inside of `func.grad`.

    An answer that calls tools has the calls as its text: a JSON list of objects with ``name`` and ``arguments``. So
    losses can look at them, and feedback can speak of them; the critic is shown the tools. What a model says beside its
    calls is no part of that.

    Args:
        model: a Model or a name such as ``"openai/gpt-5-mini"``; None stands for the one of `use_models`.
        messages: as in OpenAI's API; `content` may be a text, a Variable, or a list of these and of content parts
            (dicts).
        inputs: values for the ``{slots}`` in the messages' texts, those of text parts among them; a list is a batch.
            A content part that is no text, such as an image (`data.image_part`), stands in the place of its slot in a
            user message. Parts in the messages are sent as they are: what varies in one, such as the address of an
            image, is a Variable in it.
        role: the role of the answer.
        purpose: why it is asked; calls are counted by it.
        tools: functions whose arguments have types and whose docstring says what they do, `async` or not; or
            descriptions of tools as in OpenAI's API, whose calls are the answer.
        max_turns: with functions as tools, how often the model is asked at most; calls in the last turn are the answer.
            A `tool_choice` then holds for the first turn alone.
        config: sampling settings of `GenerateConfig` (temperature, max_tokens, …); a `response_format` is a pydantic
            model, a dataclass, a TypedDict, a JSON schema, or a `ResponseFormat`.

    Raises:
        TypeError: a sampling setting is unknown, an input is None, or a tool does not say what its arguments are.
        ValueError: a message is malformed; an input is not a number (NaN); batches differ in size; raised where the
            answer is read: no message has a slot for an input.
        NoModelError: raised where the answer is read, when no model is given and none is set.

    Example:
        >>> from textgrad_engine.testing import ScriptedModel
        >>> prompt = Variable("Answer in French.", role="system prompt", requires_grad=True)
        >>> answer = chat_completion(
        ...     ScriptedModel(["Bonjour"]),
        ...     [{"role": "system", "content": [prompt]}, {"role": "user", "content": "Greet {who}."}],
        ...     {"who": "Ann"},
        ... )
        >>> answer.data
        'Bonjour'
    """
    described, functions = tools_of(tools, max_turns, "chat_completion")
    settings = ChatSettings(
        model=model,
        config=config_from(config if described is None else {**config, "tools": described}),
        purpose=purpose,
        role=role,
        strict=True,
        tools=functions,
    )
    plan, values = plan_of(messages, by_composed_name(dict(inputs or {})))
    return complete(settings, plan, values, "chat_completion")


def complete(settings: ChatSettings, plan: Plan, values: Sequence[Any], call: str) -> Variable:
    """The answer to a plan with these values; where some are batches, one answer for each entry, as a batch.

    Raises:
        TypeError: the value of a slot is None, or what is no text.
        ValueError: it is not a number (NaN), or batches differ in size.
    """
    if plan.inputs:
        for text in values[: plan.inputs[0][1]]:
            note_template(text)
    for name, at in plan.inputs:
        if type(value := values[at]) is not str:
            _refuse_no_text(name, value, call)
            values = [*values[:at], as_plain(value), *values[at + 1 :]]
    for value in values:
        if type(value) is not str and size_of(value) is not None:
            break
    else:
        return _asked(settings, plan, values)
    size = common_size([(name, values[index]) for name, index in plan.named_values()], call)
    assert size is not None
    return stacked(each_entry(size, values, lambda given: _asked(settings, plan, given), call))


def _asked(settings: ChatSettings, plan: Plan, values: Sequence[Any]) -> Variable:
    answer: Variable
    if settings.tools is None:
        answer = ChatCompletion.apply(settings, plan, *values)
    else:
        answer, _ = ToolLoop.apply(settings, plan, *values)
    return answer


def _refuse_no_text(name: str, value: Any, call: str) -> None:
    """Refuse what a table has in an empty field, for it would be sent as the word for it, and what is no text."""
    for number, entry in enumerate(value if isinstance(value, list) else [value]):
        if type(entry) is str:
            continue
        where = f"entry {number} of the value of {{{name}}}" if isinstance(value, list) else f"the value of {{{name}}}"
        if entry is None:
            raise TypeError(f"{call}: {where} is None, and would be sent as that word; give it a text, '' for none")
        if is_nan(entry):
            raise ValueError(f"{call}: {where} is nan, and would be sent as that word; give it a text, '' for none")
        if why := unfit(entry):
            raise TypeError(f"{call}: {where} is {why}")


def ask(
    name: str,
    user: Variable | str,
    form: GenerateConfig,
    *,
    system: Variable | str | None = None,
    purpose: Purpose,
    role: str,
    model: Any = None,
    gate: Variable | None = None,
    silence: str = "",
    gallery: Gallery | None = None,
) -> Variable:
    """Put a prompt's system part and a rendered user part to the model of a purpose.

    Args:
        name: the prompt.
        user: its user part, rendered.
        form: the form of the answer, from `messages.answer_form`.
        system: instructions to use instead of the prompt's system part.
        purpose: why it is asked.
        role: the role of the answer.
        model: asks this model; None stands for the one of `use_models`.
        gate: when this text turns out empty, nobody is asked.
        silence: the answer then.
        gallery: the images that go along with the user part.
    """
    settings = ChatSettings(model=model, config=form, purpose=purpose, role=role, silence=silence)
    values: list[Any] = [templates.load(name).system if system is None else system, user]
    plan = _SYSTEM_AND_USER if gallery is None else _plan_with(gallery)
    if gate is not None:
        plan = replace(plan, gate=len(values))
        values.append(gate)
    result: Variable = ChatCompletion.apply(settings, plan, *values)
    return result


def ask_texts(
    system: Variable | str, user: Variable | str, texts: Texts, gallery: Gallery | None = None
) -> tuple[Variable, ...]:
    """The texts at some places of a model's answer.

    Args:
        system: what it is told; a text where nobody watches, and nothing is recorded.
        user: what it is asked; likewise.
        texts: which texts, and how the model is asked.
        gallery: the images that go along with what it is asked.
    """
    plan = _SYSTEM_AND_USER if gallery is None else _plan_with(gallery)
    if type(user) is str and type(system) is str:
        return _texts_later(texts, plan, system, user)
    settings = replace(texts.settings)  # of its own: a node does not share a feedback call with those of other calls
    answer = ChatCompletion.apply(settings, plan, system, user)
    found = Extract.apply(answer, texts.paths, texts.roles)
    return found if isinstance(found, tuple) else (found,)


def _texts_later(texts: Texts, plan: Plan, told: str, user: str) -> tuple[Variable, ...]:
    """What `ChatCompletion` and `Extract` would give, as one call."""
    call = dispatch.submit(
        _TextsOf(texts, plan, told, user),
        label=texts.label,
        where=dispatch.caller_line(of_pass=True),
    )
    return Variable._of_call(call, texts.roles)


class _TextsOf:
    """Asks, and takes the answer apart: each text, and behind it its role. One object, of which many lie in a queue."""

    __slots__ = ("_plan", "_texts", "_told", "_user")

    def __init__(self, texts: Texts, plan: Plan, told: str, user: str) -> None:
        self._texts, self._plan, self._told, self._user = texts, plan, told, user

    async def __call__(self) -> tuple[str, ...]:
        texts = self._texts
        completion = await completion_of(texts.settings, self._plan, [self._told, self._user])
        answer = completion.text
        found: tuple[str, ...] = ()
        for text, role in zip(texts_at(answer, texts.paths, texts.settings.role), texts.roles):
            found += (text, role)
        return found


def _in_effect(settings: ChatSettings) -> GenerateConfig:
    """The settings of a call, with what the model that is asked fills in; it may be named later."""
    try:
        model = model_for(settings.purpose, settings.model)
    except (NoModelError, UnknownModelError):
        return settings.config
    return settings.config.over(defaults_of(model))


_SYSTEM_AND_USER = Plan((("system", (Hole(0),)), ("user", (Hole(1),))), ())


def _plan_with(gallery: Gallery) -> Plan:
    """A system message, and a user message with images before its text."""
    return Plan((("system", (Hole(0),)), ("user", (*gallery.parts(), Hole(1)))), ())


def config_from(settings: Mapping[str, Any]) -> GenerateConfig:
    """Sampling settings by name, checked.

    Raises:
        TypeError: a name is unknown.
    """
    known = GenerateConfig.model_fields
    if unknown := [name for name in settings if name not in known]:
        raise TypeError(unknown_setting(unknown[0]))
    return GenerateConfig(**settings)
