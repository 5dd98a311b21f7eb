"""Two texts as a unified diff: what ``diff -u`` prints, and what ``patch`` and ``git apply`` read."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from textgrad_engine.optim.matching import matcher_of

CONTEXT = 3
"""Lines that stayed are shown up to so far from a changed one, as tools do it."""

NOWHERE = "/dev/null"
"""The name of the file that a text is compared with where there is no other one."""

_NO_LINE_BREAK = "\\ No newline at end of file\n"


def unified(before: str, after: str, old: str, new: str) -> str:
    r"""The difference of two texts; "" where there is none.

    A text is what its file in a run folder holds: lines end at ``"\n"`` and nowhere else, and what UTF-8 cannot hold is
    written as its escape. Byte for byte, patching the first text with it gives the second one.

    Args:
        before: the first text.
        after: the second one.
        old: the name of the first one's file; `NOWHERE` when there is none.
        new: the same for the second one.

    Example:
        >>> print(unified("Sort it.\nAnswer.", "Sort it.\nBe brief.\nAnswer.", "seed.txt", "best.txt"), end="")
        --- seed.txt
        +++ best.txt
        @@ -1,2 +1,3 @@
         Sort it.
        +Be brief.
         Answer.
        \ No newline at end of file
    """
    lines = file_lines(before), file_lines(after)
    if lines[0] == lines[1]:
        return ""
    return f"--- {_name(old)}\n+++ {_name(new)}\n" + "".join(_hunks(*lines))


def file_lines(text: str) -> list[str]:
    r"""The lines of a text as its file has them, each with its line break; the last may be without.

    Example:
        >>> file_lines("a\r\nb"), file_lines("a\n"), file_lines("")
        (['a\r\n', 'b'], ['a\n'], [])
    """
    *whole, last = text.encode("utf-8", "backslashreplace").decode("utf-8").split("\n")
    return [line + "\n" for line in whole] + ([last] if last else [])


def _hunks(before: Sequence[str], after: Sequence[str]) -> Iterator[str]:
    for group in matcher_of(before, after).get_grouped_opcodes(CONTEXT):
        first, last = group[0], group[-1]
        yield f"@@ -{_range(first[1], last[2])} +{_range(first[3], last[4])} @@\n"
        for tag, old_start, old_end, new_start, new_end in group:
            if tag == "equal":
                yield from _marked(" ", before[old_start:old_end])
                continue
            yield from _marked("-", before[old_start:old_end])
            yield from _marked("+", after[new_start:new_end])


def _marked(mark: str, lines: Sequence[str]) -> Iterator[str]:
    for line in lines:
        yield mark + line if line.endswith("\n") else f"{mark}{line}\n{_NO_LINE_BREAK}"


def _range(start: int, end: int) -> str:
    length = end - start
    if length == 1:
        return str(start + 1)
    return f"{start + 1 if length else start},{length}"


def _name(path: str) -> str:
    """A file's name as tools read it back: quoted where it has what would end it."""
    quoted = "".join(_QUOTED.get(c, c if c.isprintable() else _octal(c)) for c in path)
    if quoted != path:
        return f'"{quoted}"'
    return f"{path}\t" if " " in path else path


_QUOTED = {'"': '\\"', "\\": "\\\\", "\n": "\\n", "\t": "\\t"}


def _octal(character: str) -> str:
    return "".join(f"\\{byte:03o}" for byte in character.encode("utf-8", "surrogateescape"))
