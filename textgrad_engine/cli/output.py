"""What all commands share: exit codes, errors in plain words, and where to write."""

from __future__ import annotations

import codecs
import contextlib
import functools
import json
import os
import shutil
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextvars import ContextVar
from typing import Any, NoReturn, ParamSpec, TextIO, TypeVar

import typer

from textgrad_engine.cli.streams import is_unread, stdout_apart, unprintable
from textgrad_engine.cli.user_code import line_of_user, path_restored
from textgrad_engine.errors import BudgetExceeded, RunError, TextgradError
from textgrad_engine.report.printing import is_harmless
from textgrad_engine.report.terminal import complain, prints_codes, stopping
from textgrad_engine.scoped import setting
from textgrad_engine.train.interrupt import TERMINATING, Heard, finishing_on_interrupt

OK = 0
FAILED = 1
WRONG = 2
BUDGET_SPENT = 3
TOO_LOW = 4
INTERRUPTED = 130
_TERMINATED = 143
"""What `INTERRUPTED` becomes where it was SIGTERM, so that whoever sent that sees it obeyed."""


def epilog(
    spent: str = "the result so far was printed",
    interrupted: str = "the result so far was printed, unless Ctrl-C was pressed twice",
    also: str = "",
) -> str:
    """What the help says of exit codes, where models are asked.

    Args:
        spent: what there is when the budget was spent.
        interrupted: what there is after Ctrl-C.
        also: codes that only this command has.
    """
    return (
        f"Exit codes: 0 all went well; 1 an error while running; 2 wrong usage, config or data, or a budget "
        f"without room for one call (nothing was paid for); 3 the budget was spent ({spent}); {also}130 interrupted "
        f"({interrupted}); 143 the same, by SIGTERM."
    )


def epilog_of_reading(
    failed: str = "an error while running", wrong: str = "wrong usage, or no run folder", also: str = ""
) -> str:
    """What the help says of exit codes, where no model is asked.

    Args:
        failed: what exit code 1 means.
        wrong: what exit code 2 means.
        also: codes that only this command has.
    """
    return f"Exit codes: 0 all went well; 1 {failed}; 2 {wrong}; {also}130 interrupted; 143 the same, by SIGTERM."


P = ParamSpec("P")
R = TypeVar("R")


class CommandFailed(Exception):
    """An error, and the exit code that it means here."""

    def __init__(self, error: Exception, code: int) -> None:
        super().__init__(str(error))
        self.error, self.code = error, code


@contextlib.contextmanager
def checking() -> Iterator[None]:
    """Inside the block nothing has been paid for yet: errors mean wrong usage, config, data or code of the user's."""
    try:
        yield
    except CommandFailed:
        raise
    except Exception as error:
        if isinstance(error, TextgradError) or line_of_user(error):
            raise CommandFailed(error, WRONG) from error
        if isinstance(error, PermissionError) and error.filename is not None:
            denied = RunError(f"{error.filename}: permission denied; let this user read it, or name another place")
            raise CommandFailed(denied, WRONG) from error
        raise


def command(function: Callable[P, R]) -> Callable[P, R]:
    """A command whose errors are said in plain words, also those that code of the user's raises.

    TEXTGRAD_DEBUG=1 shows where they came from. With ``as_json`` there is one JSON document on stdout, also where the
    command ends with an error.
    """

    @functools.wraps(function)
    def run(*args: P.args, **kwargs: P.kwargs) -> R:
        with _one_document() if kwargs.get("as_json") else contextlib.nullcontext():
            return _run(*args, **kwargs)

    def _run(*args: P.args, **kwargs: P.kwargs) -> R:
        heard = Heard()
        try:
            with finishing_on_interrupt(_answer, terminate=True) as heard, path_restored():
                return function(*args, **kwargs)
        except typer.Exit as end:
            raise typer.Exit(_after(heard, end.exit_code)) from None
        except CommandFailed as failed:
            _end(failed.error, failed.code)
        except TextgradError as error:
            _end(error, _code_of(error))
        except KeyboardInterrupt as error:
            notes, code = _notes(error), _after(heard, INTERRUPTED)
            complain("; ".join(["interrupted", *notes]))
            write_error("interrupted", code, notes)
            raise typer.Exit(code) from None
        except SystemExit as error:  # commands end by a `typer.Exit`, so it is one of the user's code
            told = RunError(f"{line_of_user(error)}: {error!r}; have it raise an error, and not exit")
            for note in _notes(error):
                told.add_note(note)
            _end(told.with_traceback(error.__traceback__), FAILED)
        except Exception as error:
            if not line_of_user(error):  # an exit, or a mistake of ours, which nobody finds without the traceback
                raise
            _end(error, FAILED)

    return run


def said_of(error: Exception) -> str:
    """What an error says; one of the user's own code by itself says neither what it is nor where it was raised."""
    if isinstance(error, TextgradError) or not (line := line_of_user(error)):
        return str(error)
    return f"{line}: {type(error).__name__}: {error}"


def _notes(error: BaseException) -> list[str]:
    """What is to be known of an error besides; the line of code that asked is ours, not the user's."""
    return [note.split(", asked for at ")[0] for note in getattr(error, "__notes__", ())]


def _after(heard: Heard, code: int) -> int:
    return _TERMINATED if code == INTERRUPTED and heard.signal in TERMINATING else code


def _code_of(error: TextgradError) -> int:
    if isinstance(error, BudgetExceeded):
        return WRONG if error.too_small else BUDGET_SPENT
    return FAILED


def _answer(asking: bool, by: str) -> None:
    """Say what the first Ctrl-C, or SIGTERM, does."""
    # It may come while Python writes to stderr, where a second write through its buffer is an error.
    with contextlib.suppress(OSError):
        os.write(2, f"\n{stopping(asking, by)}\n".encode())


def _end(error: Exception, code: int) -> NoReturn:
    if os.environ.get("TEXTGRAD_DEBUG", "") not in ("", "0"):
        raise error
    said, notes = said_of(error), _notes(error)
    complain(f"error: {said}")
    for note in notes:
        complain(f"  {note}")
    if not isinstance(error, TextgradError):
        complain("  with TEXTGRAD_DEBUG=1 in the environment, the whole traceback is shown")
    write_error(said, code, notes)
    raise typer.Exit(code)


class _Document:
    """Where the one JSON document of a command goes, whether it was written, and what that of an error has besides."""

    def __init__(self, stream: TextIO | None) -> None:
        self.stream, self.written = stream, False
        self.besides: dict[str, Any] = {}


_document: ContextVar[_Document | None] = ContextVar("textgrad_engine_document", default=None)


@contextlib.contextmanager
def _one_document() -> Iterator[None]:
    """Inside the block only `write_json` gets to stdout; what else is printed, by the user's code, goes to stderr."""
    with stdout_apart() as stream, setting(_document, _Document(stream)):
        yield


def write_error(message: str, code: int, notes: Iterable[str] = ()) -> None:
    """Write an error for machines, where a command with ``--json`` ends with it and has written nothing yet.

    Args:
        message: what was wrong.
        code: the exit code.
        notes: what else is to be known.
    """
    document = _document.get()
    if document is not None and not document.written:
        with contextlib.suppress(RunError):  # stdout cannot be written, which may be what was wrong
            write_json({"error": message, "notes": list(notes), "exit_code": code, **document.besides})


def besides_an_error(found: Mapping[str, Any]) -> None:
    """Have the document of the error that ends a command with ``--json`` say what was found before it, too."""
    if (document := _document.get()) is not None:
        document.besides = dict(found)


def say(message: str, quiet: bool) -> None:
    """Write a line for people to stderr, unless they want to hear nothing."""
    if not quiet:
        complain(message)


def write(text: str) -> None:
    """Write a result to stdout. What its encoding cannot express is replaced, which is better than dying over it.

    Raises:
        RunError: stdout is closed, or what it was redirected to is full.
    """
    if not text.endswith("\n"):
        text += "\n"
    with _stdout() as stream:
        encoding = getattr(stream, "encoding", None) or "utf-8"
        stream.write(text.encode(encoding, "replace").decode(encoding, "replace"))
        stream.flush()


def write_json(value: Any) -> None:
    """Write a result for machines to stdout: as it is to UTF-8, else with escapes, so that nothing is replaced.

    What a terminal would obey, or nobody could see, is escaped in any case.

    Raises:
        RunError: stdout is closed, or what it was redirected to is full.
    """
    document = _document.get()
    stream = sys.stdout if document is None else document.stream
    encoding = getattr(stream, "encoding", None) or "utf-8"
    plain = codecs.lookup(encoding).name != "utf-8"
    text = json.dumps(value, ensure_ascii=plain, indent=2, default=str)
    if document is not None:
        document.written = True
    write("".join([c if c == "\n" or is_harmless(c) else json.dumps(c)[1:-1] for c in text]))


def write_exactly(text: str) -> None:
    """Write a document to stdout as UTF-8, whatever the terminal's encoding, with nothing added and nothing replaced.

    Raises:
        RunError: stdout is closed, or what it was redirected to is full.
    """
    with _stdout() as stream:
        stream.flush()
        stream.buffer.write(text.encode("utf-8", "backslashreplace"))
        stream.buffer.flush()


@contextlib.contextmanager
def _stdout() -> Iterator[Any]:
    document = _document.get()
    stream = sys.stdout if document is None else document.stream
    if stream is None:
        raise RunError("the result cannot be printed: stdout is closed")
    try:
        yield stream
    except OSError as error:
        if is_unread(error):  # whoever reads has read enough
            raise
        raise RunError(unprintable(error)) from error


def version() -> str:
    """The version of the library."""
    # The package imports all of its parts, so a part that imports it would close a circle.
    found: str = sys.modules["textgrad_engine"].__version__
    return found


def width() -> int:
    """Columns of the terminal, or of COLUMNS; 80 where there is neither."""
    return max(40, shutil.get_terminal_size((80, 24)).columns)


def at_terminal() -> bool:
    """Whether stdout is a terminal; a closed one is none."""
    return sys.stdout is not None and sys.stdout.isatty()


def colors() -> bool:
    """Whether stdout takes colors as escape codes: a terminal, unless it or NO_COLOR says otherwise; or by FORCE_COLOR.

    As of https://no-color.org and https://force-color.org; who sets both wants none.
    """
    if os.environ.get("NO_COLOR"):
        return False
    if os.environ.get("FORCE_COLOR"):  # such as for `show RUN | less -R`
        return True
    return at_terminal() and os.environ.get("TERM") != "dumb" and not prints_codes()
