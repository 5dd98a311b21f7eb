"""The diff: every line that changed, and who asked for it."""

from __future__ import annotations

import itertools
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from textgrad_engine.optim import Edit, Evidence, Origin
from textgrad_engine.optim.cells import Gone, lines_of
from textgrad_engine.optim.patch import apply_patch, origins_of_rewrite, stamped
from textgrad_engine.optim.sentences import excerpts
from textgrad_engine.report import difference
from textgrad_engine.report.difference import DiffLine, Replaced, diff_of, origins_from_steps
from textgrad_engine.report.tables import render
from textgrad_engine.train import TrainResult
from textgrad_engine.train.events import ParameterChange, StepEnded

lines = st.lists(st.sampled_from(["a", "b", "c", "", "- d"]), min_size=1, max_size=6)


def step(number: int, before: str, after: str, *edits: Edit, kept: bool = True) -> StepEnded:
    change = ParameterChange("p", before, after, edits, (Evidence("why", ("x",)),))
    return StepEnded(number, 1, ("x",), 0.5, 0, 1, (change,), 0.6, kept, 0.6)


def test_added_and_removed_lines_have_their_reasons(result: TrainResult) -> None:
    """An added line by its origin, a removed one by the edit that removed it."""
    found = diff_of("system", result.seed["system"], result.best["system"], result.origins["system"], result.steps)
    assert [(line.op, line.text, line.step, line.reason) for line in found] == [
        ("same", "Sort the mail.", None, ""),
        ("removed", "Be brief.", 1, "brevity hurts"),
        ("same", "Answer.", None, ""),
        ("added", "Gift cards go to account.", 1, "nobody knew"),
    ]
    assert found[1].evidence[0].examples == ("t3",)
    assert found[3].evidence[0].examples == ("t10", "t9")


@pytest.mark.parametrize(
    ("seed", "patches", "shown"),
    [
        ("B\nA", [[Edit("add", 1, "B", "twice")]], [("same", "B"), ("added", "B", 1, "twice"), ("same", "A")]),
        (
            "B\nA\nB",
            [[Edit("remove", 3, "", "the second")], [Edit("remove", 1, "", "the first")]],
            [("removed", "B", 2, "the first"), ("same", "A"), ("removed", "B", 1, "the second")],
        ),
        (
            "B\nA",
            [[Edit("add", 2, "B", "last")], [Edit("remove", 1, "", "not first"), Edit("add", 2, "x", "y")]],
            [("removed", "B", 2, "not first"), ("same", "A"), ("added", "x", 2, "y"), ("added", "B", 1, "last")],
        ),
        (
            "A\nC",
            [[Edit("add", 2, "A", "twice")], [Edit("remove", 1, "", "move"), Edit("add", 2, "A", "to here")]],
            [("removed", "A", 2, "move"), ("same", "C"), ("added", "A", 2, "to here"), ("added", "A", 1, "twice")],
        ),
        (
            "B\nA",
            [[Edit("add", 2, "B", "twice")], [Edit("remove", 3, "", "once")], [Edit("remove", 1, "", "never")]],
            [("removed", "B", 3, "never"), ("same", "A")],
        ),
        (
            "A\n\nB\n",
            [[Edit("add", 2, "", "air")], [Edit("remove", 5, "", "no end")]],
            [("same", "A"), ("same", ""), ("added", "", 1, "air"), ("same", "B"), ("removed", "", 2, "no end")],
        ),
    ],
)
def test_of_lines_that_read_alike_each_has_the_edit_of_its_own(
    seed: str, patches: list[list[Edit]], shown: list[tuple[object, ...]]
) -> None:
    """By where the edits were made, and not by what difflib takes for the same line."""
    steps, text = list[StepEnded](), seed
    for number, edits in enumerate(patches, 1):
        own = stamped(edits, number)
        after, _ = apply_patch(text, [None] * (text.count("\n") + 1), own, [], number)
        steps.append(step(number, text, after, *own))
        text = after
    found = diff_of("p", seed, text, origins_from_steps("p", seed, steps), steps)
    told = [(line.op, line.text, line.step, line.reason) for line in found]
    assert [each[:2] if each[0] == "same" else each for each in told] == shown


def test_steps_that_were_taken_back_explain_nothing() -> None:
    """Only what was kept can be why a line is gone."""
    edit = Edit("remove", 1, "", "wrong")
    steps = [step(1, "a\nb", "b", edit, kept=False), step(2, "a\nb", "b", Edit("remove", 1, "", "right"))]
    assert diff_of("p", "a\nb", "b", [None], steps)[0] == DiffLine("removed", "a", 2, "right")


def test_a_rewrite_explains_what_it_left_out() -> None:
    """Without edits, the step and its feedback are known."""
    found = diff_of("p", "a\nb", "b", [None], [step(3, "a\nb", "b")])
    assert (found[0].step, found[0].evidence) == (3, (Evidence("why", ("x",)),))


@pytest.mark.timeout(30)
def test_a_rewrite_of_hundreds_of_lines_is_explained_at_once() -> None:
    """All of them in other words: each pair of lines need not be compared letter by letter."""
    before = "\n".join(f"Rule {n}: tickets about {n * 7919 % 1000} things go to the queue {n}." for n in range(800))
    after = "\n".join(f"Send tickets about {n * 7919 % 1000} things to queue {n}, by rule {n}." for n in range(800))
    found = diff_of("p", before, after, [None] * 800, [step(3, before, after)])
    assert {line.step for line in found if line.op == "removed"} == {3}


@pytest.mark.timeout(30)
def test_a_text_that_was_written_anew_three_times_is_explained_at_once() -> None:
    """Each of its lines stands for the one in its place before, and for what that had stood for."""
    texts = ["\n".join(f"Rule {n} of text {number}" for n in range(300)) for number in range(4)]
    steps = [step(number, before, after) for number, (before, after) in enumerate(itertools.pairwise(texts), 1)]
    found = diff_of("p", texts[0], texts[3], origins_from_steps("p", texts[0], steps), steps)
    assert [(line.op, line.replaced) for line in found] == [("removed", True), ("added", False)] * 300
    assert {tuple(earlier.step for earlier in line.earlier) for line in found if line.op == "added"} == {(2, 1)}


@given(st.lists(lines, min_size=2, max_size=5))
def test_what_was_replaced_is_told_as_by_going_through_all_that_is_gone(texts: list[list[str]]) -> None:
    """Also where a line is gone twice, and where it came back."""
    origins: list[Origin | None] = [None] * len(texts[0])
    written = [text for text in map("\n".join, texts) if text]
    origins = origins[: len(lines_of(written[0]))] if written else origins
    for number, (before, after) in enumerate(itertools.pairwise(written), 1):
        origins = [*origins_of_rewrite(before, origins, after, "why", (), number)]
    gone = [each for own in origins if own is not None for each in (*own.gone_before, *own.gone)]
    replaced = Replaced(origins)
    for origin in origins:
        if origin is None:
            continue
        found: list[Gone] = []
        waiting = [origin.edit]
        while waiting:
            by = waiting.pop(0)
            new = [each for place, each in enumerate(gone) if by and each.by == by and each not in gone[:place]]
            waiting += [each.origin.edit for each in new if each.origin is not None and each not in found]
            found += [each for each in new if each not in found]
        assert replaced.by(origin.edit) == tuple(found)


def test_origins_are_worked_out_again_from_the_steps(result: TrainResult) -> None:
    """A run that was killed has no result, and its diff still says who asked."""
    assert origins_from_steps("system", result.seed["system"], result.steps) == result.origins["system"]


def test_an_origin_outlives_later_steps() -> None:
    """A line that a later rewrite kept stays with the step that wrote it."""
    steps = [step(1, "a", "a\nb", Edit("add", 1, "b", "r", (1,))), step(2, "a\nb", "c\nb")]
    origins = origins_from_steps("p", "a", steps)
    assert origins[1] == Origin(1, "r", (Evidence("why", ("x",)),), "1.1")
    assert origins[0] is not None
    assert origins[0].step == 2


@given(lines, lines)
def test_a_diff_holds_both_texts(old: list[str], new: list[str]) -> None:
    """Whatever the texts: without the added lines it is the old one, without the removed lines the new one."""
    found = diff_of("p", "\n".join(old), "\n".join(new), [None] * len(new), [])
    assert [line.text for line in found if line.op != "added"] == lines_of("\n".join(old))
    assert [line.text for line in found if line.op != "removed"] == lines_of("\n".join(new))


def test_a_line_that_nobody_wrote_is_put_down_to_nobody() -> None:
    """An origin of step 0 tells what is gone beside a line of the seed; it is no step."""
    beside = Origin(0, "", (), gone=(Gone("c", None, "1.1"),))
    lines = diff_of("p", "a\nb", "b\na", [beside, beside], [])
    assert sorted((line.op, line.step) for line in lines) == [("added", None), ("removed", None), ("same", None)]


def test_the_best_text_of_a_population_may_descend_from_one_that_was_never_the_best() -> None:
    """Its lines are explained by the step that proposed that one, though it was not kept."""
    child = step(2, "a", "a\nb", Edit("add", 1, "b", "first", (1,)), kept=False)
    other = step(3, "a", "a\nx", Edit("add", 1, "x", "second", (1,)))
    best = step(4, "a\nb", "a\nb\nc", Edit("add", 2, "c", "third", (1,)))
    origins = origins_from_steps("p", "a", [child, other, best])
    assert [origin.reason if origin else None for origin in origins] == [None, "first", "third"]


def test_a_text_that_nobody_wrote_down_is_compared_with_the_best_of_then() -> None:
    """A journal that was cut must not end in an error."""
    steps = [step(1, "a\nlost\nlines", "a\nnew", Edit("add", 3, "new", "why"))]
    origins = origins_from_steps("p", "a", steps)
    assert [origin.step if origin else None for origin in origins] == [None, 1]


def test_going_back_to_a_text_brings_its_origins_back() -> None:
    """A beam may find on more examples that an earlier text does better."""
    first = step(1, "a", "a\nb", Edit("add", 1, "b", "first", (1,)), kept=False)
    second = step(2, "a", "a\nc", Edit("add", 1, "c", "second", (1,)))
    again = step(3, "a\nc", "a\nb")
    origins = origins_from_steps("p", "a", [first, second, again])
    assert [origin.reason if origin else None for origin in origins] == [None, "first"]


def test_a_line_of_an_optimizer_that_went_on_is_told_by_the_step_of_this_run() -> None:
    """Its fourth step was the first one here, and its first one is none of this run's."""
    why = (Evidence("why", ("x",)),)
    steps = [step(1, "a", "a\nb", Edit("add", 1, "b", "r", (1,), "4.1")), step(4, "a\nb", "c\nb", kept=False)]
    found = diff_of("p", "a", "a\nb\nold", [None, Origin(4, "r", why, "4.1"), Origin(1, "s", why, "1.1")], steps)
    assert [(line.text, line.step) for line in found] == [("a", None), ("b", 1), ("old", None)]


def test_a_line_that_was_moved_is_put_down_to_the_step_that_moved_it() -> None:
    """There are no more of it than before."""
    edits = Edit("remove", 2, "", "r", (1,), "1.1"), Edit("add", 0, "b", "r", (1,), "1.2")
    found = diff_of("p", "a\nb", "b\na", [Origin(1, "r", (), "1.2"), None], [step(1, "a\nb", "b\na", *edits)])
    assert [(line.op, line.step) for line in found] == [("added", 1), ("same", None), ("removed", 1)]


def test_a_line_that_was_edited_again_names_all_who_asked_for_it(result: TrainResult) -> None:
    """Of a paragraph sentences are edited, one after the other, and what is shown of it are all of these."""
    first = Origin(1, "kind 5 was wrong", (Evidence("It is junk.", ("t5",)),), "1.1")
    second = Origin(
        2,
        "it was rude",
        (Evidence("Be kind.", ("t7",)),),
        "2.1",
        gone_before=(Gone("seed", None, "1.1"), Gone("one", first, "2.1"), Gone("and one", first, "2.1")),
    )
    steps = [step(1, "seed", "one\nand one"), step(2, "one\nand one", "two")]
    *_, line = diff_of("p", "seed", "two", [second], steps)
    assert (line.step, line.reason) == (2, "it was rude")
    assert [(each.step, each.reason, each.evidence) for each in line.earlier] == [(1, first.reason, first.evidence)]
    told = replace(result, seed={"p": "seed"}, best={"p": "two"}, origins={"p": [second]}, steps=steps)
    shown = " ".join(render(told).split())
    assert "step 2: it was rude t7: Be kind. before that, step 1: kind 5 was wrong (1 piece of feedback)" in shown
    assert "--line N with `show` has all that was said of a line." in shown


def test_a_line_that_was_replaced_stands_before_what_stands_in_its_place(result: TrainResult) -> None:
    """What was said of both is told once: six lines that were each replaced are not read twice over."""
    rude = Origin(1, "rude", (Evidence("Be kind.", ("t7",)),), "1.1")
    long = replace(rude, reason="long", edit="1.2", gone=(Gone("c", None, "1.2"),))
    new = [replace(rude, gone_before=(Gone("a", None, "1.1"),)), replace(rude, edit="1.3"), long]
    edits = [Edit("replace", 1, "A", "rude", (1,), "1.1"), Edit("replace", 3, "C", "long", (1,), "1.2")]
    edits += [Edit("remove", 2, "", "idle", (), "1.4"), Edit("add", 1, "x", "rude", (1,), "1.3")]
    steps = [step(1, "a\nb\nc", "A\nx\nC", *edits)]
    found = diff_of("p", "a\nb\nc", "A\nx\nC", new, steps)
    assert [(line.op, line.text, line.replaced) for line in found] == [
        ("removed", "a", True),
        ("added", "A", False),
        ("removed", "b", False),
        ("added", "x", False),
        ("removed", "c", True),
        ("added", "C", False),
    ]
    told = replace(result, seed={"p": "a\nb\nc"}, best={"p": "A\nx\nC"}, origins={"p": new}, steps=steps)
    shown = " ".join(render(told).split())
    assert "- a + A step 1: rude t7: Be kind. - b step 1: idle (cites no feedback) + x step 1: rude" in shown
    assert "- c + C step 1: long t7: Be kind." in shown


def test_a_long_line_shows_the_sentences_that_differ() -> None:
    """In two paragraphs of a thousand words nobody finds the changed one."""
    kinds = [f"Tickets of kind {n} go to queue {n}." for n in range(40)]
    before, after = " ".join(kinds), " ".join([*kinds[:5], "Kind 5 is junk.", *kinds[6:], "Be kind."])
    found = diff_of("p", f"a\n{before}\nb", f"{after}\nc", [None, None], [])
    assert [(line.op, line.shown) for line in found] == [
        ("removed", "a"),
        ("removed", f"\u2026 {kinds[5]} \u2026"),
        ("removed", "b"),
        ("added", "\u2026 Kind 5 is junk. \u2026 Be kind."),
        ("added", "c"),
    ]
    found = diff_of("p", f"a\n{before}\nb", f"a\n{after}\nc", [None] * 3, [])
    assert [(line.op, line.shown) for line in found[1:]] == [
        ("removed", f"\u2026 {kinds[5]} \u2026"),
        ("removed", "b"),
        ("added", "\u2026 Kind 5 is junk. \u2026 Be kind."),
        ("added", "c"),
    ]
    assert found[1].text == before


def test_a_long_line_is_shown_beside_what_has_most_in_common_with_it() -> None:
    """Other lines may have come in before it, and be long as well."""
    old = " ".join(f"Tickets of kind {n} go to queue {n}." for n in range(40))
    new, other = old.replace("queue 7.", "nobody."), " ".join(["Tickets of kind 3 go to queue 3.", *["Ask."] * 150])
    lines = diff_of("p", f"{old}\nEnd.", f"Be kind.\n{other}\n{new}\nEnd.", [None] * 4, [])
    assert [(line.op, line.shown) for line in lines if line.text in (old, new)] == [
        ("removed", "… Tickets of kind 7 go to queue 7. …"),
        ("added", "… Tickets of kind 7 go to nobody. …"),
    ]
    assert [line.excerpt for line in lines if line.text in ("Be kind.", other, "End.")] == [None] * 3


def test_long_lines_without_a_sentence_in_common_are_not_compared(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a hundred paragraphs that were written anew, ten thousand pairs would be."""
    compared = list[tuple[str, str]]()

    def counted(old: str, new: str) -> tuple[str, str]:
        compared.append((old, new))
        return excerpts(old, new)

    monkeypatch.setattr(difference, "excerpts", counted)
    old, new = (
        [" ".join(f"{word} {at} of paragraph {n}." for at in range(40)) for n in range(20)] for word in ("Old", "New")
    )
    new[7] = f"{old[3]} Be kind."
    found = diff_of("p", "\n".join(old), "\n".join(new), [None] * 20, [])
    assert compared == [(old[3], new[7])]
    assert [line.shown for line in found if line.excerpt is not None] == ["\u2026", "\u2026 Be kind."]


def test_edits_that_point_nowhere_are_told_by_the_lines_that_differ() -> None:
    """Those of a proposer of one's own, or of a damaged file: a line or an item of feedback that is not there."""
    nowhere = step(1, "a\nb", "a\nc", Edit("replace", 9, "c", "why", (1,)))
    assert nowhere.changes[0].edits == ()
    assert diff_of("p", "a\nb", "a\nc", origins_from_steps("p", "a\nb", [nowhere]), [nowhere])[1].step == 1
    unheard = step(1, "a\nb", "a\nc", Edit("replace", 2, "c", "why", (7, 1)))
    assert unheard.changes[0].edits == (Edit("replace", 2, "c", "why", (1,)),)


def test_edits_that_do_not_make_the_text_are_no_reason_for_its_lines() -> None:
    """The text was changed besides; its lines that differ are the step's."""
    other = step(1, "a\nb", "a\nc\nd", Edit("replace", 2, "c", "why", (1,)))
    origins = origins_from_steps("p", "a\nb", [other])
    assert [origin.reason for origin in origins if origin is not None and origin.step == 1] == ["", ""]
