"""What the answers of a table are, for ``textgrad-engine init``: a text, or the fields of a JSON object."""

from __future__ import annotations

import ast
import functools
import json
import math
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from textgrad_engine.cli.config_data import not_compared
from textgrad_engine.data.overlap import letters_in
from textgrad_engine.ops.alike import plain
from textgrad_engine.ops.evaluators import written
from textgrad_engine.ops.extract import last_match
from textgrad_engine.report.printing import is_harmless
from textgrad_engine.report.words import plural
from textgrad_engine.slots import slots_of

LABELS = 20
"""An answer with no more values than this, each twice at least, is taken for a choice among them."""

LONG = 60
"""Characters above which answers are seldom the same to the letter, as `letters_in` counts them."""

_WHOLE = re.compile(r"-?(?:0|[1-9][0-9]*)")
_NUMBER = re.compile(rf"{_WHOLE.pattern}(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?")


def can_be_listed(label: str) -> bool:
    """Whether a prompt can name an answer in a line with others."""
    return bool(label) and all(map(is_harmless, label)) and not slots_of(label)


@dataclass(frozen=True)
class Final:
    """A way to mark the answer behind the reasoning for it.

    Attributes:
        pattern: finds the answer.
        words: how an answer is to end, for the first prompt.
    """

    pattern: str
    words: str


_FINALS = (
    Final("#### (.*)", 'a line "#### " and the answer alone'),
    Final(r"\\boxed\{(.*)\}", r"the answer alone in \boxed{}"),
)
"""As GSM8K (arXiv 2110.14168) and MATH (arXiv 2103.03874) have them."""


@dataclass(frozen=True)
class Answer:
    """One of the answers that an example has.

    Attributes:
        name: what it is called: the column, or the field of the objects in it.
        column: the column that it is in.
        values: what it is in each row.
    """

    name: str
    column: str
    values: tuple[Any, ...]

    @property
    def labels(self) -> list[str]:
        """The values that it is a choice among, as far as they can be listed; empty where it is none."""
        times = self.times
        if not times or len(times) > LABELS or min(times.values()) == 1:
            return []
        return sorted(times) if all(map(can_be_listed, times)) else []

    @functools.cached_property
    def times(self) -> Counter[str]:
        """How often each value is there that exact match tells from others."""
        return Counter(plain(written(value)) for value in self.values if value is not None and not not_compared(value))

    @property
    def parts(self) -> Answer | None:
        """What stands in the lists that the answers are; None where some are none."""
        known = [value for value in self.values if value is not None]
        if not known or not all(isinstance(value, list) for value in known):
            return None
        return Answer(self.name, self.column, tuple(part for value in known for part in value))

    @property
    def are_criteria(self) -> bool:
        """Whether what stands in the place of an answer is what is asked of one, as in HealthBench.

        A whole column is; the field of an object may have such values as an answer has them.
        """
        parts = self.parts if self.name == self.column else None
        return parts is not None and all(isinstance(each, dict) and "criterion" in each for each in parts.values)

    @property
    def final(self) -> Final | None:
        """How all of them mark the answer behind its reasoning; None where some do not."""
        texts = [value if isinstance(value, str) else "" for value in self.values if value is not None]
        marked = [each for each in _FINALS if texts and all(last_match(each.pattern, text) for text in texts)]
        return marked[0] if marked else None

    @property
    def metric(self) -> dict[str, Any]:
        """What scores by such values, as keys of a [metric] table."""
        if self.are_criteria:
            return {"name": "rubric"}
        if self.final is not None:
            return {"name": "exact_match", "pattern": self.final.pattern}
        found = [value for value in self.values if not_compared(value)]
        if not found:
            return {"name": "exact_match"}
        parts = [part for value in found for part in (value if isinstance(value, list) else [value])]
        return {"name": "json_match", "any_order": True if parts and not any(map(not_compared, parts)) else None}

    @property
    def is_long(self) -> bool:
        """Whether it is seldom the same to the letter."""
        lengths = sorted(letters_in(str(value)) for value in self.values)
        return lengths[len(lengths) // 2] > LONG

    def schema(self, *, texts_alone: bool) -> dict[str, Any]:
        """The JSON schema of such values, without null in lists of values, which TOML cannot write.

        Args:
            texts_alone: whether the table has nothing but texts, as a CSV: those of numbers are taken for numbers.

        Example:
            >>> Answer("amount", "amount", ("12", "7.50")).schema(texts_alone=True)
            {'type': 'number'}
            >>> Answer("queue", "queue", ("a", "b", "a", "b", None)).schema(texts_alone=False)
            {'type': ['string', 'null']}
        """
        known = [value for value in self.values if value is not None]
        if any(map(not_compared, known)):
            return _nested(self.values)
        types = sorted({_type_of(value, texts_alone=texts_alone) for value in known})
        if types == ["integer", "number"]:
            types = ["number"]
        elif texts_alone and len(types) > 1:  # a text among numbers
            types = ["string"]
        if len(known) < len(self.values):
            types.append("null")
        if types == ["string"] and len(labels := self.labels) > 1:
            return {"type": "string", "enum": labels}
        return {"type": types[0] if len(types) == 1 else types}


def _nested(values: Sequence[Any]) -> dict[str, Any]:
    """The JSON schema of lists and objects; where there are other values among them, the types alone."""
    known = [value for value in values if value is not None]
    kinds: dict[type, str] = {list: "array", dict: "object"}
    if not all(isinstance(value, type(known[0])) for value in known):
        types = sorted({kinds.get(type(value)) or _type_of(value, texts_alone=False) for value in known})
        return {"type": [*types, "null"] if len(known) < len(values) else types}
    if isinstance(known[0], list):
        inside = [each for value in known for each in value]
        found: dict[str, Any] = {"type": "array", "items": _form_of(inside)}
    else:
        names = list(dict.fromkeys(name for value in known for name in value))
        found = {
            "type": "object",
            "required": [name for name in names if all(name in value for value in known)],
            "additionalProperties": False,
            "properties": {name: _form_of([value[name] for value in known if name in value]) for name in names},
        }
    return {**found, "type": [found["type"], "null"]} if len(known) < len(values) else found


def _form_of(values: Sequence[Any]) -> dict[str, Any]:
    return Answer("", "", tuple(values)).schema(texts_alone=False) if values else {"type": "string"}


def _type_of(value: Any, *, texts_alone: bool) -> str:
    if isinstance(value, bool):
        return "boolean"
    text = value if texts_alone and isinstance(value, str) else "" if isinstance(value, str) else written(value)
    if not _NUMBER.fullmatch(text) or not math.isfinite(float(text)):  # larger ones are no numbers when they are read
        return "string"
    return "integer" if _WHOLE.fullmatch(text) else "number"


@dataclass(frozen=True)
class Answers:
    """What the right answer of each example is.

    Attributes:
        columns: the columns that hold it.
        each: the answers; one for a text, else one for each field of the JSON object.
        fields: whether they are fields.
        texts_alone: whether the table has nothing but texts.
    """

    columns: tuple[str, ...]
    each: tuple[Answer, ...]
    fields: bool
    texts_alone: bool = False

    @property
    def of_columns(self) -> bool:
        """Whether each field has a column of its own."""
        return len(self.columns) > 1

    @property
    def schema(self) -> dict[str, Any]:
        """The form of the JSON object."""
        return {
            "type": "object",
            "required": [each.name for each in self.each],
            "additionalProperties": False,
            "properties": {each.name: each.schema(texts_alone=self.texts_alone) for each in self.each},
        }

    def remarks(self) -> Iterator[str]:
        """What is to be known of it, in sentences."""
        if not self.fields and self.each[0].metric["name"] == "exact_match":
            yield from _of_texts(self.each[0])
        whole = [each for each in self.each if each.metric["name"] == "json_match"]
        if whole and self.fields:
            names = ", ".join(repr(each.name) for each in whole)
            yield (
                f"Of {names} the whole value must be right (json_match); with graded = true beside it the part that is "
                "right counts."
            )
        criteria = [each for each in self.each if each.are_criteria]
        for each in criteria:
            yield f"{each.column!r} has criteria, and a judge says of each whether an answer meets it (rubric)."
        final = [each for each in self.each if each.final is not None]
        for each in final:
            assert each.final is not None
            yield f"What {each.column!r} has behind its reasoning is compared: see pattern in [metric] of config.toml."
        if any(each.is_long for each in self.each if each not in (*whole, *criteria, *final)):
            yield "Exact match wants an answer to the letter, and these are long: see [metric] in config.toml."


def _of_texts(answer: Answer) -> Iterator[str]:
    """What is to be known of answers that are texts, in sentences."""
    if empty := sum(not str(value).strip() for value in answer.values):
        yield (
            f"In {plural(empty, 'row')} the column {answer.column!r} is empty. No model answers with nothing, so they "
            "would never be right: write what is expected, or take them out."
        )
    if any(_is_by_python(value) for value in answer.values):
        yield (
            f"{answer.column!r} has lists or objects as Python's str() writes them, and is taken for text; as "
            "json.dumps() writes them, init sees what is in them."
        )


def _is_by_python(text: Any) -> bool:
    """Whether a text is what Python shows of a list or an object, and no JSON, as tables have it that it wrote."""
    if not isinstance(text, str) or text.lstrip()[:1] not in ("[", "{") or object_in(text) is not None:
        return False
    try:
        return isinstance(ast.literal_eval(text.strip()), list | dict)
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        return False


def object_in(text: Any) -> dict[str, Any] | list[Any] | None:
    """The JSON object, or list, that a text is; None where it is none."""
    try:
        found = json.loads(text) if isinstance(text, str) else None
    except (ValueError, RecursionError):
        return None
    return found if isinstance(found, dict | list) else None
