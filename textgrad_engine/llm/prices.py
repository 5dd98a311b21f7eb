"""What an answer costs: what was stated, else the table that genai-prices ships; unknown is None, never zero."""

from __future__ import annotations

import functools
import threading
from dataclasses import dataclass
from typing import Any

from textgrad_engine.llm.model import Model, innermost, is_free
from textgrad_engine.llm.response import Usage

__all__ = ["price", "price_of", "set_price"]


@dataclass(frozen=True)
class _Rate:
    input: float
    output: float
    cached: float


_lock = threading.Lock()
_overrides: dict[str, _Rate] = {}


def set_price(
    model: str, input_per_million: float | None, output_per_million: float = 0.0, cached: float | None = None
) -> None:
    """State what a model costs, in US dollars per million tokens, instead of what the table says.

    Args:
        model: the model's name, as it is used with this library.
        input_per_million: dollars for a million input tokens; None takes an earlier statement back.
        output_per_million: dollars for a million output tokens, reasoning included.
        cached: dollars for a million input tokens that the endpoint had cached; like other input when left out.

    Raises:
        ValueError: a price is negative.

    Example:
        >>> set_price("llama3.2", 0.0, 0.0)
        >>> price("llama3.2", Usage(input_tokens=1000))
        0.0
        >>> set_price("llama3.2", None)
    """
    with _lock:
        if input_per_million is None:
            _overrides.pop(_bare(model), None)
            return
        rate = _Rate(input_per_million, output_per_million, input_per_million if cached is None else cached)
        if min(rate.input, rate.output, rate.cached) < 0:
            raise ValueError(f"the prices of {model!r} must not be negative, got {rate}")
        _overrides[_bare(model)] = rate


def price(model_name: str, usage: Usage) -> float | None:
    """What `usage` costs with a model, in US dollars; None when its price is not known.

    Args:
        model_name: a name, with or without a provider before it ("openai/gpt-5-mini").
        usage: the tokens.

    Example:
        >>> price("simulated/tickets", Usage(input_tokens=1000))
        0.0
        >>> price("no-such-model", Usage(input_tokens=1000)) is None
        True
    """
    if model_name.startswith("simulated/"):
        return 0.0
    rate = _overrides.get(_bare(model_name))
    if rate is not None:
        fresh = usage.input_tokens - usage.cached_tokens
        return (fresh * rate.input + usage.cached_tokens * rate.cached + usage.output_tokens * rate.output) / 1e6
    return _table_price(model_name, usage)


def price_of(model: Model, usage: Usage) -> float | None:
    """What `usage` costs with this very model; 0.0 for one that is simulated or says that it is free."""
    return 0.0 if is_free(model) else price(innermost(model).name, usage)


def _bare(model: str) -> str:
    return model.removeprefix("openai/")


def _table_price(model_name: str, usage: Usage) -> float | None:
    import genai_prices  # heavy (0.2 s); its table is inside the package, nothing is fetched

    known = _find(model_name)
    if known is None:
        return None
    name, provider = known
    tokens = genai_prices.Usage(
        input_tokens=usage.input_tokens,
        output_tokens=usage.output_tokens,
        cache_read_tokens=usage.cached_tokens or None,
    )
    return float(genai_prices.calc_price(tokens, name, provider_id=provider).total_price)


@functools.lru_cache(maxsize=256)
def _find(model_name: str) -> tuple[str, str | None] | None:
    import genai_prices  # see above

    provider, _, rest = model_name.partition("/")
    candidates: list[tuple[str, Any]] = [(model_name, None)]
    if rest:
        candidates.insert(0, (rest, provider))
    for name, owner in candidates:
        try:
            genai_prices.calc_price(genai_prices.Usage(input_tokens=1, output_tokens=1), name, provider_id=owner)
        except LookupError:
            continue
        return name, owner
    return None
