"""What an estimate is made of: ranges, placeholders for models, and what is assumed about answers."""

from __future__ import annotations

import contextlib
import functools
import json
import operator
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from textgrad_engine import templates
from textgrad_engine.attributes import attributes_told
from textgrad_engine.data import examples_of
from textgrad_engine.errors import TextgradError
from textgrad_engine.llm import tokens
from textgrad_engine.llm.images import is_part
from textgrad_engine.llm.model import Model
from textgrad_engine.llm.prices import price_of, tier_of
from textgrad_engine.llm.request import Request
from textgrad_engine.llm.response import Completion, Usage
from textgrad_engine.llm.roles import use_models
from textgrad_engine.llm.usage import Metered
from textgrad_engine.ops.reduce import MERGE_SCHEMA
from textgrad_engine.optim import Optimizer
from textgrad_engine.optim.proposers.unaided import MOST_SHOWN
from textgrad_engine.optim.search.volume import Range
from textgrad_engine.optim.settings import most_tokens
from textgrad_engine.train.minimal_instance import least
from textgrad_engine.train.rehearsal import rehearsal

ANSWER_TOKENS = {"forward": (1, 4), "judge": (8, 120), "backward": (6, 120), "optimizer": (4, 600)}
"""Tokens of an answer, at least (JSON that says nothing) and at most, reasoning aside; for "forward" a multiple of the
target's tokens, for "judge" of the verdicts. A rewritten text may be longer."""

USUAL_ANSWER = {"forward": 1.5, "judge": 40.0, "backward": 40.0, "optimizer": 200.0}
"""Tokens of an answer that are usual, in the units of `ANSWER_TOKENS`."""

SHARED_INPUT = 0.35
"""The part of a feedback request's tokens that each of several examples in one request adds."""

_USUAL_CONTROL, _USUALLY_REWRITTEN = 0.75, 0.02
"""Of the calls that a control may make so many are usual for its examples, and to have a text rewritten."""

_FRAME = 200
"""Tokens of a request for a text beside its system message and the texts in it, at most about so many."""

SHRINK = 0.5
"""The share of the trained texts that edits may take away by and by."""

_TEXT = re.compile(r"<((?:text|original|tried)-[0-9a-f]{8})>\n(.*?)\n</\1>", re.DOTALL)
"""A text that the optimizer is shown, as each of its prompts fences it."""

_FEEDBACK = re.compile(r'^(?:<feedback-[0-9a-f]{8}>|Feedback: ".*")$', re.MULTILINE)
"""A piece of feedback that is to be merged, between tags or, where it is short, in quotation marks."""

_AROUND_A_CASE = 60
"""Tokens of a case that are neither its messages nor its answer: its tags, and what is said of the answer."""


def a_case(forward: Usage, texts: float) -> float:
    """Tokens of a call as an optimizer is shown it, where no critic is asked.

    Args:
        forward: what some calls of the program used.
        texts: tokens of the trained texts, which stand in the optimizer's request once.
    """
    return max(0.0, forward.input_tokens / max(1, forward.calls) - texts) + _AROUND_A_CASE


@attributes_told
@dataclass(frozen=True)
class Estimate:
    """What a run will use.

    Attributes:
        calls: by purpose.
        input_tokens: by purpose.
        output_tokens: by purpose; reasoning not included.
        dollars: in all; None when the price of a model is not known.
        steps: how many optimizer steps there are at most; of a search, decisions.
        counted: how tokens were counted.
        waits: for a search, how many answers are waited for one after the other when the endpoint takes all requests at
            once; times the seconds of an answer it is the time of the run. None for other optimizers.
        assumed: what the most rests on, in words, where nothing limits a search, a model may call tools, or answers of
            the program hold lists; "" where it is a bound.
    """

    calls: dict[str, Range]
    input_tokens: dict[str, Range]
    output_tokens: dict[str, Range]
    dollars: Range | None
    steps: int
    counted: str
    waits: Range | None = None
    assumed: str = ""


class Placeholder:
    """Counts what it is sent; answers with the least that the request's schema allows.

    A list in an answer of the program has an entry all the same, as programs go over lists: of an empty one nothing
    would be asked, and no feedback would lead anywhere. As output tokens it counts the verdicts in an answer: one, and
    of a rubric one for each criterion.
    """

    name = "estimate"
    free = True

    def __init__(self, score: float, models: Mapping[str, Model] | None = None) -> None:
        self._score = score
        self._models = models or {}
        self._offered_tools = False
        self._gave_lists = False

    def assuming(self, also: str = "") -> str:
        """What an estimate from its answers assumes, in words, and what else is assumed."""
        tools = (
            "no answer calls a tool that is run, as each turn that does is a request more"
            if self._offered_tools
            else ""
        )
        lists = "a list in an answer of the program has one entry" if self._gave_lists else ""
        return "; ".join([part for part in (tools, lists, also) if part])

    def unchecked(self) -> Model:
        """This model as one whose answers nobody checks: no schema tells what a pattern or a pydantic model wants."""
        return Metered(self)

    async def complete(self, request: Request) -> Completion:
        """The least that the request allows."""
        wanted = request.config.response_format
        self._offered_tools |= bool(request.config.tools)
        filler = ""
        if request.purpose == "backward":
            filler = "?"  # feedback that says something, so that the optimizer is asked too
        elif request.purpose == "optimizer" and (shown := _TEXT.search(request.messages[-1].text)):
            filler = shown[2]  # the text as it is keeps its contracts, and is not asked for twice
        if wanted is not None and wanted.json_schema == MERGE_SCHEMA:  # one item for all, as each must be in one
            count = len(_FEEDBACK.findall(request.messages[-1].text))
            text = json.dumps({"items": [{"text": "?", "numbers": list(range(1, count + 1))}]})
        else:
            text = (
                "?" if wanted is None else self._form(wanted.json_schema, filler, listing=request.purpose == "forward")
            )
        seen_by = self._models.get(request.purpose) or self._models.get("forward")
        size = tokens.count_request(request, seen_by=None if seen_by is None else seen_by.name)
        verdicts = 1 if request.purpose != "judge" or wanted is None else _parts_of(wanted.json_schema)
        used = Usage(calls=1, input_tokens=size, output_tokens=verdicts)
        return Completion(text=text, usage=used, model=self.name)

    def _form(self, schema: Mapping[str, Any], filler: str, *, listing: bool) -> str:
        """An answer of the form of a schema, with an entry in each list or with none."""
        answer = least(schema, filler, self._score)
        listed = least(schema, filler, self._score, entries=1) if listing else answer
        self._gave_lists |= listed != answer
        return json.dumps(listed)


def _parts_of(schema: Mapping[str, Any]) -> int:
    """How many objects an answer is made of, one at least.

    Example:
        >>> _parts_of({"properties": {"1": {"type": "object"}, "2": {"type": "object"}}}), _parts_of({"type": "object"})
        (2, 1)
    """
    parts: Mapping[str, Any] = schema.get("properties", {})
    return max(1, len([part for part in parts.values() if part.get("type") == "object"]))


@contextlib.contextmanager
def rehearsing(nobody: Placeholder, optimizer: Optimizer) -> Iterator[None]:
    """Inside the block `nobody` is asked for everything; code that cannot read its answers is told what to do.

    The optimizer takes its step whatever is made of the placeholder, also where a metric likes it.
    """
    held, optimizer.to_the_end = optimizer.to_the_end, True
    try:
        with use_models(*[nobody.unchecked()] * 4), rehearsal():
            yield
    except Exception as error:
        if not isinstance(error, TextgradError):
            error.add_note(
                "an estimate asks nobody and puts '?' in the place of an answer, which code of yours could not read; a "
                "model may answer so, too, and that would end the run: have the code give '' for such an answer, which "
                "is wrong and gets feedback"
            )
        raise
    finally:
        optimizer.to_the_end = held


def add_controls(
    calls: dict[str, Range],
    inputs: dict[str, Range],
    outputs: dict[str, Range],
    used: Mapping[str, Usage],
    seen: int,
    val: int,
    tests: int,
    optimizer: Optimizer,
) -> None:
    """Add what the two controls use to what the optimizer's run uses, by purpose.

    One of the two has texts rewritten also where the optimizer asks nobody for texts.

    Args:
        calls: of the optimizer's run; changed, and so are `inputs` and `outputs`.
        inputs: its input tokens.
        outputs: its output tokens.
        used: in the rehearsal.
        seen: examples that went forward there.
        val: how many examples to validate on.
        tests: how many to test on.
        optimizer: the one that they are controls of.
    """
    of_run = sum(calls.values(), Range())
    for purpose, extra in _controls(used, seen, of_run, val, tests).items():
        if purpose not in calls:
            calls[purpose] = extra
            inputs[purpose], outputs[purpose] = _rewrites(extra, optimizer)
            continue
        for part in (inputs, outputs):
            part[purpose] += _as_before(extra, part[purpose], calls[purpose])
        calls[purpose] += extra


def _rewrites(calls: Range, optimizer: Optimizer) -> tuple[Range, Range]:
    """Input and output tokens of calls that have a text rewritten without feedback."""
    texts = [str(variable.data) for variable in optimizer.variables()]
    sizes = [tokens.count(text) for text in texts]
    most = max([*sizes, *(int(group.get("max_tokens") or most_tokens(texts)) for group in optimizer.param_groups)])
    mean, head = sum(sizes) / len(sizes), tokens.count(templates.load("control_rewrite").system)
    shown = MOST_SHOWN + 2  # the text, those tried before, and one that is refused
    fewest, longest = ANSWER_TOKENS["optimizer"]
    return (
        Range(calls.low * head, calls.high * (head + _FRAME + shown * most), calls.usual * (head + shown / 2 * mean)),
        Range(calls.low * fewest, calls.high * (longest + most), calls.usual * (USUAL_ANSWER["optimizer"] + mean)),
    )


def _as_before(extra: Range, amount: Range, calls: Range) -> Range:
    """What further calls use, if each uses what a call did before on the average."""
    ends = zip(*((each.low, each.high, each.usual) for each in (extra, amount, calls)))
    low, high, usual = (more * whole / max(number, 1) for more, whole, number in ends)
    return Range(low, high, usual)


def _controls(used: Mapping[str, Usage], seen: int, of_run: Range, val: int, tests: int) -> dict[str, Range]:
    """Further calls for the two controls, by purpose: each runs the validation set at least, and is tested at most.

    Args:
        used: in the rehearsal.
        seen: examples that went forward there.
        of_run: the calls that the optimizer's run makes, and so each control's search at most.
        val: how many examples to validate on.
        tests: how many to test on.
    """
    an_example = {name: used[name].calls / seen for name in ("forward", "judge") if name in used}
    each_time = max(1.0, sum(an_example.values()))
    examples = of_run.high / each_time + val + tests
    usually = _USUAL_CONTROL * of_run.usual / each_time + (val + tests) / 2  # tested is what is no text of before
    extra = {
        name: Range(2 * val * each, 2 * max(val, examples) * each, 2 * usually * each)
        for name, each in an_example.items()
    }
    # One of the two asks for texts, and races each answer on two examples at least.
    return extra | {"optimizer": Range(0, of_run.high / 2, _USUALLY_REWRITTEN * of_run.usual)}


def summed(waves: Sequence[Sequence[Estimate]]) -> Estimate:
    """What several runs will use together; what the most rests on is told of the first.

    Args:
        waves: one estimate for each run; those that go on at once together.
    """
    each = [one for wave in waves for one in wave]

    def by_purpose(of: Callable[[Estimate], dict[str, Range]]) -> dict[str, Range]:
        names = dict.fromkeys(purpose for one in each for purpose in of(one))
        return {name: sum((of(one)[name] for one in each if name in of(one)), Range()) for name in names}

    def together(values: Sequence[Range | None]) -> Range | None:
        known = [value for value in values if value is not None]
        return sum(known, Range()) if len(known) == len(each) else None

    return Estimate(
        by_purpose(lambda one: one.calls),
        by_purpose(lambda one: one.input_tokens),
        by_purpose(lambda one: one.output_tokens),
        together([one.dollars for one in each]),
        sum(one.steps for one in each),
        each[0].counted,
        None if any(one.waits is None for one in each) else sum(map(_longest, waves), Range()),
        each[0].assumed,
    )


def _longest(wave: Sequence[Estimate]) -> Range:
    """How many answers runs wait for that go on at once."""
    return functools.reduce(operator.or_, [one.waits for one in wave if one.waits is not None], Range())


_ALIKE = 1.25
"""The first rows are taken as they are where they are as long as all are on the average, within this factor."""


def typical(dataset: Sequence[dict[str, Any]], count: int) -> list[dict[str, Any]]:
    """So many rows, or all, that are about as long as all are on the average, for a rehearsal: the first, mostly.

    A table may be sorted by length, or begin with one that is ten times as long as the others.

    Args:
        dataset: the rows.
        count: how many.

    Example:
        >>> rows = [{"page": "word " * length} for length in (900, 3, 2, 3, 4, 3, 2, 3)]
        >>> [len(row["page"]) for row in typical(rows, 2)]
        [10, 20]
    """
    rows = list(examples_of(dataset))
    first = rows[:count]
    if len(rows) <= count:
        return first
    lengths = [sum([len(value) for value in row.values() if isinstance(value, str)]) for row in rows]
    mean, of_first = sum(lengths) / len(rows), sum(lengths[:count]) / count
    if mean <= of_first * _ALIKE and of_first <= mean * _ALIKE:
        return first
    order = sorted(range(len(rows)), key=lambda n: lengths[n])
    chosen = []
    for part in range(count):
        group = order[part * len(rows) // count : (part + 1) * len(rows) // count]
        middle = sum([lengths[n] for n in group]) / len(group)
        chosen.append(min(group, key=lambda n: abs(lengths[n] - middle)))
    return [rows[n] for n in sorted(chosen)]


def mean_tokens(targets: Sequence[Any]) -> float:
    """How many tokens a target has on the average; 50 where there is none."""
    counts = [tokens.count(str(target)) for target in targets if target is not None]
    return max(1.0, sum(counts) / len(counts)) if counts else 50.0


def unit_of(purpose: str, used: Usage, seen: int, target: float, rows: Sequence[dict[str, Any]]) -> Range:
    """What the tokens of an answer are multiples of.

    Args:
        purpose: of the calls.
        used: by them in the rehearsal; its output tokens are what `Placeholder` counts.
        seen: examples that went forward there. Of several calls for one, what an earlier one says may be a word, or as
            long as the example.
        target: tokens of a target.
        rows: some examples.
    """
    if purpose != "forward":
        verdicts = used.output_tokens / max(1, used.calls)
        return Range(verdicts, verdicts, verdicts)
    calls = used.calls / seen
    if calls <= 1:
        return Range(target, target, target)
    texts = [str(value) for row in rows for value in row.values() if not is_part(value)]
    fields = sum(map(tokens.count, texts)) / max(1, len(rows))
    longest = max(target, fields)
    return Range(1, longest, (longest * (calls - 1) + target) / calls)


def dollars_of(models: Mapping[str, Model], inputs: dict[str, Range], outputs: dict[str, Range]) -> Range | None:
    """What tokens by purpose cost; None when the price of a model is not known."""
    sums = dict.fromkeys(("low", "high", "usual"), 0.0)
    for purpose in inputs:
        model = models.get(purpose) or models["forward"]
        for end in sums:
            usage = Usage(
                input_tokens=round(getattr(inputs[purpose], end)), output_tokens=round(getattr(outputs[purpose], end))
            )
            price = price_of(model, usage, tier_of(model))
            if price is None:
                return None
            sums[end] += price
    return Range(**sums)
