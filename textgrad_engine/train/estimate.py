"""What a run will cost, before anything is paid for: the requests are made for real, and nobody is asked.

A few examples are put through the program, the loss, one backward pass and one optimizer step, with a model inside this
process that counts what it is sent and answers with placeholders. So the input is that of the real run (the prompts,
the templates of critic and optimizer, chains of calls); what cannot be known beforehand is stated as a range. Calls
that are repeated after a bad answer come on top of it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from textgrad_engine.autograd import Variable
from textgrad_engine.llm import tokens
from textgrad_engine.llm.model import Model
from textgrad_engine.llm.prices import price_of
from textgrad_engine.llm.request import Request
from textgrad_engine.llm.response import Completion, Usage
from textgrad_engine.llm.roles import use_models
from textgrad_engine.llm.usage import meter
from textgrad_engine.nn import Module
from textgrad_engine.optim import Optimizer
from textgrad_engine.optim.search.searcher import Searcher
from textgrad_engine.train.trainer import Trainer

__all__ = ["Estimate", "Range", "estimate"]

SAMPLE = 8
"""Examples that are put through."""

ANSWER_TOKENS = {"forward": (1, 4), "judge": (8, 120), "backward": (6, 120), "optimizer": (4, 600)}
"""Tokens of an answer, at least (JSON that says nothing) and at most, reasoning aside; for "forward" a multiple of the
target's tokens. A rewritten text may be longer."""

WRONG_SHARE = (0.05, 1.0)
"""The share of a minibatch that is wrong and needs feedback, at least and at most."""

LINE_TOKENS = 20
"""Tokens of a line that an edit adds; in the course of a run prompts grow by up to `max_edits` lines a step."""

SHRINK = 0.5
"""The share of the trained texts that edits may take away by and by."""

SHOWN_ANSWER = 100
"""Tokens of an answer that the optimizer is shown beside the feedback on it."""

_TEXT = re.compile(r"<text-([0-9a-f]{8})>\n(.*?)\n</text-\1>", re.DOTALL)


@dataclass(frozen=True)
class Range:
    """What a run may use of something, at least and at most.

    Attributes:
        low: the least.
        high: the most.
    """

    low: float
    high: float

    def __add__(self, other: Range) -> Range:
        return Range(self.low + other.low, self.high + other.high)


@dataclass(frozen=True)
class Estimate:
    """What a run will use.

    Attributes:
        calls: by purpose.
        input_tokens: by purpose.
        output_tokens: by purpose; reasoning not included.
        dollars: in all; None when the price of a model is not known.
        steps: how many optimizer steps there are at most.
        counted: how tokens were counted.
    """

    calls: dict[str, Range]
    input_tokens: dict[str, Range]
    output_tokens: dict[str, Range]
    dollars: Range | None
    steps: int
    counted: str


class _Placeholder:
    """Counts what it is sent; answers with the least that the request's schema allows."""

    name = "estimate"
    free = True

    def __init__(self, score: float) -> None:
        self._score = score

    async def complete(self, request: Request) -> Completion:
        wanted = request.config.response_format
        filler = ""
        if request.purpose == "backward":
            filler = "?"  # feedback that says something, so that the optimizer is asked too
        elif request.purpose == "optimizer" and (shown := _TEXT.search(request.messages[-1].text)):
            filler = shown[2]  # the text as it is keeps its contracts, and is not asked for twice
        text = "?" if wanted is None else json.dumps(self._least(wanted.json_schema, filler))
        used = Usage(calls=1, input_tokens=tokens.count_request(request), output_tokens=1)
        return Completion(text=text, usage=used, model=self.name)

    def _least(self, schema: Mapping[str, Any], filler: str) -> Any:
        kind = schema.get("type")
        if "enum" in schema:
            return schema["enum"][0]
        if kind == "object":
            return {name: self._least(part, filler) for name, part in schema.get("properties", {}).items()}
        if kind in ("number", "integer"):
            return self._score
        return {"array": [], "boolean": False}.get(str(kind), filler)


def estimate(
    trainer: Trainer,
    program: Module,
    loss: Callable[..., Variable],
    optimizer: Optimizer,
    train: Sequence[dict[str, Any]],
    val: Sequence[dict[str, Any]],
    test: Sequence[dict[str, Any]] | None = None,
    *,
    models: Mapping[str, Model] | None = None,
    lowest_score: float = 0,
) -> Estimate:
    """What ``trainer.fit(program, loss, optimizer, train, val, test)`` will use. Nothing is asked, nothing changes.

    Args:
        trainer: its settings count; its run folder and callbacks are left alone.
        program: as for `fit`; so are `loss`, `optimizer` and the sets.
        loss: the loss.
        optimizer: the optimizer.
        train: the training set.
        val: the validation set.
        test: the test set.
        models: by purpose, for prices; without it, dollars is None.
        lowest_score: what a judge gives in the rehearsal; its scale must hold it.

    Raises:
        DataError: as `fit`.
        TypeError: the optimizer searches, and ends when nothing is left to try, which nobody knows beforehand.

    Example:
        >>> from textgrad_engine import nn, optim
        >>> program = nn.ChatCompletion("{word}", system=nn.Parameter("Repeat.", role="system prompt"))
        >>> rows = [{"word": str(n), "target": str(n)} for n in range(40)]
        >>> optimizer = optim.TGD(program.parameters())
        >>> found = estimate(Trainer(batch_size=20), program, nn.ExactMatch(), optimizer, rows, rows[:10])
        >>> found.steps, found.calls["forward"]
        (2, Range(low=50.0, high=70.0))
    """
    if isinstance(optimizer, Searcher):
        raise TypeError(
            f"estimate knows optimizers that go step by step, such as optim.TGD; {type(optimizer).__name__} searches "
            "until nothing is left to try. Limit it: tg.budget(dollars=...), or Trainer(max_steps=...)"
        )
    plan = _Plan.of(trainer, train, val, test)
    sample = min(SAMPLE, len(train))
    used = _rehearsal(trainer, program, loss, optimizer, train, val, sample, lowest_score)
    seen = sample + min(SAMPLE, len(val))  # examples that went forward in the rehearsal
    target = _mean_tokens([row.get(trainer.target) for row in list(train)[:SAMPLE]])
    share = trainer.feedback_batch_size
    all_right = (1 - WRONG_SHARE[0]) ** plan.batch  # how likely it is that a minibatch has nothing to be told about
    factors = {
        "forward": _scaled(plan.examples, 1 / seen),
        "judge": _scaled(plan.examples, 1 / seen),
        "backward": Range(
            plan.trained.low * WRONG_SHARE[0] / sample / share, plan.trained.high * WRONG_SHARE[1] / sample
        ),
        "optimizer": Range(plan.steps.low * (1 - all_right), 2 * plan.steps.high),
    }
    calls, inputs, outputs = {}, {}, {}
    for purpose, usage in used.items():
        factor = factors[purpose]
        calls[purpose] = _scaled(factor, usage.calls)
        less, more = _drift(purpose, optimizer, plan, target)
        least = max(0.1, 1 - less * usage.calls / max(1, usage.input_tokens))
        inputs[purpose] = Range(
            factor.low * usage.input_tokens * least, factor.high * usage.input_tokens + calls[purpose].high * more
        )
        fewest, most = ANSWER_TOKENS[purpose]
        if purpose == "optimizer":
            most += _rewritten(optimizer)
        unit = target if purpose == "forward" else 1
        outputs[purpose] = Range(calls[purpose].low * fewest * unit, calls[purpose].high * most * unit)
    if trainer.controls:
        tests = 0 if test is None else len(test)
        at_most = sum(found.high for found in calls.values())
        for purpose, extra in _controls(used, seen, at_most, len(val), tests).items():
            average = [
                Range(part[purpose].low / max(calls[purpose].low, 1), part[purpose].high / max(calls[purpose].high, 1))
                for part in (inputs, outputs)
            ]
            inputs[purpose] += Range(extra.low * average[0].low, extra.high * average[0].high)
            outputs[purpose] += Range(extra.low * average[1].low, extra.high * average[1].high)
            calls[purpose] += extra
    dollars = None if models is None else _dollars(models, inputs, outputs)
    return Estimate(calls, inputs, outputs, dollars, round(plan.steps.high), tokens.method())


def _controls(used: Mapping[str, Usage], seen: int, most: float, val: int, tests: int) -> dict[str, Range]:
    """Further calls for the two controls, by purpose: each runs the validation set at least, and is tested at most.

    Args:
        used: in the rehearsal.
        seen: examples that went forward there.
        most: the most calls that the optimizer's run makes, and so each control's search.
        val: how many examples to validate on.
        tests: how many to test on.
    """
    an_example = {name: used[name].calls / seen for name in ("forward", "judge") if name in used}
    examples = most / max(1.0, sum(an_example.values())) + val + tests
    extra = {name: Range(2 * val * each, 2 * max(val, examples) * each) for name, each in an_example.items()}
    if "optimizer" in used:  # one of the two asks it, and races each answer on two examples at least
        extra["optimizer"] = Range(0, most / 2)
    return extra


@dataclass(frozen=True)
class _Plan:
    """What a run goes over: steps, examples that are trained on, and examples that go forward in all."""

    batch: int
    steps: Range
    trained: Range
    examples: Range

    @classmethod
    def of(cls, trainer: Trainer, train: Sequence[Any], val: Sequence[Any], test: Sequence[Any] | None) -> _Plan:
        batch = min(trainer.batch_size, len(train))
        an_epoch = -(-len(train) // batch)
        most = trainer.max_epochs * an_epoch
        if trainer.max_steps is not None:
            most = min(most, trainer.max_steps)
        fewest = most if trainer.patience is None else min(most, trainer.patience)

        def trained_in(steps: int) -> int:
            epochs, rest = divmod(steps, an_epoch)
            return epochs * len(train) + min(rest * batch, len(train))

        tests = 0 if test is None else len(test)
        trained = Range(trained_in(fewest), trained_in(most))
        examples = Range(trained.low + len(val) + tests, trained.high + (1 + most) * len(val) + 2 * tests)
        return cls(batch, Range(fewest, most), trained, examples)


def _drift(purpose: str, optimizer: Optimizer, plan: _Plan, target: float) -> tuple[float, float]:
    """Tokens that the input of a call may be below and above that of the rehearsal, on the average over a run."""
    steps = plan.steps.high
    now = growth = told = past = 0.0
    for group in optimizer.param_groups:
        texts = sum([tokens.count(str(parameter.data)) for parameter in group["params"]])
        edits = group.get("max_edits", 1) * len(group["params"])
        limit = group.get("max_tokens", 2000) * len(group["params"])
        now += texts
        growth += min(steps * edits * LINE_TOKENS, max(0, limit - texts)) / 2
        told = max(told, min(group.get("max_feedback_tokens", 8000), plan.batch * (_FEEDBACK + SHOWN_ANSWER)))
        past += group.get("momentum", 0) * group.get("max_edits", 1) * 2 * LINE_TOKENS
    answers = ANSWER_TOKENS["forward"][1] * target  # of an earlier call in a chain, or the one that is judged
    more = growth + answers
    if purpose == "backward":
        more += growth + _FEEDBACK  # an input that is no whole message is shown beside the message made of it
    elif purpose == "optimizer":
        more += told + past
    return SHRINK * now, more


def _rewritten(optimizer: Optimizer) -> int:
    """Tokens of the texts that are written anew, at most."""
    groups = [group for group in optimizer.param_groups if group.get("mode") == "rewrite"]
    return max([group.get("max_tokens", 0) for group in groups], default=0)


_FEEDBACK = ANSWER_TOKENS["backward"][1]


def _rehearsal(
    trainer: Trainer,
    program: Module,
    loss: Callable[..., Variable],
    optimizer: Optimizer,
    train: Sequence[dict[str, Any]],
    val: Sequence[dict[str, Any]],
    sample: int,
    lowest_score: float,
) -> dict[str, Usage]:
    """Usage by purpose of one step on a few examples, with nobody asked."""
    held = optimizer.state_dict()
    rehearsal = Trainer(1, batch_size=sample, max_steps=1, target=trainer.target, concurrency=trainer.concurrency)
    placeholder = _Placeholder(lowest_score)
    try:
        with use_models(placeholder, placeholder, placeholder, placeholder), meter() as used:
            rehearsal.fit(program, loss, optimizer, list(train)[:sample], list(val)[:SAMPLE])
    finally:
        optimizer.load_state_dict(held)
    return used.by_purpose


def _scaled(values: Range, by: float) -> Range:
    return Range(values.low * by, values.high * by)


def _mean_tokens(targets: Sequence[Any]) -> float:
    counts = [tokens.count(str(target)) for target in targets if target is not None]
    return max(1.0, sum(counts) / len(counts)) if counts else 50.0


def _dollars(models: Mapping[str, Model], inputs: dict[str, Range], outputs: dict[str, Range]) -> Range | None:
    low = high = 0.0
    for purpose in inputs:
        model = models.get(purpose) or models["forward"]
        ends = []
        for end in ("low", "high"):
            usage = Usage(
                input_tokens=round(getattr(inputs[purpose], end)), output_tokens=round(getattr(outputs[purpose], end))
            )
            ends.append(price_of(model, usage))
        if ends[0] is None or ends[1] is None:
            return None
        low, high = low + ends[0], high + ends[1]
    return Range(low, high)
