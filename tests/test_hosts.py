"""Where programs of users run: processes that are spawned and forked, loops that are not asyncio's, web servers."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import textgrad_engine as tg
from textgrad_engine import nn, optim
from textgrad_engine.errors import BudgetExceeded
from textgrad_engine.testing import FunctionModel, LoopbackServer
from textgrad_engine.testing.wire import Connection

TICKETS = Path(__file__).parents[1] / "examples" / "tickets"

PROGRAM = f"""
import os, sys
import textgrad_engine as tg
from textgrad_engine import data, nn, optim

train, val = (data.load(os.path.join({str(TICKETS)!r}, name + ".jsonl"))[:8] for name in ("train", "val"))

def program():
    prompt = nn.Parameter("Sort the ticket.", role="system prompt of the ticket sorter")
    return nn.ChatCompletion(system=prompt, user="{{ticket}}")

def fitted(trained):
    with tg.use_models(forward="simulated/tickets"):
        optimizer = optim.TGD(trained.parameters(), max_edits=4)
        trainer = tg.Trainer(max_epochs=1, batch_size=4, target="queue")
        return trainer.fit(trained, nn.ExactMatch(), optimizer, train, val)

def mean(trained):
    with tg.use_models(forward="simulated/tickets"):
        return tg.evaluate(trained, val, nn.ExactMatch(), target="queue").mean
"""


def printed(folder: Path, script: str) -> list[str]:
    """What a script prints that defines programs and how they are trained; nothing else, and no warning."""
    file = folder / "script.py"
    file.write_text(PROGRAM + script, encoding="utf-8")
    done = subprocess.run(
        [sys.executable, file],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout.splitlines()


def test_a_pool_of_spawned_processes(tmp_path: Path) -> None:
    """A program goes there and a result comes back, as they would by a task queue that pickles; they are the same."""
    here, there, status, scored = printed(
        tmp_path,
        """
import multiprocessing

if __name__ == "__main__":
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        print(fitted(program()).best_val.mean)
        result = pool.map(fitted, [program()])[0]
        print(result.best_val.mean)
        print(result.status)
        print(mean(program()) == pool.map(mean, [program()])[0])
""",
    )
    assert (here, status, scored) == (there, "finished", "True")


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_workers_that_are_forked_after_their_parent_has_asked(tmp_path: Path) -> None:
    """As Celery's and gunicorn's --preload are: each takes tasks of its own, and the parent goes on beside them."""
    *found, parent = printed(
        tmp_path,
        """
import warnings

warnings.simplefilter("ignore", DeprecationWarning)  # newer Pythons warn of forking beside threads
one = program()
before = mean(one)
children = []
for _ in range(2):
    reading, writing = os.pipe()
    if not (child := os.fork()):
        means = [mean(one) for _ in range(3)]
        os.write(writing, f"{means == [before] * 3} {fitted(program()).status}".encode())
        os._exit(0)
    os.close(writing)
    children.append((child, reading))
after = mean(one)
for child, reading in children:
    with os.fdopen(reading) as pipe:
        print(pipe.read(), os.waitpid(child, 0)[1])
print(before == after)
""",
    )
    assert (found, parent) == (["True finished 0", "True finished 0"], "True")


def sorter() -> nn.ChatCompletion:
    prompt = nn.Parameter("Sort the ticket.", role="system prompt of the ticket sorter")
    return nn.ChatCompletion(system=prompt, user="{ticket}")


def test_handlers_of_a_web_server_share_a_program() -> None:
    """Each awaits its own answer, all at the same time, with a budget of its own; no handler holds up the loop."""
    together: list[int] = []
    under_way = 0
    everybody = asyncio.Event()

    async def reply(request: Any) -> str:
        nonlocal under_way
        under_way += 1
        if under_way == 20:
            everybody.set()
        await everybody.wait()  # for ever, if one handler had to wait for another
        together.append(under_way)
        return str(request.messages[-1].text)

    program = sorter()

    async def handler(number: int) -> tuple[str, int]:
        with tg.use_models(forward=FunctionModel(reply)), tg.budget(calls=1) as spent:
            answer = await program.aforward(ticket=str(number))
            text = await answer
            with pytest.raises(BudgetExceeded):
                await (await program.aforward(ticket="one more"))
            return str(text.data), spent.spent.calls

    async def server() -> list[tuple[str, int]]:
        return await asyncio.gather(*(handler(number) for number in range(20)))

    assert asyncio.run(server()) == [(str(number), 1) for number in range(20)]
    assert together == [20] * 20


class Handed:
    """A transport that says of no base class that it is one, as uvloop's."""

    def __init__(self) -> None:
        self.written = b""

    def write(self, text: bytes) -> None:
        self.written += text

    def is_closing(self) -> bool:
        return False

    def close(self) -> None:
        pass


def test_the_loopback_server_takes_transports_of_any_loop() -> None:
    """Where uvloop is installed for all, the server of the tests runs on it, too."""

    transport: Any = Handed()
    server: Any = SimpleNamespace(connections=set(), closed=False)
    connection = Connection(server)
    connection.connection_made(transport)
    connection.data_received(b"nonsense\r\n\r\n")
    assert transport.written.startswith(b"HTTP/1.1 400 ")


def test_a_loop_of_uvloop() -> None:
    """A run, an evaluation, a value and a request over a socket, awaited on it."""
    uvloop = pytest.importorskip("uvloop")
    rows = [{"ticket": f"ticket {number}", "target": "trust"} for number in range(6)]

    async def main() -> tuple[str, float, str]:
        program = sorter()
        with LoopbackServer(FunctionModel(lambda request: "trust")) as server:
            model = tg.llm.resolve("m", base_url=server.base_url)
            with tg.use_models(forward=model):
                optimizer = optim.TGD(program.parameters())
                result = await tg.Trainer(max_epochs=1).afit(program, nn.ExactMatch(), optimizer, rows, rows)
                scored = await tg.aevaluate(program, rows, nn.ExactMatch())
                value = await program(ticket="one")
                await tg.llm.innermost(model).aclose()
                return result.status, scored.mean, str(value.data)

    assert uvloop.run(main()) == ("finished", 1.0, "trust")
