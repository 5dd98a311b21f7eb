"""Every exception the library raises on purpose.

TextgradError
├── AutogradError (RuntimeError)         misuse of the graph: freed, edited, non-leaf, wrong counts
├── DispatchError (RuntimeError)         misuse of pending values, e.g. blocking on the event-loop thread
│   └── CallCancelled                    the call was cancelled before it finished
├── TemplateError (ValueError)           a prompt file or a slot is missing or malformed
├── ConfigError (ValueError)             a config file says something that cannot be done
├── DataError (ValueError)               a dataset cannot be read
├── ContractError (ValueError)           a proposed parameter breaks what it must keep
├── RunError (RuntimeError)              a run folder is missing, in use or damaged
├── ReturnError (TypeError)              a class of one's own gives what it is not asked for, as a model no completion
├── ScoreError (TypeError, ValueError)   a metric's function gave no score, or a program what is not scored
├── ScriptError (AssertionError)         a model of `testing` has no answer that fits what it is asked
└── ModelError (RuntimeError)            anything about asking a model
    ├── NoModelError                     no model was named for a purpose
    ├── UnknownModelError                a model name that nothing answers to
    ├── RequestRefused                   the request was not sent: tests, or a setting the adapter lacks
    │   └── UnsendableRequest            its text is too long, or is none
    ├── Stopped                          the run was stopped; nothing more is sent
    ├── BudgetExceeded                   the next call could pass the limit
    ├── UnknownPriceError                a limit in dollars, and a model without a price
    ├── AnswerError                      an answer came that is no finished answer
    │   ├── TruncatedResponse            it ran into its length limit
    │   ├── EmptyResponse                it holds no content
    │   ├── ContentFiltered              the endpoint withheld it
    │   └── MalformedResponse            the body, or the JSON in it, is not what it claims to be
    └── APIError                         the endpoint said no, or could not be reached
        ├── AuthenticationFailed         401 / 403: the key is wrong, or may not use this model
        ├── QuotaExhausted               the account has no money left, or none of what it may use in a day
        ├── BadRequest                   400 / 404 / 422: the request itself is wrong
        │   └── ContextOverflow          it is longer than the model's context
        ├── RateLimited                  429
        ├── ServerFailed                 5xx
        ├── ConnectionFailed             no connection, or it broke
        └── DeadlineExceeded             no answer in time
"""

from __future__ import annotations

from typing import Any

__all__ = [
    "APIError",
    "AnswerError",
    "AuthenticationFailed",
    "AutogradError",
    "BadRequest",
    "BudgetExceeded",
    "CallCancelled",
    "ConfigError",
    "ConnectionFailed",
    "ContentFiltered",
    "ContextOverflow",
    "ContractError",
    "DataError",
    "DeadlineExceeded",
    "DispatchError",
    "EmptyResponse",
    "MalformedResponse",
    "ModelError",
    "NoModelError",
    "QuotaExhausted",
    "RateLimited",
    "RequestRefused",
    "ReturnError",
    "RunError",
    "ScoreError",
    "ScriptError",
    "ServerFailed",
    "Stopped",
    "TemplateError",
    "TextgradError",
    "TruncatedResponse",
    "UnknownModelError",
    "UnknownPriceError",
    "UnsendableRequest",
]


class TextgradError(Exception):
    """Base of every exception that the library raises on purpose."""


class AutogradError(TextgradError, RuntimeError):
    """The graph was used in a way that has no meaning; the message says which and what to do."""


class DispatchError(TextgradError, RuntimeError):
    """A pending value was used where it cannot be waited for, or a program in a thread that was not told of its run."""


class CallCancelled(DispatchError):
    """The call that would have given this value was cancelled."""


class TemplateError(TextgradError, ValueError):
    """A prompt file or one of its slots is missing or malformed."""


class ConfigError(TextgradError, ValueError):
    """A config file asks for something that cannot be done; the message names file, line and repair."""


class DataError(TextgradError, ValueError):
    """A dataset cannot be read; the message names file, line and repair."""


class ContractError(TextgradError, ValueError):
    """A proposed parameter value breaks a constraint; the old value stays."""


class RunError(TextgradError, RuntimeError):
    """A run folder is missing, in use or damaged."""


class ReturnError(TextgradError, TypeError):
    """A model, a proposer or a search of one's own gave something else than it is asked for; the message says what."""


class ScoreError(TextgradError, TypeError, ValueError):
    """What the function of a metric gave is no score, or outside of its scale; or what a program gave is not scored."""


class ScriptError(TextgradError, AssertionError):
    """A model of `testing` has no answer left, or one that does not fit what it is asked: a mistake in a script."""


class ModelError(TextgradError, RuntimeError):
    """Base of everything that can go wrong between a request and its answer.

    Attributes:
        sent: False when it is certain that nothing reached the endpoint, or that it took nothing on (it is overloaded),
            so that nothing can be charged; True when it had begun to answer, whatever status the error has; else None.
        usage: what the failed call is known to have used (an `llm.Usage`), e.g. for an answer that was cut off; else
            None.
        usage_estimated: whether `usage` was counted here, since the endpoint did not say it.
        unknown: the worst case of those attempts of which nobody knows whether they were charged, such as by a lost
            connection (an `llm.Usage`); budgets count it as spent. None where there were none.
        counted_again: whether it is a failure of before a run was resumed, told once more for what it used; the call
            itself went on to another answer.
    """

    sent: bool | None = None
    usage: Any = None  # an llm.Usage, which lives above this file
    usage_estimated: bool = False
    unknown: Any = None
    counted_again: bool = False


class NoModelError(ModelError):
    """No model was named for the purpose of a call."""


class UnknownModelError(ModelError):
    """No model answers to the name that was given."""


class RequestRefused(ModelError):
    """The request was not sent: real requests are forbidden here, or it cannot be expressed."""


class UnsendableRequest(RequestRefused):
    """The text of the request is longer than any model reads, or no text; others can still be asked."""


class Stopped(ModelError):
    """The run was stopped (Ctrl-C, or `Stop.set`): this request was not sent.

    Attributes:
        stopped_by: the `id` of the switch that was set (see `Stop.stopped`).
    """

    stopped_by: int | None = None


class BudgetExceeded(ModelError):
    """The next call could pass the budget, so it was not sent.

    Attributes:
        too_small: whether the budget was untouched, so that it allows no call like this one at all.
        refused_by: the `id` of the budget that refused; of nested ones, others may have room (see `Budget.refused`).
        enough: the limit with which that budget would have had room for the call, in words; "" where that is not known.
    """

    too_small: bool = False
    refused_by: int | None = None
    enough: str = ""


class UnknownPriceError(ModelError):
    """A limit in dollars was set and the model's price is not known."""


class AnswerError(ModelError):
    """The endpoint answered, but with no finished answer."""


class TruncatedResponse(AnswerError):
    """The answer stopped at its length limit (`finish_reason` is ``"length"``)."""


class EmptyResponse(AnswerError):
    """The answer has neither text nor a tool call."""


class ContentFiltered(AnswerError):
    """The endpoint's filter withheld the answer."""


class MalformedResponse(AnswerError):
    """The body, or the JSON that was asked for, is not what it claims to be.

    Attributes:
        answer: the text that was to have a certain form, so that it can be asked for anew; None when there is none.
        problem: what is wrong about it.
        tags: whether that form was texts between tags; else it was JSON.
    """

    def __init__(self, message: str, *, answer: str | None = None, problem: str = "", tags: bool = False) -> None:
        super().__init__(message)
        self.answer = answer
        self.problem = problem
        self.tags = tags


class APIError(ModelError):
    """The endpoint refused the request or could not be reached.

    Attributes:
        status: the HTTP status, or None when there was no response.
        retry_after: seconds that the endpoint asked to wait, or None.
    """

    def __init__(self, message: str, *, status: int | None = None, retry_after: float | None = None) -> None:
        super().__init__(message)
        self.status = status
        self.retry_after = retry_after


class AuthenticationFailed(APIError):
    """401 or 403: the key is missing, wrong, or may not use this model."""


class QuotaExhausted(APIError):
    """The account behind the key has no money left, or has used up what it may use in a day.

    Waiting does not help, unless `retry_after` says when some of what a day allows is back.
    """

    def is_back_within(self, seconds: float) -> bool:
        """Whether some of what is used up is back so soon, as the endpoint says.

        Example:
            >>> QuotaExhausted("used up", retry_after=9).is_back_within(60)
            True
        """
        return self.retry_after is not None and self.retry_after <= seconds


class BadRequest(APIError):
    """400, 404 or 422: the endpoint understood the request and will never answer it; a filter may be why.

    Attributes:
        setting: what of the request it refuses whatever is asked: a setting by its name, or ``"model"`` for the model;
            "" where it does not say so without doubt.
        unserved: whether there may be nothing at all at its address: a 404 or 405 that says nothing of models.
    """

    setting: str = ""
    unserved: bool = False


class ContextOverflow(BadRequest):
    """The request is longer than the model's context, or than all that the account may send in a minute."""


class RateLimited(APIError):
    """429: the endpoint asks for fewer requests."""


class ServerFailed(APIError):
    """5xx: the endpoint broke."""


class ConnectionFailed(APIError):
    """No connection to the endpoint, or it broke before the answer was complete."""


class DeadlineExceeded(APIError):
    """No complete answer within the time allowed."""


UNANSWERED: tuple[type[ModelError], ...] = (
    AnswerError,
    BadRequest,
    ConnectionFailed,
    DeadlineExceeded,
    RateLimited,
    ServerFailed,
    UnsendableRequest,
)
"""What leaves one question without an answer, after all retries, while others can still be asked."""

_BY_THE_REQUEST = (AnswerError, BadRequest, UnsendableRequest)


def is_by_the_request(error: BaseException) -> bool:
    """Whether what left a question unanswered comes of what was asked: who asks again mostly gets the same.

    An endpoint that is down says nothing of the question, nor does a model that is gone, a setting that is no longer
    taken (`BadRequest.setting`), or an address where nothing is (`BadRequest.unserved`), as of a gateway that restarts.
    """
    if isinstance(error, BadRequest) and (error.setting or error.unserved):
        return False
    return isinstance(error, _BY_THE_REQUEST)
