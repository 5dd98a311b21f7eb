from __future__ import annotations

import os
import subprocess
import sys

import pytest

PROGRAM = """
import os, sys, threading, types
from textgrad_engine.llm.loading import loading

begun, forked = threading.Event(), threading.Event()
os.register_at_fork(after_in_parent=forked.set)

def load():
    with loading():
        sys.modules["half"] = module = types.ModuleType("half")
        begun.set()
        forked.wait(0.5)  # in vain, as the fork waits
        module.there = True

thread = threading.Thread(target=load)
thread.start()
begun.wait()
child = os.fork()
if child == 0:
    with loading():
        os._exit(0 if hasattr(sys.modules["half"], "there") else 1)
_, status = os.waitpid(child, 0)
thread.join()
again = os.fork()
if again == 0:
    os._exit(0)
os.waitpid(again, 0)
with loading():
    sys.exit(status)
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_fork_waits_until_a_package_is_loaded() -> None:
    """The child finds the whole of it, and may load others; so may the parent."""
    found = subprocess.run([sys.executable, "-W", "ignore", "-c", PROGRAM], timeout=60, check=False)
    assert found.returncode == 0
