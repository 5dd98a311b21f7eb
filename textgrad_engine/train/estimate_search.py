"""What a search will cost: how much it does by its settings (`optim.search.volume`), times what a request is like.

What a request is like is found out by making some: examples go forward and backward, and the optimizer makes one step,
with nobody asked.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from textgrad_engine.autograd import Variable
from textgrad_engine.callables import check_method
from textgrad_engine.errors import ReturnError
from textgrad_engine.llm import tokens
from textgrad_engine.llm.meters import meter
from textgrad_engine.llm.model import Model
from textgrad_engine.llm.response import Usage
from textgrad_engine.nn import Module
from textgrad_engine.ops.feedback import MOST_SHARED
from textgrad_engine.optim.saved import apart
from textgrad_engine.optim.search.searcher import Searcher
from textgrad_engine.optim.search.volume import Range, Sizes, Volume
from textgrad_engine.optim.texts import texts_now, write_texts
from textgrad_engine.train.estimated import (
    ANSWER_TOKENS,
    SHARED_INPUT,
    SHRINK,
    USUAL_ANSWER,
    Estimate,
    Placeholder,
    a_case,
    add_controls,
    dollars_of,
    mean_tokens,
    rehearsing,
    typical,
    unit_of,
)
from textgrad_engine.train.guards import guarded_by
from textgrad_engine.train.hearing import hearing
from textgrad_engine.train.objective import Objective
from textgrad_engine.train.targets import target_fields
from textgrad_engine.train.trainer import Trainer

SAMPLE = 8
"""Examples that are put through."""

CHECKS = 10
"""Before a decision guards look so often, one time after the other, at most: at a patch, at each of its edits, at all
but each of them, at what is left, likewise at what is shorter, and at what comes of it with what was kept meanwhile."""

USUALLY_WRONG = 0.65
"""The share of a minibatch that is wrong, as searches draw examples that failed before."""


def estimate_search(
    trainer: Trainer,
    program: Module,
    loss: Callable[..., Variable],
    optimizer: Searcher,
    train: Sequence[dict[str, Any]],
    val: Sequence[dict[str, Any]],
    test: Sequence[dict[str, Any]] | None,
    models: Mapping[str, Model] | None,
    lowest_score: float,
) -> Estimate:
    """What ``trainer.fit`` with a search will use, as `train.estimate.estimate` tells it; its arguments are those.

    Raises:
        DataError: as `fit`.
        TypeError: the search does not say how much it will do, or says it in another form (`errors.ReturnError`).
    """
    variables = optimizer.variables()
    guarded = guarded_by(trainer.guards, val, loss)
    guards = 0 if guarded is None else guarded.most_runs
    sizes = Sizes(len(train), len(val), guards, len(variables), trainer.max_steps, trainer.patience)
    check_method(optimizer, "volume", "sizes")
    volume = optimizer.volume(sizes)
    if not isinstance(volume, Volume):
        raise ReturnError(f"{type(optimizer).__name__}.volume() gave {volume!r:.80}; give an optim.Volume")
    if guarded is not None:
        forward, backward, asked = volume.waits
        again = Range(0, volume.decisions.high * CHECKS * guarded.reruns)
        volume = replace(volume, waits=(forward + again, backward, asked))
    seen = min(SAMPLE, len(train))
    nobody = Placeholder(lowest_score, models)
    used = _rehearsal(trainer, program, loss, optimizer, train, val, nobody)
    tests = 0 if test is None else len(test)
    examples = volume.examples + Range(len(val) + tests, 2 * len(val) + 2 * tests, 1.25 * len(val) + 2 * tests)
    now = sum(tokens.count(str(variable.data)) for variable in variables)
    answers = typical(train, SAMPLE)
    target = sum(mean_tokens([row.get(name) for row in answers]) for name in target_fields(loss, trainer.target))
    calls, inputs, outputs = {}, {}, {}
    for purpose, usage in used.items():
        part = _Part.of(purpose, usage, seen, examples, volume, now)
        if not part.calls.high:
            continue
        mean = usage.input_tokens / max(1, usage.calls)
        growth, more = volume.growth, Range(high=ANSWER_TOKENS["forward"][1] * target)
        if purpose == "backward":
            more += Range(0, growth.high + ANSWER_TOKENS["backward"][1], growth.usual / 2)
        elif purpose == "optimizer":
            more += volume.told
            if not trainer.critic and volume.asked.usual:
                read = USUALLY_WRONG * volume.feedback.usual / volume.asked.usual
                more += Range(usual=max(0.0, read - seen) * a_case(used["forward"], now))
        calls[purpose] = part.calls
        inputs[purpose] = Range(
            part.calls.low * max(0.1 * mean, mean - SHRINK * now),
            part.calls.high * (mean + growth.high + more.high),
            part.cases * part.each * mean + part.calls.usual * (growth.usual + more.usual),
        )
        fewest, most = ANSWER_TOKENS[purpose]
        usual = USUAL_ANSWER[purpose]
        if purpose == "optimizer" and volume.rewrites:
            most += round(now + growth.high)
            usual += now + growth.usual
        unit = unit_of(purpose, usage, seen, target, answers)
        outputs[purpose] = Range(
            part.calls.low * fewest * unit.low, part.calls.high * most * unit.high, part.cases * usual * unit.usual
        )
    waits = _waits(volume, used, seen, bool(tests))
    if trainer.controls:
        add_controls(calls, inputs, outputs, used, seen, len(val), tests, optimizer)
        waits = None
    dollars = None if models is None else dollars_of(models, inputs, outputs)
    steps = round(volume.decisions.high)
    return Estimate(calls, inputs, outputs, dollars, steps, tokens.method(), waits, nobody.assuming(volume.assumed))


@dataclass(frozen=True)
class _Part:
    """The calls of one purpose; of what is usual, how many cases they hold, and the part of a request that each is."""

    calls: Range
    cases: float
    each: float = 1.0

    @classmethod
    def of(cls, purpose: str, usage: Usage, seen: int, examples: Range, volume: Volume, now: int) -> _Part:
        an_example = usage.calls / seen
        if purpose == "optimizer":
            return cls(volume.asked, volume.asked.usual)
        if purpose == "backward":
            cases = volume.feedback.usual * USUALLY_WRONG * an_example
            own = usage.input_tokens / max(1, usage.calls) - now
            alone = volume.shared == 1 or 4 * own * volume.shared > MOST_SHARED  # so documents are asked about
            together = 1 if alone else volume.shared
            high = volume.feedback.high * an_example
            return cls(Range(0, high, cases / together), cases, 1.0 if alone else SHARED_INPUT)
        calls = examples * an_example
        return cls(calls, calls.usual)


def _waits(volume: Volume, used: Mapping[str, Usage], seen: int, tested: bool) -> Range | None:
    """Answers that are waited for one after the other: passes, times the calls that an example makes in a row."""

    def deep(purpose: str) -> Range:
        calls = used[purpose].calls / seen if purpose in used else 0.0
        return Range(min(1.0, calls), calls, calls)

    forward, backward, asked = volume.waits
    forward += Range(1 + tested, 2 + 2 * tested, 1.5 + 2 * tested)
    once = deep("forward") + deep("judge")
    back = deep("backward")
    ends = [
        getattr(forward, end) * getattr(once, end) + getattr(backward, end) * getattr(back, end) + getattr(asked, end)
        for end in ("low", "high", "usual")
    ]
    return Range(*ends)


def _rehearsal(
    trainer: Trainer,
    program: Module,
    loss: Callable[..., Variable],
    optimizer: Searcher,
    train: Sequence[dict[str, Any]],
    val: Sequence[dict[str, Any]],
    nobody: Placeholder,
) -> dict[str, Usage]:
    """Usage by purpose: of some examples that go forward and backward by themselves, and of one step's requests."""
    held = apart(optimizer.state_dict())
    variables = optimizer.variables()
    before = [variable.data for variable in variables]

    rows = typical(train, SAMPLE), typical(val, SAMPLE)

    def objective() -> Objective:
        # A new one each time: what was scored once is not asked for again.
        return Objective(program, loss, *rows, target=trainer.target, parameters=variables)

    found: dict[str, Usage] = {}
    try:
        with rehearsing(nobody, optimizer):
            first, second = objective(), objective()
            second.reach = first.reach  # which tells of each thing once
            with meter() as used, hearing(trainer, rows[0]), optimizer.hearing(batch_size=1):
                first.feedback(texts_now(variables), range(min(SAMPLE, len(train))))
            found |= used.by_purpose
            with meter() as used, hearing(trainer, rows[0]):
                optimizer.step(second)
                optimizer.close()  # what goes on in the background is counted, too
            found |= {purpose: usage for purpose, usage in used.by_purpose.items() if purpose == "optimizer"}
    finally:
        optimizer.load_state_dict(held)
        write_texts(variables, before)
    return found
