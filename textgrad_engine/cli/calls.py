"""``textgrad-engine calls``: what a run asked its models, and what they answered."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Annotated, Any, get_args

import typer

from textgrad_engine.cli import completion
from textgrad_engine.cli.options import Json, RunPath
from textgrad_engine.cli.output import at_terminal, checking, colors, command, width, write, write_exactly, write_json
from textgrad_engine.errors import RunError
from textgrad_engine.llm.request import Purpose
from textgrad_engine.report.calls import Call, Wanted, call_in_words, render_calls
from textgrad_engine.report.printing import harmless
from textgrad_engine.report.terminal import complain
from textgrad_engine.report.words import plural
from textgrad_engine.store.answers_on_record import answer_of
from textgrad_engine.store.folds import is_folds
from textgrad_engine.store.paid import Paid, paid_for
from textgrad_engine.store.reader import Run, read_run

MOST = 40
"""So many calls are listed, where nobody says otherwise."""

PURPOSES: tuple[str, ...] = get_args(Purpose)


@command
def calls(
    run: RunPath,
    number: Annotated[
        int | None,
        typer.Argument(metavar="N", min=1, help="Show call N in full: the request and its answer.", show_default=False),
    ] = None,
    purpose: Annotated[
        str | None,
        typer.Option(
            "--purpose",
            metavar="PURPOSE",
            help=f"List the calls with this purpose: {', '.join(PURPOSES)}.",
            autocompletion=completion.purposes,
        ),
    ] = None,
    step: Annotated[int | None, typer.Option("--step", metavar="N", min=0, help="List the calls of step N.")] = None,
    example: Annotated[
        str | None, typer.Option("--example", metavar="ID", help="List the calls about this example.")
    ] = None,
    most: Annotated[int, typer.Option("--most", metavar="N", min=1, help="List at most N calls.")] = MOST,
    as_json: Json = False,
) -> None:
    """List what a run asked its models, or show one request with its answer, as it was sent.

    The list is in the order of completions.jsonl in the run folder; successive calls of one example are in the order in
    which they were asked. To see why a critic said what it said: `calls RUN --purpose backward`, then `calls RUN N`.
    The output may contain anything that is in the data.
    """
    with checking():
        found, wanted = _checked(run, number, purpose, step, example), Wanted(purpose, step, example)
        shown: list[Call] = []
        matching = 0  # one at a time, as a record may be larger than the memory
        every = enumerate((each for each in paid_for(found.path) if not each.again), 1)
        matches = ((nth, paid) for nth, paid in every if wanted.has(paid.entry))
        for nth, paid in matches if number is not None else _as_asked(matches):
            matching += 1
            if nth == number or (number is None and matching <= most):
                answer_of(found.path, paid, source=paid.source)  # whose fields are what they should be
                shown.append(Call(nth, paid.entry))
        if number is not None and not shown:
            raise RunError(f"{run}: there is no call {number}, as {plural(matching, 'call')} are on record")
    if number is not None:
        (one,) = shown
        if as_json:
            write_json({"run": str(run), "call": one.number, **one.entry})
        else:
            text = call_in_words(one, matching)
            write_exactly(harmless(text) if at_terminal() else text)
    elif as_json:
        listed = [{"call": each.number, **{key: each.entry.get(key) for key in _LISTED}} for each in shown]
        write_json({"run": str(run), "matching": matching, "calls": listed})
    elif shown:
        write("\n" + render_calls(shown, matching - len(shown), width=width(), color=colors()))
    else:
        complain(f"{run}: no such call is on record")


def _as_asked(numbered: Iterable[tuple[int, Paid]]) -> Iterator[tuple[int, Paid]]:
    """Calls in their order, but those of one example that stand together by when they were asked: an agent's turns."""

    def of_what(each: tuple[int, Paid]) -> list[Any]:
        return [each[1].entry.get(key) for key in ("phase", "purpose", "example")]

    for _, group in itertools.groupby(numbered, of_what):
        yield from sorted(group, key=lambda each: str(each[1].entry.get("time", "")))


_LISTED = (
    *("step", "phase_name", "purpose", "example", "model"),
    *("usage", "latency", "attempts", "text", "tool_calls", "error"),
)
"""What a list says of each call."""


def _checked(path: Path, number: int | None, purpose: str | None, step: int | None, example: str | None) -> Run:
    """The run.

    Raises:
        RunError: it is several, or the options do not go together.
    """
    if purpose is not None and purpose not in PURPOSES:
        raise RunError(f"--purpose {purpose}: it is one of {', '.join(PURPOSES)}")
    if number is not None and (purpose, step, example) != (None, None, None):
        raise RunError("N names one call, and --purpose, --step and --example list several: give the one or the others")
    if is_folds(path):
        raise RunError(f"{path}: these are several runs; name one of them, such as {path / 'final'}")
    return read_run(path)
