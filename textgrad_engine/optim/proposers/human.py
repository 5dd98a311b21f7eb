"""The human proposer: a person reads the feedback in the terminal and types the edits."""

from __future__ import annotations

import asyncio
import re
import sys
import threading
import unicodedata
from dataclasses import dataclass
from typing import Any, TextIO

from textgrad_engine.dispatch import aside
from textgrad_engine.errors import ConfigError, ContractError
from textgrad_engine.fences import unfenced
from textgrad_engine.llm.loops import PerLoop
from textgrad_engine.llm.model import Model
from textgrad_engine.optim.patch import Edit, edits_from
from textgrad_engine.optim.proposers.base import Brief, Proposal, patched
from textgrad_engine.optim.sentences import by_sentences
from textgrad_engine.optim.showing import numbered

HELP = (
    "+3 TEXT adds a line after line 3 (+0 puts it first), =3 TEXT replaces line 3, -3 removes it; an empty line ends."
)
_COMMAND = re.compile(r"(?P<op>[+=-])\s*(?P<line>\d{1,9})(?: (?P<text>.*))?", re.DOTALL)
_OPS = {"+": "add", "=": "replace", "-": "remove"}
_TURNING = frozenset("\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")

_turns: PerLoop[asyncio.Lock] = PerLoop(asyncio.Lock)
"""There is one terminal: several parameters are asked about one after the other, in order."""

_terminal = threading.Lock()
"""Held by a thread that reads: one that was given up still waits for its line."""


@dataclass(frozen=True)
class Human:
    r"""Shows the numbered lines and the feedback, and reads edits line by line, until an empty line.

    No model is asked. What cannot be made is said at once; what breaks a contract is asked about once more, as a model
    would be.

    Args:
        input: where edits are read from; None stands for the terminal.
        output: where everything is shown; None stands for standard output.

    Example:
        >>> import asyncio, io
        >>> person = Human(io.StringIO("=1 Sort the mail.\n\nclearer\n"), io.StringIO())
        >>> brief = Brief(role="prompt", text="Sort.", origins=(None,))
        >>> asyncio.run(person.propose(brief, None, "")).text
        'Sort the mail.'
    """

    input: TextIO | None = None
    output: TextIO | None = None

    async def propose(self, brief: Brief, model: Model, problem: str) -> Proposal:
        """Ask the person.

        Raises:
            ConfigError: there is no terminal to ask in.
        """
        source, shown = self.input or sys.stdin, self.output or sys.stdout
        if self.input is None and (source is None or not source.isatty()):
            raise ConfigError(
                "Human() asks in a terminal, and standard input is none (a pipe, a job, a notebook); run the script in "
                "a terminal, give Human(input=..., output=...) streams to talk through, or take another proposer"
            )
        async with _turns.get():
            edits = await aside(lambda: _dialog(brief, problem, source, shown))
        return patched(brief, edits)


def _dialog(brief: Brief, problem: str, source: TextIO, shown: TextIO) -> list[Edit]:
    with _terminal:
        _show(_question(brief, problem), shown)
        entries: list[dict[str, Any]] = []
        while (line := _read("> ", source, shown)).strip():
            try:
                entry = _entry(line)
                _checked([*entries, entry], brief)
            except ContractError as error:
                _show(f"{error}\n", shown)
            else:
                entries.append(entry)
        reason = _read("Why? (for the record; may be empty) ", source, shown).strip() if entries else ""
    return _checked([{**entry, "reason": reason or "by hand"} for entry in entries], brief)


def _question(brief: Brief, problem: str) -> str:
    parts = [f"\nThe {brief.role or 'prompt'}, step {brief.step}:", numbered(brief.text), ""]
    if by_sentences(brief.text):
        parts.append("(|~: a sentence of the same line as the one before it; its number stands for it alone)")
    for number, item in enumerate(brief.items, 1):
        times = f" ({item.times} times)" if item.times > 1 else ""
        about = f"\nThe answer was: {item.answer}" if item.answer else ""
        said = f"a case\n{unfenced(item.text)}\n" if item.case else item.text
        parts.append(_item(f"[{number}]{times} {said}{about}"))
    parts.append("" if brief.items else "There is no feedback on it.\n")
    parts += [f"Tried before: {past}" for past in brief.history]
    parts += [f"Keep to this: {said}" for contract in brief.contracts if (said := contract.describe(brief.text))]
    if problem:
        parts.append(f"Your last edits could not be used: {problem}")
    parts.append(f"At most {brief.max_edits} {'edit' if brief.max_edits == 1 else 'edits'}. {HELP}")
    return _plain("\n".join(parts)) + "\n"


def _item(text: str) -> str:
    """An entry of a list: what others have written in it begins no line, and so passes for none of ours."""
    return re.sub(r"\n(?=[^\n])", "\n    ", text)


def _show(text: str, shown: TextIO) -> None:
    """Write what a person is to read; what the terminal's encoding cannot express comes as an escape."""
    encoding = getattr(shown, "encoding", None) or "utf-8"
    shown.write(text.encode(encoding, "backslashreplace").decode(encoding))


def _read(prompt: str, source: TextIO, shown: TextIO) -> str:
    shown.write(prompt)
    shown.flush()
    return source.readline().rstrip("\r\n")


def _entry(line: str) -> dict[str, Any]:
    found = _COMMAND.fullmatch(line)
    if found is None:
        raise ContractError(f"that is no edit. {HELP}")
    op, text = _OPS[found["op"]], found["text"] or ""
    if op == "remove" and text.strip():
        raise ContractError(f"-{found['line']} removes the line and takes no text; ={found['line']} TEXT replaces it")
    return {"op": op, "line": int(found["line"]), "text": text, "reason": "", "feedback": []}


def _checked(entries: list[dict[str, Any]], brief: Brief) -> list[Edit]:
    edits, problems = edits_from({"edits": entries}, text=brief.text, feedback=0, max_edits=brief.max_edits)
    if problems:
        raise ContractError("; ".join(problems))
    return edits


def _plain(text: str) -> str:
    """The text without what a terminal would obey: control characters, and those that turn the direction of writing."""
    return "".join(
        ascii(each)[1:-1]
        if each not in "\n\t" and (unicodedata.category(each) in ("Cc", "Cs") or each in _TURNING)
        else each
        for each in text
    )
