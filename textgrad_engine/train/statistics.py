"""How sure a score is, and whether one program is better than another: pure functions, and the places they live in.

`intervals`: one mean, a paired difference, the verdict. `clusters`: examples that belong together. `repeats`: several
samples of one example. `permutation`: sign flips, and the correction for many candidates. `power`: what a comparison
can see. `margin`: whether a mean is lower by less than a margin. `bounds`: what missing scores could change. `pseudo`:
what a few scores have not shown. `distributions`: normal, Student's t, beta. Each names its sources.
"""

from textgrad_engine.train.bounds import item_bounds, worst_case_difference, worst_case_mean
from textgrad_engine.train.clusters import (
    bootstrap_interval,
    clustered_difference,
    clustered_error,
    clustered_interval,
)
from textgrad_engine.train.distributions import incomplete_beta, normal_cdf, normal_quantile, t_cdf, t_quantile
from textgrad_engine.train.intervals import (
    PairedDifference,
    Verdict,
    mcnemar,
    mean_interval,
    paired_difference,
    verdict,
    wilson_interval,
)
from textgrad_engine.train.margin import lowest_mean, needed_for_margin, shown_margin
from textgrad_engine.train.permutation import max_t, sign_flip
from textgrad_engine.train.power import mcnemar_power, minimum_detectable_effect, needed_alike, needed_n
from textgrad_engine.train.repeats import Spread, item_means, variance_split

__all__ = [
    "PairedDifference",
    "Spread",
    "Verdict",
    "bootstrap_interval",
    "clustered_difference",
    "clustered_error",
    "clustered_interval",
    "incomplete_beta",
    "item_bounds",
    "item_means",
    "lowest_mean",
    "max_t",
    "mcnemar",
    "mcnemar_power",
    "mean_interval",
    "minimum_detectable_effect",
    "needed_alike",
    "needed_for_margin",
    "needed_n",
    "normal_cdf",
    "normal_quantile",
    "paired_difference",
    "shown_margin",
    "sign_flip",
    "t_cdf",
    "t_quantile",
    "variance_split",
    "verdict",
    "wilson_interval",
    "worst_case_difference",
    "worst_case_mean",
]
