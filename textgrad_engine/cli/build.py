"""From a checked config to what the library runs: program, score, optimizer, models and limits."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

from textgrad_engine import templates
from textgrad_engine.autograd import Variable, no_grad
from textgrad_engine.cli.config import Config
from textgrad_engine.cli.config_errors import table_of
from textgrad_engine.cli.contracts import check_shared, make_contracts
from textgrad_engine.cli.optimizers import OwnSettings
from textgrad_engine.cli.settings import Metric as ConfigMetric
from textgrad_engine.cli.toml_lines import Keys
from textgrad_engine.errors import ConfigError, DataError
from textgrad_engine.llm.account import Budget
from textgrad_engine.llm.budget import budget
from textgrad_engine.llm.cache import Cache, open_cache
from textgrad_engine.llm.cached import caching
from textgrad_engine.llm.model import Model
from textgrad_engine.llm.roles import use_models
from textgrad_engine.nn import (
    ChatCompletion,
    ExactMatch,
    JSONMatch,
    Judge,
    Metric,
    Module,
    OnField,
    OnMatch,
    Parameter,
    Rubric,
    Weighted,
)
from textgrad_engine.nn.metric_functions import forward_of
from textgrad_engine.nn.scores import scores_between
from textgrad_engine.ops.criteria import criteria_of
from textgrad_engine.ops.images import MOST_IMAGES
from textgrad_engine.ops.tools import MAX_TURNS
from textgrad_engine.optim import Optimizer
from textgrad_engine.train import Guards, Trainer
from textgrad_engine.train.events import Callback
from textgrad_engine.train.fields import refuse_unnamed
from textgrad_engine.train.guarded import Floor
from textgrad_engine.train.guards import guarded_by
from textgrad_engine.train.metrics_of import parts_of


def make_program(config: Config) -> Module:
    """The program: the class that the config names, or one call with its two prompts, the system prompt trained.

    Raises:
        ConfigError: the class gives no `nn.Module`, or one that names no column.
    """
    made = config.program_class()
    if made is None:
        assert config.program.user is not None
        system = config.system_text()
        assert system is not None
        chat = ChatCompletion(
            config.program.user,
            system=Parameter(system, role="system prompt"),
            response_format=config.response_format(),
            tools=config.offered(),
            max_turns=config.program.max_turns or MAX_TURNS,
        )
        return _begun_with(chat, config.own_texts)
    program = made()
    if not isinstance(program, Module):
        config.fail(f"[program] class = {config.program.class_!r} is no nn.Module; derive it from one", *_CLASS)
    try:
        refuse_unnamed(program)
    except TypeError as error:
        config.fail(f"[program] class = {config.program.class_!r}: {error}", *_CLASS)
    return _begun_with(program, config.own_texts)


def _begun_with(program: Module, texts: Mapping[str, str]) -> Module:
    parameters = dict(program.named_parameters())
    with no_grad():
        for name, text in texts.items():
            parameters[name].data = text
    return program


def make_metric(config: Config) -> Callable[..., Variable]:
    """What scores an answer: one loss, or one score from 0 to 1 of several."""
    found = config.metrics()
    if len(found) == 1:
        return _loss_of(config, *found[0])
    losses: dict[str, Callable[..., Variable]] = {}
    weights: dict[str, float] = {}
    targets: dict[str, str] = {}
    titles = {metric.title for _, metric in found}
    for where, metric in found:
        name, number = metric.title, 1
        while name in losses or (number > 1 and name in titles):  # a field may be called "a (2)"
            number += 1
            name = f"{metric.title} ({number})"
        losses[name] = _loss_of(config, where, metric, scale=(0.0, 1.0))
        weights[name] = 1.0 if metric.weight is None else metric.weight
        if (column := config.target_of(where, metric)) is not None:
            targets[name] = column
    try:
        return Weighted(losses, weights, targets if config.has_own_targets else None)
    except ValueError as error:
        config.fail(str(error), "metric")


def _loss_of(
    config: Config, where: Keys, metric: ConfigMetric, scale: tuple[float, float] | None = None
) -> Callable[..., Variable]:
    """The loss of one metric.

    Args:
        config: the config.
        where: the keys that lead to the metric's table.
        metric: the metric.
        scale: that of a function which states none.
    """
    function = config.metric_function(where, metric)
    images = MOST_IMAGES if metric.images is None else metric.images
    stated = None if metric.scale is None else (metric.scale[0], metric.scale[1])
    loss: Callable[..., Variable] = ExactMatch()
    if function is not None:
        own = forward_of(function) is not function
        loss = function if own else Metric(function, metric.purpose or "", scale=stated or scale)
    elif metric.kind == "json_match":
        loss = JSONMatch(any_order=bool(metric.any_order), graded=bool(metric.graded))
    elif metric.kind == "rubric":
        loss = Rubric(metric.rubric, images=images)
    elif metric.kind == "judge":
        loss = Judge(metric.instructions or "", scale=stated or (0, 1), images=images)
    if metric.pattern is not None:
        stands = "" if metric.path or metric.default is None else str(metric.default)
        loss = OnMatch(loss, metric.pattern, default=stands)
    return OnField(loss, *metric.path, default=metric.default) if metric.path else loss


def make_guards(
    config: Config,
    val: Sequence[Mapping[str, Any]],
    train: Sequence[Mapping[str, Any]] = (),
    test: Sequence[Mapping[str, Any]] | None = None,
) -> Guards | None:
    """What no new text may break; None when the config names nothing.

    Args:
        config: names examples and slices.
        val: the validation examples.
        train: the training examples, where somebody may have taken what is guarded from them.
        test: the test examples, likewise.

    Raises:
        ConfigError: there is no such example or slice.
    """
    for number, name in enumerate(config.guards.never_break):
        _check_guards(config, Guards(never_break=(name,)), (val, train, test), "never_break", number)
    if config.guards.never_break and config.guards.passing is not None:
        guards = Guards(tuple(config.guards.never_break), passing=config.guards.passing)
        _check_guards(config, guards, (val, train, test), "passing")
    for (column, value), floor in _slice_floors(config).items():
        _check_guards(config, Guards(floors={(column, value): floor}), (val, train, test), "floors", column, value)
    metrics = _metric_floors(config, val)
    never_break, floors = tuple(config.guards.never_break), _slice_floors(config)
    if not (never_break or floors or metrics):
        return None
    if not never_break:
        return Guards((), floors, metrics)
    return Guards(never_break, floors, metrics, config.guards.reruns, config.guards.passing)


def make_floors(config: Config, rows: Sequence[Mapping[str, Any]]) -> tuple[Floor, ...]:
    """The floors that a config names, on any examples; none under a slice that has none there.

    Args:
        config: names slices and metrics.
        rows: the examples.
    """
    floors, metrics, loss = _slice_floors(config), _metric_floors(config, None), make_metric(config)
    if not floors and not metrics:
        return ()
    return Guards(floors=floors, metrics=metrics).floors_on(rows, scores_between(loss), parts_of(loss))


def _slice_floors(config: Config) -> dict[tuple[str, Any], float]:
    """The floors of [guards], by column and value."""
    return {(column, value): floor for column, own in config.guards.floors.items() for value, floor in own.items()}


def _metric_floors(config: Config, val: Sequence[Mapping[str, Any]] | None) -> dict[str, float]:
    """The floors of [[metric]] tables, by the metrics' names, and those under criteria, by theirs; checked on `val`."""
    loss, rubrics = make_metric(config), [metric for _, metric in config.metrics() if metric.floors]
    floors = {criteria_of(each.rubric)[place].name: floor for each in rubrics for place, floor in each.floors.items()}
    for (where, metric), name in zip(config.metrics(), loss.weights if isinstance(loss, Weighted) else ()):
        if metric.floor is not None:
            floors[name] = metric.floor
            try:
                if val is not None:
                    guarded_by(Guards(metrics={name: metric.floor}), val, loss)
            except DataError as error:
                config.fail(f"{table_of(where)} floor: {error}", *where, "floor")
    return floors


def _check_guards(
    config: Config,
    guards: Guards,
    sets: tuple[Sequence[Mapping[str, Any]], Sequence[Mapping[str, Any]], Sequence[Mapping[str, Any]] | None],
    *keys: str | int,
) -> None:
    val, train, test = sets
    try:
        guarded_by(guards, val, make_metric(config), train, test)
    except DataError as error:
        config.fail(f"[guards] {error}", "guards", *keys)


def make_optimizer(
    config: Config, program: Module, examples: Sequence[Mapping[str, Any]] = (), *, feedback: bool = True
) -> Optimizer:
    """The optimizer of the program's parameters.

    Args:
        config: what it says of the optimizer.
        program: what is trained.
        examples: the training examples, where the config forbids to copy from them.
        feedback: False withholds the feedback from it; in the place of a search it is then a `RandomSearch`.

    Raises:
        ConfigError: the program has nothing to train, or a contract cannot be used.
    """
    trained = {name: parameter for name, parameter in program.named_parameters() if parameter.requires_grad}
    if not trained:
        config.fail(
            f"[program] class = {config.program.class_!r} has nothing to train; make a prompt of it an nn.Parameter, "
            'such as self.system = nn.Parameter("...", role="system prompt")',
            *_CLASS,
        )
    settings = config.optimizer
    texts = {name: str(parameter.data) for name, parameter in trained.items()}
    contracts = make_contracts(config, texts, examples)
    check_shared(config, texts)
    make = settings.make if feedback else settings.control
    try:
        return make(settings.groups(trained, contracts), config.seed)
    except (TypeError, ValueError) as error:
        if not isinstance(settings, OwnSettings):
            raise
        config.fail(f"[optimizer] name = {settings.name!r}: {error}", "optimizer", "name")


def make_trainer(
    config: Config, guards: Guards | None, *, controls: bool, callbacks: Iterable[Callback] = ()
) -> Trainer:
    """The trainer, by the config's settings; one that is only looked at has all of them, too.

    Args:
        config: what it says of training and data.
        guards: by `make_guards`.
        controls: whether controls are run beside it.
        callbacks: told about the run.
    """
    settings = config.train
    return Trainer(
        max_epochs=settings.max_epochs,
        batch_size=settings.batch_size,
        max_steps=settings.max_steps,
        max_minutes=settings.max_minutes,
        patience=settings.patience,
        critic=settings.critic,
        feedback_batch_size=settings.feedback_batch_size,
        feedback_images=settings.feedback_images,
        target=config.data.target,
        notes=config.data.notes,
        seed=config.seed,
        guards=guards,
        clusters=config.data.clusters,
        tokens_weight=settings.tokens_weight or 0.0,
        latency_weight=settings.latency_weight,
        controls=controls,
        callbacks=callbacks,
    )


def make_cache(wanted: bool, without: str) -> Cache | None:
    """The user's cache, where it is wanted.

    Args:
        wanted: whether it is.
        without: how the command is given to do without, such as "with --no-cache".

    Raises:
        ConfigError: it cannot be made or written; that says both ways on.
    """
    try:
        return open_cache(None) if wanted else None
    except ConfigError as error:
        error.add_note(f"{without} nothing is kept on disk")
        raise


@contextlib.contextmanager
def surroundings(config: Config, roles: dict[str, Model], *, cache: Cache | None = None) -> Iterator[Budget]:
    """What a run or an evaluation happens in: the models, the hard limits, and the user's own prompts.

    Args:
        config: names limits and prompts.
        roles: the model of each role.
        cache: where answers are kept and looked for first, if anywhere.
    """
    limits = config.budget
    with contextlib.ExitStack() as stack:
        stack.enter_context(prompts_of(config))
        stack.enter_context(use_models(**roles))
        if cache is not None:
            stack.enter_context(caching(cache))
        yield stack.enter_context(budget(dollars=limits.dollars, calls=limits.calls, tokens=limits.tokens))


@contextlib.contextmanager
def prompts_of(config: Config) -> Iterator[None]:
    """Inside the block, the user's folder of prompts goes before the library's.

    Raises:
        TemplateError: a file in it has a name that the library does not use, or could not be filled.
    """
    folder: Any = contextlib.nullcontext()
    if config.prompts is not None:
        templates.check_prompts(config.file(config.prompts))
        folder = templates.use_prompts(config.file(config.prompts))
    with folder:
        yield


_CLASS = ("program", "class")
