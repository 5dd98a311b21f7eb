"""The critic: says which concept of a ticket explains the expected queue; sometimes vague, sometimes wrong."""

from __future__ import annotations

import re

from textgrad_engine.llm.simulated.chance import chance, pick
from textgrad_engine.llm.simulated.concept import Concept
from textgrad_engine.llm.simulated.concepts import concepts_in_ticket, fold
from textgrad_engine.llm.simulated.lexicon import LEXICON
from textgrad_engine.llm.simulated.reading import Case, expected_in
from textgrad_engine.llm.simulated.rules import Policy, read_policy
from textgrad_engine.llm.simulated.task import decide, split_prompt

VAGUE = (
    "Read the whole ticket before deciding.",
    "Be more careful with tickets that touch several topics.",
    "The decision should rest on what the customer wants, not on single words.",
    "Make the criteria clearer.",
)
_SAYINGS = (
    "Tickets about {phrase} go to {queue}{clause}.",
    "Add that {phrase} belong in {queue}, not in {answer}{clause}.",
    "State a rule: {phrase} -> {queue}{clause}.",
    "Say that {phrase} should be sent to {queue} instead of {answer}{clause}.",
    "The text should tell the sorter to choose {queue} for {phrase}{clause}.",
)
_FORMAT = "Say that the answer is the name of the queue only and nothing else."
_RATE_VAGUE, _RATE_WRONG, _RATE_SECOND_GUESS = 0.15, 0.10, 0.15
_INSTRUCTIONS = re.compile(r"prompt|instruction|polic|guideline|rule|template|criteria|guidance|hint|persona")
_DATA = re.compile(r"ticket|question|input|user|customer|message|mail|document|data|query|context|answer|text")


def reads_as_instructions(key: str, role: str, case: Case) -> bool:
    """Whether an input is instructions, which can be improved, rather than data, which is what it is."""
    said = f"{key} {role}".lower()
    if _INSTRUCTIONS.search(said):
        return True
    holders = {message_role for message_role, keys, _ in case.messages if key in keys}
    return bool(holders & {"system", "developer"}) or not (_DATA.search(said) or "user" in holders)


def criticize(case: Case, seed: int) -> str:
    """Feedback on the instructions of one case, from nothing but what the case shows; "" when nothing is wrong."""
    instructions, ticket = split_prompt(case.text_of("system", "developer"), case.last_user)
    answer = case.answer.strip().lower()
    expected = next((found for text in case.feedback if (found := expected_in(text))), None)
    key = (seed, "critic", instructions, ticket, answer)
    if expected is None:
        return _passed_on(case) or pick(VAGUE, *key)
    expected = expected.lower()
    if answer == expected:
        return ""
    if re.search(rf"\b{re.escape(expected)}\b", answer):
        return _FORMAT
    mood = chance(*key, "mood")
    concepts = concepts_in_ticket(ticket)
    if mood < _RATE_VAGUE or not concepts:
        return pick(VAGUE, *key)
    policy = read_policy(instructions)
    concept = _explanation(concepts, policy, expected, key)
    if mood < _RATE_VAGUE + _RATE_WRONG:
        others = [other for other in (concepts[1:] or LEXICON) if other != concept]
        concept = pick(others or LEXICON, *key, "wrong")
    return _say(concept, expected, answer, _clause(concept, concepts, policy, ticket, key), key)


def _explanation(concepts: tuple[Concept, ...], policy: Policy, expected: str, key: tuple[object, ...]) -> Concept:
    """What in the ticket explains the expected queue: rather what the instructions have no rule for yet."""
    unruled = [concept for concept in concepts if not policy.about(concept.name)]
    unsaid = [c for c in concepts if all(rule.queue != expected for rule in policy.about(c.name))]
    stated = [concept for concept in concepts if concept not in unsaid]
    if stated and not any(concept.weight > stated[0].weight for concept in unsaid):
        return stated[0]
    candidates = unruled or unsaid or list(concepts)
    if chance(*key, "second guess") < _RATE_SECOND_GUESS:
        return pick(candidates, *key, "which")
    return candidates[0]


def _clause(
    concept: Concept, concepts: tuple[Concept, ...], policy: Policy, ticket: str, key: tuple[object, ...]
) -> str:
    """Words for "also when …", where another rule of the instructions has drawn the ticket away."""
    others = [other for other in concepts if other != concept]
    drawn = decide(policy, ticket, 0)
    overruled = drawn.by_rule and drawn.concept not in (None, concept.name)
    if not others or not overruled:
        return ""
    other = next((other for other in others if other.name == drawn.concept), others[0])
    return f", also when the mail speaks of {pick(other.phrases, *key, 'other')}"


def _say(concept: Concept, expected: str, answer: str, clause: str, key: tuple[object, ...]) -> str:
    shown = answer if re.fullmatch(r"[\w-]+", answer) else "another queue"
    return pick(_SAYINGS, *key, "saying").format(
        phrase=pick(concept.phrases, *key, "phrase"), queue=expected, answer=shown, clause=clause
    )


def _passed_on(case: Case) -> str:
    """Feedback that is already a rule (from a critic further down) is passed on as it is."""
    for text in case.feedback:
        if re.search(r"\b(?:go|goes|belongs?|sent|send) (?:in|into|to)\b|->", fold(text)):
            return text.strip()
    return ""
