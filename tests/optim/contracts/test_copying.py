from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from textgrad_engine.optim.contracts import NoCopying
from textgrad_engine.optim.words import words_of

ROWS = [
    {"ticket": "My planter stopped watering the basil on Tuesday night, what now?", "queue": "technical"},
    {"ticket": "Where is my parcel", "queue": "shipping", "tone": "none of these"},
    {"ticket": "Cancel it now", "queue": "refunds and money back", "tone": "none of these"},
]


def copied(after: str, before: str = "Sort the mail.", **settings: Any) -> list[str]:
    return NoCopying(ROWS, target="queue", **settings).copied(before, after)


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        (([],), ValueError, "no examples"),
        (([3],), TypeError, r"\[0\] of it is 3"),
        (({3},), TypeError, "a row of a dataset or a text, got int"),
        ((["a"], 0), ValueError, "at least 1"),
    ],
)
def test_what_checks_nothing_is_refused(arguments: Any, error: Any, message: str) -> None:
    """A contract without examples would let everything pass."""
    with pytest.raises(error, match=message):
        NoCopying(*arguments)


def test_a_run_of_words_is_found_through_punctuation_case_and_line_ends() -> None:
    """The optimizer cannot get round it by layout; the whole run is shown once."""
    after = 'Sort the mail.\nE.g. "MY planter -- stopped\nwatering the basil on Tuesday" is technical.'
    assert copied(after) == ["my planter stopped watering the basil on tuesday"]


def test_fewer_words_are_no_copy() -> None:
    """Seven words of eight may be chance, and `n` says how many are too many."""
    after = "Rules for when it stopped watering the basil on Tuesday morning."
    assert copied(after) == []
    assert copied(after, n=6) == ["stopped watering the basil on tuesday"]


def test_what_stood_there_before_may_stay() -> None:
    """The user's own example in the seed prompt is theirs."""
    before = "My planter stopped watering the basil on Tuesday night, what now? That is technical."
    assert copied(before + " Be brief.", before) == []


def test_a_short_input_is_not_copied_as_a_whole() -> None:
    """Too short for a run of eight words, and still an example."""
    assert copied("'Where is my parcel?' is shipping.") == ["where is my parcel"]
    assert copied("Ask where is the parcel.") == []


def test_labels_and_shared_values_are_free() -> None:
    """A prompt has to name its answers, and what several examples share is no example."""
    assert copied("Answer refunds and money back, shipping, or none of these.") == []


def test_no_run_goes_from_one_example_into_the_next() -> None:
    """Words that only stand together because of how they are stored."""
    assert NoCopying(["a b c d", "e f g h"], n=4).copied("", "c d e f g") == []


def test_texts_inside_lists_and_objects_count() -> None:
    """A column may hold a conversation."""
    rows = [{"messages": [{"role": "user", "content": "tell me a tale of two cities"}], "n": 3}]
    assert NoCopying(rows, n=5).copied("", "Tell me a tale of two.") == ["tell me a tale of two"]


class Examples(str):
    """Counts how often something is searched for in it."""

    looked_up = 0

    def __contains__(self, run: str, /) -> bool:
        Examples.looked_up += 1
        return super().__contains__(run)


def test_only_what_is_new_is_looked_up_in_the_examples() -> None:
    """A prompt of hundreds of lines is checked in each step, against examples that may be a hundred megabytes."""

    contract = NoCopying(ROWS, target="queue")
    object.__setattr__(contract, "_long", Examples(contract._long))
    Examples.looked_up = 0
    before = "\n".join(f"Rule {n}: a parcel of kind {n} goes to room {n} of the house." for n in range(300))
    assert contract.copied(before, f"{before}\nMy planter stopped watering the basil on Tuesday, too.") != []
    assert Examples.looked_up < 30


@pytest.mark.timeout(10)
def test_a_text_of_many_thousand_lines_is_looked_at_at_once() -> None:
    """Each run of its words is looked up in what was there before, and not searched for."""
    before = "\n".join(
        f"Rule {n}: what is about {n * 7919 % 20_011} things goes to the queue {n}." for n in range(20_000)
    )
    new = "My planter stopped watering the basil on Tuesday"
    assert copied(f"{before}\n{new}", before) == ["my planter stopped watering the basil on tuesday"]


def test_an_answer_of_many_thousand_words_is_not_searched_for_run_by_run() -> None:
    """It holds up all that goes on beside it; each of its runs would be searched for in a megabyte of examples."""
    contract = NoCopying([" ".join(f"v{n}x{m}" for m in range(200)) for n in range(60)])
    object.__setattr__(contract, "_long", Examples(contract._long))
    copy = " ".join(f"v7x{m}" for m in range(50, 60))
    Examples.looked_up = 0
    assert contract.copied("Sort.", f"{' '.join(f'w{n}' for n in range(100))} {copy}") == [copy]
    assert Examples.looked_up > 100
    Examples.looked_up = 0
    assert contract.copied("Sort.", f"{' '.join(f'w{n}' for n in range(10_000))} {copy}") == [copy]
    assert Examples.looked_up == 0


def test_the_problem_shows_what_was_copied_between_tags() -> None:
    """A dataset is untrusted; a long run is shortened."""
    text = " ".join(f"w{n}" for n in range(100))
    problem = NoCopying([text]).problem("", text)
    assert problem is not None
    assert "\nw0 w1 " in problem
    assert "w39\n</copied-" in problem
    assert "w40" not in problem


def test_a_whole_text_of_just_so_many_words_must_not_be_copied() -> None:
    """`shortest` is the fewest that count; texts of fewer words are free."""
    contract = NoCopying(["my parcel leaks", "refund me"], shortest=3)
    assert contract.copied("Sort.", "If my parcel leaks: returns.") == ["my parcel leaks"]
    assert contract.copied("Sort.", "On 'refund me': billing.") == []


def test_its_repr_does_not_hold_the_data() -> None:
    """Settings are shown in reports and errors."""
    assert repr(NoCopying(ROWS)) == "NoCopying(n=8, shortest=3, examples=3)"


words = st.lists(st.sampled_from("abc"), max_size=12).map(" ".join)


@given(texts=st.lists(words, min_size=1, max_size=4), before=words, after=words, n=st.integers(1, 4))
def test_a_copy_is_a_run_of_an_example_that_is_new(texts: list[str], before: str, after: str, n: int) -> None:
    """Law, against a definition of its own, for runs of n words."""

    def runs(text: str) -> set[tuple[str, ...]]:
        listed = words_of(text)
        return {tuple(listed[i : i + n]) for i in range(len(listed) - n + 1)}

    taken = (runs(after) - runs(before)) & set().union(*map(runs, texts))
    assert bool(NoCopying(texts, n=n, shortest=99).copied(before, after)) is bool(taken)


@given(
    texts=st.lists(st.text("ab 包裹พ", max_size=16), min_size=1, max_size=4),
    before=st.text("ab 包裹พ", max_size=16),
    after=st.text("ab 包裹พ", max_size=16),
    n=st.integers(1, 3),
)
def test_of_a_long_answer_the_same_runs_are_copied(texts: list[str], before: str, after: str, n: int) -> None:
    """They are looked up in the runs of the examples then, and not each in the text of all."""
    contract = NoCopying(texts, n=n)
    searched = contract.copied(before, after)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("textgrad_engine.optim.contracts.copying._SEARCHED", 0)
        assert contract.copied(before, after) == searched


@pytest.mark.parametrize(
    "disguise",
    [
        "MY  PLANTER\nstopped -- watering: 'the' basil_on (Tuesday)",
        "\uff2d\uff39 \uff50lanter stopped watering the basil on Tuesday",
        "My plan\u00adter stop\u2062ped wa\ufe01tering the ba\u202esil on Tues\u034fday",
        "**My** **planter** `stopped`\u200bwatering\u200bthe\u200bbasil on Tuesday",
    ],
)
def test_how_it_is_written_hides_no_copy(disguise: str) -> None:
    """Case, white space, punctuation, width of letters and marks that nobody sees; the docstring names what does."""
    assert copied(f"Know this: {disguise}.") == ["my planter stopped watering the basil on tuesday"]


@pytest.mark.parametrize(
    ("example", "term", "copy"),
    [
        (
            "カスタマーサポートに追跡番号のことを聞きましたが返事が来ません",
            "カスタマーサポート",
            "追跡番号のことを聞きましたが返事が",
        ),
        ("我的包裹已经三个星期没有任何消息了怎么办呢", "三个星期没有任何消息", "我的包裹已经三个星期没有任何消息"),
        ("พัสดุของฉันยังไม่มาถึงและไม่มีใครตอบกลับเลย", "พัสดุของฉัน", "พัสดุของฉันยังไม่มาถึงและไม่มีใครตอบ"),
    ],
)
def test_a_term_of_many_letters_is_no_copy_where_words_are_not_apart(example: str, term: str, copy: str) -> None:
    """Eight letters of Chinese, Japanese or Thai are a word or four, which a prompt has to name; a clause is shown as
    it is read."""
    contract = NoCopying([example])
    assert contract.copied("", f"「{term}」: x") == []
    (found,) = contract.copied("", f"「{copy}」: x")
    assert found == copy
