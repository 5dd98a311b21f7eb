"""A minibatch going backward: what is lost on the way is passed over."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from textgrad_engine.autograd import Node, Variable, backward
from textgrad_engine.autograd.forgiving import forgiving
from textgrad_engine.errors import UNANSWERED, ContextOverflow, is_by_the_request


def go_backward(roots: Sequence[Variable], inputs: Sequence[Variable] | None = None) -> list[str]:
    """Take a minibatch's losses backward, each as soon as it is there.

    Args:
        roots: the losses that require grad.
        inputs: the texts that feedback is wanted on; None for all leaves.

    Returns:
        The answers of the critic that were not to be had, in words and in the order of the losses. Failures whose words
        differ in numbers alone are told once, with their examples.

    Raises:
        ModelError: the models cannot be asked at all, or the budget is spent.
    """
    if not roots:
        return []
    with forgiving(_is_lost) as lost:
        backward(roots, inputs=inputs)
    return _in_words(
        (node, error)
        for node, error in lost
        if node.call is None
        or not node.call.failed  # of an example whose own answer was lost there is no score, either
    )


def _in_words(lost: Iterable[tuple[Node, BaseException]]) -> list[str]:
    alike: dict[tuple[str, str], list[tuple[str, str]]] = {}
    for node, error in lost:
        said = f"{type(error).__name__}: {error}{_repair(error)}"
        alike.setdefault((node.name(), _NUMBER.sub("0", said)), []).append((getattr(node, "example", ""), said))
    found = []
    for (name, _), each in alike.items():
        examples = list(dict.fromkeys([example for example, _ in each if example]))
        about = f" ({examples[0]}{f' and {len(examples) - 1} more' if examples[1:] else ''})" if examples else ""
        found += [f"no feedback from {name}{about}: {each[0][1]}"] * (1 if examples else len(each))
    return found


_NUMBER = re.compile(r"\d[\d,.]*")


def _repair(error: BaseException) -> str:
    """What helps against requests that are too long for a critic, where the error does not say so itself."""
    if not isinstance(error, ContextOverflow) or "context=" in str(error):
        return ""
    return (
        "; state its context (context under [models], llm.resolve(..., context=N)), and its requests are fitted to it"
    )


def none_reached(examples: int, failures: Sequence[Exception]) -> list[str]:
    """That an endpoint was down for a whole minibatch, in words; nothing where it answered, or refused, any of it.

    One that refuses every request, as its model is gone, is as good as down.

    Args:
        examples: in the minibatch.
        failures: what those failed with that went unanswered.
    """
    if not failures or len(failures) < examples or any(map(is_by_the_request, failures)):
        return []
    first = failures[0]
    return [f"none of the {examples} training examples was answered: {type(first).__name__}: {first}"]


def _is_lost(node: Node, error: BaseException) -> bool:
    """Whether it is an answer that is lost: of the critic, or of the program for one example."""
    return isinstance(error, UNANSWERED)
