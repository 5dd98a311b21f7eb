"""The optimizer: gathers feedback by concept and queue, and writes the rules that most of it asks for."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from textgrad_engine.llm.simulated.chance import chance, pick
from textgrad_engine.llm.simulated.concept import QUEUES
from textgrad_engine.llm.simulated.concepts import BY_NAME
from textgrad_engine.llm.simulated.reading import Item, Task
from textgrad_engine.llm.simulated.rules import Policy, Rule, read_policy, rules_in

BLAND = (
    "Be accurate and consistent.",
    "Read every ticket carefully.",
    "Think about what the customer needs.",
    "Take your time before you answer.",
    "Pay attention to details.",
)
_FORMAT_LINE = "Answer with the name of one queue and nothing else."
_WORDINGS = (
    "{Phrase} go to {queue}{clause}.",
    "Send {phrase} to {queue}{clause}.",
    "{Phrase} belong in {queue}{clause}.",
    "If a ticket is about {phrase}, choose {queue}{clause}.",
    "For {phrase}, the queue is {queue}{clause}.",
)
_CLAUSES = (", even if other things are mentioned too", ", whatever else the ticket says", ", before anything else")
_RATE_GARBLED, _RATE_USELESS, _RATE_DROPPED = 0.08, 0.06, 0.25
_REJECTED = re.compile(
    r"reject|dropp|worse|not kept|undone|taken back|revert|did not help|no better|discard", re.IGNORECASE
)
_PLACEHOLDER = re.compile(r"\{[A-Za-z_]\w*\}")


@dataclass
class _Group:
    """Feedback items that ask for the same rule."""

    concept: str
    queue: str
    support: float = 0.0
    urgent: int = 0
    numbers: list[int] = field(default_factory=list)

    @property
    def priority(self) -> bool:
        """One complaint may be chance; two that ask for precedence, and most of the group, are not."""
        return self.urgent >= 2 and self.urgent * 2 > self.support


def patch(task: Task, seed: int) -> dict[str, Any]:
    """Edits to the numbered lines, in the shape of the format "patch"."""
    return {"edits": _edits(task, seed, task.max_edits)}


def rewrite(task: Task, seed: int) -> dict[str, Any]:
    """The whole new text, in the shape of the format "rewrite"; about one in four has lost a line on the way."""
    edits = _edits(task, seed, 4)
    lines: list[str | None] = list(task.lines)
    for edit in edits:
        if edit["op"] == "replace":
            lines[edit["line"] - 1] = edit["text"]
    key = (seed, "rewrite", *task.lines, *(item.text for item in task.items))
    droppable = [
        position for position, line in enumerate(lines) if line and line.strip() and not _PLACEHOLDER.search(line)
    ]
    if len(droppable) > 1 and task.items and chance(*key) < _RATE_DROPPED:
        lines[pick(droppable, *key, "which")] = None
    new = [line for line in lines if line is not None] + [edit["text"] for edit in edits if edit["op"] == "add"]
    reason = " ".join(edit["reason"] for edit in edits) or "Nothing in the feedback asks for a change."
    return {"text": "\n".join(new), "reason": reason}


def merged(items: Sequence[Item], limit: int) -> dict[str, Any]:
    """Pieces of feedback, each for all items that ask for one rule, in the shape of the format "reduce".

    Vague items are one piece, and so is all that would be more pieces than so many.

    Args:
        items: the feedback.
        limit: how many pieces there may be.

    Example:
        >>> said = "Gift cards go to account.", "Be careful.", "Send gift cards to account."
        >>> pieces = merged([Item(number, 1, text) for number, text in enumerate(said, 1)], 2)["items"]
        >>> [(piece["text"], piece["numbers"]) for piece in pieces]
        [('Gift cards go to account.', [1, 3]), ('Be careful.', [2])]
    """
    texts = {item.number: item.text for item in items}
    groups, vague = _gather(items, (), QUEUES)
    found = [group.numbers for group in groups] + ([vague] if vague else [])
    kept, rest = found[:limit], found[limit:]
    pieces = [{"text": texts[numbers[0]], "numbers": numbers} for numbers in kept]
    if rest:
        said = dict.fromkeys(texts[numbers[0]] for numbers in (kept[-1], *rest))
        every = sorted(number for numbers in (kept[-1], *rest) for number in numbers)
        pieces[-1] = {"text": " ".join(said), "numbers": every}
    return {"items": pieces}


def _edits(task: Task, seed: int, limit: int) -> list[dict[str, Any]]:
    text = "\n".join(task.lines)
    key = (seed, "optimizer", text, task.problem, *(item.text for item in task.items))
    if task.other is not None:
        return _taken_over(task, task.other)[:limit]
    if not task.items:
        return _bland(task, key, [], "There is no feedback, so this is general advice.")[:limit]
    policy = read_policy(text)
    queues = policy.queues if any(re.search(rf"\b{name}\b", text.lower()) for name in policy.queues) else QUEUES
    groups, vague = _gather(task.items, task.history, queues)
    edits = _answers(groups, task, policy, key)[:limit]
    if not groups and vague:
        edits = _bland(task, key, vague, "The feedback asks for more care.")[:limit]
    elif edits and groups and chance(*key, "garbled") < _RATE_GARBLED:
        edits = _garbled(edits, queues, key)
    elif edits and chance(*key, "useless") < _RATE_USELESS:
        edits = edits[: limit - 1] + _bland(task, key, [], "General advice.")
    return edits if not task.problem else edits[: max(1, limit // 2)]


def _answers(groups: list[_Group], task: Task, policy: Policy, key: tuple[object, ...]) -> list[dict[str, Any]]:
    """Edits for what several items share; what a single item asks for only where little else is to be done."""
    edits: list[dict[str, Any]] = []
    for group in groups:
        if group.support < 2 and len(edits) >= 2:
            break
        edit = _edit(group, task, policy, key)
        if edit is not None:
            edits.append(edit)
    return edits


def _gather(items: Sequence[Item], history: Sequence[str], queues: tuple[str, ...]) -> tuple[list[_Group], list[int]]:
    """Feedback grouped by what it asks for, most supported first, and the numbers of the vague items."""
    groups: dict[tuple[str, str], _Group] = {}
    vague: list[int] = []
    for item in items:
        rule = next((rule for rule in rules_in(item.text, queues) if not rule.negated), None)
        wants_format = "nothing else" in item.text and "name of the queue" in item.text
        if rule is None and not wants_format:
            vague.append(item.number)
            continue
        concept, queue = (rule.concept, rule.queue) if rule else ("", "")
        group = groups.setdefault((concept, queue), _Group(concept, queue))
        group.support += item.times
        group.urgent += item.times if rule and rule.priority else 0
        group.numbers.append(item.number)
    for past in history:
        if _REJECTED.search(past):
            for rule in rules_in(past, queues):
                if (rule.concept, rule.queue) in groups:
                    groups[rule.concept, rule.queue].support -= 0.5
    return sorted(groups.values(), key=lambda group: (-group.support, group.numbers[0])), vague


def _edit(group: _Group, task: Task, policy: Policy, key: tuple[object, ...]) -> dict[str, Any] | None:
    """The edit that answers a group, or None when the text says it already."""
    count = len(group.numbers)
    items = "1 feedback item says" if count == 1 else f"{count} feedback items say"
    if not group.concept:
        if policy.answer_only:
            return None
        return _add(task, _FORMAT_LINE, f"{items} what the answer should look like.", group.numbers)
    said = [rule for rule in policy.rules if rule.concept == group.concept and not rule.negated]
    right = [rule for rule in said if rule.queue == group.queue]
    if right and (len(right) == len(said)) and (right[0].priority or not group.priority):
        return None
    reason = f"{items} where {BY_NAME[group.concept].phrases[0]} go."
    stale = next((rule for rule in said if rule.queue != group.queue), right[0] if right else None)
    whole_line = stale is not None and _is_own_line(stale, policy, task)
    text = _word(group, group.priority or bool(stale and not whole_line), key)
    if stale is not None and whole_line:
        bullet = re.match(r"\s*(?:[-*•+]|\d+[.)])\s+", task.lines[stale.line - 1])
        text = (bullet[0] if bullet else "") + text
        return {"op": "replace", "line": stale.line, "text": text, "reason": reason, "feedback": group.numbers}
    return _add(task, text, reason, group.numbers)


def _taken_over(task: Task, other: tuple[str, ...]) -> list[dict[str, Any]]:
    """Edits that merge another version: its rules about what this one says nothing of, and how answers should look."""
    policy = read_policy("\n".join(task.lines))
    known = {rule.concept for rule in policy.rules}
    edits = []
    for line in other:
        rules = list(rules_in(line, policy.queues or QUEUES))
        fresh = bool(rules) and not any(rule.concept in known for rule in rules)
        if fresh or (not rules and not policy.answer_only and read_policy(line).answer_only):
            known |= {rule.concept for rule in rules}
            edits.append(_add(task, line, "Version B has learned this.", []))
    return edits


def _is_own_line(rule: Rule, policy: Policy, task: Task) -> bool:
    """Whether a rule's line may be replaced: it says nothing else and holds no placeholder."""
    line = task.lines[rule.line - 1]
    described = any(re.match(rf"\W*{re.escape(queue)}\W*\s*[:(=]", line, re.IGNORECASE) for queue in policy.queues)
    others = any(other.line == rule.line and other.concept != rule.concept for other in policy.rules)
    return not (others or described or _PLACEHOLDER.search(line))


def _word(group: _Group, priority: bool, key: tuple[object, ...]) -> str:
    own = (*key, group.concept, group.queue)
    phrase = pick(BY_NAME[group.concept].phrases, *own, "phrase")
    clause = pick(_CLAUSES, *own, "clause") if priority else ""
    wording = pick(_WORDINGS, *own, "wording")
    return wording.format(Phrase=phrase[0].upper() + phrase[1:], phrase=phrase, queue=group.queue, clause=clause)


def _add(task: Task, text: str, reason: str, numbers: list[int]) -> dict[str, Any]:
    return {"op": "add", "line": len(task.lines), "text": text, "reason": reason, "feedback": numbers}


def _bland(task: Task, key: tuple[object, ...], numbers: list[int], reason: str) -> list[dict[str, Any]]:
    said = {line for text in (*task.tried, "\n".join(task.lines)) for line in text.split("\n")}
    left = [line for line in BLAND if line not in said]
    return [_add(task, pick(left, *key, "bland"), reason, numbers)] if left else []


def _garbled(edits: list[dict[str, Any]], queues: tuple[str, ...], key: tuple[object, ...]) -> list[dict[str, Any]]:
    """The same edits with one that names a wrong queue: models do that, and validation has to catch it."""
    spoilt = int(chance(*key, "which edit") * len(edits))
    text = edits[spoilt]["text"]
    there = [queue for queue in queues if re.search(rf"\b{re.escape(queue)}\b", text)]
    others = [queue for queue in queues if queue not in there]
    if len(there) == 1 and others:
        text = re.sub(rf"\b{re.escape(there[0])}\b", pick(others, *key, "wrong queue"), text)
    return [{**edit, "text": text} if position == spoilt else edit for position, edit in enumerate(edits)]
