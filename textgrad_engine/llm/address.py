"""The address of an endpoint: OpenAI's own, and what is none."""

from __future__ import annotations

import re
from urllib.parse import urlsplit

from textgrad_engine.keys import as_name
from textgrad_engine.llm.redact import without_password

DEFAULT_BASE_URL = "https://api.openai.com/v1"


def checked_host(base_url: str) -> str:
    """The host of an endpoint's address.

    Raises:
        ValueError: it is no address, or one with a query or fragment. No path could be put behind that, and a key in
            it would be written down wherever the address is.

    Example:
        >>> checked_host("http://localhost:11434/v1")
        'localhost'
    """
    base_url = base_url.strip()
    address, *rest = re.split("[?#]", base_url, maxsplit=1)
    shown, *_ = re.split("[?#]", without_password(base_url), maxsplit=1)  # in that order: a password may hold them
    try:
        parts = urlsplit(address)
        good = parts.scheme in ("http", "https") and bool(parts.hostname) and address.isprintable()
        _ = parts.port  # looks whether it is a number
    except ValueError:
        good = False
    if not good:
        if "://" not in shown and as_name(shown) != shown:
            raise ValueError("base_url is what looks like a key; that is given by OPENAI_API_KEY or api_key=...")
        raise ValueError(f"base_url = {shown!r} is no address such as http://localhost:11434/v1")
    if rest:
        raise ValueError(
            f"base_url = {shown!r} with something behind '?' or '#': leave that out; a key is "
            "given by OPENAI_API_KEY or api_key=..., and Azure's address that ends in /openai/v1 needs no api-version"
        )
    return parts.hostname or ""
