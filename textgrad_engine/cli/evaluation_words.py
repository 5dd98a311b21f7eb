"""What an evaluation found, for people and for machines."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

from textgrad_engine.cli import run_data
from textgrad_engine.cli.evaluating import Done
from textgrad_engine.cli.output import colors, width
from textgrad_engine.cli.subject import Subject
from textgrad_engine.llm.money import cost
from textgrad_engine.llm.response import Usage
from textgrad_engine.report.changed import changed_in_lines, how_changed
from textgrad_engine.report.earlier import Earlier, earlier_as_json, named_beside, prompt_in_words
from textgrad_engine.report.notes import lost, opened_before
from textgrad_engine.report.printing import harmless, printed, wrapped
from textgrad_engine.report.slices import slices_as_json, slices_table
from textgrad_engine.report.view import size
from textgrad_engine.report.words import capital, count, duration, interval, plural, score
from textgrad_engine.train import Comparison, Evaluation
from textgrad_engine.train.scores import ALIKE, apart
from textgrad_engine.train.standing import Standing, missed_in_words

_COMPARED = len("+0.000 [-0.000, +0.000]  not shown")


def as_document(subject: Subject, done: Done) -> dict[str, Any]:
    """What ``--json`` prints: the entry of ``evals.jsonl``, and what each example got."""
    scores: list[dict[str, Any]] = []
    if (evaluation := done.evaluation) is not None:
        scores = [
            {"id": name, "score": value, "prediction": said}
            for name, value, said in zip(evaluation.ids, evaluation.scores, evaluation.predictions)
        ]
        for item, samples in zip(scores, evaluation.samples):
            item["samples"] = samples
    whose = "config" if subject.run is None else "run"
    return {
        whose: str(subject.path),
        **done.entry,
        "test_openings": done.openings,
        "scores": scores,
        "earlier": earlier_as_json(done.earlier),
        "floors": floors_as_list(done.floors),
        **({} if done.slices is None else {"by": done.slices[0], "slices": slices_as_json(done.slices[1])}),
    }


def floors_as_list(floors: Sequence[Standing]) -> list[dict[str, Any]]:
    """What ``--json`` prints of how one prompt stands to floors."""
    return [
        {
            "of": each.of,
            "least": each.least,
            "examples": each.examples,
            "mean": each.best,
            "unanswered": each.unanswered,
            "reached": each.reached,
        }
        for each in floors
    ]


def missed_floors(done: Done) -> str:
    """Which floors are not reached, in words; of what was ended early by what it came to, as the rest is not known."""
    if done.ended is None:
        return missed_in_words(done.floors)
    told = missed_in_words([each for each in done.floors if each.best is not None])
    return f"{told}, by what was answered" if told else ""


def in_one_line(subject: Subject, done: Done, evaluation: Evaluation) -> str:
    """What ``--quiet`` prints."""
    looked = "" if (done.openings or 0) < 2 else f", {opened_before((done.openings or 0) - 1)}"
    lost = f" without {plural(evaluation.unanswered, 'answer')}" if evaluation.unanswered else ""
    told = f"{subject.path}: {called(subject)} {measured(evaluation)}{lost} on {done.entry['data']}{looked}"
    worked = _worked(subject, done)
    flattered = f"the run worked with {worked}, which flatters the prompt" if worked else ""
    return harmless("; ".join(filter(None, [told, flattered, missed_floors(done)])))


def in_words(subject: Subject, done: Done, evaluation: Evaluation) -> str:
    """The score, with all that one must know to judge it."""
    entry = done.entry
    lines = [
        "",
        harmless(f"{subject.path}: {called(subject)} on {examples_of(subject, entry)}"),
        "",
        f"  score   {measured(evaluation)}   {size(evaluation)}",
        *_parts(entry),
        *_spread(evaluation),
        harmless(f"  model   {', '.join(dict.fromkeys(entry['models'].values()))}"),
        f"  used    {_used(done.used)}, {duration(entry['seconds'])}",
        *_slices(done),
        *_beside(entry, done.earlier),
        *_changes(entry, done.earlier),
        *_remarks(subject, done, evaluation),
    ]
    return "\n".join(lines)


def _parts(entry: Mapping[str, Any]) -> Iterator[str]:
    """What several metrics gave, a line each."""
    for number, part in enumerate(entry.get("parts", ())):
        low, high = part["scale"]
        scale = "" if (low, high) == (0, 1) else f", from {low:g} to {high:g}"
        counts = (
            f"weight {part['weight']:g}"
            if "weight" in part
            else f"{part['points']:g} point{'' if abs(part['points']) == 1 else 's'}"
        )
        head = f"  {'' if number else 'of it':7} {score(part['mean'])} "
        told = harmless(f"{' '.join(part['name'].split())}{scale}, {counts}")  # a criterion may be a page
        yield from wrapped(told, 80, head)


def examples_of(subject: Subject, entry: Mapping[str, Any]) -> str:
    """Which examples an evaluation is of: their file, and whose split it is."""
    whose = "config" if subject.run is None else "run"
    where = shared(entry, run_data.SPLITS, f"the {whose}'s") or f"no split of the {whose}"
    return f"{entry['data']} ({where})"


def least_seen(comparisons: Sequence[Comparison]) -> Iterator[str]:
    """What those that show nothing would not have seen: what the one says that would have seen the least."""
    if said := [each for each in comparisons if each.remark and not each.held_back]:
        yield max(said, key=lambda found: math.inf if found.detectable is None else found.detectable).remark


def called(subject: Subject) -> str:
    """What the prompt is called that is evaluated."""
    if subject.prompt == "config":
        return "the config's prompt"
    return prompt_in_words(subject.prompt) + (" so far" if subject.may_change else "")


def measured(evaluation: Evaluation) -> str:
    """A score with its interval."""
    return f"{score(evaluation.mean)} {interval(evaluation.interval)}"


def short_of(evaluation: Evaluation, least: float) -> str:
    """What is said of a score that is too low; "" of one that is not."""
    lost = evaluation.unanswered
    at_worst = evaluation.mean if not lost else -math.inf if evaluation.bounds is None else evaluation.bounds[0]
    if at_worst >= least - ALIKE:
        return ""
    if math.isinf(at_worst):
        return f"{plural(lost, 'answer')} missing, so the score may be below --at-least {least:g}"
    counted = f", with the lowest score for {plural(lost, 'missing answer')}" if lost else ""
    return f"the score {apart(at_worst, least)[0]} is below --at-least {least:g}{counted}"


def shared(entry: Mapping[str, Any], splits: Collection[str], whose: str) -> str:
    """What data has of some of a run's splits, in words; "" where it has nothing.

    Args:
        entry: which split it is, and how many rows of which it has, as ``evals.jsonl`` says of an evaluation.
        splits: those that count.
        whose: they are.
    """
    if entry["split"] in splits:
        return f"{whose} {run_data.SPLITS[entry['split']]} split"
    rows = {name: number for name, number in entry["rows"].items() if name in splits}
    return " and ".join(
        [f"{plural(number, 'row')} of {whose} {run_data.SPLITS[name]} split" for name, number in rows.items()]
    )


def _used(used: Usage) -> str:
    return f"{plural(used.calls, 'call')}, {count(used.total_tokens)} tokens, {cost(used.dollars)}"


def _spread(evaluation: Evaluation) -> Iterator[str]:
    """What repeats tell: whether more of them or more examples would make the score more certain."""
    if (spread := evaluation.spread) is not None:
        between, within = (math.sqrt(variance) for variance in spread)
        yield f"  spread  {score(between)} from example to example, {score(within)} from sample to sample"


def _slices(done: Done) -> Iterator[str]:
    """The scores by the values of a column, a line each."""
    if done.slices is not None:
        yield ""
        yield printed([*slices_table(*done.slices, ("in the run", "now"))], width(), colors()).rstrip("\n")


def _beside(entry: Mapping[str, Any], earlier: Sequence[Earlier]) -> Iterator[str]:
    """What the same examples gave before, a line each, and the paired difference."""
    if not earlier:
        return
    yield ""
    yield "  before  now, pair by pair on the same examples"
    for each in earlier:
        start = f"  {score(each.mean)}   {_compared(each.comparison):{_COMPARED}}  "
        yield from wrapped(_whose(entry, each), min(width(), 100), start)


def _changes(entry: Mapping[str, Any], earlier: Sequence[Earlier]) -> Iterator[str]:
    """Which examples got worse, and which better, a line each, beside one of what the same gave before."""
    beside = named_beside(earlier)
    if beside is not None and (found := beside.changed) is not None and found.some:
        columns = min(width(), 100)
        yield ""
        yield from wrapped(f"beside the {_whose(entry, beside)}", columns, "  ")
        yield from changed_in_lines(found, "  ", columns)


def _compared(found: Comparison | None) -> str:
    if found is None:
        return "not compared, as the judge was another one (--judge)"
    difference = f"{score(found.difference, signed=True)} {interval(found.interval, signed=True)}"
    return f"{difference}  {found.verdict}"


def _whose(entry: Mapping[str, Any], earlier: Earlier) -> str:
    """Whose scores they were: the prompt, the model where it was another one, and when."""
    parts = [prompt_in_words(earlier.prompt) + ("" if earlier.current else " of then")]
    if earlier.models.get("forward") != entry["models"].get("forward"):
        parts.append(str(earlier.models.get("forward")))
    if earlier.base_url != entry["base_url"]:
        parts.append(f"at {earlier.base_url}" if earlier.base_url else "at the usual endpoint")
    parts.append("in the run" if earlier.time is None else earlier.time[:10])
    return harmless(", ".join(parts))


def _remarks(subject: Subject, done: Done, evaluation: Evaluation) -> Iterator[str]:
    """What a reader must know to judge the score."""
    remarks = []
    said = [each.comparison for each in done.earlier if each.comparison and each.comparison.remark]
    held_back = dict.fromkeys([each.remark for each in said if each.held_back])
    remarks += [f"Not shown is not the same as equal: {remark}." for remark in (*held_back, *least_seen(said))]
    if caveats := [each.comparison.caveat for each in done.earlier if each.comparison and each.comparison.caveat]:
        remarks.append(f"{capital(caveats[0])}.")
    if (beside := named_beside(done.earlier)) is not None and beside.changed is not None:
        remarks += filter(None, [how_changed([beside.changed])])
    if missed := missed_floors(done):
        remarks.append(f"{capital(missed)}.")
    if evaluation.unanswered:
        rest = " The same command with --missing asks for what is lost alone." if done.lacking else ""
        remarks.append(lost(evaluation) + rest)
    remarks += of_the_test(subject, done)
    if worked := _worked(subject, done):
        remarks.append(f"The run worked with {worked}, so this score flatters the prompt.")
    for remark in remarks:
        yield ""
        yield from wrapped(remark, min(width(), 100), "  ")


def _worked(subject: Subject, done: Done) -> str:
    """What of the examples the run worked with that found the prompt, in words; "" where that is nothing."""
    found = subject.run is not None and done.entry["prompt"] != "seed"
    return shared(done.entry, ("train", "val"), "its") if found else ""


def of_the_test(subject: Subject, done: Done) -> Iterator[str]:
    """What a reader must know of test examples, where an evaluation is of some: looks at them are counted, or not."""
    entry, openings = done.entry, done.openings
    if openings is not None:
        times = "once so far" if openings == 1 else f"{openings} times so far, by the run, eval and compare"
        yield (
            f"The test split was opened {times}. The more often one looks at it and then chooses, the more its score "
            "flatters."
        )
    if subject.run is None and run_data.opens_test(entry):
        yield (
            "These are test examples of the config. They flatter a prompt that you change after looking at them, and "
            "no run counts this look; look at the validation examples instead."
        )
