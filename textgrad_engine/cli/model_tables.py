"""The tables of a config file that say which models are asked, where, how, and at which price."""

from __future__ import annotations

import re
from typing import Annotated, Any, Literal, Self
from urllib.parse import urlsplit

from pydantic import AfterValidator, Field

from textgrad_engine.cli.secrets_in import names_a_key
from textgrad_engine.cli.settings import Section, json_value
from textgrad_engine.errors import ConfigError
from textgrad_engine.llm.address import checked_host
from textgrad_engine.llm.prices import price as known_price
from textgrad_engine.llm.response import MOST_PRICE, Price, Usage


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
    extra: Annotated[dict[str, Any] | None, AfterValidator(json_value)] = None

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


def problem_of_address(url: str) -> str:
    """Why an endpoint is not asked at an address, in words; "" where it can be."""
    try:
        checked_host(url)
    except ValueError as error:
        return str(error)
    parts = urlsplit(url)
    instead = 'set OPENAI_API_KEY, or write api_key = {env = "NAME"}'
    return f"base_url holds a key or password; {instead}" if parts.username or parts.password else ""


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
    headers: dict[str, Annotated[Any, AfterValidator(_header)]] = Field(default_factory=dict)

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
    prices: dict[str, ModelPrice] = Field(default_factory=dict)
    endpoints: dict[str, Endpoint] = Field(default_factory=dict)

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

        Raises:
            ConfigError: the endpoint is no address, or there is a key in a value, which would be written down.
        """
        for option, value in (("--model", model), ("--judge", judge), ("--base-url", base_url)):
            if value is not None and names_a_key(value):
                raise ConfigError(f"{option} holds a key; set the environment variable OPENAI_API_KEY to that instead")
        new: dict[str, Any] = {}
        if model is not None:
            new = dict.fromkeys(("backward", "optimizer", "judge", "context"))
            new["forward"] = model
        if judge is not None:
            new["judge"] = judge
        made = self.model_copy(update=new)
        if base_url is not None:
            if problem := problem_of_address(base_url):
                raise ConfigError(f"--base-url: {problem}")
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
