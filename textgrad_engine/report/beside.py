"""Two runs beside each other, as plain values: scores, what may be said about them, settings, cost, and the texts."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass
from typing import Any

from textgrad_engine.errors import RunError
from textgrad_engine.llm.response import Usage
from textgrad_engine.report.changed import changed_as_json
from textgrad_engine.report.document import evaluation_as_json, finite, usage_as_json
from textgrad_engine.report.folds import headline_of
from textgrad_engine.report.pairing import Pairing, pairing_of, same_conditions, setting
from textgrad_engine.report.unfinished import so_far
from textgrad_engine.report.unified import NOWHERE, unified
from textgrad_engine.report.view import headline
from textgrad_engine.report.words import plural
from textgrad_engine.store.files import file_name
from textgrad_engine.store.folds import Folds
from textgrad_engine.store.reader import Run
from textgrad_engine.train.evaluation import Evaluation
from textgrad_engine.train.result import TrainResult
from textgrad_engine.train.standing import missed_in_words


@dataclass(frozen=True)
class Side:
    """One of two runs.

    Attributes:
        name: its folder, as it was named.
        status: how it ended, as `train.TrainResult` has it; None for a run without a result.
        headline: how it ended.
        seed_val: its seed texts on the validation set; None where that is not known, as of the others.
        best_val: its best texts on the validation set.
        seed_test: its seed texts on the test set.
        best_test: its best texts on the test set.
        candidates: how many changed texts it tried on the validation set.
        openings: how often its test split was looked at.
        usage: what it used, by the purpose of the calls.
        total: the sum.
        seconds: how long it took; None where that is not known.
    """

    name: str
    status: str | None
    headline: str
    seed_val: Evaluation | None
    best_val: Evaluation | None
    seed_test: Evaluation | None
    best_test: Evaluation | None
    candidates: int
    openings: int
    usage: dict[str, Usage]
    total: Usage
    seconds: float | None


@dataclass(frozen=True)
class Changed:
    """A setting in which two runs differ; None where it is not set, or one of the runs has no such setting."""

    name: str
    first: Any
    second: Any


@dataclass(frozen=True)
class Texts:
    """A text of one run beside that of another, or the seed text beside the best one.

    Attributes:
        name: the parameter's dotted name; where they differ, that of the second run.
        first: the text before, or of the first run; None where it has none.
        second: the other one.
        patch: the unified diff between them; "" where they are equal.
    """

    name: str
    first: str | None
    second: str | None
    patch: str


@dataclass(frozen=True)
class Beside:
    """Two runs beside each other.

    Attributes:
        sides: the runs, A and B.
        pairings: what the same examples say about their best texts: on the test set, and where that says nothing and
            the validation set does, there.
        settings: in what their configs differ; where not all is known, which of `shared` do.
        unknown: why nothing, or not all, is known about their settings; "" where they are.
        shared: where not all is known, the settings that both keep.
        texts: their best texts.
        remarks: what a reader must know to judge all of it.
    """

    sides: tuple[Side, Side]
    pairings: tuple[Pairing, ...]
    settings: tuple[Changed, ...]
    unknown: str
    texts: tuple[Texts, ...]
    remarks: tuple[str, ...]
    shared: tuple[str, ...] = ()


def changes_of(run: Run) -> tuple[Texts, ...]:
    """What a run made of its seed texts.

    Raises:
        RunError: the run ended before it had texts.
    """
    _check_begun(run)
    return tuple(
        Texts(
            name,
            seed,
            run.best[name],
            _patch(run, "seed", name, run, name),
        )
        for name, seed in run.seed.items()
    )


def changes_as_json(run: Run, texts: tuple[Texts, ...]) -> dict[str, Any]:
    """The same as plain JSON values."""
    return {
        "run": str(run.path),
        "status": None if run.result is None else run.result.status,
        "parameters": {each.name: {"seed": each.first, "best": each.second, "patch": each.patch} for each in texts},
    }


def beside_of(first: Run | Folds, second: Run | Folds, openings: tuple[int, int]) -> Beside:
    """Two runs beside each other.

    A cross-validation is taken for a run whose test set are all examples: on each it is its own fold's texts that were
    tested. Its texts are the final ones.

    Args:
        first: a run, or a cross-validation, A.
        second: what it is compared with, B.
        openings: how often the test split of each was looked at, evaluations since the run included.

    Raises:
        RunError: one of them ended before it had texts, or its record of calls is damaged.
    """
    several = first, second
    first, second = (run_of(each) if isinstance(each, Folds) else each for each in several)
    for run in (first, second):
        _check_begun(run)
    headlines = [headline_of(each) if isinstance(each, Folds) else headline(each) for each in several]
    sides = _side(first, headlines[0], openings[0]), _side(second, headlines[1], openings[1])
    test = pairing_of(first, second, "test")
    pairings: tuple[Pairing, ...] = (test,)
    if test.comparison is None and (val := pairing_of(first, second, "val")).comparison is not None:
        pairings = (test, val)
    texts = tuple(_texts(first, second))
    kept = _flat(first), _flat(second)
    unknown = _unknown(first, second)
    shared = tuple(name for name in kept[0] if name in kept[1]) if unknown else ()
    return Beside(
        sides=sides,
        pairings=pairings,
        settings=tuple(_settings(*kept, shared if unknown else {**kept[0], **kept[1]})),
        unknown=unknown,
        texts=texts,
        remarks=(*_of_folds(several, test, bool(texts)), *_remarks(first, second, sides, pairings)),
        shared=shared,
    )


def run_of(folds: Folds) -> Run:
    """A cross-validation as one run: what the folds scored is its test, and the final texts are its texts.

    Raises:
        RunError: a file is damaged.
    """
    found = folds.found
    config: dict[str, Any] | None = None
    if folds.config is not None:
        rows = dict(zip(folds.ids, folds.rows))
        tested = () if found.best is None else found.best.ids
        digests = {"test": folds.digest} if folds.digest else {}
        known = {"test": " ".join(rows[name] for name in tested)} if rows else {}
        config = {**folds.config, "digests": digests, "rows": known, "folds": folds.folds}
    final = folds.runs.get("final")
    seed = next((run.seed for run in folds.runs.values() if run.seed), {})
    used: dict[str, Usage] = {}
    for each in found.runs:
        for purpose, usage in each.usage.items():
            used[purpose] = used.get(purpose, Usage()) + usage
    steps = tuple(step for each in found.runs for step in each.steps)
    best = {} if found.final is None else found.final.best
    result = TrainResult(
        status=found.status,
        seed=seed,
        best=best,
        origins={},
        seed_val=None,
        best_val=None,
        seed_test=found.seed,
        best_test=found.best,
        comparison=found.comparison,
        compared_on="test",
        steps=steps,
        usage=used,
        seconds=found.seconds,
        openings=int(found.seed is not None),
    )
    evals = () if final is None else final.evals
    return Run(folds.path, config, result if found.runs else None, seed, best, (), steps, (), evals)


def _of_folds(several: tuple[Run | Folds, Run | Folds], test: Pairing, texts: bool) -> Iterator[str]:
    names = [name for name, each in zip("AB", several) if isinstance(each, Folds)]
    if not names:
        return
    are = "are cross-validations" if len(names) > 1 else "is a cross-validation"
    each = f"{' and '.join(names)} {are}: the folds' prompts were tested, each on examples that it was not trained on."
    difference = "" if test.comparison is None else " So the difference is between ways to optimize, not prompts."
    final = " The final prompts, whose lines are compared below, were not tested." if texts else ""
    yield f"{each}{difference}{final}"


def _unknown(first: Run, second: Run) -> str:
    """Why the settings of two runs cannot be set against each other; what Python keeps of both can be."""
    python = [(name, run) for name, run in zip("AB", (first, second)) if run.by_command is None]
    if len(python) == 2 and None not in (first.config, second.config):
        return ""
    none = [name for name, run in python if run.config is None]
    own = [name for name, run in python if run.config is not None]
    were = "were" if len(none) > 1 else "was"
    said = [f"{' and '.join(none)} {were} started from Python, which keeps none"] if none else []
    said += [f"{name} was started from Python, with a config of its own" for name in own]
    return ", and ".join(said)


def beside_as_json(found: Beside) -> dict[str, Any]:
    """The same as plain JSON values; what was not measured, or is infinite, is null."""
    return {
        **{name: _side_as_json(side) for name, side in zip("ab", found.sides)},
        "pairings": [
            {
                "on": each.on,
                "comparison": None if each.comparison is None else finite(asdict(each.comparison)),
                "why": each.why or None,
                "remarks": list(each.remarks),
                "changed": changed_as_json(each.changed),
            }
            for each in found.pairings
        ],
        "settings": None
        if found.unknown and not found.shared
        else {each.name: {"a": each.first, "b": each.second} for each in found.settings},
        "parameters": [
            {"name": each.name, "a": each.first, "b": each.second, "patch": each.patch} for each in found.texts
        ],
        "remarks": list(found.remarks),
    }


def _side_as_json(side: Side) -> dict[str, Any]:
    return {
        "run": side.name,
        "status": side.status,
        "headline": side.headline,
        "val": {"seed": evaluation_as_json(side.seed_val), "best": evaluation_as_json(side.best_val)},
        "test": {"seed": evaluation_as_json(side.seed_test), "best": evaluation_as_json(side.best_test)},
        "candidates": side.candidates,
        "test_openings": side.openings,
        "usage": {purpose: usage_as_json(usage) for purpose, usage in side.usage.items()},
        "total": usage_as_json(side.total),
        "seconds": None if side.seconds is None else round(side.seconds, 3),
    }


def _side(run: Run, ended: str, openings: int) -> Side:
    found = run.result or so_far(run)
    return Side(
        name=str(run.path),
        status=None if run.result is None else found.status,
        headline=ended,
        seed_val=found.seed_val,
        best_val=found.best_val,
        seed_test=found.seed_test,
        best_test=found.best_test,
        candidates=found.candidates,
        openings=max(openings, found.openings),
        usage=found.usage,
        total=found.total,
        seconds=None if run.result is None else found.seconds,
    )


def _settings(first: Mapping[str, Any], second: Mapping[str, Any], names: Iterable[str]) -> Iterator[Changed]:
    for name in names:
        one, other = first.get(name), second.get(name)
        if one != other and not (name == "version" and None in (one, other)):  # folders of before keep none
            yield Changed(name, one, other)


def _flat(run: Run) -> dict[str, Any]:
    """Every setting by its dotted name, and what tells whether the data is the same; of Python what it keeps itself."""
    if run.by_command is None:
        return {name: value for name, value in _leaves(run.config or {}) if name != "format"}
    found = dict(_leaves(run.by_command["config"]))
    found["feedback"], found["folds"] = setting(run, "feedback"), setting(run, "folds")
    for split in ("train", "val", "test"):
        found[f"examples.{split}"] = setting(run, "digests", split)
    return {**found, "version": setting(run, "version")}


def _leaves(values: Mapping[str, Any], above: str = "") -> Iterator[tuple[str, Any]]:
    for key, value in values.items():
        name = f"{above}{key}"
        if isinstance(value, Mapping):
            yield from _leaves(value, f"{name}.")
        elif isinstance(value, list) and value and all(isinstance(each, Mapping) for each in value):
            for number, each in enumerate(value, 1):
                yield from _leaves(each, f"{name}[{number}].")
        else:
            yield name, value


def _texts(first: Run, second: Run) -> Iterator[Texts]:
    """The best texts by name; where each run has one that the other lacks, these two."""
    if not first.best or not second.best:  # a cross-validation without its final run
        return
    names = [(name, name) for name in first.best if name in second.best]
    alone = [name for name in first.best if name not in second.best], [n for n in second.best if n not in first.best]
    if len(alone[0]) == len(alone[1]) == 1:
        names.append((alone[0][0], alone[1][0]))
        alone = [], []
    for old, new in names:
        yield Texts(new, first.best[old], second.best[new], _patch(first, "best", old, second, new))
    for name in alone[0]:
        yield Texts(name, first.best[name], None, unified(first.best[name], "", _file(first, "best", name), NOWHERE))
    for name in alone[1]:
        yield Texts(name, None, second.best[name], unified("", second.best[name], NOWHERE, _file(second, "best", name)))


def _remarks(first: Run, second: Run, sides: tuple[Side, Side], pairings: tuple[Pairing, ...]) -> Iterator[str]:
    tried = " and ".join(f"{name} tried {plural(side.candidates, 'changed text')}" for name, side in zip("AB", sides))
    yield f"On the validation set, {tried}."
    if first.best == second.best:
        luck = same_conditions(first, second)
        yield f"Both have the same best prompt{', so what differs between their scores is luck' if luck else ''}."
    elif pairings[0].comparison is not None:
        yield (
            "The test set chose neither prompt. If you now take the better of the two, it has chosen: the more runs "
            "you compare like this, the more the winner's score there flatters it."
        )
    if pairings[-1].on == "val" and pairings[-1].comparison is not None:
        yield "Each prompt was chosen on validation, which flatters both, and more so the one with more tries."
    if max(side.openings for side in sides) > 1:
        looked = " and ".join(f"{plural(side.openings, 'time')} for {name}" for name, side in zip("AB", sides))
        yield f"The test split was opened {looked}, later evaluations included."
    for name, run in zip("AB", (first, second)):
        if run.result is not None and run.result.controls is not None and run.result.controls.each:
            yield f"What {name} cost includes its controls."
    for name, run in zip("AB", (first, second)):
        if run.result is not None:
            if missed := missed_in_words(run.result.floors):
                yield f"{name}: {missed}."
            yield from (f"{name}: {sentence}." for sentence in run.result.overlaps)
            if run.result.untested:
                yield f"{name}: {run.result.untested}."


def _check_begun(run: Run) -> None:
    if not run.seed:
        how = run.error.split("\n")[0] if run.error else "it was killed, or has just begun"
        raise RunError(f"{run.path}: there are no texts, as the run did not come so far ({how})")


def _patch(first: Run, folder: str, old: str, second: Run, new: str) -> str:
    """From a text of one run to the best one of another, or of the same, as their prompt files have them."""
    texts = _as_its_file(first, folder, old), _as_its_file(second, "best", new)
    return unified(*texts, _file(first, folder, old), _file(second, "best", new))


def _as_its_file(run: Run, folder: str, name: str) -> str:
    """A text as the file ends that the prompt came from: a patch of the one without a line break fits no other."""
    text = (run.seed if folder == "seed" else run.best)[name]
    ends = setting(run, "ends_line")
    if ends is None:  # folders of before do not say it, and editors do end lines
        ends = setting(run, "config", "program", "system_file") is not None
    return f"{text}\n" if ends and name == "system" else text


def _file(run: Run, folder: str, name: str) -> str:
    path = run.path if setting(run, "folds") is None else run.path / "final"
    return (path / folder / f"{file_name(name, run.seed)}.txt").as_posix()
