"""Which language a text is in, told by its script and its commonest words; no model, no dictionary.

Function words make up about half of any running text, and few of them are shared, so that a handful tells languages of
one script apart (Ingle, "A language identification table", 1976; Grefenstette, "Comparing two language identification
schemes", 1995, measures words against letter trigrams).
"""

from __future__ import annotations

import re
from collections import Counter

from textgrad_engine.data.casefold import folded
from textgrad_engine.optim.contracts.common_words import COMMON_WORDS
from textgrad_engine.optim.words import words_of

LANGUAGES = {
    "ar": "Arabic",
    "de": "German",
    "el": "Greek",
    "en": "English",
    "es": "Spanish",
    "fr": "French",
    "he": "Hebrew",
    "hi": "Hindi",
    "it": "Italian",
    "ja": "Japanese",
    "ko": "Korean",
    "nl": "Dutch",
    "pl": "Polish",
    "pt": "Portuguese",
    "ru": "Russian",
    "sv": "Swedish",
    "th": "Thai",
    "tr": "Turkish",
    "uk": "Ukrainian",
    "zh": "Chinese",
}
"""The languages that are told apart, by their code of ISO 639-1."""

_LETTERS = 12
"""Letters below which nothing is said; one of Chinese, Japanese or Korean counts as three."""
_HITS = 3
"""Common words that a language must show, and so many times as many as the next (`_AHEAD`)."""
_AHEAD = 1.5
_SHARE = 0.6
"""The share of the letters that the script of a language must have."""

# What is no running text: fenced and inline code, quoted words, addresses, tags and slots.
_NO_PROSE = re.compile(
    r"```.*?(?:```|\Z)|`[^`\n]*`|\"[^\"\n]*\"|[“„][^”“\n]*[”“]|«[^»\n]*»|「[^」\n]*」|『[^』\n]*』|https?://\S+|<[^<>\n]*>|\{[^{}\n]*\}",
    re.DOTALL,
)

_SCRIPTS = {
    "latin": "A-Za-z\u00c0-\u024f\u1e00-\u1eff",
    "cyrillic": "\u0400-\u052f",
    "el": "\u0370-\u03ff\u1f00-\u1fff",
    "he": "\u0590-\u05ff",
    "ar": "\u0600-\u06ff\u0750-\u077f",
    "hi": "\u0900-\u097f",
    "th": "\u0e00-\u0e7f",
    "ko": "\u1100-\u11ff\uac00-\ud7af",
    "kana": "\u3040-\u30ff",
    "han": "\u3400-\u4dbf\u4e00-\u9fff",
}
_LETTER = {script: re.compile(f"[{letters}]") for script, letters in _SCRIPTS.items()}
_DENSE = ("ko", "kana", "han")

# Letters that Chinese writes and Japanese does not, simplified and traditional ones; a list of terms has no kana in
# Japanese either.
_CHINESE = re.compile(
    "[这们吗么请给让为从时对说应该仅则问单类还无个东车长门见语话选择阅读队适发过进动现实业产关开头认识计记设许论证评译词详误谁调谈谢账货费质资输转轻运边达远连"
    "這們嗎麼你您她妳它呢吧哪怎沒說從應對會來與讓處單變關實擇讀發轉當點號]"
)

_WORDS = {
    script: {language: frozenset(folded(words).split()) for language, words in languages.items()}
    for script, languages in COMMON_WORDS.items()
}


def prose_of(text: str) -> str:
    """What is running text: without code, quoted words, addresses, tags and slots, which may be in any language.

    Example:
        >>> prose_of('Say "oui" to {name}.')
        'Say   to  .'
    """
    return _NO_PROSE.sub(" ", text)


def language_of(text: str) -> str | None:
    """The code of the language of a text; None where it cannot be told.

    Example:
        >>> language_of("Write the answer in one word, and nothing else.")
        'en'
        >>> language_of("billing, shipping, refund") is None
        True
    """
    prose = prose_of(text)
    letters = {
        script: len(pattern.findall(prose)) * (3 if script in _DENSE else 1) for script, pattern in _LETTER.items()
    }
    total = sum(letters.values())
    if total < _LETTERS:
        return None
    east = letters["han"] + letters["kana"]
    if east >= _SHARE * total:
        if letters["kana"] >= 0.1 * east:
            return "ja"
        return "zh" if _CHINESE.search(prose) is not None else None
    script = max(letters, key=lambda name: letters[name])
    if letters[script] < _SHARE * total:
        return None
    return _by_words(prose, _WORDS[script]) if script in _WORDS else script


def _by_words(prose: str, known: dict[str, frozenset[str]]) -> str | None:
    counts = Counter(words_of(prose))
    hits = {language: sum(counts[word] for word in words & counts.keys()) for language, words in known.items()}
    best, second = sorted(hits, key=lambda language: (-hits[language], language))[:2]
    if hits[best] < _HITS or hits[best] < _AHEAD * hits[second]:
        return None
    return best
