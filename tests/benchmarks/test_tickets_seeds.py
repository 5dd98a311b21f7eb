"""benchmarks/tickets_seeds.py: what it prints of a seed."""

from __future__ import annotations

import pytest

from .foreign import benchmark_module


def test_a_seed_is_run_without_a_critic_and_without_feedback(capsys: pytest.CaptureFixture[str]) -> None:
    """The control asks no critic anyway."""
    benchmark_module("tickets_seeds").main(["--seeds", "1", "--no-critic"])
    _, row, mean, _ = (line.split() for line in capsys.readouterr().out.splitlines())
    seed, before, after, verdict, alone, *_ = row
    assert (seed, verdict, mean[:3]) == ("10", "better", ["mean", before, after])
    assert float(alone) < float(after)
