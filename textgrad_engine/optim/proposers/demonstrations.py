"""The proposer of demonstrations: solved examples in the prompt, chosen without asking a model."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Literal

from textgrad_engine import fences, templates
from textgrad_engine.checks import at_least, check
from textgrad_engine.errors import ConfigError, ContractError
from textgrad_engine.llm.model import Model
from textgrad_engine.llm.tokens import count
from textgrad_engine.ops.unseen import without_unseen
from textgrad_engine.optim.between import edits_between
from textgrad_engine.optim.contracts import Contract, MaxTokens, broken
from textgrad_engine.optim.demo_orders import by_label, by_likeness
from textgrad_engine.optim.demos import Demo
from textgrad_engine.optim.proposers.base import Brief, Proposal, patched
from textgrad_engine.slots import slots_of

_REPAIR = (
    "BootstrapDemos(params, proposer=Demonstrations(4, 'nearest')), or 'label', finds its own, and ParetoSearch and "
    "BeamSearch show what was solved in a minibatch and training examples with a target"
)

_BLOCK = re.compile(r"^<examples-([0-9a-f]{8})>\n.*?\n</examples-\1>$", re.DOTALL | re.MULTILINE)


@dataclass(frozen=True)
class Demonstrations:
    """Puts solved examples into the text, in a fenced block; where the text has such a block, it is replaced.

    The block stands at the end, or, where the text has placeholders, before the first line that holds one. Examples
    are taken in order as long as the text keeps its contracts with them: one that breaks any is passed over, and so is
    one with a placeholder in braces in it, which a template would fill. No model is asked.

    It is for searches that have solved examples: `BootstrapDemos` has the program solve the training set, and
    `ParetoSearch` and `BeamSearch` take what was right in a minibatch, and examples with a target. `PatchSearch` and
    `TGD` have none and refuse it.

    Args:
        k: at most so many examples.
        select: ``"label"`` takes about as many of each label; ``"nearest"`` takes those whose words are nearest to the
            inputs of the examples that fail (`Brief.queries`, or the feedback where the brief has none).

    Raises:
        ValueError: `k` is less than 1, or `select` is another word.

    Source: bootstrapped demonstrations as in DSPy (arXiv 2310.03714); nearest neighbours as in KATE (arXiv 2101.06804),
    here near to what fails instead of to each new input, as the prompt is one text for all inputs.

    Example:
        >>> from textgrad_engine import nn, optim
        >>> program = nn.ChatCompletion("{ticket}", system=nn.Parameter("Sort the ticket."))
        >>> optimizer = optim.BootstrapDemos(program.parameters(), proposer=Demonstrations(4, "label"))
    """

    k: int = 4
    select: Literal["label", "nearest"] = "label"

    def __post_init__(self) -> None:
        check(Demonstrations, vars(self), at_least(1, "k"))

    async def propose(self, brief: Brief, model: Model, problem: str) -> Proposal:
        """Choose the examples and put them in.

        Raises:
            ContractError: there are no examples, or not one with which the text keeps its contracts.
        """
        short = [demo for demo in brief.demos if not is_too_long(demo, brief.contracts)]
        usable = [demo for demo in short if not slots_of(_block([demo]))]
        if not usable:
            if brief.demos and not short:
                least, most = min(map(_tokens, brief.demos)), _limit(brief.contracts)
                raise ContractError(
                    f"not one solved example fits: the shortest has {least:,} tokens, and the text may have {most:,}; "
                    "raise max_tokens, or take an optimizer that shows none"
                )
            if brief.demos:
                raise ContractError("there are no solved examples to show that hold no placeholder")
            raise ContractError(f"there are no solved examples to show; {_REPAIR}")
        chosen: list[Demo] = []
        text, why = brief.text, ""
        for ranked in self._ranked(brief, usable):
            demo = _legible(ranked, brief.text)
            longer = _with_block(brief.text, _block([*chosen, demo]))
            found = broken(brief.contracts, brief.text, longer)
            if found is None:
                chosen.append(demo)
                text = longer
            else:
                why = why or found
            if len(chosen) == self.k:
                break
        if not chosen:
            raise ContractError(f"not one solved example fits: {why}")
        names = ", ".join(demo.example for demo in chosen if demo.example)
        reason = f"shows solved examples{f' ({names})' if names else ''}"
        found_edits, _ = edits_between(brief.text, text)
        return patched(brief, [replace(edit, reason=reason) for edit in found_edits])

    def _ranked(self, brief: Brief, demos: Sequence[Demo]) -> list[Demo]:
        if self.select == "label":
            return by_label(demos)
        queries = brief.queries or tuple(f"{item.text} {item.answer}" for item in brief.items)
        return by_likeness(demos, queries)


def is_too_long(demo: Demo, contracts: Iterable[Contract]) -> bool:
    """Whether a solved example alone has more tokens than a text may have by its contracts.

    Args:
        demo: the example.
        contracts: of the text that would show it.

    Example:
        >>> is_too_long(Demo((("mail", "Where is my parcel? " * 100),), "shipping"), [MaxTokens(200)])
        True
    """
    most = _limit(contracts)
    return most is not None and _tokens(demo) > most


def refuse_demonstrations(proposer: object, optimizer: str) -> None:
    """Say at once that an optimizer has no examples to show, where it would drop one proposal after the other.

    Args:
        proposer: who was to propose.
        optimizer: the name of the optimizer.

    Raises:
        ConfigError: the proposer is `Demonstrations`.
    """
    if isinstance(proposer, Demonstrations):
        raise ConfigError(f"{optimizer} knows no solved examples, so {proposer!r} has nothing to show; {_REPAIR}")


def _legible(demo: Demo, text: str) -> Demo:
    """The example without what nobody sees in it and the text does not have, as `propose` wants it."""
    inputs = tuple((name, without_unseen(value, text)) for name, value in demo.inputs)
    return replace(demo, inputs=inputs, answer=without_unseen(demo.answer, text))


def _limit(contracts: Iterable[Contract]) -> int | None:
    return min([contract.limit for contract in contracts if isinstance(contract, MaxTokens)], default=None)


def _tokens(demo: Demo) -> int:
    return sum([count(text) for _, text in demo.inputs]) + count(demo.answer)


def _block(demos: Sequence[Demo]) -> str:
    shown = templates.load("demonstrations").render(demos=[asdict(demo) for demo in demos])
    return fences.fence(shown, "examples")


def _with_block(text: str, block: str) -> str:
    """The text with a block instead of the one that it has, or where a new one goes."""
    if (held := _BLOCK.search(text)) is not None:
        return text[: held.start()] + block + text[held.end() :]
    lines = text.split("\n")
    place = next((number for number, line in enumerate(lines) if slots_of(line)), len(lines))
    return "\n".join([*lines[:place], block, *lines[place:]])
