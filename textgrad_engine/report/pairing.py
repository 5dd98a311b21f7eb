"""What two runs were measured on alike, and what may be said about their best texts from that."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from textgrad_engine.errors import RunError
from textgrad_engine.ops.criteria import without_floors
from textgrad_engine.report.changed import Changed, changed
from textgrad_engine.report.words import capital
from textgrad_engine.store.config_json import ROW_DIGITS_BEFORE
from textgrad_engine.store.reader import Run
from textgrad_engine.train.comparison import Comparison, compare
from textgrad_engine.train.evaluation import Evaluation

Split = Literal["test", "val"]

_WORDS: dict[Split, str] = {"test": "test", "val": "validation"}


@dataclass(frozen=True)
class Pairing:
    """What the examples of one split say about two runs.

    Attributes:
        on: the split.
        comparison: the best texts of the second run against those of the first; None where nothing paired can be said.
        why: why nothing can be said; "" where there is a comparison.
        remarks: what a reader must know to judge the comparison.
        changed: which examples score otherwise in the second run, by their ids in the first; None where nothing paired
            can be said.
    """

    on: Split
    comparison: Comparison | None
    why: str = ""
    remarks: tuple[str, ...] = ()
    changed: Changed | None = None


def pairing_of(first: Run, second: Run, on: Split) -> Pairing:
    """Compare the best texts of two runs on the examples of a split that both were run on.

    Examples are the same where the data has the same digest and they have the same id, or where their rows have the
    same digest. Of runs without digests only the ids are known.

    Args:
        first: a run.
        second: the one that is compared with it.
        on: the split.
    """
    found = [_measured(run, on) for run in (first, second)]
    without = [name for name, evaluation in zip("AB", found) if evaluation is None]
    if without:
        return Pairing(
            on, None, f"{_and(without)} {'have' if len(without) > 1 else 'has'} no best prompt measured on {_WORDS[on]}"
        )
    before, after = found
    assert before is not None
    assert after is not None
    if why := _other_scores(first, second):
        return Pairing(on, None, why)
    digits = _digits(first, second, on)
    names = _keys(first, on, before, digits), _keys(second, on, after, digits)
    remarks = []
    digests = [setting(run, "digests", on) for run in (first, second)]
    if None in digests:
        names = {each: each for each in before.ids}, {each: each for each in after.ids}
        lacking = [name for name, digest in zip("AB", digests) if digest is None]
        said = f"the folder of {lacking[0]} keeps no digest of its data"
        if len(lacking) > 1:
            said = "the folders of A and B keep no digest of their data"
        if set(before.ids) != set(after.ids):
            return Pairing(on, None, f"{said}, and the examples of A and B have other ids")
        remarks.append(f"{capital(said)}: that the examples are the same is taken from their ids.")
    elif digests[0] == digests[1]:
        names = {each: each for each in before.ids}, {each: each for each in after.ids}
    elif not names[0] or not names[1]:
        return Pairing(on, None, f"their {_WORDS[on]} sets differ, and which rows both have is not on record")
    pairs = [(names[0][key], names[1][key]) for key in names[0] if key in names[1]]
    if not pairs:
        return Pairing(on, None, f"no example is in the {_WORDS[on]} sets of both")
    if len(pairs) < max(len(before), len(after)):
        sizes = f"{len(before):,} and {len(after):,}"
        remarks.append(
            f"They were measured on {sizes} examples, of which {len(pairs):,} are the same; only these count here."
        )
    left, right = only(before, [pair[0] for pair in pairs]), only(after, [pair[1] for pair in pairs])
    if left.clusters and right.clusters and left.clusters != right.clusters:
        return Pairing(on, None, "their examples come in other clusters")
    right = _renamed(right, left.ids)
    try:
        compared = compare(left, right)
    except ValueError as error:
        return Pairing(on, None, str(error))
    return Pairing(on, compared, "", (*remarks, *_other_answers(first, second)), changed(left, right))


def same_conditions(first: Run, second: Run) -> bool:
    """Whether two runs are known to have asked the same models the same about the same examples, and to score alike."""
    if first.by_command is None or second.by_command is None or first.result is None or second.result is None:
        return False
    for on, one, other in (
        ("val", first.result.best_val, second.result.best_val),
        ("test", first.result.best_test, second.result.best_test),
    ):
        digests = [setting(run, "digests", on) for run in (first, second)]
        if (
            one is not None
            and other is not None
            and (None in digests or digests[0] != digests[1] or one.ids != other.ids)
        ):
            return False
    return not (
        _other_scores(first, second) or _differing(first, second, _ANSWERED_BY) or _code_that_differs(first, second)
    )


def setting(run: Run, *keys: str) -> Any:
    """What ``config.json`` says at these keys; None where it says nothing, or there is none."""
    return setting_in(run.by_command, *keys)


def setting_in(kept: Any, *keys: str) -> Any:
    """What the content of a ``config.json`` says at these keys; None where it says nothing, or there is none."""
    for key in keys:
        kept = kept.get(key) if isinstance(kept, Mapping) else None
    return kept


def _measured(run: Run, on: Split) -> Evaluation | None:
    if run.result is None:
        return None
    found = run.result.best_test if on == "test" else run.result.best_val
    return found if found is not None and found.answered else None


def _digits(first: Run, second: Run, on: Split) -> int | None:
    """By how many digits rows of two runs are told apart: those of before where one is of then, else all."""
    kept = [rows for run in (first, second) if isinstance(rows := setting(run, "rows", on), str)]
    short = any(len(rows.partition(" ")[0]) == ROW_DIGITS_BEFORE for rows in kept)
    return ROW_DIGITS_BEFORE if short else None


def _keys(run: Run, on: Split, evaluation: Evaluation, digits: int | None) -> dict[str, str]:
    """The examples by their content, equal ones numbered; empty where the folder does not tell."""
    kept = setting(run, "rows", on)
    rows = [digest[:digits] for digest in kept.split()] if isinstance(kept, str) else []
    if len(rows) != len(evaluation):  # measured on a part, and which one is not on record
        return {}
    seen: dict[str, int] = {}
    keys = {}
    for digest, name in zip(rows, evaluation.ids):
        seen[digest] = seen.get(digest, 0) + 1
        keys[f"{digest} {seen[digest]}"] = name
    return keys


def only(evaluation: Evaluation, ids: Sequence[str]) -> Evaluation:
    """An evaluation of some of its examples, in this order; of what the program said nothing is left."""
    at = {name: position for position, name in enumerate(evaluation.ids)}
    kept = [at[name] for name in ids]
    return Evaluation(
        ids=tuple(ids),
        scores=tuple(evaluation.scores[position] for position in kept),
        predictions=(None,) * len(kept),
        failures={name: evaluation.failures[name] for name in ids if name in evaluation.failures},
        samples=tuple(evaluation.samples[position] for position in kept) if evaluation.samples else (),
        clusters=_numbered([evaluation.clusters[position] for position in kept]) if evaluation.clusters else (),
        scale=evaluation.scale,
        not_run=tuple(name for name in ids if name in evaluation.not_run),
    )


def _numbered(clusters: list[str]) -> tuple[str, ...]:
    """Clusters by the order in which they come: those of equal examples are named by a place in the run's own data."""
    numbers: dict[str, int] = {}
    return tuple(str(numbers.setdefault(cluster, len(numbers))) for cluster in clusters)


def _renamed(evaluation: Evaluation, ids: tuple[str, ...]) -> Evaluation:
    """The evaluation with the ids that the other run gave the same examples."""
    new = dict(zip(evaluation.ids, ids))
    return Evaluation(
        ids=ids,
        scores=evaluation.scores,
        predictions=evaluation.predictions,
        failures={new[name]: error for name, error in evaluation.failures.items()},
        samples=evaluation.samples,
        clusters=evaluation.clusters,
        scale=evaluation.scale,
        not_run=tuple(new[name] for name in evaluation.not_run),
    )


_SCORED_BY = ("name", "function", "instructions", "criteria", "any_order", "graded", "field", "pattern", "default")
"""What decides what a metric's score is."""

_ANSWERED_BY = (
    ("models", "forward"),
    ("models", "base_url"),
    ("models", "api"),
    ("models", "config"),
    ("program", "user"),
    ("program", "response_format"),
    ("program", "class"),
)


def _differing(first: Run, second: Run, keys: tuple[tuple[str, ...], ...]) -> list[str]:
    """The settings in which two runs differ; what is not set is the same as what is null."""
    if first.by_command is None or second.by_command is None:
        return []
    values = {each: [_without_nulls(_said(run, each)) for run in (first, second)] for each in keys}
    return [".".join(each) for each, (one, other) in values.items() if one != other]


def _said(run: Run, keys: tuple[str, ...]) -> Any:
    """What a run's config says at these keys; of its endpoint, what it says of that of the program's model."""
    table, key = keys[0], keys[-1]
    return _of_endpoint(run, key) if table == "models" and key != "forward" else setting(run, "config", *keys)


def _of_endpoint(run: Run, key: str, role: str = "forward") -> Any:
    """What a run's config says of the endpoint of the model in a role: that of its own, else that of all models."""
    models = setting(run, "config", "models")
    own = setting_in(models, "endpoints", setting_in(models, role) or setting_in(models, "forward"))
    return setting_in(models if own is None else own, key)


def _metrics(run: Run) -> list[Mapping[str, Any]]:
    """The metrics that a run's config has, each as its table.

    Raises:
        RunError: they are none.
    """
    found = setting(run, "config", "metric")
    metrics = found if isinstance(found, list) else [found or {}]
    if not all(isinstance(each, Mapping) for each in metrics):
        raise RunError(f"{run.path / 'config.json'}: was damaged, as its metric is no table; restore it")
    return metrics


def is_judged(run: Run) -> bool:
    """Whether a model gives marks, so that scores mean the same only where it is the same."""
    return any(each.get("name") in ("judge", "rubric") for each in _metrics(run))


def _differing_metrics(first: Run, second: Run) -> list[str]:
    """The settings of metrics in which two runs differ; the word for all of them where there are several."""
    if first.by_command is None or second.by_command is None:
        return []
    one, other = _metrics(first), _metrics(second)
    if len(one) == len(other) == 1:
        first_by, other_by = _scored_by(one[0]), _scored_by(other[0])
        return [f"metric.{key}" for key in _SCORED_BY if first_by[key] != other_by[key]]
    return ["metric"] if _weighed_by(one) != _weighed_by(other) else []


def _scored_by(metric: Mapping[str, Any]) -> dict[str, Any]:
    """What decides what a metric's score is, with what is meant where nothing is said."""
    found = {key: metric.get(key) for key in _SCORED_BY}
    if isinstance(found["criteria"], list):
        found["criteria"] = without_floors(found["criteria"])
    if found["name"] is None and found["function"] is None:
        found["name"] = "exact_match"
    if isinstance(found["field"], list) and len(found["field"]) == 1:
        (found["field"],) = found["field"]
    return found


def _weighed_by(metrics: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """The same of several, with scale and weight; of weights only how they compare counts."""
    weights = [each.get("weight") or 1.0 for each in metrics]
    most = max(weights)
    return [
        {**_scored_by(each), "scale": each.get("scale") or [0, 1], "weight": round(weight / most, 12)}
        for each, weight in zip(metrics, weights)
    ]


def _without_nulls(value: Any) -> Any:
    if not isinstance(value, Mapping):
        return value
    inside = {key: _without_nulls(each) for key, each in value.items()}
    return {key: each for key, each in inside.items() if each is not None} or None


def _other_scores(first: Run, second: Run) -> str:
    """Why a score of one run means something else than one of the other; "" where it means the same."""
    differing = _differing_metrics(first, second) + _differing(first, second, (("data", "target"),))
    if first.by_command is not None and second.by_command is not None and is_judged(first):
        judges = [
            (
                setting(run, "config", "models", "judge") or setting(run, "config", "models", "forward"),
                _of_endpoint(run, "base_url", "judge"),
            )
            for run in (first, second)
        ]
        differing += ["models.judge"] if judges[0] != judges[1] else []
        differing += _differing(first, second, (("prompts",),))
    if differing:
        return f"their scores mean different things, as {_and(differing)} {_is(differing)} not the same"
    scales = {run.result.best_val.scale for run in (first, second) if run.result and run.result.best_val}
    return "their scores are on different scales" if len(scales) > 1 else ""


def _other_answers(first: Run, second: Run) -> Iterator[str]:
    if first.by_command is None or second.by_command is None:
        from_python = [name for name, run in zip("AB", (first, second)) if run.by_command is None]
        many = "were" if len(from_python) > 1 else "was"
        yield (
            f"{_and(from_python)} {many} started from Python, so whether program, metric and models are the same is "
            "not on record."
        )
    if differing := _differing(first, second, _ANSWERED_BY):
        yield (
            f"The difference is not that of the prompts alone: {_and(differing)} {_is(differing)} not the same in A "
            "and B."
        )

    if code := _code_that_differs(first, second):
        yield f"{_and(code)} {_is(code)} other code in A than in B, so their scores may mean different things."


def _code_that_differs(first: Run, second: Run) -> list[str]:
    """The files of code that both runs were made of, as far as they held something else; of folders of before none."""
    one, other = (setting(run, "files") or {} for run in (first, second))
    return [name for name in one if name.endswith(".py") and one[name] != other.get(name, one[name])]


def _and(names: list[str]) -> str:
    *first, last = names
    return f"{', '.join(first)} and {last}" if first else last


def _is(names: list[str]) -> str:
    return "is" if len(names) == 1 else "are"
