"""`Trainer`: the loop of forward, backward and step, with validation, and the best texts kept."""

from __future__ import annotations

import contextlib
import logging
import operator
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from textgrad_engine.autograd import Variable
from textgrad_engine.callables import signature_of
from textgrad_engine.checks import above, at_least, check, finite
from textgrad_engine.data import DataLoader, Examples
from textgrad_engine.dispatch import waits
from textgrad_engine.errors import RunError
from textgrad_engine.keywords import names_told
from textgrad_engine.llm.budget import charge
from textgrad_engine.nn import Module
from textgrad_engine.nn.trained import trained
from textgrad_engine.ops.images import MOST_IMAGES, checked_images
from textgrad_engine.optim import Optimizer
from textgrad_engine.optim.schedules import unstepped
from textgrad_engine.optim.search.searcher import Searcher
from textgrad_engine.optim.texts import write_texts
from textgrad_engine.train.events import Callback
from textgrad_engine.train.folders import run_folder
from textgrad_engine.train.guards import Guards
from textgrad_engine.train.interrupt import finishing_on_interrupt, interruptible
from textgrad_engine.train.other_libraries import ELSEWHERE
from textgrad_engine.train.result import TrainResult
from textgrad_engine.train.search import SearchRun
from textgrad_engine.train.step import StepRun
from textgrad_engine.train.trainer_checks import check_given, checked_callbacks, missing_told, sets_of
from textgrad_engine.user_paths import expanded

_log = logging.getLogger("textgrad_engine.train.trainer")


class Trainer:
    r"""Trains the parameters of a program on examples, and keeps the texts that do best on the validation set.

    Each step is raced against the best texts, without those of its edits that harm validation examples
    (`docs/search.md`). If it does not win, it is taken back.

    Args:
        max_epochs: how often to go over the training set; a search (`optim.PatchSearch` and its like) draws its own
            minibatches and ends by itself.
        batch_size: examples in a minibatch, when `fit` gets a dataset; a DataLoader has its own.
        max_steps: stop after so many steps (of a search: decided proposals); None for no limit but `max_epochs`.
        max_minutes: end the search in time for validation and test to fit into so many minutes, as far as that can be
            predicted; calls in flight are waited for. Controls, and each run of a cross-validation, have as many
            minutes of their own. How much is done may differ from run to run.
        patience: stop after so many steps in a row that were not kept, but not within a round of texts that is paid
            for as a whole (`optim.BeamSearch`, `optim.OPRO`); None goes on to the end.
        critic: whether a critic says what the texts lack if an answer is wrong. Without one the optimizer reads the
            wrong answers itself (`ops.critic`): no feedback calls, and longer requests to the optimizer.
        feedback_batch_size: how many examples may share one feedback call; a search has its own setting.
        feedback_images: the most images in one request to the critic; 0 for a critic that reads none. See
            `ops.feedback_images`.
        target: the field that holds an example's target.
        notes: the field with people's notes on a training example, such as why its answer is right; it may be missing.
            If an answer is not right, the critic reads them (without a critic, the optimizer). The program never does
            (`ops.notes`).
        seed: of the order of the examples.
        concurrency: at most so many examples at once; None leaves it to the models' own limits. With 1 a program that
            waits is run in one thread.
        guards: what no new text may break, however much better it is on the whole.
        clusters: the field that says which examples belong together, such as the document that several questions are
            about; races, intervals and verdicts then do not take them for independent.
        tokens_weight: what 1000 tokens of the trained texts cost, in units of the score. Races and means are decided by
            the score less that; the scores that are reported stay plain.
        latency_weight: what a second of an example's forward calls costs, in the same way. With 0 time decides nothing,
            but is reported and counts on the front; with None it is ignored. Times are noisy, and with a weight above 0
            two runs are equal only where the models' latencies are: `train.latency` says why.
        controls: after the run, also search by rewrites without feedback and by random edits, each with at most as many
            calls as the optimizer had, and score the results on the test set (`TrainResult.controls`). This about
            triples the calls. A budget reserves for each as much as the search may use; if that is too little, none is
            run, and the result says so.
        run_dir: write a run folder there (texts, config, events, completions); it must be new or empty.
        resume: go on with the run in `run_dir` that was killed, interrupted, or ended by a budget or an error: `fit`
            starts over and replays what was paid for. Program, data and settings must be the same: if the first
            requests differ, the run is refused before it pays. ``"anyway"`` goes on all the same: what has changed or
            is gone is paid for, and a finished run is taken as it is. If there is no run yet, one is started.
        callbacks: told about every event (`train.events`); one may end the training (`train.StopTraining`).

    Raises:
        ValueError: a number is out of range, or there is no `run_dir` to resume.
        TypeError: a callback has no `on_event`.

    Example:
        >>> from textgrad_engine import nn, optim, use_models
        >>> from textgrad_engine.testing import FunctionModel
        >>> def model(request):
        ...     if request.purpose == "backward":
        ...         return {"case_1": {"system": "Say to shout."}}
        ...     if request.purpose == "optimizer":
        ...         edit = {"op": "add", "line": 1, "text": "Shout.", "reason": "asked for", "feedback": [1]}
        ...         return {"edits": [edit]}
        ...     text = request.messages[-1].text
        ...     return text.upper() if "Shout" in request.messages[0].text else text
        >>> system = nn.Parameter("Repeat.", role="system prompt")
        >>> program = nn.ChatCompletion("{word}", system=system)
        >>> rows = [{"word": word, "target": word.upper()} for word in ("one", "two", "three", "four")]
        >>> with use_models(forward=FunctionModel(model)):
        ...     result = Trainer().fit(program, nn.ExactMatch(), optim.TGD(program.parameters()), rows[:2], rows[2:])
        >>> result.best["system"], result.best_val.mean
        ('Repeat.\nShout.', 1.0)
    """

    @names_told
    def __init__(
        self,
        max_epochs: int = 1,
        *,
        batch_size: int = 32,
        max_steps: int | None = None,
        max_minutes: float | None = None,
        patience: int | None = None,
        critic: bool = True,
        feedback_batch_size: int = 1,
        feedback_images: int = MOST_IMAGES,
        target: str = "target",
        notes: str | None = None,
        seed: int = 0,
        concurrency: int | None = None,
        guards: Guards | None = None,
        clusters: str | None = None,
        tokens_weight: float = 0.0,
        latency_weight: float | None = None,
        controls: bool = False,
        run_dir: str | Path | None = None,
        resume: bool | Literal["anyway"] = False,
        callbacks: Iterable[Callback] = (),
    ) -> None:
        steps = at_least(1, "max_epochs", "max_steps", "patience")
        sizes = at_least(1, "batch_size", "feedback_batch_size", "concurrency")
        rest = at_least(0, "tokens_weight", "latency_weight")
        self.callbacks = checked_callbacks(callbacks)
        self.feedback_images = checked_images(feedback_images, "feedback_images")
        numbers = finite("tokens_weight", "latency_weight", "max_minutes")
        check(Trainer.__init__, locals(), steps, sizes, rest, above(0, "max_minutes"), numbers)
        self.max_epochs = max_epochs
        self.batch_size = batch_size
        self.max_steps = max_steps
        self.max_minutes = max_minutes
        self.patience = patience
        self.critic = critic
        self.feedback_batch_size = feedback_batch_size
        self.target = target
        self.notes = notes
        self.seed = operator.index(seed)
        self.concurrency = concurrency
        self.guards = guards
        self.clusters = clusters
        self.latency_weight = latency_weight
        self.tokens_weight = tokens_weight
        self.controls = controls
        if resume and run_dir is None:
            raise ValueError("resume=True takes up the run in a run folder; name it with run_dir=...")
        self.run_dir = None if run_dir is None else expanded(run_dir)
        self.resume = resume

    if not TYPE_CHECKING:  # for type checkers there are no other attributes

        def __getattr__(self, name: str) -> Any:
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}{ELSEWHERE.get(name, '')}")

    def __repr__(self) -> str:
        usual = {name: setting.default for name, setting in signature_of(Trainer).parameters.items()}
        settings = [(name, getattr(self, name), default) for name, default in usual.items()]
        given = [f"{name}={value!r}" for name, value, default in settings if value != default]
        return f"{type(self).__name__}({', '.join(given)})"

    @waits("await trainer.afit(...)", always="A run waits for its answers")
    @missing_told
    @names_told
    def fit(
        self,
        program: Module,
        loss: Callable[..., Variable],
        optimizer: Optimizer,
        train: Examples[Mapping[str, Any]] | DataLoader[Any],
        val: Examples[Mapping[str, Any]],
        test: Examples[Mapping[str, Any]] | None = None,
    ) -> TrainResult:
        """Train, validate after each change, and test the seed and the best texts once at the end.

        A first Ctrl-C stops sending, waits for answers in flight, and returns the result so far; so does a spent
        budget. The program holds the best texts afterwards.

        Args:
            program: the module to train; it returns what `evaluate` describes.
            loss: called with the prediction and the example's target; its data must be a number (higher is better).
            optimizer: of the program's parameters.
            train: the training examples, or a loader of them.
            val: selects the best texts.
            test: used once, at the end, for a score that selection has not flattered.

        Raises:
            DataError: a set is empty, an example lacks a field, has a list for a slot or shows the program its target,
                one that the guards name is not there, or all of a set are one cluster; before anything is asked.
            ValueError: the program has nothing to train, the optimizer trains what is not the program's, asks no
                critic, which `critic=False` would take from it, or searches by several metrics, where the loss is one;
                or a callback has unfrozen one of its texts on the way.
            TypeError: a set is no sequence of dicts, the loss gives no score (a TextLoss), or what is given is no
                program, loss or optimizer.
            RunError: the run folder is in use; or the run in it is another one, and cannot be resumed or played back.
            ModelError: the models cannot be asked at all (key, model name, price).
        """
        loader, validated, tested = sets_of(self, train, val, test, call="fit")
        check_given(self, program, loss, optimizer, loader.dataset, validated, tested)
        if not self.callbacks and self.max_steps != 1:  # a callback may step a schedule, and one step needs none
            _tell_unstepped(optimizer)
        callbacks = [each.for_run() if hasattr(each, "for_run") else each for each in self.callbacks]
        if self.run_dir is not None:
            found = run_folder(self.run_dir, resume=bool(self.resume), anyway=self.resume == "anyway")
            if isinstance(found, TrainResult):
                return _taken(found, program)
            callbacks.insert(0, found)
        kind = SearchRun if isinstance(optimizer, Searcher) else StepRun
        with finishing_on_interrupt(), contextlib.ExitStack() as stack:
            for callback in callbacks:
                if (end := getattr(callback, "on_end", None)) is not None:
                    stack.callback(end)
            stack.enter_context(trained(program))
            return kind(self, program, loss, optimizer, loader, validated, tested, callbacks).run()

    async def afit(self, *args: Any, **kwargs: Any) -> TrainResult:
        """`fit` for code that has an event loop of its own; the loop is not blocked.

        When the wait for it is cancelled, as Ctrl-C does in `asyncio.run`, nothing more is sent. The wait is over when
        the answers in flight are there (ten seconds at most) and the result so far is in the run folder; the program
        holds the best texts then. `aevaluate` is the twin of `evaluate`.
        """
        return await interruptible(lambda: self.fit(*args, **kwargs))


def _tell_unstepped(optimizer: Optimizer) -> None:
    """Say which schedules would set the optimizer's ``max_edits`` no more, as nobody steps them."""
    for name in unstepped(optimizer):
        _log.warning(
            "A %s was made for the optimizer and is not attached, so every step of this run may make %d edits; "
            "call its attach() before fit, or its step() in a callback.",
            name,
            optimizer.param_groups[0]["max_edits"],
        )


def _taken(result: TrainResult, program: Module) -> TrainResult:
    """The result of a finished run, with its best texts in the program, and what it cost in the budgets around it."""
    parameters = dict(program.named_parameters())
    if missing := [name for name in result.best if name not in parameters]:
        raise RunError(
            f"the run is finished, and the program has no parameter {missing[0]!r}, which it trained; put it back, or "
            "name another run_dir, for a new run"
        )
    charge(result.total)
    write_texts([parameters[name] for name in result.best], tuple(result.best.values()))
    return result
