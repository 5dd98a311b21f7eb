"""What the body of an answer says that it used, in whichever words and parts its endpoint says it."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from textgrad_engine.errors import ModelError
from textgrad_engine.llm.charged import mark, usage_of
from textgrad_engine.llm.request import Request
from textgrad_engine.llm.response import Usage
from textgrad_engine.llm.tokens import count, count_request

_COUNTED = (("prompt_tokens", "input_tokens"), ("completion_tokens", "output_tokens"), ("total_tokens",))
"""What endpoints call the tokens of input and output, and both together: mlx-vlm has the names of the Responses API."""

_TICKS = 10**10
"""xAI counts what an answer cost in these parts of a dollar."""

_MOST = 10**8
"""Tokens, or dollars, of one call above which a number is a slip of the endpoint, as a counter that wrapped around."""


def usage_in(found: Any, request: Request, text: str, counted_as: str | None) -> tuple[Usage, bool]:
    """What a body says was used, and whether that had to be counted here because it does not.

    Some servers count cached tokens beside the prompt, or reasoning beside the answer (xAI); where the numbers show
    that, they are added, for `Usage` has them inside. What the total has more than its parts is output that they do not
    name: Gemini's thoughts. What an answer cost is taken from OpenRouter and xAI, who say it. A prompt of no tokens is
    what gateways write that do not count, or that had it cached: it is counted here, as where nothing is said. So is
    what no call can have used (`_MOST`): it would spend any budget at once. A number that is left out is what the total
    has more than the other one.

    Args:
        found: the object with ``prompt_tokens``, ``completion_tokens`` and their details.
        request: what was asked.
        text: all that the model wrote (`written`).
        counted_as: the model whose vocabulary counts; None for the estimate.
    """
    found = found if isinstance(found, dict) else {}
    details_in, details_out = found.get("prompt_tokens_details"), found.get("completion_tokens_details")
    cached = _number(details_in.get("cached_tokens")) if isinstance(details_in, dict) else None
    if cached is None:  # DeepSeek's word for it, and Moonshot's
        cached = _number(found.get("prompt_cache_hit_tokens")) or _number(found.get("cached_tokens"))
    reasoning = _number(details_out.get("reasoning_tokens")) if isinstance(details_out, dict) else None
    asked, said, total = [_stated(found, *names) for names in _COUNTED]
    if asked is None and said is not None and total is not None:
        asked = max(total - said, 0)
    read = _with_part(asked or 0, cached or 0)
    if said is None and read and total is not None and total > read:
        said = total - read
    uncounted = said is None or not (said or read)
    output = count(text, counted_as) if uncounted else said or 0
    unnamed = (total or 0) - read - output
    if uncounted or unnamed <= 0:
        written = _with_part(output, reasoning or 0)
    else:
        written, reasoning = output + unnamed, max(reasoning or 0, unnamed)
    return (
        Usage(
            input_tokens=read or count_request(request, counted_as),
            output_tokens=written,
            cached_tokens=cached or 0,
            reasoning_tokens=reasoning or 0,
            calls=1,
            dollars=_cost(found),
        ),
        uncounted or not read,
    )


def written(text: str, thoughts: str, calls: Sequence[Mapping[str, Any]]) -> str:
    """All that a model wrote, which is what it is paid for: thoughts and calls of tools stand beside its answer.

    Args:
        text: the answer.
        thoughts: as far as they are told.
        calls: those of tools; their ids are made by the endpoint.
    """
    if not thoughts and not calls:
        return text
    called = [call.get("function") or call.get("custom") for call in calls]
    parts = [thoughts, text, *[json.dumps(each, ensure_ascii=False) for each in called]]
    return "\n".join([part for part in parts if part])


def paid_for(error: ModelError, found: Any, request: Request, counted_as: str | None) -> None:
    """Note on the error of a body that holds no answer what the body says was used, if it says anything.

    Args:
        error: what is wrong about the body.
        found: what it says of its usage, under the names of chat completions.
        request: what was asked.
        counted_as: the model whose vocabulary counts what it leaves out.
    """
    stated = found if isinstance(found, dict) else {}
    if usage_of(error) is None and (any(_stated(stated, *names) for names in _COUNTED) or _cost(stated)):
        usage, estimated = usage_in(stated, request, "", counted_as)
        mark(error, usage=usage, estimated=estimated)


def _cost(found: Mapping[str, Any]) -> float | None:
    """The dollars that an endpoint says an answer cost; None where it says nothing."""
    ticks = found.get("cost_in_usd_ticks")
    if isinstance(ticks, int) and not isinstance(ticks, bool) and 0 <= ticks <= _MOST * _TICKS:
        return ticks / _TICKS
    cost = _dollars(found.get("cost"))
    if cost is not None and found.get("is_byok") is True:  # with a key of one's own: what its provider takes
        details = found.get("cost_details")
        cost += (_dollars(details.get("upstream_inference_cost")) if isinstance(details, dict) else None) or 0.0
    return cost


def _dollars(value: Any) -> float | None:
    good = isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value <= _MOST
    return float(value) if good else None


def _with_part(whole: int, part: int) -> int:
    """A number of tokens with those of a part in it; a part that is larger was counted beside it."""
    return whole + part if part > whole else whole


def _stated(found: Mapping[str, Any], *names: str) -> int | None:
    """The number that stands under the first of some names that has one."""
    return next((number for name in names if (number := _number(found.get(name))) is not None), None)


def _number(value: Any) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= _MOST else None
