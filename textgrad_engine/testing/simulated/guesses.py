"""New texts without feedback: said in other words, or guessed from texts with their scores and a few solved parcels."""

from __future__ import annotations

from textgrad_engine.llm.simulated.chance import chance, pick
from textgrad_engine.llm.simulated.tried import Tried
from textgrad_engine.testing.simulated.instructions import read_instructions
from textgrad_engine.testing.simulated.proposer import WORDINGS, worded
from textgrad_engine.testing.simulated.task_model import parcel_in
from textgrad_engine.testing.simulated.vocabulary import CODES, attributes_in, clauses, rules_in

_BOLD = 0.3
"""How often a proposal begins from another text than the best one, or takes a line over from another one."""


def paraphrased(text: str, seed: int, sloppiness: float, sample: tuple[int, ...] = ()) -> dict[str, str]:
    """The text with its rules in other words, in the shape of the format "rewrite".

    A careless one has lost a line, at the rate of sloppiness. What is no rule stays as it is.
    """
    key = (seed, "paraphrase", text, *sample)
    lines = []
    for number, line in enumerate(text.split("\n")):
        rules = [rule for clause in clauses(line) for rule in rules_in(clause)]
        if len(rules) == 1:
            others = [wording for wording in WORDINGS if worded(wording, rules[0].attribute, rules[0].code) != line]
            line = worded(pick(others, *key, number), rules[0].attribute, rules[0].code)
        lines.append(line)
    if len(lines) > 1 and chance(*key, "sloppy") < sloppiness:
        del lines[int(chance(*key, "lost") * len(lines))]
    return {"text": "\n".join(lines), "reason": "It says the same in other words."}


def guessed(tried: Tried, seed: int, sloppiness: float, sample: tuple[int, ...] = ()) -> dict[str, str]:
    """A text that was tried with a rule more, in the shape of the format "rewrite".

    Nobody has said what decides: it takes one of the parcels whose code the text does not explain, and states that one
    of its attributes means the code. Sometimes it also takes over a rule from another text with a good score.

    Args:
        tried: the texts, the best last, and some solved parcels.
        seed: what its choices are hashed with.
        sloppiness: the rate of proposals that state a wrong code.
        sample: which answer to the request, of several at a temperature.
    """
    key = (seed, "guess", *tried.texts, *(part for task in tried.tasks for part in task), *sample)
    better = tried.texts[len(tried.texts) // 2 :]
    base = pick(better, *key, "base") if chance(*key, "bold") < _BOLD else tried.texts[-1]
    known = read_instructions(base).codes
    lines = base.split("\n")
    if chance(*key, "take over") < _BOLD:
        others = [line for text in better for line in text.split("\n") if _is_new(line, known)]
        if others:
            lines.append(pick(others, *key, "line"))
    guesses = []
    for task, code in tried.tasks:
        _, parcel = parcel_in(task) or ("", task)
        has = attributes_in(parcel)
        if code in CODES and not any(known.get(name) == code for name in has):
            guesses += [(name, code) for name in has if name not in known]
    if guesses:
        name, code = pick(guesses, *key, "which")
        if chance(*key, "sloppy") < sloppiness:
            code = pick([other for other in CODES if other != code], *key, "wrong code")
        lines.append(worded(pick(WORDINGS, *key, "wording"), name, code))
    return {"text": "\n".join(lines), "reason": "The tasks that are shown suggest it."}


def _is_new(line: str, known: dict[str, str]) -> bool:
    rules = rules_in(line)
    return bool(rules) and not any(rule.attribute in known for rule in rules)
