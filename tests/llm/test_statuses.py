import json
import time
from email.utils import formatdate

import pytest

from textgrad_engine.errors import (
    AuthenticationFailed,
    BadRequest,
    ContextOverflow,
    QuotaExhausted,
    RateLimited,
    ServerFailed,
)
from textgrad_engine.llm.charged import was_sent
from textgrad_engine.llm.reported import reported
from textgrad_engine.llm.request import Message, Purpose, Request
from textgrad_engine.llm.statuses import error_of, retry_after


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({"retry-after": "7"}, 7.0),
        ({"retry-after": "0.5"}, 0.5),
        ({"retry-after-ms": "250", "retry-after": "9"}, 0.25),
        ({"retry-after": formatdate(1030, usegmt=True)}, 30.0),
        ({"retry-after": formatdate(900, usegmt=True)}, 0.0),
        ({"llm_provider-retry-after": "60"}, 60.0),
        ({"retry-after": "2", "llm_provider-retry-after": "60"}, 2.0),
        ({"retry-after": "-3"}, 0.0),
        ({"retry-after": "soon"}, None),
        ({"retry-after": "nan"}, None),
        ({"retry-after": "Mon, 01 Jan 99999999999999 00:00:00 GMT"}, None),
        ({}, None),
    ],
)
def test_retry_after_is_read_in_all_its_forms(headers, seconds):
    """Seconds, milliseconds, a date; rubbish is no wait at all."""
    assert retry_after(headers, now=lambda: 1000.0) == seconds


@pytest.fixture
def in_tokyo(monkeypatch):
    """Where the local time is nine hours ahead of that of HTTP."""
    if not hasattr(time, "tzset"):
        pytest.skip("the zone is the system's there")
    monkeypatch.setenv("TZ", "Asia/Tokyo")
    time.tzset()
    yield
    monkeypatch.undo()
    time.tzset()


@pytest.mark.parametrize("zone", ["GMT", "-0000", ""])
def test_a_date_of_http_is_in_utc(in_tokyo, zone):
    """Also one that does not say so; as local time it would be hours off, and an OSError on Windows before 1970."""
    headers = {"retry-after": f"Thu, 01 Jan 1970 00:16:45 {zone}".rstrip()}
    assert retry_after(headers, now=lambda: 1000.0) == 5.0


@pytest.mark.parametrize(
    "text", ["", "plain words", "[1, 2]", '"text"', "null", '{"error": null}', "[" * 100_000, "\x00"]
)
def test_whatever_a_refusal_says_it_is_an_error_of_ours(text):
    """Its status counts; its words are shown as far as there are any."""
    error = error_of(503, text, {}, "m", "http://host/v1")
    assert type(error) is ServerFailed
    assert "http://host/v1" in str(error)
    assert len(str(error)) < 1500


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        ({"code": 429, "message": "busy"}, RateLimited),
        ({"code": "503"}, ServerFailed),
        ({"code": "overloaded", "status": 529}, ServerFailed),
        ({"code": 402}, QuotaExhausted),
        ({"code": 400, "message": "maximum context length is 9"}, ContextOverflow),
        ({"code": 401}, type(None)),
        ({"code": 403, "message": "no rights"}, type(None)),
        ({"code": 403, "message": "your input was flagged"}, BadRequest),
        ({"code": 200}, type(None)),
        ({"code": True}, type(None)),
        ({"message": "429"}, type(None)),
        ("429", type(None)),
        (None, type(None)),
    ],
)
def test_an_error_in_a_body_of_status_200_is_what_its_own_status_says(error, kind):
    """A key that was taken is not called wrong for what the model behind says, which would stop all other calls."""
    found = reported(error, "m")
    assert type(found) is kind
    assert found is None or found.sent is True


def test_a_request_that_is_flagged_says_nothing_about_the_key():
    """Both come as 403; a wrong key ends the run, and one text of many that a moderation refuses does not."""
    for said in (
        {"message": "m requires moderation. Your input was flagged for x"},
        {"code": "content_policy_violation"},
    ):
        assert type(error_of(403, json.dumps({"error": said}), {}, "m", "w")) is BadRequest
    assert type(error_of(403, '{"error": {"message": "Country not supported"}}', {}, "m", "w")) is AuthenticationFailed


@pytest.mark.parametrize(
    "said",
    [
        {"message": "Your account has been flagged for potential abuse"},
        {"message": "This API key was flagged and disabled"},
        {"message": "Content policy: the organization was suspended"},
        {"code": "account_deactivated", "message": "deactivated because of content policy violations"},
    ],
)
def test_an_account_that_is_flagged_is_refused_for_all_requests(said):
    """Each of them would be refused, so that a run which goes on has nothing to go on with."""
    assert type(error_of(403, json.dumps({"error": said}), {}, "m", "w")) is AuthenticationFailed


def test_an_empty_account_is_told_from_a_busy_endpoint_by_its_code_or_its_words():
    """Both come as 429, and only one of them passes by waiting."""
    for text in ('{"error": {"code": "insufficient_quota"}}', "insufficient_quota", '{"error": "insufficient_quota"}'):
        assert type(error_of(429, text, {}, "m", "w")) is QuotaExhausted


def test_words_about_time_in_a_request_that_is_refused_for_good_hold_nobody_up():
    """All calls to an endpoint pause for as long as one is asked to wait."""
    said = '{"error": {"message": "wrong; you may try again in 60s, or never"}}'
    assert error_of(400, said, {}, "m", "w").retry_after is None
    assert error_of(503, said, {}, "m", "w").retry_after == 60.0
    assert error_of(400, said, {"retry-after": "3"}, "m", "w").retry_after == 3.0


@pytest.mark.parametrize(
    ("status", "text", "sent"),
    [
        (529, '{"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}}', False),
        (503, '[{"error": {"code": 503, "message": "try later", "status": "UNAVAILABLE"}}]', False),
        (503, '{"error": {"message": "Our servers are busy", "code": "server_is_overloaded"}}', False),
        (503, '{"error": {"message": "Loading model", "type": "unavailable_error"}}', False),
        (503, "server busy, please try again.  maximum pending requests exceeded", False),
        (503, "<html><h1>503 Service Temporarily Unavailable</h1></html>", False),
        (503, "no healthy upstream", False),
        (503, "upstream connect error or disconnect/reset before headers. reset reason: overloaded", None),
        (503, "", None),
        (500, '{"error": {"type": "overloaded_error"}}', None),
        (504, "unavailable", None),
    ],
)
def test_what_an_endpoint_takes_not_on_is_not_charged(status, text, sent):
    """Its worst case would be held in the budget, and an hour of overload would spend that."""
    error = error_of(status, text, {}, "m", "http://host/v1")
    assert (type(error), error.sent) == (ServerFailed, sent)
    assert was_sent(error) is (sent is None)


@pytest.mark.parametrize(("said", "seconds"), [("Loading model", 15.0), ("broke", None)])
def test_a_server_that_loads_its_model_is_waited_for(said, seconds):
    """It takes a minute, and six attempts without that are over after ten seconds."""
    assert error_of(503, json.dumps({"error": {"message": said}}), {}, "m", "w").retry_after == seconds


@pytest.mark.parametrize("said", ["Insufficient balance", "incorrect API key", "You have run out of credits"])
def test_a_request_that_is_quoted_says_nothing_about_the_account(said):
    """A ticket about money in a validation error ended the run, as if the account were empty."""
    body = json.dumps({"error": {"message": f"invalid input: '{said} ...'"}})
    ticket = Request(messages=({"role": "user", "content": f"It says: {said}!"},))
    other = Request(messages=({"role": "user", "content": "Where is my parcel?"},))
    assert type(error_of(400, body, {}, "m", "w", ticket)) is BadRequest
    assert type(error_of(400, body, {}, "m", "w", other)) in (QuotaExhausted, AuthenticationFailed)
    assert type(error_of(402, body, {}, "m", "w", ticket)) is QuotaExhausted


@pytest.mark.parametrize(
    ("said", "kind"),
    [
        ("Daily token limit reached", QuotaExhausted),
        ("You have reached the limit of daily requests", QuotaExhausted),
        ("Rate limit exceeded: free-models-per-day", QuotaExhausted),
        ("Slow down. Your daily usage is shown at https://example.com/daily", RateLimited),
    ],
)
def test_only_a_limit_per_day_ends_a_run(said, kind):
    """A refusal that merely speaks of days is waited for as any other."""
    assert type(error_of(429, json.dumps({"error": {"message": said}}), {}, "m", "w")) is kind


def test_a_server_that_breaks_and_quotes_the_request_says_nothing_about_its_length():
    """A ticket about long prompts made a failure that passes by itself an overflow, which nobody tries again."""
    said = "the prompt is too long, it exceeds the context window"
    body = json.dumps({"error": {"message": f"internal error, asked was {said!r}"}})
    ticket = Request(messages=({"role": "user", "content": f"It says that {said}."},))
    other = Request(messages=({"role": "user", "content": "Where is my parcel?"},))
    assert type(error_of(500, body, {}, "m", "w", ticket)) is ServerFailed
    assert type(error_of(500, body, {}, "m", "w", other)) is ContextOverflow


def test_the_wait_in_a_header_says_when_a_days_limit_is_back():
    """Groq sends both; no money is back at no time."""
    day = '{"error": {"message": "on requests per day (RPD): used up"}}'
    assert error_of(429, day, {"retry-after": "577"}, "m", "w").retry_after == 577.0
    money = '{"error": {"code": "insufficient_quota"}}'
    assert error_of(429, money, {"retry-after": "5"}, "m", "w").retry_after is None


@pytest.mark.parametrize("wait", ["1e12", "1e99", "Mon, 01 Jan 2100 00:00:00 GMT"])
def test_a_days_limit_is_not_back_in_years(wait):
    """No calendar has such a moment: the failure of the endpoint became a ValueError."""
    error = error_of(429, '{"error": {"message": "on requests per day (RPD)"}}', {"retry-after": wait}, "m", "w")
    assert type(error) is QuotaExhausted
    assert error.retry_after is None
    assert "`resume` goes on with a run later" in str(error)


def test_a_model_without_eyes_is_not_asked_again() -> None:
    """llama.cpp says so with a status that else stands for a server in trouble."""
    message = "image input is not supported - hint: if this is unexpected, you may need to provide the mmproj"
    body = {"error": {"code": 500, "message": message, "type": "server_error"}}
    error = error_of(500, body, {}, "m", "w", Request(messages=[{"role": "user", "content": "?"}]))
    assert type(error) is BadRequest
    assert "the model reads no images" in str(error)


@pytest.mark.parametrize(
    ("purpose", "repair"),
    [
        ("forward", "it is a request of the program, of which nothing is left out"),
        ("judge", "it is a request to a judge, which is shown all that it judges"),
        ("backward", "state it with context=..."),
        ("optimizer", "state it with context=..."),
    ],
)
def test_of_a_request_that_was_too_long_the_repair_is_for_who_was_asked(purpose: Purpose, repair: str) -> None:
    """To state the context of a program's model would cut nothing; and a report has to tell a judge from a program."""
    asked = Request(messages=[{"role": "user", "content": "?"}], purpose=purpose)
    told = str(error_of(400, '{"message": "maximum context length is 9"}', {}, "m", "w", asked))
    assert repair in told
    assert told.count("; send less, or use a model with a longer context; ") == 1


OPENAI = {"type": "invalid_request_error"}


@pytest.mark.parametrize(
    ("status", "body", "setting"),
    [
        (404, {"error": {**OPENAI, "message": "The model `m` does not exist", "code": "model_not_found"}}, "model"),
        (400, {"error": {**OPENAI, "message": "invalid model ID", "param": "model", "code": None}}, "model"),
        (404, {"error": {"message": 'model "m" not found, try pulling it first', "type": "api_error"}}, "model"),
        (404, {"error": {"message": "The model `m` does not exist.", "type": "NotFoundError", "code": 404}}, "model"),
        (404, {"error": {"message": "models/m is not found for API version v1main", "code": 404}}, "model"),
        (404, {"error": {"type": "not_found_error", "message": "model: m"}}, "model"),
        (404, {"error": {"code": "DeploymentNotFound", "message": "The API deployment does not exist."}}, "model"),
        (400, {"error": {"message": "m is not a valid model ID", "code": 400}}, "model"),
        (400, {"object": "error", "message": "Invalid model: m", "type": "invalid_model", "code": "1500"}, "model"),
        (404, {"error": {**OPENAI, "message": "This is not a chat model", "code": None}}, "model"),
        (
            400,
            {"error": {**OPENAI, "message": "Unsupported parameter: 'seed'", "param": "seed"}},
            "seed",
        ),
        (
            400,
            {
                "error": {
                    **OPENAI,
                    "message": "Unsupported value: 'temperature' does not support 0.2 with this model.",
                    "param": "temperature",
                    "code": "unsupported_value",
                }
            },
            "temperature",
        ),
        (
            400,
            {
                "error": {
                    **OPENAI,
                    "message": "Unknown parameter: 'top_k'.",
                    "param": "top_k",
                    "code": "unknown_parameter",
                }
            },
            "top_k",
        ),
        (422, {"detail": [{"type": "extra_forbidden", "loc": ["body", "seed"], "msg": "not permitted"}]}, "seed"),
        (400, {"error": "Argument not supported on this model: presencePenalty"}, "presence_penalty"),
        (400, {"error": {"message": "`temperature` is deprecated for this model."}}, "temperature"),
        # what may be of one request
        (400, {"error": {"message": "flagged: the model does not exist", "code": "content_filter"}}, ""),
        (400, {"error": {"message": "flagged by no such model: m", "code": "content_filter"}}, ""),
        (400, {"error": {"message": "maximum context length is 9", "code": "context_length_exceeded"}}, ""),
        (404, "<html>404 not found</html>", ""),
        (404, {"detail": "Not Found"}, ""),
        (404, {"error": {"message": "No endpoints found that support image input", "code": 404}}, ""),
        (400, {"error": {"message": "Unsupported value: 'messages[0].role'", "param": "messages[0].role"}}, ""),
        (400, {"error": {"message": "Unexpected input: 'The seed is unknown'", "param": None}}, ""),
        (400, {"error": {"message": "Bad text: 'Which model is not found?' is no model"}}, ""),
        (400, {"error": {"message": "Model Not Exist", "type": "invalid_request_error", "code": None}}, "model"),
        (400, {"error": {"message": "the model produced invalid output"}}, ""),
        (400, {"error": {"message": "the model cannot be shown an image that is not found"}}, ""),
        (400, {"error": {**OPENAI, "message": "image input is not supported by this model", "param": "model"}}, ""),
        (400, {"error": {**OPENAI, "message": "unknown tool in messages", "param": "messages", "code": None}}, ""),
        (
            422,
            {"detail": [{"type": "extra_forbidden", "loc": ["body", "messages", 2, "tool", "name"], "msg": "no"}]},
            "",
        ),
        (400, {"error": {**OPENAI, "message": "no images", "param": "input", "code": "unsupported_value"}}, ""),
        (429, {"error": {"message": "slow down; model not found"}}, ""),
    ],
)
def test_what_is_refused_of_every_request_is_told_from_what_is_of_one(status, body, setting):
    """Others that are queued fail with it, so only what is said without doubt counts."""
    asked = Request(messages=(Message(role="user", content="The seed is unknown. Which model is not found?"),))
    error = error_of(status, body if isinstance(body, str) else json.dumps(body), {}, "m", "http://host/v1", asked)
    assert getattr(error, "setting", "") == setting
