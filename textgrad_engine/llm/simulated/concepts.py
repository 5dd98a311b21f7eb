"""Finding concepts: the same patterns recognise one in a ticket, in a line of instructions and in feedback."""

from __future__ import annotations

import functools
import re
import unicodedata
from dataclasses import dataclass

from textgrad_engine.llm.simulated.concept import Concept
from textgrad_engine.llm.simulated.lexicon import LEXICON

BY_NAME = {concept.name: concept for concept in LEXICON}
_COMPILED = tuple((concept, re.compile("|".join(concept.patterns), re.MULTILINE)) for concept in LEXICON)
_QUOTES = str.maketrans({"\u2019": "'", "\u2018": "'", "\u201c": '"', "\u201d": '"', "ß": "ss", "ø": "o", "ł": "l"})
_INTRODUCES_QUOTE = re.compile(
    r"^>*\s*(?:On|Am|Le|El|Il|Op)\b.{0,80}\b(?:wrote|schrieb|a écrit|escribió|scritto)\b.*:\s*$"
)
_SIGNATURE = re.compile(r"^-- ?$", re.MULTILINE)
_SENTENCE_END = re.compile(r"[.!?;()]+(?:\s|$)|\n\s*\n|[()]")
_ASIDE = re.compile(
    r"\bby the way\b|\bbtw\b|\bnot about\b|\bnothing to do with\b|doesn't come into it|\bdisregard\b|\brien a voir\b|"
    r"\bje ne parle pas\b|\bn'est pas\b|\bnot asking\b|\bisn't about\b|\bit's not\b|\bstays as\b|\bnot cancelling\b|"
    r"\bwasn't damaged\b|\bno need\b|\bdon't care about\b|\bdon't want\b|\bnot after\b|\bas usual\b|\bwas fine\b|"
    r"\bbien arrivee\b|\bcan do without\b"
)


@dataclass(frozen=True)
class Mention:
    """A concept and where it is spoken of, as offsets in the folded text."""

    concept: Concept
    start: int
    end: int


@functools.lru_cache(maxsize=16384)
def fold(text: str) -> str:
    """Lower case without accents, so that one pattern serves typed and mistyped mail.

    Example:
        >>> fold("Gefährlich für Groß und Klein")
        'gefahrlich fur gross und klein'
    """
    plain = unicodedata.normalize("NFKD", text.translate(_QUOTES))
    return "".join(character for character in plain if not unicodedata.combining(character)).lower()


@functools.lru_cache(maxsize=16384)
def find(text: str) -> tuple[Mention, ...]:
    """Every concept that `text` speaks of, each at its first mention, in order of appearance.

    Example:
        >>> [mention.concept.name for mention in find("My gift card never came, and the login fails.")]
        ['gift_card', 'login']
    """
    folded = fold(text)
    found = [
        Mention(concept, match.start(), match.end())
        for concept, pattern in _COMPILED
        if (match := pattern.search(folded)) is not None
    ]
    return tuple(sorted(found, key=lambda mention: (mention.start, -mention.end)))


def own_words(ticket: str) -> str:
    """What the sender wrote now: without quoted mail and without what follows the signature mark."""
    lines = [
        line
        for line in ticket.splitlines()
        if not (line.lstrip().startswith(">") or _INTRODUCES_QUOTE.match(line.strip()))
    ]
    return _SIGNATURE.split("\n".join(lines), maxsplit=1)[0].strip()


@functools.lru_cache(maxsize=16384)
def concepts_in_ticket(ticket: str) -> tuple[Concept, ...]:
    """What a ticket is about, what stands out most first, then what comes first.

    Sentences that only mention something in passing do not count unless there is nothing else, nor does quoted mail.
    """
    own = own_words(ticket)
    sentences = [part.strip() for part in _SENTENCE_END.split(fold(own)) if part.strip()]
    meant = "\n".join(sentence for sentence in sentences if not _ASIDE.search(sentence))
    for text in (meant, own, ticket):
        if mentions := find(text):
            return tuple(mention.concept for mention in sorted(mentions, key=lambda mention: -mention.concept.weight))
    return ()
