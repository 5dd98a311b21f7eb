"""`Language`: new lines are written in the language that was asked for."""

from __future__ import annotations

from dataclasses import dataclass

from textgrad_engine.checks import check
from textgrad_engine.optim.contracts.base import say
from textgrad_engine.optim.contracts.detect import LANGUAGES, language_of, prose_of

_SHOWN = 300
"""Characters of a line that are shown."""


@dataclass(frozen=True)
class Language:
    r"""What is added to the text must not be in another language.

    Each new line is checked alone, then all together. Text whose language cannot be told passes: a few words, code,
    names, quoted words, a language that is not among `LANGUAGES`.

    Args:
        code: the language, in two letters of ISO 639-1, such as ``"en"``.

    Raises:
        ValueError: it is not among `LANGUAGES`.

    Example:
        >>> contract = Language("en")
        >>> print(contract.problem("Sort the mail.", "Sort the mail.\nAntworte immer auf die Frage und nicht mehr."))
        the text is to be in English, and this is German:
        <line-8ebada33>
        Antworte immer auf die Frage und nicht mehr.
        </line-8ebada33>
    """

    code: str

    def __post_init__(self) -> None:
        check(Language, vars(self))
        if self.code not in LANGUAGES:
            raise ValueError(f"Language: {self.code!r} cannot be told from others; known are {', '.join(LANGUAGES)}")

    def describe(self, before: str) -> str:
        """Names the language."""
        return say("language", language=LANGUAGES[self.code], other=None, line="")

    def problem(self, before: str, after: str) -> str | None:
        """Looks at the lines that are new."""
        old = set(prose_of(before).split("\n"))
        new = [line for line in prose_of(after).split("\n") if line not in old]
        for piece in (*new, "\n".join(new)):
            other = language_of(piece)
            if other is not None and other != self.code:
                return say("language", language=LANGUAGES[self.code], other=LANGUAGES[other], line=piece[:_SHOWN])
        return None
