"""The words of a text, for what compares texts by them: written differently, the same words are equal."""

from __future__ import annotations

import re
import unicodedata

__all__ = ["grams", "words_of"]

# Scripts that put no space between words: each of their letters is a word here.
_UNSPACED = "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\U00020000-\U0003ffff"
# Signs that stand on letters, which \w leaves out: the languages of India could not be read without theirs.
_SIGNS = (
    "\u0300-\u036f\u0483-\u0487\u0591-\u05c7\u0610-\u061a\u064b-\u065f\u0670\u06d6-\u06ed\u0900-\u0963\u0966-\u0dff"
)
_WORD = re.compile(rf"[{_UNSPACED}]|(?:[^\W_{_UNSPACED}]|[{_SIGNS}])+")


def words_of(text: str) -> list[str]:
    r"""The words of a text, in order, without case, punctuation and the ways to encode a letter.

    Where a script has no spaces between words, such as Chinese, each letter is one.

    Example:
        >>> words_of("Don't SHOUT,\nplease! 不要喊")
        ['don', 't', 'shout', 'please', '不', '要', '喊']
    """
    return _WORD.findall(unicodedata.normalize("NFKC", text).casefold())


def grams(words: list[str], n: int) -> list[tuple[str, ...]]:
    """The runs of n words, in order; one that is shorter when there are not so many words.

    Example:
        >>> grams(["a", "b", "c"], 2), grams(["a"], 2), grams([], 2)
        ([('a', 'b'), ('b', 'c')], [('a',)], [])
    """
    if len(words) < n:
        return [tuple(words)] if words else []
    return [tuple(words[start : start + n]) for start in range(len(words) - n + 1)]
