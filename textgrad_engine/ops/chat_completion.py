"""A model's answer to messages that hold Variables: one call forward, one call for all feedback backward."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from textgrad_engine import pytree, templates
from textgrad_engine.autograd import Function, GradientEdge, Variable, example, get_gradient_edge
from textgrad_engine.autograd.graph import EXAMPLE
from textgrad_engine.errors import AutogradError
from textgrad_engine.llm.model import Model
from textgrad_engine.llm.request import GenerateConfig, Message, Purpose, Request, ResponseFormat
from textgrad_engine.llm.roles import model_for
from textgrad_engine.llm.usage import call_key_scope
from textgrad_engine.ops.feedback import FEEDBACK_BATCH_SIZE, Case, Part, feedback_on

__all__ = ["ChatCompletion", "ChatSettings", "ask", "chat_completion", "config_from", "message_from"]


@dataclass(frozen=True, eq=False)
class ChatSettings:
    """What stays the same over the calls of one place in a program.

    Attributes:
        model: asks this model; None stands for the one of `use_models` for the purpose.
        config: sampling settings.
        purpose: why it is asked.
        role: the role of the answer.
        strict: an input that no message has a slot for is an error.
    """

    model: str | Model | None = None
    config: GenerateConfig = field(default_factory=GenerateConfig)
    purpose: Purpose = "forward"
    role: str = ""
    strict: bool = False


class ChatCompletion(Function):
    """`ChatCompletion.apply(messages, inputs, settings)`; see `chat_completion`."""

    @staticmethod
    async def forward(messages: list[dict[str, Any]], inputs: dict[str, Any], settings: ChatSettings) -> Variable:
        """Send the messages and wait for the answer."""
        values = {name: str(_data(value)) for name, value in inputs.items()}
        if settings.strict:
            _check_inputs(messages, values)
        request = Request(
            messages=tuple([Message(role=m["role"], content=_content(m["content"], values)) for m in messages]),
            config=settings.config,
            purpose=settings.purpose,
        )
        model = model_for(settings.purpose, settings.model)
        with call_key_scope(EXAMPLE.get()):
            completion = await model.complete(request)
        return Variable(completion.text, role=settings.role)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Any) -> None:
        """Save the messages, the inputs and the answer."""
        messages, values, settings = inputs
        leaves, ctx.spec = pytree.flatten((messages, values))
        ctx.save_for_backward(*leaves, output)
        ctx.settings = settings
        ctx.example = EXAMPLE.get()
        # Results (the answer of an earlier call in a chain) differ from example to example and may still share a call.
        ctx.trained = tuple(
            [id(leaf) for leaf in leaves if isinstance(leaf, Variable) and leaf.requires_grad and leaf.is_leaf]
        )

    @staticmethod
    def output_role(messages: list[dict[str, Any]], inputs: dict[str, Any], settings: ChatSettings) -> str:
        """The role given in the settings, else one made of the first message's role."""
        if settings.role:
            return settings.role
        for leaf in pytree.leaves(messages):
            if isinstance(leaf, Variable) and leaf.role:
                return f"answer of the model to the {leaf.role}"
        return "answer of the model"

    @staticmethod
    def describe_output(ctx: Any) -> str:
        """The answer."""
        return str(ctx.saved_variables[-1].data)

    @staticmethod
    def backward_group(ctx: Any) -> Any:
        """Calls of the same place in a program, on the same trained texts, may share a feedback call."""
        return (ctx.settings, ctx.trained)

    @staticmethod
    def backward_group_size(ctx: Any) -> int:
        """`ops.feedback_batch_size` of this moment."""
        return FEEDBACK_BATCH_SIZE.get()

    @staticmethod
    def backward_many(ctxs: list[Any], grad_outputs: list[list[Variable | None]]) -> list[Any]:
        """Ask the critic once for all inputs of all these calls."""
        cases = []
        for ctx, (grad_out,) in zip(ctxs, grad_outputs):
            assert grad_out is not None
            *leaves, answer = ctx.saved_variables
            messages, inputs = pytree.unflatten(ctx.spec, leaves)
            cases.append(_case(messages, inputs, answer, grad_out))
        with example(", ".join(dict.fromkeys(ctx.example for ctx in ctxs if ctx.example))):
            feedback = feedback_on(cases, ask)
        results = []
        for ctx, by_key, case in zip(ctxs, feedback, cases):
            by_leaf = {id(part.variable): by_key[part.key] for part in case.parts}
            leaves = [by_leaf.get(id(leaf)) for leaf in case.leaves]
            results.append((*pytree.unflatten(ctx.spec, leaves), None))
        return results


def chat_completion(
    model: str | Model | None,
    messages: Sequence[Mapping[str, Any]],
    inputs: Mapping[str, Any] | None = None,
    *,
    role: str = "",
    purpose: Purpose = "forward",
    **config: Any,
) -> Variable:
    """A model's answer, as a pending Variable; feedback on it becomes feedback on the Variables in the messages.

    Args:
        model: a Model or a name such as ``"openai/gpt-5-mini"``; None stands for the one of `use_models`.
        messages: as in OpenAI's API; `content` may be a text, a Variable, or a list of these and of content parts
            (dicts).
        inputs: values for the ``{slots}`` in the messages' texts.
        role: the role of the answer.
        purpose: why it is asked; calls are counted by it.
        config: sampling settings of `GenerateConfig` (temperature, max_tokens, response_format, …).

    Raises:
        TypeError: a sampling setting is unknown.
        ValueError: a message is malformed; raised where the answer is read: no message has a slot for an input.
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
    settings = ChatSettings(model=model, config=config_from(config), purpose=purpose, role=role, strict=True)
    result: Variable = ChatCompletion.apply([message_from(m) for m in messages], dict(inputs or {}), settings)
    return result


def ask(
    name: str,
    user: Variable,
    schema: dict[str, Any],
    *,
    answer: str | None = None,
    purpose: Purpose,
    role: str,
    model: Any = None,
) -> Variable:
    """Put a prompt's system part and a rendered user part to the model of a purpose.

    Args:
        name: the prompt.
        user: its user part, rendered.
        schema: the answer is JSON of this schema.
        answer: the schema's name, by default the prompt's.
        purpose: why it is asked.
        role: the role of the answer.
        model: asks this model; None stands for the one of `use_models`.
    """
    config = GenerateConfig(response_format=ResponseFormat(name=answer or name, json_schema=schema))
    messages = [
        {"role": "system", "content": [templates.load(name).system]},
        {"role": "user", "content": [user]},
    ]
    result: Variable = ChatCompletion.apply(
        messages, {}, ChatSettings(model=model, config=config, purpose=purpose, role=role)
    )
    return result


def config_from(settings: Mapping[str, Any]) -> GenerateConfig:
    """Sampling settings by name, checked.

    Raises:
        TypeError: a name is unknown.
    """
    known = GenerateConfig.model_fields
    if unknown := [name for name in settings if name not in known]:
        raise TypeError(
            f"unknown sampling setting {unknown[0]!r}; known are {', '.join(known)}. "
            f"A setting of one endpoint only goes into extra={{{unknown[0]!r}: ...}}."
        )
    given = dict(settings)
    wanted = given.get("response_format")
    if isinstance(wanted, type):
        given["response_format"] = ResponseFormat.of(wanted)
    return GenerateConfig(**given)


def message_from(message: Mapping[str, Any]) -> dict[str, Any]:
    """A message of a user's with its content as a list.

    Raises:
        ValueError: it lacks a role or content, or has more than these.
    """
    if set(message) != {"role", "content"}:
        raise ValueError(f"a message has 'role' and 'content', got {sorted(message)}")
    content = message["content"]
    return {"role": message["role"], "content": list(content) if isinstance(content, list | tuple) else [content]}


def _check_inputs(messages: list[dict[str, Any]], values: dict[str, str]) -> None:
    pieces = [piece for message in messages for piece in message["content"] if not isinstance(piece, dict)]
    slots = dict.fromkeys(slot for piece in pieces for slot in templates.slots_of(str(_data(piece))))
    if unused := [name for name in values if name not in slots]:
        raise ValueError(
            f"a value was given for {unused[0]!r}, and no message has the slot {{{unused[0]}}}; they have {list(slots)}"
        )


def _data(value: Any) -> Any:
    return value.data if isinstance(value, Variable) else value


def _content(parts: list[Any], values: dict[str, str]) -> Any:
    """A message's content with its slots filled; content parts (dicts) are passed through."""
    if any(isinstance(part, dict) for part in parts):
        return [
            pytree.map_leaves(_data, part)
            if isinstance(part, dict)
            else {"type": "text", "text": _filled(part, values)}
            for part in parts
        ]
    return "".join([_filled(part, values) for part in parts])


def _filled(part: Any, values: dict[str, str]) -> str:
    text = str(_data(part))
    return templates.fill(text, values) if values else text


def _case(messages: list[dict[str, Any]], inputs: dict[str, Any], answer: Variable, grad_out: Variable) -> Case:
    """One call as the critic sees it: its messages, with the keys of those inputs that want feedback."""
    if not grad_out.data:
        raise AutogradError(
            f"a backward pass without words reached {answer.role or 'a chat completion'!r}: it began at a number that "
            "was computed from text by no evaluator. Begin with feedback in words, or use a loss (nn.ExactMatch, …)."
        )
    parts: list[Part] = []
    shown: list[tuple[str, str, Any]] = []
    taken: set[str] = set()
    known: dict[GradientEdge, str] = {}

    def part(wish: str, variable: Variable, whole: bool) -> str:
        edge = get_gradient_edge(variable)
        if edge in known:  # one variable in several places is asked about once
            return known[edge]
        key = wish if wish not in taken else next(f"{wish}_{n}" for n in range(2, 1000) if f"{wish}_{n}" not in taken)
        taken.add(key)
        known[edge] = key
        parts.append(Part(key, variable, whole))
        return key

    by_input = {
        name: part(name, value, False)
        for name, value in inputs.items()
        if isinstance(value, Variable) and value.requires_grad
    }
    for message in messages:
        content = message["content"]
        keys = [
            part(message["role"], piece, len(content) == 1 and not _slots_filled(piece, inputs))
            for piece in content
            if isinstance(piece, Variable) and piece.requires_grad
        ]
        keys += [
            by_input[name]
            for piece in content
            if not isinstance(piece, dict)
            for name in _slots_filled(piece, inputs)
            if name in by_input
        ]
        marked = ", ".join(f"`{key}`" for key in dict.fromkeys(keys))
        shown.append((message["role"], marked, _TextOf(content, inputs)))
    leaves = pytree.leaves((messages, inputs))
    return Case(parts=parts, messages=shown, answer=answer, feedback=list(grad_out.grad), leaves=leaves)


def _slots_filled(piece: Any, inputs: Mapping[str, Any]) -> list[str]:
    """The inputs that stand in a text; a template with any is shown as it is, besides the message made of it."""
    return [name for name in templates.slots_of(str(_data(piece))) if name in inputs]


@dataclass(frozen=True)
class _TextOf:
    """The text of a message as it was sent; images are named, not shown."""

    content: list[Any]
    inputs: dict[str, Any]

    def __call__(self) -> str:
        values = {name: str(_data(value)) for name, value in self.inputs.items()}
        return "".join(
            [
                f"[{part.get('type', 'part')}]" if isinstance(part, dict) else _filled(part, values)
                for part in self.content
            ]
        )
