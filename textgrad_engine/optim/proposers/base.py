"""What every proposer is given and gives back."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Awaitable, Iterable, Sequence
from dataclasses import dataclass
from typing import Protocol

from textgrad_engine.autograd import Variable
from textgrad_engine.errors import ContractError
from textgrad_engine.llm.model import Model
from textgrad_engine.optim.cells import Evidence, Origin
from textgrad_engine.optim.contracts import Contract
from textgrad_engine.optim.demos import Demo
from textgrad_engine.optim.feedback import FeedbackItem
from textgrad_engine.optim.gather import collect
from textgrad_engine.optim.patch import Edit, apply_patch, stamped
from textgrad_engine.optim.transforms.dedupe import dedupe


@dataclass(frozen=True)
class Brief:
    """All that a proposer may know when it proposes a new text for one parameter.

    Attributes:
        role: what the parameter is, in words.
        text: its text now.
        origins: for each line of the text, why it reads as it does.
        items: the feedback to answer.
        left_out: how many items of feedback there was no room for.
        history: what was tried before and what became of it, a sentence each.
        contracts: what the new text must keep.
        max_edits: at most so many edits, where the proposer makes edits.
        step: the number of the step; no two patches of one parameter may share it, as it names their edits.
        others: texts of other candidates with their scores (None: not scored), for proposers that learn from several.
        other_origins: for each of these the origins of its lines; empty when nobody knows them.
        demos: solved examples, for `Demonstrations`.
        queries: inputs of examples that fail, to take demonstrations near to.
        examples: texts that are good of their kind, which `Patch` and `Rewrite` show as models.
        tried: texts that were proposed for it before and are not used, the latest last, which `Unaided` shows.
        repeats: so many proposals in a row brought no new text.
        refused: the model's last answer to this brief, where it is asked again because that could not be used.
    """

    role: str
    text: str
    origins: tuple[Origin | None, ...]
    items: tuple[FeedbackItem, ...] = ()
    left_out: int = 0
    history: tuple[str, ...] = ()
    contracts: tuple[Contract, ...] = ()
    max_edits: int = 4
    step: int = 1
    others: tuple[tuple[str, float | None], ...] = ()
    other_origins: tuple[tuple[Origin | None, ...], ...] = ()
    demos: tuple[Demo, ...] = ()
    queries: tuple[str, ...] = ()
    examples: tuple[str, ...] = ()
    tried: tuple[str, ...] = ()
    repeats: int = 0
    refused: str = ""

    def __post_init__(self) -> None:
        for item in self.items:
            if not isinstance(item, FeedbackItem):
                raise TypeError(
                    f"the items of a Brief are FeedbackItems, got {type(item).__name__}; Brief.of(parameter, feedback) "
                    "makes them of feedback, such as parameter.grad, or what an objective's feedback() gave"
                )

    @classmethod
    def of(
        cls, parameter: Variable, feedback: Iterable[Variable] = (), text: str | None = None, *, step: int = 1
    ) -> Brief:
        """The brief for a parameter; `dataclasses.replace` adds what else there is to say.

        Args:
            parameter: what a new text is wanted for.
            feedback: what was said of its text, such as its `grad`; what was said in the same words is one item.
            text: the text that the feedback is about, where it is not that of the parameter; nothing is known of the
                origins of its lines.
            step: the number of the step.

        Example:
            >>> prompt = Variable("Sort.", role="system prompt", requires_grad=True)
            >>> said = [Variable("Be brief."), Variable("Name the queue."), Variable("Be brief.")]
            >>> brief = Brief.of(prompt, said)
            >>> brief.role, brief.text, [(item.text, item.times) for item in brief.items]
            ('system prompt', 'Sort.', [('Be brief.', 2), ('Name the queue.', 1)])
        """
        own = str(parameter.data) if text is None else text
        items = dedupe().apply(collect(feedback)).items
        return cls(parameter.role, own, (None,) * (own.count("\n") + 1), items, step=step)


@dataclass(frozen=True)
class Proposal:
    """A new text for one parameter.

    Attributes:
        text: the new text; the old one when nothing is proposed.
        origins: for each of its lines, why it reads as it does. Where there are none, or one is None and there are no
            edits, it is worked out from what differs from the old text.
        edits: the edits it is made of; empty where it was written as a whole.
        problem: why it was dropped, "" when it was not; then `text` is the old one.
        refused: the text that was dropped, where there was one.
    """

    text: str
    origins: tuple[Origin | None, ...] = ()
    edits: tuple[Edit, ...] = ()
    problem: str = ""
    refused: str = ""


class Flawed(ContractError):
    """Some of an answer cannot be used.

    Args:
        problems: what is wrong with it, in words for the one who is asked.
        rest: the proposal without that.
    """

    def __init__(self, problems: Sequence[str], rest: Proposal) -> None:
        super().__init__("; ".join(problems))
        self.rest = rest


class Proposer(Protocol):
    r"""One way to come to a new text. A `propose` that is no ``async def`` is run in a thread, and may wait.

    Example:
        >>> class Quote(Proposer):
        ...     def propose(self, brief, model, problem):
        ...         return Proposal("\n".join([brief.text, *(item.text for item in brief.items)]))
        >>> Quote().propose(Brief("prompt", "Sort.", (None,)), None, "").text
        'Sort.'
    """

    @abstractmethod
    def propose(self, brief: Brief, model: Model, problem: str) -> Proposal | Awaitable[Proposal]:
        """Propose a new text.

        Args:
            brief: what is known.
            model: who is asked, if the proposer asks anybody.
            problem: why its last proposal for this brief could not be used, "" for the first one.

        Raises:
            ContractError: what came is no proposal; the message says why, in words for the one who is asked. `Flawed`
                where a part of it is one.
            ModelError: there was no answer.
        """
        ...


def patched(brief: Brief, edits: Sequence[Edit], evidence: Sequence[Evidence] | None = None) -> Proposal:
    """The proposal that edits of the brief's text make; those without an id get one of the brief's step.

    Args:
        brief: what the proposal is for.
        edits: the edits.
        evidence: what their numbers of feedback speak of; None for the brief's items.
    """
    own = stamped(edits, brief.step)
    shown = [item.evidence for item in brief.items] if evidence is None else evidence
    text, origins = apply_patch(brief.text, brief.origins, own, shown, brief.step)
    return Proposal(text, tuple(origins), tuple(own))


def second_parent(brief: Brief) -> tuple[str, tuple[Origin | None, ...]]:
    """The best of the other candidates, with the origins of its lines; of equals the first, unscored ones last.

    Raises:
        ValueError: the brief has no other candidate.
    """
    if not brief.others:
        raise ValueError(f"two texts are merged, and the brief for the {brief.role or 'prompt'} has none in `others`")

    def rank(number: int) -> tuple[bool, float]:
        score = brief.others[number][1]
        return score is None, -(score or 0.0)

    best = min(range(len(brief.others)), key=rank)
    text = brief.others[best][0]
    return text, brief.other_origins[best] if brief.other_origins else (None,) * (text.count("\n") + 1)
