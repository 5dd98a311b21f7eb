import asyncio
import subprocess
import sys

import pytest

from textgrad_engine.errors import ServerFailed
from textgrad_engine.llm import (
    Cache,
    Completion,
    GenerateConfig,
    OpenAIModel,
    ResponseFormat,
    RetryPolicy,
    Usage,
    call_key_scope,
    innermost,
    resolve,
)
from textgrad_engine.llm.spans import Traced
from textgrad_engine.testing import Fault, FunctionModel, LoopbackServer, ScriptedModel

pytest.importorskip("opentelemetry.sdk")

from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.semconv._incubating.attributes import gen_ai_attributes, openai_attributes
from opentelemetry.semconv.attributes import error_attributes, server_attributes


@pytest.fixture
def exporter(monkeypatch):
    """A tracer provider that keeps its spans, set up as a program would."""
    kept = InMemorySpanExporter()
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(kept))
    monkeypatch.setattr(trace, "_TRACER_PROVIDER", provider)
    return kept


def test_a_failed_call_is_an_error_on_its_span_without_secrets(run, ask, exporter):
    """Traces are looked at by more people than the logs."""
    failing = ScriptedModel([ServerFailed("refused sk-0123456789abcdef0123 there", status=503)])
    with pytest.raises(ServerFailed):
        run(Traced(failing).complete(ask()))
    (span,) = exporter.get_finished_spans()
    assert span.attributes["error.type"] == "503"
    assert not span.status.is_ok
    assert span.status.description == "refused [redacted] there"
    assert not span.events


def test_a_cancelled_call_ends_its_span(run, ask, exporter):
    """A span that never ends is a leak."""

    async def main():
        task = asyncio.ensure_future(Traced(FunctionModel(str, latency=5)).complete(ask()))
        await asyncio.sleep(1)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)

    run(main())
    (span,) = exporter.get_finished_spans()
    assert span.attributes["error.type"] == "CancelledError"


def test_nothing_is_imported_and_nothing_done_without_opentelemetry():
    """Who does not use it does not pay for it."""
    code = (
        "import asyncio, sys\n"
        "from textgrad_engine.llm import *\n"
        "request = Request(messages=(Message(role='user', content='x'),))\n"
        "asyncio.run(resolve('simulated/tickets').complete(request))\n"
        "print([name for name in sys.modules if name.startswith('opentelemetry')])"
    )
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "[]\n"


def test_without_a_provider_there_is_no_span(run, ask, monkeypatch):
    """The API alone, as a dependency of something else, does not count as set up."""
    monkeypatch.setattr(trace, "_TRACER_PROVIDER", None)
    monkeypatch.delenv("OTEL_PYTHON_TRACER_PROVIDER", raising=False)
    traced = Traced(ScriptedModel(["x"]))
    run(traced.complete(ask()))
    assert traced._tracer[1] is None


def test_a_call_of_an_endpoint_is_a_client_span_with_the_conventions_names(ask, exporter, tmp_path):
    """Dashboards for generative AI work without being told about this library."""
    answer = Completion(
        text='{"a": 1}', usage=Usage(input_tokens=30, output_tokens=5, cached_tokens=20, reasoning_tokens=2, calls=1)
    )
    config = GenerateConfig(
        temperature=0.5,
        max_tokens=9,
        stop=("END",),
        response_format=ResponseFormat(name="r", json_schema={"type": "object"}),
    )
    request = ask("the text of the request", config=config, purpose="judge")
    with LoopbackServer(FunctionModel(lambda request: answer), script=[Fault(500)]) as server:
        policy = RetryPolicy(base=0.0)
        model = resolve("m", base_url=server.base_url, seed=7, cache=Cache(tmp_path), policy=policy)

        async def main():
            tracer = trace.get_tracer("of the program")
            with tracer.start_as_current_span("outside"), call_key_scope("ex/1"):
                await model.complete(request)
                await model.complete(request)
            await innermost(model).aclose()

        asyncio.run(main())
        port = int(server.base_url.split(":")[2].split("/")[0])
    first, second, outside = exporter.get_finished_spans()
    assert first.name == "chat m"
    assert first.kind is trace.SpanKind.CLIENT
    assert first.parent.span_id == outside.context.span_id
    attributes = dict(first.attributes)
    assert attributes.pop("gen_ai.response.id").startswith("chatcmpl")
    assert attributes.pop("textgrad_engine.dollars", None) is None
    assert attributes == {
        "gen_ai.operation.name": "chat",
        "gen_ai.provider.name": "openai",
        "openai.api.type": "chat_completions",
        "gen_ai.request.model": "m",
        "gen_ai.request.temperature": 0.5,
        "gen_ai.request.max_tokens": 9,
        "gen_ai.request.stop_sequences": ("END",),
        "gen_ai.request.seed": 7,
        "gen_ai.output.type": "json",
        "gen_ai.response.model": "m",
        "gen_ai.response.finish_reasons": ("stop",),
        "gen_ai.usage.input_tokens": 30,
        "gen_ai.usage.output_tokens": 5,
        "gen_ai.usage.cache_read.input_tokens": 20,
        "gen_ai.usage.reasoning.output_tokens": 2,
        "server.address": "127.0.0.1",
        "server.port": port,
        "textgrad_engine.attempts": 2,
        "textgrad_engine.cached": False,
        "textgrad_engine.example": "ex/1",
        "textgrad_engine.purpose": "judge",
    }
    known = {
        value
        for module in (gen_ai_attributes, openai_attributes, error_attributes, server_attributes)
        for value in vars(module).values()
        if isinstance(value, str)
    }
    ours = {name for name in {**first.attributes, "error.type": ""} if not name.startswith("textgrad_engine.")}
    assert ours <= known
    assert second.attributes["textgrad_engine.cached"] is True
    assert second.attributes["gen_ai.usage.input_tokens"] == 0
    for span in (first, second):
        assert "the text of the request" not in span.to_json()


def test_a_model_in_this_process_is_an_internal_span(run, ask, exporter):
    """It goes to no server."""
    run(resolve(ScriptedModel(["x"])).complete(ask()))
    (span,) = exporter.get_finished_spans()
    assert span.kind is trace.SpanKind.INTERNAL
    assert span.attributes["gen_ai.provider.name"] == "textgrad_engine"
    assert span.attributes["textgrad_engine.dollars"] == 0.0
    assert "server.address" not in span.attributes


@pytest.mark.parametrize(
    ("url", "vendor", "port"),
    [
        ("https://api.openai.com/v1", "openai", 443),
        ("https://me:pw@api.mistral.ai/v1", "mistral_ai", 443),
        ("https://mine.openai.azure.com/openai/v1", "azure.ai.openai", 443),
        ("http://localhost:11434/v1", "openai", 11434),
    ],
)
def test_the_provider_is_known_by_its_address(ask, url, vendor, port):
    """The conventions have names for the large ones; passwords are no part of an address."""
    asked = Traced(OpenAIModel("m", base_url=url, api_key="k"))._asked(ask())
    assert (asked["gen_ai.provider.name"], asked["server.port"]) == (vendor, port)
    assert "pw" not in str(asked)
