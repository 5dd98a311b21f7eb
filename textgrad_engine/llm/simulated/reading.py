"""Reading what the library's own prompts show: fenced blocks, cases, numbered lines, feedback items."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace

_FENCE = re.compile(r"<([a-z]\w*)-([0-9a-f]{8})>\n(.*?)\n</\1-\2>", re.DOTALL)
_INPUT = re.compile(r"^- `([^`]+)`: (.*)$", re.MULTILINE)
_SHOWN = re.compile(r", (?:which reads:|shown below between tags .*)$")
_CASE = re.compile(r"^## Case \d+\s*$", re.MULTILINE)
_MESSAGE = re.compile(r"^(\w+) message(?: \(contains ([^)\n]*)\))?:\s*\Z", re.MULTILINE)
_HERE = re.compile(r"^(\w+) message: this text\.$", re.MULTILINE)
_OF_CASE = re.compile(r"^(\w+) message(?: \(.*\))?:\s*\Z", re.MULTILINE)
_TAGGED = re.compile(r"between tags <([^>]*)-\.\.\.>")
_IN_LINE = re.compile(
    r"^(.*?\b(?:(answer was|model's answer)|(feedback(?: on the answer)?)|(the check says)|(expected)|(got)):) "
    r'"([^"\n]*)"$',
    re.MULTILINE | re.IGNORECASE,
)
_IN_LINE_LABELS = ("answer", "feedback", "explanation", "expected", "got")
_TOGETHER = re.compile(r" \(with all \d+ edits of its patch\)$")
_EXACTLY = re.compile(r"Expected exactly `([^`]*)`")
_ITEM = re.compile(r"^\[(\d+)\](?: \((\d+) times\))?", re.MULTILINE)
_EXPECTED = re.compile(
    r"(?:expected(?: exactly)?|should (?:be|have been)|reference (?:answer )?(?:is|says)|correct (?:answer|queue) is)"
    r"[\s:\"'`*]+([\w][\w-]*)",
    re.IGNORECASE,
)


@dataclass
class Case:
    """One case of a feedback request: (role, keys, text) of each message, the answer, and the feedback on it."""

    messages: list[tuple[str, tuple[str, ...], str]] = field(default_factory=list)
    answer: str = ""
    feedback: list[str] = field(default_factory=list)

    def text_of(self, *roles: str) -> str:
        """The messages of these roles, joined by newlines."""
        return "\n".join(text for role, _, text in self.messages if role in roles)

    @property
    def last_user(self) -> str:
        """The last message of the user, "" when there is none."""
        return next((text for role, _, text in reversed(self.messages) if role == "user"), "")


@dataclass(frozen=True)
class Item:
    """One feedback item of an optimizer request: its number, how often it was given, its text."""

    number: int
    times: int
    text: str


@dataclass(frozen=True)
class Task:
    """An optimizer request.

    Attributes:
        lines: the text to improve, line by line.
        items: the feedback on it.
        history: what was tried before, one sentence each, without how many edits were tried together.
        max_edits: how many edits may be given.
        problem: why the last proposal could not be used, "" for a first one.
        other: where two versions are to be merged, the lines of the other that this one lacks; else None.
        tried: other versions of the text that were tried before.
    """

    lines: tuple[str, ...]
    items: tuple[Item, ...]
    history: tuple[str, ...]
    max_edits: int
    problem: str
    other: tuple[str, ...] | None = None
    tried: tuple[str, ...] = ()


def blocks(text: str) -> list[tuple[str, str, str]]:
    r"""What a prompt shows between tags, or quotes in a line: the plain text before each, its label and its content.

    Tags inside a block are its content. A last entry without label holds what follows the last block.

    Example:
        >>> blocks("Got:\n<got-0a1b2c3d>\nhi\n</got-0a1b2c3d>\nend")
        [('Got:\n', 'got', 'hi'), ('\nend', '', '')]
        >>> blocks('The answer was: "hi"')
        [('The answer was:', 'answer', 'hi'), ('', '', '')]
    """
    found, last = [], 0
    for match in _FENCE.finditer(text):
        found += _with_quoted(text[last : match.start()], match[1], match[3])
        last = match.end()
    return [*found, *_with_quoted(text[last:], "", "")]


def _with_quoted(before: str, label: str, content: str) -> list[tuple[str, str, str]]:
    found, last = [], 0
    for match in _IN_LINE.finditer(before):
        words = match.groups()[1:-1]
        kind = next(label for label, word in zip(_IN_LINE_LABELS, words) if word)
        found.append((before[last : match.end(1)], kind, match.groups()[-1]))
        last = match.end()
    return [*found, (before[last:], label, content)]


def expected_in(feedback: str) -> str | None:
    """The answer that feedback says was wanted, or None when it does not say."""
    for _, label, content in blocks(feedback):
        if label in ("expected", "reference", "target"):
            return content.strip()
    match = _EXACTLY.search(feedback) or _EXPECTED.search(feedback)
    return match[1] if match else None


def read_feedback_request(user: str) -> tuple[dict[str, str], list[Case]]:
    """The inputs that want feedback (key and role), and the cases shown."""
    parts = blocks(user)
    inputs: dict[str, str] = {}
    shared: list[tuple[str, tuple[str, ...], str]] = []
    cases: list[Case] = []
    for before, label, content in parts:
        if not cases:
            inputs |= {key: _SHOWN.sub("", role) for key, role in _INPUT.findall(before)}
        if _CASE.search(before):
            cases.append(Case(messages=list(shared)))
        if label == "message":
            head = _MESSAGE.search(before)
            role, keys = (head[1], head[2] or "") if head else ("user", "")
            message = (role, tuple(re.findall(r"`([^`]+)`", keys)), _without_marks(content, inputs))
            (cases[-1].messages if cases else shared).append(message)
        elif label == "answer" and cases:
            cases[-1].answer = content
        elif label in ("feedback", "case") and cases:
            cases[-1].feedback.append(content)
    return inputs, cases


def _without_marks(content: str, keys: Iterable[str]) -> str:
    """A message as the model saw it: without the tags around inputs in it."""
    for key in keys:
        content = re.sub(rf"<({re.escape(key)}-[0-9a-f]{{8}})>(.*?)</\1>", r"\2", content, flags=re.DOTALL)
    return content


def with_cases_read(task: Task, say: Callable[[Case], str]) -> Task:
    """An optimizer request in which each item that shows a case is what a critic says of the case.

    Args:
        task: the request.
        say: the critic.
    """
    return replace(task, items=items_read(task.items, say, "\n".join(task.lines)))


def items_read(items: Iterable[Item], say: Callable[[Case], str], text: str = "") -> tuple[Item, ...]:
    """Pieces of feedback, in which each that shows a case is what a critic says of the case.

    Args:
        items: the pieces.
        say: the critic.
        text: what they are about, as far as it is shown.
    """
    found = [(item, _case_in(item.text, text)) for item in items]
    return tuple([item if case is None else replace(item, text=say(case)) for item, case in found])


def _case_in(said: str, text: str) -> Case | None:
    """The case that a piece of feedback on a text is, None where it is none."""
    case = Case()
    for before, label, content in blocks(said):
        case.messages += [(role, (), text) for role in _HERE.findall(before)]
        if label == "message" and (head := _OF_CASE.search(before)):
            case.messages.append((head[1], (), _without_marks(content, _TAGGED.findall(before))))
        elif label == "answer":
            case.answer = content
        elif label in ("feedback", "case"):
            case.feedback.append(content)
    return case if case.messages and case.feedback else None


def read_reduce_request(user: str) -> tuple[tuple[Item, ...], int]:
    """The pieces of feedback that are to be merged, and how many may be left."""
    parts = blocks(user)
    limit = re.search(r"at most (\d+) pieces?", parts[-1][0])
    return tuple(_items_in(parts)), int(limit[1]) if limit else 1


def _items_in(parts: Iterable[tuple[str, str, str]]) -> list[Item]:
    items: list[Item] = []
    pending: tuple[int, int] | None = None
    for before, label, content in parts:
        if heads := _ITEM.findall(before):
            pending = (int(heads[-1][0]), int(heads[-1][1] or 1))
        if label in ("feedback", "case") and pending:
            items.append(Item(*pending, content))
    return items


def read_optimizer_request(user: str, numbered: bool) -> Task:
    """What an optimizer is asked, from either of its prompts.

    Args:
        user: the user message.
        numbered: whether the lines of the text carry their numbers (the patch prompt).
    """
    parts = blocks(user)
    text = next((content for _, label, content in parts if label == "text"), "")
    other = next((content for _, label, content in parts if label == "other"), None)
    items = _items_in(parts)
    plain = "".join(before for before, _, _ in parts)
    history = next((said for before, label, said in parts if label == "tried" and "tried before" in before), "")
    problem = re.search(r"Your last proposal could not be used: (.*)", plain)
    limit = re.search(r"at most (\d+) edits?", parts[-1][0])
    lines = text.split("\n") if text else []
    return Task(
        lines=tuple(re.sub(r"^\s*\d+\|~? ?", "", line) for line in lines) if numbered else tuple(lines),
        items=tuple(items),
        history=tuple(_TOGETHER.sub("", line.removeprefix("- ")) for line in history.splitlines()),
        max_edits=int(limit[1]) if limit else 4,
        problem=problem[1].strip() if problem else "",
        other=None if other is None else tuple(line[3:] for line in other.split("\n") if line.startswith("+| ")),
        tried=tuple(content for _, label, content in parts if label == "version"),
    )
