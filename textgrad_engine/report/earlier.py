"""An evaluation beside what the same examples gave before: in the run, and in evaluations of it since."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

from textgrad_engine.errors import RunError
from textgrad_engine.llm.ids import digest
from textgrad_engine.report.changed import Changed, changed
from textgrad_engine.report.document import finite
from textgrad_engine.report.pairing import is_judged, only
from textgrad_engine.report.words import interval, plural, score
from textgrad_engine.store.reader import Run
from textgrad_engine.train.comparison import Comparison, compare
from textgrad_engine.train.evaluation import Evaluation
from textgrad_engine.train.repeats import item_means

_MOST = 6
"""So many evaluations are shown at most, besides what the run itself measured: the last ones."""


@dataclass(frozen=True)
class Earlier:
    """What was measured before on the same examples.

    Attributes:
        prompt: whose texts: `"best"`, `"seed"`, `"shrunk"` or `"front N"`; or files, as `in_files` has it.
        current: whether the run has these texts still; not, say, where it has found better ones since. Of the files
            that are evaluated now, whether they held these texts.
        models: by role.
        base_url: the endpoint of the program's model, where the config or a command named one.
        judge_url: that of who judges, likewise.
        time: when it ended, as ISO 8601; None for what the run itself measured.
        mean: of its scores.
        comparison: the evaluation of now against it, pair by pair; None where another judge gave those scores.
        changed: which examples score otherwise now; None likewise.
    """

    prompt: str
    current: bool
    models: Mapping[str, str]
    base_url: str | None
    judge_url: str | None
    time: str | None
    mean: float
    comparison: Comparison | None
    changed: Changed | None


_FILES = "in "


def in_files(files: Sequence[str]) -> str:
    """What texts are called that come from files.

    Example:
        >>> in_files(["mine.txt"]), prompt_in_words(in_files(["mine.txt"])), prompt_in_words("best")
        ('in mine.txt', 'prompt in mine.txt', 'best prompt')
    """
    return f"{_FILES}{', '.join(files)}"


def prompt_in_words(prompt: str) -> str:
    """Texts by what they are called, for people."""
    return f"prompt {prompt}" if prompt.startswith(_FILES) else f"{prompt} prompt"


def measured(evaluation: Evaluation | None) -> dict[str, Any]:
    """What ``evals.jsonl`` keeps of an evaluation for later ones: the score of each example, of repeats each of them.

    A list has them in the order of the examples, and null where there was no answer.
    """
    if evaluation is None:
        return {}
    return {"scores": [list(row) for row in evaluation.samples] if evaluation.samples else list(evaluation.scores)}


def earlier_of(
    run: Run, about: Mapping[str, Any], evaluation: Evaluation, own: Mapping[str, Any]
) -> tuple[Earlier, ...]:
    """What the examples of an evaluation gave before, with the same metric: first in the run, then what came last.

    Of equal prompts with equal models it is the last evaluation.

    Args:
        run: whose prompt is evaluated.
        about: what ``evals.jsonl`` says of the evaluation beforehand.
        evaluation: what came of it.
        own: what it would say of the run's own models and endpoints.
    """
    by_run = [_found(each, evaluation, own) for each in _of_the_run(run, about)]
    since: dict[str, Earlier | None] = {}
    for entry in run.evals:
        if entry.get("digest") == about["digest"] and entry.get("status") == "finished":
            setting = digest([*[entry.get(key) for key in _SETTING], _apart(entry.get("models"))])
            since.pop(setting, None)
            since[setting] = _read_back(run, entry, about, evaluation)
    found = (*filter(None, by_run), *[each for each in since.values() if each is not None][-_MOST:])
    if not is_judged(run):
        return found
    asked = _judge(about)
    return tuple(
        each if _judge(vars(each)) == asked else replace(each, comparison=None, changed=None) for each in found
    )


def named_beside(found: Sequence[Earlier]) -> Earlier | None:
    """Beside which of them the examples that changed are named: the run's best prompt in it, else the last evaluation.

    Args:
        found: what the same examples gave before, by `earlier_of`.
    """
    compared = [each for each in found if each.changed is not None]
    return next((each for each in compared if each.time is None), compared[-1] if compared else None)


def incomparable(run: Run, about: Mapping[str, Any], own: Mapping[str, Any]) -> str:
    """Why an evaluation will not be compared with what the run itself measured, in words; "" where it will be.

    Args:
        run: whose prompt is evaluated.
        about: what ``evals.jsonl`` says of the evaluation beforehand.
        own: what it would say of the run's own models and endpoints.
    """
    if about["split"] != "test":
        if run.result is None or run.result.best_test is run.result.seed_test is None:
            return "the run has measured nothing on a test split"
        return "the run has measured its test split, and these are other examples"
    found = next(_of_the_run(run, about), None)
    if found is None or (found[0] == "seed" and run.best != run.seed):
        return "the run has no result of its best prompt on its test split"
    if is_judged(run) and _judge(about) != _judge(own):
        return "the run's scores are those of another judge; --judge names it"
    return ""


def by_the_run(run: Run, about: Mapping[str, Any], own: Mapping[str, Any], ids: Sequence[str]) -> Evaluation | None:
    """What the run itself measured of its best prompt on these examples; None where that cannot be compared with.

    Args:
        run: whose prompt is evaluated.
        about: what ``evals.jsonl`` says of the evaluation beforehand.
        own: what it would say of the run's own models and endpoints.
        ids: of the examples.
    """
    if incomparable(run, about, own):
        return None
    _, found = next(_of_the_run(run, about))
    return replace(found, clusters=(), contents={}) if found.ids == tuple(ids) else None  # `about` tells the contents


def worse_than_the_run(run: Run, found: Sequence[Earlier]) -> str:
    """How an evaluation is worse than what the run itself measured of its best prompt, in words; "" where it is not.

    Where no example has a score in both, nobody can tell, which is said too: a check that saw nothing does not pass.

    Args:
        run: whose prompt was evaluated, on examples that `incomparable` says nothing of.
        found: what the same examples gave before, by `earlier_of`.
    """
    best = "seed" if run.best == run.seed else "best"
    by_run = next((each for each in found if each.time is None and each.prompt == best), None)
    if by_run is None or (comparison := by_run.comparison) is None:
        return f"no example has a score here and of the {best} prompt in the run, so nothing shows that it is not worse"
    return worse_in_words(comparison, f"the {by_run.prompt} prompt", " in the run")


def worse_in_words(comparison: Comparison, other: str, where: str = "") -> str:
    """How an evaluation is worse than another one, or has fewer answers, in words; "" where neither is shown.

    Args:
        comparison: the two.
        other: what the other one is of.
        where: behind that, where it was measured.
    """
    if comparison.verdict == "worse":
        difference = f"{score(comparison.difference, signed=True)} {interval(comparison.interval, signed=True)}"
        return f"worse than {other}{where}: {difference} on {plural(comparison.n, 'example')}"
    if comparison.lost_before:
        return (
            f"on the {plural(comparison.n, 'example')} with a score in both it is worse than {other}{where}, and there "
            f"answers were lost on {plural(comparison.lost_before, 'example')} that are here, so nothing shows that it "
            "is not worse"
        )
    if comparison.lost:
        lack = "lacks" if comparison.lost == 1 else "lack"
        missing = f"{plural(comparison.lost, 'example')} {lack} an answer that {other} had{where}"
        return f"{missing}, which is rare by chance (5%)"
    return ""


def earlier_as_json(found: tuple[Earlier, ...]) -> list[dict[str, Any]]:
    """The same as plain JSON values; infinite numbers are null."""
    return [finite(asdict(each)) for each in found]


_SETTING = ("prompt", "text", "base_url", "judge_url")
"""What tells evaluations of the same examples apart beside the models, by its key in ``evals.jsonl``."""


def _apart(models: Any) -> Any:
    """Models by role without those that do what the model of the program does anyway: a command may name them or not.

    Others may have written what is no such thing.
    """
    if not isinstance(models, dict):
        return models
    forward = models.get("forward")
    return {role: name for role, name in models.items() if role == "forward" or name != forward}


def _of_the_run(run: Run, about: Mapping[str, Any]) -> Iterator[tuple[str, Evaluation]]:
    """What the run measured on these examples with texts that were not chosen by them."""
    if run.result is not None and about["split"] == "test":
        for prompt, found in (("best", run.result.best_test), ("seed", run.result.seed_test)):
            if found is not None and found.answered and (prompt == "seed" or run.best != run.seed):
                yield prompt, found


def _found(each: tuple[str, Evaluation], evaluation: Evaluation, own: Mapping[str, Any]) -> Earlier | None:
    prompt, before = each
    there = set(evaluation.ids)
    both = [name for name in before.ids if name in there]  # of a large set the run may have drawn a part
    if not both:
        return None
    return _beside(prompt, True, own, None, replace(only(before, both), clusters=()), only(evaluation, both))


def _read_back(run: Run, entry: Mapping[str, Any], about: Mapping[str, Any], evaluation: Evaluation) -> Earlier | None:
    """An entry of ``evals.jsonl``; None where it keeps no scores of these examples, as in versions of before."""
    if not _is_whole(entry) or len(rows := entry["scores"]) != len(evaluation):
        return None
    samples = tuple(tuple(row) for row in rows) if isinstance(rows[0], list) else ()
    scores = tuple(_mean(row) for row in samples) if samples else tuple(rows)
    before = Evaluation(evaluation.ids, scores, (None,) * len(scores), {}, samples, scale=evaluation.scale)
    if entry["prompt"].startswith(_FILES):  # of other files than now nobody knows what they hold by now
        current = entry["prompt"] != about["prompt"] or entry.get("text") == about["text"]
    else:
        current = entry.get("text") == digest(_texts(run, entry["prompt"]))[:16]
    return _beside(entry["prompt"], current, entry, entry["time"], before, evaluation)


def _is_whole(entry: Mapping[str, Any]) -> bool:
    """Whether an entry says all that is read of it, and nothing else: others may have written into the folder."""
    rows = entry.get("scores")
    if not isinstance(rows, list) or not rows or len({isinstance(row, list) for row in rows}) > 1:
        return False
    scores = [score for row in rows for score in (row if isinstance(row, list) else [row])]
    models = entry.get("models")
    return (
        all(score is None or (isinstance(score, int | float) and math.isfinite(score)) for score in scores)
        and isinstance(models, dict)
        and all(isinstance(each, str) for each in (entry.get("prompt"), entry.get("time"), *models.values()))
        and all(isinstance(entry.get(key), str | None) for key in ("base_url", "judge_url"))
    )


def _texts(run: Run, prompt: str) -> Mapping[str, str] | None:
    with contextlib.suppress(RunError, ValueError):  # an entry that others wrote may name any
        return run.texts(prompt)
    return None


def _beside(
    prompt: str,
    current: bool,
    asked: Mapping[str, Any],
    time: str | None,
    before: Evaluation,
    now: Evaluation,
) -> Earlier | None:
    try:
        comparison = compare(before, now)
    except ValueError:  # no example has a score in both
        return None
    models, (_, judge_url) = asked["models"], _judge(asked)
    what = changed(before, now)
    return Earlier(prompt, current, models, asked.get("base_url"), judge_url, time, before.mean, comparison, what)


def _mean(row: Sequence[float | None]) -> float | None:
    there = [score for score in row if score is not None]
    return item_means([there])[0] if there else None


def _judge(asked: Mapping[str, Any]) -> tuple[str | None, str | None]:
    """Who judges, and where; an evaluation of before endpoints were each model's own says that of all models."""
    models = asked["models"]
    return models.get("judge", models.get("forward")), asked.get("judge_url", asked.get("base_url"))
