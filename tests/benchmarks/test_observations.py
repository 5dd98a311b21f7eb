"""What MIPROv2 is told of solved parcels."""

from __future__ import annotations

import doctest

import pytest

from .foreign import benchmark_module

observations = benchmark_module("proving.foreign.observations")


def test_nothing_is_observed_of_what_is_seen_once_or_goes_with_everything() -> None:
    """Neither of an attribute with several codes, nor of the code that most parcels have."""
    solved = [("glass, tea", "K2"), ("glass", "K3"), ("tea, maps", "K1"), ("wine, maps", "K1"), ("wine", "K1")]
    assert observations.observed(solved) == ""
    assert observations.observed([]) == ""


def test_what_was_observed_before_is_borne_out_or_taken_back() -> None:
    """By one parcel; and an answer that ends where the next begins is read as two statements."""
    before = "Parcels with glass get code K2.Parcels with tea get code K3.Parcels with maps get code K4."
    now = observations.observed([("glass", "K2"), ("tea", "K1"), ("wine", "K1")], before)
    assert now == "Parcels with glass get code K2. Parcels with tea get several codes."
    assert observations.summed_up(before + now) == "Parcels with glass get code K2. Parcels with maps get code K4."


def test_a_summary_has_three_sentences() -> None:
    """Those codes of which most was said, each with all that goes with it; of two codes the one said more often."""
    said = ["glass get code K2", "tea get code K2", "wine get code K3", "wine get code K3", "wine get code K5"]
    said += ["maps get code K4", "maps get code K4", "toys get code K6"]
    text = observations.summed_up(" ".join(f"Parcels with {part}." for part in said))
    assert text.count(".") == 3
    assert "Parcels with glass or with tea get code K2." in text
    assert "K5" not in text
    assert "K6" not in text


def test_a_description_is_taken_up_in_part() -> None:
    """Each rule in most samples and not in all, the same in equal ones."""
    said = "Parcels with glass or tea get code K2."
    found = [observations.taken_up(said, 0, (sample,)) for sample in range(40)]
    assert found[0] == observations.taken_up(said, 0, (0,))
    for line in ("Parcels with glass get code K2.", "Parcels with tea get code K2."):
        assert 20 < sum(line in lines for lines in found) < 40


@pytest.mark.parametrize("name", ["conversations", "observations", "signatures"])
def test_the_examples_of_the_readers_run(name: str) -> None:
    """Those of the package are run elsewhere."""
    found = doctest.testmod(benchmark_module(f"proving.foreign.{name}"))
    assert found.attempted
    assert not found.failed
