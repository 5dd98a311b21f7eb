"""The tables of a config file: their keys, types and ranges."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from typing import Annotated, Any, Literal, Self, TypeAlias

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Discriminator, Field, Tag

from textgrad_engine.llm.prices import price as known_price
from textgrad_engine.llm.response import MOST_PRICE, Price, Usage
from textgrad_engine.ops.criteria import without_floors
from textgrad_engine.ops.extract import check_pattern
from textgrad_engine.ops.images import MOST_IMAGES
from textgrad_engine.slots import composed


class Section(BaseModel):
    """A table: frozen, and strict about names and types."""

    # What checks a table is built when the first one is read: `--help` and shells that complete read none.
    model_config = ConfigDict(strict=True, extra="forbid", frozen=True, allow_inf_nan=False, defer_build=True)


_Column = Annotated[str, AfterValidator(composed)]


def _json(value: object) -> object:
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
    _json(value)
    if value is None or (isinstance(value, str | dict) and value):
        return value
    raise ValueError('should be "module:Class", the name of a file with a JSON schema, or a table that is one')


def _tools(value: object) -> object:
    _json(value)
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


class Metric(Section):
    """The score: a ``name``, or a ``function`` = ``"module:function"`` with its ``purpose`` in words.

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
    scale: list[float] | None = Field(default=None, min_length=2, max_length=2)
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


class Sampling(Section):
    """Sampling settings of every call, as in `llm.GenerateConfig`."""

    temperature: float | None = Field(default=None, ge=0)
    top_p: float | None = Field(default=None, gt=0, le=1)
    max_tokens: int | None = Field(default=None, gt=0)
    stop: list[str] | None = None
    seed: int | None = None
    frequency_penalty: float | None = None
    presence_penalty: float | None = None
    reasoning_effort: str | None = None
    extra: Annotated[dict[str, Any] | None, AfterValidator(_json)] = None

    def given(self) -> dict[str, Any]:
        """The settings that the file names, for ``OpenAIModel(name, **settings)``."""
        settings = self.model_dump(exclude_none=True)
        return {**settings, "stop": tuple(settings["stop"])} if "stop" in settings else settings


class ModelPrice(Section):
    """What a model costs, in US dollars per million tokens, see `llm.Price`."""

    input: float = Field(ge=0, le=MOST_PRICE)
    cached: float | None = Field(default=None, ge=0, le=MOST_PRICE)
    output: float = Field(ge=0, le=MOST_PRICE)

    def given(self) -> Price:
        """The same for ``resolve(name, price=...)``."""
        return Price(self.input, self.output, self.cached)

    def in_words(self) -> str:
        """The same for people.

        Example:
            >>> ModelPrice(input=0.4, output=1.6).in_words()
            'input $0.4, output $1.6'
        """
        return ", ".join(f"{name} ${value:g}" for name, value in self.model_dump(exclude_none=True).items())


def _is_of_environment(value: object) -> bool:
    named = value.get("env") if isinstance(value, dict) and len(value) == 1 else None
    return isinstance(named, str) and re.fullmatch(r"[^\W\d]\w*", named) is not None


def _header(value: object) -> object:
    if not isinstance(value, str) and not _is_of_environment(value):
        raise ValueError('should be a text, or {env = "NAME"} for what the environment variable NAME holds')
    return value


def _key(value: object) -> object:
    if value is not None and not _is_of_environment(value):
        raise ValueError('should be {env = "NAME"}, for the key that the environment variable NAME holds')
    return value


class Endpoint(Section):
    """Where and how models are asked.

    What may pass in a minute is per name: roles of one name share one limit, another name has its own. `api` says which
    of OpenAI's two APIs the endpoint is asked by. `context` is how many tokens the models read and write at most in
    one call, where that is not known by their names: what a critic is shown is fitted to it. `max_in_flight` calls are
    asked at once, per name. A call may take `call_deadline` seconds, see `llm.Deadline`. `headers` are sent with each
    request: texts, or ``{env = "NAME"}`` for what is in the environment, and written down nowhere; so is `api_key`.
    """

    base_url: str | None = None
    api_key: Annotated[Any, AfterValidator(_key)] = None
    api: Literal["chat", "responses"] | None = None
    requests_per_minute: float | None = Field(default=None, ge=1)
    tokens_per_minute: float | None = Field(default=None, ge=1)
    max_in_flight: int | None = Field(default=None, ge=1)
    call_deadline: float | None = Field(default=None, gt=0)
    context: int | None = Field(default=None, ge=1)
    config: Sampling = Sampling()
    headers: dict[str, Annotated[Any, AfterValidator(_header)]] = {}

    def at(self, base_url: str) -> Self:
        """The same elsewhere: key and headers are for the endpoint of now, and another one gets none of them."""
        same = self.base_url is not None and base_url.rstrip("/") == self.base_url.rstrip("/")
        return self.model_copy(update={"base_url": base_url} | ({} if same else {"api_key": None, "headers": {}}))

    def rates(self) -> dict[str, float]:
        """The limits per minute that are given, as keyword arguments of `llm.resolve`."""
        rates = {"requests_per_minute": self.requests_per_minute, "tokens_per_minute": self.tokens_per_minute}
        return {name: rate for name, rate in rates.items() if rate is not None}


class Models(Endpoint):
    """Which model does what, and where; a role that is not named falls back to `forward`.

    A name is that of an endpoint's model, or ``"module:name"`` for a model object of the user's own. `prices` and
    `endpoints` are by name; of a model that has one of its own, nothing counts of what is said here of all.
    """

    forward: str = Field(min_length=1)
    backward: str | None = Field(default=None, min_length=1)
    optimizer: str | None = Field(default=None, min_length=1)
    judge: str | None = Field(default=None, min_length=1)
    prices: dict[str, ModelPrice] = {}
    endpoints: dict[str, Endpoint] = {}

    def changed(
        self,
        *,
        model: str | None = None,
        judge: str | None = None,
        base_url: str | None = None,
        price: ModelPrice | None = None,
    ) -> Models:
        """The models with what the command line says; None leaves the file's value.

        Args:
            model: does every role. What the endpoint is and takes stays, a context belongs to the models of now.
            judge: does that role, whatever does the others.
            base_url: the endpoint of all of them, see `at`.
            price: of those whose price is neither known nor stated; where there are none, of each instead of that.
        """
        new: dict[str, Any] = {}
        if model is not None:
            new = dict.fromkeys(("backward", "optimizer", "judge", "context"))
            new["forward"] = model
        if judge is not None:
            new["judge"] = judge
        made = self.model_copy(update=new)
        if base_url is not None:
            elsewhere = {name: own.at(base_url) for name, own in self.endpoints.items()}
            made = made.at(base_url).model_copy(update={"endpoints": elsewhere})
        if model is not None or judge is not None:
            asked = made.roles().values()
            kept = ("prices", "endpoints")
            made = made.model_copy(
                update={table: {n: own for n, own in getattr(made, table).items() if n in asked} for table in kept}
            )
        if price is None:
            return made
        names = set(made.roles().values())
        lacking = {name for name in names - made.prices.keys() if known_price(name, Usage(input_tokens=1)) is None}
        return made.model_copy(update={"prices": {**made.prices, **dict.fromkeys(sorted(lacking or names), price)}})

    def roles(self) -> dict[str, str]:
        """The names that are given, by role, for `use_models`."""
        names = {"forward": self.forward, "backward": self.backward, "optimizer": self.optimizer, "judge": self.judge}
        return {role: name for role, name in names.items() if name is not None}

    def endpoint(self, name: str) -> Endpoint:
        """Where and how the model of that name is asked."""
        return self.endpoints.get(name, self)

    def on_record(self) -> dict[str, Any]:
        """What is written down of who was asked, and where: the program's model, and who judges where that differs."""
        here, judge = (self.endpoint(name).base_url for name in (self.forward, self.judge or self.forward))
        return {"models": self.roles(), "base_url": here} | ({} if judge == here else {"judge_url": judge})


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


class Guards(Section):
    """Validation examples that no new text may break, and the least mean score of slices: field, value, floor."""

    never_break: list[str] = []
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
