"""What a run will cost, before anything is paid for: the requests are made for real, and nobody is asked.

A few examples are put through the program, the loss, one backward pass and one optimizer step, with a model inside this
process that counts what it is sent and answers with placeholders. So the input is that of the real run (the prompts,
the templates of critic and optimizer, chains of calls); what cannot be known beforehand is stated as a range. Calls
that are repeated after a bad answer come on top of it. `estimate_search` does the same for searches, whose settings say
how often each of these requests is made.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from textgrad_engine import templates
from textgrad_engine.autograd import Variable
from textgrad_engine.checks import check
from textgrad_engine.data import DataLoader
from textgrad_engine.keywords import names_told
from textgrad_engine.llm import tokens
from textgrad_engine.llm.meters import meter
from textgrad_engine.llm.model import Model
from textgrad_engine.llm.response import Usage
from textgrad_engine.nn import Module
from textgrad_engine.optim import Optimizer
from textgrad_engine.optim.choose import GLANCE as CHOSEN_ON
from textgrad_engine.optim.proposers.unaided import MOST_SHOWN
from textgrad_engine.optim.saved import apart
from textgrad_engine.optim.search.noise import MEASURED
from textgrad_engine.optim.search.race import GLANCE
from textgrad_engine.optim.search.searcher import Searcher
from textgrad_engine.optim.search.trim import CHECKED, MOST_LOOKED
from textgrad_engine.optim.search.volume import Range
from textgrad_engine.train.estimate_search import estimate_search
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
    summed,
    typical,
    unit_of,
)
from textgrad_engine.train.fold_parts import Part
from textgrad_engine.train.guarded import Guarded
from textgrad_engine.train.guards import guarded_by
from textgrad_engine.train.proving import MOST_EDITS
from textgrad_engine.train.targets import target_fields
from textgrad_engine.train.trainer import Trainer
from textgrad_engine.train.trainer_checks import check_parts, sets_of

SAMPLE = 8
"""Examples that are put through."""

LINE_TOKENS = 20
"""Tokens of a line that an edit adds; in the course of a run prompts grow by up to `max_edits` lines a step."""

SHOWN_ANSWER = 100
"""Tokens of an answer that the optimizer is shown beside the feedback on it."""

USUALLY_WRONG, USUALLY_ASKED, USUALLY_RACED, USUAL_GROWTH, USUAL_EDITS = 0.25, 0.75, 0.8, 0.2, 4
"""What is usual, by runs on simulated tasks: the share of training examples that are wrong, on the average over a run;
of steps that have something to ask; of the validation set that is run for a step; of the most that prompts grow with so
many edits a step; and these, where more are allowed."""

USUAL_PATIENCE = 3
"""A run with patience usually ends after so many times that number of steps."""


@names_told
def estimate(
    trainer: Trainer,
    program: Module,
    loss: Callable[..., Variable],
    optimizer: Optimizer,
    train: Sequence[dict[str, Any]] | DataLoader[dict[str, Any]],
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
        train: the training set, or a loader of it.
        val: the validation set.
        test: the test set.
        models: by purpose, for prices; without it, dollars is None.
        lowest_score: what a judge gives in the rehearsal; its scale must hold it.

    Raises:
        DataError: as `fit`.
        TypeError: a set is no sequence of dicts, or the optimizer is a search that does not say how much it will do.

    Example:
        >>> from textgrad_engine import nn, optim
        >>> program = nn.ChatCompletion("{word}", system=nn.Parameter("Repeat.", role="system prompt"))
        >>> rows = [{"word": str(n), "target": str(n)} for n in range(40)]
        >>> optimizer = optim.TGD(program.parameters())
        >>> found = estimate(Trainer(batch_size=20), program, nn.ExactMatch(), optimizer, rows, rows[:10])
        >>> found.steps, found.calls["forward"]
        (2, Range(low=10.0, high=1138.0))
    """
    check_parts(program, loss, optimizer, call="estimate")
    loader, val, test = sets_of(trainer, train, val, test, call="estimate")
    check(estimate, locals())
    rows = loader.dataset
    guarded = guarded_by(trainer.guards, val, loss, rows, test)
    if isinstance(optimizer, Searcher):
        return estimate_search(trainer, program, loss, optimizer, rows, val, test, models, lowest_score)
    plan = _Plan.of(trainer, optimizer, loader, val, test, guarded)
    sample = min(SAMPLE, len(rows))
    nobody = Placeholder(lowest_score, models)
    used = _rehearsal(trainer, program, loss, optimizer, rows, val, sample, nobody)
    seen = sample + min(SAMPLE, len(val))  # examples that went forward in the rehearsal
    answers = typical(rows, SAMPLE)
    target = sum(mean_tokens([row.get(name) for row in answers]) for name in target_fields(loss, trainer.target))
    share = trainer.feedback_batch_size
    factors = {
        "forward": plan.examples * (1 / seen),
        "judge": plan.examples * (1 / seen),
        "backward": Range(
            0,
            plan.trained.high / sample,
            plan.trained.usual * USUALLY_WRONG / sample / share,
        ),
        "optimizer": _asked(optimizer, plan),
    }
    read = 0.0  # tokens of the cases that an optimizer reads by itself, beside those of the rehearsal
    if not trainer.critic:
        read = max(0.0, plan.batch * USUALLY_WRONG - sample) * a_case(used["forward"], plan.texts)
    calls, inputs, outputs = {}, {}, {}
    for purpose, usage in used.items():
        factor = factors[purpose]
        calls[purpose] = factor * usage.calls
        less, more, above = _drift(purpose, optimizer, plan, target, trainer.critic)
        above += read if purpose == "optimizer" else 0.0
        least = max(0.1, 1 - less * usage.calls / max(1, usage.input_tokens))
        cases, each = (share, SHARED_INPUT) if purpose == "backward" and share > 1 else (1, 1.0)  # in a request
        asked = calls[purpose].usual
        inputs[purpose] = Range(
            factor.low * usage.input_tokens * least,
            factor.high * usage.input_tokens + calls[purpose].high * more,
            factor.usual * cases * each * usage.input_tokens + asked * above,
        )
        fewest, most = ANSWER_TOKENS[purpose]
        usual = USUAL_ANSWER[purpose] * cases
        if purpose == "optimizer":
            rewritten = _rewritten(optimizer)
            most += rewritten
            usual += min(rewritten, plan.texts)
        unit = unit_of(purpose, usage, seen, target, answers)
        outputs[purpose] = Range(
            calls[purpose].low * fewest * unit.low, calls[purpose].high * most * unit.high, asked * usual * unit.usual
        )
    if merging := _merging(optimizer, plan):
        told = plan.batch * _FEEDBACK + tokens.count(templates.load("reduce").system) + _FRAME
        for part, each in ((calls, 1), (inputs, told), (outputs, ANSWER_TOKENS["optimizer"][1])):
            most_of_them = Range(0, merging * each, merging * each * USUALLY_WRONG)
            part["optimizer"] = part.get("optimizer", Range()) + most_of_them
    if trainer.controls:
        add_controls(calls, inputs, outputs, used, seen, len(val), 0 if test is None else len(test), optimizer)
    dollars = None if models is None else dollars_of(models, inputs, outputs)
    steps, assumed = round(plan.steps.high), nobody.assuming()
    return Estimate(calls, inputs, outputs, dollars, steps, tokens.method(), assumed=assumed)


def estimate_parts(waves: Sequence[Sequence[Part]], of: Callable[[Part], Estimate]) -> Estimate:
    """What the runs of a cross-validation will use together.

    Args:
        waves: what each works with, by `folds.parts_of`; those that go on at once together, by `fold_parts.waves_of`.
        of: gives the estimate of one of them; parts of the same sizes are estimated once.
    """
    known: dict[tuple[int, ...], Estimate] = {}

    def of_its_size(part: Part) -> Estimate:
        size = len(part.train), len(part.val), 0 if part.test is None else len(part.test)
        if size not in known:
            known[size] = of(part)
        return known[size]

    return summed([[of_its_size(part) for part in wave] for wave in waves])


@dataclass(frozen=True)
class _Plan:
    """What a run goes over: steps, examples that are trained on, and examples that go forward in all."""

    batch: int
    steps: Range
    trained: Range
    examples: Range
    texts: int

    @classmethod
    def of(
        cls,
        trainer: Trainer,
        optimizer: Optimizer,
        loader: DataLoader[Any],
        val: Sequence[Any],
        test: Sequence[Any] | None,
        guarded: Guarded | None,
    ) -> _Plan:
        batch, an_epoch = min(loader.batch_size, loader.examples), len(loader)
        most = trainer.max_epochs * an_epoch
        if trainer.max_steps is not None:
            most = min(most, trainer.max_steps)

        def trained_in(steps: int) -> int:
            epochs, rest = divmod(steps, an_epoch)
            return epochs * loader.examples + min(rest * batch, loader.examples)

        tests = 0 if test is None else len(test)
        usually = most if trainer.patience is None else min(most, USUAL_PATIENCE * trainer.patience)
        steps = Range(0, most, usually)  # a seed prompt with full marks ends a run
        trained = Range(0, trained_in(most), trained_in(usually))
        validated = (1 + most) * len(val) + min(MEASURED, len(val))  # a few are run twice before the first race
        edits = _edits(optimizer)
        # A step is looked at, run without each of its edits and with each alone, before its race and after a lost one.
        if edits > 1:
            looked, changed = min(2 * GLANCE, len(val)), min(2 * MOST_LOOKED, len(val))
            trimmed = 2 * (looked + edits * (looked + changed) + len(val)) + min(CHECKED, len(val))
            if guarded:  # of a step that is refused the edits are run by themselves, and what is left is raced
                trimmed += 2 * edits * guarded.most_runs + len(val) + trimmed
            validated += most * trimmed
        if guarded:  # what a step breaks is run again, and what is left of it breaks
            validated += most * min(2, edits) * guarded.most_again
        if optimizer.candidates > 1:  # each is run on a few training examples
            validated += most * optimizer.candidates * min(CHOSEN_ON, loader.examples)
        chosen = 0 if optimizer.candidates == 1 else optimizer.candidates * min(CHOSEN_ON, loader.examples)
        usual = trained.usual + len(val) + USUALLY_ASKED * usually * chosen + 2 * tests
        usual += usually * USUALLY_RACED * len(val)
        examples = Range(len(val) + tests, trained.high + validated + 2 * tests, usual)
        texts = sum(tokens.count(str(variable.data)) for variable in optimizer.variables())
        return cls(batch, steps, trained, examples, texts)


def _asked(optimizer: Optimizer, plan: _Plan) -> Range:
    """How often the optimizer's model is asked, in units of a step."""
    usual = plan.steps.usual * (USUALLY_ASKED if optimizer.reads_feedback else 1)
    return Range(0, 2 * plan.steps.high, usual)


def _merging(optimizer: Optimizer, plan: _Plan) -> float:
    """The most requests that merge feedback: whether there is enough of it to be merged shows in whole minibatches."""
    asking = [group for group in optimizer.param_groups if group.get("use_feedback", True)]
    parameters = sum(len(group["params"]) for group in asking)
    return plan.steps.high * parameters * optimizer.most_asked_by_transforms()


_FRAME = 200
"""Tokens of a request to merge feedback beside its system message and the feedback, at most about so many."""


def _edits(optimizer: Optimizer) -> int:
    """The most edits of a step that are run by themselves."""
    if any(_writes_anew(group) or group.get("proposer") for group in optimizer.param_groups):
        return MOST_EDITS
    edits = [int(group.get("max_edits", 1)) * len(group["params"]) for group in optimizer.param_groups]
    return min(MOST_EDITS, sum(edits))


def _drift(purpose: str, optimizer: Optimizer, plan: _Plan, target: float, critic: bool) -> tuple[float, float, float]:
    """Tokens that the input of a call may be below and above that of the rehearsal, on the average over a run.

    The third is what it usually is above it.
    """
    steps = plan.steps.high
    now = growth = usual = told = past = 0.0
    for group in optimizer.param_groups:
        texts = sum([tokens.count(str(parameter.data)) for parameter in group["params"]])
        edits = group.get("max_edits", 1) * len(group["params"])
        limit = group.get("max_tokens", 2000) * len(group["params"])
        now += texts
        room = max(0, limit - texts)
        growth += min(steps * edits * LINE_TOKENS, room) / 2
        few = min(edits, USUAL_EDITS * len(group["params"]))
        usual += USUAL_GROWTH * min(plan.steps.usual * few * LINE_TOKENS, room) / 2
        if group.get("use_feedback", True):
            limit = group.get("max_feedback_tokens", 8000)
            shown = min(limit, plan.batch * (_FEEDBACK + SHOWN_ANSWER)) if critic else limit
        else:
            shown = MOST_SHOWN * group["max_tokens"]
        told = max(told, shown)
        past += group.get("momentum", 0) * group.get("max_edits", 1) * 2 * LINE_TOKENS
    answers = ANSWER_TOKENS["forward"][1] * target  # of an earlier call in a chain, or the one that is judged
    more = growth + answers
    if purpose == "optimizer":
        usual += plan.batch * USUALLY_WRONG * (USUAL_ANSWER["backward"] + min(SHOWN_ANSWER, 1.5 * target))
    if purpose == "backward":
        more += growth + _FEEDBACK  # an input that is no whole message is shown beside the message made of it
    elif purpose == "optimizer":
        more += told + past
    return SHRINK * now, more, usual


def _rewritten(optimizer: Optimizer) -> int:
    """Tokens of the texts that are written anew, at most."""
    return max([group.get("max_tokens", 0) for group in optimizer.param_groups if _writes_anew(group)], default=0)


def _writes_anew(group: Mapping[str, Any]) -> bool:
    """Whether the texts of a group are written as a whole."""
    return group.get("mode", "rewrite") == "rewrite" or not group.get("use_feedback", True)


_FEEDBACK = ANSWER_TOKENS["backward"][1]


def _rehearsal(
    trainer: Trainer,
    program: Module,
    loss: Callable[..., Variable],
    optimizer: Optimizer,
    train: Sequence[dict[str, Any]],
    val: Sequence[dict[str, Any]],
    sample: int,
    nobody: Placeholder,
) -> dict[str, Usage]:
    """Usage by purpose of one step on a few examples, with nobody asked."""
    held = apart(optimizer.state_dict())
    rehearsal = Trainer(
        1,
        batch_size=sample,
        max_steps=1,
        critic=trainer.critic,
        feedback_images=trainer.feedback_images,
        target=trainer.target,
        notes=trainer.notes,
        concurrency=trainer.concurrency,
        tokens_weight=trainer.tokens_weight,
        latency_weight=trainer.latency_weight,
    )
    try:
        optimizer.state = defaultdict(dict)  # what other transforms remember is theirs
        for group in optimizer.param_groups:
            if "transforms" in group:
                group["transforms"] = None  # what they ask is counted by `_merging`
        with rehearsing(nobody, optimizer), meter() as used:
            rows = typical(train, sample)
            rehearsal.fit(program, loss, optimizer, rows, rows if val is train else typical(val, SAMPLE))
    finally:
        optimizer.load_state_dict(held)
    return used.by_purpose
