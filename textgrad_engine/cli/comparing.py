"""Several prompts, models and configs on the same examples: what is named, its checks, and how it is carried out."""

from __future__ import annotations

import functools
import inspect
import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from textgrad_engine.cli import run_data
from textgrad_engine.cli.completion import is_config
from textgrad_engine.cli.config import Config
from textgrad_engine.cli.evaluating import Asked, Done, Task, carried_out, checked, is_judged
from textgrad_engine.cli.evaluation_words import called, shared
from textgrad_engine.cli.models import Made
from textgrad_engine.cli.progress import score_bars_for
from textgrad_engine.cli.prompt_files import trained_texts
from textgrad_engine.cli.settings import Budget
from textgrad_engine.cli.subject import Subject, prompt_of_config, prompt_of_run, with_files
from textgrad_engine.cli.user_code import go_home
from textgrad_engine.data.names import suggest
from textgrad_engine.data.paths import missing_file
from textgrad_engine.errors import RunError
from textgrad_engine.llm import Cache, budget
from textgrad_engine.report.changed import Changed, changed
from textgrad_engine.report.earlier import in_files, measured
from textgrad_engine.report.pairing import only
from textgrad_engine.report.scoring import OnScore
from textgrad_engine.report.words import plural
from textgrad_engine.store import Run, append_evaluation, done_with, is_folds, keep_for_missing, read_run
from textgrad_engine.train import Comparison, Evaluation
from textgrad_engine.train.comparison import compared
from textgrad_engine.train.interrupt import at_once
from textgrad_engine.user_paths import expanded


@dataclass(frozen=True)
class Arm:
    """One prompt with one model, as in a trial with several arms.

    Attributes:
        number: from 1 on, in the order in which they were named.
        model: that of the program.
        task: the evaluation.
        worked: what of its examples the run worked with that found the prompt, in words; "" where that is nothing, and
            where no run did.
        run: the folder of the run that found the prompt; None where no run did.
        config: the config that it is of, if that is another one than the first arm's; else "".
    """

    number: int
    model: str
    task: Task
    worked: str = ""
    run: Path | None = None
    config: str = ""

    @property
    def texts(self) -> dict[str, str]:
        """The prompt, by the names of its texts."""
        return {name: str(each.data) for name, each in self.task.program.named_parameters()}


@dataclass(frozen=True)
class Result:
    """What came of an arm.

    Attributes:
        arm: the arm.
        done: its evaluation.
        comparison: against the first arm, corrected for all that are; None for that itself, and where no example has a
            score in both.
        changed: which examples score otherwise than with the first arm; None for that itself, and where either has
            none.
    """

    arm: Arm
    done: Done
    comparison: Comparison | None = None
    changed: Changed | None = None

    @property
    def evaluation(self) -> Evaluation | None:
        """The scores; None where nothing was answered."""
        return self.done.evaluation


@dataclass(frozen=True)
class Failure:
    """An arm that an error ended, as all that its endpoint was asked was lost, say.

    Attributes:
        arm: the arm.
        error: what ended it.
    """

    arm: Arm
    error: Exception


def arms_of(
    subject: Subject, asked: Asked, prompts: Sequence[str], models: Sequence[str], configs: Sequence[str] = ()
) -> tuple[list[Arm], list[str]]:
    """The arms, all of them checked before a model is asked: each prompt with each model, the subject's own first.

    Those that would ask the same as one before are left out, and told.

    Args:
        subject: has the first prompt.
        asked: what the command line asks for, but for the models.
        prompts: files, or run folders of which the best prompt counts.
        models: what does every role, in the place of the config's; none for what the config names.
        configs: other configs, whose prompts are run with their own programs and settings.

    Returns:
        The arms; and in words, with the option that named each, what is left out.

    Raises:
        TextgradError: something cannot be used, or nothing but the subject's own prompt is named.
    """
    if len(models) > 1 and asked.options.judge is None and is_judged(subject):
        raise RunError(
            f"--model {models[1]}: each of {len(models)} models would give marks to its own answers, as [metric] asks "
            "a judge, and they could not be compared; name one judge for all of them with --judge NAME"
        )
    if not prompts and not configs and len(models) < 2:
        raise RunError(
            f"{subject.path}: one prompt with one model is nothing to compare; name others, such as --prompt mine.txt "
            "or --model A --model B"
        )
    each_prompt = [
        (f"the prompt of {subject.path}", "", subject, subject.run),
        *((f"--prompt {own}", "", *_with(subject, own)) for own in prompts),
        *((f"--config {own}", own, _of_config(subject, own, *models, asked.options.judge), None) for own in configs),
    ]
    arms: list[tuple[str, Arm]] = []
    same: list[str] = []
    made: list[Made] = []
    for (named, config, other, run), model in itertools.product(each_prompt, models or (None,)):
        go_home(other.config.folder)
        task = checked(other, replace(asked, options=replace(asked.options, model=model)), made)
        if config:
            task = _by_the_metric_of(arms[0][1].task, task, config)
        forward = task.config.models.roles()["forward"]
        found = None if run is None else run.path
        arm = Arm(len(arms) + 1, forward, task, _worked(run, task), found, config)
        if arms and task.about["digest"] != arms[0][1].task.about["digest"]:
            raise RunError(
                f"{named}: its examples in {task.about['data']} are not those of {subject.path}, so scores on them "
                "cannot be compared; name one file for both with --data FILE"
            )
        if twin := next((each for each, before in arms if _asks_the_same(before, arm)), ""):
            twice = f"--model {model}" if models.count(model or "") > 1 else named
            what = f"{twice} is named twice" if twin == named else f"{named}: {twin} is the same"
            same.append(f"{what}, so there is nothing to compare")
            continue
        arms.append((named, arm))
    return [arm for _, arm in arms], same


def programs_from_elsewhere(arms: Sequence[Arm]) -> Iterator[str]:
    """That a config's program is the first one's, as both import it from beside neither of them, in words.

    So whatever has changed in it, none is worse.
    """
    first, folder = type(arms[0].task.program), arms[0].task.config.folder.resolve()
    told: set[str] = set()
    for arm in arms[1:]:
        own = arm.task.config
        elsewhere = own.program.class_ is not None and own.folder.resolve() != folder
        if arm.config and arm.config not in told and elsewhere and type(arm.task.program) is first:
            told.add(arm.config)
            yield (
                f"note: the program of {arm.config} is imported from {inspect.getfile(first)}, as that of "
                f"{arms[0].task.subject.path} is, so a change of it does not show here; run `eval` of each where its "
                "own is installed"
            )


def _asks_the_same(before: Arm, arm: Arm) -> bool:
    """Whether two arms ask their models the same; of code in the folders of two configs nobody knows it."""
    one, two = before.task.config, arm.task.config
    if one.folder.resolve() != two.folder.resolve() and (one.code_of_the_program() or two.code_of_the_program()):
        return False
    return before.texts == arm.texts and one.models == two.models and _but_texts(one) == _but_texts(two)


def _but_texts(config: Config) -> dict[str, Any]:
    """What a config says of its program, the contents of files in the place of their names."""
    said = config.program.model_dump(exclude={"system", "system_file"}) | config.files_read()
    return {**said, "prompts": _own_words(config)}


def _own_words(config: Config) -> dict[str, str]:
    """The words of one's own that a config names for critic, judge and the form of answers, by the names of files."""
    folder = None if config.prompts is None else config.file(config.prompts)
    return {} if folder is None else {file.name: file.read_text(encoding="utf-8") for file in folder.glob("*.md")}


def _by_the_metric_of(first: Task, task: Task, given: str) -> Task:
    """The task of another config, scored by the code and the judge of the first one's folder.

    Raises:
        RunError: its marks would come from another judge.
    """
    task = replace(task, metric=first.metric)
    if not is_judged(first.subject):
        return task
    if _judge_of(first.config) != _judge_of(task.config):
        raise RunError(
            f"--config {given}: its judge is not that of {first.subject.path}, so scores cannot be compared; name one "
            "judge for both with --judge NAME"
        )
    return replace(task, models={**task.models, "judge": first.models.get("judge", first.models["forward"])})


def _judge_of(config: Config) -> tuple[Any, ...]:
    """Who gives the marks of a config: the name, the endpoint with its settings, and words of one's own."""
    name = config.models.judge or config.models.forward
    where = config.models.endpoint(name)
    words = {file: text for file, text in _own_words(config).items() if file.startswith(("judge", "rubric"))}
    return name, where.base_url, where.api, where.config, words


def _of_config(subject: Subject, given: str, *models: str | None) -> Subject:
    """The prompt of another config, for which the subject's guards, seed and clusters count, too.

    Raises:
        RunError: there is none, or its scores would be of another metric or other right answers.
    """
    if not expanded(given).exists():
        raise RunError(f"--config {missing_file(expanded(given), is_config)}")
    if (found := prompt_of_config(Path(given), *models)) is None:
        raise RunError(f"--config {given}: there is no config; a run folder is named by --prompt, for its best prompt")
    own = subject.config
    for table, one, two in (
        ("[metric]", own.metric, found.config.metric),
        ("[data] target", own.data.target, found.config.data.target),
    ):
        if one != two:
            raise RunError(f"--config {given}: its {table} is not that of {subject.path}, so scores cannot be compared")
    data = found.config.data.model_copy(update={"clusters": own.data.clusters})
    shared = {"data": data, "guards": own.guards, "seed": own.seed}
    return replace(found, config=found.config.model_copy(update=shared))


def results(
    arms: Sequence[Arm], limits: Budget, *, cache: Cache | None, quiet: bool, beside: bool = True
) -> Iterator[Result | Failure]:
    """Evaluate the arms, within limits that they share; one by one, it ends behind the one that was ended early.

    They go on at once where no limit could end some that began first, nothing is kept in a run folder, which one at a
    time writes, and no code of the user's own is run, which may not be made for several threads.

    An error ends the arm alone, as another model may be at another endpoint; that of the first arm ends all, as nothing
    can stand beside it then.

    Args:
        arms: what was checked.
        limits: of all of them together.
        cache: where answers are kept for others, too, and looked for first, if anywhere.
        quiet: show nothing.
        beside: whether they stand beside the first one; if not, an error of that one ends it alone, too.
    """
    names = {arm.number: name_of(arm, arms) for arm in arms}
    limited = any(limit is not None for limit in (limits.dollars, limits.calls, limits.tokens))
    with budget(dollars=limits.dollars, calls=limits.calls, tokens=limits.tokens):
        if not (limited or any(arm.task.keeps or arm.task.config.own_code() for arm in arms)):
            sizes = [(names[arm.number], len(arm.task.dataset) * arm.task.repeats) for arm in arms]
            with score_bars_for(sizes, quiet) as scores:
                works = [
                    functools.partial(_result, arm, cache, quiet, names[arm.number], beside, on_score)
                    for arm, on_score in zip(arms, scores)
                ]
                yield from at_once(works, len(works))
            return
        for arm in arms:
            go_home(arm.task.config.folder)
            found = _result(arm, cache, quiet, names[arm.number], beside)
            yield found
            if isinstance(found, Result) and found.done.ended is not None:
                return


def _result(
    arm: Arm, cache: Cache | None, quiet: bool, name: str, beside: bool, on_score: OnScore | None = None
) -> Result | Failure:
    """What comes of an arm; as for `results`.

    Args:
        arm: what was checked.
        cache: where answers are kept.
        quiet: show nothing.
        name: what it is called.
        beside: whether others stand beside the first arm.
        on_score: what shows the progress among that of all arms; None for a bar of this one's.

    Raises:
        Exception: what ended the first arm, where others stand beside it.
    """
    config = arm.task.config.model_copy(update={"budget": Budget()})
    subject = arm.task.subject
    if subject.run is not None and arm.number > 1:  # the one before was a look at its test split, too
        subject = replace(subject, run=read_run(subject.run.path))
    task = replace(arm.task, config=config, subject=subject)
    try:
        done = carried_out(task, cache=cache, quiet=quiet, name=name, on_score=on_score)
    except Exception as error:
        if arm.number == 1 and beside:
            raise
        return Failure(arm, error)
    if arm.task.keeps:
        append_evaluation(subject.path, {**run_data.ended(done.entry), **measured(done.evaluation)})
        if done.kept is not None and done.ended is None:
            (keep_for_missing if done.lacking else done_with)(done.kept)
    return Result(arm, done)


def ended_early(found: Sequence[Result]) -> Exception | None:
    """What ended one of them early, and with it the whole: the budget, or Ctrl-C; None where all came to their end."""
    return next((each.done.ended for each in found if each.done.ended is not None), None)


def beside_the_first(found: Sequence[Result]) -> list[Result]:
    """The same with the comparisons: each with the first, corrected for their number (max-T), and what changed.

    Of those that were ended early the examples count that they answered: the others are not lost, but were not come to.
    """
    scored = [each.evaluation for each in found[1:] if each.evaluation is not None]
    first = found[0].evaluation if found else None

    def beside(each: Result) -> Result:
        if first is None or each.evaluation is None:
            return each
        every = [first, each.evaluation, *scored]
        if early := [one.done.evaluation for one in (found[0], each) if one.done.ended is not None]:
            scores = [evaluation.scores for evaluation in early if evaluation is not None]
            answered = [name for name, *own in zip(first.ids, *scores) if None not in own]
            every = [only(evaluation, answered) for evaluation in every]
        candidates = every[2:] if len(scored) > 1 else ()
        return replace(
            each,
            comparison=compared(every[0], every[1], candidates=candidates),
            changed=changed(every[0], every[1]),
        )

    return [beside(each) if n else each for n, each in enumerate(found)]


def _worked(run: Run | None, task: Task) -> str:
    """What of the examples of a task a run worked with, in words; "" where there is no run, or nothing."""
    kept = {} if run is None else run.by_command or {}
    split, rows = run_data.split_of(kept, task.dataset), run_data.rows_of_splits(kept, task.dataset)
    return shared({"split": split, "rows": rows}, ("train", "val"), "its")


def _with(subject: Subject, given: str) -> tuple[Subject, Run | None]:
    """The subject with another prompt, of a file, or the best one of a run; and that run.

    Raises:
        RunError: there is none, or it is of another program.
    """
    folder = Path(given)
    if not (folder / "events.jsonl").is_file() and not is_folds(folder):
        if folder.is_dir():
            raise RunError(f"--prompt {given}: this folder is no run; name a file that holds a prompt, or a run folder")
        return with_files(subject, [given]), None
    found = prompt_of_run(folder, folder, "best")  # any file in the place of the data, as none of it is read
    own = list(trained_texts(subject.config))
    if other := [name for name in found.texts if name not in own]:
        raise RunError(
            f"--prompt {given}: that run trained {other[0]!r}, and the program of {subject.path} has "
            f"{', '.join(own) or 'no such text'}{suggest(other[0], own)}"
        )
    return replace(subject, prompt=in_files([given]), texts={**subject.texts, **found.texts}), found.run


def name_of(arm: Arm, arms: Sequence[Arm]) -> str:
    """What an arm is called: its prompt, and its model where there are several."""
    config = arm.config
    if arm.task.subject.prompt == "config" and any(each.config for each in arms):
        config = config or str(arm.task.subject.path)
    prompt = f"the prompt of {config}" if config else called(arm.task.subject)
    return prompt if len({each.model for each in arms}) == 1 else f"{prompt} with {arm.model}"


def size_of(arms: Sequence[Arm]) -> str:
    """How much there is to compare, in words."""
    prompts = len({(arm.config, *arm.texts.items()) for arm in arms})
    models = len({arm.model for arm in arms})
    found = [plural(prompts, "prompt")] if prompts > 1 or models == 1 else []
    return " with ".join([*found, *([plural(models, "model")] if models > 1 else [])])
