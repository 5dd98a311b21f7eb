"""``textgrad-engine show``: print the report of a run again."""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated, Any

import typer

from textgrad_engine import report
from textgrad_engine.cli import completion, resume_words
from textgrad_engine.cli.folds_shown import show_folds
from textgrad_engine.cli.options import ByColumn, FrontNumber, Json, RunPath
from textgrad_engine.cli.output import (
    TOO_LOW,
    at_terminal,
    checking,
    colors,
    command,
    width,
    write,
    write_exactly,
    write_json,
)
from textgrad_engine.cli.run_shown import show_run
from textgrad_engine.errors import RunError
from textgrad_engine.report.printing import harmless
from textgrad_engine.report.terminal import complain
from textgrad_engine.report.unfinished import so_far
from textgrad_engine.store.folds import is_folds, read_folds
from textgrad_engine.store.reader import Run, read_run
from textgrad_engine.train.pooled import CrossValidation
from textgrad_engine.train.result import TrainResult
from textgrad_engine.train.standing import missed_in_words


@command
def show(
    run: RunPath,
    line: Annotated[
        int | None,
        typer.Option(
            "--line",
            metavar="N",
            min=1,
            help="Show where line N of the best text comes from: feedback, examples, the race that accepted it, "
            "ablations. For a line that was removed, see --step.",
        ),
    ] = None,
    step: Annotated[
        int | None,
        typer.Option(
            "--step",
            metavar="N",
            min=1,
            help="Show what step N did, with the lines that it removed: feedback, examples, the race that decided, "
            "ablations. The report names the step of each line that was added or removed.",
        ),
    ] = None,
    parameter: Annotated[
        str | None,
        typer.Option(
            "--parameter",
            metavar="NAME",
            help="Which text, if several were trained.",
            autocompletion=completion.parameters,
        ),
    ] = None,
    by: ByColumn = None,
    examples: Annotated[
        int | None,
        typer.Option(
            "--examples",
            metavar="N",
            min=1,
            help="Show N validation examples without the best score, with the expected answer and that of both "
            "prompts. Those that the best prompt made worse come first.",
        ),
    ] = None,
    doubtful: Annotated[
        int | None,
        typer.Option(
            "--doubtful",
            metavar="N",
            min=1,
            help="Show N training and validation examples on which no prompt was right and most gave the same other "
            "answer: their right answer may be wrong.",
        ),
    ] = None,
    front: FrontNumber = None,
    val: Annotated[
        bool,
        typer.Option(
            "--val", help="With --by: use the validation examples, which the floors under [guards] are about."
        ),
    ] = False,
    exit_code: Annotated[
        bool,
        typer.Option(
            "--exit-code",
            help="End with exit code 4 unless the best prompt was shown to be better on the test examples, and "
            "reaches the floors of the guards there: a check for scripts.",
        ),
    ] = False,
    as_json: Json = False,
) -> None:
    """Print the report of a run again. For a run that was killed or ended with an error, print what is known of it."""
    with checking():
        if exit_code and any(each is not None for each in (line, step, by, examples, doubtful, front)):
            raise RunError("--exit-code goes by the verdict of the report, so leave out what asks for something else")
        asked = _Asked(line, step, parameter, by, examples, doubtful, front, val)
        say = _what_says_it(run, asked, as_json=as_json)
        lacking = _lacking(run) if exit_code else ""
    say()
    if lacking:
        complain(f"--exit-code: {lacking}")
        raise typer.Exit(TOO_LOW)


def _lacking(path: Path) -> str:
    """Why the best prompt of a run, or of folds, is not to be taken over; "" where it is better, and does no harm."""
    found = read_folds(path).found if is_folds(path) else read_run(path).result
    floors = () if found is None else [each for each in found.floors if each.split == "test"]
    return "; ".join(filter(None, [_unproven(found), missed_in_words(floors)]))


def _unproven(found: TrainResult | CrossValidation | None) -> str:
    """Why nothing shows the best prompt to be better; "" where that was shown."""
    if isinstance(found, TrainResult) and found.best == found.seed:
        return "the seed prompt was kept"
    if isinstance(found, TrainResult) and found.compared_on == "val":
        return "the verdict is of the validation set, which chose the prompt"
    comparison = None if found is None else found.comparison
    if comparison is None:
        return "there is no verdict, as the test set was not run with both prompts"
    return "" if comparison.verdict == "better" else f'the verdict is "{comparison.verdict}"'


@dataclass(frozen=True)
class _Asked:
    """What of a run is asked for, by the options of `show`."""

    line: int | None
    step: int | None
    parameter: str | None
    by: str | None
    examples: int | None
    doubtful: int | None
    front: int | None
    val: bool

    @property
    def explains(self) -> bool:
        """Whether it is asked where something comes from."""
        return self.line is not None or self.step is not None

    def check(self) -> None:
        """Check that the options go together.

        Raises:
            RunError: they do not.
        """
        if self.line is not None and self.step is not None:
            raise RunError("--line N explains a line and --step N a step: give one of them")
        if self.parameter is not None and not self.explains and self.front is None:
            raise RunError("--parameter says which text is asked about, so it needs --line N, --step N or --front N")
        if self.val and self.by is None:
            raise RunError("--val says which examples --by is about, so it needs --by COLUMN")
        if [self.by, self.examples, self.doubtful, self.front, self.line or self.step].count(None) < 4:
            raise RunError(
                "--by, --examples, --doubtful, --front, --line and --step are questions of their own: give one of them"
            )


def _what_says_it(path: Path, asked: _Asked, *, as_json: bool) -> Callable[[], None]:
    """What prints that which is asked for.

    Raises:
        RunError: the options do not go together, or the folder has no such thing.
    """
    asked.check()
    if asked.doubtful is not None:
        return _of_doubtful(path, asked.doubtful, as_json=as_json)
    if asked.by is not None or asked.examples is not None:
        return _of_examples(path, asked.by, asked.examples or 0, val=asked.val, as_json=as_json)
    if is_folds(path):
        if asked.explains or asked.front is not None:
            what = "a line or step" if asked.explains else "a front"
            raise RunError(f"{path}: these are several runs, and {what} is of one; name {path / 'final'}")
        folds = read_folds(path)
        _ = folds.found  # or it is damaged
        return functools.partial(show_folds, folds, as_json=as_json)
    run = read_run(path)
    if asked.front is not None:
        return _of_front(run, asked.front, asked.parameter, as_json=as_json)
    if not asked.explains:
        return functools.partial(show_run, run, str(path), as_json=as_json)
    ended = resume_words.how_it_ended(run)
    if run.result is None and not run.seed:
        raise RunError(f"{path} has no lines and no steps, as the run {ended} before its texts were noted")
    body, shown = _explained(run.result or so_far(run), asked)
    if run.result is None:
        complain(f"note: {path} has no result, as the run {ended}, so this is what it did so far")
    if asked.step is not None:
        shown += f"\n  --step {asked.step} with `calls` lists what was asked in it.\n"
    return functools.partial(write_json, body) if as_json else functools.partial(write, shown)


def _of_examples(path: Path, by: str | None, most: int, *, val: bool, as_json: bool) -> Callable[[], None]:
    """What prints scores by a column, or else single examples."""
    # They read data and make programs, which takes longer than all else here.
    if by is not None:
        from textgrad_engine.cli import sliced

        slices = sliced.of_path(path, by, val=val)
        if as_json:
            return functools.partial(write_json, sliced.as_document(path, slices))
        return functools.partial(write, "\n" + sliced.in_words(path, slices))
    from textgrad_engine.cli import examples

    found = examples.of_path(path)
    if as_json:
        return functools.partial(write_json, examples.as_document(path, *found, most))
    return functools.partial(write, "\n" + examples.in_words(path, *found, most))


def _of_doubtful(path: Path, most: int, *, as_json: bool) -> Callable[[], None]:
    """What prints examples whose right answer may be wrong."""
    from textgrad_engine.cli import doubts  # it reads data, which takes longer than all else here

    found = doubts.of_path(path)
    if as_json:
        return functools.partial(write_json, doubts.as_document(path, found, most))
    return functools.partial(write, "\n" + doubts.in_words(path, found, most))


def _of_front(run: Run, number: int, parameter: str | None, *, as_json: bool) -> Callable[[], None]:
    """What prints a text of the front, as it is in a pipe; several ones below their names.

    Raises:
        RunError: there is none of that number, or no such parameter.
    """
    point = run.on_front(number)
    texts = {name: text for name, text in point.texts.items() if parameter in (None, name)}
    if not texts:
        known = ", ".join(point.texts)
        raise RunError(f"{run.path}: there is no text {parameter!r} on its front; it has {known}")
    if as_json:
        return functools.partial(write_json, {"run": str(run.path), "n": number, **asdict(point), "texts": texts})
    parts = [text if len(texts) == 1 else f"== {name}\n{text}" for name, text in texts.items()]
    whole = "\n\n".join(parts) + "\n"
    return functools.partial(write_exactly, harmless(whole) if at_terminal() else whole)


def _explained(result: TrainResult, asked: _Asked) -> tuple[dict[str, Any], str]:
    """Where a line comes from, or what a step did: for machines and for people."""
    if asked.line is not None:
        of_line = report.lineage_of(result, asked.line, asked.parameter)
        return report.lineage_as_json(of_line), report.render_line(of_line, width=width(), color=colors())
    assert asked.step is not None
    of_step = report.step_of(result, asked.step, asked.parameter)
    return report.step_as_json(of_step), report.render_step(of_step, width=width(), color=colors())
