"""Where a line comes from: its edit, the feedback, the race that accepted it, and what was tried without it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

import textgrad_engine as tg
from textgrad_engine import optim
from textgrad_engine.errors import RunError
from textgrad_engine.optim import Edit, Evidence, Origin
from textgrad_engine.optim.cells import Gone
from textgrad_engine.optim.patch import apply_patch
from textgrad_engine.optim.search.racing import RaceRecord
from textgrad_engine.report import (
    as_json,
    lineage_as_json,
    lineage_of,
    render,
    render_line,
    render_step,
    step_as_json,
    step_of,
)
from textgrad_engine.report.lineage import problems_of
from textgrad_engine.store import read_run
from textgrad_engine.testing import simulated_task
from textgrad_engine.train import TrainResult
from textgrad_engine.train.events import ParameterChange, StepEnded

RACE = RaceRecord("better", ("v1", "v2", "v3"), (0.0, 0.0, 1.0), (1.0, 1.0, 1.0), 0.97, 0.4)


@pytest.fixture(scope="module", params=[{"seed": 3}, {"seed": 1, "interactions": 2}, {"seed": 2, "parameters": 2}])
def searched(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> TrainResult:
    """A PatchSearch run as its folder tells it."""
    task = simulated_task(**{"rules": 6, "train": 32, "val": 32, "test": 4, **request.param})
    program, folder = task.program(), tmp_path_factory.mktemp("lineage") / "run"
    with tg.use_models(forward=task.model):
        tg.Trainer(run_dir=folder).fit(
            program, task.loss, optim.PatchSearch(program.parameters()), task.train, task.val, task.test
        )
    found = read_run(folder).result
    assert found is not None
    return found


def step(number: int, before: str, after: str, *, kept: bool = True, **fields: Any) -> StepEnded:
    changes = (ParameterChange("system", before, after),)
    return StepEnded(number, 0, (), None, 0, 1, changes, None, kept, 0.5, race=RACE, **fields)


def result_of(
    result: TrainResult, *steps: StepEnded, seed: str, best: str, origins: list[Origin | None]
) -> TrainResult:
    return replace(result, steps=steps, seed={"system": seed}, best={"system": best}, origins={"system": origins})


def test_a_line_that_is_not_there(result: TrainResult) -> None:
    """The message names the range, so that the next try hits."""
    for number in (0, -1, 4):
        with pytest.raises(RunError, match=f"system has lines 1 to 3, so there is no line {number}"):
            lineage_of(result, number)


def test_a_text_that_was_not_trained(result: TrainResult) -> None:
    """The message names those that were; of several one must be chosen."""
    with pytest.raises(RunError, match="trained no 'sytem'; it trained system"):
        lineage_of(result, 1, "sytem")
    two = replace(result, best={"a": "x", "b": "y"})
    with pytest.raises(RunError, match="--parameter one of a, b"):
        lineage_of(two, 1)


def test_every_line_of_a_search_can_be_traced(searched: TrainResult) -> None:
    """Each line that is not of the seed text has its edit, feedback with examples, and the race that brought it in."""
    traced = 0
    train = {f"train-{n}" for n in range(1, 33)}
    for name, text in searched.best.items():
        for number, line in enumerate(text.split("\n"), 1):
            found = lineage_of(searched, number, name)
            assert found.text == line
            if not found.edit:
                assert line in searched.seed[name].split("\n")
                continue
            traced += 1
            assert found.reason
            assert found.accepted is not None
            assert found.accepted.kept
            assert found.accepted.race is not None
            assert found.accepted.race.outcome != "worse"
            if found.accepted.kind != "tidying":
                assert found.evidence
                assert all(set(item.examples) <= train and item.examples for item in found.evidence)
    assert traced >= 4


def test_the_ablations_of_a_line_are_found(searched: TrainResult) -> None:
    """Each is about that line's own edit, though edits of two prompts may have one id."""
    shown = 0
    for name, text in searched.best.items():
        for number, line in enumerate(text.split("\n"), 1):
            found = lineage_of(searched, number, name)
            by_number = {each.step: each for each in searched.steps}
            for trial in found.ablations:
                shown += 1
                assert trial.kind == "ablation"
                change = next(each for each in by_number[trial.step].changes if each.name == name)
                assert line not in change.after.split("\n")
    assert shown >= 4


def test_every_line_fits_eighty_columns(searched: TrainResult) -> None:
    """However long feedback and lists of examples are."""
    for name, text in searched.best.items():
        for number in range(1, len(text.split("\n")) + 1):
            shown = render_line(lineage_of(searched, number, name), width=80)
            assert max(map(len, shown.split("\n"))) <= 80
            assert "\x1b" not in shown


def test_a_line_of_the_seed_text(result: TrainResult) -> None:
    """It says that no step has changed it, also where a line beside it is gone."""
    for number in (1, 2):
        found = lineage_of(result, number)
        assert (found.edit, found.accepted, found.ablations) == ("", None, ())
        assert "A line of the seed text; no step of the run has changed it." in render_line(found)


def test_a_run_without_races_says_so(result: TrainResult) -> None:
    """As a step of a loop of one's own has none."""
    found = lineage_of(result, 3)
    assert (found.edit, found.reason) == ("1.2", "nobody knew")
    shown = render_line(found)
    assert "t9, t10: Say where gift cards go." in shown.replace("t10, t9", "t9, t10")
    assert "Accepted in step 1: kept" in shown
    assert "The run folder holds no race for it." in shown
    assert "It was never tried without this edit." in shown


def test_a_line_that_came_in_when_rivals_were_raced(result: TrainResult) -> None:
    """The step that accepted it is told, not the one that proposed it and was disputed."""
    origin = Origin(1, "asked", (Evidence("Say b.", ("t1",)),), "1.1")
    run = result_of(
        result,
        step(1, "a", "a\nb", kept=False, kind="patch", why="the two are raced"),
        step(2, "a", "a\nc", kind="patch", why="better"),
        step(3, "a\nc", "a\nb", kind="rival", why="better"),
        step(4, "a\nb", "a\nb\nd", kept=False, kind="patch", why="worse"),
        seed="a",
        best="a\nb",
        origins=[None, origin],
    )
    found = lineage_of(run, 2)
    assert found.accepted is not None
    assert (found.accepted.step, found.accepted.kind) == (3, "rival")


def test_a_candidate_that_became_the_best_later(result: TrainResult) -> None:
    """A population's line came in with the child that leads, whose text was made of another than the best one."""
    origin = Origin(1, "asked", (), "1.1")
    run = result_of(
        result,
        step(1, "a", "a\nb", kept=False, kind="mutation"),
        step(2, "a\nb", "a\nb\nc", kind="mutation"),
        seed="a",
        best="a\nb\nc",
        origins=[None, origin, Origin(2, "asked", (), "2.1")],
    )
    assert [found.accepted and found.accepted.step for found in (lineage_of(run, 2), lineage_of(run, 3))] == [2, 2]


def test_an_ablation_of_another_prompts_edit_of_the_same_id(result: TrainResult) -> None:
    """It takes nothing out of this prompt, so it is none of this line."""
    origin = Origin(1, "asked", (), "1.1")
    first = step(1, "a", "a\nb", kind="patch")
    other = replace(
        step(2, "x", "y", kept=False, kind="ablation", ablated=("1.1", "1.2")),
        changes=(ParameterChange("other", "x\ny", "x"), ParameterChange("system", "a\nb\nc", "a\nb")),
    )
    own = step(3, "a\nb", "a", kept=False, kind="ablation", ablated=("1.1",), why="it is worse without")
    run = result_of(result, first, other, own, seed="a", best="a\nb", origins=[None, origin])
    assert [trial.step for trial in lineage_of(run, 2).ablations] == [3]
    assert "Tried without in step 3, ablation: it is worse without" in render_line(lineage_of(run, 2))


def test_what_a_line_stands_for(result: TrainResult) -> None:
    """A line that replaced another tells that one's feedback too, as this is why it is there."""
    old = Origin(1, "asked", (Evidence("Say b.", ("t1", "t2")),), "1.1")
    new = Origin(2, "they say the same", (), "2.1", gone_before=(Gone("b", old, "2.1"),))
    run = result_of(
        result,
        step(1, "a", "a\nb", kind="patch"),
        step(2, "a\nb", "a\nB", kind="tidying"),
        seed="a",
        best="a\nB",
        origins=[None, new],
    )
    shown = render_line(lineage_of(run, 2))
    assert "It cites no feedback." in shown
    assert "It stands for: b" in shown
    assert "t1, t2: Say b." in shown
    body = lineage_as_json(lineage_of(run, 2))
    assert body["replaced"] == [{"text": "b", "evidence": [{"text": "Say b.", "examples": ("t1", "t2")}]}]
    assert body["accepted"]["race"]["gained"] == ["v1", "v2"]


def test_hostile_feedback_does_not_reach_the_terminal(result: TrainResult) -> None:
    """Escape sequences in feedback, names of examples, reasons and lines are made harmless."""
    evil = "\x1b[2J\x1b]0;owned\x07 wipe\r\nthe [bold]screen[/bold]\x9b31m\u202e"
    origin = Origin(1, evil, (Evidence(evil, (evil,)),), "1.1")
    race = replace(RACE, examples=(evil, "v2", "v3"))
    first = replace(step(1, "a", f"a\n{evil.splitlines()[0]}", kind="patch", why=evil), race=race)
    line = "\x1b[2J b"
    first = replace(first, changes=(ParameterChange("system", "a", f"a\n{line}"),))
    run = result_of(result, first, seed="a", best=f"a\n{line}", origins=[None, origin])
    for color in (False, True):
        shown = render_line(lineage_of(run, 2), color=color)
        assert "\x1b[2J" not in shown
        assert "\x07" not in shown
        assert "\x9b" not in shown
        assert "\u202e" not in shown
        assert "\r" not in shown
    assert "[bold]screen[/bold]" in render_line(lineage_of(run, 2))


@pytest.fixture
def removal(result: TrainResult) -> TrainResult:
    """A run that removed the second of two lines, added one, and tried to do without either edit."""
    edits = (
        Edit("remove", 2, "", "brevity hurts", (1,), "1.1"),
        Edit("add", 2, "Be kind.", "asked for", (2,), "1.2"),
    )
    told = (Evidence("It is too brief.", ("t3",)), Evidence("It is rude.", ("t4",)))
    before, after = "Sort.\nBe brief.", "Sort.\nBe kind."
    patch = replace(
        step(1, before, after, kind="patch", why="better"),
        changes=(ParameterChange("system", before, after, edits, told),),
    )
    back = step(
        2, after, "Sort.\nBe brief.\nBe kind.", kept=False, kind="ablation", ablated=("1.1",), why="it is worse"
    )
    out = step(3, after, "Sort.", kind="ablation", ablated=("1.2",), why="no difference without")
    origins = apply_patch(before, [None, None], edits[:1], told, 1)[1]
    return result_of(result, patch, back, out, seed=before, best="Sort.", origins=origins)


def test_a_step_that_is_not_there(result: TrainResult) -> None:
    """The message names the range, and what was trained."""
    with pytest.raises(RunError, match="the run has steps 1 to 2, so there is no step 3"):
        step_of(result, 3)
    with pytest.raises(RunError, match="the run has no steps, so there is no step 1"):
        step_of(replace(result, steps=()), 1)
    with pytest.raises(RunError, match="trained no 'sytem'; it trained system"):
        step_of(result, 1, "sytem")


def test_a_line_that_was_removed_is_found_by_its_step(removal: TrainResult) -> None:
    """Where somebody looks for it by its old number, or at the line that it stood beside."""
    with pytest.raises(RunError, match=r"'Be brief\.', is gone since step 1, which --step 1 explains"):
        lineage_of(removal, 2)
    with pytest.raises(RunError, match=r"so there is no line 3$"):
        lineage_of(removal, 3)
    shown = render_line(lineage_of(removal, 1))
    assert "no step of the run has changed it" in shown
    assert "Beside it stood: Be brief." in shown
    assert "It was removed in step 1, which --step 1 explains." in shown


def test_a_line_that_was_replaced_is_not_told_as_removed(result: TrainResult) -> None:
    """It has a line that stands for it."""
    edits = [Edit("replace", 2, "B", "better", (), "1.1")]
    _, origins = apply_patch("a\nb", [None, None], edits, [], 1)
    run = result_of(result, step(1, "a\nb", "a\nB"), seed="a\nb", best="a\nB", origins=origins)
    assert [lineage_of(run, number).beside for number in (1, 2)] == [(), ()]


def test_a_removal_has_feedback_examples_race_and_ablations(removal: TrainResult) -> None:
    """As a line that was added has; each edit of the step has its own."""
    found = step_of(removal, 1)
    assert (found.trial.step, found.trial.race) == (1, RACE)
    gone, new = found.edits
    assert (gone.removed, gone.added, gone.reason, gone.edit) == (("Be brief.",), (), "brevity hurts", "1.1")
    assert gone.evidence == (Evidence("It is too brief.", ("t3",)),)
    assert [trial.step for trial in gone.ablations] == [2]
    assert (new.added, [trial.step for trial in new.ablations]) == (("Be kind.",), [3])
    shown = render_step(found)
    assert shown.startswith("Step 1, patch, kept: better\n  race on 3 examples: ")
    assert "  - Be brief.\n  Edit 1.1: brevity hurts\n" in shown
    assert "  + Be kind.\n  Edit 1.2: asked for\n" in shown
    assert "never tried without" not in shown
    untried = replace(found, edits=(replace(new, ablations=()),))
    assert "It was never tried without this edit." in render_step(untried)
    assert "    t3: It is too brief.\n  Tried without in step 2, ablation: it is worse\n" in shown
    body = step_as_json(found)
    assert body["trial"]["race"]["gained"] == body["edits"][0]["ablations"][0]["race"]["gained"] == ["v1", "v2"]


def test_an_edit_of_a_step_has_no_ablations_of_another_prompts_edit(result: TrainResult) -> None:
    """Edits of two prompts may have one id; one that is tried without changes the text that it is of."""
    edit = Edit("add", 1, "b", "asked", ())
    first = replace(
        step(1, "a", "a\nb", kind="patch"),
        changes=(ParameterChange("system", "a", "a\nb", (replace(edit, id="1.1"),)),),
    )
    other = replace(
        step(2, "x", "y", kept=False, kind="ablation", ablated=("1.1",)),
        changes=(ParameterChange("other", "x\nb", "x"),),
    )
    own = step(3, "a\nb", "a", kept=False, kind="ablation", ablated=("1.1",))
    run = result_of(result, first, other, own, seed="a", best="a\nb", origins=[None, Origin(1, "asked", (), "1.1")])
    (found,) = step_of(run, 1).edits
    assert [trial.step for trial in found.ablations] == [3]


def test_an_ablation_tells_what_had_asked_for_what_it_takes_out(removal: TrainResult) -> None:
    """It has no feedback of its own; also where it brings back a line that an edit had removed."""
    (out,) = step_of(removal, 3).edits
    assert (out.removed, out.edit, out.reason) == (("Be kind.",), "1.2", "asked for")
    assert out.evidence == (Evidence("It is rude.", ("t4",)),)
    assert "Feedback that had asked for that edit\n    t4: It is rude." in render_step(step_of(removal, 3))
    (back,) = step_of(removal, 2).edits
    assert (back.added, back.edit, back.reason) == (("Be brief.",), "1.1", "brevity hurts")


def test_a_step_that_wrote_a_text_anew_is_told_by_the_lines_that_differ(result: TrainResult) -> None:
    """Nobody knows which of its feedback asked for which line, so each has all of it."""
    change = ParameterChange("system", "a\nb\nc", "a\nc\nd", (), (Evidence("Say d.", ("t1",)),))
    run = replace(result, steps=(replace(step(1, "a", "b"), changes=(change,)),))
    found = step_of(run, 1).edits
    assert [(edit.removed, edit.added) for edit in found] == [(("b",), ()), ((), ("d",))]
    assert all(edit.evidence == change.feedback for edit in found)
    assert step_of(run, 1, "system").edits == found


def test_a_step_says_what_its_optimizer_was_not_shown(result: TrainResult) -> None:
    """The report does not, as in runs without a critic it is so in most steps."""
    change = ParameterChange("system", "a", "b", (), (), left_out=3)
    run = replace(result, steps=(replace(step(1, "a", "b"), changes=(change,)),))
    assert "had no room for 3 items of feedback" in " ".join(render_step(step_of(run, 1)).split())
    assert step_of(run, 1, "system").problems == step_of(run, 1).problems
    assert "no room" not in render(run)


def test_a_step_that_changed_nothing_says_so(result: TrainResult) -> None:
    """Its proposal was dropped, and why; what was not answered is named, too, each only once."""
    told = "  1 example of the minibatch had no answer\n"
    told += "  The proposal for system was dropped: the new text is empty\n"
    assert render_step(step_of(result, 2)) == f"Step 2, not kept\n  It changed nothing.\n{told}"
    silent = replace(result.steps[1], problems=("no feedback: late", "the optimizer: gone", "no feedback: late"))
    assert problems_of(silent)[2:] == ("no feedback: late (2 times)", "the optimizer: gone")
    run = replace(result, steps=(silent,))
    assert "step 2: no feedback: late (2 times)" in render(run)
    assert as_json(run)["steps"][0]["problems"][1:] == list(silent.problems)  # type: ignore[index]


def test_only_one_text_of_a_step_is_shown_where_it_is_named(result: TrainResult) -> None:
    """A step may change several."""
    changes = (ParameterChange("system", "a", "b"), ParameterChange("user", "x", "y"))
    run = replace(result, steps=(replace(step(1, "a", "b"), changes=changes),), best={"system": "b", "user": "y"})
    assert [edit.parameter for edit in step_of(run, 1).edits] == ["system", "user"]
    assert [edit.parameter for edit in step_of(run, 1, "user").edits] == ["user"]


def test_every_step_of_a_search_fits_eighty_columns(searched: TrainResult) -> None:
    """However long feedback and lists of examples are; and what an edit wrote can be found in its step."""
    for each in searched.steps:
        found = step_of(searched, each.step)
        assert max(map(len, render_step(found, width=80).split("\n"))) <= 80
        for edit in found.edits:
            change = next(change for change in each.changes if change.name == edit.parameter)
            assert set(edit.removed) <= set(change.before.split("\n"))
            if each.kind == "ablation":
                assert edit.edit in each.ablated
                assert edit.evidence
    assert any(each.kind == "ablation" for each in searched.steps)


def test_hostile_text_of_a_step_does_not_reach_the_terminal(removal: TrainResult) -> None:
    """Neither lines nor reasons nor names of parameters may command it."""
    evil = "\x1b[2J\x07 wipe"
    change = ParameterChange(evil, evil, "x", (Edit("replace", 1, evil, evil, (1,), evil),), (Evidence(evil, (evil,)),))
    run = replace(removal, steps=(replace(step(1, "a", "b", why=evil, kind=evil), changes=(change,)),))
    for color in (False, True):
        shown = render_step(step_of(run, 1), color=color)
        assert "\x1b[2J" not in shown
        assert "\x07" not in shown
