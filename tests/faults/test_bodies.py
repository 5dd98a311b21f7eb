"""Bodies that are no answer, and answers that are not finished."""

import json
import re

import pytest
from pydantic import BaseModel, Field

from textgrad_engine import errors
from textgrad_engine.llm import GenerateConfig, ResponseFormat, RetryPolicy, budget, meter
from textgrad_engine.optim.patch import REWRITE_SCHEMA
from textgrad_engine.testing import Fault

WANTED = GenerateConfig(
    response_format=ResponseFormat(
        name="Verdict",
        json_schema={
            "type": "object",
            "properties": {"score": {"type": "integer"}},
            "required": ["score"],
            "additionalProperties": False,
        },
    )
)


def answered(text, finish_reason="stop", **message):
    choice = {"index": 0, "message": {"role": "assistant", "content": text, **message}, "finish_reason": finish_reason}
    usage = {"prompt_tokens": 5, "completion_tokens": 3, "total_tokens": 8}
    return Fault(200, body={"model": "m", "choices": [choice], "usage": usage})


BROKEN = {
    "html": Fault(200, {"content-type": "text/html"}, "<html><body>Please log in</body></html>"),
    "null choices": Fault(200, body={"choices": None}),
    "no choices": Fault(200, body={"choices": []}),
    "cut JSON": Fault(200, body='{"choices": [{"message": {"content": "half'),
    "a list": Fault(200, body="[]"),
    "nothing": Fault(200),
    "not UTF-8": Fault(200, body=b"\xff\xfe\x00"),
    "an error": Fault(200, body={"error": {"message": "upstream"}}),
    "no reason": answered("half", None),
    "no calls": answered(None, "tool_calls", tool_calls=[{"id": "1", "type": "function", "function": "look"}]),
}


@pytest.mark.parametrize("name", BROKEN)
def test_a_body_that_is_no_completion_is_asked_for_again(bench, name):
    """Once broken: two requests, the answer of the second, and in the budget what the first states, or its worst."""
    here = bench(BROKEN[name])
    with budget(calls=3) as b:
        (completion,) = here.ask()
    assert (completion.text, here.server.requests, here.sleeps) == ("echo of hello", 2, here.backoff(1))
    stated = name in ("no reason", "no calls")  # its body says what it used
    assert (b.spent.calls, b.unknown.calls) == ((2, 0) if stated else (1, 1))


@pytest.mark.parametrize("name", BROKEN)
def test_an_endpoint_that_never_sends_a_completion_is_given_up_early(bench, name):
    """Three requests, for such answers may be charged for."""
    here = bench(*[BROKEN[name]] * 5)
    (error,) = here.ask()
    assert type(error) is errors.MalformedResponse
    assert (here.server.requests, here.sleeps) == (3, here.backoff(2))


@pytest.mark.parametrize(
    ("fault", "kind"),
    [
        (answered("half an ans", "length"), errors.TruncatedResponse),
        (answered("", "content_filter"), errors.ContentFiltered),
        (answered(None, refusal="I cannot help with that"), errors.ContentFiltered),
        (answered([{"type": "refusal", "refusal": "I cannot help with that"}]), errors.ContentFiltered),
    ],
)
def test_an_unfinished_answer_is_not_asked_for_again_and_counts(bench, fault, kind):
    """One request; what it used is in the sums and in the budget."""
    here = bench(fault)
    with meter() as m, budget(calls=3) as b:
        (error,) = here.ask()
    assert type(error) is kind
    assert (here.server.requests, here.sleeps) == (1, [])
    assert (m.total.output_tokens, b.spent.total_tokens, error.usage.output_tokens) == (3, 8, 3)


def of_the_model_behind(code, where="choice"):
    error = {"error": {"code": code, "message": "of the model behind"}}
    choice = {"index": 0, "message": {"role": "assistant", "content": ""}, "finish_reason": "error", **error}
    return Fault(200, body=error if where == "body" else {"model": "m", "choices": [choice]})


@pytest.mark.parametrize("where", ["body", "choice"])
def test_an_error_behind_a_proxy_is_what_its_own_status_says(bench, where):
    """A proxy that has begun to answer cannot send the status any more; a busy model gets all attempts."""
    longer = RetryPolicy(base=30.0)  # than the pauses of the limit, whose end would be waited for else
    here = bench(*[of_the_model_behind(429, where)] * 4, policy=longer)
    with budget(calls=6) as b:
        (completion,) = here.ask()
    assert (completion.text, here.server.requests) == ("echo of hello", 5)
    assert (b.spent.calls, b.unknown.calls) == (1, 4)  # it may have been charged, unlike one that was refused
    here = bench(of_the_model_behind(402, where))
    (error,) = here.ask()
    assert type(error) is errors.QuotaExhausted
    assert here.server.requests == 1


def test_an_empty_answer_is_asked_for_again(bench):
    """Three requests, and every one of them is in the sums."""
    here = bench(*[answered(" \n")] * 3)
    with meter() as m:
        (error,) = here.ask()
    assert type(error) is errors.EmptyResponse
    assert (here.server.requests, here.sleeps) == (3, here.backoff(2))
    assert m.total.calls == 3


@pytest.mark.parametrize(
    ("bad", "problem"),
    [
        ("The score is 3.", "it is not JSON"),
        ('{"score": 3', "it is not JSON"),
        ("[3]", "no JSON object"),
        ('{"score": "high"}', '$.score: expected integer, got the string "high"'),
    ],
)
def test_json_that_does_not_fit_is_sent_back_once_with_what_is_wrong(bench, bad, problem):
    """Two requests, no sleep; both are paid for, and counted."""
    here = bench(answered(bad), answer=lambda request: {"score": 3})
    with meter() as m, budget(calls=2) as b:
        (completion,) = here.ask(config=WANTED)
    assert json.loads(completion.text) == {"score": 3}
    assert (completion.attempts, here.server.requests, here.sleeps) == (2, 2, [])
    (repair,) = here.heard
    assert [message.role for message in repair.messages] == ["user", "assistant", "user"]
    assert repair.messages[1].text == bad
    assert problem in repair.messages[2].text
    assert (m.total.calls, b.spent.calls, b.unknown.calls) == (2, 2, 0)


def test_what_a_pydantic_model_refuses_is_sent_back_with_its_words(bench):
    """The schema lets it pass, and a program that parses the answer would not."""

    class Even(BaseModel):
        score: int = Field(multiple_of=2)

    said = iter(['{"score": 3}', '{"score": 4}'])
    here = bench(answer=lambda request: next(said))
    (completion,) = here.ask(config=GenerateConfig(response_format=Even))
    assert (completion.text, here.server.requests) == ('{"score": 4}', 2)
    assert "$.score: Input should be a multiple of 2" in here.heard[1].messages[-1].text


def test_json_that_stays_wrong_is_an_error(bench):
    """Sent back once, asked anew once, then given up."""
    here = bench(*[answered('{"score": "high"}')] * 9)
    with meter() as m:
        (error,) = here.ask(config=WANTED)
    assert type(error) is errors.MalformedResponse
    assert here.server.requests == m.total.calls == 3
    assert len(here.sleeps) == 1


def test_a_repair_is_not_sent_when_the_budget_has_nothing_left(bench):
    """A repair is a call like any other."""
    here = bench(answered("prose"))
    with budget(calls=1):
        (error,) = here.ask(config=WANTED)
    assert type(error) is errors.BudgetExceeded
    assert here.server.requests == 1


def test_an_endpoint_that_refuses_response_format_is_asked_in_words(bench):
    """One refusal, not counted as an attempt; after that no request carries it."""
    refused = Fault(400, body={"error": {"message": "response_format is not supported"}})
    here = bench(refused, answer=lambda request: '{"score": 1}')
    first, *_ = here.ask(config=WANTED)
    assert (first.attempts, here.server.requests, here.sleeps) == (1, 2, [])
    (asked,) = here.heard
    assert asked.config.response_format is None
    assert '"score": {"type": "integer"}' in asked.messages[-1].text


def test_an_endpoint_that_ignores_response_format_is_asked_in_words_too(bench):
    """From the second request on the schema is in the prompt, so that not every answer needs a repair."""
    here = bench(answered("The score is 3."), answer=lambda request: {"score": 3})
    here.ask(config=WANTED)
    (repair,) = here.heard
    assert repair.config.response_format is not None
    assert repair.messages[-1].text.count('"score": {"type": "integer"}') == 2  # of the repair, and of the fallback


REWRITE = GenerateConfig(response_format=ResponseFormat(name="rewrite", json_schema=REWRITE_SCHEMA))
LONG = 'Sort it.\n"billing" is for money,\n\treturns \\ not. {"a": 1} </text> \u202e\x00'


def between_tags(request, times=1):
    """What a model answers that does as the last words of the request tell it."""
    opened = re.findall(r"^<(text|reason)-([0-9a-f]{8})>$", request.messages[-1].text, re.MULTILINE)
    return "".join([f"<{label}-{nonce}>\n{LONG}\n</{label}-{nonce}>\n" for label, nonce in opened] * times)


APIS = ["chat", "responses"]


@pytest.mark.parametrize("api", APIS)
def test_an_endpoint_that_refuses_response_format_is_asked_for_texts_between_tags(bench, api):
    """A rewritten prompt comes as it is written, with nothing escaped; above the adapter it is JSON."""
    message = "response_format is not supported" if api == "chat" else "text.format is not supported"
    here = bench(Fault(400, body={"error": {"message": message}}), answer=between_tags, api=api)
    (completion,) = here.ask(config=REWRITE)
    assert json.loads(completion.text) == {"text": LONG, "reason": LONG}
    assert (completion.attempts, here.server.requests, here.sleeps) == (1, 2, [])
    (asked,) = here.heard
    assert asked.config.response_format is None
    assert '"type"' not in asked.messages[-1].text


IGNORED = {
    "prose": "The new text is: Sort it.",
    "line ends that are not escaped": '{"text": "Sort it.\nBe brief.", "reason": "asked for"}',
    "quotes that are not escaped": '{"text": "Say "billing".", "reason": "asked for"}',
}


@pytest.mark.parametrize("name", IGNORED)
def test_an_endpoint_that_ignores_response_format_is_asked_for_texts_between_tags(bench, name):
    """Nobody held the model to JSON, so from then on it need not write any; the format is not sent beside the tags."""
    here = bench(answered(IGNORED[name]), answer=between_tags)
    with meter() as m:
        (completion,) = here.ask(config=REWRITE)
    assert json.loads(completion.text) == {"text": LONG, "reason": LONG}
    assert (completion.attempts, here.server.requests, here.sleeps, m.total.calls) == (2, 2, [], 2)
    (repair,) = here.heard
    assert repair.config.response_format is None
    assert repair.messages[1].text == IGNORED[name]


@pytest.mark.parametrize("api", APIS)
@pytest.mark.parametrize(
    ("bad", "problem"),
    [
        (lambda request: between_tags(request, 2), "more than one pair of tags for `text`"),
        (lambda request: between_tags(request)[:-12], "the tag of `reason` is never closed"),
        (lambda request: between_tags(request).partition("<reason")[0], "no pair of tags for `reason`"),
        (lambda request: LONG, "no pair of tags for `text`"),
        (lambda request: '{"text": 3}', "no pair of tags for `text`"),
    ],
)
def test_tags_that_are_wrong_are_sent_back_once_with_what_is_wrong(bench, api, bad, problem):
    """As with bad JSON: at once, with the answer, and with new tags, since the old ones stand in the answer."""
    said = iter([bad])
    message = "response_format or text.format: unknown"
    here = bench(
        Fault(400, body={"error": {"message": message}}),
        answer=lambda request: next(said, between_tags)(request),
        api=api,
    )
    with meter() as m, budget(calls=2) as b:
        (completion,) = here.ask(config=REWRITE)
    assert json.loads(completion.text) == {"text": LONG, "reason": LONG}
    assert (completion.attempts, here.server.requests, here.sleeps) == (2, 3, [])
    assert (m.total.calls, b.spent.calls) == (2, 2)
    asked, repair = here.heard
    assert [message.role for message in repair.messages] == ["user", "assistant", "user"]
    assert repair.messages[1].text == bad(asked)
    assert problem in repair.messages[2].text
    assert tags_of(repair).isdisjoint(tags_of(asked))


def tags_of(request):
    return set(re.findall(r"^<(?:text|reason)-[0-9a-f]{8}>$", request.messages[-1].text, re.MULTILINE))


def test_an_empty_answer_is_no_sign_that_the_format_is_ignored(bench):
    """It says nothing about what the endpoint can do, so the next request is as the first."""
    here = bench(answered(""), answer=lambda request: {"text": "new", "reason": "why"})
    (completion,) = here.ask(config=REWRITE)
    assert completion.attempts == 2
    (again,) = here.heard
    assert (again.messages[-1].text, again.config.response_format) == ("hello", REWRITE.response_format)


def test_tags_that_stay_wrong_are_an_error(bench):
    """Sent back once, asked anew once, then given up; each answer was paid for."""
    refused = Fault(400, body={"error": {"message": "response_format is not supported"}})
    here = bench(refused, answer=lambda request: between_tags(request, 2))
    with meter() as m:
        (error,) = here.ask(config=REWRITE)
    assert type(error) is errors.MalformedResponse
    assert "more than one pair of tags for `text`" in str(error)
    assert (here.server.requests - 1, m.total.calls) == (3, 3)
    assert len(here.sleeps) == 1


@pytest.mark.parametrize("kind", ["length", "content_filter"])
def test_an_unfinished_answer_between_tags_is_unfinished(bench, kind):
    """Half a prompt between two tags would be taken for a whole one."""
    refused = Fault(400, body={"error": {"message": "response_format is not supported"}})
    here = bench(refused, answered("<text-0a1b2c3d>\nhalf", kind))
    (error,) = here.ask(config=REWRITE)
    assert type(error) is {"length": errors.TruncatedResponse, "content_filter": errors.ContentFiltered}[kind]


def test_a_key_that_is_echoed_between_tags_is_not_in_the_error(bench):
    """Errors are logged."""
    refused = Fault(400, body={"error": {"message": "response_format is not supported"}})
    key = "sk-canary-0123456789"
    here = bench(refused, answer=lambda request: between_tags(request, 2).replace("Sort", key), api_key=key)
    (error,) = here.ask(config=REWRITE)
    assert type(error) is errors.MalformedResponse
    assert key not in str(error)
