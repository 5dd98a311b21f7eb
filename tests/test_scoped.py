"""A context variable has its value inside of a block, and the one from before behind it, however that ends."""

from __future__ import annotations

import asyncio
from contextvars import ContextVar, copy_context

import pytest

from textgrad_engine.scoped import setting

VALUE: ContextVar[int] = ContextVar("value", default=0)


def test_an_error_in_the_block_goes_on_and_the_value_is_put_back() -> None:
    def fails() -> None:
        with setting(VALUE, 1):
            raise ValueError(VALUE.get())

    with pytest.raises(ValueError, match="1"):
        fails()
    assert VALUE.get() == 0


def test_blocks_in_blocks_put_back_what_was_before_each() -> None:
    with setting(VALUE, 1):
        with setting(VALUE, 2):
            assert VALUE.get() == 2
        assert VALUE.get() == 1
    assert VALUE.get() == 0


def test_what_had_no_value_has_none_again() -> None:
    empty: ContextVar[int] = ContextVar("empty")
    with setting(empty, 1):
        assert empty.get() == 1
    with pytest.raises(LookupError):
        empty.get()


def test_tasks_and_contexts_of_others_do_not_see_it() -> None:
    async def reads() -> int:
        await asyncio.sleep(0)
        return VALUE.get()

    async def both() -> tuple[int, int]:
        other = asyncio.create_task(reads())
        with setting(VALUE, 1):
            return await reads(), await other

    outside = copy_context()
    assert asyncio.run(both()) == (1, 0)
    with setting(VALUE, 2):
        assert outside.run(VALUE.get) == 0
