"""The pytest plugin: while tests run, no real request leaves this machine, and answers are played back.

It is installed with the library. Models of `textgrad_engine.testing`, mocked transports and servers on the loopback
interface work as ever; a request of `OpenAIModel` that would reach the network raises `RequestRefused`. A test that is
meant to ask a real endpoint is marked ``@pytest.mark.live`` or uses the fixture ``allow_requests``. One that uses the
fixture ``cassette`` is answered from ``cassettes/MODULE/TEST.jsonl`` beside its file, with what real models had said
when pytest was called with ``--record-cassettes``. Where an assertion about a `Variable` fails, its text is compared.
"""

from __future__ import annotations

import contextlib
import contextvars
import hashlib
import os
import re
import sys
import warnings
from collections.abc import Generator, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from textgrad_engine.llm import Recording, Replay

# The same name as llm.transport.REFUSE_REQUESTS, which is not imported: this file is loaded by every pytest run.
_VARIABLE = "TEXTGRAD_ENGINE_REFUSE_REQUESTS"
_NOTHING = (
    "{path}: nothing was recorded, as no call was made where the test's cassette is known, so nothing will be played "
    "back. Threads that a test or its program starts by itself do not know it: use func.pmap, or "
    "pool.submit(contextvars.copy_context().run, function, item). Nor does an event loop that another fixture began "
    "before it (anyio): name cassette first"
)
_RECORDS = ("textgrad_engine.llm.request", "textgrad_engine.llm.response")
_before = pytest.StashKey[str | None]()
_ran = pytest.StashKey[bool]()


def pytest_addoption(parser: pytest.Parser) -> None:
    """Cassettes are recorded when somebody says so."""
    parser.getgroup("textgrad_engine").addoption(
        "--record-cassettes",
        action="store_true",
        help="tests with the fixture 'cassette' ask their models for what is not recorded yet, and record it; to "
        "record one anew, delete its file",
    )


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


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_call(item: pytest.Item) -> None:
    """Have an async case of unittest see the blocks (`use_models`, `budget`, cassettes) that its fixtures opened.

    `IsolatedAsyncioTestCase` runs a test in a copy of the context, made with the case and so before the fixtures are.
    """
    own = getattr(getattr(item, "instance", None), "_asyncioTestContext", None)
    if isinstance(own, contextvars.Context):
        for variable, value in contextvars.copy_context().items():
            if variable.name.startswith("textgrad_engine"):
                own.run(variable.set, value)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Note for the fixtures of a test whether it was run to its end."""
    report = yield
    if call.when == "call":
        item.stash[_ran] = report.passed
    return report


@pytest.hookimpl(tryfirst=True)
def pytest_assertrepr_compare(config: pytest.Config, op: str, left: object, right: object) -> list[str] | None:
    """Show where a Variable, a request or an answer differs from what it was compared with, as pytest does of texts."""
    plain = _plain(op, left, right)
    if not isinstance(plain, tuple):
        return plain
    told = config.hook.pytest_assertrepr_compare(config=config, op=op, left=plain[0], right=plain[1])
    whole = [f"{plain[0]!r} in {plain[1]!r}"] if op == "in" else None
    return next((lines for lines in told if lines), whole)


def _plain(op: str, left: Any, right: Any) -> tuple[Any, Any] | list[str] | None:
    """What is to be compared in their place: texts, or fields; or what is to be said; None where it is as it stands."""
    module = sys.modules.get("textgrad_engine.autograd.variable")  # a test that has a Variable has imported it
    if module is None or op not in ("==", "in", "not in"):
        return None
    if op == "==" and type(left) is type(right) and type(left).__module__ in _RECORDS and hasattr(left, "model_dump"):
        return left.model_dump(exclude_defaults=True), right.model_dump(exclude_defaults=True)
    are = [isinstance(side, module.Variable) for side in (left, right)]
    if not any(are):
        return None
    if all(are):
        same = "two Variables are equal only where they are one; compare their .data"
        return [f"{left!r} {op} {right!r}", "", same] if op == "==" else None
    return (left.data, right) if are[0] else (left, right.data)


@pytest.fixture
def allow_requests() -> Iterator[None]:
    """Permits real requests while the test runs."""
    with _permitted():
        yield


@pytest.fixture
def cassette(request: pytest.FixtureRequest) -> Iterator[Replay | Recording]:
    """Models answer what they said when the test ran with --record-cassettes; nobody is asked."""
    from textgrad_engine import llm  # heavy, and most tests of most people need none of it

    path, command = _cassette_of(request.node), f"pytest --record-cassettes '{request.node.nodeid}'"
    if request.config.getoption("--record-cassettes"):
        with _permitted(), llm.record(path, resume=True) as recording:
            yield recording
        if not recording.answers and request.node.stash.get(_ran, False):
            warnings.warn(_NOTHING.format(path=path), pytest.PytestWarning, stacklevel=1)
        return
    if not path.exists():
        pytest.fail(f"{path}: nothing is recorded for this test; record it: {command}", pytrace=False)
    with llm.replay(path) as tape:
        tape.anew = f"delete that file and record it anew: {command}"
        yield tape


def _cassette_of(item: pytest.Item) -> Path:
    """The file of a test, whose name any system takes; names that are alike in it are told apart by a digest."""
    name = ".".join(each.name for each in item.listchain() if isinstance(each, (pytest.Class, pytest.Item)))
    plain = re.sub(r"[^\w.\[\]-]+", "-", name, flags=re.ASCII)[:100]
    if plain != name:
        plain = f"{plain}-{hashlib.sha256(name.encode()).hexdigest()[:8]}"
    return item.path.parent / "cassettes" / item.path.stem / f"{plain}.jsonl"


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
