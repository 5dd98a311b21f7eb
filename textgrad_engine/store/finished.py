"""A run that is finished, given again: it is played back in full, and its folder stays as it is."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from contextlib import AbstractContextManager
from dataclasses import asdict, replace
from typing import Any

from pydantic import SecretStr

from textgrad_engine.errors import RunError
from textgrad_engine.llm.playback import Playback
from textgrad_engine.llm.redact import redacted, secrets_named
from textgrad_engine.llm.taped import playing
from textgrad_engine.store.answers_on_record import answer_of, in_order, phase_of, tools_of, when
from textgrad_engine.store.cut import time_is_up
from textgrad_engine.store.files import read_lines
from textgrad_engine.store.lock import check_unlocked
from textgrad_engine.store.paid import OnRecord, Paid, paid_for
from textgrad_engine.store.reader import Run
from textgrad_engine.store.records import dumps, event_from_json, result_to_json
from textgrad_engine.train import TrainResult
from textgrad_engine.train.events import CallEnded, Event, RunStarted, current_phase
from textgrad_engine.train.settings import Setting, differing

_NOT_COMPARED = frozenset(
    {"time", "latency", "seconds", "openings", "predictions", "parts", "contents", "handicap"}
    | {"why", "idle", "terms", "floors", "problem", "problems", "lost", "unspent", "doubtful", "test_usage"}
    | {"comparison"}
)
"""Times; looks at the test set, as those of before count; what a program said: objects in it may look otherwise in
each process. What was made of it is compared. What each of several metrics gave, digests of examples, what tokens
cost in a race, and where floors stand, which folders of before lack; and words about what is compared, and what its
scores show, which may be other ones in another version."""
_SHOWN = 200
"""So many characters of a text are shown, from its beginning."""
_BEGINNINGS = {
    "parameters": "the text {}",
    "train": "{} training examples",
    "val": "{} validation examples",
    "test": "{} test examples",
}
_PUT_BACK = (
    "Put back what was changed since: the models, the program (make it anew, if it was trained here already), the "
    "data, the metric, the optimizer, the settings, the budget, the prompts, or the version of textgrad_engine; what "
    "the program looks up by itself, outside of tools=, must be the same as then; or name another run_dir, for a new "
    "run; "
    'or take it as it is, by Trainer(resume="anyway") or --anyway'
)


class FinishedRun:
    """A `train.events.Callback` that gives a finished run again, and writes nothing.

    Whoever starts a script again wants its result, and the program with the best texts in it, without paying. So the
    run is played back from ``completions.jsonl``, and asks for nothing else; it has to come to what is in
    ``result.json``. Only its time is taken from there, and how often the test set was opened. A limit of minutes that
    is given now does not hold.

    Args:
        run: the run.

    Raises:
        RunError: a file is missing or damaged, or another process writes into the folder.
    """

    def __init__(self, run: Run) -> None:
        assert run.result is not None
        check_unlocked(run.path)
        self._path, self._result, self._keys = run.path, run.result, set[SecretStr]()
        self._started = next(
            (event for event in map(event_from_json, run.events) if isinstance(event, RunStarted)), None
        )
        self._time_is_up = time_is_up(run.events)
        found, on_record = [], OnRecord()
        for line, entry in enumerate(read_lines(run.path / "completions.jsonl", []), 1):
            paid = Paid(0, line, entry)
            found.append((when(paid, 0), answer_of(run.path, paid, source=0)))
            on_record.add(0, found[-1][1].phase)
        on_record.check(run.path, run.events, "")
        tools, run_again = list(paid_for(run.path, "tools.jsonl", or_none=True)), OnRecord("tools.jsonl")
        for paid in tools:
            run_again.add(paid.source, phase_of(paid))
        run_again.check(run.path, run.events, "")
        self._player = Playback(
            in_order(found),
            tools_of(run.path, tools, source=0),
            phase=current_phase.get,
            refused=lambda what: self._other(f"asks for something that is not on record: {what}"),
        )

    @property
    def earlier(self) -> FinishedRun:
        """What is played back; see `train.events.Callback`."""
        return self

    @property
    def settings(self) -> Mapping[str, Setting] | None:
        """What it was set to."""
        return None if self._started is None else self._started.settings

    def search_ended(self, minutes: float | None) -> float:
        """After how many steps its time was up, however much of it there is now; where it was not, it never is."""
        return math.inf if self._time_is_up is None else self._time_is_up.steps

    @property
    def validated_in(self) -> float:
        """0, as no time decides about it."""
        return 0.0

    def answering(self) -> AbstractContextManager[None]:
        """Inside the block, what was paid for answers all calls."""
        return playing(self._player)

    @property
    def openings(self) -> int:
        """None that count: all looks are those of before, as `confirmed` says."""
        return 0

    def on_event(self, event: Event) -> None:
        """Check that it is the run of before that begins.

        Raises:
            RunError: it is another one.
        """
        if isinstance(event, CallEnded):
            self._keys.update(event.record.keys)
        elif isinstance(event, RunStarted) and self._started is not None:
            now, before = self._comparable(asdict(event)), self._comparable(asdict(self._started))
            for name, words in _BEGINNINGS.items():
                if now[name] != before[name]:
                    is_now, was = _shown(now[name], before[name]), _shown(before[name], now[name])
                    raise self._other(f"begins with {words.format(is_now)} instead of {words.format(was)}")
            if others := differing(event.settings, self._started.settings):
                raise self._other(f"begins with {others}")
            if now["steps"] != before["steps"]:  # behind the settings, which say why
                is_now, was = (_steps_in_words(each["steps"]) for each in (now, before))
                raise self._other(f"begins with {is_now} instead of {was}")

    def confirmed(self, result: TrainResult) -> TrainResult:
        """The result of before; what was interrupted meanwhile gives what there is so far.

        Raises:
            RunError: the run came to another one.
        """
        if result.status == "interrupted":
            return result
        # A folder of before may be of a run that had no room for calls which nobody reads, and was told to be finished.
        ended = replace(result, status=self._result.status)
        now, before = (self._comparable(result_to_json(each)) for each in (ended, self._result))
        names = [name for name in now if _text(now[name]) != _text(before.get(name))]
        if any(point.latency is not None for point in ended.front):
            names = [name for name in names if name != "front"]  # it goes by intervals of times, drawn otherwise before
        if not names:
            idle = ended.idle if self._time_is_up is None else self._result.idle  # which names the limit of then
            return replace(
                ended,
                seconds=self._result.seconds,
                openings=self._result.openings,
                idle=idle,
                comparison=self._result.comparison,
            )
        if self._player.problem:
            raise self._other(f"asks for something that is not on record: {self._player.problem}")
        if result.status == "budget":
            raise RunError(
                f"{self._path}: the run is finished, and the budget around it now has no room for what it took "
                f"({self._result.total.calls} calls, {self._result.total.total_tokens} tokens); raise it"
            )
        raise self._other(f"comes to another result: {', '.join(names)} differ")

    def _other(self, what: str) -> RunError:
        return RunError(
            f"{self._path}: the run is finished, and is played back without asking anybody; but it {what}\n{_PUT_BACK}"
        )

    def _comparable(self, body: Mapping[str, Any]) -> Any:
        """What is compared, as plain JSON without secrets, which the run folder has not either."""
        secrets = secrets_named(key.get_secret_value() for key in self._keys)
        return redacted(_compared(json.loads(dumps(body))), secrets)


def _compared(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _compared(inside) for name, inside in value.items() if name not in _NOT_COMPARED}
    return [_compared(inside) for inside in value] if isinstance(value, list) else value


def _text(value: Any) -> str:
    return json.dumps(value, sort_keys=True)  # a text is the same as itself, which a NaN is not


def _steps_in_words(most: int | None) -> str:
    return "no limit of steps" if most is None else f"{most} steps at most"


def _shown(value: Any, other: Any) -> str:
    """A value in short; of texts by name, what those begin with that are other ones."""
    if not isinstance(value, dict):
        return str(value)
    texts = {name: text for name, text in value.items() if other.get(name) != text}
    return "; ".join(f"{name} = {text[:_SHOWN]!r}" for name, text in texts.items()) or "none of that name"
