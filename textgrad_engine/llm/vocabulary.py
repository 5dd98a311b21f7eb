"""tiktoken's vocabularies: found on this disk, else fetched once within a short deadline, else done without.

NOTE [When a vocabulary is fetched]
    Only when somebody counts for a model by name, that model's vocabulary is one of `_VOCABULARIES`, and it is not on
    this disk. The library itself counts so in one case: an endpoint does not say what an answer used. Then a public
    file is asked for at the address that tiktoken itself uses; nothing of the user's goes with it. It is tried once for
    a process and a vocabulary, on a daemon thread, and waited for `DEADLINE` seconds in all. What has been decided
    holds until the process ends, so that numbers do not change in the middle of a run; a file that comes later is put
    where tiktoken keeps it, for the next process. A file with a wrong digest is not used. Nothing is fetched while
    `NO_FETCH` is set in the environment, while `REFUSE_REQUESTS` is (in tests), or where tiktoken may keep no files.
"""

from __future__ import annotations

import asyncio
import functools
import hashlib
import http.client
import logging
import os
import tempfile
import threading
import time
import urllib.error
import urllib.request
from concurrent.futures import Future
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from textgrad_engine.llm import loops
from textgrad_engine.llm.loading import loading
from textgrad_engine.llm.replace_file import move
from textgrad_engine.llm.transport import is_loopback, is_refused

NO_FETCH = "TEXTGRAD_ENGINE_NO_FETCH"
"""The environment variable that forbids to fetch vocabularies while it is set to anything but "" and "0"."""

DEADLINE = 2.0
"""Seconds that a process waits in all for a vocabulary that is not on its disk."""

# tiktoken's own file names and digests: it fetches the file anew, without a timeout, when the digest does not match.
_VOCABULARIES = {
    "o200k_base": "446a9538cb6c348e3516120d7c08b09f57c36495e2acfffe59a5bf8b0cfb1a2d",
    "cl100k_base": "223921b76ee99bde995b7ff738513eef100fb51d18c93597a113bcffe865b2a7",
}
_HOME = "https://openaipublic.blob.core.windows.net/encodings/"
_SOURCE = _HOME

_STALLED = 10.0
"""Seconds without a byte after which a download is given up."""

_LONGEST = 120.0
"""Seconds after which it is given up in any case."""

_LARGEST = 16_000_000
"""Bytes above which it is given up; the largest vocabulary has 3.6 million."""

_log = logging.getLogger("textgrad_engine.llm.vocabulary")


@dataclass(frozen=True)
class _Attempt:
    """A vocabulary on its way.

    Attributes:
        found: its encoding, or None when it cannot be had.
        until: when nobody waits for it any more; None for one that is only read from this disk.
    """

    until: float | None
    found: Future[Any] = field(default_factory=Future)

    @property
    def left(self) -> float | None:
        return None if self.until is None else max(0.0, self.until - time.monotonic())


_lock = threading.Lock()
_decided: dict[str, Any] = {}
_attempts: dict[str, _Attempt] = {}


def encoding_of(model: str) -> Any:
    """The encoding of tiktoken for a model, or None where it is not to be had: then tokens are estimated.

    Where an event loop runs on this thread, nothing is waited for: what is not on this disk counts as not to be had
    from then on, unless `settled` was awaited before. See NOTE [When a vocabulary is fetched].

    Args:
        model: the model's name, with or without a provider before it.
    """
    name = vocabulary_of(model)
    if name is None:
        return None
    if name in _decided:
        return _decided[name]
    if _whole(name):
        return _decide(name, _loaded(name))
    attempt = _begin(name)
    if attempt is None or loops.is_running():
        return _decide(name, None)
    try:
        found = attempt.found.result(attempt.left)
    except TimeoutError:
        found = None
        _log_late(name)
    return _decide(name, found)


async def settled(model: str) -> bool:
    """Whether there is an encoding for a model; waits for it as long as `encoding_of` does, without holding the loop.

    Args:
        model: the model's name.
    """
    name = vocabulary_of(model)
    if name is None:
        return False
    if name not in _decided:
        attempt = _begin(name)
        _decide(name, None if attempt is None else await _awaited(name, attempt))
    return _decided[name] is not None


@functools.lru_cache(maxsize=256)
def vocabulary_of(model: str) -> str | None:
    """The name of the vocabulary that a model reads by, where it is one of OpenAI's that are known here.

    Example:
        >>> vocabulary_of("openai/gpt-5-mini"), vocabulary_of("llama3.2")
        ('o200k_base', None)
    """
    with loading():
        import tiktoken.model  # heavy (40 ms with its package); only where tokens are counted for a model

    try:
        name = tiktoken.model.encoding_name_for_model(model.rpartition("/")[2])
    except KeyError:
        return None
    return name if name in _VOCABULARIES else None


def _decide(name: str, found: Any) -> Any:
    """What holds for this process: what was decided first."""
    with _lock:
        return _decided.setdefault(name, found)


def _begin(name: str) -> _Attempt | None:
    """The one attempt to get a vocabulary; None where it is neither on this disk nor may be fetched."""
    if (attempt := _attempts.get(name)) is not None:
        return attempt
    on_disk = _whole(name)
    if not on_disk and not _may_fetch():
        return None
    with _lock:
        attempt = _attempts.get(name)
        if attempt is None:
            attempt = _attempts[name] = _Attempt(None if on_disk else time.monotonic() + DEADLINE)
            attempt.found.set_running_or_notify_cancel()  # who waits may give up, and that must not end it
            # A daemon: neither a download that hangs nor a slow one may keep the interpreter from ending.
            threading.Thread(target=_get, args=(name, attempt), name=f"vocabulary {name}", daemon=True).start()
    return attempt


def _get(name: str, attempt: _Attempt) -> None:
    try:
        if not _whole(name):
            _fetch(name)
        attempt.found.set_result(None if name in _decided else _loaded(name))
    except (OSError, http.client.HTTPException, ValueError) as error:
        _log.info("the vocabulary %s cannot be fetched, tokens are estimated: %s", name, error)
        attempt.found.set_result(None)
    except BaseException as error:  # it is that of who waits
        attempt.found.set_exception(error)


async def _awaited(name: str, attempt: _Attempt) -> Any:
    waiting = asyncio.wrap_future(attempt.found)
    done, _ = await asyncio.wait([waiting], timeout=attempt.left)
    if done:
        return waiting.result()
    waiting.cancel()  # the attempt goes on, and must not call a loop that is closed by then
    _log_late(name)
    return None


def _log_late(name: str) -> None:
    _log.info("the vocabulary %s did not come within %g s, tokens are estimated", name, DEADLINE)


def _fetch(name: str) -> None:
    """Put a vocabulary where tiktoken keeps it.

    Raises:
        OSError: it cannot be had, or not be kept.
        http.client.HTTPException: what came is no HTTP.
        ValueError: what came is not the vocabulary.
    """
    content = _download(f"{_SOURCE}{name}.tiktoken")
    if not _is_vocabulary(content, name):
        raise ValueError(f"{_SOURCE} sent {len(content)} bytes that are not the vocabulary")
    file = _file(name)
    if file is None:
        raise OSError("tiktoken may keep no files")
    file.parent.mkdir(parents=True, exist_ok=True)
    # The folder may be anybody's: a name that can be guessed could be a link that leads elsewhere.
    with tempfile.NamedTemporaryFile(dir=file.parent, suffix=".part", delete=False) as partial:
        partial.write(content)
    try:
        move(partial.name, file)
    finally:
        Path(partial.name).unlink(missing_ok=True)


def _download(url: str) -> bytes:
    local = is_loopback(urlsplit(url).hostname or "")  # no proxy reaches this machine's own servers
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({} if local else None))
    until = time.monotonic() + _LONGEST
    content = bytearray()
    try:
        response = opener.open(url, timeout=_STALLED)
    except urllib.error.HTTPError as error:
        error.close()  # it is the response, too, and holds the connection
        raise
    with response:
        while part := response.read1(1 << 16):
            content += part
            if len(content) > _LARGEST:
                raise ValueError(f"{url} sent more than {_LARGEST:,} bytes")
            if time.monotonic() > until:
                raise TimeoutError(f"{url} took longer than {_LONGEST:g} s")
    return bytes(content)


def _may_fetch() -> bool:
    if _file("") is None or os.environ.get(NO_FETCH, "") not in ("", "0"):
        return False
    return not is_refused(urlsplit(_SOURCE).hostname or "")


def _loaded(name: str) -> Any:
    with loading():
        import tiktoken  # heavy; its file is there and whole, so that it will not download one

        return tiktoken.get_encoding(name)


def _whole(name: str) -> bool:
    file = _file(name)
    try:
        return file is not None and _is_vocabulary(file.read_bytes(), name)
    except OSError:
        return False


def _is_vocabulary(content: bytes, name: str) -> bool:
    return hashlib.sha256(content).hexdigest() == _VOCABULARIES[name]


def _file(name: str) -> Path | None:
    """Where tiktoken keeps a vocabulary; None where it is told to keep none."""
    named = os.environ.get("TIKTOKEN_CACHE_DIR", os.environ.get("DATA_GYM_CACHE_DIR"))
    if named == "":
        return None
    folder = Path(tempfile.gettempdir(), "data-gym-cache") if named is None else Path(named)
    return folder / hashlib.sha1(f"{_HOME}{name}.tiktoken".encode(), usedforsecurity=False).hexdigest()


def _forget() -> None:
    global _lock  # noqa: PLW0603  a forked child has neither the threads nor whoever held the lock
    _lock = threading.Lock()
    _attempts.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget)
