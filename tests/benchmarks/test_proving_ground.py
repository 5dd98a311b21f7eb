"""What README and docs say of the comparison with others is what `benchmarks/results/optimizers.json` holds."""

from __future__ import annotations

import re
import statistics
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "proving-ground.md").read_text(encoding="utf-8")
README = " ".join((ROOT / "README.md").read_text(encoding="utf-8").split())


@pytest.fixture(scope="module")
def benchmark() -> Iterator[Any]:
    sys.path.insert(0, str(ROOT / "benchmarks"))
    import optimizers

    yield optimizers
    sys.path.remove(str(ROOT / "benchmarks"))
    for name in [name for name in sys.modules if name.split(".")[0] in ("proving", "optimizers")]:
        del sys.modules[name]


@pytest.fixture(scope="module")
def runs(benchmark: Any) -> Any:
    return benchmark.loaded(ROOT / "benchmarks" / "results" / "optimizers.json")


def test_the_tables_of_the_page_are_those_of_the_runs(benchmark: Any, runs: Any) -> None:
    """Each table of results on the page is made of them, and none of the first two of a task is left out."""
    made = {part: [*benchmark.tables(runs, part)] for part in ("interacting", "additive")}
    for table in [table for several in made.values() for table in several[:2]] + made["interacting"]:
        assert table in PAGE
    everything = "\n".join(table for several in made.values() for table in several)
    for row in re.findall(r"^\| (?:\w+ of the way|the same score|[^|]+) \|.* \d+k?\*? \|.*$", PAGE, re.MULTILINE):
        assert row in everything


def test_the_picture_is_that_of_the_runs(benchmark: Any, runs: Any) -> None:
    """A row that is in the tables is in the picture, too."""
    assert benchmark.drawn(runs) == (ROOT / "docs" / "proving-ground.svg").read_text(encoding="utf-8")


def test_what_the_readme_quotes_is_in_the_runs(runs: Any) -> None:
    """The mean part of the way at which each ends where rules interact, on the seeds that all have."""
    quoted = re.search(r"\*\*Beside others\*\*.*?None of this", README)
    assert quoted
    seeds = {run.seed for run in runs if run.optimizer == "adalflow"}
    for name, told in {
        "PatchSearch": r"`PatchSearch` ends at (\d+)%",
        "textgrad": r"TextGrad at (\d+)%",
        "textgrad, batches of 3": r"TextGrad at \d+% \((\d+)%",
        "trace OptoPrime": r"Trace at (\d+)%",
        "trace OptoPrime, batches of 3": r"Trace at \d+% \((\d+)%",
        "gepa": r"GEPA at (\d+)%",
        "gepa, batches of 3": r"GEPA at \d+% \((\d+)%",
        "dspy.GEPA": r"`dspy.GEPA` at (\d+)%",
        "dspy.GEPA, batches of 3": r"`dspy.GEPA` at \d+% \((\d+)%",
        "adalflow": r"AdalFlow at (\d+)%",
        "dspy.MIPROv2": r"MIPROv2 at (\d+)%",
    }.items():
        ways = [r.way for r in runs if (r.task, r.optimizer) == ("interacting", name) and r.seed in seeds]
        found = re.search(told, quoted[0])
        assert found, name
        assert found[1] == f"{100 * statistics.mean(ways):.0f}", name


@pytest.mark.parametrize("name", ["gepa", "textgrad", "dspy.GEPA", "trace OptoPrime"])
@pytest.mark.parametrize("batch", ["", ", batches of 3"], ids=["16", "3"])
def test_who_is_ahead_from_when_on_is_told(benchmark: Any, runs: Any, name: str, batch: str) -> None:
    """Where rules interact, by tokens from 35,000 on and by time from 17 answers on; GEPA has a text before that."""
    page = " ".join(PAGE.split())
    assert "from 35,000 tokens on (by time from 17 answers)" in page
    assert "of OptoPrime with 16, which asks no critic, from 80,000 on (32 answers)" in page
    from proving.results import way_at

    shared = benchmark.common(runs, "interacting")
    ours, theirs = ([run for run in shared if run.optimizer == each] for each in ("PatchSearch", name + batch))
    assert len(ours) == len(theirs) == 10
    later = name + batch == "trace OptoPrime"
    tokens, waits = (80_000, 32) if later else (35_000, 17)
    for axis, spends in (("tokens", range(tokens, 350_000, 5_000)), ("waits", range(waits, 250, 4))):
        for spend in spends:
            assert way_at(ours, axis, spend) >= way_at(theirs, axis, spend), (axis, spend)
    if name == "gepa" or later:
        assert way_at(theirs, "tokens", 25_000) > way_at(ours, "tokens", 25_000)
