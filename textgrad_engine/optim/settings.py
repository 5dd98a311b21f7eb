"""The checks of what an optimizer is given: one for each setting, for all groups, for one group and from a state."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from textgrad_engine.callables import check_method
from textgrad_engine.checks import in_order, listed, texts_in_order, whole
from textgrad_engine.llm import tokens
from textgrad_engine.optim.contracts import Contract, contracts_for
from textgrad_engine.optim.proposers import Demonstrations, Human, Patch, Proposer, Rewrite, Several, Unaided
from textgrad_engine.optim.proposers.demonstrations import refuse_demonstrations
from textgrad_engine.optim.transforms.base import chain_of

_USUAL_TOKENS = 2000

LEAST = {"max_edits": 1, "max_feedback_tokens": 1, "max_tokens": 1, "momentum": 0}
"""The settings of groups that are whole numbers, each with the least that it may be."""


def most_tokens(texts: Iterable[str]) -> int:
    """How many tokens parameters may have where nobody says it: room to grow for the longest of them, too.

    A fixed number would let a long prompt become nothing but shorter, and refuse every line that feedback asks for.

    Args:
        texts: of the parameters, as they are in the beginning.

    Example:
        >>> most_tokens(["Sort."]), most_tokens(["word " * 4000])
        (2000, 7500)
    """
    return max(_USUAL_TOKENS, *(3 * tokens.count(text) // 2 for text in texts))


def proposer_of(given: Any, owner: str, several: str = "", *, solved: bool = False) -> Proposer:
    """The setting ``proposer=``.

    Args:
        given: what was given.
        owner: which optimizer it was given to, for the error.
        several: how that one comes by several candidates: the end of the sentence that refuses `Several`, where ``{n}``
            stands for the number asked for.
        solved: whether that one has solved examples to show.

    Raises:
        ConfigError: it shows solved examples, and there are none.
        TypeError: it has no ``propose``, or one that takes something else, or is a class, or asks for several proposals
            at once.
    """
    if not solved:
        refuse_demonstrations(given, owner)
    if isinstance(given, Several):
        raise TypeError(
            f"{owner} asks its proposer for one text at a time, so Several does not go with it; write "
            f"proposer={type(given.proposer).__name__}(...)" + several.format(n=given.n)
        )
    if isinstance(given, type) or not callable(getattr(given, "propose", None)):
        got = f"the class {given.__name__}" if isinstance(given, type) else f"{given!r:.80}"
        meant = given.__name__ if isinstance(given, type) and hasattr(given, "propose") else "Rewrite"
        if isinstance(given, str) and given.title() in ("Human", "Patch"):
            meant = given.title()
        raise TypeError(f"a proposer has propose(), such as Patch(); got {got}: write proposer={meant}()")
    check_method(given, "propose", "brief", "model", "problem", waits=True)
    proposer: Proposer = given
    return proposer


def may_show(proposer: Proposer) -> bool:
    """Whether a proposer may show solved examples (`Brief.demos`): of one of the user's own nobody knows."""
    return type(proposer) not in (Human, Patch, Rewrite, Unaided)


def reads_words(proposer: Proposer) -> bool:
    """Whether a proposer reads what a critic says: solved examples are chosen by which inputs came out wrong."""
    return type(proposer) is not Demonstrations


def shared(settings: Mapping[str, Any], owner: str, several: str = "", *, solved: bool = False) -> dict[str, Any]:
    """Settings, with those checked that mean the same in every optimizer; the others are left as they are.

    Args:
        settings: any of an optimizer's, by name.
        owner: which optimizer they are for, for errors.
        several: as for `proposer_of`.
        solved: as for `proposer_of`.

    Raises:
        TypeError: a setting is of a wrong kind.
        ValueError: a number is out of range.
    """
    found = dict(settings)
    for name, value in settings.items():
        if name == "max_tokens" and value is None:
            continue  # it depends on the parameters: `most_tokens`
        if name in LEAST:
            found[name] = whole(name, value, LEAST[name])
        elif name == "constraints":
            found[name] = _constraints(value)
        elif name == "transforms" and value is not None:
            found[name] = chain_of(value)
        elif name == "proposer" and value is not None:
            found[name] = proposer_of(value, owner, several, solved=solved)
    return found


def _constraints(given: Any) -> tuple[Contract | str, ...]:
    kept = listed("constraints", in_order(texts_in_order(given), "constraints: "), "texts and contracts")
    contracts_for(kept, 1)  # checks each
    return kept


@contextmanager
def named(where: str) -> Iterator[None]:
    """Inside the block, an error about a setting says first where that was given."""
    try:
        yield
    except (TypeError, ValueError) as error:
        kind = TypeError if isinstance(error, TypeError) else ValueError
        raise kind(f"{where}: {error}") from error
