"""The files that a run is made of: what they held when it was begun, and which were changed since."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path, PurePath

from textgrad_engine.cli import user_code
from textgrad_engine.cli.config import Config

_CODE = ".py"


def digests_of(config: Config) -> dict[str, str]:
    """A digest of each file that a config names, and of itself, by its path from the config's folder.

    Of code that is what ``"module:name"`` names beside the config, not what that imports. The data has digests of its
    own, as a run on other data is another one.

    Args:
        config: as it was read from a file.
    """
    found = {}
    for name in _named(config):
        if (there := _digest(config.file(name))) is not None:
            found[PurePath(name).as_posix()] = there
    return found


def changed_since(held: Mapping[str, str], config: Config) -> list[str]:
    """What is to be said of files that hold something else than when a run was begun that goes on now; mostly nothing.

    The run has its settings and texts in its folder, so a file that is gone is not missed. Its code is not there.

    Args:
        held: what they held, by `digests_of`.
        config: of the run.
    """
    other, said = _other(held, config), []
    if texts := [str(file) for file in other if file.suffix != _CODE]:
        them = "them" if len(texts) > 1 else "it"
        said.append(
            f"note: {_were(texts)} changed since the run was begun. The run goes on with what it began with; options "
            f"of `resume` change limits and endpoint, and `train` begins a new one with {them} as "
            f"{'they are' if len(texts) > 1 else 'it is'}."
        )
    if code := _code_among(other):
        said.append(
            f"note: {_were(code)} changed since the run was begun. The run goes on with the code as it is now, so "
            "answers on record may no longer fit."
        )
    return said


def other_code(held: Mapping[str, str], config: Config) -> str:
    """What is to be said of code that was changed since a run, whose scores new ones stand beside; mostly "".

    Args:
        held: what the files of the run held, by `digests_of`.
        config: of the run.
    """
    if not (code := _code_among(_other(held, config))):
        return ""
    return (
        f"note: {_were(code)} changed since the run was begun, and is used as it is now, so the scores of then may "
        "mean something else."
    )


def _other(held: Mapping[str, str], config: Config) -> list[Path]:
    """The files that hold something else now; of what is gone nobody knows."""
    files = {config.file(name): was for name, was in held.items()}
    return [file for file, was in files.items() if _digest(file) not in (None, was)]


def _code_among(files: Iterable[Path]) -> list[str]:
    return [str(file) for file in files if file.suffix == _CODE]


def _named(config: Config) -> Iterator[str]:
    yield config.path.name
    own = config.program
    files = (own.system_file, own.response_format, own.tools)
    yield from (each for each in files if isinstance(each, str) and not user_code.is_spec(each))
    yield from dict.fromkeys(name for spec in config.own_code() for name in _modules(spec, config.folder))


def _modules(spec: str, folder: Path) -> Iterable[str]:
    """The file of the module that a spec names, where it is beside the config."""
    module = spec.partition(":")[0].replace(".", "/")
    places = (f"{module}{_CODE}", f"{module}/__init__{_CODE}")
    return [name for name in places if (folder / name).is_file()][:1]


def _digest(file: Path) -> str | None:
    """Of its lines, whatever ends them: a checkout on Windows has other ends. None where it cannot be read."""
    try:
        held = file.read_bytes()
    except OSError:
        return None
    return hashlib.sha256(b"\n".join(held.splitlines())).hexdigest()[:16]


def _were(names: list[str]) -> str:
    *first, last = names
    return f"{', '.join(first)} and {last} were" if first else f"{last} was"
