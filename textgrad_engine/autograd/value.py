"""What a Variable holds: text, numbers, and batches of them, there or still on their way."""

from __future__ import annotations

from collections.abc import Generator
from decimal import Decimal
from numbers import Real
from typing import TYPE_CHECKING, Any, Self, TypeAlias

from textgrad_engine.autograd.other_libraries import NAMES, NotHere
from textgrad_engine.dispatch import Call, note_met
from textgrad_engine.errors import AutogradError
from textgrad_engine.plain_values import as_python, is_flag, of_member
from textgrad_engine.tracebacks import hide
from textgrad_engine.wording import a_class

Scalar: TypeAlias = str | int | float


class Start(str):
    """The text of the gradient that a loss begins with: it has no words, and is no zero (as a tensor's is one).

    It is told from an empty text by its class, so whoever hands the text on, in whatever Variable, hands on the start.
    """

    __slots__ = ()


class LoneEntry(list["Value"]):
    """The entries of a batch in which one says something, and the others are the same empty text.

    What is done for each example of a batch gives such batches, as many as there are examples, so nobody should go
    through all their entries.

    Attributes:
        number: which one.
    """

    __slots__ = ("number",)

    def __init__(self, size: int, number: int, value: Value, nothing: Value) -> None:
        super().__init__([nothing] * size)
        self[number] = value
        self.number = number


class Value:
    """The part of a `Variable` that knows no graph: a value that may still be on its way, and its role.

    It belongs to the layer `_layer` of a transform, where it stands for `_inner` one level below.
    """

    __slots__ = ("__weakref__", "_call", "_data", "_index", "_inner", "_layer", "_role", "_version")
    _call: Call | None
    _data: Any
    _index: int
    _inner: Any
    _layer: Any
    _role: str | None
    _version: int

    @property
    def data(self) -> Any:
        """The value; waits while it is being computed, and raises what the computation raised.

        Do not edit the list of a batch in place, which is an error in a later backward: assign a new one.
        """
        if self._call is None:
            return self._data
        return self._settle()

    @data.setter
    def data(self, value: Any) -> None:
        if self._layer is not None:
            raise AutogradError(
                f"the data of {label_of(self)} cannot be set inside a transform of func, where the value belongs to "
                "one of its levels. Compute a new value, or take one over with v.copy_(other)."
            )
        if isinstance(value, Value):
            value = value.data
        data = checked(value)
        if self._role is None:
            self._role = self.role  # waits, and takes over what was computed; so the new value comes after it
        self._data, self._call = data, None
        self._version += 1

    @property
    def role(self) -> str:
        """What the value is for; waits when only the running computation can tell."""
        if self._role is None and isinstance(self._inner, list):  # one for each example of a `vmap`
            roles = dict.fromkeys(entry.role for entry in self._inner)
            self._role = next(iter(roles)) if len(roles) == 1 else ""
        elif self._role is None and self._layer is not None:
            self._role = self._primal().role
        elif self._role is None:
            self._settle()
        return self._role or ""

    @role.setter
    def role(self, value: str) -> None:
        self._role = as_role(value)

    if not TYPE_CHECKING:  # for type checkers they are not there at all
        locals().update({name: NotHere(here) for name, here in NAMES.items()})

    def __dir__(self) -> list[str]:
        return [name for name in super().__dir__() if name not in NAMES or hasattr(self, name)]

    def done(self) -> bool:
        """Whether the value (or the error instead of it) is there."""
        return self._call is None or self._call.done

    def _settle(self) -> Any:
        call = self._call
        if call is not None:
            try:
                found = call.result()
            except BaseException as error:
                note_met(error)
                hide(error, boundary=__name__)
                raise
            at = 2 * self._index
            data = found[at]  # of a batch each reader takes a copy: its list may be edited in place
            self._data = checked_entries(data) if type(data) is list else data
            if self._role is None:
                self._role = found[at + 1]
            self._call = None  # last: other threads may be reading
        return self._data

    def __await__(self) -> Generator[Any, None, Self]:
        if self._call is not None:
            try:
                yield from self._call.__await__()
                self._settle()
            except BaseException as error:
                note_met(error)
                hide(error, boundary=__name__)
                raise
        return self

    def __str__(self) -> str:
        return str(self.data)

    def __format__(self, spec: str) -> str:
        return format(self.data, spec)

    def __int__(self) -> int:
        return int(self._number(int))

    def __float__(self) -> float:
        return self._number(float)

    def _number(self, kind: type[int | float]) -> float:
        data = self.data
        try:
            return kind(data)
        except (TypeError, ValueError) as error:
            raise type(error)(
                f"{label_of(self)} holds {excerpt(data)}, and {kind.__name__}() makes no number of that; take it out "
                "of the .data, or ask for a field that is a number (response_format=…)"
            ) from None

    def __len__(self) -> int:
        return len(self.data)

    def __contains__(self, item: object) -> bool:
        return (item.data if isinstance(item, Value) else item) in self.data

    def __bool__(self) -> bool:
        return bool(self.data)

    def __eq__(self, other: object) -> bool:
        if isinstance(other, str | int | float | list):
            return bool(self.data == other)
        return NotImplemented  # two of them are one by identity, as in sets and among an optimizer's parameters

    __hash__ = object.__hash__

    def __lt__(self, other: Value | Scalar) -> bool:
        return bool(self.data < _data_of(other))

    def __le__(self, other: Value | Scalar) -> bool:
        return bool(self.data <= _data_of(other))

    def __gt__(self, other: Value | Scalar) -> bool:
        return bool(self.data > _data_of(other))

    def __ge__(self, other: Value | Scalar) -> bool:
        return bool(self.data >= _data_of(other))

    def _shown(self) -> str:
        """The value as a repr shows it: long texts cut, and nothing waits."""
        whole = self._whole()
        if whole._layer is not None:
            return f"<a value for each of {len(whole._inner)} examples>"
        if self._call is not None and not self._call.done:
            return "<pending>"
        if self._call is not None and self._call.failed:
            return "<failed>"
        return excerpt(self.data)

    def _pending(self, edits: bool = True) -> list[Call]:
        """The calls that the value waits for, whether it is computed or not; of a batch, those of all entries.

        Args:
            edits: also those that an edit of the value (in `jvp`) waits for.
        """
        if self._layer is None:
            return [] if self._call is None else [self._call]
        parts = self._inner if edits and isinstance(self._inner, tuple) else self._parts()
        return [call for part in parts if isinstance(part, Value) for call in part._pending(edits)]

    def _says_nothing(self) -> bool:
        """Whether it is empty text, and not the start of a pass; of a batch, whether all entries are."""
        if self._layer is not None:
            return all(part._says_nothing() for part in self._parts())
        data = self._data if self._call is None else self.data
        if type(data) is list:
            return not any(part != "" or type(part) is Start for part in data)
        return data == "" and type(data) is not Start

    def _parts(self) -> list[Self]:
        """What a value of a transform stands for one level below; of a batch the entries, but for empty ones."""
        inner = self._inner
        if type(inner) is LoneEntry:
            return [inner[inner.number]]  # type: ignore[list-item]  # of the same kind as the whole
        return inner if isinstance(inner, list) else [self._primal()]

    def _lowest(self) -> Self:
        """What a value of transforms stands for below all of them; of a value inside `vmap` the first example's."""
        value = self
        while value._layer is not None:
            value = value._inner[0] if isinstance(value._inner, list) else value._primal()
        return value

    def _whole(self) -> Self:
        """What a value of transforms stands for below those that have one for all examples."""
        value = self
        while value._layer is not None and not isinstance(value._inner, list):
            value = value._primal()
        return value

    def _primal(self) -> Self:
        """What a value of a transform stands for one level below."""
        inner: Self = self._inner[0] if isinstance(self._inner, tuple) else self._inner
        assert isinstance(inner, Value)
        return inner


def _data_of(operand: Any) -> Any:
    return operand.data if isinstance(operand, Value) else operand


def excerpt(data: Any) -> str:
    """A value as a repr shows it: long ones cut.

    Example:
        >>> excerpt("x" * 100)
        "'xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx… (100 characters)"
    """
    text = repr(data)
    return text if len(text) <= 80 else f"{text[:60]}… ({len(text) - 2:,} characters)"


def label_of(value: Value) -> str:
    """How messages name a value: its class, and its role where it has one.

    Example:
        >>> from textgrad_engine import Variable
        >>> label_of(Variable("Sort.", role="system prompt")), label_of(Variable("Sort."))
        ("Variable 'system prompt'", 'a Variable without a role')
    """
    role = value._role
    return f"{type(value).__name__} {role!r}" if role else f"{a_class(type(value))} without a role"


def as_role(role: Any) -> Any:
    """The role of a Variable; None, of one that is still being computed, as it is.

    Raises:
        TypeError: it is no text.
    """
    if role is None or type(role) is str:
        return role
    if isinstance(role, str):
        return str.__str__(role)  # of an enum, too, whose name `str` may give
    raise TypeError(f"a role is a text that says what a value is for, got {type(role).__name__}: {role!r:.60}")


def as_flag(given: Any, what: str) -> bool:
    """A flag; a text is none, as ``"no"`` would count as True.

    Raises:
        TypeError: it is neither True nor False.
    """
    if is_flag(given):
        return bool(given)
    raise TypeError(f"{what} is True or False, got {type(given).__name__} {given!r:.40}")


def checked(data: Any) -> Any:
    """The data of a Variable, a batch as a copy; numbers and arrays of other libraries as Python's own.

    Raises:
        TypeError: it is no text, number, or list of these.
        ValueError: a text holds a lone surrogate; the position is named.

    Example:
        >>> from fractions import Fraction
        >>> checked(["a", Fraction(1, 2)])
        ['a', 0.5]
    """
    kind = type(data)
    if kind is str:
        if not data.isascii():
            _check_text(data)
        return data
    if kind is int or kind is float or kind is bool:
        return data
    if kind is list:
        return checked_entries(data)
    found = _as_data(data)
    if isinstance(found, str):
        _check_text(found)
    elif isinstance(found, list):
        return checked_entries(found)
    elif not isinstance(found, int | float):
        leaf = (
            "; its value is its .data, and nn.Parameter(...) of it is a leaf of its own"
            if isinstance(data, Value)
            else ""
        )
        raise TypeError(
            f"a Variable holds a string, a number, or a list of either, got {kind.__name__}: {data!r:.60}{leaf}"
        )
    return found


def checked_entries(entries: list[Any]) -> list[Any]:
    """A copy of a batch, also of batches inside it.

    Raises:
        TypeError: an entry is no text or number.
        ValueError: a text holds a lone surrogate.
    """
    checked: list[Any] = []
    for given in entries:
        item = given if type(given) in _OWN else _as_data(given)
        if type(item) is list:
            checked.append(checked_entries(item))
            continue
        if not isinstance(item, str | int | float):
            raise TypeError(f"a batch holds strings or numbers, got {type(given).__name__}: {given!r:.60}")
        if isinstance(item, str) and not item.isascii():
            _check_text(item)
        checked.append(item)
    return checked


_OWN = frozenset({str, int, float, bool, list})


def _as_data(value: Any) -> Any:
    """Python's own for a number, an array or a column of another library; the rest as it is."""
    value = as_python(value)
    if type(value) in _OWN:
        return value
    if isinstance(value, str | int | float):
        return of_member(value)
    return float(value) if isinstance(value, Real | Decimal) else value


def shape_of(data: Any) -> Any:
    """The shape of a batch: a list with None for each text, a shape for each batch in it; None for a single value."""
    return [shape_of(entry) for entry in data] if isinstance(data, list) else None


def _check_text(text: str) -> None:
    try:
        text.encode("utf-8")
    except UnicodeEncodeError as error:
        raise ValueError(
            f"the text has a lone surrogate (U+{ord(text[error.start]):04X}) at position {error.start}: no endpoint "
            "accepts it. Decode the source with errors='replace', or remove the character."
        ) from None
