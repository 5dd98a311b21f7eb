"""What every proposer is given and gives back, and how a proposal that breaks its contract is repaired."""

from __future__ import annotations

import json
from abc import abstractmethod
from collections.abc import Awaitable, Iterable, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, Protocol

from textgrad_engine import dispatch, templates
from textgrad_engine.autograd import Variable
from textgrad_engine.errors import ContractError, NoModelError, ReturnError
from textgrad_engine.llm.context import refuse_overflow, room_for
from textgrad_engine.llm.model import Model
from textgrad_engine.llm.request import GenerateConfig, Message, Request, ResponseFormat
from textgrad_engine.llm.resolve import is_resolved
from textgrad_engine.llm.response import Completion
from textgrad_engine.llm.roles import model_for
from textgrad_engine.llm.usage import call_key_scope
from textgrad_engine.ops.parts import without_repeat
from textgrad_engine.optim.cells import Evidence, Origin
from textgrad_engine.optim.contracts import Contract, broken
from textgrad_engine.optim.demos import Demo
from textgrad_engine.optim.feedback import FeedbackItem
from textgrad_engine.optim.gather import collect
from textgrad_engine.optim.patch import REWRITE_SCHEMA, Edit, apply_patch, origins_of_rewrite, stamped
from textgrad_engine.optim.showing import left_over, unwrapped
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


async def propose(proposer: Proposer, brief: Brief, model: Model) -> Proposal:
    """A proposal that can be made and keeps the contracts: one that does not is asked for once more.

    The second request has the problem and the answer that had it, for the model remembers nothing. Where that is no
    better, those edits are left of it that can be made and keep the contracts, and where there are none it is dropped.

    Raises:
        ModelError: there was no answer.
        ReturnError: the proposer gave something else than a proposal.
        ValueError: it gave not as many origins as its text has lines.
    """
    problem, refused, heard = "", "", _Heard(model)
    usable: Proposal | None = None
    for _ in range(2):
        try:
            given = await dispatch.called(proposer.propose, replace(brief, refused=heard.last), heard, problem)
            made = _checked(given, proposer, brief)
            if made.text != brief.text and (found := broken(brief.contracts, brief.text, made.text)) is not None:
                raise Flawed([found], made)
        except ContractError as error:
            problem = str(error)
            refused = error.rest.text if isinstance(error, Flawed) and error.rest.text != brief.text else refused
            usable = error.rest if isinstance(error, Flawed) and error.rest.edits else usable
            continue
        return made
    fitting = None if usable is None else _what_fits(usable, brief)
    return fitting or Proposal(brief.text, brief.origins, problem=problem, refused=refused)


def _checked(made: object, proposer: Proposer, brief: Brief) -> Proposal:
    """What a proposer gave, with origins for the lines that it wrote without saying so.

    Raises:
        ReturnError: it is no proposal.
        ValueError: it has not as many origins as its text has lines.
    """
    name = type(proposer).__name__
    if not isinstance(made, Proposal):
        raise ReturnError(f"{name}.propose() gave {made!r:.80}; give a Proposal(text)")
    if not isinstance(made.text, str):
        raise ReturnError(
            f"{name}.propose() gave a Proposal whose text is {made.text!r:.80}; give the new text as a str"
        )
    count = made.text.count("\n") + 1
    origins = tuple(made.origins or ())
    if not origins:
        origins = brief.origins if made.text == brief.text else (None,) * count
    if len(origins) != count:
        raise ValueError(
            f"{name}.propose() gave {len(origins)} origins for a text of {count} lines; give one for each line, "
            "that of brief.origins for a line that stayed and None for a new one; or none, and they are worked out"
        )
    if made.text != brief.text and not made.edits and None in origins:
        evidence = [item.evidence for item in brief.items]
        derived = origins_of_rewrite(brief.text, brief.origins, made.text, "", evidence, brief.step)
        origins = tuple(own or line for own, line in zip(origins, derived))
    return replace(made, origins=origins)


def _what_fits(made: Proposal, brief: Brief) -> Proposal | None:
    """A proposal with those of its edits that keep the contracts together; None where that changes nothing."""
    if made.text != brief.text and broken(brief.contracts, brief.text, made.text) is None:
        return made
    written = stamped(made.edits, brief.step)
    asked = {origin.edit: origin.evidence for origin in made.origins if origin is not None}
    evidence = [item.evidence for item in brief.items]
    fitting: Proposal | None = None
    chosen: set[int] = set()
    # What takes out or changes lines comes first: it makes room for what is added.
    for place in sorted(range(len(written)), key=lambda place: written[place].op == "add"):
        edits = tuple(edit for n, edit in enumerate(written) if n in chosen or n == place)
        text, lines = apply_patch(brief.text, brief.origins, edits, evidence, brief.step)
        if text != brief.text and broken(brief.contracts, brief.text, text) is None:
            chosen.add(place)
            origins = (o and replace(o, evidence=asked.get(o.edit, o.evidence)) for o in lines)
            fitting = Proposal(text, tuple(origins), edits)
    return fitting


class _Heard:
    """A model whose last answer is kept."""

    def __init__(self, inner: Model) -> None:
        self._inner = inner
        self.last = ""

    @property
    def asks_resolved(self) -> bool:
        return is_resolved(self._inner)

    @property
    def name(self) -> str:
        return self._inner.name

    async def complete(self, request: Request) -> Completion:
        completion = await self._inner.complete(request)
        self.last = completion.text
        return completion


class LateModel:
    """The optimizer's model, looked up when it is asked: proposers that ask nobody work where no model was named.

    Args:
        override: a name or a model to use instead of the optimizer of `use_models`.
    """

    asks_resolved = True

    def __init__(self, override: str | Model | None = None) -> None:
        self.override = override

    @property
    def name(self) -> str:
        """The name of the model that would be asked.

        Raises:
            NoModelError: none was named.
        """
        return model_for("optimizer", self.override).name

    async def complete(self, request: Request) -> Completion:
        """Ask it.

        Raises:
            NoModelError: none was named.
            ContextOverflow: the request is longer than its context.
        """
        model = model_for("optimizer", self.override)
        refuse_overflow(model, request, "a request to the optimizer")
        return await model.complete(request)

    def room(self, at_most: int, beside: Iterable[str]) -> int:
        """A budget in tokens, cut to what the model has room for beside other texts; whole where no model was named."""
        try:
            return room_for(model_for("optimizer", self.override), at_most, beside)
        except NoModelError:
            return at_most


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


def shared_slots(brief: Brief, problem: str) -> dict[str, Any]:
    """The slots that the prompts of all proposers have."""
    return {
        "role": brief.role or "prompt",
        "feedback": [asdict(_without_text(item, brief.text)) for item in brief.items],
        "left_out": brief.left_out,
        "constraints": [text for contract in brief.contracts if (text := contract.describe(brief.text))],
        "history": list(brief.history),
        "problem": problem,
        "refused": brief.refused,
    }


def _without_text(item: FeedbackItem, text: str) -> FeedbackItem:
    """What evaluators said of a text, which is shown above it once, and with numbers before its lines."""
    return replace(item, text=without_repeat(item.text, text, "text")) if item.direct else item


async def ask_for_text(
    model: Model,
    prompt_name: str,
    slots: dict[str, Any],
    brief: Brief,
    evidence: Sequence[Evidence] = (),
    *,
    may_stay: bool = False,
) -> Proposal:
    """Put a prompt that asks for a whole new text to a model, and take its answer for a proposal.

    Args:
        model: who is asked.
        prompt_name: the prompt.
        slots: what it says.
        brief: what the proposal is for.
        evidence: the feedback that every new line is to name.
        may_stay: whether the prompt says that an empty text proposes nothing, as an empty list of edits does. Where it
            asks for another text in any case, an empty one is none that could be used.

    Raises:
        ModelError: there is no answer, or none in the form that is asked for.
        ContractError: the answer holds what texts are only shown with.
    """
    body = await ask(model, prompt_name, "rewrite", REWRITE_SCHEMA, slots)
    shown = [brief.text, *(text for text, _ in brief.others), *brief.tried, *brief.examples]
    text = unwrapped(str(body["text"]), shown).strip("\n")
    if found := left_over(text, shown):
        raise ContractError(f"the text has `{found}`, which is only how texts are shown; leave it out")
    if may_stay and not text.strip():
        return Proposal(brief.text, brief.origins)
    if text == brief.text.strip("\n"):  # line ends around the text are no change
        text = brief.text
    origins = origins_of_rewrite(brief.text, brief.origins, text, body["reason"], evidence, brief.step)
    return Proposal(text, tuple(origins))


async def ask(model: Model, prompt_name: str, answer: str, schema: dict[str, Any], slots: dict[str, Any]) -> Any:
    """The JSON that a model answers to a prompt of `prompts/`.

    Args:
        model: who is asked.
        prompt_name: the name of the prompt.
        answer: the name of the answer's form, which the endpoint sees.
        schema: the answer's JSON schema.
        slots: the values of the prompt's slots.

    Raises:
        ModelError: there was no answer, or none that fits the schema.
    """
    prompt = templates.load(prompt_name)
    request = Request(
        messages=(
            Message(role="system", content=prompt.system),
            Message(role="user", content=prompt.render(**slots)),
        ),
        config=GenerateConfig(response_format=ResponseFormat(name=answer, json_schema=schema)),
        purpose="optimizer",
    )
    with call_key_scope("step"):
        completion = await model.complete(request)
    return json.loads(completion.text)
