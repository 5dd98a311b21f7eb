"""What the containers of modules and those of parameters have in common: the methods of a list, and those of a dict.

Each kind says in which store of a module it keeps its entries, what it takes, and how an entry is read.
"""

from __future__ import annotations

import operator
from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Any, ClassVar, Generic, Self, TypeVar

from textgrad_engine.checks import in_order
from textgrad_engine.nn.module import Module
from textgrad_engine.nn.names import next_number, numbered_anew

T = TypeVar("T")


class Held(Module, Generic[T]):
    """Entries under names of their own, that belong to the module that holds it."""

    _store: ClassVar[str]

    @property
    def _kept(self) -> dict[str, T]:
        """The entries by name, as the module has them."""
        kept: dict[str, T] = vars(self)[self._store]
        return kept

    def _check(self, name: str, entry: T) -> None:
        """Refuse a name that cannot be one, or what is no entry."""
        raise NotImplementedError

    def _hold(self, name: str, entry: T) -> None:
        """Keep an entry under a name; an attribute of that name stays what it is."""
        self._check(name, entry)
        self._kept[name] = entry

    def __len__(self) -> int:
        return len(self._kept)


class Listed(Held[T]):
    """Entries with the shape of a list."""

    def __iter__(self) -> Iterator[T]:
        return iter(self._kept.values())

    def __setitem__(self, index: int, entry: T) -> None:
        self._hold(list(self._kept)[operator.index(index)], entry)

    def __delitem__(self, index: int | slice) -> None:
        named = list(self._kept.items())
        del named[index]
        self._count_anew(named)

    def __iadd__(self, entries: Iterable[T]) -> Self:
        return self.extend(entries)

    def append(self, entry: T) -> Self:
        """Put one at the end."""
        self._hold(next_number(self._kept, len(self)), entry)
        return self

    def extend(self, entries: Iterable[T]) -> Self:
        """Put several at the end."""
        for entry in list(in_order(entries, f"{type(self).__name__}: ")):  # which may be this container
            self.append(entry)
        return self

    def insert(self, index: int, entry: T) -> Self:
        """Put one before the one at a place; the numbers of those behind it go up, names that are none stay."""
        self._check(str(index), entry)
        named = list(self._kept.items())
        named.insert(operator.index(index), ("0", entry))
        self._count_anew(named)
        return self

    def pop(self, index: int = -1) -> T:
        """Take one out and give it; the numbers of those behind it go down, names that are none stay.

        Raises:
            IndexError: there is none at that place.
        """
        entry = list(self)[operator.index(index)]
        del self[index]
        return entry

    def _count_anew(self, named: Iterable[tuple[str, T]]) -> None:
        found = numbered_anew(named)
        self._kept.clear()
        self._kept.update(found)


class Named(Held[T]):
    """Entries with the shape of a dict."""

    def __getitem__(self, name: str) -> T:
        return self._kept[name]

    def __setitem__(self, name: str, entry: T) -> None:
        self._hold(name, entry)

    def __delitem__(self, name: str) -> None:
        del self._kept[name]

    def __contains__(self, name: str) -> bool:
        return name in self._kept

    def __iter__(self) -> Iterator[str]:
        return iter(self._kept)

    def __reversed__(self) -> Iterator[str]:
        return reversed(self._kept)

    def keys(self) -> Iterable[str]:
        """The names."""
        return self._kept.keys()

    def values(self) -> Collection[T]:
        """The entries."""
        return [self[name] for name in self._kept]

    def items(self) -> Collection[tuple[str, T]]:
        """The names with the entries."""
        return [(name, self[name]) for name in self._kept]

    def get(self, name: str, default: Any = None) -> Any:
        """The one of that name, or `default` where there is none."""
        return self[name] if name in self._kept else default

    def update(self, entries: Mapping[str, T] | Iterable[tuple[str, T]]) -> None:
        """Put entries under their names, in the place of those that have them."""
        for name, entry in dict(entries).items():
            self[name] = entry

    def pop(self, name: str) -> T:
        """Take one out and give it.

        Raises:
            KeyError: there is none of that name.
        """
        entry = self[name]
        del self[name]
        return entry

    def clear(self) -> None:
        """Take all out."""
        self._kept.clear()
