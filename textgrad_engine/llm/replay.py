"""Cassettes that are played back, without any model."""

from __future__ import annotations

import contextlib
import os
import threading
from collections.abc import Iterator
from typing import Any

from textgrad_engine.blocks import block
from textgrad_engine.checks import check
from textgrad_engine.errors import RequestRefused
from textgrad_engine.llm.answers import (
    Answer,
    Answers,
    Equal,
    belongs,
    difference,
    distance,
    entry_of,
)
from textgrad_engine.llm.budget import Budgeted
from textgrad_engine.llm.cassette import read_cassette
from textgrad_engine.llm.charged import mark
from textgrad_engine.llm.model import innermost
from textgrad_engine.llm.places import numbering_places
from textgrad_engine.llm.prices import price
from textgrad_engine.llm.request import Purpose, Request
from textgrad_engine.llm.response import Completion, Usage
from textgrad_engine.llm.resume import is_answer
from textgrad_engine.llm.taped import Player, answered_by, playing
from textgrad_engine.llm.toolcalls import ToolCall, ToolRecord
from textgrad_engine.llm.tools_on_record import ToolsOnRecord, given_again
from textgrad_engine.user_paths import expanded
from textgrad_engine.wording import with_article


class Replay:
    """A cassette that is played back.

    The n-th equal request gets the n-th answer, whatever is asked in between; of equal requests for different examples,
    items of a `pmap`, or runs of a cross-validation, each gets the answers of its own.

    Args:
        path: the file.

    Attributes:
        path: the file.
        anew: what is to be done to record it anew, for what a refusal says; "" where somebody wrote the block.

    Raises:
        RunError: there is no such file, or it is damaged; the message names the line.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        check(Replay.__init__, locals())
        self.path = expanded(path).absolute()
        self.anew = ""
        self.outer: Player | None = None
        self._lock = threading.Lock()
        self._all: list[Answer] = []  # before anything fails: a test that ends there shows the replay
        self._answers = Answers([], belongs)
        found = read_cassette(self.path)
        last = max([each.source for each in found.answers], default=0)
        # Where a cassette was gone on with, what an endpoint had refused before was asked anew.
        self._all = [each for each in found.answers if each.source == last or is_answer(each)]
        self.tools = ToolsOnRecord(found.tools)
        self.ids = self.tools.ids
        ordered = sorted(self._all, key=lambda each: each.nth)
        self._answers = Answers(ordered, belongs)
        self._first_unknown: str | None = None  # what was said of the first unknown request

    @property
    def left(self) -> int:
        """How many recorded answers have not been asked for yet."""
        return len(self._answers)

    async def answer(self, model: Budgeted, request: Request) -> Completion:
        """What was recorded for a request; the budgets around it are charged as they were then.

        Raises:
            BudgetExceeded: they have no room for the call.
            RequestRefused: it was not recorded, or not as often; the message names the nearest one and the difference
                (of the first that was not recorded, as the others mostly differ in the same).
            ModelError: what the recorded request failed with.
        """
        entry = entry_of(model, request)
        equal = self._answers.equal_to(entry)
        name = None if isinstance(innermost(model), Absent) else entry["model"]
        if name is not None and equal is not None:
            name = equal.recorded_as(name)

        def rank(each: Answer) -> Any:
            if name not in (None, each.model):
                return None
            return each.example != entry["example"], *distance(each, entry), each.nth, each.line

        taken = self._answers.take(equal, rank, entry["example"], elsewhere=True)
        if taken is not None:
            return await self._answers.play(taken, model, request)

        def refuse() -> Completion:
            raise mark(RequestRefused(self._refusal(entry, equal, name)), sent=False)

        return await model.play(request, refuse)

    async def tool(self, call: ToolCall) -> ToolRecord | None:
        """What a tool gave when that was recorded; None where it was not, as in a cassette of before."""
        taken = self.tools.take(call, elsewhere=True)
        if taken is None:
            return None
        return await given_again(call, taken, self.tools, self._answers, self._answers.play)

    def model_name(self, purpose: Purpose) -> str:
        """The name of the model that was asked for a purpose, else of the first that was asked at all."""
        names = [taken.model for taken in self._all if taken.purpose == purpose] or [each.model for each in self._all]
        return names[0] if names else "replayed"

    def _refusal(self, entry: dict[str, Any], equal: Equal | None, name: str | None) -> str:
        what = f"{with_article(entry['request']['purpose'])} request to {entry['model']!r}"
        if equal is not None:
            if name is not None and name not in equal.models:
                models = ", ".join(map(repr, sorted(equal.models)))
                return f"{self.path}: {what} was recorded with {models} only; {self.anew or 'record it anew'}"
            times = "once" if equal.count == 1 else f"{equal.count} times"
            blocks = "record it anew, or put llm.replay around each test: it begins anew with each block"
            return f"{self.path}: {what} was recorded {times}, and is asked once more; {self.anew or blocks}"
        return f"{self.path}: {what} was not recorded; {self._unlike(entry['request'])}"

    def _unlike(self, request: dict[str, Any]) -> str:
        """What an unknown request differs from, and in what; of further ones, what the first of them did.

        A prompt that was changed makes all requests unknown, and to compare two of them takes a while.
        """
        with self._lock:
            if self._first_unknown is not None:
                return f"nor was one that was asked before it, of which {self._first_unknown}"
            self._first_unknown = f"the cassette is empty; {self.anew or 'record it anew'}"
            if self._all:
                advice = f"If the change is meant, {self.anew or 'record the cassette anew.'}"
                self._first_unknown = f"{difference(self._all, request)}\n{advice}"
            return self._first_unknown

    def __repr__(self) -> str:
        return f"Replay({str(self.path)!r}, {self.left} of {len(self._all)} answers left)"


class Absent:
    """Stands where a model would stand, when a cassette is replayed and no model was named.

    Args:
        name: of the model that was recorded.
    """

    def __init__(self, name: str) -> None:
        self.name = name

    @property
    def free(self) -> bool:
        """Whether nothing is known of what it costs but what was recorded."""
        return price(self.name, Usage()) is None

    async def complete(self, request: Request) -> Completion:
        """Never answers.

        Raises:
            RequestRefused: always; the cassette answers before a request comes here.
        """
        raise mark(RequestRefused(f"{self.name!r} was recorded, and is not here to answer"), sent=False)

    def __repr__(self) -> str:
        return f"Absent({self.name!r})"


@block
@contextlib.contextmanager
def replay(path: str | os.PathLike[str]) -> Iterator[Replay]:
    """Inside the block, calls are answered from a cassette; none is sent, and no model needs to be set.

    Tools that models call (`ops.chat_completion`) are not run: their recorded results are returned. If a result was not
    recorded, as in older cassettes, the tool is run.

    Usage is reported as it was recorded, and charged to the budgets around a call as it was then, so decisions by what
    is left of a budget come out the same. For limits in tokens or dollars, set the same models as then: the worst case
    of a call depends on their ``max_tokens`` and prices. Attempts that failed at unknown cost, such as a timeout,
    reserved some of a budget then and reserve nothing now. A request that was never recorded, or is asked more often
    than it was recorded, raises `RequestRefused`; each block starts anew.

    Args:
        path: the file that `record` wrote.

    Yields:
        What is played back; its `left` says how many recorded answers nobody has asked for.

    Raises:
        RunError: there is no such file, or it is damaged.

    Example:
        >>> import os, tempfile
        >>> from textgrad_engine import llm, nn
        >>> from textgrad_engine.testing import ScriptedModel
        >>> program, cassette = nn.ChatCompletion("{question}"), os.path.join(tempfile.mkdtemp(), "answers.jsonl")
        >>> with llm.use_models(forward=ScriptedModel(["Rome"])), llm.record(cassette):
        ...     first = program(question="Capital of Italy?").data
        >>> with replay(cassette) as tape:  # nobody is asked
        ...     program(question="Capital of Italy?").data, tape.left
        ('Rome', 0)
    """
    made = Replay(path)
    with playing(made), numbering_places():
        yield made


def replayed_model(purpose: Purpose) -> Absent | None:
    """What stands for the model of a purpose while a cassette is replayed; None while none is."""
    player = answered_by.get()
    while player is not None and not isinstance(player, Replay):
        player = player.outer
    return None if player is None else Absent(player.model_name(purpose))
