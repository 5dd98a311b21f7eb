"""From a name, or a model of somebody's own, to a model with everything around it that a run needs."""

from __future__ import annotations

import importlib
import os
from typing import Any, Literal, cast

from pydantic import SecretStr

from textgrad_engine.callables import check_method
from textgrad_engine.checks import check
from textgrad_engine.errors import UnknownModelError
from textgrad_engine.keys import as_name
from textgrad_engine.llm.apis import Api
from textgrad_engine.llm.budget import Budgeted
from textgrad_engine.llm.cache import Cache, open_cache
from textgrad_engine.llm.cached import Cached
from textgrad_engine.llm.check import Check
from textgrad_engine.llm.context import Sized
from textgrad_engine.llm.deadline import Deadline
from textgrad_engine.llm.headers import Headers, concealed_headers
from textgrad_engine.llm.limits import Limit
from textgrad_engine.llm.model import Model, Wrapper, innermost
from textgrad_engine.llm.openai import OpenAIModel
from textgrad_engine.llm.prices import Priced
from textgrad_engine.llm.redact import concealed
from textgrad_engine.llm.request import GenerateConfig, Request, config_from
from textgrad_engine.llm.response import Completion, Price
from textgrad_engine.llm.retry import Retry, RetryPolicy
from textgrad_engine.llm.spans import Traced
from textgrad_engine.llm.taped import Taped
from textgrad_engine.llm.usage import Metered
from textgrad_engine.wording import told

DEFAULT_IN_FLIGHT = 64
"""Calls at once to an endpoint on the network, to begin with, when nobody says otherwise."""

MAX_IN_FLIGHT = 256
"""What that number rises to by itself at most, while latency holds."""

SIMULATED: dict[str, str] = {"tickets": "textgrad_engine.llm.simulated:TicketsModel"}
"""The embedded models: what stands after "simulated/", and where its class is. It is called with ``seed=``."""


class Defaults(Wrapper):
    """Fills in settings that a request leaves out.

    Args:
        inner: the model that is wrapped.
        defaults: the settings.
    """

    def __init__(self, inner: Model, defaults: GenerateConfig) -> None:
        super().__init__(inner)
        check(Defaults.__init__, locals())
        self.defaults = defaults

    async def complete(self, request: Request) -> Completion:
        """Pass the request on with its settings filled in."""
        return await self.inner.complete(request.model_copy(update={"config": request.config.over(self.defaults)}))

    def __repr__(self) -> str:
        shown = "".join(f", {name}={getattr(self.defaults, name)!r}" for name in sorted(self.defaults.model_fields_set))
        return f"Defaults({self.inner!r}{shown})"


def resolve(
    model: str | Model,
    *,
    base_url: str | None = None,
    api_key: str | SecretStr | None = None,
    api: Api | None = None,
    seed: int | None = None,
    max_in_flight: int | None = None,
    requests_per_minute: float | None = None,
    tokens_per_minute: float | None = None,
    policy: RetryPolicy | None = None,
    cache: Cache | str | os.PathLike[str] | Literal[False] | None = None,
    context: int | None = None,
    price: Price | None = None,
    headers: Headers | None = None,
    **config: Any,
) -> Wrapper:
    """Make a model from a name, or wrap a given model, with the usual wrappers around it.

    From the outside in: `Metered` (usage and records), `Traced` (OpenTelemetry), `Taped` (record and replay), `Cached`,
    `Retry`, `Limit` (what is in flight), `Budgeted`, `Deadline` (wall time of one call), `Check` (is it an answer), the
    model. So a taped or cached answer uses neither budget nor a place in the queue, but is counted. A model that was
    resolved before is returned as it is; one that holds a stack already (`Fallback`) gets only the three outer
    wrappers. If you await it on your own loop, close its connections there with ``aclose()``, or use ``async with``.

    Args:
        model: ``"openai/NAME"``; any ``"NAME"`` together with a `base_url`; ``"simulated/NAME"``; or a model.
        base_url: an OpenAI-compatible endpoint, which is sent the name as it stands; without one, `OPENAI_BASE_URL`.
        api_key: its key, else `OPENAI_API_KEY`.
        api: ``"responses"`` for the Responses API of an endpoint that has it; else chat completions.
        seed: an embedded model is made with it; any other is sent it, as the setting of that name.
        max_in_flight: the most calls at once; fewer while the endpoint cannot take them. By default an endpoint on the
            network gets 64, and gradually up to 256 while latency holds; a model inside this process has no limit.
        requests_per_minute: the endpoint's limit; without it, what its headers say counts.
        tokens_per_minute: likewise.
        policy: when failed calls are tried again, and how long one may take.
        cache: a cache, or its folder, that this model always uses; False for none at all; None for that of the
            `caching` block around a call, if there is one.
        context: the context size: the most tokens it reads and writes in one call. State it if it is not in the table
            of genai-prices, or is smaller on this server; requests to a critic or optimizer are fitted to it.
        price: what it costs, if its price at its endpoint is not in that table, or differs.
        headers: those that its gateway wants with each request, see `OpenAIModel`.
        **config: sampling settings for requests that do not set them (the fields of `GenerateConfig`).

    Raises:
        UnknownModelError: nothing answers to the name; the message lists what does.
        TypeError: a setting that does not exist, or one that has no meaning for this model.

    Example:
        >>> resolve("openai/o3", max_in_flight=8)
        Metered(Traced(Taped(Cached(Retry(Limit(Budgeted(Deadline(Check(OpenAIModel('o3')), 300)), max_in_flight=8))))))
    """
    api_key, headers = concealed(api_key), None if headers is None else concealed_headers(headers)
    settings = config_from(config, resolve)
    if isinstance(model, str):
        inside = _named(model, base_url, api_key, api, seed, headers, config)
    else:
        if any(given is not None for given in (base_url, api_key, api, headers)):
            raise TypeError(
                f"base_url, api_key, api and headers belong to a model's name; {model!r} is a model already"
            )
        if seed is not None:
            settings = settings.model_copy(update={"seed": seed})
        if is_resolved(model) or _holds(model, Retry):
            limits = (max_in_flight, requests_per_minute, tokens_per_minute, policy, cache, context, price)
            if settings.model_fields_set or any(setting is not None for setting in limits):
                raise TypeError(f"{model!r} has been resolved already; give the settings where that was done")
            return cast("Wrapper", model) if is_resolved(model) else _outer(model)
        if isinstance(model, type) or not (hasattr(model, "complete") and hasattr(model, "name")):
            raise TypeError(f"expected the name of a model, or a model with a name and complete(), got {told(model)}")
        check_method(model, "complete", "request", waits=True)
        name: object = model.name
        if isinstance(name, int | float | bytes | None):
            raise TypeError(f"the name of a model is a text, and that of {type(model).__name__} is {told(name)}")
        inside = Defaults(model, settings) if settings.model_fields_set else model
    check(resolve, locals())
    if context is not None:
        inside = Sized(inside, context)
    if price is not None:
        inside = Priced(inside, price)
    return _stack(inside, max_in_flight, (requests_per_minute, tokens_per_minute), policy or RetryPolicy(), cache)


def without_outer(model: Model) -> Model:
    """What `resolve` gave, without the wrappers of which a call wants only one: `Metered`, `Traced`, `Taped`."""
    while isinstance(model, Metered | Traced | Taped):
        model = model.inner
    return model


def is_resolved(model: Model) -> bool:
    """Whether calls of it are counted, limited and tried again inside of it.

    `resolve` gave it, or it hands on to such a model, which it says by an attribute ``asks_resolved`` where it is no
    `Wrapper` (one that looks the model up only when it is asked has none to wrap).
    """
    while isinstance(model, Wrapper):
        if isinstance(model, Metered):
            return True
        model = model.inner
    return not isinstance(model, type) and bool(getattr(model, "asks_resolved", False))


def _outer(model: Model) -> Wrapper:
    return Metered(Traced(Taped(model)))


def _holds(model: Model, kind: type[Wrapper]) -> bool:
    while isinstance(model, Wrapper):
        if isinstance(model, kind):
            return True
        model = model.inner
    return False


def _stack(
    inside: Model,
    max_in_flight: int | None,
    per_minute: tuple[float | None, float | None],
    policy: RetryPolicy,
    cache: Cache | str | os.PathLike[str] | Literal[False] | None,
) -> Wrapper:
    core = innermost(inside)
    start: int | None = None
    if max_in_flight is None and isinstance(core, OpenAIModel):
        max_in_flight = core.max_in_flight
        if max_in_flight is None:  # nobody has said: begin with a usual number, and find out what the endpoint can take
            max_in_flight, start = MAX_IN_FLIGHT, DEFAULT_IN_FLIGHT
    sent: Model = Check(inside)
    if policy.call_deadline is not None:
        sent = Deadline(sent, policy.call_deadline)
    requests, tokens = per_minute
    limited = Limit(
        Budgeted(sent),
        max_in_flight,
        start=start,
        requests_per_minute=requests,
        tokens_per_minute=tokens,
        max_pause=policy.max_retry_after,
        max_quota_wait=policy.deadline,
    )
    tried: Model = Retry(limited, policy)
    if cache is not False:
        tried = Cached(tried, None if cache is None else open_cache(cache))
    return _outer(tried)


def _named(
    name: str,
    base_url: str | None,
    api_key: SecretStr | None,
    api: Api | None,
    seed: int | None,
    headers: Headers | None,
    config: dict[str, Any],
) -> Model:
    provider, _, rest = name.partition("/")
    if provider == "simulated" and base_url is None:
        if rest not in SIMULATED:
            raise UnknownModelError(f"there is no embedded model {name!r}; there are {_simulated()}")
        if api is not None:
            raise TypeError(f"{name!r} is asked in this process, by no API; leave out api={api!r}")
        if headers is not None:
            raise TypeError(f"{name!r} is asked in this process, without a request that has headers; leave them out")
        module, _, attribute = SIMULATED[rest].partition(":")
        made: Model = getattr(importlib.import_module(module), attribute)(seed=0 if seed is None else seed)
        return Defaults(made, GenerateConfig(**config)) if config else made
    elsewhere = base_url is not None or bool(os.environ.get("OPENAI_BASE_URL"))
    if provider == "openai" and rest:
        if not elsewhere:  # there it may be the whole name: OpenRouter, Groq and Hugging Face have such models
            name = rest
    elif not elsewhere:
        raise UnknownModelError(
            f"nothing answers to the model name {as_name(name)!r}; there are 'openai/NAME' "
            f"(e.g. 'openai/gpt-5-mini'), {_simulated()}, and any name that an OpenAI-compatible server has: give its "
            f"address, with llm.resolve({as_name(name)!r}, base_url='http://localhost:11434/v1') in place of the name, "
            "--base-url on the command line, or OPENAI_BASE_URL in the environment"
        )
    if not name:
        raise UnknownModelError("the name of the model is empty; with a base_url, give the name that its server uses")
    settings = config if seed is None else {**config, "seed": seed}
    return OpenAIModel(name, base_url=base_url, api_key=api_key, api=api or "chat", headers=headers, **settings)


def _simulated() -> str:
    return ", ".join(repr(f"simulated/{name}") for name in sorted(SIMULATED))
