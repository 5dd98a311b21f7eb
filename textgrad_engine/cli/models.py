"""The models of a config: who does which role, with what limits, at which price."""

from __future__ import annotations

import os
from typing import NoReturn

from pydantic import SecretStr

from textgrad_engine.cli.config import Config
from textgrad_engine.errors import ConfigError, ModelError
from textgrad_engine.llm.headers import problem_of_value
from textgrad_engine.llm.model import Model, innermost
from textgrad_engine.llm.openai import DEFAULT_BASE_URL, OpenAIModel
from textgrad_engine.llm.prices import price_of
from textgrad_engine.llm.resolve import resolve
from textgrad_engine.llm.response import Usage
from textgrad_engine.llm.retry import RetryPolicy
from textgrad_engine.report.toml import toml_key


def make_models(
    config: Config, option: str | None = None, *, judge: str | None = None, needs_key: bool = True
) -> dict[str, Model]:
    """The model of each role; roles of one name share one model, and its limit.

    Args:
        config: names them.
        option: the name that ``--model`` gave, if it did; errors then speak of it.
        judge: the one that ``--judge`` gave, likewise.
        needs_key: whether the models will be asked.

    Raises:
        ConfigError: nothing answers to a name, its endpoint has no key, or it is no model that it names.
    """
    asked = config.models
    policy = None if asked.call_deadline is None else RetryPolicy(call_deadline=asked.call_deadline)
    limits = {**asked.rates(), "max_in_flight": asked.max_in_flight, "policy": policy, "context": asked.context}
    settings = {**asked.config.given(), **limits}
    sampling_seed = settings.pop("seed", None)  # of [models.config]: sent to any endpoint that it names
    headers: dict[str, str | SecretStr] | None = None  # looked for where an endpoint is asked
    made: dict[str, Model] = {}
    roles: dict[str, Model] = {}
    options = {"judge": f"--judge {judge}"} if judge is not None else {}
    for role, name in asked.roles().items():
        if option is not None and name == option:
            options.setdefault(role, f"--model {option}")
    for role, name in asked.roles().items():
        if name not in made:
            # The run's seed makes an embedded model; many endpoints refuse the setting, so nobody else is sent it.
            embedded = name.startswith("simulated/") and asked.base_url is None
            seed = config.seed if embedded and sampling_seed is None else sampling_seed
            api = None if embedded else asked.api
            price = asked.prices[name].given() if name in asked.prices else None
            try:
                model = config.model(name)
            except (ImportError, TypeError) as error:
                _fail(config, options.get(role), role, name, f": {error}")
            of_endpoint = asked.headers and needs_key and isinstance(model, str) and not embedded
            if of_endpoint and headers is None:
                headers = _headers(config)
            try:
                made[name] = resolve(
                    model,
                    base_url=asked.base_url,
                    api=api,
                    seed=seed,
                    price=price,
                    headers=headers if of_endpoint else None,
                    **settings,
                )
            except (ModelError, TypeError, ValueError) as error:  # also a setting that the API lacks
                _fail(config, options.get(role), role, name, f": {error}")
        roles[role] = made[name]
        inside = innermost(roles[role])
        official = isinstance(inside, OpenAIModel) and inside.base_url == DEFAULT_BASE_URL
        if needs_key and official and not os.environ.get("OPENAI_API_KEY", "").strip():
            _fail(
                config,
                options.get(role),
                role,
                name,
                " needs a key, and the environment variable OPENAI_API_KEY is not set; set it, or name a server that "
                "needs none with --base-url http://localhost:11434/v1",
            )
    return roles


def _headers(config: Config) -> dict[str, str | SecretStr]:
    """The headers of each request, with what the environment holds.

    Raises:
        ConfigError: a variable is not set, or what it holds cannot be sent.
    """
    found: dict[str, str | SecretStr] = {}
    for name, value in config.models.headers.items():
        if isinstance(value, str):
            found[name] = value
            continue
        found[name] = SecretStr(os.environ.get(value["env"], "").strip())
        if problem := problem_of_value(found[name]):
            config.fail(
                f"[models.headers] {toml_key(name)} {problem}: it is what the environment variable {value['env']} "
                "holds; set that, or take the header out",
                "models",
                "headers",
                name,
            )
    return found


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
