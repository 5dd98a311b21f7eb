"""Which call of a run is shown to which prompt of a program: none is taught what another one is to say."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest

from textgrad_engine.optim.demo_runs import Asked, Run, Steps, demos_and_queries
from textgrad_engine.optim.demos import Demo, demo_of


class Examples:
    """What is known of the examples of a search.

    Args:
        right: the answers that the data has, by position.
        runs: what was run.
    """

    train = ("t1", "t2", "t3", "t4", "t5")

    def __init__(self, right: dict[int, str], runs: dict[int, Run]) -> None:
        self.right, self.ran = right, runs

    def demos(self, positions: Sequence[int]) -> list[Demo | None]:
        return [self.whole(n, self.right[n]) if n in self.right else None for n in positions]

    def runs(self, texts: tuple[str, ...], positions: Sequence[int]) -> list[Run | None]:
        return [self.ran.get(n) for n in positions]

    @classmethod
    def whole(cls, n: int, answer: str) -> Demo:
        return Demo((("mail", f"mail {n + 1}"),), answer, "", cls.train[n])


def test_what_fails_is_asked_about_and_not_shown() -> None:
    """What was just solved is shown with the program's words, other examples with theirs, where they have any."""
    ran = {n: Run(Examples.whole(n, said), ()) for n, said in {0: "eins", 1: "zwei"}.items()}
    examples = Examples({0: "one", 1: "two", 4: "five"}, ran)
    found = demos_and_queries(examples, ("Sort.",), {0: 1.0, 1: 0.5, 2: 1.0, 4: None}, 1.0, 0)
    assert [(demo.example, demo.answer) for demo in found["demos"]] == [("t1", "eins"), ("t5", "five")]
    assert found["queries"] == ("mail 2",)


def steps(n: int, about: str, said: str, *more: Asked) -> Run:
    """A run in two steps: what the mail is about, and where it goes."""
    mail = ("mail", f"mail {n + 1}")
    return Run(
        Examples.whole(n, said), (Asked((0,), (mail,), about), *more, Asked((1,), (("about", about), mail), said))
    )


def test_each_text_of_a_program_is_shown_what_its_own_call_was_given_and_answered() -> None:
    """What fails is asked about in the same terms; the data's own answers are for the last step alone."""
    examples = Examples(dict.fromkeys(range(5), "right"), {0: steps(0, "money", "billing"), 1: steps(1, "apps", "no")})
    scores = {0: 1.0, 1: 0.0}
    first, last = (demos_and_queries(examples, ("What?", "Where?"), scores, 1.0, text) for text in (0, 1))
    assert [(demo.inputs, demo.answer) for demo in first["demos"]] == [((("mail", "mail 1"),), "money")]
    assert first["queries"] == ("mail 2",)
    assert [(demo.inputs[0], demo.answer) for demo in last["demos"]] == [
        (("about", "money"), "billing"), *((("mail", f"mail {n}"), "right") for n in (3, 4, 5))
    ]  # fmt: skip
    assert last["queries"] == ("apps mail 2",)


def test_of_several_calls_of_one_text_the_last_is_shown_and_of_none_nothing() -> None:
    """It is the nearest to the end that was right; a step that was not run has no demonstration."""
    again = Asked((0,), (("mail", "mail 1"), ("hint", "shorter")), "cash")
    found = steps(0, "money", "billing", again).of_text(0)
    assert found is not None
    assert (found.inputs, found.answer, found.example) == (again.given, "cash", "t1")
    assert steps(0, "money", "billing").of_text(2) is None
    assert Run(Examples.whole(0, "billing"), (Asked((1,), (), "billing"),)).of_text(0) is None


def test_of_a_vote_one_that_won_is_shown() -> None:
    """The last one may have been wrong."""
    votes = tuple(
        Asked((0,), (("mail", f"sample {n}"),), said) for n, said in enumerate(("billing ", "billing", "spam"))
    )
    found = Run(Examples.whole(0, "billing"), votes).of_text(0)
    assert found is not None
    assert (found.inputs, found.answer) == ((("mail", "sample 1"),), "billing")


@pytest.mark.parametrize(("won", "lost"), [("5", "-5"), ("C", "C++"), ("15", "1.5"), ("Billing", "billing.")])
def test_what_differs_from_the_answer_in_signs_alone_is_shown_only_for_want_of_the_answer(won: str, lost: str) -> None:
    """Signs may be all that tells a wrong vote from the right one."""
    votes = tuple(Asked((0,), (("mail", f"sample {n}"),), said) for n, said in enumerate((won, won, lost)))
    found = [Run(Examples.whole(0, won), asked).of_text(0) for asked in (votes, (Asked((1,), (), "?"), votes[2]))]
    assert [each and each.answer for each in found] == [won, lost]


def test_a_call_that_was_given_nothing_shows_nothing() -> None:
    """An answer to no question teaches nothing."""
    assert Run(Examples.whole(0, "b"), (Asked((0,), (), "a"), Asked((1,), (), "b"))).of_text(0) is None


@pytest.mark.parametrize("asked", [(), (Asked((0,), (("text", "Mail: mail 1"),), " x"),), (Asked((), (), "x"),)])
def test_a_run_that_makes_one_call_is_shown_as_the_whole_program(asked: tuple[Asked, ...]) -> None:
    """With the example's own fields; also where nobody can see who uses the text."""
    run = Run(Examples.whole(0, "x"), asked)
    assert run.of_text(0) == run.whole
    assert Steps.of([run], 1).labelled(run.whole, 0) == run.whole


def test_the_texts_of_one_call_are_together() -> None:
    """Directly or by another one; those that nobody sees used are, too."""
    calls = (Asked((0, 1), (), "a"), Asked((1, 3), (), "b"), Asked((4,), (), "c"))
    found = Steps.of([Run(Examples.whole(0, "c"), calls)], 7)
    assert (found.together, found.unseen) == (((0, 1, 3), (2, 5, 6), (4,)), (2, 5, 6))
    assert Steps.of([], 2) == Steps(((0, 1),), ((), ()))


def test_only_who_gives_the_programs_answer_is_shown_the_datas() -> None:
    """Not a check behind it, nor a step whose answer Python changes; spaces around it are no change."""
    mail = ("mail", "mail 1")
    calls = (Asked((0,), (mail,), "billing\n"), Asked((1,), (mail, ("said", "billing")), "yes"))
    demo = Examples.whole(0, "account")
    found = Steps.of([Run(Examples.whole(0, "billing"), calls)], 2)
    assert (found.labelled(demo, 0), found.labelled(demo, 1)) == (demo, None)
    assert Steps.of([Run(Examples.whole(0, "queue 3"), calls)], 2).withheld == (None, None)


def test_a_step_is_shown_those_fields_of_an_example_that_it_is_given() -> None:
    """One that is given none of them is shown no right answers of the data."""
    fields = Demo((("mail", "My card is lost"), ("user", "u17")), "account", "", "t1")
    for given, names in [("Mail: My card is lost", ["mail"]), ("something", [])]:
        calls = (Asked((0,), (("user", "u17"),), "?"), Asked((1,), (("text", given),), "account"))
        found = Steps.of([Run(fields, calls)], 2).labelled(fields, 1)
        assert [name for name, _ in found.inputs] == names if found else not names


def test_what_most_runs_do_counts() -> None:
    """A text that ends one run in two by chance does not end the program."""
    mail = ("mail", "mail 1")
    ends, goes_on = (
        Run(Examples.whole(0, said), (Asked((0,), (mail,), "x"), Asked((1,), (mail,), "y"))) for said in "xy"
    )
    assert Steps.of([ends, goes_on], 2).withheld == (None, None)
    assert Steps.of([ends, ends, goes_on, None], 2).withheld == ((), None)


def test_of_two_specialists_each_is_shown_the_answers_of_what_gets_to_it() -> None:
    """An example whose run is not known may be the other one's; the router, which all get to, is shown none."""
    mail = ("mail", "mail 1")
    left, right = (
        Run(Examples.whole(0, "x"), (Asked((0,), (mail,), "?"), Asked((text,), (mail,), "x"))) for text in (1, 2)
    )
    found = Steps.of([left, right, None], 3)
    assert found.branches
    demo = Examples.whole(0, "account")
    assert [found.labelled(demo, 1, run) for run in (left, right, None)] == [demo, None, None]
    assert [found.labelled(demo, 2, run) for run in (left, right, None)] == [None, demo, None]
    assert found.labelled(demo, 0, left) is None


def test_an_exception_is_no_branch() -> None:
    """Where nine in ten examples get to a prompt, one of which nothing is known does, too; one that did not, not."""
    mail, demo = ("mail", "mail 1"), Examples.whole(0, "account")
    usual = Run(Examples.whole(0, "x"), (Asked((0,), (mail,), "?"), Asked((1,), (mail,), "x")))
    short = Run(Examples.whole(0, "x"), (Asked((0,), (mail,), "x"),))
    for runs, shown in [([usual] * 9 + [short], demo), ([usual] * 8 + [short] * 2, None)]:
        found = Steps.of(runs, 2)
        assert found.branches is (shown is None)
        assert found.labelled(demo, 1) == shown
        assert found.labelled(demo, 1, short) is None
        assert found.labelled(demo, 1, usual) == demo


def test_what_python_made_of_an_answer_is_not_shown_as_the_answer() -> None:
    """A sorter that answers JSON is shown JSON; and the data's answers, which are none, are not shown to it."""
    asked = Asked((0,), (("mail", "My bill?"), ("problem", "")), '{"queue": "billing"}')
    run = Run(demo_of("t1", {"mail": "My bill?"}, "billing"), (asked,))
    shown = run.of_text(0)
    assert shown is not None
    assert (shown.inputs, shown.answer) == (asked.given, asked.answer)
    assert Steps.of([run], 1).labelled(run.whole, 0) is None
    same = Run(run.whole, (replace(asked, answer=" Billing.\n"),))
    assert same.of_text(0) == run.whole
    assert Steps.of([same], 1).labelled(run.whole, 0) == run.whole
    signs = Run(demo_of("t2", {"mail": "?"}, "!"), (replace(asked, answer="+"),))
    assert Steps.of([signs], 1).labelled(signs.whole, 0) is None


def test_who_had_to_answer_json_is_shown_right_answers_that_are_json() -> None:
    """As what most runs do says; a text in JSON, such as a label in quotation marks, is as good as one without."""
    asked = Asked((0,), (("mail", "My bill?"),), '{"queue": "billing"}', in_form=True)
    run, word, whole = (demo_of("t1", {"mail": "My bill?"}, said) for said in (asked.answer, "account", {"queue": "x"}))
    formed, free = Run(run, (asked,)), Run(run, (replace(asked, in_form=False),))
    quoted = Run(replace(run, answer='"billing"'), (replace(asked, answer='"billing"'),))
    assert Steps.of([formed, formed, free], 1).labelled(word, 0) is None
    assert Steps.of([formed, formed, free], 1).labelled(whole, 0) == whole
    assert Steps.of([formed, free], 1).labelled(word, 0) == Steps.of([quoted], 1).labelled(word, 0) == word


def test_a_text_that_is_asked_where_nobody_sees_it_is_unseen() -> None:
    """A program of one call that is seen, which uses another text: the rest may be asked inside of tools."""
    run = Run(Examples.whole(0, "x"), (Asked((1,), (("mail", "?"),), "x"),))
    assert Steps.of([run], 2).unseen == (0,)
    hidden = Run(Examples.whole(0, "x"), (Asked((), (("mail", "?"),), "x"),))
    assert Steps.of([hidden], 2).unseen == ()
