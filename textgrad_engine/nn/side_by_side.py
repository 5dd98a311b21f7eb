"""What a program assigns to itself while its examples are run in threads: each sees what the others put there."""

from __future__ import annotations

import contextlib
import logging
import threading
import weakref
from collections.abc import Iterator
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any

from textgrad_engine.autograd.examples import EXAMPLE
from textgrad_engine.scoped import setting

if TYPE_CHECKING:
    from textgrad_engine.nn.module import Module

_LIBRARY = __name__.partition(".")[0]
_PLAIN = frozenset((str, bytes, int, float, bool))

_log = logging.getLogger("textgrad_engine.nn.side_by_side")
_told: weakref.WeakKeyDictionary[type, set[str]] = weakref.WeakKeyDictionary()


class Assigned:
    """The attributes of modules that were assigned on some examples which are run side by side, and on which first."""

    def __init__(self) -> None:
        self._first: dict[tuple[int, str], tuple[weakref.ref[Module], str]] = {}
        self._lock = threading.Lock()

    def note(self, module: Module, name: str, before: Any, value: Any) -> None:
        """An attribute was assigned; where another example has assigned it, too, the log tells, once for each class.

        What all of them set alike is no mixture, and of a property nobody knows where it keeps what it is given.

        Args:
            module: whose it is.
            name: of the attribute.
            before: what stood there.
            value: what stands there now.
        """
        example, kind = EXAMPLE.get(), type(module)
        if not example or (name.startswith("_") and kind.__module__.partition(".")[0] == _LIBRARY):
            return
        alike = before is value or (type(value) in _PLAIN and type(before) is type(value) and before == value)
        if alike or isinstance(getattr(kind, name, None), property):
            return
        with self._lock:
            known = self._first.setdefault((id(module), name), (weakref.ref(module), example))
            if known[0]() is not module:  # one that is gone had this id
                self._first[id(module), name] = (weakref.ref(module), example)
                return
            told = _told.setdefault(kind, set())
            if known[1] == example or name in told:
                return
            told.add(name)
        _log.warning(
            "%s.%s is assigned while several examples run in threads: each sees what another one put there, so "
            "answers and scores may be mixed up. Keep the values of one call in local variables of forward, and pass "
            "them on as arguments; concurrency=1 runs one example at a time",
            kind.__name__,
            name,
        )


ASSIGNED: ContextVar[Assigned | None] = ContextVar("textgrad_engine_assigned", default=None)
"""Of examples that are run side by side in threads here; None where none are."""


@contextlib.contextmanager
def side_by_side() -> Iterator[None]:
    """Inside the block, examples are run in threads."""
    with setting(ASSIGNED, Assigned()):
        yield
