"""The simulated model where it is asked for new texts without feedback."""

from __future__ import annotations

from textgrad_engine.llm.simulated.tried import Tried
from textgrad_engine.testing.simulated.guesses import guessed, observed, paraphrased, summed_up, taken_up
from textgrad_engine.testing.simulated.instructions import read_instructions

SEED = "Answer with the code only.\nParcels with glass get code K4."
TASK = ("Parcel: wine, to Norway, 3.1 kg, for Ada Berg", "K2")


def test_a_paraphrase_says_the_same_in_other_words() -> None:
    """The rules are those of the text; the lines are others."""
    text = paraphrased(SEED, seed=0, sloppiness=0.0)["text"]
    assert text != SEED
    assert read_instructions(text).rules == read_instructions(SEED).rules
    assert read_instructions(text).bare


def test_a_careless_paraphrase_has_lost_a_line() -> None:
    """That is what validation is for."""
    assert paraphrased(SEED, seed=0, sloppiness=1.0)["text"].count("\n") == 0


def test_a_guess_is_about_a_task_that_is_shown() -> None:
    """One rule more, about one of its attributes; nobody has told which one decides."""
    rules = set()
    for seed in range(20):
        text = guessed(Tried((SEED,), (TASK,)), seed, 0.0)["text"]
        assert text.startswith(SEED)
        rules |= set(read_instructions(text).rules) - set(read_instructions(SEED).rules)
    assert rules == {("wine", "K2"), ("Norway", "K2")}


def test_what_the_text_explains_is_left_alone() -> None:
    """A task whose code the best text gives already teaches nothing."""
    known = ("Parcel: glass, to Peru, 1.0 kg, for Ada Berg", "K4")
    assert guessed(Tried((SEED,), (known,)), 0, 0.0)["text"] == SEED


def test_a_line_of_another_good_text_is_taken_over_now_and_then() -> None:
    """Never one from the worse half."""
    tried = Tried(("paint -> K1", "wine -> K2", SEED), ())
    lines = {line for seed in range(40) for line in guessed(tried, seed, 0.0)["text"].split("\n")}
    assert "wine -> K2" in lines
    assert "paint -> K1" not in lines


def test_equal_requests_get_equal_answers_and_further_samples_others() -> None:
    """No state: what differs is which sample is wanted."""
    tried = Tried((SEED,), (TASK,))
    assert guessed(tried, 0, 0.1) == guessed(tried, 0, 0.1)
    assert len({guessed(tried, 0, 0.0, (sample,))["text"] for sample in range(10)}) > 1


def test_nothing_is_observed_of_what_is_seen_once_or_goes_with_everything() -> None:
    """Neither of an attribute with several codes, nor of the code that most parcels have."""
    solved = [("glass, tea", "K2"), ("glass", "K3"), ("tea, maps", "K1"), ("wine, maps", "K1"), ("wine", "K1")]
    assert observed(solved) == ""
    assert observed([]) == ""


def test_what_was_observed_before_is_borne_out_or_taken_back() -> None:
    """By one parcel; and an answer that ends where the next begins is read as two statements."""
    before = "Parcels with glass get code K2.Parcels with tea get code K3.Parcels with maps get code K4."
    now = observed([("glass", "K2"), ("tea", "K1"), ("wine", "K1")], before)
    assert now == "Parcels with glass get code K2. Parcels with tea get several codes."
    assert summed_up(before + now) == "Parcels with glass get code K2. Parcels with maps get code K4."


def test_a_summary_has_three_sentences() -> None:
    """Those codes of which most was said, each with all that goes with it; of two codes the one said more often."""
    said = ["glass get code K2", "tea get code K2", "wine get code K3", "wine get code K3", "wine get code K5"]
    said += ["maps get code K4", "maps get code K4", "toys get code K6"]
    text = summed_up(" ".join(f"Parcels with {part}." for part in said))
    assert text.count(".") == 3
    assert "Parcels with glass or with tea get code K2." in text
    assert "K5" not in text
    assert "K6" not in text


def test_a_description_is_taken_up_in_part() -> None:
    """Each rule in most samples and not in all, the same in equal ones."""
    said = "Parcels with glass or tea get code K2."
    found = [taken_up(said, 0, (sample,)) for sample in range(40)]
    assert found[0] == taken_up(said, 0, (0,))
    for line in ("Parcels with glass get code K2.", "Parcels with tea get code K2."):
        assert 20 < sum(line in lines for lines in found) < 40
