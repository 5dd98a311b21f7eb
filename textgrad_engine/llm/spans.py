"""OpenTelemetry spans for calls, when the program that uses this library has set OpenTelemetry up.

Nothing is imported here: who has a tracer provider has `opentelemetry.trace` loaded already. Names are those of the
semantic conventions for generative AI (opentelemetry.io, "gen-ai-spans"); what has no name there is below
``textgrad_engine.``. Texts of requests and answers are not put on spans.
"""

from __future__ import annotations

import sys
from collections.abc import Coroutine
from typing import Any
from urllib.parse import urlsplit

from textgrad_engine.errors import APIError
from textgrad_engine.llm.model import Model, Wrapper, defaults_of, innermost
from textgrad_engine.llm.redact import redacted, secrets_of, without_password
from textgrad_engine.llm.request import GenerateConfig, Request
from textgrad_engine.llm.response import Completion
from textgrad_engine.llm.usage import call_key

_VENDORS = {
    "api.anthropic.com": "anthropic",
    "api.cohere.ai": "cohere",
    "api.cohere.com": "cohere",
    "api.deepseek.com": "deepseek",
    "api.groq.com": "groq",
    "api.mistral.ai": "mistral_ai",
    "api.perplexity.ai": "perplexity",
    "api.x.ai": "x_ai",
    "generativelanguage.googleapis.com": "gcp.gemini",
}
"""Providers with a name in the conventions; any other endpoint speaks OpenAI's protocol and counts as "openai"."""

_SETTINGS = {
    "temperature": "gen_ai.request.temperature",
    "top_p": "gen_ai.request.top_p",
    "max_tokens": "gen_ai.request.max_tokens",
    "stop": "gen_ai.request.stop_sequences",
    "seed": "gen_ai.request.seed",
    "frequency_penalty": "gen_ai.request.frequency_penalty",
    "presence_penalty": "gen_ai.request.presence_penalty",
}


class Traced(Wrapper):
    """Puts each call, waiting and further attempts included, into a span, where a tracer provider is set up.

    Without one it costs a look into `sys.modules`.

    Args:
        inner: the model that is wrapped.
    """

    def __init__(self, inner: Model) -> None:
        super().__init__(inner)
        self._core = innermost(inner)
        self._defaults = defaults_of(inner)
        self._tracer: tuple[Any, Any] = (None, None)

    def complete(self, request: Request) -> Coroutine[Any, Any, Completion]:
        """Pass the request on, inside a span."""
        trace = sys.modules.get("opentelemetry.trace")
        tracer = None if trace is None else self._tracer_of(trace)
        if tracer is None:
            return self.inner.complete(request)
        return self._traced(request, trace, tracer)

    async def _traced(self, request: Request, trace: Any, tracer: Any) -> Completion:
        kind = trace.SpanKind.CLIENT if hasattr(self._core, "base_url") else trace.SpanKind.INTERNAL
        # Attributes that a sampler may want are given at the start.
        span = tracer.start_span(f"chat {self.name}", kind=kind, attributes=self._asked(request))
        try:
            with trace.use_span(span, end_on_exit=False, record_exception=False, set_status_on_exception=False):
                completion = await self.inner.complete(request)
            if span.is_recording():
                span.set_attributes(_answered(completion))
            return completion
        except BaseException as error:  # cancelled calls too: the span says how it ended, and the error goes on
            if span.is_recording():
                span.set_attribute("error.type", _error_type(error))
                said = redacted(str(error), secrets_of(self.inner))
                span.set_status(trace.Status(trace.StatusCode.ERROR, said or type(error).__name__))
            raise
        finally:
            span.end()

    def _tracer_of(self, trace: Any) -> Any:
        provider = trace.get_tracer_provider()
        if provider is not self._tracer[0]:
            configured = not isinstance(provider, trace.ProxyTracerProvider)
            self._tracer = (provider, provider.get_tracer("textgrad_engine") if configured else None)
        return self._tracer[1]

    def _asked(self, request: Request) -> dict[str, Any]:
        config: GenerateConfig = request.config.over(self._defaults)
        found: dict[str, Any] = {
            "gen_ai.operation.name": "chat",
            "gen_ai.request.model": self.name,
            "gen_ai.output.type": "text" if config.response_format is None else "json",
            "textgrad_engine.purpose": request.purpose,
        }
        address = getattr(self._core, "base_url", None)
        if address is None:
            found["gen_ai.provider.name"] = "textgrad_engine"
        else:
            parts = urlsplit(without_password(str(address)))
            host = parts.hostname or ""
            vendor = "azure.ai.openai" if host.endswith(".openai.azure.com") else _VENDORS.get(host, "openai")
            found |= {"gen_ai.provider.name": vendor, "server.address": host}
            found["server.port"] = parts.port or (80 if parts.scheme == "http" else 443)
            if (api := getattr(self._core, "api", None)) is not None:
                found["openai.api.type"] = "chat_completions" if api == "chat" else api
        if key := call_key.get():
            found["textgrad_engine.example"] = key
        for name, attribute in _SETTINGS.items():
            if (value := getattr(config, name)) is not None:
                found[attribute] = value
        return found


def _answered(completion: Completion) -> dict[str, Any]:
    usage = completion.usage
    found: dict[str, Any] = {
        "gen_ai.response.finish_reasons": [completion.finish_reason],
        "gen_ai.usage.input_tokens": usage.input_tokens,
        "gen_ai.usage.output_tokens": usage.output_tokens,
        "textgrad_engine.attempts": completion.attempts,
        "textgrad_engine.cached": completion.cached,
    }
    if completion.model:
        found["gen_ai.response.model"] = completion.model
    if isinstance(identifier := (completion.raw or {}).get("id"), str):
        found["gen_ai.response.id"] = identifier
    if usage.cached_tokens:
        found["gen_ai.usage.cache_read.input_tokens"] = usage.cached_tokens
    if usage.reasoning_tokens:
        found["gen_ai.usage.reasoning.output_tokens"] = usage.reasoning_tokens
    if usage.dollars is not None:
        found["textgrad_engine.dollars"] = usage.dollars
    return found


def _error_type(error: BaseException) -> str:
    status = error.status if isinstance(error, APIError) else None
    return type(error).__name__ if status is None else str(status)
