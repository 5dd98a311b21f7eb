"""Cases for which there is no room: long passages without their middle, then conversations, each gap said.

A case (``prompts/case.md``) is read by the tags of its fences, outermost first, so that nothing in a message, an answer
or what was said of it is taken for its structure.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Callable, Container, Sequence
from dataclasses import dataclass
from functools import lru_cache

from textgrad_engine import templates
from textgrad_engine.fences import fence
from textgrad_engine.llm.tokens import count
from textgrad_engine.ops.graphemes import LONGEST, whole_to

CASES_AT_LEAST = 4
"""Cases that a budget has room for, however long they are: what to write shows in what several share."""

LEAST = 200
"""Characters of a passage that are shown at least: its first and its last words."""

_FEWEST = 2
"""Messages of a call that are shown at least: the first and the last."""

_DEEPEST = 40
"""Cases in cases that are looked into: somebody may write what looks like thousands."""

_MOST_CALLS = 100
"""Calls that are looked into for what was said in the end."""

_NOT_WORTH_IT = 60
"""Characters that are not left out by themselves, as saying so takes about as many."""

_WORD = 40
"""Characters within which a passage is cut where a word ends; there are texts without any, such as Chinese ones."""

_MOST_MARKS = 4
"""Pairs of tags in a message that are kept where it is cut: a hostile one may have thousands."""

_CALL = "case"
"""The label of a later call in a case."""

# What is around a part is called as a slot is, in which there may be signs that are no letters to `re`.
_OPENED = re.compile(r"<([^\s<>/-]+)-([0-9a-f]{8})>\n")
_TAG = re.compile(r"<(/?)([^\s<>/-]+-[0-9a-f]{8})>")


@dataclass(frozen=True, slots=True)
class _Block:
    """What stands between tags, and the words before them."""

    before: str
    label: str
    text: str


def fitted_case(case: str, most: int) -> str:
    """A case in at most so many tokens, as far as that goes: what is longest is shortened, short passages stay whole.

    Args:
        case: the case.
        most: the tokens, as `llm.tokens.count` estimates them.
    """

    def fits(shown: str) -> bool:
        return count(shown) <= most

    if fits(case):
        return case
    if fits(without_middles(case, LEAST)):
        return largest(lambda n: without_middles(case, n), fits, LEAST, len(case))
    if fits(without_middles(case, LEAST, messages=_FEWEST)):
        many = case.count("<message-")
        return largest(lambda n: without_middles(case, LEAST, messages=n), fits, _FEWEST, many)
    case = _without_calls(case)
    deep = _DEEPEST if fits(without_middles(case, LEAST, messages=_FEWEST)) else 0
    return largest(lambda n: without_middles(case, n, messages=_FEWEST, deep=deep), fits, LEAST, len(case))


def fitted_text(text: str, most: int) -> str:
    """A text in at most so many tokens, as far as that goes: it is shown without its middle.

    Args:
        text: what is no case.
        most: the tokens, as `llm.tokens.count` estimates them.
    """
    if count(text) <= most:
        return text
    return largest(lambda n: without_middle(text, n), lambda shown: count(shown) <= most, LEAST, len(text))


def _without_calls(case: str) -> str:
    """A case with what was said in the end in the place of the cases of later calls, as of a long conversation."""
    blocks, rest = _blocks(case)
    found = []
    for block in blocks:
        text, label = block.text, block.label
        said, calls = _said_in_the_end(text) if label == _CALL else ([], 0)
        if calls:
            left_out, label = templates.load("calls_left_out").render(count=calls), "feedback"
            text = "\n".join([left_out, *[fence(each, "feedback") for each in said]])
        found.append(block.before + fence(text, label))
    return "".join([*found, rest])


def _said_in_the_end(case: str) -> tuple[list[str], int]:
    """What was said, each thing once, behind all cases of calls in a case, and how many these are with it."""
    waiting, said, calls = [(_CALL, case)], dict[str, None](), 0
    while waiting:
        label, text = waiting.pop()
        shown = _shown_in(text) if label == _CALL and calls < _MOST_CALLS else []
        if "answer" in [each[0] for each in shown]:
            calls += 1
            waiting += [each for each in reversed(shown) if each[0] in ("feedback", _CALL)]
        else:
            said[text] = None
    return list(said), calls


def _shown_in(case: str) -> list[tuple[str, str]]:
    """The label and the text of all that a case shows, in order, between tags or quoted in a line."""
    blocks, rest = _blocks(case)
    found: list[tuple[str, str]] = []
    for block in blocks:
        found += [*_quoted_in(block.before), (block.label, block.text)]
    return [*found, *_quoted_in(rest)]


def _quoted_in(words: str) -> list[tuple[str, str]]:
    in_line = _in_line(templates.load("case"))
    return [
        ("answer" if line[1] is not None else "feedback", line[1] or line[2] or "") for line in in_line.finditer(words)
    ]


@lru_cache(maxsize=4)
def _in_line(prompt: templates.Prompt) -> re.Pattern[str]:
    """The lines in which a case quotes its answer, and what was said of that, by its prompt."""
    answer, feedback = "an answer", "what was said"
    slots = {"messages": [], "name": "", "shown": False, "tag": "", "of_tool": False, "left_out": 0}
    lines = prompt.render(**slots, answer=answer, feedback=[feedback], calls=[]).split("\n")
    of_answer, of_feedback = (
        "|".join([re.escape(line[: -len(text) - 2]) for line in lines if line.endswith(f'"{text}"')]) or r"(?!)"
        for text in (answer, feedback)
    )
    return re.compile(rf'^(?:(?:{of_answer})"([^"\n]*)"|(?:{of_feedback})"([^"\n]*)")$', re.MULTILINE)


def largest(make: Callable[[int], str], fits: Callable[[str], bool], low: int, high: int) -> str:
    """What is made with the largest number that fits, of which the lowest is taken to.

    Args:
        make: from a number; what it makes grows with that.
        fits: whether there is room for what was made.
        low: the lowest number, which is taken where nothing fits.
        high: one that is too large.
    """
    found, doubling = make(low), True
    while high - low > 1:
        middle = min(2 * low, high - 1) if doubling else (low + high) // 2  # what is far too large takes long to make
        if fits(made := make(middle)):
            low, found = middle, made
        else:
            high, doubling = middle, False
    return found


def without_middles(
    case: str, most: int, labels: Container[str] | None = None, *, messages: int | None = None, deep: int = _DEEPEST
) -> str:
    """A case in which no passage is much longer than so many characters: their middles are left out.

    Args:
        case: the case.
        most: the characters.
        labels: passages between such tags alone are shortened; None for all.
        messages: so many messages of a call are shown at most, the first ones and the last ones; None for all.
        deep: so many cases in cases are looked into; what was said of the answer there is one passage.
    """
    blocks, rest = _blocks(case)
    found: list[str] = []
    conversation = [n for n, block in enumerate(blocks) if block.label == "message"]
    gone: Sequence[int] = ()
    if messages is not None and len(conversation) > messages:
        gone = conversation[messages // 2 : len(conversation) - (messages - messages // 2)]
    for n, block in enumerate(blocks):
        if gone and gone[0] <= n <= gone[-1]:
            if n == gone[0]:
                found.append(f"\n\n{templates.load('messages_left_out').render(count=len(gone))}")
            continue
        if deep and block.label == _CALL:
            text = without_middles(block.text, most, labels, messages=messages, deep=deep - 1)
        elif deep and block.label == "feedback":
            text = _of_feedback(block.text, most, labels, messages, deep - 1)
        elif labels is None or block.label in labels:
            text = without_middle(block.text, most)
        else:
            text = block.text
        found.append(block.before + fence(text, block.label))
    return "".join([*found, rest])


def _of_feedback(text: str, most: int, labels: Container[str] | None, messages: int | None, deep: int) -> str:
    text = without_middles(text, most, labels, messages=messages, deep=deep)
    if labels is not None:
        return text
    blocks, rest = _blocks(text)
    return "".join(
        [_middle_out(block.before, most) + fence(block.text, block.label) for block in blocks]
        + [_middle_out(rest, most)]
    )


def _blocks(text: str) -> tuple[list[_Block], str]:
    """What stands between the outermost tags of a text, and the words behind the last ones."""
    ends: dict[str, list[int]] = defaultdict(list)
    for tag in _TAG.finditer(text):
        if tag[1] and text[tag.start() - 1 : tag.start()] == "\n":
            ends[tag[2]].append(tag.start() - 1)
    found: list[_Block] = []
    behind = at = 0
    while opened := _OPENED.search(text, at):
        of_tag = ends.get(f"{opened[1]}-{opened[2]}", [])
        place = bisect_left(of_tag, opened.end())
        if place == len(of_tag):
            at = opened.end()
            continue
        end = of_tag[place]
        found.append(_Block(text[behind : opened.start()], opened[1], text[opened.end() : end]))
        behind = at = end + len(f"\n</{opened[1]}-{opened[2]}>")
    return found, text[behind:]


def without_middle(text: str, most: int) -> str:
    """A passage without its middle; tags in it (`fences.mark`) stay, and what they are around is cut by itself.

    Args:
        text: the passage.
        most: so many characters of it are shown, or a few more.

    Example:
        >>> print(without_middle("abcd" * 100, 8))
        abcd
        [… 392 more characters …]
        abcd
    """
    if len(text) <= most + _NOT_WORTH_IT:
        return text
    pieces, behind = [], 0
    for start, end in marked(text):
        pieces += [text[behind:start], text[start:end]]
        behind = end
    pieces.append(text[behind:])
    lengths = [len(piece) for piece in pieces]
    each = most // len(pieces)
    long = sum(length > each for length in lengths)
    each += sum(max(0, each - length) for length in lengths) // max(1, long)
    found = [_middle_out(piece, each) for piece in pieces]
    for n in range(1, len(pieces), 2):
        opened, closed = pieces[n].index(">") + 1, pieces[n].rindex("<")
        found[n] = pieces[n][:opened] + _middle_out(pieces[n][opened:closed], each) + pieces[n][closed:]
    return "".join(found)


def marked(text: str) -> list[tuple[int, int]]:
    """Where pairs of tags (`fences.mark`) stand in a message, from the beginning of the first to the end of the second.

    Args:
        text: the message.
    """
    tags = list(_TAG.finditer(text))
    ends: dict[str, list[int]] = defaultdict(list)
    for tag in tags:
        if tag[1]:
            ends[tag[2]].append(tag.end())
    found: list[tuple[int, int]] = []
    behind = 0
    for tag in tags:
        if len(found) == _MOST_MARKS:
            break
        if tag[1] or tag.start() < behind:
            continue
        of_tag = ends.get(tag[2], [])
        if (place := bisect_left(of_tag, tag.end())) < len(of_tag):
            behind = of_tag[place]
            found.append((tag.start(), behind))
    return found


def _middle_out(text: str, most: int) -> str:
    if len(text) - most <= _NOT_WORTH_IT:
        return text
    half = most // 2
    begin, end = _between_words(text, whole_to(text, half), whole_to(text, len(text) - half))
    left_out = end - begin
    for gap in _gap().finditer(text):
        # Its middle was left out before, where no letter was cut.
        if begin <= gap.start() and gap.end() <= end and abs(gap.start() + gap.end() - len(text)) < LONGEST + _WORD:
            left_out += int(gap[1].replace(",", "")) - len(gap[0])
    said = templates.load("characters_left_out").render(count=f"{left_out:,}")
    return f"{text[:begin]}\n{said}\n{text[end:]}"


def _between_words(text: str, begin: int, end: int) -> tuple[int, int]:
    """Where the middle is left out: at the ends of words, where such are within `_WORD` characters.

    Half of a number is another number, and nobody would say who had it cut.
    """
    for place in range(begin, max(0, begin - _WORD), -1):
        if text[place].isspace() or text[place - 1].isspace():
            begin = place
            break
    for place in range(end, min(len(text), end + _WORD)):
        if text[place].isspace() or text[place - 1].isspace():
            end = place
            break
    return begin, end


def _gap() -> re.Pattern[str]:
    said = templates.load("characters_left_out").render(count="0")
    return re.compile(rf"\n{re.escape(said).replace('0', '([0-9]{1,3}(?:,[0-9]{3})*)')}\n")
