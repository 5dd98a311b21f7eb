"""What Python code came to from a text, joined to that text in the graph; ``prompts/made_of_text.md`` has the words."""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, TypeAlias

from textgrad_engine import templates
from textgrad_engine.autograd import Function, Source, Variable
from textgrad_engine.autograd.gradient import Items, inherited, is_start
from textgrad_engine.checks import check
from textgrad_engine.errors import AutogradError
from textgrad_engine.llm.images import is_part
from textgrad_engine.ops.evaluators import is_leaf
from textgrad_engine.ops.images import not_shown
from textgrad_engine.ops.material import inputs_in_words, shown
from textgrad_engine.ops.parts import place_in_words, without_repeat, without_repeated_part
from textgrad_engine.ops.pass_on import Compute, data_of, joined_role

Inputs: TypeAlias = tuple[tuple[str, str], ...]
"""What else the code was given: names and texts."""


class StraightThrough(Function):
    """`StraightThrough.apply(result, causes, role, inputs)`; see `straight_through`."""

    deferrable = True

    @staticmethod
    def forward(result: Any, causes: list[Variable], role: str, inputs: Inputs) -> Variable:
        """The result, as it is."""
        data = data_of(result)
        if isinstance(data, list):
            raise TypeError(
                f"straight_through: the result is a batch of {len(data)} entries, and it is not plain which of the "
                "causes each is from; call it for each entry, with the texts that this one was made of"
            )
        return Variable(data, role=_role_of(result, causes, role))

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Any) -> None:
        """Save the result, which the causes are shown."""
        ctx.leaves, ctx.given = [is_leaf(cause) for cause in inputs[1]], inputs[3]
        ctx.save_for_backward(output)

    @staticmethod
    def output_role(result: Any, causes: list[Variable], role: str, inputs: Inputs) -> str:
        """The role that was given, or that of the result, or one made of those of the causes."""
        return _role_of(result, causes, role)

    @staticmethod
    def backward(ctx: Any, grad_out: Variable) -> Any:
        """To the result what is said of it; to each cause the same, with the result and how it came about."""
        (output,) = ctx.saved_variables
        starts = [item for item in grad_out.grad if is_start(item)]
        said = [item for item in grad_out.grad if not is_start(item)]
        to_result, to_causes, *_ = ctx.needs_input_grad

        @functools.cache
        def told(leaf: bool) -> list[Variable]:
            return [*starts, *[_told(each, output, ctx.given) for each in _in_pieces(said, leaf)]]

        return grad_out if to_result else None, [told(leaf) for leaf in ctx.leaves] if to_causes else None, None, None

    @staticmethod
    def jvp(
        ctx: Any, result: Variable | None, causes: list[Variable | None] | None, role: None, inputs: None
    ) -> Variable | None:
        """An edit of the result passes as it is."""
        if any(edit is not None for edit in causes or ()):
            raise AutogradError(
                "straight_through: what code would come to from an edited text is known only when it is run with that "
                "text, so func.jvp stops here; give cause.detach(), or run the program with the text as edited"
            )
        return result


def _role_of(result: Any, causes: list[Variable], role: str) -> str:
    own = result.role if isinstance(result, Variable) else ""
    return role or own or f"result of code with the {joined_role(causes) or 'text'}"


def _in_pieces(said: Items, leaf: bool) -> list[Items]:
    """What of that which was said is told a cause as one piece of feedback.

    A text that is no result is told what came of it once, and all that was said of that. An answer is told of later
    calls one by one, as who shows them leaves out those that are in the cases of others: else they would be 2 ** n.
    """
    cases = [] if leaf else [item for item in said if item.source is not None and item.source.case]
    others = [item for item in said if leaf or item.source is None or not item.source.case]
    return [each for each in (others, *[[case] for case in cases]) if each]


def _told(said: Items, output: Variable, given: Inputs) -> Variable:
    words = [place_in_words(item) for item in said]
    about: Variable = Compute.apply(
        lambda data: _in_words(words, data[0], str(data[1]), output.role, given), [said, output], "feedback"
    )
    source = inherited(said)
    if given:  # what was given, what came of it, and what was said of that
        source = replace(source or Source(), case=True)
    about.source = source and replace(source, places=(), direct=False)
    return about


def _in_words(places: Sequence[str], said: Sequence[Any], outcome: str, role: str, given: Inputs) -> str:
    feedback = []
    for place, text in zip(places, said):
        if text:
            shown = without_repeat(str(text), outcome, "outcome")
            shown = without_repeat(shown, outcome, "outcome", "message")  # of a case
            feedback.append(place + without_repeated_part(shown, outcome, "outcome"))
    prompt = templates.load("made_of_text")
    inputs = [{"name": name, "text": text} for name, text in given]
    return prompt.render(role=role, inputs=inputs, outcome=outcome, feedback=feedback) if feedback else ""


def _text(value: Any) -> str:
    """An input of the code as text."""
    data = value.data if isinstance(value, Variable) else value
    return not_shown(data) if is_part(data) else shown(data)


def straight_through(
    result: Variable | str | float, *causes: Variable, role: str = "", inputs: Mapping[str, Any] | None = None
) -> Variable:
    """Join `result` in the graph to the texts that Python code made it from, so that feedback reaches them.

    Code that reads ``.data`` cuts the graph: a search with the query that a model wrote, a branch that its answer
    decides on, a vote. The prompt behind it would get no feedback. With this operation, the prompt that wrote the query
    is told what was found with it, and what was said about that. (A straight-through estimator does the same for
    numbers: arXiv 1308.3432.)

    Args:
        result: the result of the code: a text, a number, or a Variable, which still gets its own feedback.
        causes: the Variables whose ``.data`` the code read.
        role: what the result is for; by default its own role.
        inputs: other inputs of the code, by name, such as the fields of the example: they are shown with the feedback.
            An image is named, and None is left out.

    Raises:
        TypeError: `inputs` is no mapping, a cause is no Variable, there is none, or the result is a batch or no text.

    Example:
        >>> from textgrad_engine import ops
        >>> query = Variable("rome", role="search query", requires_grad=True)
        >>> found = {"rome": "Rome has 2.7 million people."}.get(query.data, "nothing")
        >>> passage = ops.straight_through(found, query, role="passage that was found")
        >>> passage.backward("It does not name the river.")
        >>> print(query.grad[0].data.split("<")[0].strip())
        Code of the program came from this text to the passage that was found:

    A prompt of an app that asks models by itself, such as by another library, is trained like this:

        >>> prompt = Variable("Answer.", role="system prompt", requires_grad=True)
        >>> answer = ops.straight_through("Milan", prompt, role="answer", inputs={"question": "The capital of Italy?"})
        >>> answer.backward("It is Rome.")
        >>> print(prompt.grad[0].data.split("<")[0].strip())
        Code of the program was given this text, and:
        question:
    """
    if not isinstance(result, Variable | str | int | float):
        raise TypeError(
            f"straight_through: the result is a text, a number or a Variable, got {type(result).__name__} "
            f"{result!r:.60}; make one text of it, such as with json.dumps, as a model is to read it"
        )
    if wrong := [cause for cause in causes if not isinstance(cause, Variable)]:
        raise TypeError(
            f"straight_through: {type(wrong[0]).__name__} {wrong[0]!r:.60} is no Variable, so no feedback can reach "
            "what it came from; give the Variable whose .data it is"
        )
    if not causes:
        raise TypeError("straight_through: there is no cause; name the Variables that the result was made of behind it")
    check(straight_through, {"inputs": inputs})
    given = tuple([(name, _text(value)) for name, value in inputs_in_words(inputs).items() if value is not None])
    joined: Variable = StraightThrough.apply(result, list(dict.fromkeys(causes)), role, given)
    return joined
