"""Candidates run on examples: at most so many at once, over all threads, and each sample by itself."""

from __future__ import annotations

import asyncio

from textgrad_engine.func import pmap
from textgrad_engine.llm import Request

from .shouting import EVERY, LOUD, SEED, Shouting, losing


def test_repeats_are_samples_of_their_own() -> None:
    """In the cache too: else noise would be measured as zero."""
    seen: list[tuple[int, ...]] = []

    def before(request: Request) -> None:
        from textgrad_engine.llm.cachekey import sample_number  # inside: what the model's own code sees

        seen.append(sample_number(b""))

    here = Shouting(before)
    for repeat in (0, 1, 2):
        here.objective.scores(SEED, [0], repeat=repeat)
    assert seen == [(), (1,), (2,)]


def test_the_bound_on_examples_holds_over_all_threads() -> None:
    """Lanes have it together; each answer here waits until as many as may be are under way."""
    here = Shouting(concurrency=3)

    async def until_others_are_asked(own: int) -> None:
        while len(here.model.requests) < min(own + 2, 24):
            await asyncio.sleep(0)

    here.before = lambda request: until_others_are_asked(len(here.model.requests))
    ask = pmap(lambda text: here.objective.scores((text,), EVERY))
    assert ask(["a", "b", "SHOUT"]) == [[0.0] * 8, [0.0] * 8, [1.0] * 8]
    assert (here.model.peak, len(here.model.requests)) == (3, 24)


def test_a_lost_place_is_given_back() -> None:
    """Examples that fail do not use up the bound for ever."""
    here = Shouting(losing("ant", "bee"), concurrency=1)
    assert here.objective.scores(SEED, EVERY) == [None, None, *[0.0] * 6]
    assert here.objective.scores(LOUD, EVERY) == [None, None, *[1.0] * 6]
