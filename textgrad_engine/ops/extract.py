"""The part of an answer that a regular expression finds, joined to the answer in the graph; the words are in
``prompts/match_of.md``.
"""

from __future__ import annotations

import functools
import re
from dataclasses import replace
from typing import Any

from textgrad_engine import templates
from textgrad_engine.autograd import Function, Variable
from textgrad_engine.autograd.gradient import is_start
from textgrad_engine.ops.parts import place_in_words
from textgrad_engine.ops.pass_on import Compute, data_of, share_of_edit
from textgrad_engine.wording import told


class _Extract(Function):
    """`_Extract.apply(answer, pattern, default)`; see `extract`."""

    deferrable = True

    @staticmethod
    def forward(answer: Variable, pattern: str, default: str) -> Variable:
        data = data_of(answer)
        if isinstance(data, list):
            raise TypeError(
                f"extract: got a batch of {len(data)} answers, and a part is found in one; find it in each of "
                "ops.unbind(answers), or inside func.vmap"
            )
        found = last_match(pattern, str(data))
        return Variable(default if found is None else found, role=_role_of(answer))

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Any) -> None:
        answer, ctx.pattern, ctx.default = inputs
        ctx.save_for_backward(answer)

    @staticmethod
    def output_role(answer: Variable, pattern: str, default: str) -> str:
        return _role_of(answer)

    @staticmethod
    def backward(ctx: Any, grad_out: Variable) -> Any:
        (answer,) = ctx.saved_variables
        said = [item if is_start(item) else _about(item, answer, ctx.pattern, ctx.default) for item in grad_out.grad]
        return said, None, None

    @staticmethod
    def jvp(ctx: Any, edit: Variable, *_: None) -> Variable:
        return share_of_edit(edit, f"what {ctx.primals[1]} finds")


def _role_of(answer: Variable) -> str:
    return f"part of the {answer.role or 'answer'}"


def _about(item: Variable, answer: Variable, pattern: str, default: str) -> Variable:
    place = place_in_words(item)

    def words(data: list[Any]) -> str:
        said, text = data
        if not said:
            return ""
        there = last_match(pattern, str(text)) is not None
        prompt = templates.load("match_of")
        return prompt.render(pattern=pattern, there=there, default=default, feedback=f"{place}{said}")

    about: Variable = Compute.apply(words, [item, answer.detach()], item.role)
    about.source = item.source and replace(item.source, places=(), direct=False)
    return about


def last_match(pattern: str, text: str) -> str | None:
    r"""What a pattern finds last in a text, without white space at its ends: its group, or all of it where it has none.

    Example:
        >>> last_match("Answer: (.*)", "Answer: 3? No.\nAnswer: 4"), last_match("Answer: (.*)", "4")
        ('4', None)
    """
    expression = _compiled(pattern)
    found = None
    for match in expression.finditer(text):  # a group that is optional may have found nothing
        found = match[expression.groups] or ""
    return None if found is None else found.strip()


@functools.lru_cache(maxsize=64)
def _compiled(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern)


def check_pattern(pattern: object) -> None:
    """Refuse what is no pattern with one group at most.

    Raises:
        TypeError: it is no text.
        ValueError: it is no regular expression, or has several groups.
    """
    if not isinstance(pattern, str):
        raise TypeError(f"a pattern is a regular expression, a text such as 'Answer: (.*)'; got {told(pattern)}")
    try:
        groups = _compiled(pattern).groups
    except re.error as error:
        raise ValueError(f"the pattern {pattern!r} is no regular expression: {error}") from None
    if groups > 1:
        raise ValueError(
            f"the pattern {pattern!r} has {groups} groups, and one says what is looked for; write the others as (?:...)"
        )


def check_part(call: str, pattern: object, default: object) -> None:
    """Refuse what says of no part which it is, or what stands for it.

    Args:
        call: that was made, for the error.
        pattern: the regular expression.
        default: stands for the part where there is none.

    Raises:
        TypeError: one is no text.
        ValueError: the pattern is no regular expression, or has several groups.
    """
    try:
        check_pattern(pattern)
    except (TypeError, ValueError) as error:
        raise type(error)(f"{call}: {error}") from None
    if not isinstance(default, str):
        raise TypeError(f"{call}: default is a text, got {told(default)}")


def extract(answer: Variable, pattern: str, default: str = "") -> Variable:
    r"""The part of an answer that a regular expression finds, such as the final answer after its reasoning.

    Of several matches, the last one counts. Feedback on the part goes to the answer, and so to the prompt that asked
    for it, with the pattern; if there was no match, it says so. Nothing waits: the part of a pending answer is pending.

    Args:
        answer: the answer; inside `func.vmap` of each example its own.
        pattern: the regular expression (`re`). Where it has a group, that is the part, else all that it matches; white
            space at the ends is left out. One that can match the same text in many ways, such as ``(a+)+$``, may take
            for ever on an answer that was written for that, and Python looks at nothing else meanwhile, not at Ctrl-C.
        default: stands for the part where there is none.

    Raises:
        TypeError: `answer` is no Variable, or the pattern or default no text; where it is read: the answer is a batch.
        ValueError: the pattern is no regular expression, or has several groups.

    Example:
        >>> said = Variable("Two and two are four.\nAnswer: 4", role="answer", requires_grad=True)
        >>> part = extract(said, "Answer: (.*)")
        >>> part.data
        '4'
        >>> part.backward("Write it as a word.")
        >>> print(said.grad[0].data)
        Of this answer the part counts that is last matched by the regular expression `Answer: (.*)`. On that part:
        Write it as a word.
    """
    if not isinstance(answer, Variable):
        raise TypeError(
            f"extract: finds a part of a Variable, got {type(answer).__name__} {answer!r:.60}; of plain text take it "
            "with re.findall"
        )
    check_part("extract", pattern, default)
    result: Variable = _Extract.apply(answer, pattern, default)
    return result
