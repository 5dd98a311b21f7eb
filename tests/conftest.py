"""What all tests share.

Property tests try the same examples everywhere, so that a red run can be run again, however long making these takes
and whatever else is loaded; no test fetches a vocabulary, not even one that may ask endpoints; Ctrl-C is heard, also
where the tests run in the background of a shell. Processes that tests start find the package compiled. And how run
folders are compared: without their times.
"""

import atexit
import contextlib
import gc
import gzip
import json
import os
import re
import shutil
import signal
import sys
import tempfile
from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest
from _pytest import runner
from hypothesis import HealthCheck, settings

from textgrad_engine.llm import RetryPolicy, replace_file
from textgrad_engine.llm.vocabulary import NO_FETCH

from .disks import SmallDisk

os.environ[NO_FETCH] = "1"

if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:  # a shell's `command &`, and child processes would have it too
    signal.signal(signal.SIGINT, signal.default_int_handler)

# Tests start hundreds of processes, and to compile the package takes half of the time of one that only prints help.
# The first process of a run makes the folder, and those that it starts find its name.
if os.environ.pop("PYTHONDONTWRITEBYTECODE", None) and "PYTHONPYCACHEPREFIX" not in os.environ:
    os.environ["PYTHONPYCACHEPREFIX"] = tempfile.mkdtemp(prefix="compiled-")
    atexit.register(shutil.rmtree, os.environ["PYTHONPYCACHEPREFIX"], ignore_errors=True)

settings.register_profile(
    "same-everywhere",
    derandomize=True,
    max_examples=60,  # as they are always the same, more find nothing new the next time
    deadline=None,
    database=None,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile("same-everywhere")
# Newer versions also try constants that they find in modules which happen to be loaded: after other tests, in another
# process, or where the package is installed otherwise, those would be other ones, and there is no setting for it.
with contextlib.suppress(ImportError, AttributeError):
    from hypothesis.internal.conjecture import providers

    _NONE = providers._local_constants
    providers._get_local_constants = lambda: _NONE


@pytest.hookimpl(trylast=True)
def pytest_sessionstart() -> None:
    """Have hypothesis know what UTF-8 can encode: it would try letter by letter, for 3 s in each process."""
    with contextlib.suppress(ImportError, AttributeError, OSError):
        from hypothesis.internal import charmap

        known = charmap.charmap_file("codec-v2-utf-8")
        if not known.exists():
            known.parent.mkdir(parents=True, exist_ok=True)
            known.write_bytes(gzip.compress(json.dumps([[[0, 0xD7FF], [0xE000, sys.maxunicode]], []]).encode()))


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Have the garbage collector leave alone what thousands of tests consist of: nothing of it goes before the end.

    To look through it each time took half of the time of making the tests, and then most of that of many of them. What
    tests leave behind is looked through more rarely, which took a fifteenth of their time.
    """
    gc.disable()
    try:
        return (yield)
    finally:
        gc.collect()
        gc.freeze()
        young, middle, old = gc.get_threshold()
        gc.set_threshold(young, middle, 10 * old)
        gc.enable()


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report(collector: pytest.Collector) -> Generator[None, pytest.CollectReport, Any]:
    """Have every second worker begin with the last files, so that two of them rewrite the assertions of half of them.

    What the other one has rewritten takes a fifth of the time to load.
    """
    report = yield
    if isinstance(collector, pytest.Directory) and _worker(collector.config)[-1] in "13579":
        report.result.reverse()
    return report


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Give all workers the same order, as xdist wants."""
    if _worker(config) != "none":
        items.sort(key=lambda item: item.path.parts)


@pytest.hookimpl
def pytest_runtest_protocol(item: pytest.Item, nextitem: pytest.Item | None) -> bool | None:
    """Have a worker tell of a test that has passed once, instead of five times: three tenths of what xdist costs."""
    run: Any = getattr(runner, "runtestprotocol", None)  # pytest's own name, which may go
    if run is None or _worker(item.config) == "none":
        return None
    for report in run(item, log=False, nextitem=nextitem):
        if report.when == "call" or not report.passed:
            item.ihook.pytest_runtest_logreport(report=report)
    return True


def _worker(config: pytest.Config) -> str:
    return getattr(config, "workerinput", {"workerid": "none"})["workerid"]


def timeless(path: Path) -> dict[str, str]:
    """Every file of a run folder without its times, and without what it says of the runs that lay beside it."""
    found = {}
    for file in sorted(path.rglob("*")):
        if file.is_file():
            text = file.read_text(encoding="utf-8")
            found[str(file.relative_to(path))] = re.sub(
                r'"(time|latency|seconds|looks_before)": ("[^"]*"|[\d.e-]+)', '"t": 0', text
            )
    return found


@pytest.fixture
def no_backoff(monkeypatch: pytest.MonkeyPatch) -> None:
    """For tests of what comes of an answer that is lost: it is tried for as often as ever, and without a pause."""
    monkeypatch.setattr(RetryPolicy, "wait", lambda *_: 0.0)


@pytest.fixture
def disk(monkeypatch: pytest.MonkeyPatch) -> type[SmallDisk]:
    """Makes the disk that lines are written on from now on."""

    class Disk(SmallDisk):
        def __init__(self, free: int, *, promises: bool = True) -> None:
            super().__init__(free, promises=promises)
            monkeypatch.setattr(os, "write", self.write)
            monkeypatch.setattr(os, "posix_fallocate", self.allocate, raising=False)

    return Disk


@pytest.fixture
def windows_files(monkeypatch: pytest.MonkeyPatch) -> None:
    """Files as Windows has them: what this process holds open can be neither replaced nor removed."""
    if not Path("/proc/self/fd").is_dir():
        pytest.skip("nothing says which files are open here")

    def check(*paths: Any) -> None:
        open_now = set()
        for link in Path("/proc/self/fd").iterdir():
            with contextlib.suppress(OSError):
                open_now.add(os.readlink(link))
        for path in paths:
            if os.path.realpath(path) in open_now:
                error = PermissionError(13, "The file is being used by another process", str(path))
                error.winerror = 32  # type: ignore[attr-defined]
                raise error

    def replace(file: Any, place: Any) -> None:
        check(file, place)
        really_replace(file, place)

    def unlink(path: Any, **where: Any) -> None:
        if not where:
            check(path)
        really_unlink(path, **where)

    really_replace, really_unlink = os.replace, os.unlink
    monkeypatch.setattr(os, "replace", replace)
    monkeypatch.setattr(os, "unlink", unlink)
    monkeypatch.setattr(replace_file, "_PATIENCE", 0.0)
