"""What a secret looks like, wherever it stands: keys and tokens by their form."""

from __future__ import annotations

import re

HIDDEN = "[redacted]"
"""What stands where a secret was."""

# A digit is asked for, because "sk-learn-compatible-estimator" and "basic understanding" are text. Before a key may
# stand the end of a line or a tab, as `repr` and JSON write them.
_KEY = re.compile(
    r"(?:(?<![A-Za-z0-9])|(?<=\\[nrt]))(?:"
    r"(?:sk|rk|pk)-(?=[A-Za-z_-]{0,64}\d)[A-Za-z0-9_-]{16,}"  # OpenAI's form
    r"|(?:csk|xai|pplx)-(?=[A-Za-z]{0,64}\d)[A-Za-z0-9]{32,}"  # Cerebras, xAI, Perplexity: models have hyphens
    r"|nvapi-(?=[A-Za-z_-]{0,64}\d)[A-Za-z0-9_-]{40,}"  # NVIDIA
    r"|(?:gsk|gh[oprsu]|r8|fw)_(?=[A-Za-z]{0,64}\d)[A-Za-z0-9]{20,}"  # Groq, GitHub, Replicate, Fireworks
    r"|(?:github_pat|tgp_v1)_(?=[A-Za-z_-]{0,64}\d)[A-Za-z0-9_-]{20,}"  # GitHub's newer ones, Together
    r"|hf_[A-Za-z0-9]{30,}"  # Hugging Face, mostly without a digit
    r"|AIza[A-Za-z0-9_-]{35}|A[KS]IA[A-Z0-9]{16}(?![A-Za-z0-9])|dapi[0-9a-f]{32}"  # Google, AWS, Databricks
    r")"
)
_KEY_BEGINS = (
    *("sk-", "rk-", "pk-", "xai-", "nvapi-", "pplx-", "gsk_", "hf_", "gho_", "ghp_", "ghr_", "ghs_", "ghu_", "r8_"),
    *("fw_", "github_pat_", "tgp_v1_", "AIza", "AKIA", "ASIA", "dapi"),
)
"""One of these is in each text that holds a key: to look for a word takes a hundredth of the time of a pattern."""

_SHORTEST = 19
"""Characters of the shortest key: "sk-" and 16 more. "basic " and the 16 behind it are more."""

# A JSON web token: three parts, of which the first may be in the middle of a word. It is looked for in words that two
# such parts follow, as otherwise each "eyJ" in a word would be followed up to its end.
_BEFORE_PARTS = re.compile(r"(?<![A-Za-z0-9_-])[A-Za-z0-9_-]++(?=(\.eyJ[A-Za-z0-9_-]{8,}+\.[A-Za-z0-9_-]{8,}+))")
_FIRST_PART = re.compile(r"(?:(?<![A-Za-z0-9])|(?<=\\[nrt]))eyJ[A-Za-z0-9_-]{8}")

_SENT_AS = re.compile(r"(?i)(?:(?<=bearer )|(?<=basic ))(?=[A-Za-z._~+/=-]{0,64}\d)[A-Za-z0-9._~+/=-]{16,}")
_IN_ADDRESS = re.compile(r"(?<=://)[^/\s@\"'<>]+(?=@)")  # name and password


def without_keys(text: str) -> str:
    """A text without what looks like a secret: a key, what follows "Bearer", user and password in an address.

    Args:
        text: the text.

    Example:
        >>> without_keys("sk-0123456789abcdef0 of https://me:secret@host/v1")
        '[redacted] of https://[redacted]@host/v1'
    """
    if len(text) >= _SHORTEST:  # names of fields and the like are shorter
        for each in _KEY_BEGINS:  # a generator takes longer than to look, and each text of a run is looked at
            if each in text:
                text = _KEY.sub(HIDDEN, text)
                break
        if "eyJ" in text:
            text = _without_web_tokens(text)
        lower = text.lower()
        if "bearer " in lower or "basic " in lower:
            text = _SENT_AS.sub(HIDDEN, text)
    return _IN_ADDRESS.sub(HIDDEN, text) if "://" in text and "@" in text else text


def _without_web_tokens(text: str) -> str:
    pieces, done = list[str](), 0
    for word in _BEFORE_PARTS.finditer(text):
        first = _FIRST_PART.search(text, max(word.start(), done), word.end())
        if first is not None:
            pieces += [text[done : first.start()], HIDDEN]
            done = word.end(1)
    return "".join([*pieces, text[done:]])


_HAS_NO_FORM = re.compile(r"(?=[0-9]*[A-Za-z])(?=[A-Za-z]*[0-9])[A-Za-z0-9]{32,}")


def as_name(given: str) -> str:
    """What was given as a name or an address, for a message: hidden where it may be a key without a form, as Azure's.

    In other texts such a one stays, as it may be a digest or an id.

    Example:
        >>> as_name("0123456789abcdef0123456789abcdef"), as_name("Qwen2.5-72B-Instruct")
        ('[redacted]', 'Qwen2.5-72B-Instruct')
    """
    return HIDDEN if _HAS_NO_FORM.fullmatch(given.strip()) else without_keys(given)
