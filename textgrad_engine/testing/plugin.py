"""The pytest plugin: while tests run, no real request leaves this machine.

It is installed with the library. Models of `textgrad_engine.testing`, mocked transports and servers on the loopback
interface work as ever; a request of `OpenAIModel` that would reach the network raises `RequestRefused`. A test that is
meant to ask a real endpoint is marked ``@pytest.mark.live`` or uses the fixture ``allow_requests``.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Generator, Iterator

import pytest

# The same name as llm.transport.REFUSE_REQUESTS, which is not imported: this file is loaded by every pytest run.
_VARIABLE = "TEXTGRAD_ENGINE_REFUSE_REQUESTS"
_before = pytest.StashKey[str | None]()


def pytest_configure(config: pytest.Config) -> None:
    """Refuse real requests, here and in child processes."""
    config.addinivalue_line("markers", "live: this test may send real requests to a model's endpoint.")
    config.stash[_before] = os.environ.get(_VARIABLE)
    os.environ[_VARIABLE] = "1"


def pytest_unconfigure(config: pytest.Config) -> None:
    """Put back what was."""
    _put(config.stash.get(_before, None))


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, object, object]:
    """Permit real requests during tests that are marked live."""
    if item.get_closest_marker("live") is None:
        return (yield)
    with _permitted():
        return (yield)


@pytest.fixture
def allow_requests() -> Iterator[None]:
    """Permits real requests while the test runs."""
    with _permitted():
        yield


@contextlib.contextmanager
def _permitted() -> Iterator[None]:
    held = os.environ.pop(_VARIABLE, None)
    try:
        yield
    finally:
        _put(held)


def _put(value: str | None) -> None:
    if value is None:
        os.environ.pop(_VARIABLE, None)
    else:
        os.environ[_VARIABLE] = value
