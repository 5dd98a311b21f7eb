from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from textgrad_engine import nn
from textgrad_engine.optim import Edit
from textgrad_engine.optim.change import Change
from textgrad_engine.optim.telling import Tried, edits_in_words, history_of, tried

OLD = 'It\'s a "line".'
NEW = "Ends in 'x' by 'y'"

lines = st.text(alphabet=st.sampled_from("ab '\"\\{}\0\u2028é"), min_size=1, max_size=12)


def told(op: str, text: str = NEW) -> Tried:
    line = 1 if op != "add" else 0
    change = Change(nn.Parameter(OLD), OLD, OLD, (Edit(op, line, text, "why", ()),), (), 0, "")  # type: ignore[arg-type]
    (entry,) = tried([(0, change)], "no difference")
    return entry


def shown(past: Sequence[Tried], *texts: str, parameter: int = 0, window: int = 9) -> tuple[str, ...]:
    return history_of(past, parameter, texts, ["system prompt", "", "user prompt"], window)


def test_the_outcome_of_several_edits_is_told_as_that_of_all() -> None:
    """One that does no harm may have been tried beside one that does, also in another text."""
    edits = tuple(Edit("add", 0, text, "why", ()) for text in ("Be kind.", "Be rude."))
    both = Change(nn.Parameter(OLD), OLD, OLD, edits, (), 0, "")
    one = Change(nn.Parameter(OLD), OLD, OLD, edits[:1], (), 0, "")
    assert [entry.said() for entry in tried([(0, one)], "worse")] == ["added 'Be kind.' \u2014 worse"]
    assert [entry.said() for entry in tried([(0, both)], "worse")] == [
        "added 'Be kind.' \u2014 worse (with all 2 edits of its patch)",
        "added 'Be rude.' \u2014 worse (with all 2 edits of its patch)",
    ]
    assert {entry.outcome for entry in tried([(0, one), (1, both)], "worse")} == {
        "worse (with all 3 edits of its patch)"
    }
    assert {entry.outcome for entry in tried([(0, both)], "refused: a broke", each=True)} == {"refused: a broke"}


@pytest.mark.parametrize("op", ["add", "replace"])
def test_what_was_refused_and_is_there_now_is_not_said_to_have_failed(op: str) -> None:
    """The line was kept as part of another proposal; nobody shall be told to stay away from it."""
    entry = told(op)
    assert shown([entry], f"Sort.\n{NEW}") == ()
    assert shown([entry], f"Sort.\n{NEW}", "Other.", parameter=1) == ()
    assert shown([entry], "Sort.") == shown([entry], "Sort.", NEW) == (entry.said(),)  # it is in another text


def test_a_line_that_an_edit_would_have_replaced_or_removed_says_nothing() -> None:
    """It is in the text because the edit was refused."""
    history = [told("replace"), told("remove", "")]
    assert shown(history, OLD) == tuple(entry.said() for entry in history)


def test_a_line_that_was_taken_out_and_is_back_is_not_said_to_be_out() -> None:
    """The same contradiction the other way round."""
    entry = Tried(0, repr(NEW), "no difference", removed=True)
    assert shown([entry], NEW) == shown([entry], NEW, "Other.", parameter=1) == ()
    assert shown([entry], OLD) == (f"{NEW!r} was in the text and was taken out again (no difference without it)",)


@given(tried=lines, there=lines)
def test_whatever_the_lines_are(tried: str, there: str) -> None:
    """Quotes, backslashes and braces neither hide an entry nor take another one's place."""
    if "\n" in there or tried.strip() == there.strip() or not there.strip():
        return
    entry = told("add", tried)
    if repr(there) not in entry.said():
        assert shown([entry], there) == (entry.said(),)
    if tried.strip():
        assert shown([entry], tried) == ()


def test_several_texts_are_told_apart() -> None:
    """What was tried in another text is said to be of another one, by its role where it has one."""
    past = [Tried(n, f"added 'Line {n}.'", "worse") for n in (0, 1)]
    past.append(Tried(2, "'Line 2.'", "worse", removed=True))
    assert shown(past, "", "", "", parameter=0) == (
        "added 'Line 0.' — worse",
        "added 'Line 1.' (in another text of the program) — worse",
        "'Line 2.' was in another text of the program, the user prompt, and was taken out again (worse without it)",
    )
    assert shown(past, "", "", "", parameter=1)[:2] == (
        "added 'Line 0.' (in another text of the program, the system prompt) — worse",
        "added 'Line 1.' — worse",
    )


def test_what_was_tried_in_other_texts_does_not_put_out_what_was_tried_in_this_one() -> None:
    """The window is for the text in question; what is left of it is for others, the latest of them."""
    past = [Tried(n % 3 and 1, f"added '{n}.'", "kept") for n in range(9)]
    assert shown(past, "", "", window=2) == ("added '3.' — kept", "added '6.' — kept")
    assert [entry.split("'")[1] for entry in shown(past, "", "", window=4)] == ["0.", "3.", "6.", "8."]
    assert shown(past, "", "", window=0) == ()


EDITS = st.sampled_from(["added 'a.'", "added 'b.'", "removed 'c.'"])
ENTRIES = st.builds(Tried, st.integers(0, 2), EDITS, st.sampled_from(["no", "x"]))


@given(st.lists(ENTRIES, max_size=12), st.integers(0, 2), st.integers(0, 4), st.sampled_from(["a.", "b.\na.", ""]))
def test_a_window_is_of_the_end_of_all_that_is_not_there(
    past: list[Tried], parameter: int, window: int, text: str
) -> None:
    """Own entries first, and others where there is room, in the order of time."""
    live = [
        (n, each) for n, each in enumerate(past) if not (each.parameter == 0 and each.edit[7:-1] in text.split("\n"))
    ]
    own = [n for n, each in live if each.parameter == parameter]
    others = [n for n, each in live if each.parameter != parameter]
    own = own[max(0, len(own) - window) :]
    others = others[max(0, len(others) - window + len(own)) :]
    found = shown(past, text, "", "", parameter=parameter, window=window)
    assert len(found) == len(own) + len(others)
    assert [line.split(" (")[0].split(" \u2014")[0] for line in found] == [past[n].edit for n in sorted(own + others)]


def test_what_is_shown_of_a_long_past_takes_no_longer_than_of_a_short_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """It grows with each step, and is asked for in each."""
    read, real = [], Tried.said

    def counting(entry: Tried, other: str | None = None) -> str:
        read.append(entry)
        return real(entry, other)

    monkeypatch.setattr(Tried, "said", counting)
    counts = []
    for size in (50, 500):
        past = [Tried(0, f"added '{n}.'", "no") for n in range(size)]
        read.clear()
        assert len(shown(past, "Sort.\n499.\n49.", "", window=4)) == 4
        counts.append(len(read))
    assert counts[0] == counts[1] <= 9


def test_of_a_text_that_was_written_as_a_whole_what_differs_is_told() -> None:
    """That it was written anew says nothing."""
    change = Change(nn.Parameter("a"), "a\nb\nc", "a\nB\nc\nd", (), (), 0, "")
    assert edits_in_words(change) == ["replaced 'b' by 'B'", "added 'd'"]


def test_of_a_long_line_only_the_sentences_that_differ_are_told() -> None:
    """A history of whole paragraphs would be longer than the feedback beside it."""
    kinds = [f"Tickets of kind {n} go to queue {n}." for n in range(40)]
    before, after = "Sort.\n" + " ".join(kinds), " ".join([*kinds[:5], "Kind 5 is junk.", *kinds[7:], "Be kind."])
    edit = Edit("replace", 2, after, "why", ())
    change = Change(nn.Parameter(before), before, f"Sort.\n{after}", (edit,), (), 0, "")
    assert edits_in_words(change) == [
        f"replaced {kinds[5]!r} by 'Kind 5 is junk.'",
        f"removed {kinds[6]!r}",
        "added 'Be kind.'",
    ]
    assert shown(tried([(0, change)], "no", each=True), f"Sort.\n{after}") == (f"removed {kinds[6]!r} \u2014 no",)
