"""Files that hold the texts of a program: ``--prompt FILE``, and ``--prompt NAME=FILE`` where there are several."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from textgrad_engine.cli import build
from textgrad_engine.cli.config import Config
from textgrad_engine.cli.prompt_source import check_no_source
from textgrad_engine.data.names import suggest
from textgrad_engine.data.paths import missing_file
from textgrad_engine.data.textfile import read_text
from textgrad_engine.errors import DataError, RunError
from textgrad_engine.nn import Module
from textgrad_engine.report.terminal import complain
from textgrad_engine.slots import slots_of
from textgrad_engine.user_paths import expanded


def begun_with(config: Config, path: Path, files: Sequence[str], folds: int | None) -> Config:
    """A config whose program begins with the texts of files.

    Args:
        config: the config.
        path: as it was named.
        files: as in `texts_in`.
        folds: how many runs share the examples; None for one run.

    Raises:
        TextgradError: as `texts_in`; or a run of folds would not know the texts again.
    """
    begun = config.with_prompts(texts_in(files, trained_texts(config), config, path))
    if folds is not None and begun.own_texts:
        raise RunError(
            f"--prompt {next(iter(begun.own_texts))}=FILE: with --folds only the system prompt of a config of two "
            "messages can be another one; put the text into the program"
        )
    return begun


def trained_texts(config: Config) -> dict[str, str]:
    """The texts that the program of a config begins with, by name."""
    return trained_by_name(build.make_program(config))


def trained_by_name(program: Module) -> dict[str, str]:
    """The texts of a program that are trained, by name."""
    return {name: str(each.data) for name, each in program.named_parameters() if each.requires_grad}


def texts_in(files: Sequence[str], texts: Mapping[str, str], config: Config, path: Path) -> dict[str, str]:
    """The texts that files hold, by name.

    Args:
        files: the files, each behind the name of its text and ``=`` where there are several texts.
        texts: those in whose place they come.
        config: of the program.
        path: the run folder, or the config, for messages.

    Raises:
        RunError: a file cannot be read or is source, it is not plain which text it holds, or two are of one text.
    """
    if not texts:
        raise RunError(f"{path}: the program has no text that is trained, so --prompt takes the place of none")
    found: dict[str, str] = {}
    for given in files:
        name, file = _named_file(given, texts)
        if name in found:
            whose = f" of {name!r}; name one for each" if len(texts) > 1 else "; name one of them"
            raise RunError(f"--prompt {given}: another --prompt has the text{whose}")
        if not file.is_file():
            raise RunError(f"--prompt {given}: {missing_file(file, lambda each: each.suffix in ('.txt', '.md'))}")
        try:
            found[name] = read_text(file).removesuffix("\n")
        except DataError as error:
            raise RunError(f"--prompt {given}: {error}") from None
        if config.program.class_ is None:  # one of yours may train code
            check_no_source(file, found[name])
        if config.program.class_ is None and name != "system":
            continue  # it describes a tool, and its braces are no slots
        there = slots_of(found[name])
        targets = () if config.program.class_ is not None else config.target_columns()
        if shown := [slot for slot in there if slot in targets]:
            raise RunError(f"--prompt {given}: it shows the model {{{shown[0]}}}, the right answer; take it out")
        if lost := [f"{{{slot}}}" for slot in slots_of(texts[name]) if slot not in there]:
            complain(
                f"note: --prompt {given} lacks {' and '.join(lost)}, which the prompt in its place has, so what fills "
                "that is not shown there"
            )
    return found


def _named_file(given: str, texts: Mapping[str, str]) -> tuple[str, Path]:
    """Which text a ``--prompt`` is about, and its file.

    Raises:
        RunError: that is not plain.
    """
    name, equals, file = given.partition("=")
    if equals and name in texts:
        return name, expanded(file)
    if equals and not Path(given).exists() and expanded(file).is_file():
        raise RunError(
            f"--prompt {given}: no text that is trained is called {name!r}; there {'are' if len(texts) > 1 else 'is'} "
            f"{', '.join(texts)}{suggest(name, texts)}"
        )
    if len(texts) > 1:
        raise RunError(f"--prompt {given}: say whose it is, --prompt NAME={given}, of {', '.join(texts)}")
    return next(iter(texts)), Path(given)
