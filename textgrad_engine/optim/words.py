"""The words of a text, for what compares texts by them: written differently, the same words are equal."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterable

from textgrad_engine.data.casefold import folded

# Scripts that put no space between words: each of their letters is a word here.
_DENSE = "\u3005-\u3007\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\U00020000-\U0003ffff"  # Chinese and Japanese
_LOOSE = "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff"  # Thai, Lao, Burmese, Khmer
_UNSPACED = _DENSE + _LOOSE
# Signs that stand on letters, which \w leaves out: the languages of India could not be read without theirs.
_SIGNS = (
    "\u0300-\u036f\u0483-\u0487\u0591-\u05c7\u0610-\u061a\u064b-\u065f\u0670\u06d6-\u06ed\u0900-\u0963\u0966-\u0dff"
)
_WORD = re.compile(rf"[{_UNSPACED}]|(?:[^\W_{_UNSPACED}]|[{_SIGNS}])+")
_ASCII_WORD = re.compile("[a-z0-9]+")  # the same where there are no other letters, in a third of the time

# How many letters make a word, by and large: of Chinese and Japanese, and of Thai and its like.
_LETTERS_OF_A_WORD = {"dense": 2, "loose": 4}
_IS_UNSPACED = re.compile(f"[{_UNSPACED}]")
_LETTER = re.compile(rf"(?P<dense>[{_DENSE}])|(?P<loose>[{_LOOSE}])")


def words_of(text: str) -> list[str]:
    r"""The words of a text, in order, without case, punctuation and the ways to encode a letter.

    Where a script has no spaces between words, such as Chinese, each letter is one.

    Example:
        >>> words_of("Don't SHOUT,\nplease! 不要喊")
        ['don', 't', 'shout', 'please', '不', '要', '喊']
    """
    text = folded(text.replace("\u200b", " "))  # a space without width, where a line may end between two words
    return (_ASCII_WORD if text.isascii() else _WORD).findall(text)


def size_of(word: str) -> float:
    """How much of a word one of `words_of` is: a letter of a script without spaces is a part of one only.

    Example:
        >>> size_of("parcel"), size_of("荷"), size_of("พ")
        (1.0, 0.5, 0.25)
    """
    return 1 / _LETTERS_OF_A_WORD.get(_kind(word), 1)


def together(words: Iterable[str]) -> str:
    """Words as they are read: spaces between those of scripts that have them.

    Example:
        >>> together(["the", "荷", "物", "box"])
        'the 荷物 box'
    """
    text = " ".join(words)
    return re.sub(rf"(?<=[{_UNSPACED}]) (?=[{_UNSPACED}])", "", text)


def terms_of(text: str) -> list[str]:
    """What tells texts of one matter from others: words, and in scripts without spaces runs of as many letters as most
    words have, since single letters are in all texts.

    Source: Nie, Gao, Zhang, Zhou, "On the use of words and n-grams for Chinese information retrieval" (2000).

    Example:
        >>> terms_of("My bill: 荷物が")
        ['my', 'bill', '荷物', '物が']
    """
    words = words_of(text)
    if _IS_UNSPACED.search(" ".join(words)) is None:  # a document of thousands of words need not be looked at by word
        return words
    terms: list[str] = []
    for kind, group in itertools.groupby(words, key=_kind):
        length = _LETTERS_OF_A_WORD.get(kind, 1)
        terms += map("".join, grams(list(group), length))
    return terms


def _kind(word: str) -> str:
    found = _LETTER.fullmatch(word)
    return (found.lastgroup or "") if found is not None else ""


def grams(words: list[str], n: int) -> list[tuple[str, ...]]:
    """The runs of n words, in order; one that is shorter when there are not so many words.

    Example:
        >>> grams(["a", "b", "c"], 2), grams(["a"], 2), grams([], 2)
        ([('a', 'b'), ('b', 'c')], [('a',)], [])
    """
    if len(words) < n:
        return [tuple(words)] if words else []
    return [tuple(words[start : start + n]) for start in range(len(words) - n + 1)]
