"""`FeedbackItem`: one thing that was said about a parameter, as an optimizer sees it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace

from textgrad_engine.autograd import Source, Variable
from textgrad_engine.fences import unfenced
from textgrad_engine.ops.graphemes import whole_to
from textgrad_engine.ops.parts import said_of_in_words
from textgrad_engine.ops.shortening import without_middle
from textgrad_engine.optim.cells import Evidence

ANSWER_LENGTH = 400
"""Characters of an answer that are shown beside the feedback on it."""

MOST_OF_EVIDENCE = 2_000
"""Characters that a line's origin keeps of what was said of an answer, or of the text itself: each line of a step has
it for each example, so logs of 50 kB would make megabytes of a step. What a critic says stays whole.
"""


@dataclass(frozen=True)
class FeedbackItem:
    """One thing that was said about a parameter.

    Attributes:
        text: what was said.
        times: how often it was said.
        answer: the answer that it was said about, when it was said once; shortened to `ANSWER_LENGTH` characters.
        examples: the examples where it was said, each once.
        scores: the scores of the answers that it was said about, in the order of the saying, as far as they are known;
            the highest is the best.
        direct: whether evaluators said it of this very text, so that the text itself is what is to be right, not what a
            model makes of it.
        about: what the text begins with, before what was said: the metric and the place that it was said of.
        case: whether it shows a call as it was, with its answer, as no critic was asked what the text lacks.
        said: of a case what was said of the answer, for people: reports name it as what asked for a line.
    """

    text: str
    times: int
    answer: str
    examples: tuple[str, ...]
    scores: tuple[float, ...] = ()
    direct: bool = False
    about: str = field(default="", repr=False)
    case: bool = field(default=False, repr=False)
    said: str = field(default="", repr=False)

    @property
    def evidence(self) -> Evidence:
        """What a line's origin keeps of it; of long logs not the middle."""
        said = self.said or self.text
        return Evidence(without_middle(said, MOST_OF_EVIDENCE) if self.said or self.direct else said, self.examples)


def item_of(feedback: Variable) -> FeedbackItem:
    """The item of one piece of feedback."""
    said, source = str(feedback.data).strip(), feedback.source
    if source is None:
        return FeedbackItem(said, 1, "", ())
    about = said_of_in_words(feedback) if said else ""
    answer = "" if source.case else source.output
    if len(answer) > ANSWER_LENGTH:
        end = whole_to(answer, ANSWER_LENGTH)
        answer = f"{answer[:end]} […{len(answer) - end:,} more characters]"
    examples = (source.example,) if source.example else ()
    on_answer = unfenced("\n".join(_said_of_answer(source))) if source.case else ""
    scores = () if source.score is None else (source.score,)
    return FeedbackItem(about + said, 1, answer, examples, scores, source.direct, about, source.case, on_answer)


def _said_of_answer(source: Source) -> Iterator[str]:
    """What was said of the answer of a case; where that is the case of a later call, what was said of its answer."""
    waiting = list(reversed(source.because))
    seen: set[int] = set()
    while waiting:
        item = waiting.pop()
        if id(item) in seen:  # it was said on several ways
            continue
        seen.add(id(item))
        if item.source is not None and item.source.case:
            waiting += reversed(item.source.because)
        else:
            yield str(item.data).strip()


def joined(items: Iterable[FeedbackItem], text: str | None = None) -> FeedbackItem:
    """One item that stands for several: they were said so often, at these examples; an answer is left of one alone.

    Args:
        items: the items, in order; at least one.
        text: what the item says; None takes the first one's words.
    """
    first, *others = items
    said = first.text if text is None else text
    about = first.about if said.startswith(first.about) else ""
    if said != first.text:  # words for cases are no case
        first = replace(first, case=False, said="")
    if not others:
        return replace(first, text=said, about=about)
    members = (first, *others)
    return FeedbackItem(
        text=said,
        times=sum(item.times for item in members),
        answer="",
        examples=tuple(dict.fromkeys(example for item in members for example in item.examples)),
        scores=tuple(score for item in members for score in item.scores),
        direct=all(item.direct for item in members),
        about=about,
        case=first.case,
        said=first.said,
    )
