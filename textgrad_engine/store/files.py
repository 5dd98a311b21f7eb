"""Files of a run folder: read as a whole or line by line, replaced as a whole."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import re
import shlex
import unicodedata
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from textgrad_engine.errors import RunError
from textgrad_engine.file_errors import reason_of
from textgrad_engine.llm.replace_file import move
from textgrad_engine.untrusted_files import check_plain, check_unlinked, content_of

_DEVICE = re.compile(r"(con|prn|aux|nul|(com|lpt)[\d¹²³])(\.|$)", re.IGNORECASE)
"""Names that are devices on Windows, whatever stands behind a dot."""

_LONGEST = 180
"""Bytes of a name; file systems take 255, and a draft's name and an ending come on top."""


def typed(path: Path) -> str:
    """A path as it is typed into a shell, for messages that name a command: in quotes, where it needs them.

    Example:
        >>> typed(Path("grüße-1"))
        'grüße-1'
    """
    text = str(path)
    if os.name == "nt":  # both of its shells know these quotes, and no path has one
        return f'"{text}"' if re.search(r"[^\w@+:./\\~-]", text) else text
    return shlex.quote(text) if re.search(r"[^\w@%+=:,./-]", text) else text


def read_lines(path: Path, notes: list[str]) -> Iterator[dict[str, Any]]:
    """The objects of a file of JSON lines, one at a time; a torn last line is left out, and noted.

    Raises:
        RunError: the file is missing, or a line of it damaged.
    """
    try:
        check_plain(path)
        with path.open("rb") as file:
            for number, line in enumerate(file, 1):
                whole = line.endswith(b"\n")
                try:
                    entry = json.loads(line)
                except (ValueError, RecursionError):
                    entry = None
                if isinstance(entry, dict):
                    yield entry
                elif whole:
                    raise RunError(
                        f"{path}:{number}: this line is no JSON object, so the file was damaged; restore it, or delete "
                        "the line"
                    )
                else:
                    notes.append(f"{path.name}:{number}: the last line is torn; the run was killed while it wrote")
    except FileNotFoundError:
        raise RunError(f"{path}: the file is missing from the run folder; restore it") from None
    except OSError as error:
        raise RunError(f"{path}: cannot be read: {reason_of(error)}") from None


def read_object(path: Path) -> dict[str, Any] | None:
    """The object that a file of JSON holds; None where there is no such file.

    Raises:
        RunError: it cannot be read, or was damaged.
    """
    try:
        body = json.loads(content_of(path))
    except FileNotFoundError:
        return None
    except OSError as error:
        raise RunError(f"{path}: cannot be read: {reason_of(error)}") from None
    except (ValueError, RecursionError) as error:
        raise RunError(f"{path}: this is no JSON ({error}), so the file was damaged; restore it") from None
    if not isinstance(body, dict):
        raise RunError(f"{path}: this is no JSON object, so the file was damaged; restore it")
    return body


def write_atomically(path: Path, content: bytes | Iterable[bytes]) -> None:
    """Write a file so that whoever opens it finds the old content or the new one, also after a crash.

    Args:
        path: the file.
        content: all of it, or its parts, which may be made from the old content.
    """
    path = path.absolute()
    draft = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        draft.unlink(missing_ok=True)  # of a killed process of this number, or a link that somebody laid there
        with draft.open("xb") as file:
            file.writelines((content,) if isinstance(content, bytes) else content)
            file.flush()
            os.fsync(file.fileno())
        move(draft, path)
    except BaseException:
        with contextlib.suppress(OSError):
            draft.unlink()
        raise


def inner_folder(home: Path, name: str) -> Path:
    """A folder in a run folder, made where it is missing.

    Raises:
        OSError: it cannot be made; or it is a link, as what is written into a run folder is to stay in it.
    """
    place = home / name
    check_unlinked(place)
    place.mkdir(exist_ok=True)
    return place


def file_name(parameter: str, among: Iterable[str] = ()) -> str:
    """The name of a parameter's file: its own, but for what a file's name cannot have everywhere.

    Of one that is too long for a file the beginning is there, and a digest of all.

    Args:
        parameter: dotted name.
        among: the names of all that have a file beside it. Where another one is the same but for case, which many file
            systems do not tell apart, capitals are escaped, too; one that would have the same file otherwise, such as
            where a letter is written with other characters, has a digest behind it.

    Example:
        >>> file_name("chat.system"), file_name("a/b"), file_name("aux.system")
        ('chat.system', 'a%2Fb', '%61ux.system')
        >>> file_name("Chat.system", ["Chat.system", "chat.system"])
        '%43hat.system'
    """
    others = [other for other in among if other != parameter]
    alike = any(other.casefold() == parameter.casefold() for other in others)
    name = _escaped(parameter, capitals=alike)
    if len(name.encode()) <= _LONGEST and not _is_taken(parameter, others):
        return name
    return f"{name.encode()[:_LONGEST].decode(errors='ignore')}~{hashlib.sha256(parameter.encode()).hexdigest()[:12]}"


def _escaped(parameter: str, *, capitals: bool = False) -> str:
    device = _DEVICE.match(parameter) is not None
    return "".join(
        f"%{ord(char):02X}"
        if not (char.isalnum() or char in "_.-") or (capitals and char.isupper()) or (device and place == 0)
        else char
        for place, char in enumerate(parameter)
    )


def _is_taken(parameter: str, others: Iterable[str]) -> bool:
    """Whether another name that is not the same but for case has the same file, at least where composed letters do."""
    name = _escaped(parameter)
    if "%" not in name and name.isascii():
        return False  # of plain names none has the file of another
    form, folded = _composed(name), parameter.casefold()
    return any(other.casefold() != folded and _composed(_escaped(other)) == form for other in others)


def _composed(name: str) -> str:
    return unicodedata.normalize("NFC", name).casefold()


def unwritable(error: OSError, path: Path) -> RunError:
    """The error about a run folder that cannot be written."""
    return RunError(f"{error.filename or path}: the run folder cannot be written: {reason_of(error)}")


FOLDS = "folds.json"
"""What the folder of a cross-validation holds, beside a run folder for each fold."""


def whole_of(path: Path) -> Path | None:
    """The folder of the cross-validation that a run is a part of; None where it is by itself."""
    whole = path.parent if path.name else path.absolute().parent
    return whole if (whole / FOLDS).is_file() and not (path / FOLDS).is_file() else None
