"""The words said to models: loaded from `prompts/`, filled once, fenced, and overridable by a folder of the user's.

A prompt is one Markdown file: a header between two ``---`` lines (name, purpose, version, slots), then a part
``# System`` with fixed instructions and a part ``# User`` with slots. Slots are filled by minijinja in one pass: a
value is never scanned again, so braces and tags inside data stay data.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import os
import re
import threading
from collections.abc import Callable, Iterator, Sequence
from contextvars import ContextVar
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from textgrad_engine.errors import TemplateError
from textgrad_engine.fences import fence, fenced, nonce_for, quoted, quoted_text
from textgrad_engine.file_errors import reason_of
from textgrad_engine.scoped import setting
from textgrad_engine.untrusted_files import content_of
from textgrad_engine.wording import nearest

_PACKAGED = Path(__file__).parent / "prompts"
_CHECKOUT = Path(__file__).parent.parent / "prompts"
_folder: ContextVar[Path | None] = ContextVar("textgrad_engine_prompts", default=None)


@dataclass(frozen=True, eq=False)  # a file is read once, and one object is looked up faster than its words
class Prompt:
    """One prompt file.

    Attributes:
        name: its name, which is the file's without ``.md``.
        purpose: what it is for, in one line.
        slots: the names that `render` wants.
        system: the fixed instructions ("" when the file has none).
        user: the template of the user message.
        path: where it was read from.
    """

    name: str
    purpose: str
    slots: tuple[str, ...]
    system: str
    user: str
    path: Path

    @property
    def digest(self) -> str:
        """Twelve hexadecimal digits that change when a word of the prompt does."""
        return hashlib.sha256(f"{self.system}\0{self.user}".encode()).hexdigest()[:12]

    def render(self, **slots: Any) -> str:
        """The user part with its slots filled.

        Raises:
            TemplateError: a slot is missing or unknown, or the template itself is broken.
        """
        if tuple(slots) != self.slots:
            self._check(slots)
        try:
            with _rendering:
                return str(_environment().render_template(_compiled(self.name, self.user), **slots)).strip()
        except Exception as error:
            raise TemplateError(self._broken(error)) from error

    def _broken(self, error: Exception) -> str:
        """What is wrong, with the line of the file; never the values of the slots, which may be anybody's data."""
        line, detail = getattr(error, "line", None), getattr(error, "detail", None) or str(error).partition("\n")[0]
        if line is None:
            return f"{self.path}: {detail}"
        text = _text_of(self.path)
        return f"{self.path}:{text[: text.index(self.user)].count(chr(10)) + line}: {detail}"

    def form(self, **slots: Any) -> Form:
        """The user part for slots whose texts are not there yet: a `Blank` stands for each.

        Raises:
            TemplateError: as `render`.
        """
        if not _only_shows(self.user):
            return Form(self, slots, None)
        between, again = self._between(slots, "\0", 1), self._between(slots, "|", 9)
        return Form(self, slots, None if between is None or again is None else between.agreed(again))

    def _between(self, slots: dict[str, Any], edge: str, length: int) -> _Between | None:
        """What lies between the marks of texts; None where a fence cannot be told from the template's own words."""
        nonce = nonce_for(f"{self.user}{slots}", "blank")  # in nothing that is said besides
        found, end = _Between([], []), 0
        marked = self.render(**_with_texts(slots, lambda number: f"{edge}{nonce}{number:0{length}}{edge}"))
        mark = f"{re.escape(edge)}{nonce}([0-9]+){re.escape(edge)}"
        for match in re.finditer(f'(?:<([^<>]*)-([0-9a-f]{{8}})>\n)?({mark})(?:\n</\\1-\\2>)?| "({mark})"', marked):
            label, _, text, number, in_quotes, number_in_quotes = match.groups()
            if in_quotes is not None:
                found.blanks.append((int(number_in_quotes), _IN_QUOTES))
            elif label is not None and match[0] != fence(text, label):
                return None
            else:
                found.blanks.append((int(number), label))
            found.literals.append(marked[end : match.start()])
            end = match.end()
        found.literals.append(marked[end:])
        return found

    def _check(self, slots: dict[str, Any]) -> None:
        if missing := [name for name in self.slots if name not in slots]:
            raise TemplateError(f"{self.path}: slot {missing[0]!r} was given no value")
        if unknown := [name for name in slots if name not in self.slots]:
            raise TemplateError(
                f"{self.path}: there is no slot {unknown[0]!r}; its header names {', '.join(self.slots)}"
            )


class Blank(NamedTuple):
    """The place of a text in the slots of a `Form`, by its number among the texts."""

    number: int


class Form:
    """What a prompt says when some texts in it are still missing; see `Prompt.form`.

    NOTE [Forms]
        Of the requests of one place in a program only some texts differ, and a template engine takes ten microseconds
        for each. So it is run once, with a mark in the place of each text; the form is what lies between the marks.
        That is right only where a template does no more with these texts than to show them. Two things tell: its tags
        hold nothing but names, loops, ``is``, `fence` and `quoted`, and marks of another kind and length leave the same
        between them. For any other template, and where a text is empty (a template may leave out what is), the texts
        are handed to the engine each time.

    Example:
        >>> prompt = load("apply_edit")
        >>> form = prompt.form(text=Blank(0), edit=Blank(1))
        >>> form.fill(["Be kind.", "add: {{ text }}"]) == prompt.render(text="Be kind.", edit="add: {{ text }}")
        True
    """

    __slots__ = ("_pieces", "_places", "_prompt", "_slots")

    def __init__(self, prompt: Prompt, slots: dict[str, Any], between: _Between | None) -> None:
        self._prompt, self._slots = prompt, slots
        self._pieces: list[str] | None = None
        if between is not None:
            literals, blanks = between
            self._pieces = [literals[0]]
            for literal in literals[1:]:
                self._pieces += ["", literal]
            self._places = [(2 * at + 1, number, label) for at, (number, label) in enumerate(blanks)]

    def fill(self, texts: Sequence[str]) -> str:
        """The user part with these texts in their places.

        Raises:
            TemplateError: as `Prompt.render`.
        """
        if self._pieces is None or not all(texts):
            return self._prompt.render(**_with_texts(self._slots, texts.__getitem__))
        pieces = self._pieces.copy()
        for at, number, label in self._places:
            text = texts[number]
            if label is None:
                pieces[at] = text
            elif label[0] == _IN_QUOTES:
                pieces[at] = quoted_text(text, label[1:])
            else:
                pieces[at] = fenced(text, label)
        return "".join(pieces).strip()


_IN_QUOTES = '"'
"""Stands before the label of a text that is `quoted`, and for the label where that cannot be seen."""


class _Between(NamedTuple):
    """What a template says between texts, and for each of these its number and the label of its fence."""

    literals: list[str]
    blanks: list[tuple[int, str | None]]

    def agreed(self, other: _Between) -> _Between | None:
        """What it is for all texts, where it is this for marks that cannot be quoted, and the other for such as can."""
        if len(self.blanks) != len(other.blanks):
            return None
        found = _Between(self.literals.copy(), [])
        for at, ((number, label), (_, seen)) in enumerate(zip(self.blanks, other.blanks)):
            if seen == _IN_QUOTES and label is not None and found.literals[at].endswith("\n"):
                found.literals[at] = found.literals[at][:-1]
                label = f"{_IN_QUOTES}{label}"
            elif seen == _IN_QUOTES:
                return None  # its own quotation marks, which stay around any text
            elif label != seen:
                return None
            found.blanks.append((number, label))
        return found if found.literals == other.literals else None


def _with_texts(slots: Any, text_of: Callable[[int], str]) -> Any:
    """The slots with texts in the place of blanks."""
    if isinstance(slots, Blank):
        return text_of(slots.number)
    if isinstance(slots, dict):
        return {key: _with_texts(value, text_of) for key, value in slots.items()}
    if isinstance(slots, list | tuple):
        return [_with_texts(value, text_of) for value in slots]
    return slots


_TAG = re.compile(r"\{\{.*?\}\}|\{%.*?%\}", re.DOTALL)
_PLACE = r"[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)*"
_TERM = rf"(?:not )?{_PLACE}(?: is (?:not )?(?:none|defined))?"
_SHOWING = re.compile(
    rf'\{{\{{ {_PLACE}(?: \| (?:fence|quoted)\("\w+"\))? \}}\}}|'
    rf"\{{% (?:for \w+ in {_PLACE}|endfor|if {_TERM}(?: (?:and|or) {_TERM})*|else|endif) %\}}"
)


@functools.lru_cache(maxsize=64)
def _only_shows(template: str) -> bool:
    """Whether nothing in a template could look into a text; see NOTE [Forms]."""
    return all(_SHOWING.fullmatch(tag) for tag in _TAG.findall(template))


_rendering = threading.RLock()
"""One thread at a time: the environment may not be added to while it renders, nor be made twice."""

if hasattr(os, "register_at_fork"):
    # Held while the process forks: a child would wait for ever for a thread that renders in its parent.
    os.register_at_fork(
        before=_rendering.acquire, after_in_parent=_rendering.release, after_in_child=_rendering.release
    )


def load(name: str) -> Prompt:
    """The prompt of that name: from the user's folder where it has one, else the library's.

    Raises:
        TemplateError: there is no such prompt, or its file is malformed.
    """
    own = _folder.get()
    if own is not None and (own / f"{name}.md").is_file():
        return _read(own / f"{name}.md")
    return _shipped(name)


@functools.cache
def _shipped(name: str) -> Prompt:
    for folder in (_PACKAGED, _CHECKOUT):
        if (folder / f"{name}.md").is_file():
            return _read(folder / f"{name}.md")
    raise TemplateError(f"there is no prompt {name!r} in {_PACKAGED}")


@contextlib.contextmanager
def use_prompts(folder: str | Path) -> Iterator[None]:
    """Inside the block, prompts that `folder` has a file for are read from it instead of the library's.

    Raises:
        TemplateError: the folder does not exist; or one of its files has a name that the library does not use, is
            malformed, or uses what is no slot. `check_prompts` looks whether the slots are the library's, too.
    """
    for file in _own_files(Path(folder)):
        _check_words(_read(file), file)
    with setting(_folder, Path(folder)):
        yield


def check_prompts(folder: str | Path) -> None:
    """Find what would go wrong with a user's own prompts when they are filled, before anything is paid for.

    Raises:
        TemplateError: `use_prompts` refuses the folder, or a file in it names other slots in its header than the
            library's prompt.
    """
    for file in _own_files(Path(folder)):
        prompt, shipped = _read(file), _shipped(file.stem)
        if set(prompt.slots) != set(shipped.slots):
            slots = ", ".join(shipped.slots)
            raise TemplateError(f"{file}: the header must say 'slots: {slots}'; a slot need not be used")
        _check_words(prompt, file)


def _own_files(folder: Path) -> list[Path]:
    """The files of a user's own prompts, each of which has the name of one of the library's."""
    if not folder.is_dir():
        raise TemplateError(f"{folder}: there is no such folder of prompts")
    home = _PACKAGED if _PACKAGED.is_dir() else _CHECKOUT
    known = sorted(file.stem for file in home.glob("*.md"))
    files = sorted(folder.glob("*.md"))
    for file in files:
        if file.stem not in known:
            it = f"{meant} It" if (meant := nearest(file.stem, known)) else "; it"
            raise TemplateError(f"{file}: the library has no prompt {file.stem!r}{it} has {', '.join(known)}")
    none = "" if files else "there is no prompt in it; "
    for file in sorted(folder.iterdir()):
        name = file.name.partition(".")[0]
        if name in known and folder / f"{name}.md" not in files:
            raise TemplateError(f"{folder}: {none}{file.name} is to be called {name}.md")
    if none:
        raise TemplateError(f"{folder}: {none}copy a file of the library's prompts ({home}) into it, and change it")
    return files


def _check_words(prompt: Prompt, file: Path) -> None:
    """Refuse words that cannot be filled with the slots of the prompt's header."""
    try:
        with _rendering:
            wanted = _environment().undeclared_variables_in_str(prompt.user)
            _compiled(prompt.name, prompt.user)
    except Exception as error:
        raise TemplateError(prompt._broken(error)) from error
    if unknown := sorted(set(wanted) - set(prompt.slots)):
        slots = ", ".join(prompt.slots)
        raise TemplateError(f"{file}: there is no slot {unknown[0]!r}; there are {slots or 'none'}")


def _is_multiline(text: object) -> bool:
    r"""Whether a text is more than one line to anybody: a lone carriage return or U+2028 ends one, too."""
    return str(text).splitlines() not in ([], [text])


def _read(path: Path) -> Prompt:
    return _parsed(path, path.stat().st_mtime_ns)


def _text_of(path: Path) -> str:
    """The text of a file as editors write it: with a byte order mark or without, and with any line breaks."""
    try:
        raw = content_of(path)
        text = raw.decode("utf-8-sig")
    except OSError as error:
        raise TemplateError(f"{path}: the file cannot be read: {reason_of(error)}") from None
    except UnicodeDecodeError as error:
        line = raw.count(b"\n", 0, error.start) + 1
        raise TemplateError(
            f"{path}:{line}: the byte 0x{raw[error.start]:02x} is not UTF-8; save the file as UTF-8"
        ) from None
    return text.replace("\r\n", "\n").replace("\r", "\n")


@functools.lru_cache(maxsize=64)
def _parsed(path: Path, changed: int) -> Prompt:
    text = _text_of(path)
    parts = re.match(r"---\n(?P<header>.*?)\n---\n(?P<body>.*)\Z", text, re.DOTALL)
    if parts is None:
        raise TemplateError(f"{path}: a prompt begins with a header between two lines '---'")
    header: dict[str, str] = {}
    for number, line in enumerate(parts["header"].split("\n"), 2):
        key, colon, value = line.partition(":")
        if not colon:
            raise TemplateError(f"{path}:{number}: expected 'key: value' in the header, got {line!r}")
        header[key.strip()] = value.strip()
    for key in ("name", "purpose", "slots"):
        if key not in header:
            raise TemplateError(f"{path}: the header lacks {key!r}")
    if header["name"] != path.stem:
        raise TemplateError(f"{path}: the header names {header['name']!r}, and the file is {path.name}; use one name")
    system, user = _sections(path, parts["body"])
    return Prompt(
        name=header["name"],
        purpose=header["purpose"],
        slots=tuple(name for name in re.split(r"[,\s]+", header["slots"]) if name),
        system=system,
        user=user,
        path=path,
    )


def _sections(path: Path, body: str) -> tuple[str, str]:
    found = re.match(r"(?:\s*# System\n(?P<system>.*?))?\s*^# User\n(?P<user>.*)\Z", body, re.DOTALL | re.MULTILINE)
    if found is None:
        raise TemplateError(f"{path}: a prompt has a part '# User', and before it, if it wants one, a part '# System'")
    return (found["system"] or "").strip(), found["user"].strip("\n")


@functools.lru_cache(maxsize=64)
def _compiled(name: str, source: str) -> str:
    """The name under which the environment holds a template; it is parsed once."""
    key = f"{name} {hashlib.sha256(source.encode()).hexdigest()[:12]}"
    _environment().add_template(key, source)
    return key


@functools.cache
def _environment() -> Any:
    import minijinja  # heavy enough to stay off the import path; wanted only when a prompt is rendered

    return minijinja.Environment(
        undefined_behavior="strict",
        auto_escape_callback=lambda name: False,
        trim_blocks=True,
        lstrip_blocks=True,
        filters={"fence": fence, "quoted": quoted},
        tests={"multiline": _is_multiline},
    )
