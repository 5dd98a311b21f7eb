"""What users call to have a model answer messages that hold Variables; the operation behind it is in `model_call`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, get_args

from textgrad_engine.autograd import Variable
from textgrad_engine.autograd.value import as_role
from textgrad_engine.checks import check
from textgrad_engine.llm.conversation import is_conversation, near_miss
from textgrad_engine.llm.model import Model
from textgrad_engine.llm.request import Message, Purpose, config_from
from textgrad_engine.ops.entries import each_entry, stacked
from textgrad_engine.ops.fillers import as_plain, is_nan, note_template, unfit
from textgrad_engine.ops.messages import ChatSettings, Plan
from textgrad_engine.ops.model_call import ChatCompletion, ToolLoop
from textgrad_engine.ops.offered import without_values
from textgrad_engine.ops.planning import plan_of
from textgrad_engine.ops.sizes import common_size, size_of
from textgrad_engine.ops.tools import MAX_TURNS, tools_of
from textgrad_engine.slots import by_composed_name


def chat_completion(
    model: str | Model | None,
    messages: Sequence[Mapping[str, Any] | Message],
    inputs: Mapping[str, Any] | None = None,
    *,
    role: str = "",
    purpose: Purpose = "forward",
    tools: Sequence[Any] | None = None,
    max_turns: int = MAX_TURNS,
    **config: Any,
) -> Variable:
    """A model's answer, as a pending Variable; feedback on it becomes feedback on the Variables in the messages.

    If inputs (or Variables in messages) are batches, the model is asked once for each entry, concurrently. The answer
    is then a batch. Feedback on it is a list with one text for each entry; an empty text costs no call. A value that is
    no batch is the same for all entries, and a prompt collects one feedback for each, in order.

    If `tools` are Python functions, the functions that the model calls are run, and the model is asked again with their
    results until it answers. All of it is this one operation; the critic sees every turn. If a tool raises, the model
    is told the error. Results of tools are recorded in run folders and cassettes. `resume` and a replay return them
    without running the tools, so a mail is not sent twice; a cache does not keep them.

    A tool that returns a Variable, such as the answer of another part of the program, passes feedback on to the prompts
    behind it: agents that are called as tools are trained with the one that calls them. On `resume` such a tool is run
    again if a backward pass needs its graph; its calls are answered from the record. So let it only ask, and put what
    must not happen twice into a tool of its own. No feedback goes through a tool that returns text, nor through any
    tool inside `func.grad`.

    The text of an answer that calls tools is the calls: a JSON list of objects with ``name`` and ``arguments``. So
    losses can score them, and feedback can be about them; the critic is shown the tools. What a model says besides its
    calls is not included.

    Args:
        model: a Model or a name such as ``"openai/gpt-5-mini"``; None stands for the one of `use_models`.
        messages: as in OpenAI's API, or `llm.Message`; `content` may be a text, a Variable, or a list of these and of
            content parts (dicts).
        inputs: values for the ``{slots}`` in the messages' texts, those of text parts among them; a list is a batch.
            A content part that is no text, such as an image (`data.image_part`), stands in the place of its slot in a
            user message. Parts in the messages are sent as they are: what varies in one, such as the address of an
            image, is a Variable in it.
        role: the role of the answer.
        purpose: why it is asked; calls are counted by it.
        tools: functions, `async` or not, with typed arguments and a docstring that says what they do; or descriptions
            of tools as in OpenAI's API or as an MCP server lists them, whose calls are the answer. A ``description`` in
            these may be a Variable, which then gets feedback; `nn.Tool` makes such a tool of a function or a
            description.
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
    role = as_role(role)
    if purpose not in _PURPOSES or not hasattr(type(model), "complete"):
        check(chat_completion, {"model": model, "purpose": purpose})
    if inputs is not None:
        check(chat_completion, {"inputs": inputs})
    described, functions = tools_of(tools, max_turns, "chat_completion")
    if described is not None:
        config["tools"] = without_values(described)
    settings = ChatSettings(
        model=model,
        config=config_from(config, chat_completion),
        purpose=purpose,
        role=role,
        strict=True,
        tools=functions,
    )
    plan, values = plan_of(messages, by_composed_name(dict(inputs or {})), described or ())
    return complete(settings, plan, values, "chat_completion")


_PURPOSES = get_args(Purpose)


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
        if is_conversation(entry):
            raise TypeError(f"{call}: {where} is a conversation, of which one is answered at a time; call it for each")
        if isinstance(entry, list) and isinstance(value, list):
            raise TypeError(f"{call}: {where} is a list, and a batch has one text for each call; join it to one")
        if is_nan(entry):
            raise ValueError(f"{call}: {where} is nan, and would be sent as that word; give it a text, '' for none")
        if why := unfit(entry):
            if near := near_miss(value):
                raise TypeError(f"{call}: the value of {{{name}}} is {near}")
            raise TypeError(f"{call}: {where} is {why}")
