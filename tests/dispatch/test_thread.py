"""The private thread outlives what its calls do."""

from __future__ import annotations

import asyncio

import pytest

import textgrad_engine as tg


class Echo(tg.Function):
    @staticmethod
    async def forward(ctx, text):
        await asyncio.sleep(0)
        return tg.Variable(text)


def test_a_task_that_ends_like_a_generator_that_is_closed_fails_whoever_waits_for_it():
    """Such as one that hands on what was thrown into an async generator; its waiter waited for ever."""

    class Closing(tg.Function):
        @staticmethod
        async def forward(ctx, text):
            async def closed():
                raise GeneratorExit("enough")

            return await asyncio.gather(closed())

    with pytest.raises(GeneratorExit):
        Closing.apply("x").data  # noqa: B018  reading waits
    assert Echo.apply("second").data == "second"


@pytest.mark.parametrize("kind", [SystemExit, KeyboardInterrupt])
def test_a_task_that_wants_to_leave_the_program_ends_no_call_of_anybody_else(kind):
    """asyncio lets these through its loop: whoever waited for another call would wait for ever."""

    class Leaving(tg.Function):
        @staticmethod
        async def forward(ctx, text):
            async def leave():
                raise kind("enough")

            return await asyncio.create_task(leave())

    other = Echo.apply("first")
    with pytest.raises(kind, match="enough"):
        Leaving.apply("x").data  # noqa: B018  reading waits
    assert (other.data, Echo.apply("second").data) == ("first", "second")
