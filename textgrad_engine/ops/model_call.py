"""A call of a model as an operation: one request forward, one request for all feedback backward."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from pydantic_core import PydanticSerializationError

from textgrad_engine import dispatch, templates
from textgrad_engine.autograd import Function, Variable
from textgrad_engine.autograd.examples import EXAMPLE
from textgrad_engine.autograd.layers import LAYERS, is_observed
from textgrad_engine.errors import AutogradError, NoModelError, UnknownModelError
from textgrad_engine.llm.model import defaults_of
from textgrad_engine.llm.places import in_place
from textgrad_engine.llm.request import GenerateConfig, Purpose
from textgrad_engine.llm.roles import model_for
from textgrad_engine.ops.asking import completion_of, conversation
from textgrad_engine.ops.cases import case_of
from textgrad_engine.ops.feedback import FEEDBACK_BATCH_SIZE, feedback_on
from textgrad_engine.ops.images import Gallery
from textgrad_engine.ops.json_answers import Extract, Texts, texts_at
from textgrad_engine.ops.messages import ChatSettings, Hole, Plan
from textgrad_engine.ops.turns import shown, with_turns
from textgrad_engine.ops.what_if import what_if


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
        offered = ctx.plan.offered  # what is said of the tools of one is said of those of all
        tools = () if offered is None else (offered.form, *[ctx.saved_data(each.at) for each in offered.descriptions])
        return (_place(ctx.settings.of or ctx.settings, ctx.plan), ctx.leaf_ids(wanted), *tools)

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
                plan, saved, needs, edge, late = with_turns(ctx, saved)
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

    Its second output is what was said between the messages and the answer (`turns.shown`), for the rules alone. What
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
        plan_of_turns, saved, *_ = with_turns(ctx, list(ctx.saved_variables))
        *values, answer = saved
        return what_if(plan_of_turns, values, [*edits, *[None] * (len(values) - len(edits))], answer, ask), None


def _place(settings: ChatSettings, plan: Plan) -> Any:
    """What calls of one place in a program have in common.

    Those of a module have its settings. Each call of `chat_completion` has its own: of these, such calls are taken to
    be of one place as ask the same model in the same way, with messages of the same shape.
    """
    if not settings.strict:
        return settings
    model = settings.model if isinstance(settings.model, str | None) else id(settings.model)
    tools = None if settings.tools is None else (settings.tools.functions, settings.tools.max_turns)
    place = (model, settings.purpose, settings.role, tools, plan.messages, plan.inputs, plan.offered)
    try:
        hash(place)  # content parts are dicts, and settings of one endpoint may be anything
        return (*place, settings.config.model_dump_json())
    except (TypeError, PydanticSerializationError):
        return settings


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
