"""Signed addresses: what of them gives access, and what they are without it.

NOTE [Signed addresses]
    Files that are not public have addresses that give access for a while: a signature stands in the query, with who
    signed it, when, and until when. Signed anew, the address is another one and the file the same. So what is kept of a
    request (run folders, cassettes, errors) and what one is known by (`resume`, `replay`, the cache) has addresses
    without that; what is sent has them whole.

    What is taken out, by the names of parameters, in capitals or not, and only where all are there that a scheme needs:

    - ``X-Amz-…``, ``X-Goog-…``, ``X-Oss-…``, ``X-Tos-…`` (signature version 4): Signature and Credential, with
      Algorithm, Date, Expires, SignedHeaders, Security-Token and the like;
    - ``Signature`` and ``Expires`` with ``AWSAccessKeyId``, ``GoogleAccessId`` or ``OSSAccessKeyId`` (version 2);
    - Azure's shared access signatures: ``sig`` and ``sv``, with ``se``, ``sp``, ``sr``, ``skoid`` and the like;
    - CloudFront: ``Signature`` and ``Key-Pair-Id``, with ``Policy`` or ``Expires``;
    - Tencent's ``q-signature`` and ``q-ak``; Discord's ``ex``, ``is`` and ``hm``;
    - ``expires`` with a ``signature``, ``sig``, ``hmac``, ``md5`` or ``token`` of 16 characters or more;
    - ``access_token``; ``token``, ``jwt`` or ``auth`` that is a JSON web token, and ``token`` of 16 characters or more
      in the address of an image, a recording, a film or a PDF, or with ``alt=media`` (Firebase).

    Also the password in ``https://user:password@host``, and all this in an address that is a parameter of another one,
    as of services that scale pictures. Everything else is left: what else a query says, such as ``?token=2`` for a
    page, tells one file from another. Where nothing else does, as in ``https://host/download?token=…``, a digest stands
    in the place of the token.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import Any, TypeVar, cast
from urllib.parse import quote, unquote

T = TypeVar("T")

_QUERY = (
    r"(?:[a-z0-9%+/=_~.:;@!$*,-]|\\+u003d)+"
    r"(?:(?:&(?:amp;|#38;)?|\\+u0026)(?:[a-z0-9%+/=_~.:;@!$*,-]|\\+u003d)+)*"
)
_ADDRESS = re.compile(  # as it is, or as JSON may have it: with "\/" and "\u0026"
    r"(?i)(?<![a-z0-9+.-])(?P<file>[a-z0-9+.-]++:\\*+/\\*+/"
    r"(?:[^\s?#<>\"\\:]++|\\++/|:(?!\\*/\\*/))++)"
    rf"(?P<queries>(?:\?{_QUERY})+)"  # several, so that what is behind one that is taken out is not read again
)
_BETWEEN = re.compile(r"(?i)(&(?:amp;|#38;)?|(?<!\\)\\++u0026)")  # of backslashes, from the first alone: linear
_EQUALS = re.compile(r"(?i)=|(?<!\\)\\++u003d")
_PASSWORD = re.compile(r"(:\\*/\\*/)([^/\s@\"'<>:?#\\]*):[^/\s\"'<>?#\\]+@")
_INSIDE_ADDRESS = re.compile(r"(?i)(?<==)[a-z0-9+.-]++%3A%2F%2F.*")
_VALUE = re.compile(r"[A-Za-z0-9%+/=_~-]*(?:\.[A-Za-z0-9%_-]{16,})*")
"""What a signature or the like is made of: in a text, what follows it without a space is no part of it."""
_JWT = re.compile(r"eyJ[\w-]+\.[\w-]+\.[\w-]*")
_BEGINS = re.compile(r"(?<![\w+.-])(?=[a-zA-Z0-9+.-]+:\\*/\\*/)")
_GOES_ON = re.compile(r"[\w?&=/%~+-]|[.:;,@!$*][\w?&=/%~+-]")
_TOKENS = {"token", "jwt", "auth"}
_SAYS_WHICH = re.compile(r":\\*/\\*/[^/]+/.*(?:\d\d|\.\w+$|[\w-]{16})")
_TIME = re.compile(r"\d{9,}")
_MEDIA = re.compile(r"(?i)\.(?:png|jpe?g|gif|webp|bmp|tiff?|svg|avif|heic|pdf|mp3|wav|m4a|ogg|flac|mp4|mov|webm)$")
_LONG = 16


_V4 = (
    "signature credential",
    "credential",
    "algorithm date expires signedheaders security-token content-sha256 signature-version additional-headers",
)
_OTHERS = (
    ("signature expires", "awsaccesskeyid googleaccessid ossaccesskeyid", "x-amz-security-token security-token"),
    (
        "sig sv",
        "se si",
        "st sr sp sip spr ss srt sdd ses skoid sktid skt ske sks skv saoid suoid scid skdutid sduoid",
    ),
    ("signature key-pair-id", "policy expires", "hash-algorithm"),
    (
        "q-signature q-ak",
        "q-sign-algorithm q-sign-time",
        "q-key-time q-header-list q-url-param-list x-cos-security-token",
    ),
)
_SCHEMES = [
    *([{f"x-{of}-{name}" for name in names.split()} for names in _V4] for of in ("amz", "goog", "oss", "tos")),
    *([{*names.split()} for names in scheme] for scheme in _OTHERS),
]
"""Ways of signing, by names of parameters: those that must all be there, of which one must be there, and others."""


def unsigned(value: T) -> T:
    """A text, or a JSON value, with addresses that lack what gives access; see NOTE [Signed addresses].

    Args:
        value: text, number, list, dict, …; what holds no such address is given back as it is.

    Example:
        >>> unsigned("https://files.example/a.png?v=2&sv=2024-11-04&se=2026-11-24&sr=b&sp=r&sig=aBc%3D")
        'https://files.example/a.png?v=2'
        >>> unsigned({"page": "https://files.example/list?token=2"})
        {'page': 'https://files.example/list?token=2'}
    """
    if not _holds_address(value):  # as nearly everything does, and each call of a run is looked through
        return value
    return _changed(value, lambda text: _without(text) if _may_hold(text) else text)


def resigned(value: T, *seen: Any) -> T:
    """What was recorded, with the addresses in it whole that are whole in what is asked now.

    A model that is sent an address repeats it in its answer, or calls a tool with it.

    Args:
        value: text, number, list, dict, …
        seen: texts and JSON values that hold the addresses. One that also stands there unsigned is left as it is.

    Example:
        >>> resigned("Get https://h/a.png, please", "Look at https://h/a.png?access_token=0123456789abcdef")
        'Get https://h/a.png?access_token=0123456789abcdef, please'
    """
    if not any(map(_may_hold, _texts_in(value))):
        return value
    whole: dict[str, str] = {}
    for text in filter(_may_hold, _texts_in(seen)):
        for match in _ADDRESS.finditer(text):
            if (bare := _without(match[0])) != match[0]:
                tail = _tail(match["queries"].rpartition("?")[2])
                whole.setdefault(bare.removesuffix(tail), match[0].removesuffix(tail))
    sizes = sorted({len(bare) for bare in whole}, reverse=True)
    for bare in {text[start:end] for text in _texts_in(seen) for start, end in _standing(text, whole, sizes)}:
        del whole[bare]
    return _changed(value, lambda text: _put_in(text, whole, sizes)) if whole else value


def _changed(value: T, change: Callable[[str], str]) -> T:
    """A text or JSON value with its texts changed; the same object where none is."""
    found: Any
    if isinstance(value, str):
        found = change(value)
    elif isinstance(value, Mapping):
        found = {_changed(key, change): _changed(inside, change) for key, inside in value.items()}
    elif isinstance(value, list | tuple):
        items = [_changed(each, change) for each in value]
        found = tuple(items) if isinstance(value, tuple) else items
    else:
        return value
    return value if found == value else cast("T", found)


def _standing(text: str, addresses: Collection[str], sizes: Sequence[int]) -> Iterator[tuple[int, int]]:
    """Where addresses stand by themselves, and are not the beginning of longer ones.

    Args:
        text: where they stand.
        addresses: as they stand there.
        sizes: how many characters they have, largest first.
    """
    for match in _BEGINS.finditer(text):
        start = match.start()
        for end in [start + size for size in sizes]:
            if text[start:end] in addresses and not _GOES_ON.match(text, end):
                yield start, end
                break


def _put_in(text: str, whole: Mapping[str, str], sizes: Sequence[int]) -> str:
    pieces, done = list[str](), 0
    for start, end in _standing(text, whole, sizes):
        if start >= done:
            pieces += [text[done:start], whole[text[start:end]]]
            done = end
    return "".join([*pieces, text[done:]])


def _may_hold(text: str) -> bool:
    return "://" in text or ":\\" in text


_ATOMS = (int, float, bool, type(None))


def _holds_address(value: Any) -> bool:
    """Whether a text in a JSON value may hold an address."""
    kind = type(value)
    if kind is str:
        return "://" in value or ":\\" in value
    if kind in _ATOMS:
        return False
    if kind is dict or isinstance(value, Mapping):
        for key, inside in value.items():  # noqa: SIM110  a generator takes longer than to look through what it gives
            if _holds_address(key) or _holds_address(inside):
                return True
        return False
    if isinstance(value, list | tuple):
        for each in value:  # noqa: SIM110
            if _holds_address(each):
                return True
        return False
    return isinstance(value, str) and _may_hold(value)


def _texts_in(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping | list | tuple):
        for inside in value.values() if isinstance(value, Mapping) else value:
            yield from _texts_in(inside)


def _without(text: str) -> str:
    while (bare := _PASSWORD.sub(_user, _ADDRESS.sub(_bare, text))) != text:  # what is left may be an address again
        text = bare
    return text


def _user(match: re.Match[str]) -> str:
    return f"{match[1]}{match[2]}@" if match[2] else match[1]


def _tail(query: str) -> str:
    """What stands behind the last value of a query, and is no part of it."""
    last = "".join(_EQUALS.split(_BETWEEN.split(query)[-1], maxsplit=1)[1:])
    return last[_VALUE.match(last).end() :]  # type: ignore[union-attr]  # it matches the empty text


def _bare(match: re.Match[str]) -> str:
    file = match["file"]
    is_media, says_which = _MEDIA.search(file) is not None, _SAYS_WHICH.search(file) is not None
    found = [file]
    for query in match["queries"][1:].split("?"):
        tail = _tail(query)
        kept = _kept(query.removesuffix(tail), is_media=is_media, says_which=says_which)
        found.append(f"{kept and '?'}{kept}{tail}")
    return "".join(found)


def _kept(query: str, *, is_media: bool, says_which: bool) -> str:
    """What is left of a query.

    Args:
        query: its parameters.
        is_media: whether the address before it is that of an image or the like.
        says_which: whether that tells one file from another, as ``.../download`` does not: a token may do so then.
    """
    pieces = _BETWEEN.split(query)
    named = [_EQUALS.split(piece, maxsplit=1) for piece in pieces[::2]]
    values: dict[str, str] = {}
    for name, *value in named:
        values.setdefault(name.lower(), "".join(value))
    taken = _signing(values, is_media=is_media)
    kept = [number for number, (name, *_) in enumerate(named) if name.lower() not in taken]
    if not kept and not says_which:
        tokens = [(name, *value) for name, *value in named if name.lower() in _TOKENS]
        return "&".join([f"{name}={hashlib.sha256(value.encode()).hexdigest()[:8]}" for name, value in tokens])
    query = ""
    for number in kept:
        query += f"{query and pieces[2 * number - 1]}{_INSIDE_ADDRESS.sub(_inside, pieces[2 * number])}"
    return query


def _inside(match: re.Match[str]) -> str:
    """An address that is the value of a parameter, as services have it that scale pictures."""
    whole = unquote(match[0])
    if _INSIDE_ADDRESS.search(whole) or (bare := _without(whole)) == whole:  # one inside of it is left
        return match[0]
    return quote(bare, safe="")


def _signing(values: Mapping[str, str], *, is_media: bool) -> set[str]:
    """The names of the parameters of an address that sign it.

    Args:
        values: of its parameters, by their names in small letters.
        is_media: whether the address is that of an image or the like.
    """
    names, found = values.keys(), set[str]()
    for needs, one_of, takes in _SCHEMES:
        if needs <= names and one_of & names:
            found |= needs | one_of | takes
    if _is_long(values, "hm") and {"ex", "is"} <= names:
        found |= {"ex", "is", "hm"}
    if _TIME.fullmatch(values.get("expires", "")):
        by = {name for name in ("signature", "sig", "hmac", "md5", "token") if _is_long(values, name)}
        found |= by and {*by, "expires"}
    found |= {name for name in _TOKENS if _JWT.match(values.get(name, ""))}
    if _is_long(values, "access_token"):
        found.add("access_token")
    if _is_long(values, "token") and (is_media or values.get("alt") == "media"):
        found.add("token")
    return found & names


def _is_long(values: Mapping[str, str], name: str) -> bool:
    return len(values.get(name, "")) >= _LONG
