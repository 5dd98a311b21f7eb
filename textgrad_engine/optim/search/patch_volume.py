"""How much a patch search will do; see `optim.search.volume`.

The rules of thumb are from runs of 40 to 384 training examples and 1 to 8 lanes on simulated tasks: two thirds of the
examples fail at first and are drawn `most_tries` times, a race takes a third of what it may, and for each kept patch
there are two or three ablations.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from textgrad_engine.optim.search.agenda import MOST_TOGETHER
from textgrad_engine.optim.search.board import MOST_DRAWN
from textgrad_engine.optim.search.race import GLANCE
from textgrad_engine.optim.search.trim import CHECKED, MOST_LOOKED
from textgrad_engine.optim.search.volume import Range, Sizes, Volume, rounded_up

if TYPE_CHECKING:
    from textgrad_engine.optim.patch_search import PatchSearch


def patch_volume(search: PatchSearch, sizes: Sizes, *, lanes: int, begun: int, measured: int) -> Volume:
    """What a patch search will do.

    Args:
        search: its settings count.
        sizes: what it works on.
        lanes: how many lanes it has.
        begun: at most so many proposals are begun and not settled.
        measured: so many examples are run twice to measure the noise.
    """
    batch = min(search.batch_size, sizes.train)
    turns = rounded_up(sizes.train, batch)
    patches = (search.most_tries + 1) * turns + lanes
    kept = patches // 2
    own = patches + kept * (2 * search.max_edits + 1)
    limit = own if sizes.steps is None else sizes.steps
    patches, kept, begun = min(patches, limit), min(kept, limit), limit + begun - 1
    tried = min(0.65 * search.most_tries * turns + lanes, limit)
    gained = min(tried / 2, sizes.val / 12)
    usual = sizes.usually(min(limit, tried + 2.5 * gained + 2))
    tried = min(tried, usual)
    race = min(sizes.val, 2 * (search.allowance or sizes.val))
    # A patch is looked at, and run without each of its edits and with each alone, before its race and after one that it
    # did not win; one that is shorter is raced once more until it is worse.
    once_more = min(sizes.val, search.allowance or sizes.val)
    edits = max(search.max_edits, MOST_TOGETHER // 2)  # refused ones that are tried together are trimmed once
    raced = 3 * race + 4 * GLANCE + once_more + edits * 8 * MOST_LOOKED + CHECKED
    spared = raced + (2 * search.max_edits + 3) * sizes.guarded if sizes.guarded else 0
    most_drawn = min(sizes.train, MOST_DRAWN * batch)
    extra = search.most_asked_by_transforms()
    at_once = 0.6 + 0.4 * lanes
    batches = (race // 12 + 1).bit_length() + 1
    return Volume(
        decisions=Range(0, limit, usual),
        examples=Range(
            0,
            begun * (most_drawn + raced + spared) + (kept + 1) * sizes.val + measured,
            tried * batch + usual * 0.35 * min(race, search.allowance or race) + min(measured, sizes.val),
        ),
        feedback=Range(0, begun * most_drawn, tried * batch),
        asked=Range(0, (2 + extra) * begun * sizes.parameters, (1.1 + bool(extra)) * tried),
        shared=min(search.feedback_batch_size, batch),
        waits=(
            Range(
                0,
                1 + begun * (12 + 5 * batches) * (2 if spared else 1),
                1 + 1.6 * usual / at_once,  # one to measure the noise
            ),
            Range(0, begun, tried / at_once),
            Range(0, (2 + extra) * begun, (1 + bool(extra)) * tried / at_once),
        ),
        growth=Range(0, search.room_to_grow(), min(20 * gained, search.room_to_grow())),
        told=Range(0, search.most_told() + 200 * search.momentum, 25 * batch + 10 * search.momentum),
        rewrites=False,
        assumed=""
        if sizes.steps is not None
        else f"each example is drawn at most {search.most_tries + 1} times, and every second patch is kept; "
        "with max_steps it is a bound",
    )
