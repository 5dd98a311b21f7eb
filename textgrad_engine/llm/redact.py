"""Taking secrets out of what is written down: keys, tokens, passwords in addresses."""

from __future__ import annotations

import functools
import os
import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from types import TracebackType
from typing import Any

from pydantic import SecretStr

from textgrad_engine.keys import HIDDEN, without_keys
from textgrad_engine.llm.model import Model
from textgrad_engine.signed import unsigned

_FIELD = re.compile(r"(?i)(?:proxy-)?authorization|(?:x-)?api[-_]?key|access[-_]token|client[-_]secret|password")
_TRANSPORTS = ("aiohttp", "anyio", "h11", "httpcore", "httpcore2", "httpx", "httpx2", "openai", "requests", "urllib3")
_VARIABLE = ("_API_KEY", "_TOKEN", "_SECRET", "_PASSWORD")

_LEAST_OF_A_SECRET = 16
"""Characters of one that tell that it is meant; kinds of keys have up to 13 in common."""


def is_secret(held: str) -> bool:
    """Whether what stands where a secret is kept is one, and no word such as "ollama", "disabled" or "not-needed".

    Taken out of a text, a word would garble it. Keys have 20 characters or more, or 8 and a digit among them.

    Example:
        >>> is_secret("not-needed"), is_secret("swordfish-42")
        (False, True)
    """
    return len(held) >= 20 or (len(held) >= 8 and any(each.isdigit() for each in held))


def redacted(value: Any, secrets: Collection[str] = ()) -> Any:
    """A JSON value without what is, or looks like, a secret.

    Taken out are the secrets given; keys by their form (``sk-…``), what follows "Bearer", user and password in an
    address, and what signs it (NOTE [Signed addresses] in `signed`); and the text under a name such as "api_key" or
    "Authorization".

    Args:
        value: text, number, list, dict, …
        secrets: texts to take out wherever they stand.

    Example:
        >>> redacted({"authorization": "x", "url": "http://ann:pw@host/v1", "text": "use sk-0123456789abcdef01"})
        {'authorization': '[redacted]', 'url': 'http://[redacted]@host/v1', 'text': 'use [redacted]'}
    """
    if isinstance(value, str):
        for secret in secrets:
            if secret[:_LEAST_OF_A_SECRET] in value:  # in nearly no text
                value = without_secret(value, secret)
        return without_keys(unsigned(value))
    if value is None or isinstance(value, (int, float)):  # a tuple takes less than a union, and a dict than a Mapping
        return value
    if isinstance(value, dict) or (not isinstance(value, list) and isinstance(value, Mapping)):
        return {
            redacted(key, secrets): HIDDEN
            if isinstance(inside, str) and isinstance(key, str) and _FIELD.fullmatch(key)
            else redacted(inside, secrets)
            for key, inside in value.items()
        }
    if isinstance(value, list | tuple):
        return [redacted(inside, secrets) for inside in value]
    return value


def without_secret(text: str, secret: str, instead: str = HIDDEN) -> str:
    """A text without a secret, and without its first half or more: who quotes the beginning of a text may cut one off.

    Args:
        text: the text.
        secret: the secret.
        instead: what stands in its place then.

    Example:
        >>> without_secret("it begins 'the key 4f9c0d1e2b3a4958776'", "4f9c0d1e2b3a49587766554433221100")
        "it begins 'the key [redacted]'"
    """
    least = min(max(_LEAST_OF_A_SECRET, len(secret) // 2), len(secret))
    begins = secret[:least]
    pieces, done, at = list[str](), 0, text.find(begins)
    while at >= 0:
        length = least
        while length < len(secret) and text.startswith(secret[length], at + length):
            length += 1
        pieces += [text[done:at], instead]
        done = at + length
        at = text.find(begins, done)
    return "".join([*pieces, text[done:]]) if pieces else text


def concealed(key: str | SecretStr | None) -> SecretStr | None:
    """A key in a type that shows it in no repr, and so in no listing of a frame's local variables.

    Raises:
        TypeError: it is of another kind, which is not shown: there may be a key in it.

    Example:
        >>> concealed("sk-0123")
        SecretStr('**********')
    """
    if key is None or isinstance(key, SecretStr):
        return key
    if not isinstance(key, str):
        raise TypeError(f"api_key must be a text, a SecretStr or None, got a value of type {type(key).__name__}")
    return SecretStr(key)


def conceal_frames(error: BaseException) -> None:
    """Take the frames of HTTP packages out of an error's traceback, and out of those of the errors it came from.

    Their local variables hold the headers that are sent, and so the key. What is cancelled while a request is written
    would show it to whatever lists the locals of a traceback: `pytest -l`, rich's tracebacks, error trackers.
    """
    waiting, seen = [error], set[int]()
    while waiting:
        each = waiting.pop()
        seen.add(id(each))
        kept: TracebackType | None = None
        for entry in reversed(list(_entries(each.__traceback__))):
            if entry.tb_frame.f_globals.get("__name__", "").partition(".")[0] not in _TRANSPORTS:
                kept = TracebackType(kept, entry.tb_frame, entry.tb_lasti, entry.tb_lineno)
        each.__traceback__ = kept
        behind = (each.__cause__, each.__context__)
        waiting += [other for other in behind if other is not None and id(other) not in seen]


def secrets_of(model: Model) -> list[str]:
    """The secrets known here, longest first: those that a model holds, and those in the environment by their names."""
    return secrets_named(each.get_secret_value() for each in keys_of(model))


def keys_of(model: Model) -> tuple[SecretStr, ...]:
    """What a model holds as a `SecretStr`, and what the models hold that it is made of."""
    found: list[SecretStr] = []
    waiting: list[tuple[Any, type]] = [(model, type(model))]
    seen = {id(model)}
    while waiting:
        each, kind = waiting.pop()
        if _has_parts(kind):
            parts = tuple(each.values() if isinstance(each, Mapping) else each)
            # Of all at once: a model may keep every request that it was ever asked.
            parts = parts if any(map(_may_hold, set(map(type, parts)))) else ()
        else:
            parts = tuple(getattr(each, "__dict__", {}).values())
        for part, kind in zip(parts, map(type, parts)):
            if not _may_hold(kind):
                continue
            if isinstance(part, SecretStr):
                found.append(part)
            elif id(part) not in seen:
                seen.add(id(part))
                waiting.append((part, kind))
    return tuple(found)


def secrets_named(held: Iterable[str] = ()) -> list[str]:
    """The secrets in the environment by their names, and those `held` by somebody, longest first."""
    names = [name for name in os.environ if name.endswith(_VARIABLE)]  # to read all values takes twice as long
    return secrets_among((*held, *filter(None, map(os.environ.get, names))))


def secrets_among(held: Iterable[str]) -> list[str]:
    """Those of what stands where secrets are kept that are some, longest first.

    Example:
        >>> secrets_among(["ollama", " swordfish-42", "canary-key-0123456789"])
        ['canary-key-0123456789', 'swordfish-42']
    """
    return sorted({secret for each in held if is_secret(secret := each.strip())}, key=_by_length)


def without_password(address: str) -> str:
    """An address without user and password.

    Example:
        >>> without_password("http://ann:pw@localhost:8000/v1")
        'http://localhost:8000/v1'
    """
    before, mark, after = address.partition("://")
    host, slash, path = after.partition("/")
    return before + mark + host.rpartition("@")[2] + slash + path


@functools.lru_cache(maxsize=1024)
def _may_hold(kind: type) -> bool:
    """Whether what is of a type is a key or may hold one.

    A Mock would have a "complete" in each of its parts, without end; its class has none.
    """
    return issubclass(kind, SecretStr | Mapping | list | tuple) or hasattr(kind, "complete")


@functools.lru_cache(maxsize=1024)
def _has_parts(kind: type) -> bool:
    return issubclass(kind, Mapping | list | tuple)


def _entries(traceback: TracebackType | None) -> Iterator[TracebackType]:
    while traceback is not None:
        yield traceback
        traceback = traceback.tb_next


def _by_length(secret: str) -> tuple[int, str]:
    return -len(secret), secret
