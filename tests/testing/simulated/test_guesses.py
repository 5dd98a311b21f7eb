"""The simulated model where it is asked for new texts without feedback."""

from __future__ import annotations

from textgrad_engine.llm.simulated.tried import Tried
from textgrad_engine.testing.simulated.guesses import guessed, paraphrased
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
