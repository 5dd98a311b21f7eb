"""A cross-validation in words and as a page: nothing that others wrote is markup, and nothing is claimed of nothing."""

from __future__ import annotations

import functools
import html
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import textgrad_engine as tg
from textgrad_engine import nn, optim
from textgrad_engine.llm import Usage
from textgrad_engine.report import folds_as_json, page_of_folds, render, render_folds
from textgrad_engine.report.folds import folds_in_a_line, notes_of
from textgrad_engine.report.view import remark_on
from textgrad_engine.store import Folds, read_folds, write_folds
from textgrad_engine.testing import FunctionModel
from textgrad_engine.train import Control, Controls, CrossValidation, Trainer, cross_validate
from textgrad_engine.train.controls import CONTROLS
from textgrad_engine.train.metric_scores import MetricScores
from textgrad_engine.train.standing import Standing

HOSTILE = "<script>alert(1)</script>\x1b[31m & say yes"


def answers(request: Any) -> Any:
    """A model that is right once the prompt says so; what it says is hostile."""
    if request.purpose == "backward":
        return {"case_1": {"system": HOSTILE}}
    if request.purpose == "optimizer":
        return {"edits": [{"op": "add", "line": 1, "text": HOSTILE, "reason": HOSTILE, "feedback": [1]}]}
    return "yes" if "say yes" in request.messages[0].text else "no"


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., Folds]:
    """Gives the folder of a cross-validation of 24 examples, in which a change helps, or is not right."""

    @functools.cache
    def trained(right: bool) -> Path:
        path = tmp_path_factory.mktemp("folds") / "run"
        rows = [{"id": f"<b>{n}</b>", "q": f"{n}?", "target": "yes" if right else "maybe"} for n in range(24)]

        def start() -> Any:
            program = nn.ChatCompletion("{q}", system=nn.Parameter("Answer.", role="system prompt"))
            return program, optim.TGD(program.parameters())

        with tg.use_models(forward=FunctionModel(answers)):
            cross_validate(start, nn.ExactMatch(), rows, folds=3, trainer=Trainer(run_dir=path))
        return path

    def copy(path: Path, *, right: bool = True) -> Folds:
        shutil.copytree(trained(right), path)
        return read_folds(path)

    return copy


@pytest.mark.parametrize("show", [render, render_folds])
def test_what_is_no_run_and_no_folder_of_folds_is_told_what_shows_it(show: Any) -> None:
    """What `cross_validate` gave is neither; nor is the name of a folder."""
    nothing = CrossValidation((), None, None, None, None, 0, 0.0)
    for given, named in ((nothing, "CrossValidation"), ("runs/a", "'runs/a'"), (None, "None")):
        with pytest.raises(TypeError, match=rf"^{show.__name__}: .* must be .*, got .*{named}; .*print"):
            show(given)


def test_what_others_wrote_is_text(made: Any, tmp_path: Path) -> None:
    """In a page and at a terminal."""
    folds = made(tmp_path / "<i>run")
    page = page_of_folds(folds)
    assert "<script>" not in page
    assert "&lt;script&gt;" in page
    assert "<i>run" not in page
    assert "\x1b" not in page + render_folds(folds, title=str(folds.path))


def test_where_folds_are_better_the_final_prompt_is_named_with_what_is_known_of_it(made: Any, tmp_path: Path) -> None:
    """And with what is not."""
    folds = made(tmp_path / "run")
    said = " ".join(render_folds(folds, width=400).split())
    assert f"The prompt to use: {folds.path / 'final' / 'best_prompt.txt'}".replace(" ", "") in said.replace(" ", "")
    assert "so none tests it. But the folds' prompts" in said
    assert "from about 16 of them, gained +1.000 on average on examples" in said
    assert "in 3 of 3 folds" in said
    assert "The verdict is about the mean of these prompts." in said
    assert folds_as_json(folds)["use"] == "final"


def test_folds_whose_prompts_lose_answers_are_not_said_to_be_luck(made: Any, tmp_path: Path) -> None:
    """What both answered is better beyond doubt; who takes the final prompt is to know of the rest."""
    folds = made(tmp_path / "run")
    for name, run in folds.runs.items():
        if run.result is not None and run.result.best_test is not None:
            scores = (None, None, None, *run.result.best_test.scores[3:])
            result = replace(run.result, best_test=replace(run.result.best_test, scores=scores))
            folds.runs[name] = replace(run, result=result)
    said = " ".join(render_folds(folds, width=400).split())
    assert "Which prompt to use is open, as the folds' prompts lose answers" in said
    assert "of those that are left, and 9 examples lost the answer that they had before" in said
    assert "may be luck" not in said
    assert "If a change costs you nothing" not in said


def test_where_nothing_was_found_the_seed_prompt_stays(made: Any, tmp_path: Path) -> None:
    """Nobody is told to use what was not shown to be better."""
    folds = made(tmp_path / "run", right=False)
    said = " ".join(render_folds(folds).split())
    assert "The prompt to use: the seed prompt, as the run on all examples found none that does better" in said
    assert "gained +" not in said
    assert folds_as_json(folds)["use"] == "seed"


def test_folds_whose_optimizers_spent_their_parts_beside_controls_are_told_as_that(made: Any, tmp_path: Path) -> None:
    """The budget was not spent then; it was where one of them was ended by the whole of it."""
    found = made(tmp_path / "run").found
    first = found.folds[0]
    each = [Control(name, {}, first.best_val, first.best_test, None, None, 1, 0, Usage()) for name in CONTROLS]
    part = replace(first, status="budget", controls=Controls("TGD", 1, Usage(), tuple(each)))
    one = replace(found, folds=(part, *found.folds[1:]))
    both = replace(one, folds=(part, replace(part, controls=None), *found.folds[2:]))
    assert [each.spent_its_part for each in (found, one, both)] == [False, True, False]
    assert folds_in_a_line(one).startswith("optimizer's part of the budget spent; tested")
    assert folds_in_a_line(replace(both, final=replace(part, controls=None))).startswith("budget spent; tested")
    assert folds_in_a_line(found).startswith("tested")


def test_a_budget_of_which_the_final_run_left_some_was_not_spent(made: Any, tmp_path: Path) -> None:
    """Folds have equal parts of it, and that on all examples has what is left."""
    folds = made(tmp_path / "run")
    found, why = folds.found, "300 calls of the budget are left: they were kept for the end of the run"
    cut = tuple(replace(each, status="budget") for each in found.folds[:2])
    one = replace(found, folds=(cut[0], *found.folds[1:]))
    two = replace(found, folds=(*cut, *found.folds[2:]))
    assert folds_in_a_line(one).startswith("part of 1 fold of the budget spent; tested")
    assert folds_in_a_line(two).startswith("part of 2 folds of the budget spent; tested")
    final = replace(found.final, status="budget", unspent=why)
    assert folds_in_a_line(replace(two, final=final)).startswith("budget spent; tested")
    run = replace(folds.runs["final"], result=final)
    assert f"The run on all examples: {why}." in notes_of(replace(folds, runs={**folds.runs, "final": run}))


def test_a_verdict_by_scores_without_a_scale_says_so(made: Callable[..., Folds], tmp_path: Path) -> None:
    """Nobody knows how far a score can fall there, so rare large falls are not allowed for."""
    folds = made(tmp_path / "run")
    assert folds.found.comparison is not None
    assert folds.found.comparison.verdict == "better"
    assert not any("The scale of the scores" in note for note in notes_of(folds))
    vars(folds)["found"] = replace(folds.found, comparison=replace(folds.found.comparison, bounded=False))
    assert notes_of(folds)[0].startswith("The scale of the scores is not known, so rare")


def test_a_final_run_that_was_ended_before_it_found_anything_is_gone_on_with(made: Any, tmp_path: Path) -> None:
    """It is no reason to keep the seed prompt, where the folds are better."""
    folds = made(tmp_path / "run")
    assert folds.found.final is not None
    final = replace(folds.found.final, status="budget", best=folds.found.final.seed)
    vars(folds)["found"] = replace(folds.found, final=final)
    said = " ".join(render_folds(folds).split())
    assert "The final prompt is still the seed prompt" in said
    assert "tg.cross_validate(..., trainer=tg.Trainer(run_dir=..., resume=True)) goes on with it" in said
    assert folds_as_json(folds)["use"] is None
    assert "prompt as a whole" not in page_of_folds(folds)


def test_the_page_has_the_final_prompt_once_as_a_whole_and_the_words_of_the_terminal(made: Any, tmp_path: Path) -> None:
    """A reader who finds it twice looks for the difference."""
    folds = made(tmp_path / "run")
    first, second, third = folds.found.folds  # the second one has found nothing
    vars(folds)["found"] = replace(folds.found, folds=(first, replace(second, best=second.seed), third))
    page = page_of_folds(folds)
    assert page.count("The prompt as a whole") == 1
    rows = [row for row in page.split("<tr") if "fold " in row]
    assert ["unchanged" in row for row in rows] == [False, True, False]
    assert "unchanged" in render_folds(folds)


def test_how_the_final_prompt_stands_to_the_guards_is_told(made: Any, tmp_path: Path) -> None:
    """Each run tells of its own; of the one whose prompt is to be used it stands here, too."""
    folds = made(tmp_path / "run")
    terms = ("the floor of 0.9 under the metric 'safe' is not reached: 0.500 -> 0.750",)
    found = replace(folds.found, final=replace(folds.found.final, terms=terms))
    object.__setattr__(folds, "found", found)
    said = "In the run on all examples, the floor of 0.9 under the metric 'safe' is not reached: 0.500 -> 0.750."
    assert said in " ".join(render_folds(folds).split())
    assert "In the run on all examples, the floor of 0.9 under" in page_of_folds(folds)
    assert folds_as_json(folds)["final"]["terms"] == list(terms)


def test_a_floor_that_the_folds_prompts_do_not_reach_stands_beside_the_verdict(made: Any, tmp_path: Path) -> None:
    """On the examples that tested: what the final run says is of those that chose its prompt."""
    folds = made(tmp_path / "run")
    found = folds.found
    assert "not reached" not in render_folds(folds)
    safe = MetricScores("safe", (0.75,) * 24, (0, 1), 1.0)
    seed, best = (replace(each, parts=(safe,)) for each in (found.seed, found.best))
    floors = (Standing("the metric 'safe'", 0.9, "test", 8, 0.75, 0.75),)
    each = tuple(replace(fold, floors=floors) for fold in found.folds)
    final = replace(found.final, floors=(Standing("the metric 'safe'", 0.9, "val", 24, 0.75, 1.0),))
    vars(folds)["found"] = replace(found, seed=seed, best=best, folds=each, final=final)
    missed = "floor not reached: the metric 'safe', 0.750 of 0.9 on test"
    assert f"on all folds; {missed}" in " ".join(render_folds(folds).split())
    assert f"on all folds; {missed}" in html.unescape(page_of_folds(folds))
    assert folds_in_a_line(folds.found).endswith(f"); {missed}")
    found = folds_as_json(folds)
    told = [[(floor["split"], floor["reached"]) for floor in each["floors"]] for each in (found, found["final"])]
    assert told == [[("test", False)], [("val", True)]]


def test_why_searches_ended_before_their_steps_were_over_is_told(made: Any, tmp_path: Path) -> None:
    """Of folds for which it is the same at once; a script finds it, too. Where none did, nothing is said."""
    folds = made(tmp_path / "run")
    first, second, third = (replace(each, idle="") for each in folds.found.folds)
    final = replace(folds.found.final, idle="")
    time, top = "the search ended after 2 steps, as its time was over", "all 8 were right"
    vars(folds)["found"] = replace(folds.found, folds=(first, second, third), final=final)
    assert folds_as_json(folds)["folds"][0]["idle"] is None
    quiet = render_folds(folds, title="run")
    each = (replace(first, idle=time), replace(second, idle=top), replace(third, idle=time))
    vars(folds)["found"] = replace(folds.found, folds=each, final=replace(final, idle=top))
    told = " ".join(render_folds(folds, title="run").split())
    for sentence in (f"Folds 1, 3: {time}.", f"Fold 2: {top}.", f"The run on all examples: {top}."):
        assert sentence in told
        assert sentence in page_of_folds(folds)
        assert sentence.partition(":")[0] + ":" not in quiet
    found = folds_as_json(folds)
    assert ([fold["idle"] for fold in found["folds"]], found["final"]["idle"]) == ([time, top, time], top)


def test_controls_that_the_budget_had_no_room_for_are_in_no_report(made: Any, tmp_path: Path) -> None:
    """It says so, instead of sending the reader there."""
    folds = made(tmp_path / "run")
    first, *others = folds.found.folds
    none = Controls("TGD", 9, Usage(), problem="the budget had no room for controls")
    run = Controls("TGD", 9, Usage(), (Control("random edits", first.best, None, None, None, None, 0, 0, Usage()),))
    for each, notes in ((none, [1, 0]), (run, [0, 1])):
        vars(folds)["found"] = replace(folds.found, final=None, folds=(replace(first, controls=each), *others))
        said = " ".join(render_folds(folds).split())
        assert [said.count("no room for controls in 1 of 1 run;"), said.count("What the controls found")] == notes


@pytest.mark.parametrize(("wins", "losses", "use"), [(1, 0, None), (0, 1, "seed"), (1, 1, "seed"), (20, 0, "final")])
def test_what_the_examples_do_not_tell_is_left_to_the_reader(
    made: Any, tmp_path: Path, wins: int, losses: int, use: str | None
) -> None:
    """Of thirty examples a gain of 0.2 shows seldom, and to keep the seed prompt for that gives it away."""
    folds = made(tmp_path / "run")
    seed = folds.found.seed
    assert seed is not None
    before = replace(seed, scores=(*([0.0] * wins), *([1.0] * losses), *([0.0] * (24 - wins - losses))))
    after = replace(seed, scores=(*([1.0] * wins), *([0.0] * losses), *([0.0] * (24 - wins - losses))))
    vars(folds)["found"] = replace(folds.found, seed=before, best=after, comparison=tg.compare(before, after))
    said = " ".join(render_folds(folds, width=400).split())
    assert folds.found.use == use
    assert ("Which prompt to use is open" in said) == (use is None)
    assert ("some 190 show a difference of that size" in said) == (use is None)
    assert ("The prompt to use: the seed prompt The folds' prompts did no better" in said) == (use == "seed")


def test_more_examples_are_asked_for_than_there_are(made: Any, tmp_path: Path) -> None:
    """Where a few gain a little, what an interval allows for takes most of them: not 20 examples, as 24 did not do."""
    folds = made(tmp_path / "run")
    seed = folds.found.seed
    assert seed is not None
    before, after = replace(seed, scores=(0.5,) * 24), replace(seed, scores=(0.6,) * 8 + (0.5,) * 16)
    vars(folds)["found"] = replace(folds.found, seed=before, best=after, comparison=tg.compare(before, after))
    said = " ".join(render_folds(folds, width=400).split())
    assert "or collect more examples: some 110 show a difference of that size 4 times in 5" in said


@pytest.mark.parametrize("width", [40, 60, 80])
def test_the_table_fits(made: Any, tmp_path: Path, width: int) -> None:
    """A row that is broken belongs to nothing: where there is no room for it, it becomes a list, and loses no cell."""
    folds = made(tmp_path / "run")
    first, second, third = folds.found.folds  # the second one has found nothing
    second = replace(second, best=second.seed)
    vars(folds)["found"] = replace(folds.found, folds=(first, second, third))
    lines = render_folds(folds, width=width).split("\n")
    assert max(len(line) for line in lines if str(tmp_path) not in line) <= width  # a command is not broken
    table = " ".join(" ".join(lines).split()).replace("fold 2, unchanged", "fold 2").replace("1.000 unchanged", "1.000")
    assert "unchanged" in " ".join(lines)
    assert "unchanged" not in table
    told = "8 0.000 1.000" if width == 80 else "tested on 8 seed prompt 0.000 best prompt 1.000"
    assert [f"fold {n} {told}" in table for n in (1, 2, 3)] == [True] * 3
    every = "24 {} {}" if width == 80 else "tested on 24 seed prompt {} best prompt {}"
    assert f"all {every.format('0.000 [0.000, 0.138]', '1.000 [0.862, 1.000]')}" in table


def test_of_what_was_not_begun_nothing_is_said(tmp_path: Path) -> None:
    """No verdict, and no prompt to use."""
    write_folds(tmp_path / "run", ["a", "b"], folds=2, clusters=())
    folds = read_folds(tmp_path / "run")
    page, shown = page_of_folds(folds), render_folds(folds)
    assert "Which prompt to use" not in page
    assert "no fold was tested" in page.lower()
    assert "2 folds of 2 examples; it did not finish" in shown[:200].lower()
    assert folds_as_json(folds)["verdict"] is None


@pytest.mark.parametrize("kept", [None, {}, {"config": None}, {"config": []}, {"config": {"models": []}}])
def test_a_config_that_was_damaged_has_no_remark(kept: Any) -> None:
    """`show` needs nothing of it, so it is no reason to end with a traceback."""
    assert remark_on(kept) == ""
