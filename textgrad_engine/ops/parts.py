"""Feedback on a whole, as it is told one of its parts: the words are in ``prompts/part_of_whole.md``.

A critic is shown the part, and not what was made of it: "the first is right, the second is wrong" would be read as said
of the part itself. The feedback stays what was said; its `source.places` say of what, and those who show it to a model
put that in words.
"""

from __future__ import annotations

import functools
import re
from dataclasses import replace

from textgrad_engine import fences, templates
from textgrad_engine.autograd import Source, Variable
from textgrad_engine.autograd.gradient import Items, entered, is_start

MOST_PLACES = 16
"""Levels of a place that are kept, the outer ones: a text that grew by thousands of additions has as many."""


def said_to_part(items: Items, place: str) -> Items:
    """Items of feedback on a whole, for one of its parts; what begins a pass stays as it is.

    Args:
        items: the items.
        place: where in the whole the part stands.
    """
    found = []
    for item in items:
        if not is_start(item):
            source = item.source or Source()
            item = entered(item)
            places = source.places if len(source.places) >= MOST_PLACES else (*source.places, place)
            item.source = replace(source, places=places)
        found.append(item)
    return found


def place_in_words(feedback: Variable) -> str:
    """What stands before feedback that was said of a longer text, "" before any other."""
    source = feedback.source
    if source is None or not source.places:
        return ""
    # Of a part of a part only that is said: its place would have to be told level by level.
    return told_of_place("part_of_whole", source.places[0] if len(source.places) == 1 else "")


def told_of_place(prompt: str, place: str) -> str:
    """What stands before something that was said, by the prompt of this name.

    Example:
        >>> told_of_place("on_part", "the score")
        'On the score: '
    """
    return _words(templates.load(prompt), place)


@functools.lru_cache(maxsize=256)
def _words(prompt: templates.Prompt, place: str) -> str:
    return f"{prompt.render(place=place)} "


def said_of_in_words(feedback: Variable) -> str:
    """What stands before a piece of feedback: for how much of the score it counts, and of what it was said."""
    source = feedback.source
    shares = () if source is None or source.case else source.shares  # a case says it of each thing that was said
    return (_share_words(templates.load("share_of_score"), shares) if shares else "") + place_in_words(feedback)


@functools.lru_cache(maxsize=256)
def _share_words(prompt: templates.Prompt, shares: tuple[tuple[str, float], ...]) -> str:
    told = [{"name": name, "share": f"{100 * share:.3g}%"} for name, share in shares]
    return f"{prompt.render(shares=told)}\n"


QUOTED = "got"
"""The label of the fence that evaluators put around what they looked at."""


def got_in_line(text: str) -> str:
    """What ends an evaluator's sentence about a short text that it looked at.

    Example:
        >>> got_in_line("Oslo")
        ', got `Oslo`'
    """
    return _form_of_got(templates.load(QUOTED)).fill([text])


@functools.lru_cache(maxsize=4)
def _form_of_got(prompt: templates.Prompt) -> templates.Form:
    return prompt.form(text=templates.Blank(0))


@functools.lru_cache(maxsize=4)
def _sentence(exact_match: templates.Prompt, got: templates.Prompt) -> re.Pattern[str]:
    """The sentence that `got_in_line` ends, in two groups: what comes before that, and the text in it."""
    end = got.render(text="\0")
    said = exact_match.render(prediction="", target="\1", got=end, unseen="")
    if "\0" not in end or end not in said:  # prompts of one's own
        return re.compile("(?!)")
    before = re.escape(said[: said.index(end)]).replace("\1", "[^`\n]*")
    return re.compile(f"({before})" + re.escape(end).replace("\0", "([^`\n]*)"))


def without_repeat(feedback: str, shown: str, what: str, label: str = QUOTED) -> str:
    """Feedback that does not quote once more what is shown beside it, which may be long.

    An evaluator quotes what it looked at, as that may be something else than the answer of a model: what a program
    made of it.

    Args:
        feedback: what an evaluator said, or something made of it.
        shown: the text that is shown above it.
        what: what that is called there.
        label: of the tags around it in the feedback.
    """
    if label == QUOTED and "`" in feedback:
        sentence = _sentence(templates.load("exact_match"), templates.load(QUOTED))
        feedback = sentence.sub(lambda said: said[1] if said[2] == shown else said[0], feedback)
    tags = fences.fence(shown, label)
    return feedback.replace(tags, templates.load("as_above").render(what=what)) if tags in feedback else feedback


def without_repeated_part(case: str, shown: str, what: str) -> str:
    """The case of a later call, in which a message does not show once more what is shown beside the case.

    Between the tags of the part (`fences.mark`) stands where it is. A short one stays, as it takes no more room.

    Args:
        case: the case.
        shown: the text that is shown above it, which the later call was given.
        what: what that is called there.
    """
    if fences.is_quotable(shown) or (part := f">{shown}</") not in case:
        return case
    above = templates.load("as_above").render(what=what)
    first, *others = case.split(part)
    found = [first]
    for before, behind in zip([first, *others], others):
        tag = _OPENED.search(before)
        found += [f">{above}</" if tag and behind.startswith(f"{tag[1]}>") else part, behind]
    return "".join(found)


_OPENED = re.compile(r"<([^\s<>/]+-[0-9a-f]{8})\Z")
