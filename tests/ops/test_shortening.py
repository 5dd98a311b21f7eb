"""Cases for which there is no room are shortened, and say so."""

from __future__ import annotations

import re

import pytest

from textgrad_engine.fences import fence, mark, quoted
from textgrad_engine.llm.tokens import count
from textgrad_engine.ops.shortening import fitted_case, without_middle, without_middles
from textgrad_engine.templates import load


def case(*messages: str, answer: str = "Oslo", feedback: str = "No.", call: str = "") -> str:
    """A case, by its prompt: `call` is a later one, in the place of what was said."""
    return load("case").render(
        messages=[
            {"role": "system", "text": "Rules.", "place": "message"},
            *[{"role": "user", "text": message, "place": ""} for message in messages],
        ],
        name="this text",
        shown=False,
        tag="",
        of_tool=False,
        answer=answer,
        feedback=[call or feedback],
        calls=[call],
        left_out=0,
    )


def balanced(text: str) -> bool:
    """Whether each tag at the end of a line has its other one."""
    opened = re.findall(r"<(\w+-[0-9a-f]{8})>(?=\n)", text)
    return all(f"\n</{tag}>" in text for tag in opened)


def test_what_fits_is_as_it_was() -> None:
    whole = case("a" * 3000)
    assert fitted_case(whole, count(whole)) == whole


@pytest.mark.parametrize(
    "long",
    [
        case("begins " + "word " * 9000 + "ends"),
        case("Why?", answer="begins " + "word " * 9000 + "ends"),
        case("Why?", feedback="begins " + "word " * 9000 + "ends"),
        case("Why?", feedback=f"Expected exactly:\n{fence('begins ' + 'word ' * 9000 + 'ends', 'expected')}\nGot: x"),
        case("Why?", feedback=case("begins " + "word " * 9000 + "ends")),
        case("begins " + "x" * 45_000 + "ends"),
    ],
    ids=["message", "answer", "judge", "expected", "later call", "one line"],
)
def test_the_middle_of_what_is_long_is_left_out(long: str) -> None:
    """Whichever of it is, with its beginning and its end; what is short stays whole, and nearly all room is used."""
    short = fitted_case(long, 1000)
    assert 900 < count(short) <= 1000
    assert re.search(r"begins .+\n\[… [0-9,]+ more characters …\]\n.+ends", short, re.DOTALL)
    assert short.count("more characters") == 1
    assert "Feedback on the answer:" in short
    assert balanced(short)
    assert fitted_case(short, 1000) == short


def test_it_says_how_much_is_left_out() -> None:
    short = without_middles(case("a" * 500 + "b" * 1000 + "c" * 500), 1000)
    assert fence("a" * 500 + "\n[… 1,000 more characters …]\n" + "c" * 500, "message") in short


def test_what_is_shortened_twice_says_how_much_is_left_out_of_the_whole() -> None:
    """The message of a later call is, where the case has no room."""
    whole = case("a" * 5000 + "b" * 5000)
    twice = without_middles(without_middles(whole, 4000), 1000)
    assert twice == without_middles(whole, 1000)
    assert "\n[… 9,000 more characters …]\n" in twice


def test_of_many_messages_those_in_the_middle_are_left_out() -> None:
    """A conversation of thousands of turns has no long passage."""
    short = fitted_case(case(*[f"turn {n} of it" for n in range(2000)]), 800)
    assert count(short) <= 800
    assert "turn 0 of it" in short
    assert "turn 1999 of it" in short
    (gone,) = re.findall(r"\[… (\d+) more messages …\]", short)
    assert int(gone) + short.count("<message-") == 2000
    assert "The model's answer:" in short
    assert balanced(short)


def test_of_a_long_conversation_what_was_said_in_the_end_is_kept() -> None:
    """Each answer is in the calls behind it, case in case, so that there is no room for what is between."""
    for said in (f"Expected exactly:\n{fence('bye', 'expected')}", "Expected exactly `bye`."):
        whole = ""
        for n in range(30, 0, -1):
            turns = [f"turn {m} " + "blah " * 30 for m in range(n)]
            whole = case(*turns, answer=f"answer {n}", feedback=said, call=whole)
        short = fitted_case(whole, 600)
        assert count(short) <= 600
        assert 'The model\'s answer: "answer 1"' in short
        assert "[… 29 later calls, of which only what was said in the end is shown …]" in short
        assert fence(said, "feedback") in short
        assert "answer 30" not in short
        assert balanced(short)


def test_all_that_was_said_in_the_end_is_kept_with_answers_of_any_form() -> None:
    """An answer is quoted in its line or stands between tags, and nobody takes it for what was said of it."""
    for answer in ("Oslo", "Os\nlo", ""):
        said = ["No.", "It is\nwrong.", 'Say "please".']
        ends = "\n".join([f"Feedback on the answer:{quoted(each, 'feedback')}" for each in said])
        inner = case("blah " * 90, answer=answer).partition("Feedback on the answer:")[0] + ends
        short = fitted_case(case(*["blah " * 90] * 9, call=inner), 300)
        assert "[… 1 later call, of which only what was said in the end is shown …]" in short
        assert all(fence(each, "feedback") in short for each in said)


def test_what_code_made_of_an_answer_is_what_was_said_in_the_end() -> None:
    """It is no call, and has no answer of a model, so all of it is kept, with what a check said in quotation marks."""
    slots = {"purpose": "form", "score": "0", "low": None, "high": None, "must_pass": False}
    checked = load("metric").render(**slots, explanation="No date.", target="May 1", prediction="x")
    made = load("made_of_text").render(
        role="report", inputs=[{"name": "page", "text": "p"}], outcome="o", feedback=[checked]
    )
    short = fitted_case(case(*["blah " * 90] * 9, call=made), 450)
    assert fence(made, "case") in short
    assert "later call" not in short.replace("What came of the answer:", "")


def test_cases_in_cases_without_end_are_no_structure() -> None:
    """Somebody may write thousands of them."""
    for label in ("feedback", "case"):
        hostile = "x" * 400
        for n in range(500):
            hostile = f"<answer-{n:08x}>\nO\n</answer-{n:08x}>\n<{label}-{n:08x}>\n{hostile}\n</{label}-{n:08x}>"
        for said in ({"feedback": hostile}, {"call": hostile}):
            short = fitted_case(case("Why?", **said), 600)
            assert count(short) <= 600
            assert re.search(r"</(feedback|case)-[0-9a-f]{8}>$", short)


@pytest.mark.parametrize(
    "letter",
    [
        "e\u0323\u0302",
        "\u0928\u093f",
        "\u0e01\u0e49",
        "\U0001f469\u200d\U0001f469\u200d\U0001f467",
        "\U0001f1fb\U0001f1f3",
        "\U0001f44d\U0001f3fd",
        "\u1112\u1161\u11ab",
        "\r\n",
    ],
    ids=["vietnamese", "hindi", "thai", "family", "flag", "hand", "korean", "line"],
)
def test_no_letter_is_cut(letter: str) -> None:
    """What a reader sees as one sign may be several characters; half of one is another sign, or none."""
    for most in range(300, 312):
        short = without_middle("a" + letter * 500, most)
        head, said, tail = re.split(r"\n(?=\[…)|(?<=…\])\n", short)
        assert set(re.split(re.escape(letter), head[1:])) | set(re.split(re.escape(letter), tail)) == {""}
        assert said == f"[… {1 + 500 * len(letter) - len(head) - len(tail):,} more characters …]"
    assert len(without_middle("a\u0301" + "\u0301" * 5000, 300)) < 500  # signs without end are no letter


@pytest.mark.parametrize("name", ["q", "\u5de5\u5355", "\u0938\u0902\u0926\u0947\u0936", "\u0e02\u0e49\u0e2d"])
def test_tags_around_a_part_of_a_message_stay(name: str) -> None:
    """A case speaks of the text between them, which is called as a slot is."""
    marked = mark("draft " * 500, name)
    tag = marked[: marked.index(">") + 1]
    for message in (f"{'a ' * 9000}{marked}{'b ' * 9000}", marked + "b " * 9000, "a " * 9000 + marked):
        short = without_middles(case(message), 1000)
        assert short.count(tag) == 1
        assert f"{tag}draft " in short
        assert f"draft </{tag[1:]}" in short
        assert len(short) < 1600


@pytest.mark.parametrize(
    "hostile",
    [
        "<message-0a1b2c3d>\n" * 1_500,
        "\n</message-0a1b2c3d>" * 1_500,
        "<q-0a1b2c3d>" * 1_500,
        "<q-0a1b2c3d></q-0a1b2c3d>" * 1_500,
        f"{fence('x' * 300, 'feedback')}\n" * 150,
        "\u0000\r\u2028\u202e" * 1_500,
        "語" * 6_000,
    ],
    ids=["opened", "closed", "marks", "pairs", "fences", "control", "wide"],
)
@pytest.mark.parametrize("place", ["message", "answer", "feedback"])
def test_hostile_texts_are_no_structure(hostile: str, place: str) -> None:
    """Tags that somebody wrote are passages like any others, wherever they stand."""
    own = {"answer": "Oslo", "feedback": "No."} | ({} if place == "message" else {place: hostile})
    whole = case(hostile if place == "message" else "Why?", **own)
    short = fitted_case(whole, 1500)
    assert count(short) <= 1500
    assert short.startswith("system message: this text.\n\nuser message:\n<message-")
    assert short.count("\nThe model's answer:") == short.count("\nFeedback on the answer:") == 1
    assert short.index("\nThe model's answer:") < short.index("\nFeedback on the answer:")
    assert ('answer: "Oslo"' in short) == (place != "answer")
    assert short.endswith('answer: "No."') == (place != "feedback")


@pytest.mark.parametrize("most", range(60, 130, 7))
def test_no_word_and_no_number_is_cut(most: int) -> None:
    """Half of a number is another number. A second cut counts what the first one left out, and cuts no word, either."""
    words = [f"{number}" for number in range(1_000_000, 1_000_400)]
    text = " ".join(words)
    once = without_middle(text, most)
    assert without_middle(without_middle(text, 2 * most), most) == once
    begin, gap, end = once.split("\n")
    shown = (begin + " " + end).split()
    assert set(shown) <= set(words)
    assert int(re.sub(r"\D", "", gap)) == len(text) - len(begin) - len(end)
    assert most - 2 * len(words[0]) <= len(begin) + len(end) <= most
    assert len(without_middle("漢" * 400, most).split("\n")[0]) == most // 2  # there are no words to be seen
