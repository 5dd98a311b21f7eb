"""The calls of a run: as a table, and one of them as it was sent and answered."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from textgrad_engine import pytree
from textgrad_engine.llm.conversation import with_calls
from textgrad_engine.llm.money import cost
from textgrad_engine.llm.tool_images import in_words
from textgrad_engine.ops.offered import arguments_of, inside_of, name_of_tool, told_inside
from textgrad_engine.report.printing import WIDEST, fitted, is_shown_as, open_table, padded, printed, styled
from textgrad_engine.report.words import count, plural


@dataclass(frozen=True)
class Wanted:
    """Which calls are wanted.

    Attributes:
        purpose: why they were made; None for any purpose.
        step: in which step; None for any.
        example: what they are about, by its id or what reports show of it; None for anything.
    """

    purpose: str | None = None
    step: int | None = None
    example: str | None = None

    def has(self, entry: Mapping[str, Any]) -> bool:
        """Whether a call is one of them."""
        return (
            self.purpose in (None, entry.get("purpose"))
            and self.step in (None, entry.get("step"))
            and (self.example is None or _is_about(str(entry.get("example", "")), self.example))
        )


def _is_about(about: str, example: str) -> bool:
    """Whether a call is about an example, by its id or what reports show of it; it may be about several.

    Args:
        about: the ids, which may have what stands between them.
        example: the one.
    """
    several = about.split(", ")
    return example in (about, *several) or any(is_shown_as(each, example) for each in several)


@dataclass(frozen=True)
class Call:
    """A call of a run.

    Attributes:
        number: its place in the record, from 1.
        entry: what is on record of it: a line of ``completions.jsonl``.
    """

    number: int
    entry: Mapping[str, Any]

    @property
    def what(self) -> str:
        """What it was made for: of the program's own calls the phase."""
        purpose, phase = str(self.entry.get("purpose", "")), str(self.entry.get("phase_name", ""))
        return phase or purpose if purpose == "forward" else purpose

    @property
    def usage(self) -> Mapping[str, Any]:
        """The tokens and dollars that its attempts used."""
        return self.entry.get("usage") or {}

    @property
    def messages(self) -> list[tuple[str, str]]:
        """Who said what: the messages of the request, and the answer, or why there is none."""
        asked = (self.entry.get("request") or {}).get("messages") or []
        said = [
            (str(each.get("role", "")), with_calls(in_words(each.get("content") or ""), each.get("tool_calls") or ()))
            for each in asked
        ]
        if (error := self.entry.get("error")) is not None:
            return [*said, ("no answer", str(error))]
        return [*said, ("answer", with_calls(str(self.entry.get("text", "")), self.entry.get("tool_calls") or ()))]


_GAP = 2
_LONGEST = {"about": 16, "model": 12}
"""So many columns an id and a name have at most."""


def _cells(call: Call) -> dict[str, str]:
    usage, entry = call.usage, call.entry
    return {
        "call": str(call.number),
        "step": str(entry.get("step", "")),
        "for": call.what,
        "about": str(entry.get("example", "")),
        "model": str(entry.get("model", "")),
        "read": count(int(usage.get("input_tokens", 0))),
        "written": count(int(usage.get("output_tokens", 0))),
        "answer": " ".join(f"{'no answer: ' * ('error' in entry)}{_without_braces(call.messages[-1][1])}".split()),
    }


def _without_braces(answer: str) -> str:
    """What an answer says; of JSON the values, as its keys are alike in all answers.

    Example:
        >>> _without_braces('{"case_1": {"system": "Be brief."}, "case_2": {"system": ""}}'), _without_braces("{so}")
        ('Be brief.', '{so}')
    """
    try:
        value = json.loads(answer) if answer.startswith(("{", "[")) else None
    except (ValueError, RecursionError):
        return answer
    values = [str(leaf) for leaf in pytree.leaves(value) if leaf not in (None, "")]
    return " / ".join(values) or answer


def render_calls(calls: Sequence[Call], more: int, *, width: int = 80, color: bool = False) -> str:
    """Calls as a table, a line each: what each was made for, about which example, and what was answered.

    Where several models were asked, it says which.

    Args:
        calls: those that are shown.
        more: how many there are besides.
        width: columns.
        color: with the terminal's codes for colors.
    """
    from rich.cells import cell_len  # heavy, as all of it

    rows = [_cells(call) for call in calls]
    several = len({row["model"] for row in rows}) > 1
    heads = ["call", "step", "for", "about", *["model"] * several, "read", "written", "answer"]
    widths = [
        min(max([len(head), *(cell_len(row[head]) for row in rows)]), _LONGEST.get(head, WIDEST)) for head in heads[:-1]
    ]
    room = min(width, WIDEST) - sum(each + _GAP for each in widths) - 2 * _GAP
    table = open_table(gap=_GAP)
    for head in heads:
        right = head in ("call", "step", "read", "written")
        table.add_column(head, justify="right" if right else "left", no_wrap=True)
    for row in rows:
        cells = {head: styled(row[head]) for head in heads}
        for head, most in {**_LONGEST, "answer": max(10, room)}.items():
            if head in cells:
                cells[head].truncate(most, overflow="ellipsis")
        table.add_row(*cells.values())
    parts: list[Any] = [padded(fitted(table), 2)]
    if more:
        parts += ["", padded(styled(f"and {plural(more, 'call')} more: --most N shows as many", "dim"), 2)]
    return printed(parts, width, color)


def call_in_words(call: Call, total: int) -> str:
    """One call as it was sent and answered, each message behind who said it; nothing is cut or wrapped.

    What stands before who said it is longer where a text has a line that begins so.

    Args:
        call: the call.
        total: how many there are on record.
    """
    entry, usage = call.entry, call.usage
    about = f", about {entry['example']}" if entry.get("example") else ""
    config = (entry.get("request") or {}).get("config") or {}
    form = (config.get("response_format") or {}).get("name")
    tools = [tool for tool in config.get("tools") or () if isinstance(tool, dict)]
    read, written = (count(int(usage.get(f"{kind}_tokens", 0))) for kind in ("input", "output"))
    used = [f"{read} tokens read, {written} written", cost(usage.get("dollars"))]
    failed = "error" in entry
    said = [
        str(entry.get("model", "")),
        *(
            used
            if usage or not failed
            else ["what it used is unknown" if entry.get("cost_unknown") else "used nothing"]
        ),
        *([] if failed else [f"{entry.get('latency') or 0:.1f} s"]),
        *([plural(int(entry["attempts"]), "attempt")] if (entry.get("attempts") or 1) > 1 else []),
        *([f"in the form {form}"] if form else []),
        *([f"with {plural(len(tools), 'tool')}"] if tools else []),
        *([f"ended by {entry['finish_reason']}"] if entry.get("finish_reason") not in (None, "stop") else []),
    ]
    head = f"call {count(call.number)} of {count(total)}: {call.what}, step {entry.get('step', '')}{about}"
    messages = call.messages
    mark = "=="
    told_of = "\n".join(map(_tool_in_words, tools))
    texts = [told_of, *[text for _, text in messages]]
    begun = [line for text in texts for line in text.splitlines() if line.startswith(mark)]
    while any(line.startswith(mark) and line[len(mark) : len(mark) + 1].isspace() for line in begun):
        mark += "="
    parts = [f"{mark} {_in_one_line(who)}\n{text}" for who, text in messages]
    if tools:
        parts.insert(0, f"{mark} tools\n{told_of}")
    return "\n\n".join([f"{_in_one_line(head)}\n{_in_one_line(', '.join(said))}", *parts]) + "\n"


def _in_one_line(text: str) -> str:
    return " ".join(text.splitlines())


def _tool_in_words(tool: dict[str, Any]) -> str:
    """What a model was told of a tool: its name and arguments, and all descriptions in it."""
    told_of = arguments_of(tool)
    does = inside_of(tool).get("description")
    lines = [f"{name_of_tool(tool)}({', '.join(told_of)}){f': {does}' if does else ''}"]
    lines += [f"{name}: {text}" for name, text in told_inside(tool)]
    first, *others = "\n".join(lines).split("\n")
    return "\n".join([first, *[f"  {line}".rstrip() for line in others]])
