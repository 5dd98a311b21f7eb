"""The tables of a config file: their keys, types and ranges, and what is said when one of them is wrong."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator, Sequence
from typing import Annotated, Any, Literal, TypeAlias, get_args

from pydantic import AfterValidator, BaseModel, ConfigDict, Discriminator, Field, Tag

from textgrad_engine.data.dataset import suggest
from textgrad_engine.llm.response import MOST_PRICE, Price
from textgrad_engine.ops.images import MOST_IMAGES
from textgrad_engine.slots import composed

__all__ = [
    "AnyMetric",
    "Budget",
    "Contracts",
    "Data",
    "Guards",
    "Metric",
    "ModelPrice",
    "Models",
    "OfPrompt",
    "Program",
    "Sampling",
    "Section",
    "Train",
    "explain",
    "keys_of",
    "quoted",
    "table_of",
]


class Section(BaseModel):
    """A table: frozen, and strict about names and types."""

    # What checks a table is built when the first one is read: `--help` and shells that complete read none.
    model_config = ConfigDict(strict=True, extra="forbid", frozen=True, allow_inf_nan=False, defer_build=True)


_Column = Annotated[str, AfterValidator(composed)]


def _form(value: object) -> object:
    if value is None or (isinstance(value, str | dict) and value):
        return value
    raise ValueError('should be "module:Class", the name of a file with a JSON schema, or a table that is one')


class Program(Section):
    """What is optimized: ``system`` (or ``system_file``) and ``user``, or ``class`` = ``"module:Class"``.

    `response_format` holds the answers to the first kind to a form: a class as ``"module:Class"``, a file with a JSON
    schema, or a table that is one.
    """

    system: str | None = None
    system_file: str | None = None
    user: str | None = None
    response_format: Annotated[Any, AfterValidator(_form)] = None
    class_: str | None = Field(default=None, alias="class")

    @property
    def system_key(self) -> str:
        """The key that gives the system prompt."""
        return "system" if self.system_file is None else "system_file"


class Data(Section):
    """The files of examples, the column that holds the answer, and the one that says which belong together, if any.

    Without ``val`` the training examples validate, too. What ``images`` names are columns with the paths or addresses
    of images, and ``image_detail`` is how closely models look at them.
    """

    train: str
    val: str | None = None
    test: str | None = None
    target: _Column = "target"
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
    if isinstance(value, str | int | float | None) and not isinstance(value, bool):
        return value
    raise ValueError("should be a text or a number")


class Metric(Section):
    """The score: a ``name``, or a ``function`` = ``"module:function"`` with its ``purpose`` in words.

    A judge or a function may have a ``scale``, the lowest and the highest score. `field` is the part of the answer that
    is scored, and `default` stands for it where the answer lacks it. Of several metrics each may have a `weight`. A
    judge is shown ``images`` of an example's images at most.
    """

    name: Literal["exact_match", "judge"] | None = None
    function: str | None = None
    purpose: str | None = None
    instructions: str | None = None
    scale: list[float] | None = Field(default=None, min_length=2, max_length=2)
    field: Annotated[Any, AfterValidator(_path)] = None
    default: Annotated[Any, AfterValidator(_text_or_number)] = None
    weight: float | None = Field(default=None, gt=0)
    images: int | None = Field(default=None, ge=0)

    @property
    def kind(self) -> Literal["exact_match", "judge", "function"]:
        """Which of the three it is; exact match when nothing is said."""
        return "function" if self.function is not None else self.name or "exact_match"

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
        return f"{self.function or self.kind}{of}"


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
    extra: dict[str, Any] | None = None

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


def _header(value: object) -> object:
    if isinstance(value, str):
        return value
    named = value.get("env") if isinstance(value, dict) and len(value) == 1 else None
    if not isinstance(named, str) or not re.fullmatch(r"[^\W\d]\w*", named):
        raise ValueError('should be a text, or {env = "NAME"} for what the environment variable NAME holds')
    return value


class Models(Section):
    """Which model does what; a role that is not named falls back to `forward`.

    A name is that of an endpoint's model, or ``"module:name"`` for a model object of the user's own.

    What may pass in a minute is per name: roles of one name share one limit, another name has its own. `api` says which
    of OpenAI's two APIs the endpoint is asked by. `context` is how many tokens these models read and write at most in
    one call, where that is not known by their names: what a critic is shown is fitted to it. `max_in_flight` calls are
    asked at once, per name. A call may take `call_deadline` seconds, see `llm.Deadline`. `prices` are by name.
    `headers` are sent with each request: texts, or ``{env = "NAME"}`` for what is in the environment, and written down
    nowhere.
    """

    forward: str = Field(min_length=1)
    backward: str | None = Field(default=None, min_length=1)
    optimizer: str | None = Field(default=None, min_length=1)
    judge: str | None = Field(default=None, min_length=1)
    base_url: str | None = None
    api: Literal["chat", "responses"] | None = None
    requests_per_minute: float | None = Field(default=None, ge=1)
    tokens_per_minute: float | None = Field(default=None, ge=1)
    max_in_flight: int | None = Field(default=None, ge=1)
    call_deadline: float | None = Field(default=None, gt=0)
    context: int | None = Field(default=None, ge=1)
    config: Sampling = Sampling()
    prices: dict[str, ModelPrice] = {}
    headers: dict[str, Annotated[Any, AfterValidator(_header)]] = {}

    def changed(
        self, *, model: str | None = None, base_url: str | None = None, price: ModelPrice | None = None
    ) -> Models:
        """The models with what the command line says; None leaves the file's value.

        Args:
            model: does every role. What the endpoint is and takes stays, a context belongs to the models of now.
            base_url: the endpoint; headers belong to that of now, and another one gets none of them.
            price: of each of them.
        """
        new: dict[str, Any] = {}
        if model is not None:
            new = dict.fromkeys(("backward", "optimizer", "judge", "context"))
            new |= {"forward": model, "prices": {name: own for name, own in self.prices.items() if name == model}}
        if base_url is not None:
            same = self.base_url is not None and base_url.rstrip("/") == self.base_url.rstrip("/")
            new |= {"base_url": base_url, "headers": self.headers if same else {}}
        made = self.model_copy(update=new)
        if price is None:
            return made
        return made.model_copy(update={"prices": dict.fromkeys(made.roles().values(), price)})

    def roles(self) -> dict[str, str]:
        """The names that are given, by role, for `use_models`."""
        names = {"forward": self.forward, "backward": self.backward, "optimizer": self.optimizer, "judge": self.judge}
        return {role: name for role, name in names.items() if name is not None}

    def rates(self) -> dict[str, float]:
        """The limits per minute that are given, as keyword arguments of `llm.resolve`."""
        rates = {"requests_per_minute": self.requests_per_minute, "tokens_per_minute": self.tokens_per_minute}
        return {name: rate for name, rate in rates.items() if rate is not None}


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


class OfPrompt(Contracts):
    """What one of several prompts must keep besides what all must, and its own limit of tokens."""

    max_tokens: int | None = Field(default=None, gt=0)
    constraints: list[str] | None = None


class Train(Section):
    """How long to train, and in which batches."""

    max_epochs: int = Field(default=3, gt=0)
    batch_size: int = Field(default=32, gt=0)
    max_steps: int | None = Field(default=None, gt=0)
    feedback_batch_size: int = Field(default=1, gt=0)
    feedback_images: int = Field(default=MOST_IMAGES, ge=0)
    patience: int | None = Field(default=None, gt=0)
    tokens_weight: float | None = Field(default=None, ge=0)
    latency_weight: float | None = Field(default=None, ge=0)


class Guards(Section):
    """Validation examples that no new text may break, and the least mean score of slices: field, value, floor."""

    never_break: list[str] = []
    floors: dict[_Column, dict[str, float]] = {}


class Budget(Section):
    """Hard limits; None means no limit."""

    dollars: float | None = Field(default=None, ge=0, allow_inf_nan=False)
    calls: int | None = Field(default=None, gt=0)
    tokens: int | None = Field(default=None, gt=0)


_QUOTED = r"'(\w+)'"
"""The words that a message of pydantic's names as possible values."""

_EXAMPLES = {
    "program": '[program] with system = "..." and user = "{...}"',
    "data": '[data] with train = "train.jsonl" and test = "test.jsonl"',
    "data.train": 'train = "train.jsonl"',
    "models": '[models] with forward = "openai/gpt-5-mini"',
    "models.forward": 'forward = "openai/gpt-5-mini"',
    "models.prices.input": "input = 0.4, dollars per million tokens",
    "models.prices.output": "output = 1.6, dollars per million tokens",
}


def _tables(root: type[BaseModel], tag: str) -> Iterator[tuple[str, type[BaseModel]]]:
    """The tables by name; of a table of several kinds the kind that is named, else all one after the other.

    Tables in tables come last.
    """
    yield "", root
    found: list[tuple[str, type[BaseModel]]] = []
    for name, field in root.model_fields.items():
        kinds = _kinds(field.annotation)
        found += [(name, kind) for kind in ([kinds[tag]] if tag in kinds else kinds.values())]
    yield from found
    for name, kind in found:
        for key, field in kind.model_fields.items():
            for part in (field.annotation, *get_args(field.annotation)):  # of one that may be None the arguments
                yield from ((f"{name}.{key}", inner) for inner in _kinds(part).values())


def _kinds(annotation: Any) -> dict[str, type[BaseModel]]:
    """The kinds of a table by the tags that tell them apart; a table of one kind has the tag ""."""
    if inspect.isclass(annotation) and issubclass(annotation, Section):
        return {"": annotation}
    found: dict[str, type[BaseModel]] = {}
    for part in get_args(annotation):
        kind, tags = (get_args(part) or (None,))[0], [each.tag for each in get_args(part) if isinstance(each, Tag)]
        found |= dict.fromkeys(tags, (get_args(kind) or (kind,))[0])  # of a list of tables what each of them is
    return found


_NAMED = (["optimizer", "prompts"], ["models", "prices"])
"""The tables that hold tables by the names of prompts, and of models."""


def table_of(keys: Sequence[str | int]) -> str:
    """How the head of a table stands in a file, by the keys that lead to it; one of several tables has its number.

    Example:
        >>> table_of(("models", "prices", "gpt-4.1")), table_of(("metric", 1))
        ('[models.prices."gpt-4.1"]', '[[metric]]')
    """
    names = ".".join([quoted(key) for key in keys if isinstance(key, str)])
    return f"[[{names}]]" if isinstance(keys[-1], int) else f"[{names}]"


def quoted(key: str) -> str:
    """A key as it stands in a file; names of prompts and models have dots in them."""
    return key if re.fullmatch(r"[\w-]+", key) else f'"{key}"'


def keys_of(error: Any, root: type[BaseModel]) -> tuple[str | int, ...]:
    """The keys that lead to the place of one of pydantic's errors in the file."""
    loc: tuple[str | int, ...] = error["loc"]
    if error["type"] == "union_tag_invalid":
        return (*loc, "name")
    return (loc[0], *loc[2:]) if _tag_in(loc, root) else loc


def _tag_in(loc: Sequence[str | int], root: type[BaseModel]) -> str:
    """Which kind of a table a place is in; "" where a table has one kind only."""
    field = root.model_fields.get(str(loc[0]))
    return str(loc[1]) if field is not None and len(loc) > 1 and loc[1] in _kinds(field.annotation) else ""


def explain(error: Any, root: type[BaseModel]) -> str:
    """One of pydantic's errors in the words of the file."""
    tag = _tag_in(error["loc"], root)
    keys = keys_of(error, root)
    loc = [str(part) for place, part in enumerate(keys) if (keys[0], place) != ("metric", 1) or isinstance(part, str)]
    names: dict[str, list[str]] = {}
    for name, model in _tables(root, tag):
        own = [field.alias or key for key, field in model.model_fields.items()]
        names[name] = list(dict.fromkeys([*names.get(name, ()), *own]))
    section, key = ("" if len(loc) == 1 else table_of(keys[:-1])), loc[-1]
    where = f"{section} {key}" if section else key
    if error["type"] == "missing":
        what = f"the table [{key}]" if key in names and not section else f"the key {where}"
        example = _EXAMPLES[".".join([*loc[:2], key] if loc[:2] in _NAMED else loc)]
        return f"{what} is missing; add {example}"
    if error["type"] == "extra_forbidden":
        known = names.get(".".join(loc[:2] if loc[:2] in _NAMED else loc[:-1]), [])
        what = f"{section} has no key {key!r}" if section else f"there is no key or table {key!r}"
        if loc[:2] in _NAMED and isinstance(error["input"], dict):
            return f'{what}; a name with dots stands in quotes: [{".".join(loc[:2])}."{".".join(loc[2:])}"]'
        homes = [home for home, keys in names.items() if key in keys]
        if near := suggest(key, known):
            return what + near
        if homes:
            return f"{what}; it belongs {f'in [{homes[0]}]' if homes[0] else 'above the first table'}"
        if tag and len(set(_kinds(root.model_fields[loc[0]].annotation).values())) > 1:
            return f"{what} for {tag}, which has {', '.join(known)}"
        return f"{what}; it knows {', '.join(known)}"
    value = error["input"]
    if error["type"] == "union_tag_invalid":
        named, known = error["ctx"]["tag"], error["ctx"]["expected_tags"]
        return f"{where} = {named!r}: should be one of {known}{suggest(named, re.findall(_QUOTED, known))}"
    if error["type"] == "model_type":
        table = ".".join(map(quoted, loc))
        return f"{where} is a table; write [{table}] and its keys on lines of their own, got {value!r}"
    said = (
        error["msg"]
        .removeprefix("Value error, ")
        .replace("Input should", "should")
        .replace("valid integer", "whole number")
        .replace("valid dictionary", "table, such as {name = ...}")
        .replace("valid list", "list in brackets, [...]")
    )
    if error["type"] in ("too_short", "too_long"):
        least, most = (error["ctx"].get(name) for name in ("min_length", "max_length"))
        few = most is None or len(value) <= most
        said = f"should have {f'at least {least}' if few else f'at most {most}'}, and has {len(value)}"
    near = suggest(value, re.findall(_QUOTED, said)) if isinstance(value, str) else ""
    return f"{where} = {value!r}: {said}{near}"
