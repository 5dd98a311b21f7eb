"""Two hundred calls with a tenth of faults; benchmarks/soak.py does twenty thousand."""

import asyncio
import runpy
from pathlib import Path

import pytest

from textgrad_engine.testing import LoopbackServer

pytest.importorskip("resource", reason="Windows does not say so how much memory a process has taken")
SOAK = runpy.run_path(str(Path(__file__).parents[2] / "benchmarks" / "soak.py"))


def test_nothing_is_lost_doubled_or_overspent():
    """Every question gets its own answer once, within the budget, and nothing grows."""
    with LoopbackServer(SOAK["Echo"](), faults=SOAK["fault_for"]) as server:
        result = asyncio.run(SOAK["soak"](server.base_url, 200))
        asked = server.requests
    assert (result.right, result.failed, result.counted) == (200, 0, 200)
    assert 205 < asked < 250
    assert 0 < result.unknown <= asked - 200
    assert result.used <= result.limit
    assert result.grown < 20
