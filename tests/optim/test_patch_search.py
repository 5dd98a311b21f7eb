"""`PatchSearch`: what it keeps and drops, what it remembers, and that nothing depends on which answer comes first."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import Any

import pytest

import textgrad_engine as tg
from textgrad_engine import nn, optim
from textgrad_engine.errors import AuthenticationFailed, BudgetExceeded, ContentFiltered
from textgrad_engine.llm import Request
from textgrad_engine.llm.cachekey import sample_number
from textgrad_engine.optim import PatchSearch, patch_search
from textgrad_engine.optim.proposers import Rewrite
from textgrad_engine.optim.revert import edits_in
from textgrad_engine.optim.search.searcher import Decision
from textgrad_engine.optim.telling import Tried
from textgrad_engine.testing import FunctionModel, simulated_task
from textgrad_engine.train import Objective
from textgrad_engine.train.guards import Guards

SEED = "Repeat the word."
Edits = list[dict[str, Any]]


def edit(op: str, line: int, text: str = "", *feedback: int) -> dict[str, Any]:
    return {"op": op, "line": line, "text": text, "reason": "asked for", "feedback": list(feedback or (1,))}


def rows(counts: str) -> list[dict[str, Any]]:
    """Examples: "a3 b1" is three that want an a shouted, and one that wants a b shouted."""
    names = [f"{part[0]}{n}" for part in counts.split() for n in range(int(part[1:]))]
    return [{"id": name, "word": name, "target": name.upper()} for name in names]


class Asked:
    """What a proposer is shown: the lines, the letters that the feedback names with its numbers, and the rest."""

    def __init__(self, request: Request) -> None:
        self.user = request.messages[-1].text
        feedback = self.user.partition("Feedback on it")[2].partition("Edits that were tried before")[0]
        self.lines = re.findall(r"^\d+\| (.*)$", self.user.partition("Feedback on it")[0], re.MULTILINE)
        self.letters: dict[str, int] = {}
        for number, said in re.findall(r"\[(\d+)\].*?Shout (\w)\.", feedback, re.DOTALL):
            self.letters.setdefault(said, int(number))
        self.history = self.user.partition("Edits that were tried before")[2].partition("\n\n")[0]
        self.tidying = "added side by side" in self.user

    @property
    def end(self) -> int:
        return len(self.lines)


def add_them_all(asked: Asked) -> Edits:
    """A line for each letter that feedback names and no line has."""
    lines = {letter: f"Shout {letter}." for letter in asked.letters}
    return [edit("add", asked.end, line, asked.letters[x]) for x, line in lines.items() if line not in asked.lines]


def one_at_a_time(asked: Asked) -> Edits:
    """A single line, for the first letter that has none."""
    return add_them_all(asked)[:1]


def is_right(lines: Sequence[str], word: str) -> bool:
    """A word is shouted when a line says so for its first letter."""
    return f"Shout {word[0]}." in lines


def word_in(request: Request) -> str:
    """The word that a request of the critic is about."""
    found = re.search(r"\b[a-z]\d{1,2}\b", request.messages[-1].text)
    assert found is not None
    return found[0]


class World:
    """A program that repeats words, a critic that says what to shout, and a proposer that does what a test says."""

    def __init__(
        self,
        train: str,
        val: str,
        propose: Callable[[Asked], Edits | dict[str, Any]] = add_them_all,
        right: Callable[[Sequence[str], str], bool] = is_right,
        seed: str = SEED,
        **settings: Any,
    ) -> None:
        self.propose, self.right = propose, right
        self.before: Callable[[Request], Any] = lambda request: None
        self.model = FunctionModel(self.answer)
        self.program = nn.ChatCompletion("{word}", system=nn.Parameter(seed, role="system prompt"))
        self.train, self.val = rows(train), rows(val)
        self.search = PatchSearch(
            self.program.parameters(), **{"feedback_batch_size": 1, "lanes": 1, "momentum": 50, **settings}
        )
        self.objective = Objective(self.program, nn.ExactMatch(), self.train, self.val)

    async def answer(self, request: Request) -> Any:
        waits = self.before(request)
        if waits is not None:
            await waits
        if request.purpose == "backward":
            schema = request.config.response_format.json_schema["properties"]["case_1"]
            return {"case_1": dict.fromkeys(schema["properties"], f"Shout {word_in(request)[0]}.")}
        if request.purpose == "optimizer":
            said = self.propose(Asked(request))
            return {"edits": said} if isinstance(said, list) else said
        word = request.messages[-1].text
        return word.upper() if self.right(request.messages[0].text.split("\n"), word) else word

    def step(self) -> Decision | None:
        with tg.use_models(forward=self.model):
            return self.search.step(self.objective)

    def steps(self, most: int = 60) -> list[Decision]:
        """Decisions until nothing is left to try."""
        found: list[Decision] = []
        while (decided := self.step()) is not None:
            found.append(decided)
            assert len(found) < most, [(each.kind, each.why) for each in found]
        self.search.close()
        return found

    @property
    def lines(self) -> list[str]:
        return str(self.program.system.data).split("\n")

    def asked(self, purpose: str) -> list[Request]:
        return [request for request in self.model.requests if request.purpose == purpose]


@pytest.fixture(autouse=True)
def all_lanes_are_filled(monkeypatch: pytest.MonkeyPatch) -> None:
    """The worlds here are tiny, so lanes would wait for each other; see the tests of that."""
    monkeypatch.setattr(patch_search, "SHARE", 1e-9)


def told(decisions: Iterable[Decision]) -> list[tuple[str, str]]:
    return [(each.kind, each.why) for each in decisions]


# what it refuses


@pytest.mark.parametrize(
    "setting",
    [
        "lanes", "batch_size", "max_edits", "max_tokens", "max_feedback_tokens", "feedback_batch_size", "most_tries",
        "ablate_every", "pool", "allowance",
    ],
)  # fmt: skip
def test_numbers_must_be_positive(setting: str) -> None:
    """Zero of anything is a mistake that is named."""
    with pytest.raises(ValueError, match=f"{setting} must be at least 1, got 0"):
        World("a1", "a1", **{setting: 0})


def test_settings_are_checked_when_they_are_given() -> None:
    """Not after the first proposal was paid for."""
    with pytest.raises(ValueError, match="momentum must be at least 0, got -1"):
        World("a1", "a1", momentum=-1)
    with pytest.raises(TypeError, match=r"write \['Be brief\.'\]"):
        World("a1", "a1", constraints="Be brief.")
    with pytest.raises(TypeError, match="a constraint is a text or has"):
        World("a1", "a1", constraints=[3])
    with pytest.raises(ValueError, match="no setting 'batch_size'"):
        PatchSearch([{"params": World("a1", "a1").program.parameters(), "batch_size": 3}])


def test_before_the_first_step_there_is_no_board() -> None:
    """Said in words, not as an attribute of None."""
    search = World("a1", "a1").search
    for look in (lambda: search.board, lambda: search.expected, search.texts):
        with pytest.raises(RuntimeError, match="no board before its first step"):
            look()
    search.close()


# the way it goes


def test_it_finds_what_is_to_be_found_and_ends() -> None:
    """One decision a step; the parameter holds the best texts; at the end there is nothing left to try."""
    here = World("a4 b4 c2", "a8 b8 c4", batch_size=4, lanes=2)
    decisions = here.steps()
    assert sorted(here.lines) == sorted([SEED, "Shout a.", "Shout b.", "Shout c."])
    assert (here.search.finished, here.step()) == (True, None)
    assert [each.number for each in decisions] == list(range(1, len(decisions) + 1))
    assert decisions[0].kept
    assert decisions[0].race is not None
    assert decisions[0].race.outcome == "better"


def test_a_perfect_text_costs_no_proposal() -> None:
    """Each validation example is run, and then it is over; with others to come, each training example is, too."""
    here = World("a4", "a8", seed="Shout a.")
    assert told(here.steps()) == []
    assert Counter(request.purpose for request in here.model.requests) == {"forward": 8 + 8}  # to measure the noise
    there = World("a4", "a8", seed="Shout a.")
    there.search.to_the_end = True
    assert told(there.steps()) == [("patch", "nothing was proposed")]
    assert Counter(request.purpose for request in there.model.requests) == {"forward": 4 + 8 + 8}


def test_the_trace_of_a_line() -> None:
    """Which feedback of which examples asked for it, in which proposal; and the decision has the same."""
    here = World("a2 b2", "a8 b8", batch_size=4)
    first = here.step()
    assert first is not None
    (change,) = first.changes
    assert {made.text: made.id for made in change.edits} == {"Shout a.": "1.1", "Shout b.": "1.2"}
    origins = dict(zip(here.lines, here.search.origins(here.program.system)))
    assert origins[SEED] is None
    shout = origins["Shout b."]
    assert shout is not None
    assert (shout.step, shout.edit, shout.reason) == (1, "1.2", "asked for")
    assert [(item.text, sorted(item.examples)) for item in shout.evidence] == [("Shout b.", ["b0", "b1"])]
    assert set(first.examples) == {"a0", "a1", "b0", "b1"}
    assert (first.scores, first.feedback) == ((0.0,) * 4, 4)
    here.search.close()


def test_feedback_that_says_nothing_asks_nobody() -> None:
    """No proposal is made of nothing, and the search ends."""
    here = World("a8", "a8")
    real = here.answer

    async def silent(request: Request) -> Any:
        answer = await real(request)
        return {"case_1": dict.fromkeys(answer["case_1"], " ")} if request.purpose == "backward" else answer

    here.model._fn = silent
    decisions = here.steps()
    assert set(told(decisions)) == {("patch", "nothing was proposed")}
    assert here.asked("optimizer") == []
    assert len(decisions) == 2  # each example is tried twice


@pytest.mark.parametrize(("train", "val"), [("a1", "a1"), ("a2 b2", "a2 b2"), ("a1 b1", "a12 b12"), ("a12 b12", "a2")])
def test_tiny_sets(train: str, val: str) -> None:
    """A minibatch larger than the training set, a race smaller than its first batch; one example proves nothing."""
    here = World(train, val, lanes=3)
    here.steps()
    assert here.lines[0] == SEED
    if val == "a1":
        assert here.lines == [SEED]
    else:
        assert "Shout a." in here.lines


def test_more_examples_are_taken_in_when_few_of_those_in_use_are_failed() -> None:
    """Races begin on a pool; when most of it is right, only others can still show a gain."""
    here = World("a4 b4", "a80 b8", pool=20, seed=SEED)
    decisions = here.steps()
    assert decisions[0].race is not None
    assert len(decisions[0].race.examples) <= 20
    assert {"Shout a.", "Shout b."} <= set(here.lines)
    assert len(here.search.board.val) > 20


def test_a_promising_candidate_gets_more_examples() -> None:
    """One that helps with a rare sort: too few of these are in the pool to tell, so it is run on others too."""
    sizes = []
    for seed in range(10):
        here = World("a4", "a5 b55", pool=12)
        here.search.seed = seed
        first = here.step()
        here.search.close()
        assert first is not None
        assert first.race is not None
        if first.kept:
            sizes.append(len(first.race.examples))
            assert len(first.race.gained) >= 2
    assert max(sizes) > 12
    assert len(sizes) >= 5


def without_the_rest(here: World, count: int, sort: str = "a") -> None:
    """Words of a sort go unanswered after so many words: the validation examples that the first pool leaves."""
    seen: set[str] = set()

    def before(request: Request) -> None:
        if request.purpose == "forward":
            word = request.messages[-1].text
            if len(seen) < count:
                seen.add(word)
            if word not in seen and word[0] == sort:
                raise ContentFiltered("withheld")

    here.before = before


def test_examples_that_go_unanswered_are_not_raced_on() -> None:
    """When few of those in use are failed, the only one that is left is lost; the search goes on without it."""
    here = World("a4", "a13", pool=12)
    here.train = here.val
    without_the_rest(here, 12)
    here.steps()
    assert here.lines == [SEED, "Shout a."]
    assert len(here.search.board.val) == 12


def test_a_first_pool_most_of_which_goes_unanswered_does_not_end_the_search() -> None:
    """There are others to race on: which ones are first was drawn."""
    here = World("a12", "a4", pool=2)
    gone: set[str] = set()

    def before(request: Request) -> None:
        if request.purpose == "forward":
            word = request.messages[-1].text
            if len(gone) < 2:
                gone.add(word)
            if word in gone:
                raise ContentFiltered("withheld")

    here.before = before
    first = here.step()
    here.search.close()
    assert first is not None
    assert len(here.search.board.val) == 2


def test_a_promising_candidate_whose_further_examples_go_unanswered_is_raced_without_them() -> None:
    """It is not lost: what its race has shown so far stands."""
    for seed in range(10):
        here = World("a4", "a5 b55", pool=12)
        here.search.seed = seed
        without_the_rest(here, 12, "b")
        first = here.step()
        here.search.close()
        assert first is not None
        assert not first.lost


# what was refused


def test_what_was_refused_is_shown_with_what_became_of_it() -> None:
    """A line that helps nobody and one that does harm, each with its outcome; what was kept is no history."""

    def propose(asked: Asked) -> Edits:
        for line in ("Useless.", "Whisper.", "Shout a."):
            if line not in asked.history and line not in asked.lines:
                return [edit("add", asked.end, line)]
        return []

    def right(lines: Sequence[str], word: str) -> bool:
        return "Whisper." not in lines and (word[0] == "z" or is_right(lines, word))

    here = World("a12", "a8 z16", propose, right, batch_size=4)
    decisions = here.steps()
    assert told(decisions)[:3] == [("patch", "no difference shown"), ("patch", "worse"), ("patch", "better")]
    shown = [Asked(request).history for request in here.asked("optimizer")]
    assert shown[0] == ""
    assert "- added 'Useless.' — no difference shown" in shown[1]
    assert "- added 'Useless.' — no difference shown\n- added 'Whisper.' — worse" in shown[2]
    assert here.lines == [SEED, "Shout a."]


def test_without_momentum_nothing_of_the_past_is_shown() -> None:
    """The setting counts the lines."""
    texts = iter(f"Useless {n}." for n in range(99))
    for momentum, most in ((0, 0), (2, 2)):
        here = World("a8 b8", "a8", lambda asked: [edit("add", 1, next(texts))], batch_size=4, momentum=momentum)
        here.steps()
        shown = [Asked(request).history.count("\n- ") for request in here.asked("optimizer")]
        assert max(shown) == most


def test_a_proposal_that_breaks_its_contract_is_repaired_once_then_dropped() -> None:
    """It is not raced; the problem is in the decision."""
    here = World(
        "a4", "a8", lambda asked: [edit("add", 1, "Shout a. FORBIDDEN")], constraints=[optim.Forbids(["FORBIDDEN"])]
    )
    first = here.step()
    assert first is not None
    assert (first.kept, first.race) == (False, None)
    assert first.why.startswith("dropped: ")
    assert "FORBIDDEN" in first.why
    assert len(here.asked("optimizer")) == 2
    here.search.close()


# of equals the shorter


IDLE = "This line does nothing at all."


def shortening(asked: Asked) -> Edits | dict[str, Any]:
    """Leaves out the last line but for the first one."""
    return [edit("remove", asked.end)] if asked.end > 1 else []


def shortening_anew(asked: Asked) -> dict[str, Any]:
    text = re.search(r"<text-\w+>\n?(.*?)\n?</text-\w+>", asked.user, re.DOTALL)
    assert text is not None
    return {"text": "\n".join(text[1].split("\n")[:-1] or [text[1]]), "reason": "too long"}


@pytest.mark.parametrize("lanes", [1, 4])
@pytest.mark.parametrize("val", ["a4 b8", "a40 b80"])
@pytest.mark.parametrize(("propose", "proposer"), [(shortening, None), (shortening_anew, Rewrite())])
def test_of_equals_the_shorter_prompt_is_kept(propose: Any, proposer: Any, val: str, lanes: int) -> None:
    """Nothing gets better without the line, and nothing worse, on all the examples that a race may run."""
    here = World("a4", val, propose, seed=f"Shout b.\n{IDLE}", proposer=proposer, lanes=lanes)
    first = here.steps()[0]
    assert (first.kept, first.why) == (True, "no difference, and shorter")
    assert first.race is not None
    assert len(first.race.examples) == min(len(here.val), 96)
    assert here.lines == ["Shout b."]


@pytest.mark.parametrize("pool", [48, 12])
def test_a_shorter_prompt_that_loses_an_example_is_not_taken(pool: int) -> None:
    """One of ninety that nobody has spoken of, in use for races or not."""
    here = World("a4", "a10 b79 c1", shortening, seed="Shout b.\nShout c.", pool=pool)
    decisions = here.steps()
    assert set(told(decisions)) == {("patch", "worse")}
    assert decisions[0].race is not None
    assert decisions[0].race.lost == ("c0",)
    assert here.lines == ["Shout b.", "Shout c."]


def test_a_prompt_that_only_gets_shorter_is_no_reason_to_go_on() -> None:
    """What was given up stays given up, so a search ends after as many proposals as without gains."""
    here = World("a4", "a4 b8", shortening, seed="\n".join(["Shout b.", *[IDLE] * 40]), most_tries=3, lanes=1)
    decisions = here.steps()
    assert [each.why for each in decisions if each.kind == "patch"] == ["no difference, and shorter"] * 3
    assert len(here.lines) == 38


def test_lines_that_stand_in_for_each_other_are_not_both_left_out() -> None:
    """Two lanes each leave out one of them; the second one is raced again with what the first has left."""

    def propose(asked: Asked) -> Edits:
        before = asked.lines.index(f"Not {min(asked.letters)}.")  # the number of the line before it
        return [edit("remove", before)] if before else []

    def right(lines: Sequence[str], word: str) -> bool:
        return word[0] == "x" and any(line in lines for line in ("One.", "Two."))

    here = World("a2 b2", "a4 b4 x16", propose, right, "One.\nNot a.\nTwo.\nNot b.", lanes=2, batch_size=1)
    decisions = here.steps()
    assert told(decisions)[:3] == [
        ("patch", "no difference, and shorter"),
        ("patch", "no difference, and shorter; to be raced again, as the texts have changed"),
        ("rival", "worse"),
    ]
    assert len({"One.", "Two."} & set(here.lines)) == 1


def test_a_shorter_prompt_goes_without_the_edits_that_break_what_must_not() -> None:
    """As one that is better does."""

    def propose(asked: Asked) -> Edits:
        return [edit("remove", n) for n in range(2, asked.end + 1)]

    def right(lines: Sequence[str], word: str) -> bool:
        return word == ("b0" if "Shout b0." in lines else "b1") or word[0] == "c"

    here = World("a4", "a4 b2 c8", propose, right, seed=f"Repeat.\n{IDLE}\nShout b0.")
    here.objective = Objective(here.program, nn.ExactMatch(), here.train, here.val, guards=Guards(never_break=["b0"]))
    first = here.step()
    here.search.close()
    assert first is not None
    assert (first.kept, here.lines) == (True, ["Repeat.", "Shout b0."])
    assert first.why.startswith("no difference, and shorter; without 1 of its edits, refused: ")


# several lanes


def two_lanes(propose: Callable[[Asked], Any], val: str = "a8 b8", right: Any = is_right, **settings: Any) -> World:
    """Two proposals at the same time, one about an a, one about a b."""
    return World("a1 b1", val, propose, right, lanes=2, batch_size=1, **settings)


def test_winners_are_put_together() -> None:
    """Both were found for the seed text; the second goes into what the first has made of it."""
    here = two_lanes(add_them_all)
    first, second = here.step(), here.step()
    assert first is not None
    assert second is not None
    assert told([first, second]) == [
        ("patch", "better"), ("patch", "better, and put together with what was kept in the meantime"),
    ]  # fmt: skip
    assert (first.changes[0].before, second.changes[0].before) == (SEED, first.changes[0].after)
    assert sorted(here.lines) == ["Repeat the word.", "Shout a.", "Shout b."]
    assert edits_in("\n".join(here.lines), here.search.board.origins[0]) == ("1.1", "2.1")
    here.search.close()


def test_what_another_patch_has_done_is_not_done_again() -> None:
    """Two lanes hear different things and answer them with the same line: it comes in once."""

    def right(lines: Sequence[str], word: str) -> bool:
        return "Shout all." in lines

    here = two_lanes(lambda asked: [edit("add", asked.end, "Shout all.")], right=right)
    assert told(here.steps())[:2] == [
        ("patch", "better"), ("patch", "what it gains was gained by another patch in the meantime"),
    ]  # fmt: skip
    assert here.lines == [SEED, "Shout all."]


def test_what_two_lanes_hear_is_answered_by_one_of_them() -> None:
    """Two minibatches ask for the same line: one lane is shown all that asks for it, and the other asks nobody."""
    here = World("a4", "a8", lanes=2, batch_size=2)
    here.search.remaining = 2
    first, second = here.steps()[:2]
    assert (first.kept, second.why) == (True, "nothing was proposed")
    assert len(first.examples) == len(second.examples) == 2
    (origin,) = (found for found in here.search.board.origins[0] if found is not None)
    assert {name for said in origin.evidence for name in said.examples} == {*first.examples, *second.examples}
    assert len(here.asked("optimizer")) == 1


@pytest.mark.parametrize("lanes", [2, 3])
def test_a_lane_whose_feedback_fails_holds_up_nobody(lanes: int) -> None:
    """Its error comes out at its turn, though the others wait for what it hears."""
    here = World("a2 b2 c2", "a4 b4 c4", lanes=lanes, batch_size=2)

    def refuse(request: Request) -> None:
        if request.purpose == "backward":
            raise AuthenticationFailed("wrong key")

    here.before = refuse
    with pytest.raises(AuthenticationFailed):
        here.step()
    here.search.close()


@pytest.mark.parametrize(("val", "winner"), [("a4 b16", "b"), ("a16 b4", "a")])
def test_where_both_changed_a_line_the_two_are_raced(val: str, winner: str) -> None:
    """Whichever came first, the better one stands there."""

    def propose(asked: Asked) -> Edits:
        (letter,) = asked.letters
        return [edit("replace", 1, f"Shout {letter}.")] if "Shout" not in asked.lines[0] else []

    here = two_lanes(propose, val)
    decisions = [here.step() for _ in range(3)]
    assert all(each is not None for each in decisions)
    first, second, third = (each for each in decisions if each is not None)
    assert second.why == "better, but the same lines were changed in the meantime: the two are raced"
    assert (first.kept, second.kept, third.kind) == (True, False, "rival")
    assert third.kept is (first.changes[0].after != f"Shout {winner}.")
    assert here.lines == [f"Shout {winner}."]
    assert third.race is not None
    assert len(third.race.gained) + len(third.race.lost) >= 2
    here.search.close()


def test_a_merge_that_breaks_a_contract_is_refused() -> None:
    """Each patch alone keeps it, both together do not: the first stays."""

    class TwoLines:
        def describe(self, before: str) -> str:
            return "At most two lines."

        def problem(self, before: str, after: str) -> str | None:
            return "there are more than two lines" if after.count("\n") > 1 else None

    here = two_lanes(add_them_all, constraints=[TwoLines()])
    first, second = here.step(), here.step()
    assert first is not None
    assert second is not None
    assert first.kept
    assert second.why == "dropped with what was kept in the meantime: there are more than two lines"
    assert here.lines == first.changes[0].after.split("\n")
    here.search.close()


def test_no_more_proposals_are_begun_than_are_wanted() -> None:
    """With eight lanes and two decisions to come, two are paid for."""
    here = World("a8 b8", "a8 b8", lanes=8, batch_size=2)
    here.search.remaining = 2
    here.step()
    assert here.search.board.begun == 2
    here.search.close()


# trying without


def test_what_does_not_help_is_taken_out_and_what_does_stays() -> None:
    """Both lines came in one patch that won; each is tried without, and the proposer is told."""

    def propose(asked: Asked) -> Edits:
        wanted = [line for line in ("Useless.", "Shout a.") if line not in asked.lines and line not in asked.history]
        return [edit("add", asked.end, line) for line in wanted]

    here = World("a4 b1", "a16 b2", propose)
    decisions = here.steps()
    ablations = {each.edits: each for each in decisions if each.kind == "ablation"}
    useless, needed = ablations["1.1",], ablations["1.2",]
    assert (useless.kept, useless.why) == (True, "no difference without")
    assert (needed.kept, needed.why) == (False, "it is worse without")
    assert here.lines == [SEED, "Shout a."]
    assert [entry.edit for entry in here.search.board.accepted] == ["1.2"]
    assert Tried(0, "'Useless.'", "no difference", removed=True) in here.search.board.history


def test_lanes_without_work_try_edits_without_once_a_patch_brought_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is done in the end anyway, and waits for nobody; but not while patches win, for these may take edits along."""
    monkeypatch.setattr(patch_search, "SHARE", 1000)  # one lane draws all that fails

    def propose(asked: Asked) -> Edits:
        return [each for each in one_at_a_time(asked) if each["text"] in ("Shout a.", "Shout b.")]

    here = World("a4 b4 c9", "a8 b8 c8", propose, lanes=4, batch_size=2, most_tries=4)
    decisions = sorted(here.steps(), key=lambda each: each.number)
    told = [(each.kind, each.kept) for each in decisions]
    won, vain, without = ("patch", True), ("patch", False), ("ablation", False)
    # Behind the first vain patch there is room for two of them, and for two that do something else.
    assert told[:7] == [won, won, vain, vain, vain, without, without]
    assert set(told[7:]) == {vain}


def test_two_that_stand_in_for_each_other_are_not_both_dropped() -> None:
    """Each alone can go; when one is gone, the other is tried again, on the texts of then."""

    def propose(asked: Asked) -> Edits:
        return [] if len(asked.lines) > 1 else [edit("add", 1, "Shout a."), edit("add", 1, "Shout a!")]

    def right(lines: Sequence[str], word: str) -> bool:
        return "Shout a." in lines or "Shout a!" in lines

    here = World("a4 b2", "a16", propose, right, lanes=4)
    whys = [each.why for each in here.steps() if each.kind == "ablation"]
    assert len(here.lines) == 2
    assert whys[0] == "no difference without"
    assert "no difference without; to be tried again, as the texts have changed" in whys
    assert whys[-1] == "it is worse without"


def test_a_removal_that_helps_is_not_undone_for_nothing() -> None:
    """Taking an edit out that had removed a line makes the text longer: of equals the shorter one stays."""
    seed = f"{SEED}\nMumble.\nStay calm."

    def propose(asked: Asked) -> Edits:
        if len(asked.lines) < 3:
            return []
        return [edit("remove", 2), edit("remove", 3), edit("add", 3, "Shout a.")]

    def right(lines: Sequence[str], word: str) -> bool:
        return "Mumble." not in lines and is_right(lines, word)

    here = World("a4", "a16", propose, right, seed=seed)
    whys = {each.edits: each.why for each in here.steps() if each.kind == "ablation"}
    assert here.lines == [SEED, "Shout a."]
    assert whys == {
        ("1.1",): "it is worse without", ("1.2",): "no difference shown, and it is longer",
        ("1.3",): "it is worse without",
    }  # fmt: skip


def test_an_ablation_that_would_break_a_contract_is_dropped_unraced() -> None:
    """The line that an edit had replaced lacks what must be there."""

    def propose(asked: Asked) -> Edits:
        return [] if len(asked.lines) > 1 else [edit("replace", 1, "KEEP this."), edit("add", 1, "Shout a.")]

    class Keeps:
        def describe(self, before: str) -> str:
            return "Says KEEP."

        def problem(self, before: str, after: str) -> str | None:
            return None if "KEEP" in after else "it does not say KEEP"

    here = World("a4", "a16", propose, constraints=[Keeps()])
    dropped = next(each for each in here.steps() if each.edits == ("1.1",))
    assert (dropped.why, dropped.race) == ("dropped: it does not say KEEP", None)
    assert here.lines == ["KEEP this.", "Shout a."]


# lanes


def test_lanes_that_would_hear_the_same_wait_until_patches_fail(monkeypatch: pytest.MonkeyPatch) -> None:
    """Sixteen examples in batches of four: one lane while patches are kept, and one more for each that is not."""
    monkeypatch.setattr(patch_search, "SHARE", 4)
    count = 0

    def propose(asked: Asked) -> Edits:
        nonlocal count
        count += 1
        return [edit("add", asked.end, f"Vain {count}.")]

    here = World("a9 b7", "a8 z8", propose, lambda lines, word: word[0] == "z", lanes=4, batch_size=4, most_tries=9)
    under_way = []
    for done in range(1, 5):
        here.step()
        under_way.append(here.search.board.begun - done)
    here.search.close()
    assert under_way == [0, 1, 2, 3]


def test_all_lanes_are_filled_where_minibatches_are_a_small_part(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of 48 examples that may fail, batches of two leave enough for four lanes at once."""
    monkeypatch.setattr(patch_search, "SHARE", 4)
    here = World("a24 b24", "a16", lanes=4, batch_size=2)
    here.step()
    begun = here.search.board.begun
    here.search.close()
    assert begun == 4


def test_while_patches_are_kept_lanes_are_filled_together() -> None:
    """The next proposals begin when all but a quarter of the lanes are settled, from what these have brought."""
    here = World("a3 b3 c3 d3 e3 f3", "a8 b8 c8 d8 e8 f8", one_at_a_time, lanes=4, batch_size=2)
    begun = []
    for _ in range(4):
        decided = here.step()
        assert decided is not None
        assert decided.kept
        begun.append(here.search.board.begun)
    here.search.close()
    assert begun == [4, 4, 4, 7]


def test_a_lane_that_is_done_goes_on_while_nothing_is_found() -> None:
    """All wait for each other, until as many as there are lanes have brought nothing; then there are twice as many."""
    here = World("a64", "a8 z8", lambda asked: [], lambda lines, word: False, lanes=4, batch_size=2)
    under_way = []
    for done in range(1, 7):
        here.step()
        under_way.append(here.search.board.begun - done)
    here.search.close()
    assert under_way == [3, 2, 1, 3, 7, 7]


def test_an_edit_is_tried_without_on_examples_that_races_have_not_run(monkeypatch: pytest.MonkeyPatch) -> None:
    """Few of those that races begin on may be about it: it would be dropped for nothing."""
    monkeypatch.setattr(patch_search, "FEWEST_FAILING", 1)
    here = World("b4 z2", "z8 b24", right=lambda lines, word: word[0] == "b" and is_right(lines, word), pool=8)
    new: list[set[str]] = []
    while True:
        known = set() if here.search._board is None else {here.objective.val[n] for n in here.search.board.val}
        if (decided := here.step()) is None:
            break
        if decided.kind == "ablation" and decided.race is not None:
            new.append({*decided.race.examples} - known)
    here.search.close()
    assert new
    assert new[0]
    assert "Shout b." in here.lines


# in company


def test_edits_that_help_only_in_company_are_tried_together() -> None:
    """Each alone shows no difference; together they win, and keep the trace of who asked for them."""

    def propose(asked: Asked) -> Edits:
        wanted = [line for line in ("First of two.", "Second of two.") if line not in asked.history]
        return [edit("add", asked.end, line) for line in wanted[:1] if line not in asked.lines]

    def right(lines: Sequence[str], word: str) -> bool:
        return {"First of two.", "Second of two."} <= set(lines)

    here = World("a4 b4", "a16", propose, right, batch_size=4)
    decisions = here.steps()
    assert told(decisions)[:2] == [("patch", "no difference shown")] * 2
    union = next(each for each in decisions if each.kind == "union")
    assert (union.kept, union.why) == (True, "better")
    assert sorted(here.lines) == ["First of two.", SEED, "Second of two."]
    for entry in here.search.board.accepted:
        assert entry.support
    for origin in here.search.origins(here.program.system)[1:]:
        assert origin is not None
        assert origin.evidence
    assert [each.kept for each in decisions if each.kind == "ablation"] == [False, False]


def test_edits_that_do_harm_alone_are_tried_together() -> None:
    """Half of a pair does harm where it stands alone; both of them win."""

    def propose(asked: Asked) -> Edits:
        wanted = [line for line in ("Half.", "Other half.") if line not in asked.history]
        return [edit("add", asked.end, line) for line in wanted[:1] if line not in asked.lines]

    def right(lines: Sequence[str], word: str) -> bool:
        halves = {"Half.", "Other half."} & set(lines)
        return len(halves) == 2 if word[0] == "a" else len(halves) != 1

    here = World("a4 b4", "a16 z4", propose, right, batch_size=4)
    decisions = here.steps()
    assert [each.why for each in decisions[:2]] == ["worse"] * 2
    assert [each.race.lost != () for each in decisions[:2] if each.race] == [True, True]
    assert next(each.why for each in decisions if each.kind == "union") == "better"
    assert sorted(here.lines) == ["Half.", "Other half.", SEED]


def test_the_same_company_is_tried_once() -> None:
    """Also when its edits were written again."""

    def propose(asked: Asked) -> Edits:
        tried = len(here.asked("optimizer")) % 2
        return [{**edit("add", asked.end, ("Useless.", "Vain.")[tried]), "reason": f"reason {len(asked.history)}"}]

    here = World("a8", "a8 z8", propose, lambda lines, word: word[0] == "z", batch_size=2, most_tries=3)
    unions = [each for each in here.steps() if each.kind == "union"]
    assert [sorted(made.text for made in each.changes[0].edits) for each in unions] == [["Useless.", "Vain."]]
    assert here.lines == [SEED]


@pytest.mark.parametrize("lanes", [1, 8])
def test_refused_edits_are_not_tried_together_without_end(lanes: int) -> None:
    """Where nothing helps, each refusal makes another company; two are tried, then none until a patch is kept.

    What is under way counts: eight lanes began up to sixteen before the first two were settled.
    """

    def propose(asked: Asked) -> Edits:
        return [edit("add", asked.end, f"Vain {len(here.asked('optimizer'))}.")]

    here = World("a12", "a8 z8", propose, lambda lines, word: word[0] == "z", batch_size=2, most_tries=4, lanes=lanes)
    decisions = here.steps(90)
    assert sum(each.kind == "patch" for each in decisions) > 6
    assert sum(each.kind == "union" for each in decisions) == 2
    assert here.search.board.vain == 2


def tidied(tidy: Callable[[Asked], Edits]) -> tuple[World, list[Decision]]:
    """Four lanes whose patches are put together, and what the proposer makes of it when it is asked to tidy."""

    def propose(asked: Asked) -> Edits:
        if asked.tidying:
            return tidy(asked)
        letters = [letter for letter in asked.letters if f"Shout {letter}." not in asked.lines]
        return [edit("add", 1, text) for x in letters for text in (f"Shout {x}.", f"Be loud, says {x}.")]

    here = World("a1 b1 c1 d1", "a8 b8 c8 d8", propose, is_right, lanes=4, batch_size=1)
    return here, here.steps()


def test_lines_that_say_the_same_are_removed_after_putting_together() -> None:
    """The proposer is asked once, beside other proposals; the shorter text stays when nothing is lost."""
    here, decisions = tidied(
        lambda asked: [edit("remove", n) for n, line in enumerate(asked.lines, 1) if line.startswith("Be loud")]
    )
    (tidying,) = (each for each in decisions if each.kind == "tidying")
    assert tidying.kept
    assert sorted(here.lines) == [SEED, "Shout a.", "Shout b.", "Shout c.", "Shout d."]
    assert {entry.edit for entry in here.search.board.accepted} >= {"1.1", "2.1", "3.1", "4.1"}


def test_a_tidied_text_that_is_worse_is_not_taken() -> None:
    """However much shorter it is."""
    here, decisions = tidied(lambda asked: [edit("remove", n) for n in range(2, asked.end + 1)])
    assert ("tidying", "it is worse without") in told(decisions)
    assert here.search.expected == 1.0


def test_a_tidied_text_that_is_longer_must_be_better() -> None:
    """Whoever is asked to tidy and adds something has to prove it."""
    here, decisions = tidied(lambda asked: [edit("add", asked.end, "All of this is important.")])
    assert ("tidying", "no difference shown, and it is longer") in told(decisions)
    assert "All of this is important." not in here.lines


# texts written as a whole


def rewriting(asked: Asked) -> dict[str, Any]:
    text = re.search(r"<text-\w+>\n?(.*?)\n?</text-\w+>", asked.user, re.DOTALL)
    assert text is not None
    lines = text[1].split("\n")
    letters = dict.fromkeys(re.findall(r"Shout (\w)\.", asked.user.partition("Feedback on it")[2]))
    new = [line for x in letters for line in (f"Shout {x}.", f"Fine, {x}.") if line not in lines]
    return {"text": "\n".join([*lines, *new]), "reason": "written anew"}


def test_rewrites_are_put_together_and_tried_without_as_edits() -> None:
    """A proposer that writes the whole text is taken by its lines: nothing is lost, and what is useless goes."""
    here = two_lanes(rewriting, proposer=Rewrite())
    decisions = here.steps()
    assert told(decisions)[:2] == [
        ("patch", "better"), ("patch", "better, and put together with what was kept in the meantime"),
    ]  # fmt: skip
    first = decisions[0].changes[0]
    assert [(made.op, made.id, made.reason, made.feedback) for made in first.edits] == [
        ("add", "1.1", "written anew", (1,))
    ]
    assert {"Shout a.", "Shout b."} <= set(here.lines)
    assert any(each.kind == "ablation" for each in decisions)


# lost answers


def failing(purpose: str, error: Exception, when: Callable[[Request], bool] = lambda request: True) -> Any:
    def before(request: Request) -> None:
        if request.purpose == purpose and when(request):
            raise error

    return before


@pytest.mark.parametrize(
    ("purpose", "problem"),
    [("backward", "no feedback from"), ("optimizer", "the optimizer gave no answer: ContentFiltered: withheld")],
)
def test_a_lost_critic_or_proposer_costs_its_proposal(purpose: str, problem: str) -> None:
    """It is told, the texts stay, and the next proposal goes on."""
    here = World("a4", "a16", batch_size=2)
    here.before = failing(purpose, ContentFiltered("withheld"))
    first = here.step()
    assert first is not None
    assert (first.kept, first.lost, first.why, first.race) == (False, True, "no answer", None)
    assert problem in first.problems[0]
    here.before = lambda request: None
    second = here.step()
    assert second is not None
    assert (second.kept, second.lost) == (True, False)
    here.search.close()


def test_a_critic_that_is_lost_for_some_examples_is_told_and_the_rest_is_used() -> None:
    """One piece of feedback is enough for a patch."""
    here = World("a4", "a16", batch_size=4)
    here.before = failing("backward", ContentFiltered("withheld"), lambda request: word_in(request) != "a0")
    first = here.step()
    assert first is not None
    assert (first.kept, first.lost, first.feedback) == (True, False, 1)
    (problem,) = first.problems
    assert " and 2 more): ContentFiltered: withheld" in problem
    here.search.close()


def test_texts_that_break_the_program_lose_their_race() -> None:
    """No error ends the search: other texts can still be run. It is told and not counted as harmless."""

    def propose(asked: Asked) -> Edits:
        return [edit("add", 1, "BREAK" if not here.asked("optimizer")[1:] else "Shout a.")]

    here = World("a4", "a16", propose, batch_size=2)
    here.before = failing("forward", ContentFiltered("withheld"), lambda request: "BREAK" in request.messages[0].text)
    first, second = here.step(), here.step()
    assert first is not None
    assert second is not None
    assert (first.kept, first.lost, first.race) == (False, True, None)
    assert "16 of 16 examples had no answer with the proposed texts" in first.why
    assert here.search.board.refused == []
    assert second.kept
    here.search.close()


def test_unanswered_examples_are_not_failures() -> None:
    """Training examples without an answer have no score, validation examples without one are in no race."""
    here = World("a2 x2", "a12 x4", batch_size=4)
    here.before = failing("forward", ContentFiltered("withheld"), lambda request: request.messages[-1].text[0] == "x")
    decisions = here.steps()
    assert decisions[0].scores == (0.0, 0.0, None, None)
    assert here.lines == [SEED, "Shout a."]
    assert all(score is not None for each in decisions if each.race for score in each.race.before)


@pytest.mark.parametrize("purpose", ["forward", "backward", "optimizer"])
def test_a_wrong_key_ends_it_at_once(purpose: str) -> None:
    """In whatever lane it comes up; the texts are as they were, and nothing is left behind."""
    here = World("a8", "a16", lanes=3, batch_size=2)
    here.before = failing(purpose, AuthenticationFailed("no such key", status=401))
    with pytest.raises(AuthenticationFailed):
        here.steps()
    here.search.close()
    assert here.lines == [SEED]
    here.before = lambda request: None
    here.steps()
    assert here.lines == [SEED, "Shout a."]


def test_a_spent_budget_keeps_the_best_so_far() -> None:
    """Wherever it runs out the parameters hold the best texts, and the search can go on."""
    for calls in range(20, 120, 14):
        here = World("a4 b4 c4", "a8 b8 c8", one_at_a_time, batch_size=4, lanes=2)
        with tg.budget(calls=calls), pytest.raises(BudgetExceeded):
            here.steps()
        here.search.close()
        if here.search._board is not None:
            assert here.search.texts() == (str(here.program.system.data),)
        here.steps()
        assert {"Shout a.", "Shout b.", "Shout c."} <= set(here.lines)


@pytest.mark.parametrize("calls", [3, 12, 24, 31, 38])
def test_a_search_goes_on_from_where_a_budget_ended_it(calls: int) -> None:
    """Also from its first validation, of which it has nothing then, and from the second run that tells the noise."""
    here = World("a4 b4 c4", "a8 b8 c8", one_at_a_time, batch_size=4, pool=24)
    with tg.budget(calls=calls), pytest.raises(BudgetExceeded):
        here.steps()
    here.steps()
    assert set(here.search.board.val) == set(range(24))
    assert {"Shout a.", "Shout b.", "Shout c."} <= set(here.lines)


# noise, scales, several parameters


def test_noise_is_measured_and_used() -> None:
    """Some examples are run twice with the same texts; what differs by itself is no proof."""

    def unsteady(lines: Sequence[str], word: str) -> bool:
        return (int(word[1:]) + len(sample_number(b""))) % 2 == 0

    here = World("a4", "a16", lambda asked: [], unsteady)
    here.step()
    assert here.search.board.noise == 0.5
    here.search.close()
    steady = World("a4", "a16", lambda asked: [])
    steady.step()
    assert steady.search.board.noise == 0.0
    steady.search.close()


@pytest.mark.parametrize("scale", [None, (1.0, 5.0)])
def test_graded_scores(scale: tuple[float, float] | None) -> None:
    """A share of what is right is a score too; of marks from 1 to 5 the best is known, not the best that was seen."""

    def mark(got: str, target: str) -> float:
        share = sum(a == b for a, b in zip(got, target)) / len(target)
        return share if scale is None else 1 + 2 * share  # a 3 for what is right: nobody gets full marks

    loss = nn.Metric(mark, "the word in capitals", lambda score: score >= (scale or (0, 1))[1])
    if scale is not None:
        loss.scale = scale  # type: ignore[assignment]
    here = World("a8", "a16", batch_size=4)
    here.objective = Objective(here.program, loss, here.train, here.val)
    first = here.step()
    here.search.close()
    assert first is not None
    assert (first.kept, here.lines) == (True, [SEED, "Shout a."])
    assert here.search.board.top == (1.0 if scale is None else 5.0)
    assert len(here.search.board.failing) == (0 if scale is None else 16)


class Chain(nn.Module):
    """Two prompts, one after the other; the second one's critic finds nothing to say."""

    def __init__(self) -> None:
        super().__init__()
        self.draft = nn.ChatCompletion("{word}", system=nn.Parameter(SEED, role="prompt of the drafter"))
        self.check = nn.ChatCompletion("{word}", system=nn.Parameter("Say it.", role="prompt of the checker"))

    def forward(self, word: str) -> Any:
        return self.check(word=self.draft(word=word))


def chained() -> World:
    """Four a's to train on, and a program of two prompts."""
    here = World("a4", "a16", batch_size=4)
    here.program = Chain()  # type: ignore[assignment]
    here.search = PatchSearch(here.program.parameters(), feedback_batch_size=1, lanes=1)
    here.objective = Objective(here.program, nn.ExactMatch(), here.train, here.val)
    return here


def test_an_edit_goes_to_the_parameter_that_the_feedback_went_to() -> None:
    """The other one is not even asked about, and stays as it is."""
    here = chained()
    real = here.answer

    async def answer(request: Request) -> Any:
        if request.purpose == "forward" and request.messages[0].text == "Say it.":
            return request.messages[-1].text
        if request.purpose == "backward":
            fields = request.config.response_format.json_schema["properties"]["case_1"]["properties"]
            checking = "Say it." in request.messages[-1].text
            return {"case_1": {name: "Shout a." if name == "word" or not checking else "" for name in fields}}
        return await real(request)

    here.model._fn = answer
    first = here.step()
    here.search.close()
    assert first is not None
    assert [change.variable.role for change in first.changes] == ["prompt of the drafter"]
    assert (first.kept, here.search.texts()) == (True, (f"{SEED}\nShout a.", "Say it."))
    assert all("prompt of the drafter" in request.messages[-1].text for request in here.asked("optimizer"))


def test_where_there_are_several_texts_the_past_says_which() -> None:
    """A line that did not help in one text says nothing about another."""
    here = chained()
    real = here.answer

    async def answer(request: Request) -> Any:
        if request.purpose == "forward":
            return request.messages[-1].text
        if request.purpose == "backward":
            fields = request.config.response_format.json_schema["properties"]["case_1"]["properties"]
            return {"case_1": dict.fromkeys(fields, "Shout a.")}
        return await real(request)

    here.model._fn = answer
    here.step()
    here.search.close()
    entries = here.search.board.history
    assert [entry.parameter for entry in entries] == [0, 1]


# saved and taken up again


def test_a_state_whose_board_is_of_another_version_is_refused_with_its_place() -> None:
    """What was tried was kept as sentences once, which do not say of which text; the search stays as it was."""
    here = chained()
    here.step()
    here.search.close()
    state = saved(here.search)
    state["board"]["history"] = ["added 'Shout a.' (in the system prompt) — worse"]
    before = saved(here.search)
    with pytest.raises(ValueError, match=r"board cannot be read: history\.0: .*another version of PatchSearch"):
        here.search.load_state_dict(state)
    assert saved(here.search) == before


def saved(search: PatchSearch) -> dict[str, Any]:
    state: dict[str, Any] = json.loads(json.dumps(search.state_dict()))
    return state


def plain(decided: Decision | None) -> Any:
    """A decision without the parameters themselves."""
    if decided is None:
        return None
    changes = [(each.before, each.after, each.edits, each.items, each.problem) for each in decided.changes]
    return replace(decided, changes=()), changes


def interacting(asked: Asked) -> Edits:
    """Some lines that help, some that do not, some that dispute a line."""
    letters = sorted(asked.letters)
    made = [
        edit("add", asked.end, f"Shout {x}.", asked.letters[x]) for x in letters if f"Shout {x}." not in asked.lines
    ]
    if letters and asked.lines[0] == SEED:
        made = [edit("replace", 1, f"Say it, {letters[0]}."), *made]
    useless = f"Useless {len(asked.history) % 7}."
    return [*made[:3], *([edit("add", 1, useless)] if useless not in asked.lines else [])]


def lively(lanes: int) -> World:
    return World("a3 b3 c3 d2", "a6 b6 c6 d4", interacting, batch_size=2, lanes=lanes, ablate_every=2)


@pytest.mark.parametrize("lanes", [1, 3])
def test_a_saved_search_goes_on_as_if_it_had_not_been_interrupted(lanes: int) -> None:
    """After each decision that leaves nothing under way; through JSON, with new objects and nothing remembered."""
    whole = lively(lanes)
    decisions, texts, idle = [], [], []
    while True:
        decided = whole.step()
        if decided is None:
            break
        decisions.append(plain(decided))
        texts.append(whole.search.texts())
        if not whole.search._lanes.under_way:
            idle.append((len(decisions), saved(whole.search)))
    assert len(idle) >= 3
    assert {"patch", "ablation"} <= {each[0].kind for each in decisions}
    if lanes > 1:
        assert "rival" in {each[0].kind for each in decisions}
        assert any(state["board"]["rivals"] for _, state in idle)
    for count, state in [*idle[:2], idle[len(idle) // 2]]:
        again = lively(lanes)
        with tg.no_grad():
            again.program.system.data = texts[count - 1][0]
        again.search.load_state_dict(state)
        assert saved(again.search) == state
        rest = []
        while (decided := again.step()) is not None:
            rest.append(plain(decided))
        assert rest == decisions[count:]
        assert again.search.texts() == texts[-1]
        again.search.close()
    whole.search.close()


def test_with_other_texts_the_search_begins_anew() -> None:
    """Somebody wrote the prompt: what was known of the old one does not hold; edits keep their ids apart."""
    here = World("a4 b4", "a8 b8", one_at_a_time, batch_size=4)
    here.step()
    begun = here.search.board.begun
    here.search.close()
    with tg.no_grad():
        here.program.system.data = "Something else.\nShout b."
    here.objective = Objective(here.program, nn.ExactMatch(), here.train, here.val)
    here.steps()
    assert {"Something else.", "Shout a.", "Shout b."} == set(here.lines)
    numbers = [int(entry.edit.split(".")[0]) for entry in here.search.board.accepted]
    assert min(numbers) > begun


def test_with_other_examples_the_search_begins_anew() -> None:
    """Positions are of the examples of before; texts and the origins of their lines stay."""
    here = World("a4 b4", "a8 b8", one_at_a_time, batch_size=4)
    here.step()
    here.search.close()
    here.train, here.val = rows("c3"), rows("c9")
    here.objective = Objective(here.program, nn.ExactMatch(), here.train, here.val)
    before = [origin and origin.edit for origin in here.search.origins(here.program.system)]
    here.steps()
    assert "Shout c." in here.lines
    after = [origin and origin.edit for origin in here.search.origins(here.program.system)]
    assert set(before) <= set(after)


def test_the_state_of_other_parameters_is_refused() -> None:
    """Before anything is taken over."""
    here, other = World("a1", "a2"), Chain()
    with pytest.raises(ValueError, match=r"groups of \[1\] parameters; this optimizer has groups of \[2\]"):
        PatchSearch(other.parameters()).load_state_dict(saved(here.search))


@pytest.mark.parametrize("lanes", [1, 3])
def test_what_a_proposal_was_to_try_is_due_again_when_it_fails(lanes: int) -> None:
    """The error comes out of the step; who repairs its cause goes on with the same search, and loses nothing."""
    here = World("a4 b4 c4", "a8 b8 c8", one_at_a_time, lanes=lanes, batch_size=4)
    failing = iter([True])

    def refuse(request: Request) -> None:
        if request.purpose == "optimizer" and next(failing, False):
            raise AuthenticationFailed("no such key", status=401)

    here.before = refuse
    failed, decided = 0, True
    while decided:
        try:
            decided = here.step() is not None
        except AuthenticationFailed:
            failed += 1
        assert len(here.search.board.under_way) == here.search._lanes.under_way
    assert failed == 1
    assert {"Shout a.", "Shout b.", "Shout c."} <= set(here.lines)
    here.search.close()


def test_closing_drops_what_is_under_way_and_nothing_else() -> None:
    """What was decided stays; the examples of dropped proposals are free again, and the next step goes on."""
    here = World("a4 b4 c4", "a8 b8 c8", one_at_a_time, lanes=3, batch_size=4)
    first = here.step()
    assert first is not None
    assert first.kept
    assert here.search.board.busy != set()
    kept = here.lines
    here.search.close()
    assert (here.search.board.busy, here.search._lanes.under_way, here.lines) == (set(), 0, kept)
    here.search.close()
    second = here.step()
    assert second is not None
    assert second.number > first.number
    here.steps()
    assert {"Shout a.", "Shout b.", "Shout c."} <= set(here.lines)


class Parcels:
    """A search on a simulated task, which can be saved and taken up again with a new optimizer."""

    def __init__(self, rules: int = 8, examples: int = 48, **settings: Any) -> None:
        self.task = simulated_task(rules=rules, interactions=2, seed=5, train=examples, val=examples)
        self.program = self.task.program()
        self.settings = settings
        self.search = PatchSearch(self.program.parameters(), **settings)
        self.objective = Objective(self.program, self.task.loss, self.task.train, self.task.val)

    def anew(self) -> None:
        state = saved(self.search)
        self.search.close()
        self.search = PatchSearch(self.program.parameters(), **self.settings)
        self.search.load_state_dict(state)

    def decisions(self, between: Callable[[], Any] = lambda: None) -> list[Decision]:
        found = []
        with tg.use_models(forward=self.task.model):
            while (decided := self.search.step(self.objective)) is not None:
                found.append(decided)
                between()
        self.search.close()
        return found


@pytest.mark.parametrize(("how", "settings"), [("closed", {"lanes": 8, "batch_size": 8}), ("saved", {})])
def test_no_edit_is_passed_over_because_its_trial_was_dropped(how: str, settings: dict[str, Any]) -> None:
    """However often a search is interrupted, each edit of the best texts was tried without when it ends."""
    here = Parcels(**settings)
    decisions = here.decisions(lambda: here.search.close() if how == "closed" else here.anew())
    tried = {name for each in decisions for name in each.edits}
    assert {entry.edit for entry in here.search.board.accepted} <= tried
    assert {name.split("/")[1] for name in here.search.board.tested} == tried
    assert len(tried) >= 7


def test_a_search_that_is_saved_at_each_step_goes_on_as_if_it_were_not() -> None:
    """While proposals are under way, too; and what they are to try counts as tried in no state."""
    here, other = (Parcels(5, 24, lanes=4, batch_size=4, ablate_every=2) for _ in range(2))
    tried: list[set[str]] = []

    def look() -> None:
        tried.append({name.split("/")[1] for name in saved(here.search)["board"]["tested"]})

    decisions = here.decisions(look)
    assert [plain(each) for each in decisions] == [plain(each) for each in other.decisions()]
    for count, marked in enumerate(tried, 1):
        assert marked == {name for each in decisions[:count] for name in each.edits}


def disputing(asked: Asked) -> Edits:
    """Puts a line in place of the first one."""
    (letter,) = asked.letters
    return [edit("replace", 1, f"Shout {letter}.")] if "Shout" not in asked.lines[0] else []


def in_company(asked: Asked) -> Edits:
    """One of two lines, of which none helps alone."""
    wanted = [line for line in ("First of two.", "Second of two.") if line not in asked.history]
    return [edit("add", asked.end, line) for line in wanted[:1] if line not in asked.lines]


def both(lines: Sequence[str], word: str) -> bool:
    return {"First of two.", "Second of two."} <= set(lines)


@pytest.mark.parametrize(
    ("kind", "taken", "make"),
    [
        ("rival", "rival", lambda: World("a1 b1", "a4 b16", disputing, lanes=2, batch_size=1)),
        ("union", "united", lambda: World("a4 b4", "a16", in_company, both, batch_size=4)),
        ("ablation", "turn", lambda: World("a4 b4", "a8 b8", lanes=2)),
        ("tidying", "together", lambda: World("a1 b1 c1 d1", "a6 b6 c6 d6", lanes=4, batch_size=1)),
    ],
)
def test_what_an_error_has_ended_is_done_after_all(kind: str, taken: str, make: Callable[[], World]) -> None:
    """The key does not hold any longer while it is under way; with a new one, the search ends as it would have."""

    def begun() -> World:
        world = make()
        world.search.to_the_end = True  # so that other work goes on beside it, too
        return world

    whole = begun()
    assert kind in {each.kind for each in whole.steps()}
    here, done = begun(), []

    def refuse(request: Request) -> None:
        if here.search._board is not None and any(getattr(each, taken) for each in here.search.board.under_way):
            raise AuthenticationFailed("no such key")

    here.before = refuse
    here.search.register_step_post_hook(lambda *_: done.append(here.search.decided))
    with pytest.raises(AuthenticationFailed):
        here.steps()
    here.search.close()
    assert kind not in {each.kind for each in done if each is not None}
    here.before = lambda request: None
    assert kind in {each.kind for each in here.steps()}
    assert sorted(here.lines) == sorted(whole.lines)


def test_the_same_twice() -> None:
    """Four lanes, one seed: the same decisions; another seed draws other minibatches."""
    task = simulated_task(rules=6, interactions=2, train=32, val=32, test=8)

    def run(seed: int) -> list[Any]:
        program = task.program()
        search, found = PatchSearch(program.parameters(), lanes=4, batch_size=8, seed=seed), []
        objective = Objective(program, task.loss, task.train, task.val)
        with tg.use_models(forward=task.model):
            while (decided := search.step(objective)) is not None:
                found.append(plain(decided))
        search.close()
        return found

    first = run(0)
    assert first == run(0)
    assert first != run(1)


# what decides, and where it is looked for


@pytest.mark.parametrize("steady", [True, False])
def test_measured_noise_decides_races(steady: bool) -> None:
    """Two of four that get better are a gain where answers are steady, and none where they differ by themselves."""

    def right(lines: Sequence[str], word: str) -> bool:
        found = is_right(lines, word) or int(word[1:]) % 2 == 0
        return found if steady or not sample_number(b"") else not found

    here = World("a4", "a4", one_at_a_time, right)
    decided = here.step()
    here.search.close()
    assert decided is not None
    assert decided.race is not None
    assert len(decided.race.gained) == 2
    assert decided.kept is steady


def test_what_was_given_up_is_tried_again_once_a_patch_is_kept() -> None:
    """It may be within reach of the new texts."""
    asked: list[str] = []

    def propose(seen: Asked) -> Edits:
        (letter,) = seen.letters
        asked.append(letter)
        if letter == "a" and asked.count("b") < 3:
            return []
        return add_them_all(seen)

    def right(lines: Sequence[str], word: str) -> bool:
        return is_right(lines, word) and "Shout a." in lines

    here = World("a9 b1", "a8 b8", propose, right, batch_size=1, most_tries=3)
    here.steps()
    assert asked.index("a", [n for n, letter in enumerate(asked) if letter == "b"][2]) > 0  # b was given up by then
    assert here.lines == [SEED, "Shout a.", "Shout b."]


def test_a_race_begins_where_the_patch_should_help() -> None:
    """On failures that have most in common with the examples that asked for it, wherever they stand in the set."""
    words = [f"plum {n}" for n in range(16)] + [f"kiwi {n}" for n in range(8)]
    val = [{"id": word, "word": word, "target": word.upper()} for word in words]
    train = [{"id": f"t{n}", "word": f"kiwi {n + 20}", "target": f"KIWI {n + 20}"} for n in range(4)]

    def answer(request: Request) -> Any:
        if request.purpose == "backward":
            schema = request.config.response_format.json_schema["properties"]["case_1"]
            return {"case_1": dict.fromkeys(schema["properties"], "Shout kiwi.")}
        if request.purpose == "optimizer":
            return {"edits": [edit("add", 1, "Shout kiwi.")]}
        text = request.messages[-1].text
        return text.upper() if f"Shout {text.split()[0]}." in request.messages[0].text else text

    program = nn.ChatCompletion("{word}", system=nn.Parameter(SEED, role="system prompt"))
    search = PatchSearch(program.parameters(), lanes=1, feedback_batch_size=1)
    with tg.use_models(forward=FunctionModel(answer)):
        decided = search.step(Objective(program, nn.ExactMatch(), train, val))
    search.close()
    assert decided is not None
    assert decided.race is not None
    assert all(name.startswith("kiwi") for name in decided.race.examples[:6])
