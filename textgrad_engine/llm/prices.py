"""What an answer costs: what was stated, else the table that genai-prices ships; unknown is None, never zero.

The table is also where the sizes of contexts come from.
"""

from __future__ import annotations

import functools
import re
import threading
from collections.abc import Coroutine
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

from textgrad_engine.checks import check
from textgrad_engine.keywords import names_told
from textgrad_engine.llm.loading import loading
from textgrad_engine.llm.model import Model, Wrapper, defaults_of, innermost, is_free, stated_price
from textgrad_engine.llm.request import GenerateConfig, Request
from textgrad_engine.llm.response import Completion, Price, Usage

_TIER = "service_tier"

_lock = threading.Lock()
_overrides: dict[str, Price] = {}


class Priced(Wrapper):
    """A model whose price is stated: ``resolve(..., price=Price(input=0.4, output=1.6))`` makes one.

    Args:
        inner: the model that is wrapped.
        price: what it costs.
    """

    def __init__(self, inner: Model, price: Price) -> None:
        super().__init__(inner)
        check(Priced.__init__, locals())
        self.price = price

    def complete(self, request: Request) -> Coroutine[Any, Any, Completion]:
        """Pass the request on."""
        return self.inner.complete(request)  # the inner coroutine itself: a frame less in each call under way

    def __repr__(self) -> str:
        return f"Priced({self.inner!r}, {self.price!r})"


@names_told
def set_price(
    model: str, input_per_million: float | None, output_per_million: float = 0.0, cached: float | None = None
) -> None:
    """State what a model costs, in US dollars per million tokens, instead of what the table says.

    It holds for the name, in this whole process; ``price=`` of `resolve` or `OpenAIModel` is that of one model, and
    goes first.

    Args:
        model: the model's name, as it is used with this library.
        input_per_million: dollars for a million input tokens; None takes an earlier statement back.
        output_per_million: dollars for a million output tokens, reasoning included.
        cached: dollars for a million input tokens that the endpoint had cached; like other input when left out.

    Raises:
        ValueError: a price is negative, or more than a dollar a token.
        TypeError: one is no number.

    Example:
        >>> set_price("llama3.2", 0.0, 0.0)
        >>> price("llama3.2", Usage(input_tokens=1000))
        0.0
        >>> set_price("llama3.2", None)
    """
    check(set_price, locals())
    with _lock:
        if input_per_million is None:
            _overrides.pop(_bare(model), None)
            return
        try:
            _overrides[_bare(model)] = Price(input_per_million, output_per_million, cached)
        except ValueError as error:
            raise ValueError(f"{model!r}: {error}") from None


def price(model_name: str, usage: Usage, tier: str | None = None) -> float | None:
    """What `usage` costs with a model, in US dollars; None when its price is not known.

    Args:
        model_name: a name, with or without a provider before it ("openai/gpt-5-mini").
        usage: the tokens; a model of one's own that counts more cached input than input pays for what it had cached.
        tier: the service tier that was asked for, such as ``"priority"``, where the endpoint has several.

    Example:
        >>> price("simulated/tickets", Usage(input_tokens=1000))
        0.0
        >>> price("no-such-model", Usage(input_tokens=1000)) is None
        True
    """
    check(price, locals())
    return 0.0 if model_name.startswith("simulated/") else _stated_or_known(model_name, usage, tier)


def _stated_or_known(model_name: str, usage: Usage, tier: str | None, base_url: str = "") -> float | None:
    usage = _with_cached(usage)
    stated = _overrides.get(_bare(model_name))
    return _table_price(model_name, usage, tier, base_url) if stated is None else stated.of(usage)


def _with_cached(usage: Usage) -> Usage:
    """A usage whose input has the cached in it; else what was not cached would be less than nothing."""
    if usage.cached_tokens <= usage.input_tokens:
        return usage
    return usage.model_copy(update={"input_tokens": usage.cached_tokens})


def price_of(model: Model, usage: Usage, tier: str | None = None) -> float | None:
    """What `usage` costs with this very model; 0.0 for one that is simulated or says that it is free.

    The price that the model itself states goes first, whatever the tier. One of many names costs something else at each
    endpoint, so an endpoint that the table knows has its own prices.
    """
    stated = stated_price(model)
    if stated is not None:
        return stated.of(_with_cached(usage))
    return 0.0 if is_free(model) else _stated_or_known(innermost(model).name, usage, tier, address_of(model))


def highest_price_of(model: Model, usage: Usage, tier: str | None) -> float | None:
    """The most that so many tokens can cost with this very model, however much of the input it had cached."""
    price_fresh = price_of(model, usage, tier)
    if not price_fresh:
        return price_fresh
    price_cached = price_of(model, usage.model_copy(update={"cached_tokens": usage.input_tokens}), tier)
    return price_fresh if price_cached is None else max(price_fresh, price_cached)


def tier_of(model: Model, config: GenerateConfig | None = None) -> str | None:
    """The service tier that a model is asked for, as OpenAI's "flex", which costs half, or "priority", twice as much.

    Args:
        model: the model, which may fill in settings.
        config: those of a request, which go first.

    Example:
        >>> from textgrad_engine.llm import resolve
        >>> tier_of(resolve("openai/gpt-5-mini", api_key="x", extra={"service_tier": "flex"}))
        'flex'
    """
    asked = {} if config is None else config.extra
    tier = asked.get(_TIER, defaults_of(model).extra.get(_TIER))
    return tier if isinstance(tier, str) else None


def known_context(model_name: str, base_url: str = "") -> int | None:
    """The tokens that a model reads at most, as the table that genai-prices ships has it; None when it does not know.

    Args:
        model_name: its name.
        base_url: the endpoint, where it is known; what others of that name read there says nothing.

    Example:
        >>> known_context("openai/gpt-4o")
        128000
    """
    if model_name.startswith("simulated/"):
        return None
    addresses = dict.fromkeys([base_url, ""])  # the table has no contexts for some endpoints, such as OpenRouter's
    known = [found for address in addresses if (found := _find(model_name, address)) is not None]
    return next((found.context for found in known if found.context is not None), None)


def address_of(model: Model) -> str:
    """The endpoint of a model; "" where it names none."""
    address = getattr(innermost(model), "base_url", None)
    return "" if address is None else str(address)  # a model of the user's own may have it as an object


def _bare(model: str) -> str:
    return model.removeprefix("openai/")


@dataclass(frozen=True)
class _Known:
    """A model of the table: its name there, its provider, its context, and its prices if they are straight lines."""

    name: str
    provider: str | None
    context: int | None
    rates: tuple[Decimal, Decimal, Decimal, Decimal] | None = field(repr=False)


def _table_price(model_name: str, usage: Usage, tier: str | None, base_url: str) -> float | None:
    known = _find(model_name, base_url)
    if known is None:
        return None
    if known.rates is not None and tier in (None, "default"):  # what OpenAI calls the usual one
        call, fresh, cached, output = known.rates
        plain = usage.input_tokens - usage.cached_tokens
        return float(call + plain * fresh + usage.cached_tokens * cached + usage.output_tokens * output)
    return float(_calculated(known.name, known.provider, usage, tier).total_price)


def _calculated(name: str, provider: str | None, usage: Usage, tier: str | None = None) -> Any:
    with loading():
        import genai_prices  # heavy (0.2 s); its table is inside the package, nothing is fetched

    tokens = genai_prices.Usage(
        input_tokens=usage.input_tokens,
        output_tokens=usage.output_tokens,
        cache_read_tokens=usage.cached_tokens or None,
    )
    context = None if tier is None else {_TIER: tier}
    return genai_prices.calc_price(tokens, name, provider_id=provider, price_context=context)


@functools.lru_cache(maxsize=256)
def _find(model_name: str, base_url: str = "") -> _Known | None:
    for name, owner in _candidates(model_name, base_url):
        try:
            found = _calculated(name, owner, Usage(input_tokens=1, output_tokens=1))
        except LookupError:
            continue
        return _Known(name, owner, found.model.context_window, _rates(name, owner, found))
    return None


def _candidates(model_name: str, base_url: str) -> list[tuple[str, str | None]]:
    """Under which names the table may have a model, and whose it may be there; the best guess first."""
    owner = _owner_of(base_url)
    provider, _, rest = model_name.partition("/")
    if owner is None:
        if _TAG.search(model_name):  # of Ollama's: what runs on somebody's own machine
            return []
        return [(rest, provider), (model_name, None)] if rest else [(model_name, None)]
    names = [model_name]
    if rest and provider in (owner, "models", "openai"):  # "models/gemini-2.5-pro" is Google's own way
        names.append(rest)
    bare, _, variant = model_name.rpartition(":")
    if bare and variant != "free":  # OpenRouter's ways to choose among providers
        names.append(bare)
    found: list[tuple[str, str | None]] = [(name, owner) for name in names]
    return [*found, *((name, "openai") for name in names)] if owner == "azure" else found


@functools.lru_cache(maxsize=64)
def _owner_of(base_url: str) -> str | None:
    """Whose the endpoint at an address is, in the words of the table; None where it does not know."""
    if not base_url:
        return None
    with loading():
        from genai_prices import data_snapshot  # see above

    address = re.sub(r"://\w+\.api\.openai\.com", "://api.openai.com", base_url)  # that of a region
    try:
        found = data_snapshot.get_snapshot().find_provider(None, None, address)
    except LookupError:
        return None
    return str(found.id)


def _rates(name: str, provider: str | None, found: Any) -> tuple[Decimal, Decimal, Decimal, Decimal] | None:
    """Dollars for a call, and for a token of fresh input, cached input and output; None where they change with the size
    of the request or the time of day.
    """
    # To ask the table each time takes 0.1 ms, which every call would wait for three times.
    import genai_prices  # see above

    prices = found.model.prices
    if not isinstance(prices, genai_prices.types.ModelPrice) or not all(
        isinstance(price, Decimal) for price in vars(prices).values() if price is not None
    ):
        return None
    probes = (
        Usage(input_tokens=_PROBE),
        Usage(input_tokens=_PROBE, cached_tokens=_PROBE),
        Usage(output_tokens=_PROBE),
    )
    call = _calculated(name, provider, Usage()).total_price
    fresh, cached, output = [(_calculated(name, provider, probe).total_price - call) / _PROBE for probe in probes]
    return call, fresh, cached, output


_PROBE = 1_000_000

_TAG = re.compile(r":(?:latest$|[a-z\d.]*\d[bm](?![a-z]))", re.IGNORECASE)
"""Names such as "deepseek-r1:8b": a small model on a server of one's own, and not the one whose name it begins with."""
