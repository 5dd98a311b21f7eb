"""Headers that a gateway wants with each request, besides those that every request has."""

from __future__ import annotations

import re
from collections.abc import Mapping

from pydantic import SecretStr

from textgrad_engine.llm.redact import redacted
from textgrad_engine.wording import a_class

Headers = Mapping[str, str | SecretStr]
"""Values by name; a `SecretStr` is shown nowhere, and taken out of what is written down."""

_TOKEN = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
"""What may be the name of a header (RFC 9110)."""

_OWN = frozenset(
    {"accept", "accept-encoding", "connection", "content-encoding", "content-length", "content-type", "host"}
    | {"te", "trailer", "transfer-encoding", "upgrade"}
)
"""Headers that say how a request is sent, which is not for others to say."""

_SECRET = frozenset(
    {"accesskey", "apikey", "auth", "authentication", "authorization", "cookie", "credential", "credentials", "key"}
    | {"passwd", "password", "secret", "signature", "token"}
)
"""Words in the names of headers whose values are secrets."""

_SECRETS = ("apikey", "accesskey", "authkey", "secretkey", "auth", "password", "secret", "token")
"""Ends of such words, as in X-AuthToken."""


def concealed_headers(headers: Headers | None) -> dict[str, str | SecretStr]:
    """Headers with what is a secret by its name, or looks like one, as a `SecretStr`.

    Raises:
        TypeError: they are no mapping of names to values.

    Example:
        >>> concealed_headers({"x-team": "search", "x-gateway-api-key": "k-0123"})
        {'x-team': 'search', 'x-gateway-api-key': SecretStr('**********')}
    """
    given: object = {} if headers is None else headers
    if not isinstance(given, Mapping):  # whatever it is, it may be a secret
        raise TypeError(f'headers are values by name, such as {{"x-team": "search"}}, got {a_class(type(given))}')
    return {
        name: SecretStr(value) if isinstance(value, str) and is_secret_header(str(name), value) else value
        for name, value in given.items()
    }


def check_headers(headers: Headers) -> None:
    """Check that headers can be sent.

    Raises:
        ValueError: a name or a value cannot be, or is not for others to say; the message has no value in it.

    Example:
        >>> check_headers({"x-team": "search", "X-Team": "sales"})
        Traceback (most recent call last):
        ValueError: the header 'X-Team' is there as 'x-team' already; names of headers do not differ in case
    """
    seen: dict[str, str] = {}
    for name, value in headers.items():
        if problem := problem_of_name(name) or problem_of_value(value):
            raise ValueError(f"the header {name!r} {problem}")
        if (other := seen.setdefault(name.lower(), name)) != name:
            raise ValueError(
                f"the header {name!r} is there as {other!r} already; names of headers do not differ in case"
            )


def problem_of_name(name: str) -> str:
    """What is wrong with the name of a header, behind that; "" where nothing is.

    Example:
        >>> problem_of_name("Host")
        'says how a request is sent, and is set by itself; leave it out'
    """
    if not isinstance(name, str) or not _TOKEN.fullmatch(name):
        return "has no name that a header can have: letters, digits and -"
    return "says how a request is sent, and is set by itself; leave it out" if name.lower() in _OWN else ""


def problem_of_value(value: object) -> str:
    r"""What is wrong with the value of a header, behind its name and without the value; "" where nothing is.

    Example:
        >>> problem_of_value("two\nlines")
        'has a value that is not plain ASCII in one line, without spaces around it'
    """
    text = value.get_secret_value() if isinstance(value, SecretStr) else value
    if not isinstance(text, str):
        return f"has a value of the type {type(value).__name__}, and should have a text"
    if not text:
        return "has no value"
    good = text.isascii() and text.isprintable() and text == text.strip()
    return "" if good else "has a value that is not plain ASCII in one line, without spaces around it"


def is_secret_header(name: str, value: str) -> bool:
    """Whether a header has a secret in it, as far as its name or the form of its value tells.

    Example:
        >>> is_secret_header("x-portkey-provider", "openai"), is_secret_header("x-portkey-api-key", "a")
        (False, True)
        >>> is_secret_header("x-upstream", "https://ann:pw@host/v1")
        True
    """
    words = re.split(r"[^a-z0-9]+", name.lower())
    return any(word in _SECRET or word.endswith(_SECRETS) for word in words) or redacted(value) != value


def plain(headers: Headers) -> dict[str, str]:
    """The headers whose values may be shown."""
    return {name: value for name, value in headers.items() if isinstance(value, str)}


def secrets_in(headers: Headers) -> tuple[SecretStr, ...]:
    """The secrets among the values; of one such as "Bearer KEY" also what stands behind the first word."""
    found: list[SecretStr] = []
    for value in headers.values():
        if isinstance(value, SecretStr):
            _, space, behind = value.get_secret_value().partition(" ")
            found += [value, SecretStr(behind)] if space else [value]
    return tuple(found)


def sent(headers: Headers) -> dict[str, str]:
    """The headers as they are sent, by names in the case of the SDK's own, which it tells apart before version 3.20.

    Example:
        >>> sent({"AUTHORIZATION": "Basic dXNlcjpwYXNz", "x-team": "search"})
        {'Authorization': 'Basic dXNlcjpwYXNz', 'X-Team': 'search'}
    """
    shown = {name: v.get_secret_value() if isinstance(v, SecretStr) else v for name, v in headers.items()}
    return {"-".join(map(str.capitalize, name.split("-"))): value for name, value in shown.items()}
