"""One call of a model as a critic sees it: what is asked about it, and what is shown of it."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal, TypeAlias

from textgrad_engine import fences, pytree
from textgrad_engine.autograd import Source, Variable
from textgrad_engine.llm.request import GenerateConfig
from textgrad_engine.ops.example_notes import NOTES, note_on
from textgrad_engine.ops.fitting import View
from textgrad_engine.ops.images import Show, not_shown
from textgrad_engine.ops.messages import Hole, Plan, Rendered, text_of
from textgrad_engine.ops.offered import as_lines
from textgrad_engine.ops.parts import QUOTED, said_of_in_words, without_repeat
from textgrad_engine.slots import slots_of

Shown: TypeAlias = Literal["message", "tags", "beside", "tool"]
Offered: TypeAlias = tuple[str | None, str | None]


@dataclass(frozen=True, slots=True)
class Part:
    """An input that wants feedback.

    Attributes:
        key: its key in the critic's answer.
        position: its position among the values of the call.
        role: what it is for.
        shown: where its text is: it is a whole message; or it stands between tags in the messages; or, as a template
            with slots does, it is shown beside the message that was made of it; or it describes a tool.
    """

    key: str
    position: int
    role: str
    shown: Shown


@dataclass(frozen=True, slots=True, eq=False)
class Questions:
    """What is asked about a call; made once for all calls of a plan of which the same is asked.

    Attributes:
        parts: the inputs that want feedback.
        wanted: the key and the role of each.
        inputs: the key and the role of each, and where its text is.
        beside: the positions of those whose text is beside the messages.
        marks: the position and the key of each value that stands between tags in the messages.
        heads: for each message who said it, and the keys of the parts in it, in words.
        described: the key of each value that describes a tool, by its position.
        made: what was made for calls of which this is asked, for the next one.
    """

    parts: tuple[Part, ...]
    wanted: tuple[tuple[str, str], ...]
    inputs: tuple[tuple[str, str, Shown], ...]
    beside: tuple[int, ...]
    marks: tuple[tuple[int, str], ...]
    heads: tuple[tuple[str, str], ...]
    described: Mapping[int, str] = field(default_factory=dict)
    made: dict[Any, Any] = field(default_factory=dict, repr=False)


@dataclass(slots=True)  # not frozen, for which each attribute would be set by a call
class Case:
    """One call of a model as the critic sees it.

    Attributes:
        plan: its messages, with holes.
        values: what is in the holes.
        questions: what is asked about it.
        answer: what the model answered.
        feedback: the items of feedback on the answer.
        example: the example that it belongs to, "" when that is not known.
        note: what people noted of that, in words; "" for nothing.
        offered: the tools that the model could call, and the schema that its answer must fit, as JSON; None for none.
        told_apart: as in `case_of`; in a backward pass, where feedback on a value flows.
    """

    plan: Plan
    values: list[Any]
    questions: Questions
    answer: Variable | str
    feedback: list[Variable]
    example: str = ""
    offered: Offered = (None, None)
    told_apart: Callable[[int], Any] = lambda _: None
    note: str = ""

    def offers(self, values: Sequence[Any]) -> Offered:
        """What `offered` is where descriptions of tools are among these values."""
        assert self.plan.offered is not None
        return self.plan.offered.shown(values, self.questions.described), self.offered[1]


def case_of(
    plan: Plan,
    values: list[Any],
    needs: Sequence[bool],
    answer: Variable | str,
    feedback: list[Variable],
    told_apart: Callable[[int], Any],
    example: str = "",
    config: GenerateConfig | None = None,
) -> Case:
    """One call as the critic sees it: one variable in several places is asked about once.

    Args:
        plan: its messages, with holes.
        values: what is in the holes.
        needs: for each value whether it is asked about.
        answer: what the model answered.
        feedback: the items of feedback on the answer.
        told_apart: what differs between places of one variable that are asked about each by itself, as two arguments
            of a transform may be given one; gets the number of a value, counted from the end (-1 is the last).
        example: the example that it belongs to.
        config: its settings, of which tools and response format are shown.
    """
    first: dict[Any, int] = {}
    asked = []
    for position, (variable, needed) in enumerate(zip(values, needs)):
        if needed:
            same = id(variable if variable._origin is None else variable._origin)
            role = variable.role if variable._role is None else variable._role
            at = first.setdefault(same, position)
            if at != position and (apart := told_apart(position - len(values))) != told_apart(at - len(values)):
                at = first.setdefault((same, apart), position)
            asked.append((position, at, role))
    slots: list[tuple[str, ...]] = []
    if plan.inputs:
        for at in plan.holes:
            text = values[at]
            if type(text) is not str:
                text = str(text.data if isinstance(text, Variable) else text)
            slots.append(slots_of(text) if "{" in text else ())
    key = (tuple(asked), tuple(slots))
    questions = plan.questions.get(key)
    if questions is None:
        if len(plan.questions) >= _REMEMBERED:
            plan.questions.clear()
        questions = plan.questions[key] = _questions(plan, *key)
    note = "" if NOTES.get() is None else note_on(example)
    if config is None or (config.tools is None and config.response_format is None):
        return Case(plan, values, questions, answer, feedback, example, told_apart=told_apart, note=note)
    return Case(plan, values, questions, answer, feedback, example, _offered(config, plan), told_apart, note)


def _offered(config: GenerateConfig, plan: Plan) -> Offered:
    tools, form = None if plan.offered is not None else config.tools, config.response_format
    return (
        as_lines(tools) if tools else None,
        None if form is None else json.dumps(form.json_schema, ensure_ascii=False),
    )


_TAGS = frozenset(
    [
        "answer",
        "case",
        "criteria",
        "criterion",
        "edit",
        "expected",
        "explanation",
        "feedback",
        "got",
        "input",
        "message",
        "note",
        "reason",
        "reference",
        "schema",
        "tools",
    ]
)
"""What tags are called in requests that show calls, and in feedback by the library: an input is called otherwise."""

_REMEMBERED = 64
"""How many different questions are remembered for a plan: roles may differ from example to example."""


class _Keys:
    """What each value that wants feedback is called in a request; all places of a variable have one key.

    Args:
        asked: for each such value its position, the first position of the same variable, its role.

    Attributes:
        known: by position, the first position of the same variable, and the role.
        parts: the inputs that are asked about, by first position, in the order in which they were come to.
        marks: the values that stand between tags, and the keys of these.
    """

    def __init__(self, asked: tuple[tuple[int, int, str], ...]) -> None:
        self.known = {position: (same, role) for position, same, role in asked}
        self.parts: dict[int, Part] = {}
        self.marks: list[tuple[int, str]] = []

    def of(self, wish: str, position: int, shown: Shown) -> str:
        """The key of a value, the wished one where nothing else has it; where it is shown is noted the first time."""
        same, role = self.known[position]
        if same not in self.parts:
            key, n, taken = wish, 1, [part.key for part in self.parts.values()]
            while key in taken:
                n += 1
                key = f"{wish}_{n}"
            self.parts[same] = Part(key, position, role, shown)
        return self.parts[same].key

    def of_tagged(self, wish: str, position: int) -> str:
        """The key of a value that is a part of a message; there are tags around it, unless it is a whole one, too."""
        key = self.of(f"{wish}_input" if wish in _TAGS else wish, position, "tags")
        if self.shown(position) == "tags":
            self.marks.append((position, key))
        return key

    def shown(self, position: int) -> Shown:
        """Where a value is shown that has a key."""
        return self.parts[self.known[position][0]].shown


def _questions(plan: Plan, asked: tuple[tuple[int, int, str], ...], slots: tuple[tuple[str, ...], ...]) -> Questions:
    """What is asked about a call.

    Args:
        plan: its messages.
        asked: for each value that wants feedback its position, the first position of the same variable, its role.
        slots: for each hole of the plan the slots in its text; empty where the plan has no inputs.
    """
    keys = _Keys(asked)
    with_slot = {name for slots_of_text in slots for name in slots_of_text}
    by_input = {}
    for name, index in plan.inputs:
        if index in keys.known:
            by_input[name] = keys.of_tagged(name, index) if name in with_slot else keys.of(name, index, "beside")
    names = {name for name, _ in plan.inputs}
    filled = {hole: [name for name in own if name in names] for hole, own in zip(plan.holes, slots)}
    heads: list[tuple[str, str]] = []
    for role, pieces in plan.messages:
        inside: list[str] = []
        for piece in pieces:
            inside += _keys_in(piece, role, keys, filled, by_input, alone=len(pieces) == 1)
        heads.append((role, ", ".join([f"`{key}`" for key in dict.fromkeys(inside)])))
    described = {}
    for each in () if plan.offered is None else plan.offered.descriptions:
        if each.at in keys.known:
            key = keys.of(f"{each.key}_input" if each.key in _TAGS else each.key, each.at, "tool")
            if keys.shown(each.at) == "tool":
                described[each.at] = key
    found = tuple(keys.parts.values())
    return Questions(
        parts=found,
        wanted=tuple([(part.key, part.role) for part in found]),
        inputs=tuple([(part.key, part.role, part.shown) for part in found]),
        beside=tuple([part.position for part in found if part.shown == "beside"]),
        marks=tuple(keys.marks),
        heads=tuple(heads),
        described=described,
    )


def _keys_in(
    piece: Any, role: str, keys: _Keys, filled: Mapping[int, list[str]], by_input: Mapping[str, str], *, alone: bool
) -> list[str]:
    """The keys of what is asked about in a piece of a message.

    Args:
        piece: of the plan.
        role: of the message, which is what a text of it is called.
        keys: gives them.
        filled: for each hole the inputs whose slots are in its text.
        by_input: the keys of inputs.
        alone: whether it is all of the message.
    """
    if isinstance(piece, Rendered):
        asked_about = [(name, at) for name, at in piece.values if at in keys.known]
        return [keys.of(*each, "message") if piece.whole else keys.of_tagged(*each) for each in asked_about]
    inside = []
    text = text_of(piece)
    for hole in [leaf for leaf in pytree.leaves(piece) if isinstance(leaf, Hole)]:
        # A template with slots is shown as it is, besides the message made of it; and so is what is no text.
        own = filled.get(hole.at, [])
        if hole.at in keys.known and (own or hole is not text):
            inside.append(keys.of(role, hole.at, "beside"))
        elif hole.at in keys.known:
            inside.append(keys.of(role, hole.at, "message") if alone else keys.of_tagged(role, hole.at))
        inside += [by_input[name] for name in own if name in by_input]
    return inside


def view_of(
    case: Case, values: list[Any], answer: Any, feedback: list[Any], *, show: Show = not_shown, of: Part | None = None
) -> View:
    """A call as the critic sees it.

    Args:
        case: the call.
        values: what is in it: its values.
        answer: its answer.
        feedback: the feedback on that.
        show: what stands for an image in a message.
        of: tags stand around this input alone; None for all that are asked about.
    """
    said, scores = [], []
    calls: list[str] = []
    told: list[tuple[str, Source]] = []
    for text, item in zip(feedback, case.feedback):
        if text:
            shown = str(text)
            source = item.source
            if source is not None and (source.places or source.shares or source.because):
                if len(feedback) > 1:
                    # One thing that was said comes on several ways where the answer stands in several places of what it
                    # was said of, or where that shows the answer and quotes it, too.
                    once = shown, replace(source, places=())
                    if (source.places or source.because) and once in told:
                        continue
                    told.append(once)
                shown = said_of_in_words(item) + shown
            quotes = f"<{QUOTED}-" in shown or "`" in shown
            said.append(without_repeat(shown, str(answer), "answer") if quotes else shown)
            scores.append(None if source is None else source.score)
            if source is not None and source.case:
                calls.append(said[-1])
    if case.note and said and not any(item.source is not None and item.source.case for item in case.feedback):
        said.append(case.note)  # once: a case that came of the answer shows it, too
        scores.append(None)
    if marks := case.questions.marks:
        beside = [value for value in values if isinstance(value, str)]
        values = values.copy()
        for at, key in marks:
            if of is None or key == of.key:
                values[at] = fences.mark(str(values[at]), key, beside)
    return View(case.questions.heads, case.plan.texts(values, show), str(answer), said, scores, calls)
