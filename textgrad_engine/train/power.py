"""How small a difference a comparison can see, and how many examples it takes to see a given one.

A comparison that shows nothing may have had no chance to: with 60 examples, a fifth of which change, four points more
are found one time in seventeen. The minimum detectable effect is the difference that is found with the wanted power.

Sources: Miller, arXiv:2411.00640 (power analysis), with t in place of the normal distribution as in Cohen, "Statistical
Power Analysis" (1988), chapter 2; Connor, Biometrics 43 (1987), for paired scores of 0 and 1; the exact power there is
the sum over the numbers of changed examples, as in Duffy, Biometrics 40 (1984). The levels that sign flips can come to
are those of Fisher's test in `train.permutation`.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence

from textgrad_engine.train.distributions import incomplete_beta, normal_cdf, normal_quantile, t_quantile
from textgrad_engine.train.intervals import mcnemar
from textgrad_engine.train.pseudo import WHOLE, added_share, weighed_sums

_EXACT = 500
"""Up to so many changed examples the power is added up term by term; beyond, the normal approximation is as good."""

_MOST = 10**9
"""Examples; who would need more will not collect them."""


def minimum_detectable_effect(
    n: int,
    *,
    sd: float | None = None,
    discordance: float | None = None,
    largest: float | None = None,
    power: float = 0.8,
    alpha: float = 0.05,
) -> float:
    """The smallest true difference that a paired comparison of n examples finds with the wanted power.

    With `sd`: of the paired t-test, ``(t(1 - alpha / 2) + t(power)) * sd / sqrt(n)`` with n - 1 degrees of freedom, at
    the level that the sign flips of so few examples come to; six of them must all have one sign at 5%. With `largest`,
    of normal differences and the interval that `paired_difference` gives between known limits. With `discordance`: of
    the exact McNemar test, for scores of 0 and 1, from its exact power.

    Args:
        n: how many examples, or clusters.
        sd: the standard deviation of the differences.
        discordance: the share of examples that only one of the two programs solves. A difference larger than it needs a
            larger share, and gets it.
        largest: beside `sd`, the largest difference that there can be, where the limits of the scores are known.
        power: the chance to find the difference.
        alpha: the chance to find one where there is none (two-sided).

    Returns:
        The difference; infinite where even the largest possible one would not be found.

    Raises:
        ValueError: not exactly one of `sd` and `discordance` is given, or an argument is out of range.

    Example:
        >>> round(minimum_detectable_effect(100, sd=0.5), 3)
        0.141
        >>> round(minimum_detectable_effect(60, discordance=0.2), 3)
        0.162
        >>> minimum_detectable_effect(5, discordance=0.2)
        inf
    """
    _check(sd, discordance, largest, power, alpha)
    if n < 1:
        raise ValueError(f"there is no comparison without examples, got n={n}")
    if sd is not None:
        by_flips = _by_flips(n, sd, power, alpha)
        if largest is None or math.isinf(by_flips):
            return by_flips
        falls_short = t_quantile(power, n - 1) * sd / math.sqrt(n)
        width = t_quantile(1 - alpha / 2, n + 1)
        found = functools.partial(_is_found, n, sd, largest, falls_short, width)
        return _bisected(found, by_flips, largest)
    assert discordance is not None
    return _by_mcnemar(n, discordance, power, alpha)


def needed_n(
    effect: float,
    *,
    sd: float | None = None,
    discordance: float | None = None,
    largest: float | None = None,
    power: float = 0.8,
    alpha: float = 0.05,
) -> int:
    """How many examples a paired comparison needs to find a difference with the wanted power.

    Args:
        effect: the true difference.
        sd: the standard deviation of the differences.
        discordance: for scores of 0 and 1: the share of examples that only one of the two programs solves.
        largest: beside `sd`, the largest difference that there can be, where the limits of the scores are known.
        power: the chance to find the difference.
        alpha: the chance to find one where there is none (two-sided).

    Raises:
        ValueError: not exactly one of `sd` and `discordance` is given, an argument is out of range, the effect is
            larger than the discordance or the largest difference, or it would take more than 10^9 examples.

    Example:
        >>> needed_n(0.5, sd=1), needed_n(0.2, sd=1)
        (34, 199)
        >>> needed_n(0.1, discordance=0.2)
        168
    """
    _check(sd, discordance, largest, power, alpha)
    if not 0 < abs(effect) < math.inf:
        raise ValueError(f"a difference of {effect} is found by no number of examples")
    effect = abs(effect)
    z, beta = normal_quantile(1 - alpha / 2), normal_quantile(power)
    if sd is not None:
        if largest is not None and effect > largest:
            raise ValueError(f"a difference of {effect} is more than the largest one, largest={largest}")
        if ((z + max(beta, 0.0)) * sd / effect) ** 2 > _MOST:
            raise ValueError(f"a difference of {effect} with sd={sd} needs more than {_MOST} examples")
        seen = functools.partial(minimum_detectable_effect, sd=sd, largest=largest, power=power, alpha=alpha)
        return _first_found(lambda n: seen(n) <= effect, 2)
    assert discordance is not None
    if effect > discordance:
        raise ValueError(
            f"a difference of {effect} changes more than the share discordance={discordance} of the examples"
        )
    by_normal = (z * math.sqrt(discordance) + beta * math.sqrt(discordance - effect**2)) ** 2 / effect**2
    if by_normal > _MOST:
        raise ValueError(f"a difference of {effect} with discordance={discordance} needs more than {_MOST} examples")
    # The exact test is more cautious than Connor's formula, by about 1 / effect examples.
    n = math.ceil(by_normal + 1 / effect)
    if n * discordance > _EXACT:
        return n
    n = max(1, math.ceil(by_normal))
    while n > 1 and mcnemar_power(n - 1, effect, discordance, alpha) >= power:
        n -= 1
    while mcnemar_power(n, effect, discordance, alpha) < power:
        n += 1
    return n


def needed_alike(
    differences: Sequence[float], largest: float | None = None, *, power: float = 0.8, alpha: float = 0.05
) -> int:
    """How many examples a paired comparison needs to find a gain, where they change as these did.

    `needed_n` supposes normal differences, of which some are falls. Where none was seen, as where a few examples gain a
    little and the others stay, an interval between known limits allows for the largest fall that there can be, and is
    above 0 much later.

    Args:
        differences: of the examples that there are; their mean is the gain.
        largest: the largest difference that there can be, where the limits of the scores are known. Where all
            differences are of that size or 0, the test is McNemar's.
        power: the chance to find the gain.
        alpha: the chance to find one where there is none (two-sided).

    Raises:
        ValueError: the mean is not above 0, the differences are all equal, an argument is out of range, or it would
            take more than 10^9 examples.

    Example:
        >>> few_gain_a_little = [0.1] * 3 + [0.0] * 7
        >>> needed_alike(few_gain_a_little), needed_alike(few_gain_a_little, largest=1.0)
        (23, 115)
    """
    n = len(differences)
    gain = math.fsum(differences) / n
    if not gain > 0:
        raise ValueError(f"there is no gain to be found, as the mean difference is {gain}")
    if largest is not None and all(abs(each) in (0, largest) for each in differences):
        share = sum(map(bool, differences)) / n
        return needed_n(min(gain / largest, share), discordance=share, power=power, alpha=alpha)
    squares = math.fsum((each - gain) ** 2 for each in differences)
    sd = math.sqrt(squares / (n - 1)) if n > 1 else 0.0
    least = needed_n(gain, sd=sd, power=power, alpha=alpha)
    if largest is None:
        return least
    falls, rises = ((weights / n, squares / n) for weights, squares in weighed_sums(differences, largest))

    def found(count: int) -> bool:
        seen = gain - t_quantile(power, count - 1) * sd / math.sqrt(count)
        return _leaves_out_0(count, seen, sd, largest, falls, rises, t_quantile(1 - alpha / 2, count + 1))

    return _first_found(found, least)


def mcnemar_power(n: int, effect: float, discordance: float, alpha: float = 0.05) -> float:
    """The chance that the exact McNemar test finds a difference, in its right direction.

    Itself exact, but where more than 500 examples change.

    Args:
        n: how many examples.
        effect: the true difference of the two rates, 0 or more.
        discordance: the share of examples that only one of the two programs solves; at least the effect.
        alpha: the test's level (two-sided).

    Raises:
        ValueError: an argument is out of range.

    Example:
        >>> round(mcnemar_power(60, 0.2, 0.3), 3)
        0.797
    """
    if n < 0 or not 0 <= effect <= discordance <= 1 or not 0 < alpha < 1:
        raise ValueError(
            f"expected n >= 0, 0 <= effect <= discordance <= 1 and alpha between 0 and 1, got n={n}, effect={effect}, "
            f"discordance={discordance}, alpha={alpha}"
        )
    if discordance == 0:
        return 0.0
    if n * discordance > _EXACT:  # Connor's, with the continuity correction that the exact test amounts to
        spread = math.sqrt(max(discordance - effect**2, 1e-300))
        return normal_cdf(
            ((effect - 1 / n) * math.sqrt(n) + normal_quantile(alpha / 2) * math.sqrt(discordance)) / spread
        )
    right = (discordance + effect) / (2 * discordance)  # of the changed examples, how many the better program solves
    middle, reach = n * discordance, 8 * math.sqrt(n * discordance * (1 - discordance)) + 20
    total = 0.0
    for changed in range(max(1, math.floor(middle - reach)), min(n, math.ceil(middle + reach)) + 1):
        lost = _most_lost(changed, alpha)
        if lost < 0:
            continue
        weight = _binomial(n, changed, discordance)
        # P(at least changed - lost of the changed ones are gains), as a beta integral.
        total += weight * (1.0 if right == 1 else incomplete_beta(changed - lost, lost + 1, right))
    return min(1.0, total)


@functools.lru_cache(maxsize=100_000)
def _most_lost(changed: int, alpha: float) -> int:
    """Of so many changed examples, how many may be lost ones for the test still to find a gain; -1 for none."""
    lost = max(-1, math.floor(changed / 2 + normal_quantile(alpha / 2) * math.sqrt(changed) / 2))
    while lost >= 0 and mcnemar(changed - lost, lost) > alpha + 1e-12:
        lost -= 1
    while 2 * (lost + 1) < changed and mcnemar(changed - lost - 1, lost + 1) <= alpha + 1e-12:
        lost += 1
    return lost


def _binomial(n: int, k: int, p: float) -> float:
    if p == 1:
        return float(k == n)
    ways = math.lgamma(n + 1) - math.lgamma(k + 1) - math.lgamma(n - k + 1)
    return math.exp(ways + k * math.log(p) + (n - k) * math.log1p(-p))


@functools.lru_cache(maxsize=1000)  # of so many examples few numbers of them change, and each takes 10 ms
def _by_mcnemar(n: int, discordance: float, power: float, alpha: float) -> float:
    """The smallest difference that the exact McNemar test finds."""
    return _bisected(lambda effect: mcnemar_power(n, effect, max(discordance, effect), alpha) >= power, 0.0, 1.0)


def _by_flips(n: int, sd: float, power: float, alpha: float) -> float:
    """The smallest difference that the t-test and the sign flips find, of any normal differences."""
    ways = 2.0 ** min(n - 1, 50)  # to flip the signs; beyond, the level is as good as alpha
    rarer = math.floor(alpha * ways + 1e-9)  # so many of them may be as extreme as what is seen
    if rarer < 1:
        return math.inf
    level = rarer / ways
    by_t = (t_quantile(1 - level / 2, n - 1) + t_quantile(power, n - 1)) / math.sqrt(n)
    all_alike = normal_quantile(power ** (1 / n)) if rarer == 1 else 0.0
    return max(by_t, all_alike) * sd


def _is_found(n: int, sd: float, largest: float, falls_short: float, width: float, effect: float) -> bool:
    """Whether the interval with `pseudo_differences` leaves out 0 where the mean that is seen falls short by so much.

    Args:
        n: how many normal differences.
        sd: their standard deviation.
        largest: the largest that there can be.
        falls_short: of the effect.
        width: half of the interval, in standard errors.
        effect: the mean of all differences that there could be.
    """
    falls, rises = (_weighed_normal(sign * effect / largest, sd / largest) for sign in (-1, 1))
    return _leaves_out_0(n, effect - falls_short, sd, largest, falls, rises, width)


def _weighed_normal(mean: float, sd: float) -> tuple[float, float]:
    """The means of `weight` and of `weighed` over normal differences, where those below 0 count nothing."""
    small, large = _moments(mean, sd, 0.0, WHOLE), _moments(mean, sd, WHOLE, math.inf)
    return small[2] / WHOLE**2 + large[0], small[4] / WHOLE**2 + large[2]


def _moments(mean: float, sd: float, low: float, high: float) -> list[float]:
    """The mean of x**k, for k from 0 to 4, of what is normal and lies between the two, 0 elsewhere; by parts."""

    def at(edge: float, k: int) -> float:
        return edge**k * math.exp(-(((edge - mean) / sd) ** 2) / 2) / math.sqrt(2 * math.pi) if edge < math.inf else 0.0

    found = [normal_cdf((high - mean) / sd) - normal_cdf((low - mean) / sd)]
    for k in range(1, 5):
        before = (k - 1) * sd * sd * found[k - 2] if k > 1 else 0.0
        found.append(mean * found[k - 1] + before + sd * (at(low, k - 1) - at(high, k - 1)))
    return [max(0.0, each) for each in found]


def _leaves_out_0(
    n: int,
    mean: float,
    sd: float,
    largest: float,
    falls: tuple[float, float],
    rises: tuple[float, float],
    width: float,
) -> bool:
    """Whether the interval of such differences with `pseudo_differences` is above 0.

    Args:
        n: how many.
        mean: of them.
        sd: their standard deviation.
        largest: the largest that there can be.
        falls: the means over all of them of `weight` and of `weighed` of those below 0, as shares of the largest.
        rises: the same of those above.
        width: half of the interval, in standard errors.
    """
    down, up = (largest * added_share(n * weights, n * squares) for weights, squares in (falls, rises))
    centre = (n * mean + up - down) / (n + 2)
    squares = (n - 1) * sd * sd + n * mean * mean + up * up + down * down - (n + 2) * centre * centre
    return centre >= width * math.sqrt(max(0.0, squares) / (n + 1) / (n + 2))


def _bisected(found: Callable[[float], bool], low: float, high: float) -> float:
    """The least effect between the two that is found, by bisection; infinite where the highest is not."""
    if not low <= high or not found(high):
        return math.inf
    if found(low):
        return low
    width = high
    while high - low > 1e-4 * width:
        middle = (low + high) / 2
        low, high = (low, middle) if found(middle) else (middle, high)
    return high


def _first_found(found: Callable[[int], bool], least: int) -> int:
    """The fewest examples, `least` or more, with which something is found; with more of them it is, too."""
    if found(least):
        return least
    low, n = least, 2 * least
    while not found(n):
        if n > _MOST:
            raise ValueError(f"it needs more than {_MOST} examples")
        low, n = n, 2 * n
    while n - low > 1:
        middle = (low + n) // 2
        low, n = (low, middle) if found(middle) else (middle, n)
    return n


def _check(sd: float | None, discordance: float | None, largest: float | None, power: float, alpha: float) -> None:
    if (sd is None) == (discordance is None):
        raise ValueError("give either sd, the spread of the differences, or discordance, for scores of 0 and 1")
    if sd is not None and not 0 < sd < math.inf:
        raise ValueError(f"a standard deviation is above 0, got sd={sd}")
    if largest is not None and (sd is None or not 0 < largest < math.inf):
        raise ValueError(f"the largest difference is above 0 and goes with sd, got largest={largest}, sd={sd}")
    if discordance is not None and not 0 < discordance <= 1:
        raise ValueError(f"a share of examples is above 0 and at most 1, got discordance={discordance}")
    if not 0 < alpha < 1 or not alpha < power < 1:
        raise ValueError(f"expected 0 < alpha < power < 1, got alpha={alpha}, power={power}")
