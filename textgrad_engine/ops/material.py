"""What a judge or a critic is shown beside the answer that it looks at: target, inputs, instructions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from textgrad_engine.autograd import Variable
from textgrad_engine.llm.conversation import in_words, is_conversation
from textgrad_engine.llm.images import is_part
from textgrad_engine.ops.evaluators import written
from textgrad_engine.ops.images import ContentPart, encoded_named
from textgrad_engine.ops.pass_on import Compute
from textgrad_engine.ops.sizes import size_of
from textgrad_engine.plain_values import as_python
from textgrad_engine.wording import told


def refuse_parts(instructions: Any, call: str) -> None:
    """Refuse instructions with content parts, such as images: a list is a batch, and each entry would be asked about.

    Args:
        instructions: what a judge or a critic is told.
        call: who takes them, for the message.

    Raises:
        TypeError: an entry of a list is no text.
    """
    if not isinstance(instructions, str | Variable | list):
        raise TypeError(f"{call}: instructions must be a text or a Variable, got {told(instructions)}")
    entries = instructions if isinstance(instructions, list) else ()
    if wrong := [entry for entry in entries if not isinstance(entry, str | Variable)]:
        raise TypeError(
            f"{call}: the instructions are a text, or a batch of them, and one entry is {type(wrong[0]).__name__} "
            f"{wrong[0]!r:.60}; to show an image that the answer is about, give it as one of the inputs: "
            'inputs={"picture": image}'
        )


def inputs_in_words(inputs: Mapping[str, Any] | None) -> dict[str, Any]:
    """What a prediction was made from, with conversations as texts: a list is a batch, and its entries are apart.

    Args:
        inputs: by name; None for none.
    """
    return {name: chat_in_words(value) for name, value in (inputs or {}).items()}


def chat_in_words(value: Any) -> Any:
    """A conversation as a text, as its messages are no entries of a batch; of another library's what it holds.

    Example:
        >>> chat_in_words(["a", "b"]), chat_in_words([{"role": "user", "content": "Hello."}])[:5]
        (['a', 'b'], 'user:')
    """
    return in_words(value) if type(value) is list and is_conversation(value) else as_python(value)


def beside(looked_at: Sequence[Any], target: Any, inputs: Mapping[str, Any] | None) -> tuple[Any, dict[str, Any]]:
    """Target and inputs as they are shown beside an answer; a list is one value where the answer is no batch.

    Else one answer would be looked at once for each entry, and its scores would be added up.

    Args:
        looked_at: the answer, and what else may make a batch of it.
        target: the target.
        inputs: what the answer was made from, by name; None for none.

    Example:
        >>> beside([Variable("b")], ["a", "b"], None)[0].data
        '["a", "b"]'
        >>> beside([Variable(["b", "c"])], ["a", "b"], None)
        (['a', 'b'], {})
    """
    target, inputs = chat_in_words(target), inputs_in_words(inputs)
    if any(size_of(each) is not None for each in looked_at):
        return target, inputs

    def one(name: str, value: Any) -> Any:
        return as_text(name, value) if isinstance(value, list) else value

    return one("target", target), {name: one(name, value) for name, value in inputs.items()}


def as_text(name: str, value: Any) -> Any:
    """What a judge is shown: text, number, content part or Variable as it is, all else as text with what is in it."""
    if is_part(value):
        return ContentPart(value)
    return value if isinstance(value, Variable | str | int | float | None) else Compute.apply(written, value, name)


def as_texts(names: Sequence[str], target_and_inputs: Sequence[Any]) -> list[Any]:
    """Target and inputs of one answer, as a judge is shown them.

    Args:
        names: of the inputs.
        target_and_inputs: the target, and behind it the inputs.
    """
    return [as_text(name, value) for name, value in zip(("target", *names), target_and_inputs)]


def shown_inputs(names: Sequence[str], values: Sequence[Any]) -> list[dict[str, str]]:
    """The inputs as the prompts of judges list them, without those that are None."""
    return [{"name": name, "text": shown(value)} for name, value in zip(names, values) if value is not None]


def shown(value: Any) -> str:
    """A value as a judge is shown it: written as exact match has it, and what was encoded into its text named.

    Example:
        >>> shown(True), shown("see data:image/png;base64," + "iVBORw0KGgo" * 200)
        ('true', 'see [image, 2 kB]')
    """
    return encoded_named(written(value))
