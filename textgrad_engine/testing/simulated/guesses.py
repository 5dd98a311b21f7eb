"""New texts without feedback: said in other words, guessed from texts with their scores and a few solved parcels, or
with what is seen in solved parcels alone.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence

from textgrad_engine.llm.simulated.chance import chance, pick
from textgrad_engine.llm.simulated.tried import Tried
from textgrad_engine.testing.simulated.instructions import read_instructions
from textgrad_engine.testing.simulated.proposer import WORDINGS, worded
from textgrad_engine.testing.simulated.task_model import parcel_in
from textgrad_engine.testing.simulated.vocabulary import BY_NAME, CODES, Rule, attributes_in, clauses, rules_in

__all__ = ["guessed", "observed", "paraphrased", "summed_up", "taken_up"]

_BOLD = 0.3
"""How often a proposal begins from another text than the best one, or takes a line over from another one."""

_SENTENCES = 3
"""How many sentences a summary has, one for each code."""

_TAKEN = 0.75
"""How often a proposal takes up a thing that a description says, so that proposals differ as at a temperature."""


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


def observed(solved: Sequence[tuple[str, str]], before: str = "") -> str:
    """What somebody sees in solved parcels, a sentence each: an attribute that two of them have, and all the same code.

    The code that most parcels have goes with everything, so nothing is said of it. Nobody tells which of the attributes
    decide, so some of this is chance; what was observed before is said again where a parcel bears it out, and where one
    does not, that the attribute has several codes.

    Example:
        >>> solved = [("glass, tea", "K2"), ("glass, wine", "K2"), ("tea", "K1"), ("wine", "K1"), ("maps", "K1")]
        >>> observed(solved, before="Parcels with wine get code K2.")
        'Parcels with glass get code K2. Parcels with wine get several codes.'
    """
    usual = Counter(code for _, code in solved).most_common(1)
    known = {rule.attribute: rule.code for clause in _sentences(before) for rule in rules_in(clause)}
    codes: dict[str, list[str]] = {}
    for parcel, code in solved:
        for name in attributes_in(parcel):
            codes.setdefault(name, []).append(code)
    said = []
    for name, found in codes.items():
        if name in known and set(found) != {known[name]}:
            said.append(f"Parcels {BY_NAME[name].spoken} get several codes.")
        elif name in known or (len(found) > 1 and set(found) == {found[0]} != {usual[0][0]}):
            said.append(_sentence([name], found[0]))
    return " ".join(said)


def summed_up(observations: str) -> str:
    """The codes of which most was observed, each in one sentence with what goes with it, three in all.

    Left out is what was taken back as often as it was said.

    Example:
        >>> summed_up("Parcels with glass get K2. Parcels with tea get K2. Parcels with tea get several codes.")
        'Parcels with glass get code K2.'
    """
    said: Counter[Rule] = Counter()
    for clause in _sentences(observations):
        rules = rules_in(clause)
        said.update(rules)
        said.subtract([rule for rule in said if not rules and rule.attribute in attributes_in(clause)])
    code_of: dict[str, str] = {}
    weights: Counter[str] = Counter()
    for rule, count in said.most_common():
        if count > 0 and rule.attribute not in code_of:
            code_of[rule.attribute] = rule.code
            weights[rule.code] += count
    return " ".join(
        _sentence([name for name, other in code_of.items() if other == code], code)
        for code, _ in weights.most_common(_SENTENCES)
    )


def taken_up(description: str, seed: int, sample: tuple[int, ...]) -> list[str]:
    """The rules that a proposal takes from a description of the data: each in three of four proposals."""
    key = (seed, "taken up", description, *sample)
    rules = dict.fromkeys(rule for clause in clauses(description) for rule in rules_in(clause))
    return [_sentence([rule.attribute], rule.code) for rule in rules if chance(*key, rule) < _TAKEN]


def _sentences(text: str) -> list[str]:
    """The statements of a text; MIPROv2 puts observations together without a blank between them."""
    return clauses(re.sub(r"\.(?=[A-Z])", ". ", text))


def _sentence(names: Iterable[str], code: str) -> str:
    return f"Parcels {' or '.join(BY_NAME[name].spoken for name in names)} get code {code}."
