"""What critics and judges see of images: which are sent to them, and what stands in the text where each of them stood.

NOTE [Images beside a text]
    The text of such a request is made of texts that anybody may have written. An image goes before it as a content part
    of its own, behind a line with its number, and where it stood the text has a tag such as ``<image_1-5086e624/>``.
    Which tag stands for which number is said in front of the text. The letters are made by hashing the whole text as it
    is without tags and do not occur in it, so a dataset that says "image 2", or imitates a tag, refers to nothing. An
    image that stands in several places is sent once, the order is that in which they stand, and no more are sent than
    `feedback_images` (of a judge: ``images=``) allows; of a critic whose context is known no more than half of it
    holds. Cases that would lose images to each other are asked about apart; of one case the last ones are kept. Where
    one is not sent, its place is named, as that of a recording or a file always is.
"""

from __future__ import annotations

import contextlib
import functools
import logging
import operator
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any, ClassVar, SupportsIndex, TypeAlias

from textgrad_engine import fences, templates
from textgrad_engine.blocks import block
from textgrad_engine.llm.context import Room
from textgrad_engine.llm.images import address_of, is_image, name_of_part, tokens_of
from textgrad_engine.scoped import setting
from textgrad_engine.signed import unsigned

_log = logging.getLogger("textgrad_engine.ops.images")

Show: TypeAlias = Callable[[Mapping[str, Any]], str]
"""What stands in a text where a content part stood."""

MOST_IMAGES = 16
"""Images in one request to a critic or a judge, where nobody says otherwise; endpoints take 10 to 500."""

FEEDBACK_IMAGES: ContextVar[int] = ContextVar("textgrad_engine_feedback_images", default=MOST_IMAGES)


@block
@contextlib.contextmanager
def feedback_images(most: int) -> Iterator[None]:
    """Inside the block, a request to the critic shows at most so many of the images in its calls.

    Args:
        most: how many images; 0 for a critic that reads none: it is told where they stood, as it is of those beyond.

    Raises:
        TypeError: it is no whole number.
        ValueError: it is below 0.

    Example:
        >>> from textgrad_engine import Variable, use_models
        >>> from textgrad_engine.ops import chat_completion
        >>> from textgrad_engine.testing import ScriptedModel
        >>> picture = {"type": "image_url", "image_url": {"url": "https://example.org/cat.png"}}
        >>> task = Variable("What is it?", role="question", requires_grad=True)
        >>> answer = chat_completion(ScriptedModel(["A dog."]), [{"role": "user", "content": [picture, task]}])
        >>> critic = ScriptedModel([{"case_1": {"user": "Ask for the animal."}}])
        >>> with use_models(backward=critic), feedback_images(1):
        ...     answer.backward("It is a cat.")
        >>> [part["type"] for part in critic.requests[0].messages[-1].content]
        ['text', 'image_url', 'text']
    """
    with setting(FEEDBACK_IMAGES, checked_images(most, "feedback_images")):
        yield


def checked_images(most: Any, name: str) -> int:
    """A number of images that somebody states.

    Raises:
        TypeError: it is no whole number, such as True, or the names of columns.
        ValueError: it is below 0.
    """
    if isinstance(most, bool) or not isinstance(most, SupportsIndex):
        raise TypeError(f"{name} is how many images are shown at most, 0 for none, got {most!r:.60}; give a number")
    number = operator.index(most)
    if number < 0:
        raise ValueError(f"{name} is the images in a request at most, 0 for none, got {number}")
    return number


@dataclass(frozen=True, slots=True, eq=False)
class ContentPart:
    """A content part as the value of a call: a leaf to all that takes containers apart.

    Attributes:
        part: the dict, as in OpenAI's API.
        no_variables_inside: says that it need not be searched for Variables.
    """

    part: Mapping[str, Any]

    no_variables_inside: ClassVar[bool] = True

    def __str__(self) -> str:
        return not_shown(self.part)

    def __repr__(self) -> str:
        return f"ContentPart({self.part['type']!r})"


def not_shown(part: Mapping[str, Any]) -> str:
    """What a reader is told of a content part that is not sent along.

    Example:
        >>> not_shown({"type": "input_audio"})
        '[a recording, not shown here]'
    """
    return templates.load("not_shown").render(what=name_of_part(part))


def in_words(values: Sequence[Any], show: Show) -> Sequence[Any]:
    """The values with a text in the place of each content part."""
    if ContentPart not in map(type, values):
        return values
    return [show(value.part) if type(value) is ContentPart else value for value in values]


@dataclass(frozen=True, slots=True)
class Gallery:
    """The images that go along with a request, each once; see NOTE [Images beside a text].

    Attributes:
        images: the content parts, in the order of their numbers, from 1.
        tokens: about how many tokens all of them take, with the words around them.
    """

    images: tuple[Mapping[str, Any], ...]
    tokens: int

    def shows(self, image: Mapping[str, Any]) -> bool:
        """Whether an image is among them."""
        return _key(image) in map(_key, self.images)

    def parts(self) -> list[dict[str, Any]]:
        """The content parts before the text: for each image its number, and it itself."""
        label = templates.load("image_label")
        found: list[dict[str, Any]] = []
        for number, image in enumerate(self.images, 1):
            found += [{"type": "text", "text": f"{label.render(number=number)}\n"}, dict(image)]
        return found

    def text(self, render: Callable[[Show], str]) -> str:
        """The text of the request.

        Args:
            render: makes it; is given what stands in the place of a content part.
        """
        nonce = fences.nonce_for(render(not_shown), "image")
        numbers = {_key(image): number for number, image in enumerate(self.images, 1)}

        def show(part: Mapping[str, Any]) -> str:
            number = numbers.get(_key(part)) if is_image(part) else None
            return not_shown(part) if number is None else _tag(number, nonce)

        text = render(show)
        tags = [tag if (tag := _tag(number, nonce)) in text else None for number in numbers.values()]
        return f"{templates.load('images').render(tags=tags)}\n\n{text}"


def _tag(number: int, nonce: str) -> str:
    return f"<image_{number}-{nonce}/>"


def _key(image: Mapping[str, Any]) -> Any:
    address = address_of(image)
    return address and unsigned(address), image["image_url"].get("detail") if address else None


_AROUND = 60
"""Tokens of the words in front of the text, and for each image half as many."""


def gallery_of(
    images: Sequence[Mapping[str, Any]], most: int, room: Room | None = None, what: str = ""
) -> Gallery | None:
    """Those of some images that a request shows; None where it shows none.

    Args:
        images: the images, in the order in which they stand.
        most: how many are shown at most.
        room: what there is room for; None where that is not known.
        what: what the request is, for the log; "" where nothing is sent, and nothing is logged.
    """
    found: dict[Any, Mapping[str, Any]] = {}
    for image in images:
        if address_of(image):
            found.setdefault(_key(image), image)
    if not found or most == 0:
        return None
    kept: set[Any] = set()
    left, tokens = (None if room is None else room.tokens // 2), _AROUND
    for key in map(_key, reversed(images)):
        if key not in found or key in kept or len(kept) == most:
            continue
        cost = tokens_of(found[key], None if room is None else room.model) + _AROUND // 2
        if left is not None and tokens + cost > left:
            continue
        kept.add(key)
        tokens += cost
    if what and len(kept) < len(found):
        why = f"{most} are shown at most" if len(kept) == most else "the context has no room for more"
        _tell_left_out(what, len(found) - len(kept), len(found), why)
    return Gallery(tuple([image for key, image in found.items() if key in kept]), tokens) if kept else None


@functools.lru_cache(maxsize=1024)  # once: a setting leaves out as many of each example, of thousands
def _tell_left_out(what: str, missing: int, count: int, why: str) -> None:
    _log.warning("%s: %d of %d images left out: %s", what, missing, count, why)


def pictured(values: Sequence[Any], render: Callable[[list[Any]], str], most: int) -> Any:
    """The content of a message that is made of values, some of which are content parts.

    Args:
        values: the values.
        render: makes its text of them, with words in the place of content parts.
        most: how many images are shown at most.
    """
    images = [value.part for value in values if type(value) is ContentPart and is_image(value.part)]
    gallery = gallery_of(images, most, what="a request to the judge")
    if gallery is None:
        return render(list(in_words(values, not_shown)))
    text = gallery.text(lambda show: render(list(in_words(values, show))))
    return [*gallery.parts(), {"type": "text", "text": text}]


def encoded_named(text: str) -> str:
    """A text with what was encoded into it named; it would be read as a text of many letters.

    Example:
        >>> encoded_named("see data:image/png;base64," + "iVBORw0KGgo" * 200)
        'see [image, 2 kB]'
    """
    return _ENCODED.sub(_kind_and_size, text) if "data:" in text else text


def _kind_and_size(found: re.Match[str]) -> str:
    return f"[{found['kind']}, {max(1, round(len(found['data']) * 3 / 4 / 1000))} kB]"


_ENCODED = re.compile(r"data:(?P<kind>[a-z]+)/[\w.+;=-]*;base64,(?P<data>[A-Za-z0-9+/=_-]+)")
"""A data URL: a picture, say, of which no model sees anything in letters, and there are a hundred thousand."""
