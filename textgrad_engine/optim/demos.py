"""Demonstrations: examples that were solved, to be shown in a prompt.

That a program's own good answers make good demonstrations is DSPy's bootstrapping (arXiv 2310.03714).
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

from textgrad_engine.llm.conversation import in_words, is_conversation
from textgrad_engine.llm.images import is_part
from textgrad_engine.llm.tokens import count
from textgrad_engine.ops.evaluators import written
from textgrad_engine.ops.images import not_shown
from textgrad_engine.ops.shortening import LEAST, largest, without_middle

_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Demo:
    """An example with an answer that is right.

    Attributes:
        inputs: the name and the text of each of its fields.
        answer: the answer.
        label: what demonstrations are balanced by: the class of the example, where it has one.
        example: the id of the example.
        unshown: the names of the fields that no text can hold, such as images.
        part: whether the answer is but a part of what the program says, where that is one text, such as a field of it.
    """

    inputs: tuple[tuple[str, str], ...]
    answer: str
    label: str = ""
    example: str = ""
    unshown: tuple[str, ...] = field(default=(), repr=False)
    part: bool = field(default=False, repr=False)


def demo_of(example: str, inputs: Mapping[str, Any], answer: Any, label: Any = None) -> Demo:
    """The demonstration of one example; what is no text is shown as JSON.

    Args:
        example: its id.
        inputs: its fields.
        answer: what is shown as the right answer.
        label: what demonstrations are balanced by, such as its target; None for none.

    Example:
        >>> demo_of("t1", {"mail": "My bill?"}, "billing", "billing")
        Demo(inputs=(('mail', 'My bill?'),), answer='billing', label='billing', example='t1')
    """
    shown = tuple((field, _text(value)) for field, value in inputs.items())
    unshown = tuple([field for field, value in inputs.items() if is_part(value)])
    return Demo(shown, _text(answer), "" if label is None else _text(label), example, unshown)


def fitted_demo(demo: Demo, most: int) -> Demo:
    """A demonstration in about so many tokens, for who is to see what tasks are like: long texts without their middle.

    Args:
        demo: the demonstration.
        most: the tokens, as `llm.tokens.count` estimates them; a few hundred characters of each text stay in any case.

    Example:
        >>> fitted_demo(demo_of("c1", {"contract": "abcd" * 1000}, "lease"), 60).inputs[0][1][101:128]
        '[… 3,800 more characters …]'
    """
    made: dict[str, Demo] = {}

    def make(characters: int) -> str:
        inputs = tuple([(name, without_middle(text, characters)) for name, text in demo.inputs])
        cut = replace(demo, inputs=inputs, answer=without_middle(demo.answer, characters))
        made[text := "\n".join([text for _, text in cut.inputs] + [cut.answer])] = cut
        return text

    longest = max(len(text) for text in (demo.answer, *[text for _, text in demo.inputs]))
    if count(make(longest)) <= most:
        return demo
    return made[largest(make, lambda text: count(text) <= most, LEAST, longest + 1)]


class HasDemos(Protocol):
    """What is needed here of `optim.search.objective.Objective`, which knows of demonstrations: it cannot be named."""

    train: tuple[str, ...]

    def demos(self, positions: Sequence[int]) -> list[Demo | None]:
        """See `Objective`."""


def note_unshown(examples: HasDemos, who: str, so: str) -> None:
    """Say in the log that training examples have what no demonstration can show, such as images, if some have.

    Args:
        examples: the objective of a search.
        who: would show them.
        so: what it does instead, in words.
    """
    with_parts = [demo for demo in examples.demos(range(len(examples.train))) if demo is not None and demo.unshown]
    if with_parts:
        names = " and ".join(dict.fromkeys([repr(name) for demo in with_parts for name in demo.unshown]))
        _log.warning(
            "%s: %d of %d training examples have images or the like (%s), which no text can hold: %s",
            *(who, len(with_parts), len(examples.train), names, so),
        )


def _text(value: Any) -> str:
    if is_part(value):  # an image, say, which no demonstration can hold
        return not_shown(value)
    if is_conversation(value):
        return in_words(value)
    return written(value)
