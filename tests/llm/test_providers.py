"""What providers document, or were seen to answer, in their own words; the sources are in docs/conformance.md."""

import asyncio
import contextlib
import json
import logging
import re
import time

import httpx
import pytest
import respx

from textgrad_engine import errors
from textgrad_engine.llm import (
    Check,
    GenerateConfig,
    Message,
    OpenAIModel,
    Request,
    RetryPolicy,
    budget,
    meter,
    on_token,
    price,
    resolve,
)
from textgrad_engine.llm.charged import is_estimated, usage_of, was_sent

HOSTS = {
    "anthropic": "https://api.anthropic.com/v1",
    "azure": "https://ours.openai.azure.com/openai/v1",
    "bedrock": "https://bedrock-runtime.us-west-2.amazonaws.com/openai/v1",
    "cloudflare": "https://api.cloudflare.com/client/v4/accounts/a/ai/v1",
    "cohere": "https://api.cohere.ai/compatibility/v1",
    "cerebras": "https://api.cerebras.ai/v1",
    "deepseek": "https://api.deepseek.com",
    "fireworks": "https://api.fireworks.ai/inference/v1",
    "gemini": "https://generativelanguage.googleapis.com/v1beta/openai/",
    "groq": "https://api.groq.com/openai/v1",
    "huggingface": "https://router.huggingface.co/v1",
    "litellm": "https://litellm.example.com/v1",
    "llama.cpp": "http://127.0.0.1:8080/v1",
    "lmstudio": "http://127.0.0.1:1234/v1",
    "minimax": "https://api.minimax.io/v1",
    "mistral": "https://api.mistral.ai/v1",
    "mlx-vlm": "http://127.0.0.1:8080/v1",
    "ollama": "http://127.0.0.1:11434/v1",
    "openai": "https://api.openai.com/v1",
    "openrouter": "https://openrouter.ai/api/v1",
    "qwen": "https://dashscope-intl.aliyuncs.com/compatible-mode/v1",
    "sglang": "http://127.0.0.1:30000/v1",
    "tgi": "http://127.0.0.1:3000/v1",
    "together": "https://api.together.xyz/v1",
    "vllm": "http://127.0.0.1:8000/v1",
    "xai": "https://api.x.ai/v1",
    "zai": "https://api.z.ai/api/paas/v4",
}
FORMAT = {"title": "Verdict", "type": "object", "properties": {"score": {"type": "integer"}}, "required": ["score"]}


def gemini(message, *details, code=429, status="RESOURCE_EXHAUSTED"):
    return [{"error": {"code": code, "message": message, "status": status, "details": list(details)}}]


def quota(name):
    return {"@type": "type.googleapis.com/google.rpc.QuotaFailure", "violations": [{"quotaId": name}]}


def openrouter(code, message="Provider returned error", **metadata):
    return {"error": {"message": message, "code": code, "metadata": metadata}}


def plain(message, **fields):
    return {"error": {"message": message, **fields}}


RETRY = {"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": "34s"}
FILTERED = plain(
    "The response was filtered due to the prompt triggering Azure OpenAI's content management policy.",
    type=None,
    param="prompt",
    code="content_filter",
    status=400,
    innererror={
        "code": "ResponsibleAIPolicyViolation",
        "content_filter_result": {"hate": {"filtered": False}, "jailbreak": {"filtered": True, "detected": True}},
    },
)
TPM = (
    "Request too large for model `llama-3.3-70b-versatile` in organization `o` service tier `on_demand` on tokens per "
    "minute (TPM): Limit 6000, Requested 8305, please reduce your message size and try again."
)
EXTRA = [{"type": "extra_forbidden", "loc": ["body", "seed"], "msg": "Extra inputs are not permitted", "input": 1}]


@pytest.mark.parametrize(
    ("provider", "status", "body", "kind", "wait", "says"),
    [
        ("azure", 400, FILTERED, errors.BadRequest, None, "filtered: jailbreak.*the key is right"),
        ("azure", 404, plain("The API deployment for this resource does not exist.", code="DeploymentNotFound"),
         errors.BadRequest, None, "check the model's name"),
        ("gemini", 429, gemini("You exceeded your current quota", quota("PerMinutePerProject"), RETRY),
         errors.RateLimited, 34.0, "You exceeded your current quota"),
        ("gemini", 429, gemini("You exceeded your current quota", quota("RequestsPerDayPerProjectPerModel"), RETRY),
         errors.QuotaExhausted, None, "in a day.*later"),
        ("gemini", 429, plain(json.dumps(gemini("Quota exceeded. Please retry in 45.5s.")[0])),
         errors.RateLimited, 45.5, "Quota exceeded"),
        ("gemini", 400, gemini("The input token count (9) exceeds the maximum number of tokens allowed (8).", code=400),
         errors.ContextOverflow, None, "a longer context"),
        ("anthropic", 529, {"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}},
         errors.ServerFailed, None, "Overloaded"),
        ("anthropic", 400, plain("Your credit balance is too low to access the Anthropic API."),
         errors.QuotaExhausted, None, "credit balance"),
        ("anthropic", 400, plain("You have reached your specified API usage limits. You will regain access soon."),
         errors.QuotaExhausted, None, "regain access"),
        ("anthropic", 400, plain("input length and `max_tokens` exceed context limit: 197202 + 21333 > 200000"),
         errors.ContextOverflow, None, "197202"),
        ("openrouter", 429, openrouter(429, raw="x is temporarily rate-limited upstream.", provider_name="Google"),
         errors.RateLimited, None, "Google: x is temporarily"),
        ("openrouter", 400, openrouter(400, raw=json.dumps(plain("maximum context length is 8"))),
         errors.ContextOverflow, None, "maximum context length is 8"),
        ("openrouter", 429, openrouter(429, "Rate limit exceeded: free-models-per-day. Add 10 credits"),
         errors.QuotaExhausted, None, "free-models-per-day"),
        ("openrouter", 402, openrouter(402, "This request requires more credits, or fewer max_tokens."),
         errors.QuotaExhausted, None, "fewer max_tokens"),
        ("openrouter", 404, openrouter(404, "No endpoints found that support tool use."),
         errors.BadRequest, None, "no provider of this model takes such a request"),
        ("openrouter", 404, openrouter(404, "No endpoints found matching your data policy."),
         errors.BadRequest, None, "ask less of providers"),
        ("openrouter", 403, openrouter(403, "Your input was flagged", reasons=["violence"]),
         errors.BadRequest, None, "the key is right"),
        ("openrouter", 403, openrouter(403, "Key limit exceeded (total limit).", limit_source="openrouter_key_limit"),
         errors.QuotaExhausted, None, "Key limit"),
        ("groq", 413, plain(TPM, type="tokens", code="rate_limit_exceeded"),
         errors.ContextOverflow, None, "in a minute"),
        ("groq", 429, plain("Rate limit reached on tokens per day (TPD): Limit 9, Used 9. Please try again in 14m24s."),
         errors.QuotaExhausted, 864.0, "back at 20[0-9-]{8} [0-9:]{5} UTC: `resume`"),
        ("openai", 429, plain("Rate limit reached for gpt-4o in organization org-x on requests per day (RPD): Limit "
                              "10000, Used 10000, Requested 1. Please try again in 8.64s."),
         errors.QuotaExhausted, 8.64, "back at 20"),
        ("groq", 429, plain("Rate limit reached on tokens per minute (TPM): Limit 6000. Please try again in 4.77s."),
         errors.RateLimited, 4.77, "TPM"),
        ("groq", 498, plain("Flex tier capacity exceeded", type="capacity_exceeded"),
         errors.RateLimited, None, "service tier"),
        ("mistral", 422, {"object": "error", "message": {"detail": EXTRA}, "type": "invalid_request_error"},
         errors.BadRequest, None, "leave the setting 'seed' out.*random_seed"),
        ("mistral", 400, {"object": "error", "message": "Prompt contains 9 tokens, too large for model with 8 maximum "
                          "context length", "code": "3051"}, errors.ContextOverflow, None, "Prompt contains"),
        ("deepseek", 402, plain("Insufficient Balance"), errors.QuotaExhausted, None, "Insufficient Balance"),
        ("together", 422, plain("`inputs` tokens + `max_new_tokens` must be <= 8193. Given: 9000 `inputs` tokens"),
         errors.ContextOverflow, None, "9000"),
        ("together", 403, plain("Input token count + `max_tokens` parameter must be less than the context length"),
         errors.ContextOverflow, None, "less than the context length"),
        ("fireworks", 412, plain("Account x is suspended, possibly due to reaching the monthly spending limit"),
         errors.QuotaExhausted, None, "suspended"),
        ("cerebras", 400, {"message": "Please reduce the length of the messages or completion. Current length is 9",
                           "code": "context_length_exceeded"}, errors.ContextOverflow, None, "Current length"),
        ("cerebras", 429, {"message": "Tokens per day limit exceeded", "code": "token_quota_exceeded"},
         errors.QuotaExhausted, None, "in a day.*later"),
        ("xai", 403, {"code": "The caller does not have permission", "error": "Content violates usage guidelines. "
                      "Failed check: SAFETY_CHECK_TYPE_BIO"}, errors.BadRequest, None, "the key is right"),
        ("xai", 403, {"error": "Your newly created team does not have any credits or licenses yet."},
         errors.QuotaExhausted, None, "no money"),
        ("xai", 429, {"error": "Your team x has either used all available credits or reached its monthly limit."},
         errors.QuotaExhausted, None, "no money"),
        ("xai", 400, {"code": "Client specified an invalid argument", "error": "Incorrect API key provided: x."},
         errors.AuthenticationFailed, None, "OPENAI_API_KEY"),
        ("xai", 400, {"error": "This model's maximum prompt length is 131072 but the request contains 200000 tokens."},
         errors.ContextOverflow, None, "200000"),
        ("xai", 400, {"error": "Model grok-4 does not support parameter presencePenalty."},
         errors.BadRequest, None, "leave the setting 'presence_penalty' out"),
        ("bedrock", 400, {"message": "Input is too long for requested model."}, errors.ContextOverflow, None, "long"),
        ("bedrock", 424, {"message": "ModelErrorException"}, errors.ServerFailed, None, "ModelError"),
        ("vllm", 400, {"object": "error", "message": "The decoder prompt (length 5000) is longer than the maximum "
                       "model length of 4096.", "code": 400}, errors.ContextOverflow, None, "4096"),
        ("ollama", 404, plain('model "x" not found, try pulling it first'), errors.BadRequest, None, "try pulling"),
        ("ollama", 503, plain("server busy, please try again.  maximum pending requests exceeded"),
         errors.ServerFailed, None, "server busy"),
        ("llama.cpp", 503, plain("Loading model", code=503, type="unavailable_error"),
         errors.ServerFailed, 15.0, "Loading model"),
        ("llama.cpp", 400, plain("the request exceeds the available context size. try increasing the context size",
                                 type="exceed_context_size_error"), errors.ContextOverflow, None, "available context"),
        ("lmstudio", 400, {"error": "The number of tokens to keep is greater than the context length (n_keep: 13055)"},
         errors.ContextOverflow, None, "13055"),
        ("sglang", 400, {"object": "error", "message": "The input (5000 tokens) is longer than the model's context "
                         "length (4096 tokens).", "code": 400}, errors.ContextOverflow, None, "5000"),
        ("sglang", 400, {"object": "error", "message": "Input length (700001 tokens) exceeds the maximum allowed "
                         "length (536826 tokens). Use a shorter input or enable --allow-auto-truncate.", "code": 400},
         errors.ContextOverflow, None, "700001"),
        ("llama.cpp", 500, {"error": {"code": 500, "message": "the request exceeds the available context size. try "
                            "increasing the context size", "type": "exceed_context_size_error", "n_ctx": 256}},
         errors.ContextOverflow, None, "exceeds the available"),
        ("litellm", 500, plain("litellm.BadRequestError: This model's maximum context length is 8192 tokens. However, "
                               "you requested 9000 tokens."), errors.ContextOverflow, None, "9000"),
        ("vllm", 500, plain("CUDA out of memory while the cache for a context length of 32768 was made"),
         errors.ServerFailed, None, "CUDA"),
        ("llama.cpp", 500, plain("failed to shift the context window, no slot is free"),
         errors.ServerFailed, None, "no slot"),
        ("tgi", 422, {"error": "Input validation error: `inputs` tokens + `max_new_tokens` must be <= 4096. Given: 9",
                      "error_type": "validation"}, errors.ContextOverflow, None, "4096"),
        ("tgi", 424, {"error": "Request failed during generation", "error_type": "generation"},
         errors.ServerFailed, None, "during generation"),
        ("tgi", 429, {"error": "Model is overloaded", "error_type": "overloaded"},
         errors.RateLimited, None, "overloaded"),
        ("litellm", 400, plain("Budget has been exceeded! Current cost: 2, Max budget: 1", type="budget_exceeded"),
         errors.QuotaExhausted, None, "Max budget"),
        ("litellm", 400, plain("litellm.ContextWindowExceededError: too long"), errors.ContextOverflow, None, "long"),
        ("openai", 429, plain("Your account is not active, please check your billing details.",
                              code="billing_not_active"), errors.QuotaExhausted, None, "not active"),
        ("openai", 429, plain("Flex resources are unavailable", code="resource_unavailable"),
         errors.RateLimited, None, "another service_tier"),
        ("openai", 429, plain("Request too large for gpt-4o on tokens per min (TPM): Limit 30000, Requested 342389."),
         errors.ContextOverflow, None, "342389.*in a minute"),
        ("openai", 400, plain("Unsupported value: 'temperature' does not support 0 with this model.",
                              param="temperature", code="unsupported_value"),
         errors.BadRequest, None, "leave the setting 'temperature' out"),
        ("zai", 429, plain("Weekly/Monthly Limit Exhausted. Your limit will reset at 2026-07-14 07:49:08", code="1310"),
         errors.QuotaExhausted, None, "a week or a month.*later"),
        ("zai", 429, plain("Usage limit reached for 5 hour. Your limit will reset at 2026-09-09 05:38:28", code="1308"),
         errors.QuotaExhausted, None, "some hours.*later"),
        ("cohere", 429, {"message": "You are using a Trial key, which is limited to 1000 API calls / month."},
         errors.QuotaExhausted, None, "a month"),
        ("cohere", 429, {"message": "You are using a Trial key, which is limited to 40 API calls / minute."},
         errors.RateLimited, None, "requests_per_minute"),
        ("huggingface", 429, plain("Too many requests, slow down. PRO for $9/month allows more."),
         errors.RateLimited, None, "requests_per_minute"),
        ("azure", 403, plain("Out of call volume quota. Quota will be replenished in 2.00:00:00.", code="403"),
         errors.QuotaExhausted, None, "later"),
        ("cloudflare", 429, plain("you have used up your daily free allocation of 10,000 neurons"),
         errors.QuotaExhausted, None, "in a day"),
        ("gemini", 429, gemini("You exceeded your current quota. * Quota exceeded for metric: free_tier_requests, "
                               "limit: 0, model: gemini-2.5-pro\nPlease retry in 54.2s.",
                               quota("RequestsPerDayPerProject"), quota("RequestsPerMinutePerProject"), RETRY),
         errors.QuotaExhausted, None, "limit for this model is 0"),
        ("gemini", 499, gemini("The operation was cancelled.", code=499, status="CANCELLED"),
         errors.DeadlineExceeded, None, "cancelled"),
        ("openai", 403, plain("Country, region, or territory not supported",
                              code="unsupported_country_region_territory"),
         errors.AuthenticationFailed, None, "the key may be right"),
        ("openai", 404, plain("This is not a chat model and thus not supported in the v1/chat/completions endpoint.",
                              param="model"),
         errors.BadRequest, None, "api='responses'"),
        ("openai", 404, plain("This model is only supported in v1/responses and not in v1/chat/completions."),
         errors.BadRequest, None, "api='responses'"),
        ("azure", 400, plain("The chatCompletion operation does not work with the specified model, gpt-5-pro.",
                             code="OperationNotSupported"), errors.BadRequest, None, "api='responses'"),
        ("litellm", 400, plain("litellm.UnsupportedParamsError: gpt-5 models (including gpt-5-codex) don't support "
                               "temperature=0.0. Only temperature=1 is supported. To drop unsupported params set "
                               "`litellm.drop_params = True`"),
         errors.BadRequest, None, "leave the setting 'temperature' out"),
        ("anthropic", 400, plain("`temperature` is deprecated for this model.", type="invalid_request_error"),
         errors.BadRequest, None, "leave the setting 'temperature' out"),
        ("bedrock", 400, {"message": "The model returned the following errors: temperature is deprecated for this "
                          "model."}, errors.BadRequest, None, "leave the setting 'temperature' out"),
        ("anthropic", 400, plain("`temperature` may only be set to 1 when thinking is enabled or in adaptive mode."),
         errors.BadRequest, None, "leave the setting 'temperature' out"),
        ("xai", 400, {"code": "invalid-argument", "error": "Model grok-4.20 does not support parameter "
                      "reasoningEffort."}, errors.BadRequest, None, "leave the setting 'reasoning_effort' out"),
    ],
)  # fmt: skip
def test_a_refusal_is_what_its_provider_means_by_it(ask, provider, status, body, kind, wait, says, send):
    """What ends a run, what is waited for and what concerns one request are told apart, and the repair is named."""
    with respx.mock(using="httpcore2") as router:
        route = router.post(HOSTS[provider].rstrip("/") + "/chat/completions")
        route.mock(return_value=httpx.Response(status, json=body))
        with pytest.raises(errors.APIError, match=f"(?s){says}") as caught:
            send(OpenAIModel("some/model:1", base_url=HOSTS[provider], api_key="k-0123456789"), ask())
    assert type(caught.value) is kind
    assert caught.value.retry_after == wait
    assert route.call_count == 1


PAGE = "<!DOCTYPE html>\n<html><head><title>Attention Required! | Cloudflare</title></head><body>no</body></html>"


@pytest.mark.parametrize(
    ("status", "kind", "says"),
    [
        (401, errors.AuthenticationFailed, "API key"),
        (403, errors.BadRequest, "in front of the endpoint refused this request"),
        (404, errors.BadRequest, "base_url.*chat/completions"),
        (405, errors.BadRequest, "base_url.*chat/completions"),
        (413, errors.ContextOverflow, "client_max_body_size"),
        (502, errors.ServerFailed, "Cloudflare"),
    ],
)
def test_a_web_page_is_no_word_of_the_endpoint(ask, status, kind, says, send):
    """What refuses a request before it gets there knows nothing of keys and contexts, and may let the next one by."""
    with respx.mock(using="httpcore2") as router:
        router.post(HOSTS["litellm"] + "/chat/completions").mock(return_value=httpx.Response(status, html=PAGE))
        with pytest.raises(errors.APIError) as caught:
            send(OpenAIModel("m", base_url=HOSTS["litellm"], api_key="k-0123456789"), ask())
    assert type(caught.value) is kind
    assert re.search(says, "\n".join([str(caught.value), *getattr(caught.value, "__notes__", [])]), re.DOTALL)


def test_openrouter_is_asked_again_when_it_says_that_a_minute_is_over(ask, send):
    """It says so inside of the body; six attempts of before ended a quarter of a minute after the first."""
    reset = {"X-RateLimit-Limit": "20", "X-RateLimit-Reset": str(round(1000 * (time.time() + 40)))}
    body = openrouter(429, "Rate limit exceeded: free-models-per-min. ", headers=reset)
    with respx.mock(using="httpcore2") as router:
        route = router.post(HOSTS["openrouter"] + "/chat/completions")
        route.mock(return_value=httpx.Response(429, json=body))
        with pytest.raises(errors.RateLimited) as caught:
            send(OpenAIModel("m", base_url=HOSTS["openrouter"], api_key="k-0123456789"), ask())
    assert 30 < caught.value.retry_after <= 40


def answer(text="fine", reason="stop", usage=None, **message):
    choice = {"index": 0, "message": {"role": "assistant", "content": text, **message}, "finish_reason": reason}
    return {"choices": [choice], "model": "m", "usage": usage or {"prompt_tokens": 11, "completion_tokens": 7}}


@pytest.fixture
def replies():
    """Mocks one provider's answers in turn; gives the bodies that were sent, and the model."""

    def make(provider, *responses, name="m", **settings):
        route = router.post(HOSTS[provider].rstrip("/") + "/chat/completions")
        made = [each if isinstance(each, httpx.Response) else httpx.Response(200, json=each) for each in responses]
        route.mock(side_effect=made)
        model = OpenAIModel(name, base_url=HOSTS[provider], api_key="k-0123456789", **settings)
        return model, lambda: [json.loads(call.request.content) for call in route.calls]

    with respx.mock(using="httpcore2") as router:
        yield make


def refused(status, message, **fields):
    return httpx.Response(status, json={"error": {"message": message, **fields}})


def test_max_tokens_has_the_name_that_the_model_wants_from_then_on(ask, replies):
    """Azure's GPT-5 refuses the old name; a run under a budget sends it with every request."""
    no = refused(400, "Unsupported parameter: 'max_tokens' is not supported with this model. Use "
                 "'max_completion_tokens' instead.", param="max_tokens", code="unsupported_parameter")  # fmt: skip
    model, sent = replies("azure", no, answer(), answer())

    async def main():
        with budget(tokens=100_000):
            stack = resolve(model)
            await stack.complete(ask())
            await stack.complete(ask(config=GenerateConfig(max_tokens=5)))
        await model.aclose()

    asyncio.run(main())
    assert [(each.get("max_tokens"), each.get("max_completion_tokens")) for each in sent()] == [
        (8192, None),
        (None, 8192),
        (None, 5),
    ]


def test_a_limit_per_minute_that_max_tokens_passes_makes_it_smaller_under_a_budget(ask, replies):
    """Groq counts it with the request: with the 8,192 that a budget sends, no request would ever pass."""
    model, sent = replies("groq", refused(413, TPM, type="tokens", code="rate_limit_exceeded"), answer())

    async def main():
        with budget(tokens=100_000):
            await resolve(model).complete(ask())
        await model.aclose()

    asyncio.run(main())
    assert [each["max_tokens"] for each in sent()] == [8192, 4096]


@pytest.mark.parametrize(
    ("status", "said"),
    [
        (400, "System role not supported"),
        (400, "Developer instruction is not enabled for models/gemma-3-27b-it"),
        (400, "Unsupported value: 'messages[0].role' does not support 'system' with this model."),
        (500, "Conversation roles must alternate user/assistant/user/assistant/..."),
    ],
)
def test_a_template_without_a_system_role_gets_its_text_before_the_users(replies, caplog, status, said, send):
    """Gemma's and o1-mini's; every program here has a system prompt."""
    model, sent = replies("vllm", refused(status, said), answer(), answer())
    messages = (Message(role="system", content="Sort."), Message(role="user", content="Lost my card"))
    with caplog.at_level(logging.WARNING):
        for _ in range(2):
            assert send(model, Request(messages=messages)).text == "fine"
    assert [each["messages"] for each in sent()[1:]] == [[{"role": "user", "content": "Sort.\n\nLost my card"}]] * 2
    assert caplog.text.count("takes no system messages") == 1


def test_a_name_that_begins_with_openai_is_sent_whole_and_then_without(replies, ask, send):
    """It is the whole name on Groq, OpenRouter and vLLM, and a habit from litellm elsewhere."""
    whole, sent = replies("groq", answer(), name="openai/gpt-oss-120b")
    send(whole, ask())
    assert sent()[0]["model"] == "openai/gpt-oss-120b"
    habit, sent = replies("ollama", refused(404, 'model "openai/x" not found'), answer(), answer(), name="openai/x")
    for _ in range(2):
        send(habit, ask())
    assert [each["model"] for each in sent()] == ["openai/x", "x", "x"]


def test_a_name_that_is_refused_in_both_forms_is_refused_as_it_was_written(replies, ask, send):
    """Whoever reads the error looks for what he wrote."""
    model, sent = replies("ollama", *[refused(404, "no such model")] * 2, name="openai/x")
    with pytest.raises(errors.BadRequest, match="a request to 'openai/x'") as caught:
        send(model, ask())
    assert "nor is there a model 'x'" in caught.value.__notes__
    assert len(sent()) == 2


@pytest.mark.parametrize(
    ("provider", "status", "said"),
    [
        ("deepseek", 400, "This response_format type is unavailable now"),
        ("groq", 400, "This model does not support response format `json_schema`."),
        ("groq", 400, "json mode cannot be combined with tool/function calling"),
        ("gemini", 400, "The specified schema produces a constraint that has too many states for serving."),
        ("gemini", 400, "Function calling with a response mime type: 'application/json' is unsupported"),
        ("gemini", 400, "A schema in GenerationConfig in the request exceeds the maximum allowed nesting depth."),
        ("gemini", 400, "Request contains an invalid argument."),
        ("anthropic", 400, "output_config.format.schema: For 'object' type, 'additionalProperties' must be false"),
        ("anthropic", 400, "Schema is too complex for compilation."),
        ("openrouter", 404, "No endpoints found that can handle the requested parameters."),
        ("vllm", 400, "The provided JSON schema contains features not supported by xgrammar."),
        ("llama.cpp", 400, "failed to parse grammar"),
        ("cerebras", 422, '"tools" is incompatible with "response_format"'),
    ],
)
def test_structured_output_that_an_endpoint_cannot_hold_a_model_to_is_asked_for_in_words(
    replies, ask, provider, status, said, send
):
    """Each says so in its own way, and the answer is checked here in any case."""
    model, sent = replies(provider, refused(status, said), answer('{"score": 1}'), response_format=FORMAT)
    assert json.loads(send(model, ask()).text) == {"score": 1}
    assert "response_format" not in sent()[1]


def test_a_refusal_that_words_do_not_mend_is_not_remembered(replies, ask, send):
    """Else one odd request would cost all later ones their structured output."""
    no = refused(400, "messages with grammar in them are not for me")
    model, sent = replies("vllm", no, no, answer('{"score": 1}'), response_format=FORMAT)
    with pytest.raises(errors.BadRequest):
        send(model, ask())
    send(model, ask())
    assert ["response_format" in each for each in sent()] == [True, False, True]


def test_json_that_groq_refuses_to_pass_on_is_shown_to_the_model_again(replies, ask, send):
    """It answers 400 with what the model wrote: an answer that can be mended, and no wrong request."""
    no = refused(400, "Failed to generate JSON. Please adjust your prompt.", code="json_validate_failed",
                 type="invalid_request_error", failed_generation='{"score": ')  # fmt: skip
    model, sent = replies("groq", no, answer('{"score": 1}'), response_format=FORMAT)
    assert json.loads(send(resolve(model), ask()).text) == {"score": 1}
    first, second = sent()
    assert "response_format" in second
    assert second["messages"][1] == {"role": "assistant", "content": '{"score": '}
    assert "Failed to generate JSON" in second["messages"][2]["content"]
    assert len(first["messages"]) == 1


@pytest.mark.parametrize(
    ("provider", "usage", "expected"),
    [
        # input, output, cached, reasoning, dollars
        ("gemini", {"prompt_tokens": 20, "completion_tokens": 198, "total_tokens": 623}, (20, 603, 0, 405, None)),
        ("gemini", {"prompt_tokens": 21, "completion_tokens": 0, "total_tokens": 81,
                    "completion_tokens_details": {"reasoning_tokens": 60}}, (21, 60, 0, 60, None)),
        ("xai", {"prompt_tokens": 10120, "completion_tokens": 1499, "total_tokens": 14428,
                 "prompt_tokens_details": {"cached_tokens": 128}, "cost_in_usd_ticks": 232_856_000,
                 "completion_tokens_details": {"reasoning_tokens": 2809}}, (10120, 4308, 128, 2809, 0.0232856)),
        ("openai", {"prompt_tokens": 500, "completion_tokens": 500, "total_tokens": 1000,
                    "completion_tokens_details": {"reasoning_tokens": 200}}, (500, 500, 0, 200, None)),
        ("deepseek", {"prompt_tokens": 100, "completion_tokens": 5, "total_tokens": 105, "prompt_cache_hit_tokens": 64,
                      "prompt_cache_miss_tokens": 36}, (100, 5, 64, 0, None)),
        ("openrouter", {"prompt_tokens": 194, "completion_tokens": 2, "total_tokens": 196, "cost": 0.95,
                        "cost_details": {"upstream_inference_cost": 0.95}, "is_byok": False},
         (194, 2, 0, 0, 0.95)),
        ("openrouter", {"prompt_tokens": 194, "completion_tokens": 2, "total_tokens": 196, "cost": 0.05,
                        "cost_details": {"upstream_inference_cost": 1.0}, "is_byok": True}, (194, 2, 0, 0, 1.05)),
        ("vllm", {"prompt_tokens": 9, "completion_tokens": 2, "total_tokens": 7, "cost": "free"}, (9, 2, 0, 0, None)),
        ("mlx-vlm", {"input_tokens": 11, "output_tokens": 5, "total_tokens": 16}, (11, 5, 0, 0, None)),
        ("litellm", {"completion_tokens": 900, "total_tokens": 911}, (11, 900, 0, 0, None)),
        ("litellm", {"prompt_tokens": 11, "completion_tokens": None, "total_tokens": 911}, (11, 900, 0, 0, None)),
    ],
)  # fmt: skip
def test_tokens_and_money_are_what_the_provider_bills(replies, ask, provider, usage, expected, send):
    """Thoughts that some do not count with the answer cost most of the money."""
    model, _ = replies(provider, answer(usage=usage))
    found = send(model, ask()).usage
    assert (found.input_tokens, found.output_tokens, found.cached_tokens, found.reasoning_tokens) == expected[:4]
    assert found.dollars == (None if expected[4] is None else pytest.approx(expected[4]))


def test_an_output_that_is_stated_counts_where_the_input_is_not(replies, ask, send):
    """Only what is not said is counted here."""
    model, _ = replies("litellm", answer(usage={"completion_tokens": 900, "cost": 0.25}))
    completion = send(model, ask())
    assert (completion.usage.output_tokens, completion.usage.dollars) == (900, 0.25)
    assert completion.usage.input_tokens > 0
    assert is_estimated(completion)


@pytest.mark.parametrize("streamed", [False, True])
@pytest.mark.parametrize("field", ["reasoning_content", "reasoning"])
def test_thoughts_and_calls_count_where_nothing_is_said_of_tokens(replies, ask, field, streamed, send):
    """Most of what reasoning models are paid for stands beside the answer."""
    called = {
        "id": "a",
        "type": "function",
        "function": {"name": "look", "arguments": json.dumps({"at": "sky " * 100})},
    }
    plain_one, thoughtful, calling = (
        answer(),
        answer(**{field: "I wonder. " * 100}),
        answer("", "tool_calls", tool_calls=[called]),
    )
    spent = []
    for said in (plain_one, thoughtful, calling):
        del said["usage"]
        model, _ = replies("vllm", streamed_answer(said) if streamed else said)
        with on_token(lambda *_: None) if streamed else contextlib.nullcontext():
            completion = send(model, ask())
        assert is_estimated(completion)
        spent.append(completion.usage.output_tokens)
    assert spent[0] < 5
    assert min(spent[1:]) > 100


def streamed_answer(said):
    choice = said["choices"][0]
    events = [{"choices": [{"index": 0, "delta": choice["message"], "finish_reason": choice["finish_reason"]}]}]
    body = "".join(f"data: {json.dumps(event)}\n\n" for event in events) + "data: [DONE]\n\n"
    return httpx.Response(200, content=body.encode(), headers={"content-type": "text/event-stream"})


BILLED = {"prompt_tokens": 11, "completion_tokens": 500, "total_tokens": 511}


@pytest.mark.parametrize(
    "body",
    [
        {"choices": [], "usage": BILLED},
        {"choices": None, "usage": BILLED, "base_resp": {"status_code": 1027, "status_msg": "output new_sensitive"}},
        answer(reason=None, usage=BILLED),
        answer(reason="abort", usage=BILLED),
        answer(5, usage=BILLED),
        {"error": {"message": "it broke off", "code": 502}, "usage": BILLED},
    ],
)
def test_what_a_body_without_an_answer_says_it_used_is_counted(replies, ask, body, send):
    """It is paid for like any other: each attempt is in the sums, and no more than that is held."""
    model, sent = replies("openrouter", *[body] * 3)
    with meter() as counted, budget(tokens=100_000) as limit:
        policy = RetryPolicy(max_attempts=3, base=0.0, cap=0.0)
        with pytest.raises(errors.ModelError) as caught:
            send(resolve(model, policy=policy), ask())
    assert len(sent()) == 3
    assert usage_of(caught.value).total_tokens == counted.total.total_tokens == limit.spent.total_tokens == 3 * 511
    assert limit.remaining.tokens == 100_000 - 3 * 511


@pytest.mark.parametrize(("asked_for", "served"), [("priority", "default"), (None, "priority"), ("flex", "flex")])
def test_an_answer_costs_what_the_tier_that_served_it_costs(replies, ask, asked_for, served, send):
    """OpenAI serves what asks for priority by its usual tier when that is full, and bills it so."""
    usage = {"prompt_tokens": 1000, "completion_tokens": 1000, "total_tokens": 2000}
    model, _ = replies("openai", answer(usage=usage) | {"service_tier": served}, name="gpt-5")
    config = GenerateConfig(extra={"service_tier": asked_for} if asked_for else {})
    found = send(resolve(model), ask(config=config)).usage
    assert found.dollars == price("gpt-5", found, served)
    assert price("gpt-5", found, "flex") < price("gpt-5", found) < price("gpt-5", found, "priority")


def test_what_an_endpoint_says_an_answer_cost_goes_before_the_table(replies, ask, send):
    """OpenRouter's price depends on where it sends a request."""
    usage = {"prompt_tokens": 194, "completion_tokens": 2, "total_tokens": 196, "cost": 0.95}
    model, _ = replies("openrouter", answer(usage=usage), name="openai/gpt-4o")
    assert send(resolve(model), ask()).usage.dollars == 0.95


@pytest.mark.parametrize(
    ("provider", "reason", "kind"),
    [
        ("gemini", "content_filter: PROHIBITED_CONTENT", errors.ContentFiltered),
        ("gemini", "SAFETY", errors.ContentFiltered),
        ("gemini", "MAX_TOKENS", errors.TruncatedResponse),
        ("gemini", "function_call_filter: MALFORMED_FUNCTION_CALL", errors.MalformedResponse),
        ("gemini", None, errors.MalformedResponse),
        ("anthropic", "refusal", errors.ContentFiltered),
        ("deepseek", "insufficient_system_resource", errors.ServerFailed),
        ("mistral", "model_length", errors.TruncatedResponse),
        ("openrouter", "error", errors.MalformedResponse),
        ("vllm", "abort", errors.MalformedResponse),
    ],
)
def test_how_an_answer_ended_is_told_in_many_words(replies, ask, provider, reason, kind, send):
    """Only a finished answer may become feedback or a parameter."""
    model, _ = replies(provider, answer("", reason))
    with pytest.raises(kind) as caught:
        send(Check(model), ask())
    assert was_sent(caught.value)


@pytest.mark.parametrize("reason", ["STOP", "stop", "COMPLETE", "eos", "end_turn"])
def test_a_finished_answer_is_one_in_many_words(replies, ask, reason, send):
    """In capitals, too."""
    model, _ = replies("together", answer("fine", reason))
    assert send(Check(model), ask()).text == "fine"


def test_thoughts_that_took_all_of_max_tokens_are_a_truncated_answer_that_was_paid_for(replies, ask, send):
    """Gemini answers so when its thinking budget is larger than the limit: no content at all."""
    said = answer(None, "length", {"prompt_tokens": 11, "completion_tokens": 0, "total_tokens": 511})
    del said["choices"][0]["message"]["content"]
    model, _ = replies("gemini", said, max_tokens=500)
    with pytest.raises(errors.TruncatedResponse, match=r"max_tokens=500.*after 500 tokens") as caught:
        send(Check(model), ask())
    assert usage_of(caught.value).output_tokens == 500


@pytest.mark.parametrize("field", ["reasoning_content", "reasoning"])
def test_an_answer_that_a_server_takes_for_thoughts_is_told_so(replies, ask, field, send):
    """vLLM's parser does so where a template is told not to think; nothing else tells why all answers are empty."""
    model, _ = replies("vllm", answer(None, **{field: "billing"}))
    with pytest.raises(errors.EmptyResponse, match=f"with thoughts.*{field}.*reasoning parser"):
        send(Check(model), ask())


def test_empty_lines_before_an_answer_are_nothing(replies, ask, send):
    """DeepSeek and OpenRouter keep the connection alive with them."""
    model, _ = replies("deepseek", httpx.Response(200, content=b"\n\n\n" + json.dumps(answer()).encode()))
    assert send(model, ask()).text == "fine"


@pytest.mark.parametrize(
    ("provider", "body", "kind"),
    [
        ("openrouter", {"error": {"code": 502, "message": "Provider returned error", "metadata": {"raw": "down"}}},
         errors.ServerFailed),
        ("anthropic", {"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}},
         errors.ServerFailed),
        ("vllm", {"object": "error", "message": "broke", "type": "InternalServerError", "code": 500},
         errors.ServerFailed),
        ("tgi", {"error": "Model is overloaded", "error_type": "overloaded"}, errors.ServerFailed),
        ("lmstudio", {"error": "Trying to keep the first 9 tokens, but the context length is only 4096 tokens"},
         errors.ContextOverflow),
        ("groq", {"error": {"message": "no JSON", "code": "json_validate_failed", "failed_generation": "{"}},
         errors.MalformedResponse),
        ("openai", {"error": {"message": "had an error", "type": "server_error", "code": None}}, errors.ServerFailed),
        ("lmstudio", {"error": "Unexpected endpoint or method. (POST /chat/completions)"}, errors.MalformedResponse),
        ("litellm", {"code": 429, "type": "rate_limit_error", "param": "model", "message": "Rate limit exceeded"},
         errors.RateLimited),
        ("litellm", {"code": "rate_limit", "message": "Error code: 429", "choices": None}, errors.RateLimited),
        ("minimax", {"choices": None, "base_resp": {"status_code": 1008, "status_msg": "insufficient balance"}},
         errors.QuotaExhausted),
        ("openai", {"object": "response", "status": "completed", "output": [{"type": "message", "content": [
            {"type": "output_text", "text": "You have insufficient balance; rate_limit, overloaded, 503."}]}]},
         errors.MalformedResponse),
        ("ollama", {"model": "m", "message": {"role": "assistant", "content": "insufficient balance"}, "done": True},
         errors.MalformedResponse),
    ],
)  # fmt: skip
def test_an_error_in_a_body_of_status_200_is_what_it_says(replies, ask, provider, body, kind, send):
    """What may pass is asked again, and what never will is not."""
    model, _ = replies(provider, body)
    with pytest.raises(errors.ModelError) as caught:
        send(model, ask())
    assert type(caught.value) is kind
    assert was_sent(caught.value)


def test_402_with_a_time_to_wait_is_waited_for(replies, ask, send):
    """OpenRouter answers so while the price of what is under way is not settled; the account is not empty."""
    no = httpx.Response(402, headers={"retry-after": "0"}, json=openrouter(402, "in-flight budget"))
    model, sent = replies("openrouter", no, answer())
    assert send(resolve(model), ask()).text == "fine"
    assert len(sent()) == 2


def test_what_reads_less_than_it_is_sent_is_named_once(replies, ask, caplog, send):
    """Ollama cuts a request beyond num_ctx without a word; the tokens that it counts give it away."""
    usage = {"prompt_tokens": 4096, "completion_tokens": 7, "total_tokens": 4103}
    model, _ = replies("ollama", answer(usage=usage), answer(usage=usage), name="qwen3:8b")
    with caplog.at_level(logging.WARNING):
        for _ in range(2):
            send(model, ask("Sort this ticket, please. " * 2_000))
    assert caplog.text.count("OLLAMA_CONTEXT_LENGTH") == 1
    assert "'qwen3:8b' counted 4096 tokens of a request (forward) of 52000 characters" in caplog.text


def test_what_reads_all_is_not_named(replies, ask, caplog, send):
    """A row of dashes is one token or two."""
    usage = {"prompt_tokens": 2500, "completion_tokens": 7, "total_tokens": 2507}
    model, _ = replies("openai", answer(usage=usage), answer(usage=usage))
    with caplog.at_level(logging.WARNING):
        send(model, ask("Sort this ticket, please. " * 400))
        send(model, ask("-" * 50_000 + " " * 50_000))
    assert caplog.text == ""


def events(*chunks):
    lines = [": OPENROUTER PROCESSING", *(f"data: {json.dumps(chunk)}" for chunk in chunks)]
    return httpx.Response(200, headers={"content-type": "text/event-stream"}, text="\n\n".join(lines) + "\n\n")


def chunk(reason=None, **delta):
    return {"choices": [{"index": 0, "delta": delta, "finish_reason": reason}]}


def streamed(send, model, request):
    pieces = []
    with on_token(lambda _, piece: pieces.append(piece)):
        return send(model, request), pieces


def test_what_goes_back_with_tool_calls_is_kept_when_they_are_streamed(replies, ask, send):
    """Gemini 3 answers 400 to a call without its signature, DeepSeek to one without its thoughts."""
    signed = {"google": {"thought_signature": "abc"}}
    part = {"index": 0, "id": "1", "type": "function", "extra_content": signed,
            "function": {"name": "f", "arguments": "{}"}}  # fmt: skip
    model, _ = replies(
        "gemini",
        events(chunk(reasoning_content="h"), chunk(reasoning_content="m"), chunk(tool_calls=[part]), chunk("stop")),
    )
    completion, pieces = streamed(send, model, ask())
    assert pieces == []
    assert completion.tool_calls[0]["extra_content"] == signed
    assert completion.as_message().items == ({"type": "message_fields", "reasoning_content": "hm"},)


@pytest.mark.parametrize(
    ("provider", "event", "kind"),
    [
        ("openrouter", {"error": {"code": "server_error", "message": "Provider disconnected unexpectedly"},
                        "choices": [{"index": 0, "delta": {"content": ""}, "finish_reason": "error"}]},
         errors.ServerFailed),
        ("anthropic", {"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}},
         errors.ServerFailed),
        ("vllm", {"object": "error", "message": "broke", "type": "BadRequestError", "code": 400}, errors.BadRequest),
        ("tgi", {"error": "Request failed during generation", "error_type": "generation"}, errors.ServerFailed),
        ("lmstudio", {"error": {"message": "the context length of only 4096 tokens is not enough"}},
         errors.ContextOverflow),
        ("openai", {"error": {"message": "Rate limit reached. Please try again in 11.054s.",
                              "code": "rate_limit_exceeded"}}, errors.RateLimited),
    ],
)  # fmt: skip
def test_an_error_in_a_stream_is_what_it_says_and_takes_back_what_was_told(replies, ask, provider, event, kind, send):
    """It comes after a part of the answer."""
    model, _ = replies(provider, events(chunk(content="half"), event))
    pieces = []
    with on_token(lambda _, piece: pieces.append(piece)), pytest.raises(errors.ModelError) as caught:
        send(model, ask())
    assert type(caught.value) is kind
    assert pieces == ["half", None]
    assert kind is not errors.RateLimited or caught.value.retry_after == 11.054


def test_an_endpoint_that_refuses_stream_options_is_asked_without_from_then_on(replies, ask, send):
    """The usage is counted here then."""
    no = refused(422, "Extra inputs are not permitted: stream_options")
    done = chunk("stop", content="fine")
    model, sent = replies("mistral", no, events(done), events(done))
    for _ in range(2):
        completion, pieces = streamed(send, model, ask())
        assert (completion.text, pieces) == ("fine", ["fine"])
        assert completion.raw["usage_estimated"] is True
    assert ["stream_options" in each for each in sent()] == [True, False, False]


@pytest.mark.parametrize(
    ("provider", "no"),
    [
        ("qwen", refused(400, "This model only support stream mode, please enable the stream parameter to access it.")),
        ("qwen", refused(400, "parameter.enable_thinking must be set to false for non-streaming calls")),
        ("litellm", httpx.Response(400, json={"detail": "Stream must be set to true"})),
    ],
)
def test_what_only_streams_is_asked_for_a_stream_from_then_on(replies, ask, provider, no, send):
    """It costs one refused request, and then none; with the usage, which streams leave out unasked."""
    whole = events(chunk(content="fi"), chunk("stop", content="ne"), {"choices": [], "usage": BILLED})
    model, sent = replies(provider, no, whole, whole)
    for _ in range(2):
        completion = send(resolve(model), ask())
        assert (completion.text, completion.usage.total_tokens) == ("fine", 511)
    assert [each.get("stream") for each in sent()] == [None, True, True]
    assert sent()[-1]["stream_options"] == {"include_usage": True}


def test_a_refusal_that_speaks_of_streams_otherwise_is_told(replies, ask, send):
    """What would not help is not tried."""
    model, sent = replies("litellm", refused(400, "the downstream service knows no such tool"))
    with pytest.raises(errors.BadRequest):
        send(model, ask())
    assert len(sent()) == 1


@pytest.mark.parametrize("kind", ["text/event-stream", "application/json"])
def test_an_answer_that_streams_unasked_is_read_and_asked_for_so_from_then_on(replies, ask, kind, send):
    """It is paid for, and asking again would bring no other; streams say what they used where they are asked."""
    said = events(chunk(content="fi"), chunk("stop", content="ne")).content + b"data: [DONE]\n\n"
    unasked = httpx.Response(200, headers={"content-type": kind}, content=said)
    model, sent = replies("sglang", unasked, events(chunk("stop", content="fine"), {"choices": [], "usage": BILLED}))
    first, second = send(model, ask()), send(model, ask())
    assert (first.text, second.text, second.usage.total_tokens) == ("fine", "fine", 511)
    assert [each.get("stream") for each in sent()] == [None, True]


def test_the_end_of_a_stream_behind_an_answer_in_one_piece_is_no_part_of_it(replies, ask, send):
    """Some gateways put it there, and call the whole a stream."""
    said = json.dumps(answer()).encode() + b"\n\ndata: [DONE]\n\n"
    model, _ = replies(
        "litellm", httpx.Response(200, headers={"content-type": "text/event-stream"}, content=said), answer("again")
    )
    assert [send(model, ask()).text for _ in range(2)] == ["fine", "again"]


def test_a_stream_that_comes_unasked_and_is_cut_off_is_no_answer(replies, ask, send):
    """It may have gone on."""
    model, _ = replies("sglang", events(chunk(content="half of")))
    with pytest.raises(errors.ConnectionFailed, match="before its answer did"):
        send(model, ask())


def test_images_that_tools_gave_go_inside_where_no_user_may_come_behind_a_tool(replies, ask, send):
    """It costs one refused request, and then none."""
    no = refused(400, "Unexpected role 'user' after role 'tool'")
    model, sent = replies("mistral", no, answer("a cat"), answer("a dog"))
    picture = {"type": "image_url", "image_url": {"url": "https://example.org/a.png"}}
    call = {"id": "c1", "type": "function", "function": {"name": "look", "arguments": "{}"}}
    called = Message(role="assistant", content="", tool_calls=(call,))
    asked = Request(messages=(*ask().messages, called, Message(role="tool", content=[picture], tool_call_id="c1")))
    assert [send(model, asked).text for _ in range(2)] == ["a cat", "a dog"]
    assert [each["messages"][-1]["role"] for each in sent()] == ["user", "tool", "tool"]
    assert sent()[1]["messages"][-1]["content"] == [picture]


def called(arguments='{"city": "Rome"}', **fields):
    return {**fields, "function": {"name": "look", "arguments": arguments}}


@pytest.mark.parametrize("streamed_too", [False, True])
@pytest.mark.parametrize(
    ("provider", "ids", "expected"),
    [
        ("gemini", ("", ""), ("call00200", "call00201")),
        ("llama.cpp", (None, None), ("call00200", "call00201")),
        ("vllm", ("call_0", "call_0"), ("call_0", "call00201")),
        ("vllm", ("before", "after"), ("call00200", "after")),
    ],
)
def test_each_call_of_a_tool_has_an_id_of_its_own(replies, ask, provider, ids, expected, streamed_too, send):
    """What came of one is told by it, and Anthropic, Mistral and Gemini refuse conversations without."""
    earlier = called(id="before", type="function")
    said = answer("", "tool_calls", tool_calls=[called(id=own, index=n) for n, own in enumerate(ids)])
    model, _ = replies(provider, streamed_answer(said) if streamed_too else said)
    asked = Request(messages=(*ask().messages, Message(role="assistant", content="", tool_calls=(earlier,))))
    with on_token(lambda *_: None) if streamed_too else contextlib.nullcontext():
        calls = send(model, asked).tool_calls
    assert tuple(call["id"] for call in calls) == expected
    assert {call["type"] for call in calls} == {"function"}


def test_a_conversation_that_is_cut_to_its_last_messages_has_no_id_twice(replies, ask, send):
    """An agent that shows the last messages alone asks with as many of them each time."""
    earlier = called(id="call00200", type="function")
    model, _ = replies("gemini", answer("", "tool_calls", tool_calls=[called(id=""), called(id="call00201")]))
    asked = Request(messages=(*ask().messages, Message(role="assistant", content="", tool_calls=(earlier,))))
    ids = [call["id"] for call in send(model, asked).tool_calls]
    assert len({"call00200", *ids}) == 3
    assert all(len(each) == 9 and each.isalnum() for each in ids)


@pytest.mark.parametrize(
    ("arguments", "expected"), [({"city": "Rome"}, '{"city": "Rome"}'), ("", "{}"), (None, "{}"), ("{", "{")]
)
def test_the_arguments_of_a_call_are_a_text_of_json(replies, ask, arguments, expected, send):
    """They go back as they are, and strict endpoints refuse an object, or a text that is empty."""
    model, sent = replies("llama.cpp", answer("", "tool_calls", tool_calls=[called(arguments, id="1")]), answer())
    completion = send(model, ask())
    asked = Request(messages=(*ask().messages, completion.as_message()))
    send(model, asked)
    assert sent()[1]["messages"][-1]["tool_calls"][0]["function"]["arguments"] == expected


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ('<tool_call>\n{"name": "look", "arguments": {"city": "Rome"}}\n</tool_call>', True),
        ('[TOOL_CALLS][{"name": "look", "arguments": {"city": "Rome"}}]', True),
        ('{"name": "look", "parameters": {"city": "Rome"}}', True),
        ('{"name": "Ann", "age": 5}', False),
        ("It rains in Rome.", False),
    ],
)
def test_a_call_of_a_tool_that_a_server_leaves_in_the_text_is_named_once(replies, ask, caplog, text, told, send):
    """It counts as the answer, and nothing else would tell that it is not what the model meant."""
    tools = ({"type": "function", "function": {"name": "look", "parameters": {"type": "object"}}},)
    model, _ = replies("sglang", answer(text), answer(text), tools=tools)
    with caplog.at_level(logging.WARNING):
        assert [send(model, ask()).text for _ in range(2)] == [text, text]
    assert caplog.text.count("--tool-call-parser") == told


@pytest.mark.parametrize(
    ("status", "said"),
    [(400, "Unterminated string starting at: line 1 column 10 (char 9)"), (500, "Failed to parse tool call arguments")],
)
def test_a_call_whose_arguments_are_no_json_goes_back_without_where_that_is_refused(replies, ask, status, said, send):
    """Else the conversation could never go on; the message behind it tells the model what was wrong."""
    model, sent = replies("vllm", refused(status, said), answer("mended"), answer("again"))
    broken = Message(role="assistant", content="", tool_calls=(called('{"city": "Ro', id="1", type="function"),))
    told = Message(role="tool", content="The call came to nothing: Invalid JSON", tool_call_id="1")
    asked = Request(messages=(*ask().messages, broken, told))
    assert [send(model, asked).text for _ in range(2)] == ["mended", "again"]
    found = [each["messages"][-2]["tool_calls"][0]["function"]["arguments"] for each in sent()]
    assert found == ['{"city": "Ro', "{}", "{}"]


def test_a_refusal_is_not_put_down_to_calls_that_are_whole(replies, ask, send):
    """What is sent once more would be refused once more."""
    model, sent = replies("vllm", refused(400, "no"))
    whole = Message(role="assistant", content="", tool_calls=(called(id="1", type="function"),))
    with pytest.raises(errors.BadRequest):
        send(model, Request(messages=(*ask().messages, whole)))
    assert len(sent()) == 1


@pytest.mark.parametrize("field", ["reasoning_content", "reasoning_details"])
def test_thoughts_before_tool_calls_go_back_with_them(replies, ask, field, send):
    """DeepSeek answers 400 where they are missing; without tool calls nobody asks for them."""
    call = {"id": "1", "type": "function", "function": {"name": "f", "arguments": "{}"}}
    thought = "hm" if field == "reasoning_content" else [{"type": "reasoning.text", "text": "hm"}]
    model, sent = replies(
        "deepseek", answer("", "tool_calls", tool_calls=[call], **{field: thought}), answer(**{field: thought})
    )
    first = send(model, ask())
    result = Message(role="tool", content="42", tool_call_id="1")
    second = send(model, Request(messages=(*ask().messages, first.as_message(), result)))
    assert sent()[1]["messages"][1] == {"role": "assistant", "content": "", "tool_calls": [call], field: thought}
    assert second.as_message().items is None


def test_an_address_that_lacks_its_end_is_shown(replies, ask, send):
    """The commonest slip: no /v1, or /chat/completions twice."""
    model, _ = replies("ollama", httpx.Response(404, text="404 page not found"))
    with pytest.raises(errors.BadRequest) as caught:
        send(model, ask())
    assert "http://127.0.0.1:11434/v1/chat/completions" in caught.value.__notes__[0]
    assert caught.value.unserved


@pytest.mark.parametrize(
    ("status", "said"),
    [
        (404, 'model "m" not found, try pulling it first'),
        (404, "No endpoints found that support image input"),
        (404, "This is not a chat model"),
        (400, "not found"),
    ],
)
def test_a_refusal_by_who_knows_models_is_no_sign_of_a_wrong_address(replies, ask, send, status, said):
    """Somebody is there, and may take the next request."""
    model, _ = replies("ollama", refused(status, said))
    with pytest.raises(errors.BadRequest) as caught:
        send(model, ask())
    assert not caught.value.unserved


@pytest.mark.parametrize(
    ("address", "told"),
    [
        ("https://ours.openai.azure.com", True),
        ("https://ours.openai.azure.com/openai/deployments/gpt-5", True),
        ("https://gateway.example.com/openai/deployments/gpt-5", True),
        ("https://ours.openai.azure.com/openai/v1", False),
        ("https://ours.example.com/v1", False),
    ],
)
def test_an_address_of_azure_that_lacks_its_end_is_told_what_that_is(ask, address, told, send):
    """There is nothing at /v1 alone, which is the end of other addresses."""
    with respx.mock(using="httpcore2") as router:
        said = {"error": {"code": "404", "message": "Resource not found"}}
        router.post(f"{address}/chat/completions").mock(return_value=httpx.Response(404, json=said))
        with pytest.raises(errors.BadRequest) as caught:
            send(OpenAIModel("gpt-5", base_url=address, api_key="k-0123456789"), ask())
    assert any("/openai/v1, without an api-version" in note for note in caught.value.__notes__) is told


def test_an_address_of_openai_for_one_region_is_openai(ask, send):
    """It wants the same names of settings and of models."""
    with respx.mock(using="httpcore2") as router:
        route = router.post("https://eu.api.openai.com/v1/chat/completions")
        route.mock(return_value=httpx.Response(200, json=answer()))
        send(OpenAIModel("openai/gpt-5", base_url="https://eu.api.openai.com/v1", api_key="k", max_tokens=5), ask())
    sent = json.loads(route.calls[0].request.content)
    assert (sent["model"], sent["max_completion_tokens"]) == ("gpt-5", 5)


def test_a_key_that_is_for_some_models_is_not_a_wrong_key(ask, replies):
    """litellm's proxy says so with 403 of a name that it would know without its beginning."""
    no = refused(403, "key not allowed to access model. This key can only access models=['gpt-5-mini']")
    model, sent = replies("litellm", no, answer(), answer(), name="openai/gpt-5-mini")

    async def main():
        await model.complete(ask())
        await model.complete(ask())
        await model.aclose()

    asyncio.run(main())
    assert [each["model"] for each in sent()] == ["openai/gpt-5-mini", "gpt-5-mini", "gpt-5-mini"]


@pytest.mark.parametrize("second", [403, 404])
def test_of_two_names_that_are_refused_the_one_that_was_given_is_told(ask, replies, second):
    """What stands in the config is what can be mended."""
    model, _ = replies("litellm", refused(403, "not allowed to access model A"), refused(second, "no model B"),
                       name="openai/m")  # fmt: skip

    async def main():
        try:
            await model.complete(ask())
        finally:
            await model.aclose()

    with pytest.raises(errors.AuthenticationFailed, match="model A") as raised:
        asyncio.run(main())
    assert raised.value.__notes__[-1] == "nor is there a model 'm'"
