"""Answers that were paid for once: kept on disk, and shared by equal requests that are under way."""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import os
import sys
import threading
import weakref
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path

from pydantic_core import PydanticSerializationError

from textgrad_engine.checks import above, at_least, check
from textgrad_engine.errors import (
    BudgetExceeded,
    ConfigError,
    ModelError,
    Stopped,
    UnknownPriceError,
)
from textgrad_engine.llm.cachefile import CacheFile
from textgrad_engine.llm.cacheowners import new_owner
from textgrad_engine.llm.charged import own_copy
from textgrad_engine.llm.loops import PerLoop
from textgrad_engine.llm.response import Completion, Usage, completion_from_json
from textgrad_engine.llm.stop import unless_stopped
from textgrad_engine.llm.worker import Closed, Worker
from textgrad_engine.signed import unsigned

DEFAULT_BYTES = 10**9
"""What the answers of one cache may take on disk unless somebody says otherwise."""

FOLDER = "TEXTGRAD_CACHE_DIR"
"""The environment variable that names another cache folder."""

_FILE = "completions-1.sqlite"  # the number is the format's: a library with another one leaves this file alone
_OWN_FAILURE = (Stopped, BudgetExceeded, UnknownPriceError)
"""What fails for reasons of the caller's own, so that those who asked the same must try themselves."""

_log = logging.getLogger("textgrad_engine.llm.cache")


def always(kept: Completion) -> bool:
    """Whether a kept answer is one still, where nothing else has a say in it."""
    return True


class Cache:
    """Answers in a folder; one object, or many in many processes, may use the same one at the same time.

    Reading and writing happen on one thread of its own. Equal requests under way are sent once: within an event loop
    they wait for the first one's answer, or share its failure; between processes a lease in the file says who asks, and
    it ends with that process.

    Args:
        path: the folder; by default the user's cache folder (`cache_folder`).
        max_bytes: what the answers may take; those used longest ago are removed.
        lease: seconds after which the requests of a process that was killed are sent again by others; those of one on
            this machine at once.

    Raises:
        ConfigError: the folder cannot be made or written.

    Example:
        >>> import tempfile
        >>> cache = Cache(tempfile.mkdtemp())
        >>> len(cache), cache.bytes
        (0, 0)
    """

    def __init__(
        self, path: str | os.PathLike[str] | None = None, *, max_bytes: int = DEFAULT_BYTES, lease: float = 60.0
    ) -> None:
        check(Cache.__init__, locals(), at_least(1, "max_bytes"), above(0, "lease"))
        self.path = _folder(path)
        self.max_bytes = max_bytes
        self.lease = lease
        self._flights: PerLoop[_Flights] = PerLoop(_Flights)
        self._lock = threading.Lock()
        self._worker = _Files(self._file())
        self._end = weakref.finalize(self, self._worker.close)

    def _file(self) -> CacheFile:
        return CacheFile(self.path / _FILE, self.max_bytes, self.lease)

    async def answer(
        self,
        key: bytes,
        ask: Callable[[], Awaitable[Completion]],
        fits: Callable[[Completion], bool] = always,
        before: Sequence[bytes] = (),
    ) -> Completion:
        """The kept answer, or that of an equal request under way, or the one that `ask` gets, which is kept.

        Args:
            key: of the request (`keys_of`).
            ask: sends it. What it raises is not kept.
            fits: whether a kept answer is one still; else it is asked for anew.
            before: keys under which older versions may have kept it.
        """
        flights = self._flights.get()
        while (under_way := flights.futures.get(key)) is not None:
            outcome = await asyncio.shield(under_way)
            if isinstance(outcome, Completion):
                return _again(outcome)
            if outcome is not None:
                raise own_copy(outcome)
            # the one who asked was cancelled, or failed for reasons of its own
        future: asyncio.Future[Completion | ModelError | None] = asyncio.get_running_loop().create_future()
        flights.futures[key] = future
        outcome = None
        try:
            completion = await self._first(flights, key, ask, fits, before)
            outcome = completion
            return completion
        except ModelError as error:
            outcome = None if isinstance(error, _OWN_FAILURE) else own_copy(error)
            raise
        finally:
            del flights.futures[key]
            future.set_result(outcome)

    async def _first(
        self,
        flights: _Flights,
        key: bytes,
        ask: Callable[[], Awaitable[Completion]],
        fits: Callable[[Completion], bool],
        before: Sequence[bytes],
    ) -> Completion:
        worker = self._current()
        wait = 0.01
        done = dropped = False
        try:
            while True:
                state, body = await worker.run(worker.file.claim, key, flights.owner)
                if state == "lead":
                    break
                if body is None:
                    await unless_stopped(asyncio.sleep(wait))
                    wait = min(2 * wait, 0.25)
                    continue
                try:
                    found = completion_from_json(json.loads(body))
                except (ValueError, RecursionError):  # written by something else; it is no answer
                    await worker.run(worker.file.drop, key)
                    continue
                if not fits(found):
                    if dropped:  # the file keeps it, or others put it back: so it is asked for beside the cache
                        return await ask()
                    dropped = True
                    await worker.run(worker.file.drop, key)
                    continue
                done = True
                return _again(found)
            flights.hold(key, worker)
            kept = await self._of_before(worker, before, fits)
            completion = await ask() if kept is None else _again(kept)
            if (body := _body(completion)) is not None:
                with contextlib.suppress(Closed):  # meanwhile; the answer was paid for, and is handed on
                    await worker.run(worker.file.put, key, flights.owner, body)
                    done = True
            return completion
        finally:
            flights.let_go(key)
            if not done:  # also when this call was cancelled while the claim was on its way
                worker.post(worker.file.release, key, flights.owner)

    async def _of_before(
        self, worker: _Files, keys: Sequence[bytes], fits: Callable[[Completion], bool]
    ) -> Completion | None:
        """What older versions have kept."""
        for key in keys:
            if (body := await worker.run(worker.file.find, key)) is not None:
                with contextlib.suppress(ValueError, RecursionError):  # written by something else
                    if fits(found := completion_from_json(json.loads(body))):
                        return found
        return None

    def _current(self) -> _Files:
        if self._worker.pid == os.getpid():
            return self._worker
        with self._lock:
            if self._worker.pid != os.getpid():  # forked: neither the thread nor the file may be used here
                _left_behind.append(self._worker)
                self._end.detach()
                self._worker = _Files(self._file())
                self._end = weakref.finalize(self, self._worker.close)
        return self._worker

    @property
    def bytes(self) -> int:
        """What the answers take."""
        worker = self._current()
        return worker.run_here(worker.file.measure)[1]

    def __len__(self) -> int:
        worker = self._current()
        return worker.run_here(worker.file.measure)[0]

    def clear(self) -> None:
        """Forget all answers."""
        worker = self._current()
        worker.run_here(worker.file.clear)

    @property
    def closed(self) -> bool:
        """Whether `close` was called."""
        return not self._end.alive

    def close(self) -> None:
        """Finish what is being written and close the file; the cache cannot be used afterwards.

        Answers that are still under way reach those who asked, and are not kept.
        """
        if not self.closed:
            self._end()
            self._worker.join()

    def __repr__(self) -> str:
        return f"Cache({str(self.path)!r})"


def cache_folder() -> Path:
    """The user's cache folder for this library: `TEXTGRAD_CACHE_DIR`, else where the system keeps such things.

    Raises:
        ConfigError: it would be in the home folder, and the user has none.
    """
    return _folder(None)


def _folder(path: str | os.PathLike[str] | None) -> Path:
    named = os.environ.get(FOLDER) or None if path is None else path
    try:
        return _of_the_system() if named is None else Path(named).expanduser().absolute()
    except RuntimeError as error:
        raise ConfigError(
            f"the cache has no place: {str(error).lower().rstrip('.')}; name another folder with llm.caching(path) or "
            f"{FOLDER}"
        ) from None


def _of_the_system() -> Path:
    if sys.platform == "win32":
        base = Path(os.environ.get("LOCALAPPDATA") or Path.home() / "AppData" / "Local")
    elif sys.platform == "darwin":
        base = Path.home() / "Library" / "Caches"
    else:
        given = os.environ.get("XDG_CACHE_HOME", "")
        base = Path(given) if os.path.isabs(given) else Path.home() / ".cache"
    return base / "textgrad_engine"


def open_cache(path: str | os.PathLike[str] | Cache | None, max_bytes: int = DEFAULT_BYTES) -> Cache:
    """The cache in a folder, by default the user's; one object for a folder, as long as somebody uses it.

    Raises:
        ConfigError: the folder cannot be made or written.
    """
    check(open_cache, locals(), at_least(1, "max_bytes"))
    if isinstance(path, Cache):
        return path
    folder = _folder(path)
    with _opening:
        cache = _open.get((folder, max_bytes))
        if cache is None or cache.closed:
            cache = _open[folder, max_bytes] = Cache(folder, max_bytes=max_bytes)
    return cache


class _Flights:
    """The requests of one loop that are under way, and the leases held for them; used on that loop only."""

    def __init__(self) -> None:
        self.owner = new_owner()
        self.futures: dict[bytes, asyncio.Future[Completion | ModelError | None]] = {}
        self._held: set[bytes] = set()
        self._timer: asyncio.TimerHandle | None = None

    def hold(self, key: bytes, worker: _Files) -> None:
        self._held.add(key)
        if self._timer is None:
            self._wait(worker)

    def let_go(self, key: bytes) -> None:
        self._held.discard(key)
        if not self._held and self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _wait(self, worker: _Files) -> None:
        self._timer = asyncio.get_running_loop().call_later(worker.file.lease / 3, self._renew, worker)

    def _renew(self, worker: _Files) -> None:
        worker.post(worker.file.renew, self.owner)
        self._wait(worker)


class _Files(Worker):
    """The thread on which a file is read and written."""

    def __init__(self, file: CacheFile) -> None:
        super().__init__("textgrad_engine-cache", file.close)
        self.file = file


def _body(completion: Completion) -> str | None:
    """A finished answer as JSON; None for one that cannot be kept."""
    if completion.finish_reason not in ("stop", "tool_calls"):
        return None
    try:
        return json.dumps(unsigned(completion.model_dump(mode="json")))
    except (PydanticSerializationError, TypeError, ValueError) as error:  # it was paid for, so it is handed on
        _log.warning("an answer of %r is not cached, because a part of it is no JSON: %s", completion.model, error)
        return None


def _again(completion: Completion) -> Completion:
    saved = completion.usage if completion.saved is None else completion.saved
    took = completion.saved_latency if completion.cached else completion.latency
    return completion.model_copy(
        update={
            "cached": True,
            "saved": saved,
            "saved_latency": took or None,
            "usage": Usage(),
            "attempts": 0,
            "latency": 0.0,
            "unknown": None,
        }
    )


_opening = threading.RLock()
_open: weakref.WeakValueDictionary[tuple[Path, int], Cache] = weakref.WeakValueDictionary()
_left_behind: list[_Files] = []
"""Workers of the process that this one was forked from: closing their files here could disturb that process."""


def _forget() -> None:
    global _opening  # noqa: PLW0603  whoever holds it is not here
    _opening = threading.RLock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget)
