"""Ctrl-C (SIGINT): once stops sending and lets what is paid for be finished; twice raises `KeyboardInterrupt`.

NOTE [What Ctrl-C does]
    1. Before any model is asked it is a `KeyboardInterrupt`: there is nothing to save.
    2. While models are asked, in a block of `stopping_on_interrupt`, it sets the block's `Stop`.
    3. After that it changes nothing until the block of `finishing_on_interrupt` ends: what was paid for is worked out,
       written and printed.
    SIGTERM counts as SIGINT does where `finishing_on_interrupt` is asked to listen to it, with less time for answers
    that are under way; else it ends the process. On Windows, where nobody can send it, SIGBREAK (Ctrl-Break) does.
    What follows it within `ONCE` is the same one: `timeout` sends it to the program, and at once to its whole group.
    The second one is a `KeyboardInterrupt` anywhere, and gives up the answers that are under way. One that came in 2
    counts in 3. A block inside another hears what the outer one hears, so that between two of them nobody else does.
    Where the program ignores a signal it goes on doing so.
    A cancelled wait for `interruptible` work is the first one, for that work alone. An error in one of several works
    that are done `at_once` is the first one for the others.
    The handler takes no lock and starts no thread: the code that it interrupts may hold one, or be starting one.
"""

from __future__ import annotations

import asyncio
import contextlib
import math
import signal
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future
from contextvars import ContextVar, copy_context
from types import FrameType
from typing import TypeVar

from textgrad_engine.dispatch import Scope, aside, call_soon, settled
from textgrad_engine.dispatch.thread import loop_thread
from textgrad_engine.dispatch.threads import Pool
from textgrad_engine.llm.stop import Stop, stopped_by_errors
from textgrad_engine.scoped import setting

T = TypeVar("T")

GRACE = 10.0
"""Seconds that answers in flight get after Ctrl-C before they are given up."""

HASTE = 5.0
"""Seconds that they get after SIGTERM: `docker stop` kills ten seconds after it, and then there must be a result."""

TERMINATING = tuple(getattr(signal, name) for name in ("SIGTERM", "SIGBREAK") if hasattr(signal, name))
"""What somebody else sends who wants the program to end."""

ONCE = 0.5
"""Seconds after SIGTERM in which a further one is no second one."""

_NAMES = {"SIGINT": "Ctrl-C", "SIGBREAK": "Ctrl-Break"}
"""What signals are called by who sends them from a keyboard; of others there may be no keyboard."""

Tell = Callable[[bool, str], None]
"""Told about the first Ctrl-C that does not end the program at once, with whether models are asked at that moment, and
with what it was: Ctrl-C, or SIGTERM. It runs in the signal handler, so it must neither wait nor write through Python's
buffers."""


@contextlib.contextmanager
def stopping_on_interrupt(grace: float = GRACE) -> Iterator[Stop]:
    """Inside the block, the first SIGINT sets the `Stop` that is yielded; the second raises as usual.

    Answers that are not there after `grace` seconds are given up. Where the block raises, nothing more is sent. Outside
    of the main thread, where Python delivers no signals, nothing is listened to, and the `Stop` can be set by hand.
    """
    with _listening() as listener, stopped_by_errors() as stop, Scope() as scope:
        block = _Block(stop, scope, grace)
        listener.begin(block)
        try:
            yield stop
        finally:
            listener.end(block)


@contextlib.contextmanager
def finishing_on_interrupt(tell: Tell | None = None, *, terminate: bool = False) -> Iterator[Heard]:
    """Inside the block, the first SIGINT does not keep from being finished what models were asked for.

    NOTE [What Ctrl-C does] has the rules. Put it around the blocks of `stopping_on_interrupt` and what is done with
    their results.

    Args:
        tell: told about that first one.
        terminate: listen to SIGTERM, too, as to Ctrl-C: it is what `docker stop`, `timeout` and Kubernetes send; on
            Windows to SIGBREAK.

    Yields:
        What was heard.
    """
    signals = (signal.SIGINT, *TERMINATING) if terminate else (signal.SIGINT,)
    with _listening(signals) as listener, contextlib.nullcontext() if tell is None else telling(tell):
        yield listener.heard


@contextlib.contextmanager
def telling(tell: Tell) -> Iterator[None]:
    """Inside the block, `tell` is told about the first SIGINT, in place of what an outer block names."""
    listener = _current.get()
    if listener is None or listener.ended:
        yield
        return
    listener.tells.append(tell)
    try:
        yield
    finally:
        listener.tells.remove(tell)


@contextlib.contextmanager
def when_left(do: Callable[[], object]) -> Iterator[None]:
    """Inside the block, in one of several works `at_once`, `do` is called where a second Ctrl-C leaves these behind.

    It is called in the thread that waited for them, as this one may never come to the end of the block.
    """
    listener = _current.get()
    if listener is None:
        yield
        return
    listener.left.append(do)
    try:
        yield
    finally:
        listener.left.remove(do)


async def interruptible(work: Callable[[], T]) -> T:
    """Run work that asks models in a thread, and wait for it; to cancel the wait is what the first Ctrl-C is.

    The wait goes on until the work has ended, which is soon, as nothing more is sent, and is over then. Cancelled once
    more it ends at once, and the answers that are under way are given up.

    Args:
        work: what is run; it asks models in blocks of `stopping_on_interrupt`.

    Raises:
        BaseException: whatever it raised.
    """
    outer = _current.get()
    listener = _Listener(None if outer is None or outer.ended else outer)

    def listened() -> T:
        try:
            with setting(_current, listener):
                return work()
        finally:
            listener.ended = True

    return await aside(listened, stop=lambda _: listener.press())


def at_once(works: Sequence[Callable[[], T]], most: int) -> list[T]:
    """Do several works that ask models, each in a thread of its own, and wait for all of them.

    Ctrl-C is for all of them: NOTE [What Ctrl-C does]. If one raises, the others send nothing more, and what has not
    begun is left out. Code that looks up the context finds that of the caller.

    Args:
        works: what is done; each asks models in blocks of `stopping_on_interrupt`. One alone is done in this thread.
        most: at most so many at a time.

    Returns:
        What they return, in their order.

    Raises:
        BaseException: what the first one to fail raised, when the others have ended.
    """
    if len(works) == 1:
        return [works[0]()]
    with _listening() as around:
        listener = _Listener(around)
        listener.tells = around.tells
        pool = Pool(min(most, len(works)))
        errors: list[BaseException] = []

        def done(work: Callable[[], T]) -> T:
            try:
                with setting(_current, listener):
                    return work()
            except BaseException as error:
                errors.append(error)
                pool.cancel()
                listener.press()
                raise

        futures: list[Future[T]] = []
        try:
            futures.extend(pool.submit(copy_context().run, done, work) for work in works)
            settled(futures)
        except BaseException:  # a Ctrl-C that ends all
            listener.give_up()
            try:
                pool.leave(futures)
            finally:
                for each in tuple(listener.left):
                    each()
            raise
    if errors:
        raise errors[0]
    return [future.result() for future in futures]


class Heard:
    """What a block has heard.

    Attributes:
        signal: the number of the first signal; None while there was none.
    """

    def __init__(self) -> None:
        self.signal: int | None = None


class _Block:
    """One block in which models are asked."""

    def __init__(self, stop: Stop, scope: Scope, grace: float) -> None:
        self.stop, self.scope, self.grace = stop, scope, grace
        self.over = False
        loop_thread()  # is there from now on, so that the handler does not have to start it

    def stop_sending(self, *, hasten: bool) -> None:
        if not self.stop.is_set:
            if hasten:
                self.grace = min(self.grace, HASTE)
            self.stop.set()
            call_soon(self._wait)

    def _wait(self) -> None:
        asyncio.get_running_loop().call_later(self.grace, self.give_up)

    def give_up(self) -> None:
        if not self.over:
            self.scope.cancel()


class _Listener:
    """What SIGINT does, as a handler of it; see NOTE [What Ctrl-C does]. One inside another hears what that hears."""

    def __init__(self, outer: _Listener | None = None) -> None:
        self.outer = outer
        self.pressed = self.asked = self.ended = False
        self.asking: list[_Block] = []
        self.tells: list[Tell] = []
        self.left: list[Callable[[], object]] = []
        self.heard = Heard()
        self._terminated = -math.inf

    def __call__(self, number: int, frame: FrameType | None) -> None:
        if number in TERMINATING:
            now = time.monotonic()
            if now - self._terminated < ONCE:
                return
            self._terminated = now
        if self.heard.signal is None:
            self.heard.signal = number
        if self.pressed or not self.asked:
            self.give_up()
            raise KeyboardInterrupt
        self.press()
        if self.tells:
            name = signal.Signals(number).name
            self.tells[-1](bool(self.asking), _NAMES.get(name, name))

    def press(self) -> None:
        """Send nothing more, now or later."""
        self.pressed = True
        for block in tuple(self.asking):
            block.stop_sending(hasten=self._hastens)

    def give_up(self) -> None:
        """Send nothing more, and wait for nothing that is under way."""
        self.pressed = True
        for block in tuple(self.asking):  # other threads begin and end theirs meanwhile
            block.stop.set()
            block.give_up()

    @property
    def _hastens(self) -> bool:
        return self.heard.signal in TERMINATING

    def begin(self, block: _Block) -> None:
        self.asking.append(block)
        self.asked = True
        if self.pressed:
            block.stop_sending(hasten=self._hastens)
        if self.outer is not None:
            self.outer.begin(block)

    def end(self, block: _Block) -> None:
        block.over = True
        self.asking.remove(block)
        if self.outer is not None:
            self.outer.end(block)


@contextlib.contextmanager
def _listening(signals: tuple[signal.Signals, ...] = (signal.SIGINT,)) -> Iterator[_Listener]:
    """The listener of the block around this one, or a new one."""
    outer = _current.get()
    if outer is not None and not outer.ended:
        yield outer
        return
    listener = _Listener()
    token = _current.set(listener)
    heard = threading.current_thread() is threading.main_thread()
    handlers = {number: signal.getsignal(number) for number in signals} if heard else {}
    # None is a handler that was not set from Python, and cannot be put back. Who has one ignored wants the program to
    # go on, as a shell does with one behind "&".
    before = {number: handler for number, handler in handlers.items() if handler not in (None, signal.SIG_IGN)}
    try:
        for number in before:
            signal.signal(number, listener)
        yield listener
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
        listener.ended = True
        _current.reset(token)


_current: ContextVar[_Listener | None] = ContextVar("textgrad_engine_interrupts", default=None)
