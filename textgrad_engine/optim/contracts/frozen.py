"""`FrozenLines`: lines that the optimizer must leave as they are."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from textgrad_engine.checks import check, texts_in_order
from textgrad_engine.optim.contracts.base import say
from textgrad_engine.slots import composed


@dataclass(frozen=True, init=False)
class FrozenLines:
    r"""Some lines of the old text stay word for word and in their order; other lines may be put between them.

    White space at the end of a line (as Windows ends one) and the encoding of a letter do not matter. A new line may
    read like a frozen one; from then on it is frozen, too.

    Args:
        lines: the texts of the lines, without white space around them; or a function that takes a line and says whether
            it is frozen. A text that a parameter does not contain freezes nothing in it; the log says so if none of an
            optimizer's parameters contains it.
        between: two markers. The lines from each line with the first marker to the next with the second (or to the end
            of the text) are frozen as one block, markers included; nothing may be put into it either.

    Raises:
        TypeError: the lines are one text, or the markers no pair of texts.
        ValueError: there are neither lines nor markers, or one is blank.

    Example:
        >>> frozen = FrozenLines(["Never give legal advice."])
        >>> frozen.problem("Sort.\nNever give legal advice.", "Sort well.\nNever give legal advice.") is None
        True
        >>> block = FrozenLines(between=("<policy>", "</policy>"))
        >>> block.problem("<policy>\na\n</policy>", "<policy>\na\nb\n</policy>") is None
        False
    """

    lines: tuple[str, ...] | Callable[[str], bool]
    between: tuple[str, str] | None

    def __init__(
        self, lines: Iterable[str] | Callable[[str], bool] = (), between: tuple[str, str] | None = None
    ) -> None:
        if isinstance(lines, str):
            raise TypeError(f"FrozenLines takes a sequence of lines, got one text; write {lines.splitlines()!r}")
        check(FrozenLines.__init__, locals())
        if not callable(lines):
            lines = tuple(line.strip() for line in texts_in_order(lines))
            if not all(lines) or not (lines or between):
                raise ValueError("FrozenLines needs the lines or two markers, none of them blank")
        if between is not None and not all(marker.strip() for marker in between):
            raise ValueError(f"FrozenLines: between is a pair of markers that are not blank, got {between!r}")
        object.__setattr__(self, "lines", lines)
        object.__setattr__(self, "between", between)

    def describe(self, before: str) -> str:
        """Shows the lines."""
        singles, blocks = self.lines_of(before), self.blocks_of(before)
        if not singles and not blocks:
            return ""
        return say("frozen_lines", lines=singles, blocks=blocks, missing=[], moved=[], blocks_changed=False)

    def problem(self, before: str, after: str) -> str | None:
        """Looks for the lines, each as often as before, and compares the blocks."""
        singles, blocks = self.lines_of(before), self.blocks_of(before)
        wanted, new = list(map(_words, singles)), list(map(_words, after.split("\n")))
        left = Counter(wanted) - Counter(new)
        missing = [line for line in dict.fromkeys(singles) if left[_words(line)]]
        moved = singles if not missing and not _in_order(wanted, new) else []
        changed = list(map(_words, blocks)) != list(map(_words, self.blocks_of(after)))
        if not missing and not moved and not changed:
            return None
        return say("frozen_lines", lines=singles, blocks=blocks, missing=missing, moved=moved, blocks_changed=changed)

    def nowhere_in(self, texts: Sequence[str]) -> list[str]:
        """What is to be frozen, and stands in none of some texts: lines, or a marker that begins a block.

        Example:
            >>> FrozenLines(["Be kind.", "Be breif."]).nowhere_in(["Be kind.", "Be brief."])
            ['Be breif.']
        """
        every = [line for text in texts for line in text.split("\n")]
        there = {_words(line).strip() for line in every}
        lines = [] if callable(self.lines) else [line for line in self.lines if _words(line) not in there]
        markers = () if self.between is None else self.between[:1]
        return lines + [marker for marker in markers if not any(marker in line for line in every)]

    def lines_of(self, text: str) -> list[str]:
        """The lines of a text that are frozen one by one, in order."""
        if callable(self.lines):
            return [line for line in text.split("\n") if self.lines(line)]
        frozen = set(map(_words, self.lines))
        return [line for line in text.split("\n") if _words(line).strip() in frozen]

    def blocks_of(self, text: str) -> list[str]:
        """The blocks between the markers, markers included, in order."""
        if self.between is None:
            return []
        start, end = self.between
        blocks: list[list[str]] = []
        inside = False
        for line in text.split("\n"):
            opens = not inside and start in line
            if opens:
                blocks.append([])
                inside = True
            if inside:
                blocks[-1].append(line)
                # A marker may open and close; on the line that opens a block, an equal marker does not close it.
                inside = end not in (line.replace(start, "", 1) if opens else line)
        return ["\n".join(block) for block in blocks]


def _words(lines: str) -> str:
    """Lines as they are compared."""
    return composed("\n".join([line.rstrip() for line in lines.split("\n")]))


def _in_order(wanted: Sequence[str], lines: Sequence[str]) -> bool:
    """Whether all wanted lines are among the lines, in this order."""
    rest = iter(lines)
    return all(line in rest for line in wanted)
