"""Drafts: what a search proposes before anything is decided about it, and the desk where proposers are asked."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

from textgrad_engine import dispatch, templates
from textgrad_engine.autograd import Variable
from textgrad_engine.errors import UNANSWERED
from textgrad_engine.llm.cachekey import repeat
from textgrad_engine.llm.model import Model
from textgrad_engine.optim.change import Change
from textgrad_engine.optim.contracts import Contract, broken, contracts_for
from textgrad_engine.optim.gather import Heard
from textgrad_engine.optim.optimizer import Optimizer
from textgrad_engine.optim.proposers import Brief, Proposal, Proposer, propose
from textgrad_engine.optim.proposers.asking import LateModel
from textgrad_engine.optim.search.objective import Texts
from textgrad_engine.optim.search.population import Candidate
from textgrad_engine.optim.search.written import Written
from textgrad_engine.optim.showing import numbered
from textgrad_engine.optim.transforms import Context

Answer: TypeAlias = Proposal | str
"""A proposal, or in words why there is none: the model gave no answer."""


@dataclass(frozen=True)
class Draft:
    """A candidate that is proposed, and how it was come by.

    Attributes:
        number: which proposal of the search it is, from 1.
        kind: how it was made, such as ``"mutation"``.
        candidate: its texts; those of its parent where nothing was proposed.
        written: what was written for each parameter concerned.
        examples: the training examples that it learns from, by position.
        scores: their scores before; None where no answer was to be had.
        feedback: how many pieces of feedback reached the parameters.
        problems: answers that were not to be had, in words.
    """

    number: int
    kind: str
    candidate: Candidate
    written: tuple[Written, ...] = ()
    examples: tuple[int, ...] = ()
    scores: tuple[float | None, ...] = ()
    feedback: int = 0
    problems: tuple[str, ...] = ()

    @property
    def dropped(self) -> str:
        """Why nothing came of it, in words; "" when something did."""
        problems = [written.problem for written in self.written if written.problem]
        if problems:
            return f"dropped: {problems[0]}"
        return self.problems[-1] if self.problems else ""


@dataclass(frozen=True)
class Job:
    """A proposer, what it is told, and which sample of its answer is wanted."""

    proposer: Proposer
    brief: Brief
    sample: int = 0


@dataclass(frozen=True)
class Desk:
    """Where a search has texts proposed.

    Attributes:
        variables: the parameters.
        groups: for each parameter the settings of its group.
        model: who is asked; None stands for the optimizer of `use_models`.
    """

    variables: tuple[Variable, ...]
    groups: tuple[Mapping[str, Any], ...]
    model: str | Model | None

    @classmethod
    def of(cls, optimizer: Optimizer, model: str | Model | None, variables: Sequence[Variable] | None = None) -> Desk:
        """The desk of an optimizer.

        Args:
            optimizer: whose groups say what is asked for, and what a text must keep.
            model: who is asked.
            variables: what the texts are of, in this order; None for the optimizer's parameters. Of others it has no
                settings.
        """
        own = optimizer.variables()
        known = {id(variable) for variable in own}
        every = tuple(own if variables is None else variables)
        return cls(every, tuple(optimizer.group_of(each) if id(each) in known else {} for each in every), model)

    def brief(self, candidate: Candidate, parameter: int, *, step: int, max_edits: int = 4, **more: Any) -> Brief:
        """What a proposer is told about one parameter of a candidate.

        Args:
            candidate: whose text it is.
            parameter: which one, by position.
            step: the number of the proposal.
            max_edits: at most so many edits, where the proposer makes edits.
            more: further fields of the brief.
        """
        return Brief(
            role=self.variables[parameter].role,
            text=candidate.texts[parameter],
            origins=candidate.origins[parameter],
            contracts=self.contracts(parameter),
            max_edits=max_edits,
            step=step,
            **more,
        )

    def heard(
        self,
        gradient: Sequence[Variable],
        candidate: Candidate,
        parameter: int,
        step: int,
        history: tuple[str, ...] = (),
    ) -> Heard:
        """The feedback on one parameter of a candidate, for `optim.gather.gather`.

        Args:
            gradient: the feedback.
            candidate: whose text it is about.
            parameter: which one, by position.
            step: the number of the proposal.
            history: what was tried before.
        """
        text = candidate.texts[parameter]
        return Heard(
            gradient,
            Context(text, self.variables[parameter].role, self.model, step),
            lambda told: self.room(parameter, [numbered(text), *told]),
            self.groups[parameter]["transforms"],
            history,
        )

    def room(self, parameter: int, beside: Iterable[str]) -> int:
        """How many tokens of feedback, or of what stands in its place, may be shown beside other texts."""
        fixed = templates.load("optimizer_patch").system  # the longest of those beside feedback
        return LateModel(self.model).room(self.groups[parameter]["max_feedback_tokens"], [*beside, fixed])

    def contracts(self, parameter: int) -> tuple[Contract, ...]:
        """What the texts of a parameter must keep; nothing where its group does not have the settings for it."""
        group = self.groups[parameter]
        if not {"constraints", "max_tokens"} <= group.keys():
            return ()
        return contracts_for(group["constraints"], group["max_tokens"], variable=self.variables[parameter])

    def problem(self, before: Texts, after: Texts) -> str:
        """What is wrong with texts by their contracts; "" when they keep them."""
        pairs = [(n, old, new) for n, (old, new) in enumerate(zip(before, after)) if old != new]
        return "; ".join(filter(None, (broken(self.contracts(n), old, new) for n, old, new in pairs)))

    def ask(self, jobs: Sequence[Job]) -> list[Answer]:
        """Have all jobs done at once; an answer that is not to be had costs its job alone.

        Raises:
            ModelError: the models cannot be asked at all.
        """
        model = LateModel(self.model)

        async def one(job: Job) -> Answer:
            try:
                return await propose(job.proposer, job.brief, model)
            except UNANSWERED as error:
                return f"the optimizer gave no answer: {type(error).__name__}: {error}"

        async def all_of_them() -> list[Answer]:
            tasks = []
            for job in jobs:
                with repeat(job.sample):  # part of the cache's key
                    tasks.append(asyncio.ensure_future(one(job)))
            try:
                return await asyncio.gather(*tasks)
            finally:
                for task in tasks:
                    task.cancel()

        return dispatch.run(all_of_them, label="the proposals of a search") if jobs else []

    def filled(self, draft: Draft, parameter: int, brief: Brief, answer: Answer) -> Draft:
        """A draft that has its parent's texts, with the answer in it.

        Args:
            draft: the draft; where there is no answer, it gets a problem and stays as it is.
            parameter: which text the answer is for, by position.
            brief: what it was told.
            answer: what it gave.
        """
        if isinstance(answer, str):
            return replace(draft, problems=(*draft.problems, answer))
        texts, origins = list(draft.candidate.texts), list(draft.candidate.origins)
        texts[parameter], origins[parameter] = answer.text, answer.origins
        told = answer.edits, brief.items, brief.left_out, answer.problem, answer.refused
        written = Written(parameter, brief.text, answer.text, *told)
        child = replace(draft.candidate, texts=tuple(texts), origins=tuple(origins))
        return replace(draft, candidate=child, written=(*draft.written, written))

    def changes(self, draft: Draft) -> tuple[Change, ...]:
        """What a draft changes, with the parameters themselves."""
        return tuple(written.change(self.variables[written.parameter]) for written in draft.written)
