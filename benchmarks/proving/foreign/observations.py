"""What is seen in solved parcels alone, and new instructions made of it: MIPROv2 asks for that."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence

from textgrad_engine.llm.simulated.chance import chance
from textgrad_engine.testing.simulated.vocabulary import BY_NAME, Rule, attributes_in, clauses, rules_in

_SENTENCES = 3
"""How many sentences a summary has, one for each code."""

_TAKEN = 0.75
"""How often a proposal takes up a thing that a description says, so that proposals differ as at a temperature."""


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
