"""The tables of a config file, but for those of models (`model_tables`): their keys, types and ranges."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Annotated, Any, Literal, TypeAlias

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Discriminator,
    Field,
    PlainSerializer,
    Tag,
    WrapValidator,
)

from textgrad_engine.ops.criteria import without_floors
from textgrad_engine.ops.extract import check_pattern
from textgrad_engine.ops.images import MOST_IMAGES
from textgrad_engine.slots import composed
from textgrad_engine.train.guarded import RERUNS


class Section(BaseModel):
    """A table: frozen, and strict about names and types."""

    # What checks a table is built when the first one is read: `--help` and shells that complete read none.
    model_config = ConfigDict(strict=True, extra="forbid", frozen=True, allow_inf_nan=False, defer_build=True)


_Column = Annotated[str, AfterValidator(composed)]


def json_value(value: object) -> object:
    """A value of a file that can be sent as JSON.

    Raises:
        ValueError: some part of it cannot be.
    """
    for path, each in _leaves(value):
        if not isinstance(each, str | int | float | None) or (isinstance(each, float) and not math.isfinite(each)):
            at = f"{'.'.join(map(str, path))} is {each}" if path else f"it is {each}"
            raise ValueError(f"{at}, which JSON has no word for; write it as text, in quotes, or take it out")
    return value


def _leaves(value: object, path: tuple[object, ...] = ()) -> Iterator[tuple[tuple[object, ...], object]]:
    if not isinstance(value, dict | list):
        yield path, value
        return
    for key, below in value.items() if isinstance(value, dict) else enumerate(value):
        yield from _leaves(below, (*path, key))


def _form(value: object) -> object:
    json_value(value)
    if value is None or (isinstance(value, str | dict) and value):
        return value
    raise ValueError('should be "module:Class", the name of a file with a JSON schema, or a table that is one')


def _tools(value: object) -> object:
    json_value(value)
    if value is None or (isinstance(value, str) and value):
        return value
    if isinstance(value, list) and value and {type(each) for each in value} in ({str}, {dict}):
        return value
    raise ValueError(
        'should be a list of functions ["module:function"], the name of a file with a JSON list of descriptions, or '
        "tables that are these"
    )


def _train_tools(value: object) -> object:
    if value is None or isinstance(value, bool) or value == "arguments":
        return value
    raise ValueError('should be true, false or "arguments"')


class Program(Section):
    """What is optimized: ``system`` (or ``system_file``) and ``user``, or ``class`` = ``"module:Class"``.

    `response_format` holds the answers to the first kind to a form: a class as ``"module:Class"``, a file with a JSON
    schema, or a table that is one. `tools` are what its model may call: functions as ``"module:function"``, which are
    run, until the model was asked ``max_turns`` times; or descriptions, whose calls are the answer. `train_tools` has
    what the model is told of them trained, too: what they do, or that and what is told of their arguments.
    """

    system: str | None = None
    system_file: str | None = None
    user: str | None = None
    response_format: Annotated[Any, AfterValidator(_form)] = None
    tools: Annotated[Any, AfterValidator(_tools)] = None
    train_tools: Annotated[Any, AfterValidator(_train_tools)] = None
    max_turns: int | None = Field(default=None, ge=1)
    class_: str | None = Field(default=None, alias="class")

    @property
    def system_key(self) -> str:
        """The key that gives the system prompt."""
        return "system" if self.system_file is None else "system_file"


class Data(Section):
    """The files of examples, and columns: of the answer, of what people noted, and of what says which belong together.

    Without ``val`` the training examples validate, too. What ``images`` names are columns with the paths or addresses
    of images, and ``image_detail`` is how closely models look at them.
    """

    train: str
    val: str | None = None
    test: str | None = None
    target: _Column = "target"
    notes: _Column | None = None
    clusters: _Column | None = None
    images: list[_Column] = []
    image_detail: Literal["auto", "low", "high"] | None = None


def _path(value: object) -> object:
    steps = value if isinstance(value, list) else [value]
    if value is None or (steps and all(isinstance(step, str | int) and not isinstance(step, bool) for step in steps)):
        return value
    raise ValueError(
        'should be the name of a field, or of one that is further in, a list such as ["people", 0, "name"]'
    )


def _text_or_number(value: object) -> object:
    number = isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
    if value is None or isinstance(value, str) or number:
        return value
    raise ValueError("should be a text or a number")


def _pattern(value: str | None) -> str | None:
    if value is not None:
        check_pattern(value)
    return value


def _as_written(value: Any, checked: Callable[[Any], float]) -> float:
    number = checked(value)
    return value if isinstance(value, int) else number


_Number = Annotated[float, WrapValidator(_as_written), PlainSerializer(lambda number: number, return_type=Any)]
"""A number that stays whole where it is written so, and in run folders: a judge who is told of 5.0 marks by halves."""


class Metric(Section):
    """The score: a ``name``, or a ``function`` = ``"module:function"`` with its ``purpose`` in words.

    A function may also be a loss of the user's own, an `nn.Module` or its class, which is given all that the program
    gave, and has no purpose.

    A judge or a function may have a ``scale``, the lowest and the highest score. `field` is the part of the answer that
    is scored, or the last that a regular expression matches, `pattern`, and `default` stands for it where the answer
    lacks it. Of several metrics each may have a `weight`, a
    `floor` under its mean, and a `target`, the column of its own right answer. A judge, also one of a rubric, which has
    ``criteria``, is shown ``images`` of an example's images at most. Of a match of JSON, with ``any_order`` the order
    of lists does not count, and with ``graded`` the part of its values that are right is the score.
    """

    name: Literal["exact_match", "json_match", "judge", "rubric"] | None = None
    function: str | None = None
    purpose: str | None = None
    instructions: str | None = None
    criteria: list[Any] | None = None
    scale: list[_Number] | None = Field(default=None, min_length=2, max_length=2)
    field: Annotated[Any, AfterValidator(_path)] = None
    default: Annotated[Any, AfterValidator(_text_or_number)] = None
    pattern: Annotated[str | None, AfterValidator(_pattern)] = None
    target: _Column | None = None
    weight: float | None = Field(default=None, gt=0)
    floor: float | None = Field(default=None, allow_inf_nan=False)
    images: int | None = Field(default=None, ge=0)
    any_order: bool | None = None
    graded: bool | None = None

    @property
    def kind(self) -> Literal["exact_match", "json_match", "judge", "rubric", "function"]:
        """Which of these it is; exact match when nothing is said."""
        return "function" if self.function is not None else self.name or "exact_match"

    @property
    def rubric(self) -> list[Any] | None:
        """The criteria without the floors under them."""
        return None if self.criteria is None else without_floors(self.criteria)

    @property
    def floors(self) -> dict[int, Any]:
        """The floors under criteria, by their places in the list."""
        given = enumerate(self.criteria or ())
        return {place: each["floor"] for place, each in given if isinstance(each, dict) and "floor" in each}

    @property
    def path(self) -> tuple[str | int, ...]:
        """What leads to the part of the answer that is scored; () for the whole."""
        steps = self.field if isinstance(self.field, list) else [self.field]
        return () if self.field is None else tuple(steps)

    @property
    def title(self) -> str:
        """What it is called among several.

        Example:
            >>> Metric(function="score:near", field="date").title, Metric(field=["people", 0]).title
            ('score:near of date', 'exact_match of people.0')
        """
        of = f" of {'.'.join(map(str, self.path))}" if self.path else ""
        found = f" in {self.pattern}" if self.pattern is not None else ""
        return f"{self.function or self.kind}{of}{found}"


def _one_or_several(value: object) -> str:
    return "several" if isinstance(value, list) else "one"


AnyMetric: TypeAlias = Annotated[
    Annotated[Metric, Tag("one")] | Annotated[list[Metric], Field(min_length=1), Tag("several")],
    Discriminator(_one_or_several),
]
"""One metric, as [metric], or several, each as [[metric]]."""


class Contracts(Section):
    """What every new text of a trained prompt must keep, besides its length; checked, where `constraints` are told."""

    placeholders: list[str] | None = None
    requires: list[str] | None = Field(default=None, min_length=1)
    forbids: list[str] | None = Field(default=None, min_length=1)
    matches: str | None = Field(default=None, min_length=1)
    lacks: str | None = Field(default=None, min_length=1)
    frozen: list[str] | None = Field(default=None, min_length=1)
    frozen_between: list[str] | None = Field(default=None, min_length=2, max_length=2)
    language: str | None = None
    no_copying: bool = False
    max_characters: int | None = Field(default=None, gt=0)


class OfPrompt(Contracts):
    """What one of several prompts must keep besides what all must, and its own limit of tokens."""

    max_tokens: int | None = Field(default=None, gt=0)
    constraints: list[str] | None = None


class Train(Section):
    """How long to train, and in which batches."""

    max_epochs: int = Field(default=3, gt=0)
    batch_size: int = Field(default=32, gt=0)
    max_steps: int | None = Field(default=None, gt=0)
    max_minutes: float | None = Field(default=None, gt=0, allow_inf_nan=False)
    critic: bool = True
    feedback_batch_size: int = Field(default=1, gt=0)
    feedback_images: int = Field(default=MOST_IMAGES, ge=0)
    patience: int | None = Field(default=None, gt=0)
    tokens_weight: float | None = Field(default=None, ge=0)
    latency_weight: float | None = Field(default=None, ge=0)


_Id = Annotated[str, BeforeValidator(lambda value: str(value) if type(value) is int else value)]
"""The id of an example, which may be a number in its file, and is a text from then on."""


class Guards(Section):
    """Validation examples that no new text may break, and the least mean score of slices: field, value, floor."""

    never_break: list[_Id] = []
    reruns: int = Field(default=RERUNS, ge=0)
    passing: float | None = Field(default=None, allow_inf_nan=False)
    floors: dict[_Column, dict[str, float]] = {}


def _amount(value: object) -> object:
    return int(value) if isinstance(value, float) and value.is_integer() else value


_Amount = Annotated[int, BeforeValidator(_amount)]
"""A whole number, which may be written as 1e6."""


class Budget(Section):
    """Hard limits; None means no limit."""

    dollars: float | None = Field(default=None, ge=0, allow_inf_nan=False)
    calls: _Amount | None = Field(default=None, gt=0)
    tokens: _Amount | None = Field(default=None, gt=0)
