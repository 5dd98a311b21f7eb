"""The models of a config: who does which role, with what limits, at which price."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NoReturn

from pydantic import SecretStr

from textgrad_engine.cli import user_code
from textgrad_engine.cli.config import Config
from textgrad_engine.cli.config_errors import table_of
from textgrad_engine.cli.model_tables import Endpoint
from textgrad_engine.cli.toml_lines import Keys
from textgrad_engine.errors import ConfigError, ModelError
from textgrad_engine.llm.address import DEFAULT_BASE_URL
from textgrad_engine.llm.headers import problem_of_value
from textgrad_engine.llm.model import Model, innermost
from textgrad_engine.llm.openai import OpenAIModel
from textgrad_engine.llm.prices import price_of
from textgrad_engine.llm.resolve import resolve
from textgrad_engine.llm.response import Usage
from textgrad_engine.llm.retry import RetryPolicy
from textgrad_engine.report.toml import toml_key


@dataclass(frozen=True)
class Made:
    """A model that was made.

    Attributes:
        of: the name, or the object, that it was made of.
        settings: what it was made with.
        model: the model.
    """

    of: Any
    settings: dict[str, Any]
    model: Model


def make_models(
    config: Config,
    option: str | None = None,
    *,
    judge: str | None = None,
    needs_key: bool = True,
    made_before: list[Made] | None = None,
) -> dict[str, Model]:
    """The model of each role; roles of one name share one model, and its limit.

    Args:
        config: names them.
        option: the name that ``--model`` gave, if it did; errors then speak of it.
        judge: the one that ``--judge`` gave, likewise.
        needs_key: whether the models will be asked.
        made_before: for other evaluations that go on beside this one; of those the same ones are taken, so that their
            limits are those of all together. What is made is added.

    Raises:
        ConfigError: nothing answers to a name, its endpoint has no key, or it is no model that it names.
    """
    asked = config.models
    made: dict[str, Model] = {}
    roles: dict[str, Model] = {}
    options = {"judge": f"--judge {judge}"} if judge is not None else {}
    for role, name in asked.roles().items():
        if option is not None and name == option:
            options.setdefault(role, f"--model {option}")
    for role, name in asked.roles().items():
        own = asked.endpoint(name)
        if name not in made:
            try:
                model = config.model(name)
            except (ImportError, TypeError) as error:
                _fail(config, options.get(role), role, name, f": {error}")
            settings = _settings(config, name, isinstance(model, str) and needs_key)
            try:
                made[name] = _made(model, settings, [] if made_before is None else made_before)
            except (ModelError, TypeError, ValueError) as error:  # also a setting that the API lacks
                _fail(config, options.get(role), role, name, f": {error}")
        roles[role] = made[name]
        inside = innermost(roles[role])
        official = isinstance(inside, OpenAIModel) and inside.base_url == DEFAULT_BASE_URL
        if needs_key and official and own.api_key is None and not os.environ.get("OPENAI_API_KEY", "").strip():
            _fail(
                config,
                options.get(role),
                role,
                name,
                " needs a key, and the environment variable OPENAI_API_KEY is not set; set it, or name a server that "
                "needs none with --base-url http://localhost:11434/v1",
            )
    return roles


def _made(of: Any, settings: dict[str, Any], before: list[Made]) -> Model:
    """The model that was made of the same before, or a new one, which is added."""
    for each in before:
        if (each.of is of or (isinstance(of, str) and each.of == of)) and each.settings == settings:
            return each.model
    before.append(Made(of, settings, resolve(of, **settings)))
    return before[-1].model


def _settings(config: Config, name: str, sends: bool) -> dict[str, Any]:
    """What `llm.resolve` is told of a model besides its name.

    Args:
        config: names it.
        name: the name.
        sends: whether requests go to an endpoint, with what is in the environment.

    Raises:
        ConfigError: a variable of the environment is not set, or what it holds cannot be sent.
    """
    own = config.models.endpoint(name)
    where = ("models", "endpoints", name) if name in config.models.endpoints else ("models",)
    embedded = name.startswith("simulated/") and own.base_url is None
    settings = own.config.given()
    if embedded:  # the run's seed makes it; many endpoints refuse the setting, so nobody else is sent it
        settings.setdefault("seed", config.seed)
    sends = sends and not embedded
    price = config.models.prices.get(name)
    return {
        **settings,
        **own.rates(),
        "max_in_flight": own.max_in_flight,
        "policy": None if own.call_deadline is None else RetryPolicy(call_deadline=own.call_deadline),
        "context": own.context,
        "base_url": own.base_url,
        "api": None if embedded else own.api,
        "price": None if price is None else price.given(),
        "api_key": _key(config, own, where) if sends else None,
        "headers": _headers(config, own, where) if sends and own.headers else None,
    }


def _key(config: Config, own: Endpoint, where: Keys) -> SecretStr | None:
    """The key for an endpoint; None for `OPENAI_API_KEY`, which of several endpoints is only that of OpenAI's.

    Raises:
        ConfigError: the variable is not set, or what it holds cannot be sent.
    """
    if own.api_key is not None:
        return _of_environment(config, own.api_key, (*where, "api_key"), "take it out where the endpoint needs no key")
    asked = {name: config.models.endpoint(name).base_url for name in config.models.roles().values()}
    inside = {name for name in asked if name.startswith("simulated/") or user_code.is_spec(name)}
    several = len({address for name, address in asked.items() if address is not None or name not in inside}) > 1
    return SecretStr("none") if several and own.base_url is not None else None


def _headers(config: Config, own: Endpoint, where: Keys) -> dict[str, str | SecretStr]:
    """The headers of each request, with what the environment holds.

    Raises:
        ConfigError: a variable is not set, or what it holds cannot be sent.
    """
    return {
        name: value
        if isinstance(value, str)
        else _of_environment(config, value, (*where, "headers", name), "take the header out")
        for name, value in own.headers.items()
    }


def _of_environment(config: Config, value: Mapping[str, str], keys: Keys, instead: str) -> SecretStr:
    """What a variable of the environment holds that the config names.

    Raises:
        ConfigError: it is not set, or what it holds cannot be sent.
    """
    held = SecretStr(os.environ.get(value["env"], "").strip())
    if problem := problem_of_value(held):
        config.fail(
            f"{table_of(keys[:-1])} {toml_key(str(keys[-1]))} {problem}: it is what the environment variable "
            f"{value['env']} holds; set that, or {instead}",
            *keys,
        )
    return held


def check_prices(config: Config, roles: dict[str, Model], option: float | None, model: str | None) -> None:
    """Check that a limit in dollars can be kept.

    Args:
        config: names the limit.
        roles: the models.
        option: the limit that ``--budget`` gave, if it did.
        model: the name that ``--model`` gave, if it did: no price in the file can be of that.

    Raises:
        ConfigError: there is such a limit, and the price of a model is not known.
    """
    if config.budget.dollars is None:
        return
    stated = "state it with --price input=0.4,output=1.6, dollars per million tokens"
    for asked in roles.values():
        if price_of(asked, Usage(input_tokens=1, output_tokens=1, calls=1)) is None:
            problem = f"the price of {innermost(asked).name!r} is not known, so a limit in dollars cannot be kept"
            names = config.models.roles()
            name = next(name for role, name in names.items() if roles[role] is asked)
            if option is not None:
                others = len(set(names.values())) > 1
                each = f", or as [models.prices.{toml_key(name)}] in the config" if others else ""
                raise ConfigError(
                    f"--budget {option:g}: {problem}; {stated}{each}, or limit calls or tokens with --budget-calls or "
                    "--budget-tokens instead"
                )
            table = f"[models.prices.{toml_key(name)}] with input = 0.4 and output = 1.6"
            how = f"state it, as {table}, dollars per million tokens" if model is None else stated
            config.fail(
                f"[budget] dollars: {problem}; {how}, or limit calls or tokens there instead",
                "budget",
                "dollars",
            )


def _fail(config: Config, option: str | None, role: str, name: str, problem: str) -> NoReturn:
    if option is not None:
        raise ConfigError(f"{option}{problem}")
    config.fail(f"[models] {role} = {name!r}{problem}", "models", role)
