"""What a run will cost, before anything is paid for: the requests are made for real, and nobody is asked.

A few examples are put through the program, the loss, one backward pass and one optimizer step, with a model inside this
process that counts what it is sent and answers with placeholders. So the input is that of the real run (the prompts,
the templates of critic and optimizer, chains of calls); what cannot be known beforehand is stated as a range.
"""

from __future__ import annotations

import json
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
from textgrad_engine.train.trainer import Trainer

__all__ = ["Estimate", "Range", "estimate"]

SAMPLE = 8
"""Examples that are put through."""

ANSWER_TOKENS = {"forward": (1, 4), "judge": (30, 120), "backward": (20, 120), "optimizer": (80, 600)}
"""Tokens of an answer, at least and at most, reasoning aside; for "forward" it is a multiple of the target's tokens."""

WRONG_SHARE = (0.05, 1.0)
"""The share of a minibatch that is wrong and needs feedback, at least and at most."""

LINE_TOKENS = 20
"""Tokens of a line that an edit adds; in the course of a run prompts grow by up to `max_edits` lines a step."""


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
        text = "?" if wanted is None else json.dumps(self._least(wanted.json_schema))
        if request.purpose == "backward" and wanted is not None:
            text = text.replace('""', '"?"')  # feedback that says something, so that the optimizer is asked too
        used = Usage(calls=1, input_tokens=tokens.count_request(request), output_tokens=1)
        return Completion(text=text, usage=used, model=self.name)

    def _least(self, schema: Mapping[str, Any]) -> Any:
        kind = schema.get("type")
        if "enum" in schema:
            return schema["enum"][0]
        if kind == "object":
            return {name: self._least(part) for name, part in schema.get("properties", {}).items()}
        if kind in ("number", "integer"):
            return self._score
        return {"array": [], "boolean": False}.get(str(kind), "")


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

    Example:
        >>> from textgrad_engine import nn, optim
        >>> program = nn.ChatCompletion("{word}", system=nn.Parameter("Repeat.", role="system prompt"))
        >>> rows = [{"word": str(n), "target": str(n)} for n in range(40)]
        >>> optimizer = optim.TGD(program.parameters())
        >>> found = estimate(Trainer(batch_size=20), program, nn.ExactMatch(), optimizer, rows, rows[:10])
        >>> found.steps, found.calls["forward"]
        (2, Range(low=50.0, high=70.0))
    """
    batch = min(trainer.batch_size, len(train))
    steps = trainer.max_epochs * -(-len(train) // batch)
    if trainer.max_steps is not None:
        steps = min(steps, trainer.max_steps)
    sample = min(SAMPLE, len(train))
    used = _rehearsal(trainer, program, loss, optimizer, train, val, sample, lowest_score)
    seen = sample + min(SAMPLE, len(val))  # examples that went forward in the rehearsal
    target = _mean_tokens([row.get(trainer.target) for row in list(train)[:SAMPLE]])
    trained = steps * batch
    once = trained + len(val)
    validations = steps * len(val)
    tests = 2 * len(test) if test is not None else 0
    examples = Range(once + tests / 2, once + validations + tests)
    share = trainer.feedback_batch_size
    factors = {
        "forward": _scaled(examples, 1 / seen),
        "judge": _scaled(examples, 1 / seen),
        "backward": Range(trained * WRONG_SHARE[0] / sample / share, trained * WRONG_SHARE[1] / sample),
        "optimizer": Range(steps, 2 * steps),
    }
    edits = sum(group.get("max_edits", 1) * len(group["params"]) for group in optimizer.param_groups)
    growth = steps * edits * LINE_TOKENS / 2  # on the average over the run
    calls, inputs, outputs = {}, {}, {}
    for purpose, usage in used.items():
        factor = factors[purpose]
        calls[purpose] = _scaled(factor, usage.calls)
        inputs[purpose] = Range(
            factor.low * usage.input_tokens, factor.high * usage.input_tokens + calls[purpose].high * growth
        )
        least, most = ANSWER_TOKENS[purpose]
        unit = target if purpose == "forward" else 1
        outputs[purpose] = Range(calls[purpose].low * least * unit, calls[purpose].high * most * unit)
    dollars = None if models is None else _dollars(models, inputs, outputs)
    return Estimate(calls, inputs, outputs, dollars, steps, tokens.method())


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
