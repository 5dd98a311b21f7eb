"""What a secret looks like, wherever it stands: keys and tokens by their form."""

from __future__ import annotations

import re

HIDDEN = "[redacted]"
"""What stands where a secret was."""

# A digit is asked for, because "sk-learn-compatible-estimator" and "basic understanding" are text. Before a key may
# stand the end of a line or a tab, as `repr` and JSON write them.
_LOOKS_SECRET = re.compile(
    r"(?:(?<![A-Za-z0-9])|(?<=\\[nrt]))(?:sk|rk|pk)-(?=[A-Za-z_-]{0,64}\d)[A-Za-z0-9_-]{16,}"  # OpenAI's form
    r"|(?i:(?<=bearer )|(?<=basic ))(?=[A-Za-z._~+/=-]{0,64}\d)[A-Za-z0-9._~+/=-]{16,}"
    r"|(?<=://)[^/\s@\"'<>]+(?=@)"  # name and password in an address
)


def without_keys(text: str) -> str:
    """A text without what looks like a secret: a key, what follows "Bearer", user and password in an address.

    Args:
        text: the text.

    Example:
        >>> without_keys("sk-0123456789abcdef0 of https://me:secret@host/v1")
        '[redacted] of https://[redacted]@host/v1'
    """
    return _LOOKS_SECRET.sub(HIDDEN, text)
