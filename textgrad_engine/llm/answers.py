"""Recorded answers: how requests are told apart, and which answer is whose."""

from __future__ import annotations

import difflib
import itertools
import json
import threading
from collections import Counter, deque
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from textgrad_engine.errors import ModelError
from textgrad_engine.llm.as_json import of_other_kind, recorded, recorded_without
from textgrad_engine.llm.attachments import signed_again
from textgrad_engine.llm.budget import Budgeted
from textgrad_engine.llm.errors_as_json import fresh
from textgrad_engine.llm.ids import digest
from textgrad_engine.llm.model import Model
from textgrad_engine.llm.places import same_item, same_place
from textgrad_engine.llm.redact import secrets_of
from textgrad_engine.llm.request import Request
from textgrad_engine.llm.response import Completion
from textgrad_engine.llm.usage import call_item, call_key, call_part, call_place, call_tool, note_sample

_PROVIDER = "openai/"

COMPARED = 200
"""How many recorded requests are compared, at most, to find the nearest one to an unknown one."""


@dataclass(frozen=True)
class Answer:
    """One recorded answer, or failure.

    Attributes:
        model: the name of the model that was asked.
        purpose: of the request.
        example: what the call belonged to (`call_key`).
        nth: of equal requests the how manieth it was.
        line: where it stands in its file.
        digest: of the request as it was written down (`digest`).
        outcome: the answer or the failure.
        asked: the digest of the request as it was asked, where something was taken out of it; else None.
        request: the request as plain JSON; None where nobody will compare it with others.
        phase: the number of the phase of a run that it belongs to.
        source: the number of its file, where there are several.
        counted_again: whether it is a failure that was only counted there; see `ModelError.counted_again`.
        item: the item of a `pmap` that the call belonged to (`call_item`), where that was kept.
        tool: the id of the call inside of which it was made (`call_tool`); "" for none.
        place: the conversation that it belonged to (`call_place`), where that was kept.
        id: of a call whose model asked others that are on record, too (`CallRecord.id`); "" for any other.
        sample: which sample of the request it is (`CallRecord.sample`); None where that is not known.
        part: the run of a cross-validation that the call belonged to (`call_part`), where that was kept; else 0.
    """

    model: str
    purpose: str
    example: str
    nth: int
    line: int
    digest: str
    outcome: Completion | ModelError
    asked: str | None = None
    request: dict[str, Any] | None = None
    phase: int = 0
    source: int = 0
    counted_again: bool = False
    item: tuple[int, ...] = ()
    tool: str = ""
    place: tuple[int, ...] = ()
    id: str = ""
    sample: tuple[int, ...] | None = None
    part: int = 0

    def __post_init__(self) -> None:
        """Refuse fields of other kinds: a record may come from anybody.

        Raises:
            ValueError: there is one; the message names it.
        """
        for name in ("model", "purpose", "example", "tool", "id"):
            if type(value := getattr(self, name)) is not str:
                raise of_other_kind(name, value)
        for name in ("nth", "part"):
            if type(value := getattr(self, name)) is not int:
                raise of_other_kind(name, value)
        if not isinstance(self.asked, str | None):
            raise of_other_kind("asked", self.asked)
        for name in ("item", "place", "sample"):
            value = getattr(self, name)
            if value and not all(type(each) is int for each in value):
                raise of_other_kind(name, list(value))


def may_answer(each: Answer, entry: Mapping[str, Any]) -> bool:
    """Whether a recorded answer may be that of a request: of the same model, and of no other item, place or
    run of a cross-validation.

    What was asked inside of a call, of a tool or of a model that asks others, is of that call alone, be it on record
    itself or cut: one that was cut gets its id again, and an equal one gets another (`ids.next_id`).

    Args:
        each: the answer.
        entry: the request, as `entry_of` gives it.
    """
    return (
        each.tool in ("", call_tool.get())
        and each.model == entry["model"]
        and same_item(each.item, tuple(entry.get("item", ())))
        and same_place(each.place, tuple(entry.get("place", ())))
        and each.part in (0, entry.get("part", 0))
    )


def belongs(each: Answer) -> tuple[Hashable, ...]:
    """What keeps answers to equal requests for one example apart, whoever asks for them."""
    return each.model, each.part, each.item, each.place, each.tool, each.sample


def distance(each: Answer, entry: Mapping[str, Any]) -> tuple[bool, ...]:
    """How far what an answer belonged to is from what is asked: another run, item, conversation, tool's call.

    Args:
        each: the answer.
        entry: the request, as `entry_of` gives it; a tool's call is that of the code that asks.
    """
    return (
        each.part != entry.get("part", 0),
        each.item != tuple(entry.get("item", ())),
        each.place != tuple(entry.get("place", ())),
        each.tool != call_tool.get(),
    )


@dataclass
class Equal:
    """The answers to equal requests by example, those of one place in the order in which they were asked for."""

    count: int = 0
    sampled: bool = False
    """Whether it is known of one which sample it is."""
    models: set[str] = field(default_factory=set)
    waiting: dict[str, dict[Hashable, deque[Answer]]] = field(default_factory=dict)
    inside: dict[tuple[str, str], list[deque[Answer]]] = field(default_factory=dict)
    """Those that were made inside of calls of tools, by example and call: of one request there may be thousands."""

    def recorded_as(self, name: str) -> str:
        """The name under which a model was recorded that has this one here.

        "openai/gpt-5" is the whole name of a model where OPENAI_BASE_URL names an endpoint, and else it is "gpt-5" at
        OpenAI: a program that was recorded behind a gateway names the same one where there is none.
        """
        if name in self.models:
            return name
        other = name.removeprefix(_PROVIDER) if name.startswith(_PROVIDER) else f"{_PROVIDER}{name}"
        return other if other in self.models else name


class Answers:
    """Recorded answers that wait for their requests; each is given once.

    Args:
        every: all of them; of equal requests, in the order in which they were asked.
        place: what keeps answers to equal requests for one example apart, such as the model.
    """

    def __init__(self, every: Sequence[Answer], place: Callable[[Answer], Hashable]) -> None:
        self.every = every
        self._place = place
        self._lock = threading.Lock()
        self._left = len(every)
        self._by_request: dict[str, Equal] = {}
        self._as_asked: dict[str, Equal] = {}  # by what was asked, with whatever was taken out of it
        self._inside: dict[tuple[str, int], list[Answer]] = {}  # by the tool's call and the phase
        for answer in every:
            equal = self._by_request.setdefault(answer.digest, Equal())
            equal.count += 1
            equal.sampled = equal.sampled or answer.sample is not None
            equal.models.add(answer.model)
            self._queue(equal, answer).append(answer)
            self._as_asked[answer.asked or answer.digest] = equal
            if answer.tool:
                self._inside.setdefault((answer.tool, answer.phase), []).append(answer)

    def __len__(self) -> int:
        """How many have not been given yet."""
        return self._left

    def waiting(self) -> list[Answer]:
        """Those that have not been given yet."""
        with self._lock:
            groups = [group for equal in self._by_request.values() for group in equal.waiting.values()]
            return [answer for group in groups for queue in group.values() for answer in queue]

    def equal_to(self, entry: Mapping[str, Any]) -> Equal | None:
        """What was recorded for requests equal to that of an entry (`entry_of`)."""
        kept = digest(entry["request"])
        found = self._by_request.get(kept)
        if found is None:  # where other secrets are known, there or here, something else was taken out
            found = self._as_asked.get(entry.get("asked", kept))
        return found

    def take(
        self, equal: Equal | None, rank: Callable[[Answer], Any], example: str, *, elsewhere: bool = False
    ) -> Answer | None:
        """Give one of the answers that are the first of their places.

        Args:
            equal: those to choose from, by `equal_to`.
            rank: the lower, the sooner it is given; None for an answer to somebody else.
            example: what is asked about.
            elsewhere: where that has no answer left, give one of another example.
        """
        with self._lock:
            if equal is None:
                return None
            own = equal.waiting.get(example, {})  # of thousands, where all examples ask for the same
            found = _first(equal.inside.get((example, tool), ()), rank) if (tool := call_tool.get()) else None
            if found is None:
                found = _first(own.values(), rank)
            if found is None and elsewhere:
                found = _first((queue for group in equal.waiting.values() for queue in group.values()), rank)
            if found is None:
                return None
            self._left -= 1
            return found.popleft()

    def take_inside(self, tool: str, phase: int) -> list[Answer]:
        """Give all that wait of those that were made inside of a call, of a tool or of a model that asks others.

        Args:
            tool: the id of that call.
            phase: the number of its phase.
        """
        found = []
        with self._lock:
            for answer in self._inside.get((tool, phase), ()):
                queue = self._queue(self._by_request[answer.digest], answer)
                if answer in queue:
                    queue.remove(answer)
                    self._left -= 1
                    found.append(answer)
        return found

    def put_back(self, answer: Answer) -> None:
        """Have an answer wait again: there was no room for it in a budget."""
        with self._lock:
            self._queue(self._by_request[answer.digest], answer).appendleft(answer)
            self._left += 1

    def _queue(self, equal: Equal, answer: Answer) -> deque[Answer]:
        queues, place = equal.waiting.setdefault(answer.example, {}), self._place(answer)
        if place not in queues:
            queues[place] = deque()
            if answer.tool:
                equal.inside.setdefault((answer.example, answer.tool), []).append(queues[place])
        return queues[place]

    async def play(
        self, answer: Answer, model: Budgeted, request: Request, given: Callable[[], None] = lambda: None
    ) -> Completion:
        """Give what was recorded; the budgets around the call are charged as they were then.

        Args:
            answer: what was taken.
            model: charges the budgets.
            request: what was asked.
            given: called when there is room for the call.

        Raises:
            BudgetExceeded: they have no room for the call; the answer waits again.
            ModelError: what the recorded request failed with.
        """
        note_sample(answer.sample)
        outcome = answer.outcome
        if isinstance(outcome, Completion):
            outcome = signed_again(outcome, request)
            if outcome.cached:
                given()
                return outcome
        fits = False

        def give() -> Completion:
            nonlocal fits
            fits = True
            given()
            if isinstance(outcome, ModelError):
                raise fresh(outcome)
            return outcome

        try:
            return await model.play(request, give)
        finally:
            if not fits:
                self.put_back(answer)


def _first(queues: Iterable[deque[Answer]], rank: Callable[[Answer], Any]) -> deque[Answer] | None:
    """The queue whose first answer is given first; None where no answer can be given."""
    heads = [queue for queue in queues if queue and rank(queue[0]) is not None]
    return min(heads, key=lambda queue: rank(queue[0]), default=None)


def entry_of(model: Model, request: Request) -> dict[str, Any]:
    """A request that is asked, as it is written down: model, example, part, item, place, the request without secrets,
    with names for the bytes of images and the like (`attachments`), and with addresses that nothing signs (`signed`).

    The part, a run of a cross-validation, the item of a `pmap` and the place are left out where there is none. Where
    something was taken out, "asked" is the digest of the request as it was.
    """
    asked = recorded(request)
    kept = recorded_without(request, secrets_of(model))
    entry: dict[str, Any] = {"model": model.name, "example": call_key.get(), "request": kept}
    if part := call_part.get():
        entry["part"] = part
    if item := call_item.get():
        entry["item"] = list(item)
    if place := call_place.get():
        entry["place"] = list(place)
    return entry if kept == asked else {**entry, "asked": digest(asked)}


def difference(recorded: Sequence[Answer], request: dict[str, Any]) -> str:
    """The nearest recorded request and what an unknown one has other than it, in words.

    Args:
        recorded: one answer or more, whose requests may be near; the first ones are compared.
        request: the unknown one, as plain JSON.
    """
    asked = _pretty(request)
    letters = _letters(asked)

    def likeness(answer: Answer) -> tuple[int, float]:
        # One message of a request is what changes mostly: a prompt, or an example. The rest of it stays to the letter.
        same = sum([each in request.get("messages", ()) for each in (answer.request or {}).get("messages", ())])
        # As SequenceMatcher.quick_ratio does, which goes through the letters one by one.
        own = _letters(_pretty(answer.request))
        return same, (own & letters).total() / (own.total() + letters.total())

    nearest = max(recorded[:COMPARED], key=likeness)
    lines = difflib.unified_diff(_pretty(nearest.request), asked, "recorded", "asked", lineterm="", n=1)
    shown = [line if len(line) <= 300 else f"{line[:300]}…" for line in itertools.islice(lines, 40)]
    return f"the nearest is line {nearest.line}, and differs so:\n" + "\n".join(shown)


def _pretty(request: Any) -> list[str]:
    # A long text is easier to compare line by line than as one JSON string.
    return json.dumps(request, indent=1, ensure_ascii=False).replace("\\n", "\n").splitlines()


def _letters(lines: list[str]) -> Counter[str]:
    return Counter("\n".join(lines)[:4000])
