"""What is written down of a request: of the bytes that it carries a name for each, made by hashing them.

An image of a megabyte goes along with its example each time that this is run, and with each request to a critic about
it. So in records of requests (run folders, cassettes, what `resume` and `replay` compare) a name such as
``attachments/3f0c….png`` stands for its bytes; a run folder has them once, in the file of that name. Addresses stand
there without what signs them (`signed`).
"""

from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, NamedTuple

from textgrad_engine.llm.images import address_of, from_base64
from textgrad_engine.llm.request import Request
from textgrad_engine.llm.response import Completion
from textgrad_engine.signed import resigned, unsigned

FOLDER = "attachments"
"""Where a run folder has them."""

_DATA_URL = re.compile(r"(?i)data:(?P<type>[\w.+/-]*)(?:;[\w.+=-]+)*;base64,")
_NAME = re.compile(rf"{FOLDER}/[0-9a-f]{{32}}\.\w+")
_KINDS = {"jpg": "jpeg", "svg": "svg+xml"}
_ENDINGS = {"jpeg": "jpg", "svg+xml": "svg", "mpeg": "mp3", "plain": "txt", "x-wav": "wav", "quicktime": "mov"}


class Attachment(NamedTuple):
    """Bytes that a content part carries in base64.

    Attributes:
        name: what stands for them in records: the path of their file in a run folder.
        encoded: they themselves, in base64.
    """

    name: str
    encoded: str

    def content(self) -> bytes:
        """The bytes; as they came where they are no base64."""
        try:
            return from_base64(self.encoded)
        except ValueError:
            return self.encoded.encode("utf-8", "backslashreplace")


def attachments_in(messages: Iterable[Any]) -> Iterator[Attachment]:
    """What the content parts of some messages carry, in order.

    Args:
        messages: each with its ``content``, as an attribute.

    Example:
        >>> from textgrad_engine.llm.request import Message
        >>> part = {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}}
        >>> [each.name for each in attachments_in([Message(role="user", content=[part])])]
        ['attachments/63c1dd951ffedf6f7fd968ad4efa39b8.png']
    """
    for message in messages:
        if not isinstance(message.content, str):
            for part in message.content:
                yield from _of_part(part)


def as_recorded(asked: Mapping[str, Any]) -> dict[str, Any]:
    """A request as JSON as it is written down: names in the place of bytes, and addresses that nothing signs.

    One that was written down so is given back as it is.

    Args:
        asked: the request, as `as_json.asked_of` gives it, or without its purpose.

    Example:
        >>> part = {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA", "detail": "low"}}
        >>> asked = as_recorded({"messages": [{"role": "user", "content": [part]}]})
        >>> asked["messages"][0]["content"][0]["image_url"]
        {'url': 'attachments/63c1dd951ffedf6f7fd968ad4efa39b8.png', 'detail': 'low'}
    """
    messages = [
        message
        if isinstance(message.get("content"), str | None)
        else {**message, "content": [in_names(part) for part in message["content"]]}
        for message in asked["messages"]
    ]
    return unsigned({**asked, "messages": messages})


def unsigned_parts(asked: Mapping[str, Any]) -> dict[str, Any]:
    """A request as JSON whose images and the like have addresses that nothing signs; texts are left as they are.

    An image is what it shows, and a text is its letters: two that differ in them may want two answers.

    Args:
        asked: the request.
    """
    messages = [
        message
        if isinstance(message.get("content"), str | None)
        else {
            **message,
            "content": [part if part.get("type") == "text" else unsigned(part) for part in message["content"]],
        }
        for message in asked["messages"]
    ]
    return {**asked, "messages": messages}


def with_attachments(part: Mapping[str, Any], read: Callable[[str], bytes]) -> Mapping[str, Any]:
    """An image with its bytes in the place of their name; any other part as it is.

    Args:
        part: the content part.
        read: gives the bytes by their name.

    Example:
        >>> part = {"type": "image_url", "image_url": {"url": "attachments/63c1dd951ffedf6f7fd968ad4efa39b8.png"}}
        >>> with_attachments(part, lambda name: bytes(3))["image_url"]
        {'url': 'data:image/png;base64,AAAA'}
    """
    name = address_of(part)
    if name is None or not _NAME.fullmatch(name):  # what somebody wrote into a record leads to no other file
        return part
    ending = name.rpartition(".")[2]
    encoded = base64.b64encode(read(name)).decode()
    url = f"data:image/{_KINDS.get(ending, ending)};base64,{encoded}"
    return {**part, "image_url": {**part["image_url"], "url": url}}


def as_read_again(part: Mapping[str, Any]) -> dict[str, Any]:
    """An image as it is when it was written down and read again: its bytes in the usual base64."""
    carried = {each.name: each for each in _of_part(part)}
    return dict(with_attachments(in_names(part), lambda name: carried[name].content()))


def signed_again(completion: Completion, request: Request) -> Completion:
    """A recorded answer for who asks now: it repeats addresses as that request has them, signed.

    Args:
        completion: the answer.
        request: what is asked.
    """
    said = {"text": completion.text, "tool_calls": completion.tool_calls}
    whole = resigned(said, texts_of(request))
    return completion if whole is said else completion.model_copy(update=whole)


def texts_of(request: Request) -> list[Any]:
    """What the messages of a request say, as JSON."""
    return [(message.content, message.tool_calls or ()) for message in request.messages]


def in_names(part: Any) -> Any:
    """A content part with names in the place of bytes."""
    if not isinstance(part, Mapping) or part.get("type") == "text":
        return part
    return {
        key: {name: _name_of(name, value, inside) for name, value in inside.items()}
        if isinstance(inside, Mapping)
        else inside
        for key, inside in part.items()
    }


def _name_of(name: str, value: Any, beside: Mapping[str, Any]) -> Any:
    found = _carried(name, value, beside)
    return value if found is None else found.name


def _of_part(part: Mapping[str, Any]) -> Iterator[Attachment]:
    if part.get("type") == "text":
        return
    for inside in part.values():
        if isinstance(inside, Mapping):
            for name, value in inside.items():
                if (found := _carried(name, value, inside)) is not None:
                    yield found


def _carried(name: str, value: Any, beside: Mapping[str, Any]) -> Attachment | None:
    """What one field of a content part carries: a data URL, or the base64 of a recording."""
    if not isinstance(value, str) or value.startswith(f"{FOLDER}/"):
        return None
    if (url := _DATA_URL.match(value)) is not None:
        encoded, kind = value[url.end() :], url["type"].rpartition("/")[2].lower()
    elif name == "data":
        encoded, kind = value, str(beside.get("format", ""))
    else:
        return None
    digest = hashlib.sha256(encoded.encode("utf-8", "surrogatepass")).hexdigest()[:32]
    ending = _ENDINGS.get(kind, kind if re.fullmatch(r"[a-z0-9]{1,8}", kind) else "bin")
    return Attachment(f"{FOLDER}/{digest}.{ending}", encoded)
