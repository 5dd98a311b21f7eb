"""What is known of candidates, by example: bought once, and by proposals shared or kept to themselves.

NOTE [Who shares what]
    The texts of now are scored by whoever comes first, and a proposal by itself alone, so that the calls that a phase
    makes do not depend on which proposal was quicker. A proposal shares the texts that were adopted before it was
    begun. When it is told of later ones depends on how far it is, so it goes on by itself.
"""

from __future__ import annotations

import contextlib
import functools
import sys
import threading
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import Future
from contextvars import ContextVar
from typing import TypeAlias

from textgrad_engine.dispatch import result_of
from textgrad_engine.optim.search.objective import Split, Texts
from textgrad_engine.scoped import setting
from textgrad_engine.train.evaluator import Scored
from textgrad_engine.train.events import current_phase

Key: TypeAlias = tuple[Texts, Split, int, int]
"""What is scored: the candidate, the set, the position of the example in it, and which of its samples."""

Held: TypeAlias = Scored | Future[Scored]
"""A result, or one that is under way. Those that are there are held as they are, as a future takes a hundred times as
much memory."""

_proposal: ContextVar[tuple[int, int]] = ContextVar("textgrad_engine_proposal", default=(0, sys.maxsize))
"""The number of the proposal that code works on, and how many texts had been adopted when it was begun; captured when a
lane begins it."""


def current_proposal() -> int:
    """The number of the proposal that code works on; 0 for none."""
    return _proposal.get()[0]


class KnownScores:
    """The results of examples with the texts that were tried, and who may see them; see NOTE [Who shares what].

    Everything may be called from several threads at once. A result that is under way is known: who wants it waits.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._shared: dict[Key, Held] = {}
        self._own: dict[tuple[int, Key], Held] = {}
        self._own_of: dict[Texts, dict[tuple[int, Key], None]] = {}  # the keys of these, until the texts are adopted
        self._adopted: dict[Texts, tuple[int, int]] = {}  # the phase, and how many were before it

    def claim(self, wanted: Sequence[Sequence[Key]]) -> tuple[list[list[Held]], dict[Key, Future[Scored]]]:
        """The results of all that is wanted, and those of them that whoever calls this must come up with."""
        with self._lock:
            missing: dict[Key, Future[Scored]] = {}
            return [[self._held(key, missing) for key in row] for row in wanted], missing

    def give_up(self, claimed: dict[Key, Future[Scored]], error: BaseException) -> None:
        """Forget what was claimed and has no result: who waits for it learns why, and who asks again pays again."""
        with self._lock:
            for key, future in claimed.items():
                if not future.done():
                    if self._shared.get(key) is future:
                        del self._shared[key]
                    own = (_proposal.get()[0], key)
                    self._own.pop(own, None)
                    self._own_of.get(key[0], {}).pop(own, None)
                    future.set_exception(error)

    def note(self, key: Key, found: Scored) -> None:
        """Take note of a result that came with something else; one that is known, or under way, stays."""
        with self._lock:
            if self._known(key) is None:
                self._hold(key, found)

    def read(self, keys: Iterable[Key]) -> list[Scored | None]:
        """What is known without waiting; None for what is not there."""
        with self._lock:
            held = [self._known(key) for key in keys]
        return [None if each is None else _result(each) for each in held]

    def missing(self, keys: Iterable[Key]) -> int:
        """Of how many nothing is known or under way."""
        with self._lock:
            return sum(self._known(key) is None for key in keys)

    def every(self) -> list[tuple[Key, Scored]]:
        """All results that are there, also those that proposals keep to themselves, in their order."""
        with self._lock:
            own = [(key, each) for (_, key), each in sorted(self._own.items(), key=lambda item: item[0][0])]
            held = [*self._shared.items(), *own]
        results = [(key, _result(each)) for key, each in held]
        return [(key, result) for key, result in results if result is not None]

    def adopt(self, texts: Texts, number: int | None = None, *, own_first: bool = False) -> None:
        """Share what is known of texts; see `Objective.adopt`.

        Args:
            texts: the texts.
            number: of the proposal that they come from.
            own_first: where several proposals had them, what that one found goes before what others did.
        """
        with self._lock:
            if texts in self._adopted:
                return
            self._adopted[texts] = current_phase.get(), len(self._adopted)
            for own in sorted(self._own_of.pop(texts, ()), key=lambda own: (own_first and own[0] != number, own[0])):
                if number is None or own[0] <= number:
                    self._shared.setdefault(own[1], self._own[own])

    def move(self, texts: Texts) -> None:
        """From now on calls with these texts belong to the phase of now, and not to that of their adoption."""
        with self._lock:
            if texts in self._adopted:
                self._adopted[texts] = current_phase.get(), self._adopted[texts][1]

    @contextlib.contextmanager
    def proposal(self, number: int, *, told_of_all: bool = False) -> Iterator[None]:
        """Inside the block, what is asked belongs to the proposal of that number.

        Args:
            number: of the proposal.
            told_of_all: it shares the texts that are adopted later, too, and what was found for no proposal, as who
                decides about it does. In its own lane, where it still goes on, it does not.
        """
        if told_of_all and current_proposal() == number:
            yield
            return
        with setting(_proposal, (number, sys.maxsize if told_of_all else len(self._adopted))):
            yield

    def phase(self, texts: Texts) -> int:
        """The phase that calls with these texts belong to: that of their adoption where they are shared, else now's."""
        shared = self._phase_shared(texts)
        return current_phase.get() if shared is None else shared

    @contextlib.contextmanager
    def phase_of(self, texts: Texts) -> Iterator[None]:
        """Inside the block, calls belong to the `phase` of these texts."""
        with setting(current_phase, self.phase(texts)):
            yield

    def _phase_shared(self, texts: Texts) -> int | None:
        """The phase in which these texts were adopted, where proposals share them; None where they do not."""
        phase, before = self._adopted.get(texts, (0, sys.maxsize))
        return phase if before < _proposal.get()[1] else None

    def _known(self, key: Key) -> Held | None:
        number, told_of = _proposal.get()
        shared = self._shared.get(key) if self._phase_shared(key[0]) is not None else None
        own = self._own.get((number, key)) if shared is None else shared
        if own is None and told_of == sys.maxsize:  # a search of one's own need not say what belongs to a proposal
            return self._own.get((0, key))
        return own

    def _held(self, key: Key, missing: dict[Key, Future[Scored]]) -> Held:
        if (known := self._known(key)) is not None:
            return known
        found = missing[key] = Future()
        found.add_done_callback(functools.partial(self._came, key, _proposal.get()[0]))
        self._hold(key, found)
        return found

    def _hold(self, key: Key, held: Held) -> None:
        if self._phase_shared(key[0]) is not None:
            self._shared[key] = held
        else:
            own = (_proposal.get()[0], key)
            self._own[own] = held
            if key[0] not in self._adopted:
                self._own_of.setdefault(key[0], {})[own] = None

    def _came(self, key: Key, number: int, future: Future[Scored]) -> None:
        """Hold a result in the place of its future; who failed may hold the lock, so nothing else is done here."""
        found = _result(future)
        if found is not None:
            if self._shared.get(key) is future:
                self._shared[key] = found
            if self._own.get((number, key)) is future:
                self._own[number, key] = found


def waited_for(held: Held) -> Scored:
    """A result, waited for if need be.

    Raises:
        BaseException: what whoever should have come up with it failed with.
    """
    return held if isinstance(held, Scored) else result_of(held)


def _result(held: Held) -> Scored | None:
    """What is held; None where it is not there yet, or not to be had."""
    if isinstance(held, Scored):
        return held
    return held.result() if held.done() and held.exception() is None else None
