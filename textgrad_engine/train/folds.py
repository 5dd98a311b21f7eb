"""What the runs of a cross-validation work with: examples dealt to folds."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

from textgrad_engine.data.dataset import Subset
from textgrad_engine.train.evaluator import clusters_of
from textgrad_engine.train.fold_parts import Part, Rows
from textgrad_engine.train.splits import equals


def parts_of(
    program: Callable[..., Any],
    examples: Rows,
    *,
    folds: int,
    val: float = 0.0,
    seed: int = 0,
    clusters: str | None = None,
) -> list[Part]:
    """What each run of a cross-validation works with, the run on all examples last.

    Args:
        program: whose inputs tell which examples are the same.
        examples: all of them.
        folds: how many.
        val: the share of a run's examples that only validates; 0 for none.
        seed: of the order in which the examples are dealt.
        clusters: the field that says which examples belong together.

    Raises:
        ValueError: as `cross_validate` has it.
        DataError: an example does not say what cluster it belongs to.

    Example:
        >>> parts = parts_of(lambda q: q, [{"q": str(n)} for n in range(6)], folds=3)
        >>> [(part.name, len(part.train), None if part.test is None else len(part.test)) for part in parts]
        [('fold-1', 4, 2), ('fold-2', 4, 2), ('fold-3', 4, 2), ('final', 6, None)]
    """
    if folds < 2:
        raise ValueError(f"folds must be at least 2, as each is tested with what was made of the others; got {folds}")
    if not 0 <= val < 1:
        raise ValueError(f"val is the share of examples that only validates, from 0 to less than 1, got {val}")
    together = clusters_of(examples, clusters) if clusters is not None else equals(program, examples)
    members: dict[str, list[int]] = {}
    for position, name in enumerate(together):
        members.setdefault(name, []).append(position)
    units = list(members.values())
    random.Random(seed).shuffle(units)
    s = "" if len(units) == 1 else "s"
    what = f"example{s} with inputs of their own" if clusters is None else f"cluster{s} by {clusters!r}"
    if len(units) < folds:
        raise ValueError(f"{len(units)} {what} cannot be dealt to {folds} folds; take fewer folds, or more examples")
    if clusters is not None and len(units) < 2 * folds:
        raise ValueError(
            f"{len(units)} {what} cannot be dealt to {folds} folds: a fold of one cluster has no interval, so each "
            "takes two; take fewer folds, or examples of more clusters"
        )
    parts, fewest = [], 1 if clusters is None else 2  # clusters, of which one alone has no interval
    for number in range(folds):
        rest = [unit for place, unit in enumerate(units) if place % folds != number]
        parts.append(_part(f"fold-{number + 1}", examples, rest, val, seed, units[number::folds], what, fewest))
    return [*parts, _part("final", examples, units, val, seed, None, what, fewest)]


def _part(
    name: str,
    examples: Rows,
    units: list[list[int]],
    val: float,
    seed: int,
    fold: list[list[int]] | None,
    what: str,
    fewest: int,
) -> Part:
    """The part of a fold, of these units the share `val` validates, and the fewest at least."""
    held = 0 if val == 0 else max(fewest, round(val * len(units)))
    if held >= len(units):
        raise ValueError(f"val={val} of {len(units)} {what} leaves none to train on; take a smaller share, or val=0")
    drawn = random.Random(f"{seed} {name}").sample(units, len(units))

    def some(of: list[list[int]]) -> Rows:
        return Subset(examples, sorted(position for unit in of for position in unit))

    train = some(drawn[held:])
    return Part(name, train, some(drawn[:held]) if held else train, None if fold is None else some(fold))
