"""The normal, Student's t and beta distributions, to the last digits, without scipy.

Sources: NIST Digital Library of Mathematical Functions, section 8.17 (the incomplete beta function); Lentz's method for
continued fractions in the form of Thompson and Barnett (1986).
"""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Callable

_NORMAL_FROM = 1e7  # degrees of freedom from which t and normal differ by less than 1e-7 anywhere


def normal_cdf(x: float) -> float:
    """The share of a standard normal distribution below x.

    Example:
        >>> round(normal_cdf(1.96), 6)
        0.975002
    """
    return 0.5 * math.erfc(-x / math.sqrt(2))


def normal_quantile(p: float) -> float:
    """The value below which the share p of a standard normal distribution lies.

    Raises:
        ValueError: p is not above 0 and below 1.

    Example:
        >>> round(normal_quantile(0.975), 6)
        1.959964
    """
    return _quantile(p, lambda x: 0.5 * math.erfc(x / math.sqrt(2)))


def t_cdf(x: float, df: float) -> float:
    """The share of Student's t distribution with df degrees of freedom below x.

    Raises:
        ValueError: df is not above 0, or x is not a number.

    Example:
        >>> round(t_cdf(2.228139, 10), 6)
        0.975
    """
    if math.isnan(x):
        raise ValueError("x is not a number")
    upper = t_upper(abs(x), df)
    return 1 - upper if x > 0 else upper


def t_quantile(p: float, df: float) -> float:
    """The value below which the share p of Student's t distribution with df degrees of freedom lies.

    Raises:
        ValueError: p is not above 0 and below 1, or df is not above 0.

    Example:
        >>> round(t_quantile(0.975, 10), 6)
        2.228139
    """
    return _t_quantile(p, df)


@functools.lru_cache(maxsize=1024)  # intervals ask for the same few again and again, and each takes some 130 integrals
def _t_quantile(p: float, df: float) -> float:
    return _quantile(p, lambda x: t_upper(x, df))


def t_upper(x: float, df: float) -> float:
    """The share of Student's t above x, for x of at least 0; keeps the digits of a small tail.

    Raises:
        ValueError: df is not above 0.

    Example:
        >>> round(t_upper(2.228139, 10), 6), f"{t_upper(12, 700):.1e}"
        (0.025, '1.3e-30')
    """
    if not df > 0:
        raise ValueError(f"degrees of freedom are above 0, got df={df}")
    if df >= _NORMAL_FROM:
        return 0.5 * math.erfc(x / math.sqrt(2))
    if math.isinf(x):
        return 0.0
    if x * x * (df + 2) < 3 * df:  # by the part below x, whose fraction converges here, and whose digits are all there
        return 0.5 - 0.5 * incomplete_beta(0.5, df / 2, x * x / (df + x * x))
    return 0.5 * incomplete_beta(df / 2, 0.5, df / (df + x * x))


def incomplete_beta(a: float, b: float, x: float) -> float:
    """The regularized incomplete beta function, by its continued fraction (DLMF 8.17.22) and Lentz's method.

    Args:
        a: first parameter, above 0.
        b: second parameter, above 0.
        x: upper end of the integral, 0 to 1.

    Raises:
        ValueError: an argument is outside of its range.

    Example:
        >>> round(incomplete_beta(2, 3, 0.5), 6)
        0.6875
    """
    if not (a > 0 and b > 0 and 0 <= x <= 1):
        raise ValueError(f"expected a > 0, b > 0 and x between 0 and 1, got a={a}, b={b}, x={x}")
    if x in (0, 1):
        return float(x)
    # The fraction converges fast only below the mean; beyond it the mirrored one does.
    if x > (a + 1) / (a + b + 2):
        return 1 - incomplete_beta(b, a, 1 - x)
    front = math.exp(
        math.lgamma(a + b) - math.lgamma(a) - math.lgamma(b) + a * math.log(x) + b * math.log1p(-x) - math.log(a)
    )
    tiny = 1e-300
    c, d = 1.0, 1 / (1 - (a + b) * x / (a + 1) or tiny)
    value = d
    for step in itertools.count(1):
        even = step * (b - step) * x / ((a + 2 * step - 1) * (a + 2 * step))
        odd = -(a + step) * (a + b + step) * x / ((a + 2 * step) * (a + 2 * step + 1))
        for term in (even, odd):
            d = 1 / (1 + term * d or tiny)
            c = 1 + term / c or tiny
            value *= c * d
        if abs(c * d - 1) < 1e-14:
            break
    return front * value


def _quantile(p: float, upper: Callable[[float], float]) -> float:
    """Solve ``upper(x) = 1 - p`` for a symmetric distribution, by bisection to the last digit."""
    if not 0 < p < 1:
        raise ValueError(f"a quantile is of a p above 0 and below 1, got {p}")
    tail = min(p, 1 - p)
    low, high = 0.0, 1.0
    while upper(high) > tail:
        low, high = high, high * 2
    while True:
        middle = (low + high) / 2
        if middle in (low, high):
            break
        low, high = (middle, high) if upper(middle) > tail else (low, middle)
    return -middle if p < 0.5 else middle
