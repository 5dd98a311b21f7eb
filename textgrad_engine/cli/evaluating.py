"""An evaluation of a prompt: what is asked for, its checks, and how it is carried out."""

from __future__ import annotations

import contextlib
import math
import time
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from textgrad_engine.autograd import Variable
from textgrad_engine.cli import build, run_data, runs
from textgrad_engine.cli.config import Config
from textgrad_engine.cli.config_data import tell_of_empty_clusters
from textgrad_engine.cli.contracts import check_texts
from textgrad_engine.cli.keeping import keeping
from textgrad_engine.cli.models import Made, check_prices, make_models
from textgrad_engine.cli.output import checking
from textgrad_engine.cli.progress import score_bar_for
from textgrad_engine.cli.prompt_files import trained_by_name
from textgrad_engine.cli.sliced import values_of
from textgrad_engine.cli.spending import ModelOptions, limits_of
from textgrad_engine.cli.subject import Subject
from textgrad_engine.data import Dataset
from textgrad_engine.errors import BudgetExceeded, RunError
from textgrad_engine.llm import Cache, CallRecord, Model, Recording, observe
from textgrad_engine.llm.cachekey import identity_of
from textgrad_engine.llm.charged import usage_of
from textgrad_engine.llm.ids import digest
from textgrad_engine.llm.meters import Meter, meter
from textgrad_engine.llm.model import stated_price
from textgrad_engine.llm.prices import price_of as price_of_model
from textgrad_engine.llm.prices import tier_of
from textgrad_engine.llm.response import Usage
from textgrad_engine.nn import Judge, Module, Rubric
from textgrad_engine.report.document import evaluation_as_json, usage_as_json
from textgrad_engine.report.earlier import Earlier, by_the_run, earlier_of, incomparable
from textgrad_engine.report.scoring import GOING_ON, OnScore
from textgrad_engine.report.slices import Slice, slices_of
from textgrad_engine.slots import composed
from textgrad_engine.store import Run, append_evaluation, check_writable
from textgrad_engine.train import Evaluation
from textgrad_engine.train.evaluator import attempt
from textgrad_engine.train.guarded import Floor, standings
from textgrad_engine.train.interrupt import stopping_on_interrupt
from textgrad_engine.train.scale import scale_of
from textgrad_engine.train.standing import Standing


@dataclass(frozen=True, kw_only=True)
class Asked:
    """What the command line asks for; None for what the run's config says.

    Attributes:
        data: the file of the examples.
        repeats: how often each is run.
        clusters: the column that says which belong together.
        options: of models and limits.
        by: the column by whose values scores are told.
        at_least: the score below which the command fails.
        not_worse: whether it fails where the run itself has measured more.
        missing: whether only what the last one of the same lacks is asked.
    """

    data: Path | None
    repeats: int
    clusters: str | None
    options: ModelOptions
    by: str | None = None
    at_least: float | None = None
    not_worse: bool = False
    missing: bool = False


@dataclass(frozen=True, kw_only=True)
class Task:
    """What is evaluated, on what; all of it was checked.

    Attributes:
        by: the column by whose values scores are told, and what each example has there; None where there is none.
        floors: those of the config, on these examples.
        about: what ``evals.jsonl`` says of it beforehand.
        keeps: whether the run folder keeps its calls until it has come to its end, and what came of it.
        unkept: that it does not, though there is a run, in words; "" elsewhere.
        missing: whether it goes on with one that came to its end and lacks answers.
    """

    subject: Subject
    config: Config
    program: Module
    metric: Callable[..., Variable]
    models: dict[str, Model]
    dataset: Dataset
    repeats: int
    clusters: str | None
    by: tuple[str, list[str]] | None
    floors: tuple[Floor, ...]
    about: dict[str, Any]
    keeps: bool
    unkept: str
    missing: bool


@dataclass(frozen=True, kw_only=True)
class Done:
    """What came of an evaluation.

    Attributes:
        evaluation: of what was answered; None where nothing was.
        ended: the spent budget or the stop that ended it; None where all was asked.
        entry: what ``evals.jsonl`` says of it.
        used: by the models.
        program: by the program's own calls, what answers from the cache were paid for included; where a price is stated
            for the model, by that.
        scored: the same without those for examples that have no score, as their judge was not come to, say.
        kept: the calls that were kept for the case that it does not come to its end; None where the task keeps none.
        openings: how often the run's test split was looked at with it; None where it did not look at it, and for a
            config, where nobody counts.
        earlier: what the same examples gave before, where all was asked.
        slices: the column by whose values scores are told, and what there is of each, where anything was answered; of
            the run's own test examples beside what it measured of its best prompt itself.
        floors: how it stands to the floors of the config, where anything was answered.
    """

    evaluation: Evaluation | None
    ended: Exception | None
    entry: dict[str, Any]
    used: Usage
    program: Usage
    scored: Usage
    kept: Recording | None
    openings: int | None
    earlier: tuple[Earlier, ...]
    slices: tuple[str, list[Slice]] | None
    floors: tuple[Standing, ...]

    @property
    def lacking(self) -> bool:
        """Whether all was asked, and the endpoint lost answers that it may give another time."""
        unanswered = self.evaluation is not None and self.evaluation.unanswered > 0
        return self.ended is None and unanswered and self.kept is not None and self.kept.lost > 0


def checked(subject: Subject, asked: Asked, made_before: list[Made] | None = None) -> Task:
    """Check all that can be checked before a model is asked.

    Args:
        subject: what is evaluated.
        asked: what the command line asks for.
        made_before: models of evaluations beside this one, as for `make_models`.

    Raises:
        TextgradError: something cannot be used.
    """
    said = asked.options
    config = runs.changed(subject.config, said, limits_of(*said.limits))
    name, dataset = subject.dataset(asked.data)
    clusters = asked.clusters
    if clusters is not None:
        dataset.require(clusters := composed(clusters))
        tell_of_empty_clusters(dataset, clusters, "--clusters asks for it")
    elif config.data.clusters in dataset.columns:
        clusters = config.data.clusters
    by = None if asked.by is None else (composed(asked.by), values_of(dataset, composed(asked.by)))
    program = build.make_program(config)
    if subject.run is None:
        check_texts(config, trained_by_name(program))
    runs.load_texts(program, subject.texts, subject.path)
    texts = trained_by_name(program) if subject.run is None else dict(subject.texts)
    metric = build.make_metric(config)
    if asked.at_least is not None:
        _check_least(asked.at_least, (0.0, 1.0) if config.is_right_or_wrong else scale_of(metric))
    models = make_models(config, said.model, judge=said.judge, made_before=made_before)
    check_prices(config, models, said.limits[0], said.model)
    with build.prompts_of(config):
        pass
    about = {
        "data": name,
        "split": run_data.split_of(subject.kept, dataset),
        "rows": run_data.rows_of_splits(subject.kept, dataset),
        "digest": run_data.digest_of(dataset),
        "prompt": subject.prompt,
        "text": digest(texts)[:16],
        **config.models.on_record(),
        "seed": config.seed,
    }
    if asked.not_worse:
        _check_comparable(subject, about)
    unkept = "" if subject.run is None else _unkept(subject.run, about)
    keeps = subject.run is not None and not unkept
    if asked.missing and not keeps:
        raise RunError(
            f"{subject.path}: --missing goes on with what a run folder keeps; a config has none, and one that cannot "
            "be written keeps nothing. Without it all is asked"
        )
    return Task(
        subject=subject,
        config=config,
        program=program,
        metric=metric,
        models=models,
        dataset=dataset,
        repeats=asked.repeats,
        clusters=clusters,
        by=by,
        floors=build.make_floors(config, dataset),
        about=about,
        keeps=keeps,
        unkept=unkept,
        missing=asked.missing,
    )


def _unkept(run: Run, about: Mapping[str, Any]) -> str:
    """That a run folder cannot keep an evaluation, as a checkout may be read only, in words; "" where it can.

    Raises:
        RunError: it cannot, and has to count a look at the run's test split.
    """
    try:
        check_writable(run.path)
    except RunError as error:
        if run_data.opens_test(about):
            raise RunError(
                f"{error}; looks at the test split are counted there, so evaluate on other examples, with --data FILE, "
                "or where the folder can be written"
            ) from None
        return f"note: {error}, so nothing of this is kept there"
    return ""


def _check_comparable(subject: Subject, about: Mapping[str, Any]) -> None:
    """Refuse to tell whether it is worse than what the run measured, where that cannot be told.

    Raises:
        RunError: it is of a config, of other examples, or of scores by another judge; or the run has no result on them.
    """
    if subject.run is None:
        raise RunError(
            f"{subject.path}: --not-worse is for runs, whose result it compares with; `compare` tells of two prompts "
            "which is better, for a single one see --at-least"
        )
    if why := incomparable(subject.run, about, subject.config.models.on_record()):
        raise RunError(f"{subject.path}: --not-worse compares with the run's own result, and {why}; see --at-least")


def _check_least(least: float, scale: tuple[float, float] | None) -> None:
    """Refuse a least score that no score can tell anything about.

    Raises:
        RunError: it is no number, or not among the scores that there can be.
    """
    low, high = scale or (-math.inf, math.inf)
    if not math.isfinite(least) or not low <= least <= high:
        raise RunError(f"--at-least {least:g}: give a score from {low:g} to {high:g}, as the metric has them")


def carried_out(
    task: Task, *, cache: Cache | None = None, quiet: bool, name: str = GOING_ON, on_score: OnScore | None = None
) -> Done:
    """Run the program on the examples, and show how it goes on; ``evals.jsonl`` of its run says beforehand that it is.

    Args:
        task: what is evaluated.
        cache: where answers are kept for others, too, and looked for first, if anywhere.
        quiet: show nothing.
        name: what it is called, where lines show its progress.
        on_score: what shows the progress, also of other evaluations; None for a bar of this one's.
    """
    bar = score_bar_for(len(task.dataset) * task.repeats, quiet, name)
    began = time.monotonic()
    run = task.subject.run if task.keeps else None
    about = {**task.about, "texts": dict(task.subject.texts), "repeats": task.repeats}
    calls = _ProgramCalls(task.models.get("forward"))
    with (
        build.surroundings(task.config, task.models, cache=cache),
        meter() as used,
        observe(calls.note),
        contextlib.nullcontext()
        if run is None
        else keeping(run, "eval", task.config, about, missing=task.missing, quiet=quiet) as kept,
        bar if on_score is None else contextlib.nullcontext(on_score) as on_score,
        stopping_on_interrupt(),
    ):
        goes_on = kept is not None and kept.answers > 0
        if run is not None:
            with checking():
                append_evaluation(run.path, run_data.started(task.about, goes_on=goes_on))
        evaluation, ended = attempt(
            task.program,
            task.dataset,
            task.metric,
            target=task.config.data.target,
            repeats=task.repeats,
            clusters=task.clusters,
            on_score=on_score,
        )
    spent = isinstance(ended, BudgetExceeded)
    entry = {
        **task.about,
        "status": "finished" if ended is None else "budget" if spent else "interrupted",
        **(evaluation_as_json(evaluation) or {}),
        "usage": usage_as_json(used.total),
        "seconds": round(time.monotonic() - began, 3),
    }
    openings = None
    if run is not None and run_data.opens_test(entry):
        openings = run_data.openings(run) + (not goes_on)
    earlier: tuple[Earlier, ...] = ()
    before = None
    if task.subject.run is not None and evaluation is not None and ended is None:
        own = task.subject.config.models.on_record()
        earlier = earlier_of(task.subject.run, task.about, evaluation, own)
        before = by_the_run(task.subject.run, task.about, own, evaluation.ids)
    slices = None
    if task.by is not None and evaluation is not None:
        slices = (task.by[0], slices_of(task.by[1], evaluation, before))
    floors = () if evaluation is None else standings(task.floors, evaluation, evaluation, "other")
    rows = () if evaluation is None else zip(evaluation.ids, evaluation.scores)
    return Done(
        evaluation=evaluation,
        ended=ended,
        entry=entry,
        used=used.total,
        program=calls.total(),
        scored=calls.total(without={name for name, score in rows if score is None}),
        kept=kept,
        openings=openings,
        earlier=earlier,
        slices=slices,
        floors=floors,
    )


def is_cached(task: Task) -> bool:
    """Whether a cache keeps the answers of all that is asked; of a model that nothing tells from others it cannot."""
    asked = [task.models.get(role) for role in ("forward", *(["judge"] if is_judged(task.subject) else []))]
    return all(identity_of(model) is not None for model in asked if model is not None)


def is_judged(subject: Subject) -> bool:
    """Whether a model gives the marks, or some of them."""
    return any(isinstance(each, Judge | Rubric) for each in _parts_of(build.make_metric(subject.config)))


def _parts_of(loss: Callable[..., Any]) -> Iterator[Any]:
    return loss.modules() if isinstance(loss, Module) else iter(())


class _ProgramCalls:
    """The program's own calls: for which example each was, and what it took.

    Args:
        model: answers them; None where there is none.
    """

    def __init__(self, model: Model | None) -> None:
        self._model = model
        self._used: list[tuple[str, Usage]] = []

    def note(self, record: CallRecord) -> None:
        """Note a call, if it is one; of a kept answer what it took by a stated price.

        The cache has it at what was known when it was paid for, which may be nothing, or what was stated by mistake.
        """
        if record.purpose != "forward":
            return
        if (answer := record.completion) is None:
            used = None if record.error is None else usage_of(record.error)
        else:
            used = (answer.saved or Usage()) if record.cached else answer.usage
        model = self._model
        if used is not None and record.cached and model is not None and record.model == model.name:
            now = price_of_model(model, used, tier_of(model, record.request.config))
            known = used.dollars if stated_price(model) is None else None
            used = used.model_copy(update={"dollars": now if known is None else known})
        if used is not None:
            self._used.append((record.key, used))

    def total(self, without: Collection[str] = ()) -> Usage:
        """What they took together, without those for some examples."""
        found = Meter()
        for name, used in self._used:
            if name not in without:
                found.end("forward", used, failed=False)
        return found.total
