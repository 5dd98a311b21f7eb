"""The benchmark of lanes, and the clock that it stands on."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from .foreign import benchmark_module

FOLDER = Path(__file__).parents[2] / "benchmarks"

pytestmark = pytest.mark.skipif(not Path("/proc/self/task").is_dir(), reason="the virtual clock needs Linux")

CLOCK = """
import sys; sys.path.insert(0, sys.argv[1])
from proving.virtual import virtual_time
clock = virtual_time()
import asyncio, threading
from textgrad_engine import dispatch

async def wait(seconds):
    await asyncio.sleep(seconds)

def worker(seconds, times):
    for _ in range(times):
        dispatch.run(lambda: wait(seconds))
        sum(range(50_000))  # what is computed takes no time

threads = [threading.Thread(target=worker, args=each) for each in ((100.0, 9), (50.0, 20), (1.0, 40))]
for thread in threads: thread.start()
for thread in threads: thread.join()
print(round(clock.now, 1))
"""

EDGES = """
import sys; sys.path.insert(0, sys.argv[1])
from proving.virtual import virtual_time
clock = virtual_time()
import asyncio, hashlib, threading
from textgrad_engine import dispatch

def compute():  # as long as a thread may wait for the processor, and without the interpreter's lock
    hashlib.pbkdf2_hmac("sha256", b"", b"", 200_000)

class Thread(threading.Thread):
    def _bootstrap_inner(self):
        compute()
        super()._bootstrap_inner()
    def _delete(self):
        super()._delete()
        compute()

other = dispatch.submit(lambda: asyncio.sleep(100.0))
thread = Thread(target=lambda: None)
thread.start()
thread.join()
print(clock.now, end=" ")
other.result()
print(clock.now)
"""

ESTIMATED = """
import sys; sys.path.insert(0, sys.argv[1])
import lanes
from lanes import *
from textgrad_engine.train.estimate import estimate

clock = virtual_time()
for make in (optim.PatchSearch, optim.BootstrapDemos, lambda params: optim.OPRO(params, rounds=3)):
    task = simulated_task(rules=4, train=16, val=16, test=4, seed=1)
    program = task.program()
    search = make(program.parameters())
    told = estimate(tg.Trainer(), program, task.loss, search, task.train, task.val, task.test).waits
    began = clock.now
    with tg.use_models(forward=Slow(task, 1.0)):
        tg.Trainer().fit(program, task.loss, search, task.train, task.val, task.test)
    print(told.low, clock.now - began, told.high)
"""


LITTLE = """
import sys; sys.path.insert(0, sys.argv[1])
import lanes
lanes.TASKS["little"] = {"rules": 12, "train": 64, "val": 32, "test": 8}
lanes.main(["--task", "little", "--seeds", "3:4", "--lanes", "1", "4", "--steps", "2", "--out", sys.argv[2]])
"""


def run(*arguments: str) -> str:
    done = subprocess.run([sys.executable, *arguments], capture_output=True, text=True, check=False, timeout=120)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_time_is_the_longest_chain_of_waits() -> None:
    """Threads that wait at the same time wait once, and what they compute in between is free."""
    assert run("-c", CLOCK, str(FOLDER)) == "1000.0\n"


def test_a_thread_that_begins_or_ends_has_something_to_do() -> None:
    """Time does not go on meanwhile, though those who wait for it sleep: on a busy machine it may take a while."""
    assert run("-c", EDGES, str(FOLDER)) == "0.0 100.0\n"


def test_the_benchmark_is_the_same_each_time(tmp_path: Path) -> None:
    """Wall time, score and calls do not depend on the machine; lanes make the time shorter."""
    runs = []
    for number in range(2):
        out = tmp_path / f"{number}.json"
        table = run("-c", LITTLE, str(FOLDER), str(out))
        assert "4 lanes against 1, 1 seeds" in table
        runs.append([{**one, "cpu": 0} for one in json.loads(out.read_text())["little"]])
    assert runs[0] == runs[1]
    one, four = runs[0]
    assert four["seconds"] < one["seconds"]


def test_a_range_of_seeds_that_is_none(capsys: pytest.CaptureFixture[str]) -> None:
    """Said at once."""
    with pytest.raises(SystemExit) as ended:
        benchmark_module("lanes").main(["--seeds", "4:2"])
    assert ended.value.code == 2
    assert "seeds are A:B with A below B" in capsys.readouterr().err


def test_the_time_of_a_search_is_in_its_estimate() -> None:
    """Answers that are waited for one after the other, as `estimate` tells them."""
    for line in run("-c", ESTIMATED, str(FOLDER)).splitlines():
        low, actual, high = map(float, line.split())
        assert low <= actual + 0.01
        assert actual <= high
