"""Money as people read it."""

from __future__ import annotations


def money(dollars: float | None) -> str:
    """What something costs; "unknown" when nobody knows, and never $0.00 for what is not free.

    Example:
        >>> money(0.0), money(1.234), money(0.00042), money(None)
        ('$0.00', '$1.23', '$0.00042', 'unknown')
    """
    if dollars is None:
        return "unknown"
    if dollars and abs(dollars) < 0.01:
        return f"${dollars:.5f}" if dollars >= 0.00001 else "under $0.00001"
    return f"${dollars:,.2f}"


def cost(dollars: float | None) -> str:
    """`money` in a sentence, where "unknown" alone would not say what is.

    Example:
        >>> cost(1.234), cost(None)
        ('$1.23', 'cost unknown')
    """
    return "cost unknown" if dollars is None else money(dollars)
