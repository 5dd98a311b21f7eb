"""The task model: sorts a ticket by what it knows of the trade and by the rules it finds in its instructions."""

from __future__ import annotations

import re
from dataclasses import dataclass

from textgrad_engine.llm.simulated.chance import chance, pick
from textgrad_engine.llm.simulated.concepts import BY_NAME, concepts_in_ticket
from textgrad_engine.llm.simulated.rules import Policy, read_policy

_TICKET_MARK = re.compile(
    r"^[ \t#*>]*(?:ticket|mail|e-?mail|message|customer|input|question|text)\b[ \t*]*(?:\([^)\n]*\))?[ \t*]*:[ \t*]*",
    re.IGNORECASE | re.MULTILINE,
)
_LONG_LINES, _LONG_WORDS = 40, 700


@dataclass(frozen=True)
class Decision:
    """Where a ticket goes, and why.

    Attributes:
        queue: the queue.
        concept: the concept that decided, or None for a guess.
        by_rule: whether a rule of the instructions decided, rather than the newcomer's guess.
    """

    queue: str
    concept: str | None
    by_rule: bool


def split_prompt(system: str, user: str) -> tuple[str, str]:
    """Tell instructions and ticket apart, also where both stand in one user message.

    Args:
        system: the text of the system messages, "" when there are none.
        user: the text of the last user message.

    Returns:
        The instructions and the ticket.
    """
    mark = _TICKET_MARK.search(user)
    if system.strip():
        if mark and not user[: mark.start()].strip():
            return system, user[mark.end() :].strip()
        if mark and read_policy(user[: mark.start()]).rules:
            return f"{system}\n{user[: mark.start()].strip()}", user[mark.end() :].strip()
        return system, user.strip()
    if mark:
        return user[: mark.start()].strip(), user[mark.end() :].strip()
    paragraphs = re.split(r"\n[ \t]*\n", user.strip())
    if len(paragraphs) == 1:
        return "", user.strip()
    said = [bool(list(read_policy(part).rules)) or "queue" in part.lower() for part in paragraphs]
    last = max((position for position, true in enumerate(said[:-1]) if true), default=0)
    return "\n\n".join(paragraphs[: last + 1]), "\n\n".join(paragraphs[last + 1 :])


def error_rate(policy: Policy, words: int, noise: float) -> float:
    """How often the model slips: `noise`, and more when the text is very long or contradicts itself."""
    too_long = max((policy.lines - _LONG_LINES) / 60, (words - _LONG_WORDS) / 1200, 0.0)
    return min(noise + 0.2 * min(too_long, 1.5) + 0.02 * policy.contradictions, 0.6)


def decide(policy: Policy, ticket: str, seed: int, salt: str = "") -> Decision:
    """Where the ticket goes by the instructions, before any slip.

    A rule beats the newcomer's guess; among rules one with priority wins, then the concept that stands out more, then
    the one that the ticket speaks of first. Rules that send one concept to two places leave it to chance.
    """
    concepts = concepts_in_ticket(ticket)
    best: tuple[tuple[bool, int, int], str, str] | None = None
    for position, concept in enumerate(concepts):
        rules = policy.about(concept.name)
        if rules:
            rank = (rules[0].priority, concept.weight, -position)
            if best is None or rank > best[0]:
                places = sorted({rule.queue for rule in rules})
                best = (rank, pick(places, seed, "coin", concept.name, ticket, salt), concept.name)
    if best is not None:
        return Decision(best[1], best[2], True)
    for concept in concepts:
        queue = policy.described.get(concept.name, concept.queue)
        excluded = policy.excluded(concept.name)
        if queue in policy.queues and queue not in excluded:
            return Decision(queue, concept.name, False)
        if excluded and (left := [name for name in policy.queues if name not in excluded]):
            return Decision(pick(left, seed, "elsewhere", ticket, salt), concept.name, False)
    return Decision(pick(policy.queues, seed, "guess", ticket), None, False)


def sort_ticket(system: str, user: str, seed: int, noise: float) -> str:
    """The task model's answer: a queue's name, dressed in a sentence when nothing asks for the bare name."""
    instructions, ticket = split_prompt(system, user)
    policy = read_policy(instructions)
    decision = decide(policy, ticket, seed, instructions)
    queue = decision.queue
    if _slips(instructions, ticket, seed, error_rate(policy, len(instructions.split()), noise)):
        others = [name for name in policy.queues if name != queue]
        usual = BY_NAME[decision.concept].queue if decision.concept else queue
        if usual in others and chance(seed, "habit", instructions, ticket) < 0.5:
            queue = usual
        elif others:
            queue = pick(others, seed, "which", instructions, ticket)
    return queue if policy.answer_only else f"This ticket belongs in {queue}."


def _slips(instructions: str, ticket: str, seed: int, rate: float) -> bool:
    """Half of the slips belong to the ticket, which is hard under any instructions; half change with every wording."""
    return chance(seed, "hard", ticket) < rate / 2 or chance(seed, "slip", instructions, ticket) < rate / 2
