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
