"""Reading instructions: which queues there are, and what the text says about where each concept goes."""

from __future__ import annotations

import functools
import re
from collections.abc import Iterator
from dataclasses import dataclass, field

from textgrad_engine.llm.simulated.concept import QUEUES, SHARP
from textgrad_engine.llm.simulated.concepts import BY_NAME, Mention, find, fold

_HEAD = re.compile(
    r"^\s*(?:[-*•+]|\d+[.)])?\s*[*`\"'_]*([A-Za-z][\w-]*)[*`\"'_]*\s*(?::|\u2013|\u2014|=|\s-\s|\()(.*)$"
)
_NOT_A_QUEUE = frozenset(
    {
        "also",
        "always",
        "answer",
        "example",
        "examples",
        "exception",
        "exceptions",
        "first",
        "hint",
        "hints",
        "important",
        "input",
        "never",
        "note",
        "output",
        "policy",
        "priority",
        "queue",
        "queues",
        "remember",
        "rule",
        "rules",
        "then",
        "ticket",
    }
)
_LISTED = re.compile(
    r"\bqueues?\b\s*(?:are|is|:|\()\s*([\w-]+(?:\s*,\s*[\w-]+)+(?:,?\s+(?:and|or)\s+[\w-]+)?)", re.IGNORECASE
)
_CUE = re.compile(
    r"(?:\b(?:to|into|in|for|under|is|are|use|choose|pick|answer|queue|by|but|means?)\b|->|=>|→|:|=)"
    r"\s*(?:the\s+|our\s+)?[\"'`*_]*$"
)
_CUE_AFTER = re.compile(r"^[\"'`*_]*\s+(?:queue|team|desk|handles?|takes?|is right)\b")
_NEGATED = re.compile(
    r"(?:\b(?:not|never|no longer|instead of|rather than|nor|neither)\b|n't\b)"
    r"(?:\s+(?:to|in|into|for|go|goes|belongs?|be|sent|send|put|it|them|the|our|a|handled|by|matters?|of|is|are))*\s*[\"'`*_]*$"
)
_PRIORITY = re.compile(
    r"\b(?:even|also) (?:if|when|where|though)\b|\bfirst\b|\bbefore (?:anything|everything|all|any)\b|\balways\b|"
    r"\bregardless\b|\bno matter\b|\bwhatever else\b|\babove all\b|\boverrid\w+|\bpreceden\w+|"
    r"\bpriority\b|\bbeats?\b|\bwins?\b"
)
_CLAUSE = re.compile(
    r"\b(?:(?:even|also) (?:if|when|where|though)|unless|regardless of|no matter|whatever else|whether or not)\b"
)
_REASON = re.compile(r"\b(?:because|since|so that)\b.*$", re.DOTALL)
_SENTENCE = re.compile(r"(?<=[.!?;])\s+")
_ANSWER_ONLY = re.compile(
    r"\bonly\b|\bnothing else\b|\bjust the\b|\bone word\b|\bsingle word\b|\bexactly one\b|\bno other\b|"
    r"\bno (?:explanation|extra)"
)


@dataclass(frozen=True)
class Rule:
    """What one sentence says of one concept.

    Attributes:
        concept: the concept's name.
        queue: where it goes; for a negated rule, where it does not go.
        negated: whether the sentence only excludes `queue`.
        priority: whether it claims to hold before other rules.
        line: which line of the instructions says it, from 1.
    """

    concept: str
    queue: str
    negated: bool = False
    priority: bool = False
    line: int = 0


@dataclass(frozen=True)
class Policy:
    """Everything that the simulated task model takes from its instructions.

    Attributes:
        queues: the names of the queues, in the order of the text.
        rules: what the text says beyond naming the queues, in its order.
        described: concepts that the phrase behind a queue's name speaks of, with that queue.
        contradictions: how many concepts are sent to different places by rules of the same standing.
        lines: how many lines with content the text has.
        answer_only: whether it asks for the bare name.
    """

    queues: tuple[str, ...]
    rules: tuple[Rule, ...]
    described: dict[str, str] = field(default_factory=dict)
    contradictions: int = 0
    lines: int = 0
    answer_only: bool = True

    def about(self, concept: str) -> tuple[Rule, ...]:
        """The rules about a concept that count: those with priority if there are any, else all."""
        rules = tuple(rule for rule in self.rules if rule.concept == concept and not rule.negated)
        return tuple(rule for rule in rules if rule.priority) or rules

    def excluded(self, concept: str) -> frozenset[str]:
        """The queues that the text says are wrong for a concept."""
        return frozenset(rule.queue for rule in self.rules if rule.concept == concept and rule.negated)


def queue_names(text: str) -> tuple[str, ...]:
    r"""The queues that instructions name: the heads of a list, or an enumeration after the word "queues".

    Example:
        >>> queue_names("Pick a queue: red, green or blue")
        ('red', 'green', 'blue')
        >>> queue_names("- billing: money\n- shipping: parcels\n- trust: fraud\nBe kind.")
        ('billing', 'shipping', 'trust')
    """
    heads = [match[1].lower() for line in text.splitlines() if (match := _HEAD.match(line))]
    names = [name for name in dict.fromkeys(heads) if name not in _NOT_A_QUEUE]
    if len(names) < 3:
        names = [name for name in names if name in QUEUES]
    for listed in _LISTED.finditer(text):
        names += [name.lower() for name in re.split(r"\s*,\s*(?:(?:and|or)\s+)?|\s+(?:and|or)\s+", listed[1]) if name]
    known = [name for name in QUEUES if re.search(rf"\b{name}\b", text, re.IGNORECASE)]
    return tuple(dict.fromkeys(names or known))


@functools.lru_cache(maxsize=2048)
def read_policy(text: str) -> Policy:
    """Read instructions as far as plain matching goes."""
    queues = queue_names(text) or QUEUES
    described: dict[str, str] = {}
    heads_seen: set[str] = set()
    rules: list[Rule] = []
    carried = ""
    lines = text.splitlines()
    for number, line in enumerate(lines, 1):
        head = _HEAD.match(line)
        name = head[1].lower() if head else ""
        if head and name in queues and name not in heads_seen:
            heads_seen.add(name)
            for rule in _described(name, head[2], queues, number):
                if rule.negated or BY_NAME[rule.concept].queue != rule.queue:
                    rules.append(rule)
                else:
                    described[rule.concept] = rule.queue
            continue
        found = list(rules_in(line, queues, number))
        if not found and carried and re.match(r"\s*(?:[-*•+]|\d+[.)])", line):
            found = [Rule(mention.concept.name, carried, line=number) for mention in find(line)]
        elif line.strip():
            carried = _header_queue(line, queues)
        rules += found
    return Policy(
        queues=queues,
        rules=tuple(rules),
        described=described,
        contradictions=_contradictions(rules),
        lines=sum(1 for line in lines if line.strip()),
        answer_only=bool(_ANSWER_ONLY.search(fold(text))),
    )


def rules_in(line: str, queues: tuple[str, ...], number: int = 0) -> Iterator[Rule]:
    """The rules that one line states, sentence by sentence.

    Example:
        >>> list(rules_in("Gift cards never belong in billing: send them to account.", ("billing", "account")))[0].queue
        'account'
    """
    for sentence in _SENTENCE.split(fold(line)):
        priority = bool(_PRIORITY.search(sentence))
        core = _without_clauses(_REASON.sub("", sentence), queues)
        places = _places(core, queues)
        goes = [(position, queue) for position, queue, negated in places if not negated]
        for mention in _meant(find(core), places):
            concept = mention.concept.name
            after = [queue for position, queue in goes if position >= mention.end]
            before = [queue for position, queue in goes if position < mention.start]
            if after or before:
                yield Rule(concept, after[0] if after else before[-1], priority=priority, line=number)
            else:
                for _, queue, _ in places:
                    yield Rule(concept, queue, negated=True, line=number)


def _meant(mentions: tuple[Mention, ...], places: list[tuple[int, str, bool]]) -> list[Mention]:
    """Mentions that a sentence is about: next to a sharper one ("a payment disputed …") a broad one is only context."""

    def part(mention: Mention) -> int:
        return sum(position < mention.start for position, _, negated in places if not negated)

    sharpest: dict[int, int] = {}
    for mention in mentions:
        sharpest[part(mention)] = max(mention.concept.weight, sharpest.get(part(mention), 0))
    return [m for m in mentions if m.concept.weight >= min(sharpest[part(m)], SHARP)]


def _places(sentence: str, queues: tuple[str, ...]) -> list[tuple[int, str, bool]]:
    """Where a sentence names a queue: offset, name, and whether it says "not there"."""
    found: list[tuple[int, str, bool, bool]] = []
    for match in _queue_pattern(queues).finditer(sentence):
        negated = bool(_NEGATED.search(sentence[: match.start()]))
        cued = bool(_CUE.search(sentence[: match.start()]) or _CUE_AFTER.search(sentence[match.end() :]))
        found.append((match.start(), match[0], negated, cued or negated))
    cued_only = [place for place in found if place[3]]
    return [(position, queue, negated) for position, queue, negated, _ in (cued_only or found[-1:])]


@functools.lru_cache(maxsize=256)
def _queue_pattern(queues: tuple[str, ...]) -> re.Pattern[str]:
    return re.compile(r"\b(?:" + "|".join(map(re.escape, sorted(queues, key=len, reverse=True))) + r")\b(?![-\w])")


def _without_clauses(sentence: str, queues: tuple[str, ...]) -> str:
    """Cut off "even if …": what it names is what the rule overrides, not what it is about."""
    clause = _CLAUSE.search(sentence)
    if clause is None:
        return sentence
    head, rest = sentence[: clause.start()], sentence[clause.start() :]
    if find(head) and _queue_pattern(queues).search(head):
        return head
    return head + rest.partition(",")[2]


def _described(queue: str, phrase: str, queues: tuple[str, ...], number: int) -> Iterator[Rule]:
    kept, _, refused = fold(phrase).partition(" not ")
    for mention in find(kept):
        yield Rule(mention.concept.name, queue, line=number)
    if not _queue_pattern(queues).search(refused):
        for mention in find(refused):
            yield Rule(mention.concept.name, queue, negated=True, line=number)


def _header_queue(line: str, queues: tuple[str, ...]) -> str:
    folded = fold(line)
    if not folded.rstrip().endswith(":") or find(folded):
        return ""
    names = {queue for _, queue, negated in _places(folded, queues) if not negated}
    return names.pop() if len(names) == 1 else ""


def _contradictions(rules: list[Rule]) -> int:
    places: dict[tuple[str, bool], set[str]] = {}
    for rule in rules:
        if not rule.negated:
            places.setdefault((rule.concept, rule.priority), set()).add(rule.queue)
    return sum(len(queues) > 1 for queues in places.values())
