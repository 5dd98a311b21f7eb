"""What tells one answer from another: the key under which the cache keeps it.

Note [what a key covers]. Everything that can change an answer: the endpoint's address, the model's name, the whole
request with the model's defaults filled in, and which sample of the request is wanted (`repeat`). Settings that are
None are left out, so a setting added to the library later does not change old keys. The order of fields in a schema, a
tool or a content part counts, as models write and read them in that order.

Images and the like have addresses without what signs them (`signed`): signed anew, they are the same. Texts are what
they are, letter by letter.

Note [who may be cached]. A model with a `base_url` (an endpoint), and one of one's own that has a `cache_key`: a text
that changes whenever its answers could. Two functions may share one name, so nothing else tells them apart.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import threading
from collections.abc import Iterator
from contextvars import ContextVar
from typing import Any

from pydantic_core import PydanticSerializationError

from textgrad_engine.blocks import block
from textgrad_engine.checks import whole
from textgrad_engine.errors import RequestRefused, UnsendableRequest
from textgrad_engine.llm.as_json import asked_of
from textgrad_engine.llm.attachments import unsigned_parts
from textgrad_engine.llm.charged import mark
from textgrad_engine.llm.check import no_text_at, surrogate_in
from textgrad_engine.llm.model import Model, Wrapper, innermost
from textgrad_engine.llm.redact import without_password
from textgrad_engine.llm.request import GenerateConfig, Request
from textgrad_engine.scoped import setting


@block
@contextlib.contextmanager
def repeat(index: int | None = None) -> Iterator[None]:
    """Inside the block, equal requests count as further samples for the cache: n samples of one request are n requests.

    Args:
        index: which sample of each request is wanted. 0 is the same as without such a block. None numbers equal
            requests as they come: the first is sample 0, an equal one after it sample 1, and so on. A script that does
            the same again gets the same samples.

    Blocks nest: sample 2 of an evaluation whose program asks for 3 samples has three of its own. Where one without an
    index is around one with it, equal requests of each index are counted by themselves, so their order does not matter.

    Example:
        >>> with repeat(2), repeat(0), repeat(1):
        ...     sample_number(b"key")
        (2, 0, 1)
    """
    if index is not None:
        whole("the index of a repeat", index, 0)
    with _numbering(_Counter() if index is None else index):
        yield


def sampling_apart() -> setting[tuple[int | _Counter, ...]]:
    """As ``repeat()``, but at temperature 0 equal requests stay one: nobody means another answer there."""
    return _numbering(_Counter(at_zero=False))


def _numbering(each: int | _Counter) -> setting[tuple[int | _Counter, ...]]:
    return setting(_repeats, (*_repeats.get(), each))


def sample_number(base: bytes, temperature: float | None = None) -> tuple[int, ...]:
    """Which sample of a request is wanted here, one number for each `repeat` block, last zeros left out.

    Args:
        base: the key of the request without it.
        temperature: of the request; None where that is left to the endpoint.
    """
    known = _known_sample.get()
    if known is not None and known[0] == base:
        return known[1]
    numbers: list[int] = []
    repeats = _repeats.get()
    for place, each in enumerate(repeats, 1):
        if isinstance(each, int):
            numbers.append(each)
        elif temperature != 0 or each.at_zero:
            # Those that are numbered by hand further inside are no equals, whichever of them comes first.
            inside = [number for number in repeats[place:] if isinstance(number, int)]
            numbers.append(each.next(base + repr(numbers).encode() + (repr(inside).encode() if inside else b"")))
        else:
            numbers.append(0)
    while numbers and numbers[-1] == 0:
        numbers.pop()
    return tuple(numbers)


def as_sample(base: bytes, number: tuple[int, ...]) -> setting[tuple[bytes, tuple[int, ...]] | None]:
    """Inside the block, the request of that key is this sample, and is not numbered once more."""
    return setting(_known_sample, (base, number))


def identity_of(model: Model) -> dict[str, Any] | None:
    """What tells a model's answers from another's, besides the request; None when nothing does."""
    core = innermost(model)
    address, own = getattr(core, "base_url", None), getattr(core, "cache_key", None)
    if address is None and own is None:
        return None
    found: dict[str, Any] = {"model": core.name}
    if address is not None:
        found["endpoint"] = without_password(str(address))
    if own is not None:
        found["cache_key"] = str(own)
    return found


def keys_of(model: Model, request: Request) -> list[bytes]:
    """The keys under which an answer may be: SHA-256 of everything that can change it.

    The first is that under which it is kept. Where an image has a signed address, there is a second one, under which
    versions of before have kept it: that of the whole address.

    Raises:
        RequestRefused: a setting in `extra` cannot be written as JSON, so it cannot be part of a key.
        UnsendableRequest: a message holds what is no text.
    """
    return keys_of_sample(*sample_of(model, request))


def keys_of_sample(bases: list[bytes], number: tuple[int, ...]) -> list[bytes]:
    """The keys of a sample, as `sample_of` gives it."""
    return [hashlib.sha256(base + repr(number).encode()).digest() if number else base for base in bases]


def sample_of(model: Model, request: Request) -> tuple[list[bytes], tuple[int, ...]]:
    """The keys of a request without the sample, and which sample of it is wanted here (`sample_number`).

    Raises:
        RequestRefused: a setting in `extra` cannot be written as JSON, so it cannot be part of a key.
        UnsendableRequest: a message holds what is no text.
    """
    config = request.config
    each = model
    while True:
        defaults = getattr(each, "defaults", None)
        if isinstance(defaults, GenerateConfig):
            config = config.over(defaults)
        if not isinstance(each, Wrapper):
            break
        each = each.inner
    try:
        asked = asked_of(request, config)
        identity, forms = identity_of(model), [unsigned_parts(asked), asked]
        bases = [
            hashlib.sha256(json.dumps({"identity": identity, "request": form}).encode()).digest()
            for form in (forms if forms[0] != asked else forms[:1])
        ]
    except (PydanticSerializationError, TypeError, ValueError) as error:
        if (where := surrogate_in(request)) is not None:
            raise mark(UnsendableRequest(no_text_at(where)), sent=False) from None
        raise mark(
            RequestRefused(f"this request has no cache key, because a part of it is no JSON: {error}"), sent=False
        ) from None
    return bases, sample_number(bases[0], config.temperature)


class _Counter:
    """Numbers equal requests as they come; with `at_zero`, those at temperature 0, too."""

    def __init__(self, *, at_zero: bool = True) -> None:
        self.at_zero = at_zero
        self._lock = threading.Lock()
        self._seen: dict[bytes, int] = {}

    def next(self, base: bytes) -> int:
        with self._lock:
            number = self._seen.get(base, 0)
            self._seen[base] = number + 1
        return number


_repeats: ContextVar[tuple[int | _Counter, ...]] = ContextVar("textgrad_engine_repeats", default=())
_known_sample: ContextVar[tuple[bytes, tuple[int, ...]] | None] = ContextVar(
    "textgrad_engine_known_sample", default=None
)
"""Of the request of a key, which sample it is, where that is known before it comes to a cache."""
