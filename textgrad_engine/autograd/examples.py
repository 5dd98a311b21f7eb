"""Names of examples: what is computed belongs to one, and feedback carries the name along."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from contextvars import ContextVar

from textgrad_engine.scoped import setting
from textgrad_engine.wording import told

EXAMPLE: ContextVar[str] = ContextVar("textgrad_engine_example", default="")


class example:  # noqa: N801  a context manager that reads as a word
    """Inside the block, what is computed belongs to this example; feedback carries the name along.

    Example:
        >>> with example("t017"):
        ...     EXAMPLE.get()
        't017'
    """

    def __init__(self, name: str) -> None:
        if not isinstance(name, str):
            raise TypeError(f"example: name must be a text, got {told(name)}")
        self.name = name
        self._before: list[str] = []

    def __enter__(self) -> None:
        self._before.append(EXAMPLE.get())
        EXAMPLE.set(self.name)

    def __exit__(self, *exc: object) -> None:
        EXAMPLE.set(self._before.pop())


class _Numbered(str):
    """A name with the numbers of its places in batches at its end: ``day[2][0]`` is entry 0 of batch 2 of ``day``."""

    __slots__ = ("numbers",)
    numbers: str


def numbered_name(name: str, number: int, *, inside: bool) -> str:
    """The name of one entry of a batch.

    Args:
        name: the name of the example that the batch belongs to; with numbers behind it when it is in batches already.
        number: which entry.
        inside: whether the batch is inside those that the name has numbers of; `vmap` meets an inner batch first, so
            there the numbers of an outer one go before the others.

    Example:
        >>> inner = numbered_name("day", 0, inside=False)
        >>> numbered_name(inner, 2, inside=False), numbered_name(inner, 2, inside=True)
        ('day[2][0]', 'day[0][2]')
    """
    known = name.numbers if isinstance(name, _Numbered) else ""
    numbers = f"{known}[{number}]" if inside else f"[{number}]{known}"
    longer = _Numbered(name.removesuffix(known) + numbers)
    longer.numbers = numbers
    return longer


def entry_name(name: str, own: str) -> str:
    """The name of one entry of a batch whose entries have names of their own; numbers of inner batches stay behind it.

    Args:
        name: the name of the example that the batch belongs to.
        own: that of the entry; "" leaves the name as it is.

    Example:
        >>> entry_name(numbered_name("", 2, inside=False), "t017")
        't017[2]'
    """
    if not own:
        return name
    numbers = name.numbers if isinstance(name, _Numbered) else ""
    longer = _Numbered(own + numbers)
    longer.numbers = numbers
    return longer


def unnumbered(name: str) -> str:
    """The name of an example without the numbers of its places in batches.

    Example:
        >>> unnumbered(entry_name(numbered_name("", 2, inside=False), "t017")), unnumbered("t017[2]")
        ('t017', 't017[2]')
    """
    return name.removesuffix(name.numbers) if isinstance(name, _Numbered) else name


@contextlib.contextmanager
def numbered(number: int) -> Iterator[None]:
    """Inside the block, what is computed belongs to one entry of the innermost batch; see `numbered_name`."""
    with setting(EXAMPLE, numbered_name(EXAMPLE.get(), number, inside=True)):
        yield
