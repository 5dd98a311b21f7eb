"""The proposer: gathers feedback by lesson and edits the text accordingly; careless at a known rate."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from textgrad_engine.llm.simulated.chance import chance, pick
from textgrad_engine.llm.simulated.reading import Task
from textgrad_engine.testing.simulated.instructions import read_instructions
from textgrad_engine.testing.simulated.lessons import Lesson, gathered, rejected
from textgrad_engine.testing.simulated.vocabulary import ATTRIBUTES, BY_NAME, CODES, attributes_in, clauses, rules_in

BLAND = (
    "Be accurate and consistent.",
    "Read every parcel line carefully.",
    "Take your time before you answer.",
    "Pay attention to details.",
    "Think about what sets a parcel apart.",
    "Check your answer before you give it.",
)
_FORMAT_LINE = "Answer with the code only and nothing else."
WORDINGS = (
    "Parcels {spoken} get code {code}.",
    "{name} -> {code}",
    "If a parcel is one {spoken_one}, the code is {code}.",
    "Parcels {spoken}: {code}.",
    "Use {code} for parcels {spoken}.",
)
_REPEATS = 0.15
"""How often it proposes again what the request says was rejected."""

_INSISTS = 0.3
"""How often it says again, with more force, what the text says already and feedback still asks for."""

LESSONS = 8
"""How many lessons a rewrite takes from the feedback at most, whoever asked for it."""


@dataclass(frozen=True)
class Proposer:
    """Edits a text from feedback.

    It takes the lessons that most feedback supports and does what they ask: a line is added, replaced, taken out or
    moved. What the request's history shows as rejected it mostly leaves alone.

    Attributes:
        seed: what its choices are hashed with.
        sloppiness: the rate of proposals with something silly in them.
    """

    seed: int
    sloppiness: float

    def patch(self, task: Task, other: tuple[str, ...] = (), sample: tuple[int, ...] = ()) -> dict[str, Any]:
        """Edits to numbered lines, in the shape of the format "patch".

        Args:
            task: the request.
            other: in a crossover, the lines of the other text that this one lacks.
            sample: which answer to the request, of several at a temperature.
        """
        key = self._key(task, other, sample)
        edits = self._edits(task, task.max_edits, key, other)
        if edits and chance(*key, "sloppy") < self.sloppiness:
            edits = self._spoilt(edits, task, key)[: task.max_edits]
        return {"edits": edits}

    def rewrite(self, task: Task, other: tuple[str, ...] = (), sample: tuple[int, ...] = ()) -> dict[str, Any]:
        """The whole text anew, in the shape of the format "rewrite"; see `patch`."""
        key = self._key(task, other, sample)
        edits = self._edits(task, LESSONS, key, other)
        dropped = 0
        if task.items and chance(*key, "sloppy") < self.sloppiness:
            if len(task.lines) > 1 and chance(*key, "drop?") < 0.5:
                dropped = 1 + int(chance(*key, "dropped") * len(task.lines))
            else:
                edits = self._spoilt(edits, task, key)
        reason = " ".join(edit["reason"] for edit in edits) or "Nothing in the feedback asks for a change."
        return {"text": "\n".join(_applied(task.lines, edits, dropped)), "reason": reason}

    def _key(self, task: Task, other: tuple[str, ...], sample: tuple[int, ...]) -> tuple[object, ...]:
        said = [item.text for item in task.items]
        return (self.seed, "proposer", *task.lines, *other, *said, *task.history, task.problem, task.max_edits, *sample)

    def _edits(self, task: Task, limit: int, key: tuple[object, ...], other: tuple[str, ...]) -> list[dict[str, Any]]:
        """The edits that most feedback asks for."""
        if not (task.items or other):
            return self._bland(task, key, "There is no feedback, so this is general advice.")[:limit]
        tried = rejected(task.history)
        edits: list[dict[str, Any]] = []
        touched: set[int] = set()
        about: set[str] = set()
        for support in gathered(task.items):
            lesson = support.lesson
            names = {lesson.attribute, lesson.other} & BY_NAME.keys()
            if names & about:
                continue  # another lesson about it has more support
            if lesson in tried and chance(*key, "repeat", lesson) >= _REPEATS:
                continue
            new = self._edit(lesson, task, support.numbers, key)
            if lesson.kind == "tidy":
                new = new[: limit - len(edits)]
            lines = {edit["line"] for edit in new if edit["op"] != "add"}
            if not new or lines & touched or len(edits) + len(new) > limit:
                continue
            edits += new
            touched |= lines
            about |= names
        edits += self._taken_over(task, other, about)[: limit - len(edits)]
        tidying = any(support.lesson.kind == "tidy" for support in gathered(task.items))
        if not edits and not other and not tidying:
            return self._bland(task, key, "The feedback asks for more care.")[:limit]
        return edits[: max(1, limit // 2)] if task.problem else edits

    def _edit(self, lesson: Lesson, task: Task, numbers: list[int], key: tuple[object, ...]) -> list[dict[str, Any]]:
        """The edits for one lesson; none when there is nothing to do."""
        own = _line_about(lesson.attribute, task.lines)
        count = f"{len(numbers)} feedback item{' says' if len(numbers) == 1 else 's say'}"
        now = read_instructions("\n".join(task.lines))
        if lesson.kind == "tidy":
            return [_edit("remove", line, "", "It says nothing new.", numbers) for line in _repeated(task.lines)]
        if lesson.kind == "format":
            reason = f"{count} what the answer should look like."
            return [] if now.bare else [_edit("add", len(task.lines), _FORMAT_LINE, reason, numbers)]
        if lesson.kind == "sign":
            reason = f"{count} what {lesson.attribute} stands for."
            if now.signs.get(lesson.attribute) == lesson.other:
                return []
            text = f"{lesson.attribute} means {lesson.other}."
            stated = next((n for n, line in enumerate(task.lines, 1) if lesson.attribute in line), None)
            return [_edit("replace" if stated else "add", stated or len(task.lines), text, reason, numbers)]
        if lesson.kind == "rule":
            reason = f"{count} that {lesson.attribute} means {lesson.other}."
            if own is None:
                return [_edit("add", len(task.lines), _worded(lesson, key), reason, numbers)]
            if now.codes.get(lesson.attribute) != lesson.other:
                text = _without(lesson.attribute, task.lines[own - 1], _worded(lesson, key))
                return [_edit("replace", own, text, reason, numbers)]
            if chance(*key, "insist", lesson) >= _INSISTS:
                return []
            text = f"Always give {lesson.other} to parcels {BY_NAME[lesson.attribute].spoken}."
            return [_edit("add", len(task.lines), text, f"{reason} It has to be said more clearly.", numbers)]
        if own is None:
            return []
        if lesson.kind == "remove":
            text = _without(lesson.attribute, task.lines[own - 1], "")
            reason = f"{count} that the line about {lesson.attribute} does harm."
            return [_edit("replace" if text else "remove", own, text, reason, numbers)]
        later = _line_about(lesson.other, task.lines)
        if later is None or later >= own:
            return []
        reason = f"{count} that {lesson.attribute} must come before {lesson.other}."
        return [
            _edit("remove", own, "", reason, numbers),
            _edit("add", later - 1, task.lines[own - 1], reason, numbers),
        ]

    def _taken_over(self, task: Task, other: tuple[str, ...], about: set[str]) -> list[dict[str, Any]]:
        """Lines of another text that say what this one does not."""
        stated = read_instructions("\n".join(task.lines))
        edits = []
        for line in other:
            rules = read_instructions(line).rules
            new = [name for name, _ in rules if name not in stated.codes and name not in about]
            if new or (read_instructions(line).bare and not stated.bare):
                about.update(new)
                edits.append(_edit("add", len(task.lines), line, "The other version has learned this.", []))
        return edits

    def _bland(self, task: Task, key: tuple[object, ...], reason: str) -> list[dict[str, Any]]:
        said = {line for text in (*task.tried, "\n".join(task.lines)) for line in text.split("\n")}
        left = [line for line in BLAND if line not in said]
        return [_edit("add", len(task.lines), pick(left, *key, "bland"), reason, [])] if left else []

    def _spoilt(self, edits: list[dict[str, Any]], task: Task, key: tuple[object, ...]) -> list[dict[str, Any]]:
        """The edits with something silly in them."""
        place = int(chance(*key, "place") * len(edits)) if edits else 0
        rules = rules_in(edits[place]["text"]) if edits else ()
        kinds = ["bland", "again"] + (["wrong code", "too much"] * 2 if rules else [])
        kind = pick(kinds, *key, "silly")
        if kind == "bland":
            return self._bland(task, key, "General advice.") + edits
        if kind == "again":
            again = [line for line in task.lines if line.strip()]
            if not again:
                return edits
            text = pick(again, *key, "again")
            return [_edit("add", len(task.lines), text, "It bears repeating.", []), *edits]
        old = rules[0]
        if kind == "wrong code":
            wrong = pick([code for code in CODES if code != old.code], *key, "wrong code")
            text = edits[place]["text"].replace(old.code, wrong)
        else:
            names = [attribute.name for attribute in ATTRIBUTES if attribute.name != old.attribute]
            shown = [name for item in task.items for name in attributes_in(item.text) if name != old.attribute]
            text = f"Parcels with {old.attribute} or {pick(shown or names, *key, 'more')} get code {old.code}."
        return [{**edit, "text": text} if number == place else edit for number, edit in enumerate(edits)]


def _edit(op: str, line: int, text: str, reason: str, numbers: list[int]) -> dict[str, Any]:
    return {"op": op, "line": line, "text": text, "reason": reason, "feedback": list(numbers)}


def worded(wording: str, name: str, code: str) -> str:
    """A rule in one of the `WORDINGS`."""
    spoken = BY_NAME[name].spoken
    return wording.format(name=name, spoken=spoken, spoken_one=spoken.replace("that are", "that is"), code=code)


def _worded(lesson: Lesson, key: tuple[object, ...]) -> str:
    return worded(pick(WORDINGS, *key, "wording", lesson), lesson.attribute, lesson.other)


def _line_about(attribute: str, lines: tuple[str, ...]) -> int | None:
    """The number of the line whose rule about the attribute is in force: the last one."""
    found = [
        number
        for number, line in enumerate(lines, 1)
        if any(rule.attribute == attribute for clause in clauses(line) for rule in rules_in(clause))
    ]
    return found[-1] if found else None


def _repeated(lines: tuple[str, ...]) -> list[int]:
    """The numbers of lines that add nothing to those before them: bland ones, and what was said already."""
    said: set[object] = set()
    found = []
    for number, line in enumerate(lines, 1):
        rules = {rule for clause in clauses(line) for rule in rules_in(clause)}
        things: set[object] = {*rules} if rules else {line.strip()}
        if things <= said or line.strip() in BLAND:
            found.append(number)
        said |= things
    return found


def _without(attribute: str, line: str, instead: str) -> str:
    """A line with its rules about an attribute taken out, and something else said instead."""
    rules = [rule for clause in clauses(line) for rule in rules_in(clause) if rule.attribute != attribute]
    kept = [f"{rule.attribute} -> {rule.code}" for rule in rules]
    return "; ".join([*kept, instead] if instead else kept)


def _applied(lines: tuple[str, ...], edits: list[dict[str, Any]], dropped: int) -> list[str]:
    """The lines with edits made, and one of the old ones gone."""
    gone = {edit["line"] for edit in edits if edit["op"] == "remove"} | {dropped}
    new = {edit["line"]: edit["text"] for edit in edits if edit["op"] == "replace"}
    result: list[str] = []
    for number in range(len(lines) + 1):
        if number and number not in gone:
            result.append(new.get(number, lines[number - 1]))
        result += [edit["text"] for edit in edits if edit["op"] == "add" and edit["line"] == number]
    return result
