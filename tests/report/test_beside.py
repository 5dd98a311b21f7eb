"""Two runs beside each other, and what a run changed, as people and tools read them."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from textgrad_engine.errors import RunError
from textgrad_engine.llm import Usage
from textgrad_engine.report import beside_as_json, beside_of, changes_as_json, changes_of, render_beside, render_patches
from textgrad_engine.train import Control, Controls, TrainResult
from textgrad_engine.train.metric_scores import MetricScores
from textgrad_engine.train.standing import Standing


def shown(first: Any, second: Any, **options: Any) -> str:
    return render_beside(beside_of(first, second, (1, 1)), **options)


def texts_of(result: TrainResult) -> dict[str, Any]:
    """What is known of a run that was killed after its last step."""
    return {"seed": result.seed, "best": result.best, "steps": result.steps}


def test_a_run_that_never_began_has_no_texts(run_of: Any, result: TrainResult) -> None:
    """The reason is named, and nothing else is said."""
    nothing = run_of(None, "early", error="AuthenticationFailed: no such key\na note")
    for ask in (lambda: changes_of(nothing), lambda: beside_of(run_of(result), nothing, (1, 1))):
        with pytest.raises(RunError, match=r"early: there are no texts, .*\(AuthenticationFailed: no such key\)"):
            ask()


def test_a_run_changed_one_of_two_texts(run_of: Any, result: TrainResult) -> None:
    """The files are those of the run folder; what stayed is not in the patch."""
    run = run_of(replace(result, seed={"a b": "x", "system": "y"}, best={"a b": "x", "system": "z"}))
    found = changes_of(run)
    patch = render_patches(found, terminal=False)
    assert patch == (
        f"--- {run.path}/seed/system.txt\n+++ {run.path}/best/system.txt\n@@ -1 +1 @@\n"
        "-y\n\\ No newline at end of file\n+z\n\\ No newline at end of file\n"
    )
    body = changes_as_json(run, found)
    assert body["status"] == "finished"
    assert body["parameters"]["a b"] == {"seed": "x", "best": "x", "patch": ""}
    assert body["parameters"]["system"]["patch"] == patch


def test_the_patch_names_the_files_that_texts_have_beside_each_other(run_of: Any, result: TrainResult) -> None:
    """Where names differ in case only, one is written otherwise, for file systems that do not tell them apart."""
    run = run_of(replace(result, seed={"Chat": "x", "chat": "x"}, best={"Chat": "z", "chat": "z"}))
    patch = render_patches(changes_of(run), terminal=False)
    assert [line for line in patch.splitlines() if line.startswith("+++")] == [
        f"+++ {run.path}/best/%43hat.txt",
        f"+++ {run.path}/best/chat.txt",
    ]


def test_a_terminal_gets_no_commands_and_a_pipe_every_byte(run_of: Any, result: TrainResult) -> None:
    """A prompt may hold what would clear a screen."""
    hostile = "\x1b[2J\u202ered\r"
    found = changes_of(run_of(replace(result, best={"system": hostile})))
    assert hostile in render_patches(found, terminal=False)
    safe = render_patches(found, terminal=True)
    assert not {"\x1b", "\u202e", "\r"} & set(safe)
    assert safe.count("\n") == render_patches(found, terminal=False).count("\n")
    colored = render_patches(found, terminal=True, color=True)
    assert "\x1b[32m+" in colored
    assert "\x1b[2J" not in colored


def test_a_floor_that_one_of_two_runs_does_not_reach_is_told(run_of: Any, result: TrainResult) -> None:
    """The better one of two by the mean may be the one that breaks what must hold."""
    floor = Standing("queue = 'billing'", 0.9, "test", 10, 0.7, 0.8)
    found = beside_of(run_of(result), run_of(replace(result, floors=(floor,))), (1, 1))
    assert "B: floor not reached: queue = 'billing', 0.800 of 0.9 on test." in found.remarks


def test_long_lines_stay_lines(run_of: Any, result: TrainResult) -> None:
    """A line that is broken is no longer the prompt's."""
    found = changes_of(run_of(replace(result, best={"system": "word " * 100})))
    assert "+" + "word " * 99 in render_patches(found, terminal=True)


def test_both_runs_scores_verdict_and_cost(run_of: Any, result: TrainResult) -> None:
    """What one wants to know first comes first; all of it fits into 80 columns."""
    worse = replace(result, best_test=result.seed_test, best={"system": "Other."}, seconds=3.0, usage={})
    text = shown(run_of(result, "a"), run_of(worse, "b"))
    said = " ".join(text.split())
    assert "test, best 0.900 [0.699, 0.972] 0.400 [0.219, 0.613]" in said
    assert "B against A: worse: -0.500 [-0.698, -0.211], p = 0.002, on test, 20 examples." in said
    assert "On the validation set, A tried 1 changed text and B tried 1 changed text." in said
    assert "If you now take the better of the two, it has chosen: the more runs you compare" in said
    assert "Settings: unknown, as A and B were started from Python" in said
    assert "all 86 1,234 $0.25 0 0 $0.00 Time: A 1 min 15 s, B 3.0 s." in said
    table = text.split("Best prompts")[0]
    assert max(len(line) for line in table.splitlines()[2:]) <= 80
    assert text.endswith("+Other.\n\\ No newline at end of file\n")


def test_the_cost_of_controls_is_told_where_they_were_run(run_of: Any, result: TrainResult) -> None:
    """Those that a budget had no room for cost nothing."""
    each = Control("random edits", result.seed, None, None, None, None, 0, 0, Usage())
    with_them = replace(result, controls=Controls("TGD", 9, Usage(), (each,)))
    without = replace(result, controls=Controls("TGD", 9, Usage(), problem="the budget had no room for controls"))
    text = shown(run_of(with_them, "a"), run_of(without, "b"))
    assert "What A cost includes its controls." in text
    assert "What B cost" not in text


def test_large_figures_have_room(run_of: Any, result: TrainResult) -> None:
    """A run on a large data set, by a dear model, 80 columns wide."""
    used = {"optimizer": Usage(input_tokens=98_765_432, calls=123_456, dollars=1234.5)}
    large = run_of(replace(result, usage=used, seconds=7_300.0), "a")
    text = shown(large, run_of(replace(result, usage=used, best={"system": "x"}), "b")).split("Best prompts")[0]
    assert text.count("123,456  98,765,432  $1,234.50") == 4
    assert max(len(line) for line in text.splitlines()[2:]) <= 80


def test_two_versions_are_told_apart(run_of: Any, result: TrainResult) -> None:
    """Folders of before keep none, which is no difference."""
    versions = "0.1.0", "0.2.0", None
    first, second, before = (
        run_of(result, str(version), config={"config": {"seed": 1}, **({"version": version} if version else {})})
        for version in versions
    )
    changed = [(each.name, each.first, each.second) for each in beside_of(first, second, (1, 1)).settings]
    assert changed == [("version", "0.1.0", "0.2.0")]
    assert beside_of(first, before, (1, 1)).settings == ()


def test_the_same_prompt_is_no_difference_to_choose_by(run_of: Any, result: TrainResult) -> None:
    """Two runs with the same best prompt differ by luck, if they asked the same models; else nobody knows."""
    digests = {"val": "v", "test": "t"}
    one, other = ({"config": {"models": {"forward": name}}, "digests": digests} for name in ("small", "large"))
    said = " ".join(shown(run_of(result, "a", config=one), run_of(result, "b", config=one)).split())
    assert "Both have the same best prompt, so what differs between their scores is luck." in said
    assert "Best prompts: the same" in said
    assert "it has chosen" not in said
    for second in (other, None, {**one, "digests": {**digests, "test": "harder"}}):
        said = " ".join(shown(run_of(result, "a", config=one), run_of(result, "b", config=second)).split())
        assert "Both have the same best prompt." in said
        assert "luck" not in said
    said = " ".join(shown(run_of(result, "a", config=one), run_of(None, "b", config=one, **texts_of(result))).split())
    assert "Both have the same best prompt." in said  # and one of them has no scores


def test_examples_that_got_worse_are_named_and_of_validation_ones_how_to_look_at_them(
    run_of: Any, result: TrainResult, changed: Any
) -> None:
    """Test examples are named alone: who looks into them and then chooses has chosen by them."""
    assert result.best_val is not None
    less = replace(result.best_val, scores=(*result.best_val.scores[:-1], 0.0))
    worst = result.best_val.ids[-1]
    for fields, looks in (({"best_test": less}, False), ({"best_test": None, "best_val": less}, True)):
        said = " ".join(shown(run_of(result, "a"), run_of(changed(**fields), "b")).split())
        assert f"got worse (1): {worst} got better (0) Worse and better go by the scores of one run each" in said
        assert ("`calls RUN --example ID` lists what a run asked about one of them." in said) == looks


def test_without_a_test_score_validation_speaks_and_is_doubted(run_of: Any, changed: Any) -> None:
    """It chose both."""
    said = " ".join(shown(run_of(changed(best_test=None), "a"), run_of(changed(best={"system": "B"}), "b")).split())
    assert "B against A on test: nothing paired can be said, as A has no best prompt measured on test." in said
    assert "on validation only, which chose both, 20 examples." in said
    assert "Each prompt was chosen on validation, which flatters both" in said


def test_a_verdict_by_scores_without_a_scale_says_so(run_of: Any, result: TrainResult) -> None:
    """Nobody knows how far a score can fall there, so rare large falls are not allowed for."""
    assert result.best_test is not None
    points = [
        replace(result.best_test, scores=tuple(50.0 + n % 7 + more for n in range(len(result.best_test))), samples=())
        for more in (0, 3)
    ]
    points[1] = replace(points[1], scores=tuple(score + (n % 2) for n, score in enumerate(points[1].answered)))
    first, second = (run_of(replace(result, best_test=each)) for each in points)
    said = " ".join(shown(first, second).split())
    assert "B against A: better: +3.5" in said
    assert "The scale of the scores is not known, so rare large changes" in said
    assert "The scale of the scores" not in " ".join(shown(run_of(result), run_of(result)).split())


def test_settings_that_differ(run_of: Any, result: TrainResult) -> None:
    """By their names; other data, too, and long texts in short."""
    one = {
        "feedback": True,
        "digests": {"train": "1"},
        "config": {"seed": 0, "optimizer": {"name": "TGD", "max_edits": 4}, "program": {"system": "x" * 99}},
    }
    other = {
        "feedback": True,
        "digests": {"train": "2"},
        "config": {"seed": 0, "optimizer": {"name": "OPRO"}, "program": {"system": "\x1b[31my"}},
    }
    first, second = run_of(result, "a", config=one), run_of(result, "b", config=other)
    text = shown(first, second)
    said = " ".join(text.split())
    assert "optimizer.name TGD OPRO" in said
    assert "optimizer.max_edits 4 not set" in said
    assert "program.system xxxxxxxxxxxxxxxxxxxx… (99 characters) \ufffd[31my" in said
    assert "examples.train 1 2" in said
    assert "\n  seed " not in text
    assert beside_as_json(beside_of(first, second, (1, 1)))["settings"]["optimizer.max_edits"] == {"a": 4, "b": None}
    assert "Settings: all the same" in shown(first, run_of(result, "c", config=one))


def test_what_python_keeps_in_its_folder_is_compared_where_both_have_it(run_of: Any, result: TrainResult) -> None:
    """`RunFolder(path, config=...)` takes anything; it is no damaged config of a command, nor told as one."""
    own = run_of(result, "own", config={"format": 1, "seed": 1, "learning": {"rate": 3}, "digests": "x"})
    kept = {"config": {"seed": 0, "metric": {"name": "judge"}, "models": {"forward": "small"}}, "feedback": True}
    command = run_of(result, "command", config=kept)
    said = " ".join(shown(own, command).split())
    assert "Settings: not all are known, as A was started from Python, with a config of its own; both keep seed" in said
    assert " seed 1 0 " in said
    assert "A was started from Python, so whether program, metric and models are the same is not on record." in said
    assert "mean different things" not in said
    assert "prompts alone" not in said
    body = beside_as_json(beside_of(own, command, (1, 1)))
    assert body["settings"] == {"seed": {"a": 1, "b": 0}}
    other = run_of(result, "other", config={"format": 1, "seed": 1, "learning": {"rate": 4}})
    said = " ".join(shown(own, other).split())
    assert "Settings that differ A B learning.rate 3 4 digests x not set " in said
    alike = run_of(result, "alike", config={"config": {"seed": 1}})
    assert "Settings that both keep: all the same" in shown(own, alike)
    none = run_of(result, "none", config={"config": {"epochs": 1}})
    assert "Settings: unknown, as A was started from Python, with a config of its own" in shown(own, none)
    without = " ".join(shown(own, run_of(result, "without")).split())
    assert "Settings: unknown, as B was started from Python, which keeps none, and A was started from Python" in without


@pytest.mark.parametrize("metric", ["x", [1]])
def test_a_metric_that_is_none_is_named(run_of: Any, result: TrainResult, metric: Any) -> None:
    """Whether scores can be compared goes by it."""
    with pytest.raises(RunError, match=r"config\.json: was damaged, as its metric is no table"):
        shown(run_of(result, "a", config={"config": {}}), run_of(result, "b", config={"config": {"metric": metric}}))


def test_texts_of_other_names_are_compared_where_each_has_one(run_of: Any, result: TrainResult) -> None:
    """Whatever the parameter is called; of more, nobody knows which belongs to which."""
    other = replace(result, seed={"instructions": "x"}, best={"instructions": "y"}, origins={})
    found = beside_of(run_of(result, "a"), run_of(other, "b"), (1, 1))
    assert [(each.name, each.second) for each in found.texts] == [("instructions", "y")]
    many = replace(result, seed={"one": "x", "two": "x"}, best={"one": "y", "two": "z"}, origins={})
    run = run_of(many, "c")
    found = beside_of(run_of(result, "a"), run, (1, 1))
    assert [(each.name, each.first is None) for each in found.texts] == [
        ("system", False),
        ("one", True),
        ("two", True),
    ]
    text = render_beside(found)
    assert "system: only A has it" in text
    assert "one: only B has it" in text
    assert f"--- /dev/null\n+++ {run.path}/best/one.txt\n@@ -0,0 +1 @@\n+y\n" in text


def test_an_unfinished_run_counts_as_far_as_it_came(run_of: Any, result: TrainResult) -> None:
    """Its best prompt so far, what is on record, and no scores."""
    usage = {"input_tokens": 5, "output_tokens": 1, "calls": 1, "dollars": 0.5}
    killed = run_of(None, "killed", seed=result.seed, best=result.best, steps=result.steps)
    (killed.path / "completions.jsonl").write_text(json.dumps({"purpose": "forward", "usage": usage}) + "\n")
    said = " ".join(shown(run_of(result, "a"), killed).split())
    assert "no result: it was killed after 2 steps" in said
    assert "nothing paired can be said, as B has no best prompt measured on test" in said
    assert "On the validation set, A tried 1 changed text and B tried 1 changed text." in said
    assert "forward 84 1,234 $0.25 1 6 $0.50" in said
    assert "Time: A 1 min 15 s, B unknown." in said
    assert "Best prompts: the same" in said


def test_each_side_says_how_it_ended_itself(run_of: Any, result: TrainResult) -> None:
    """One may be whole, and the other killed."""
    killed = run_of(None, "killed", seed=result.seed, best=result.best)
    body = beside_as_json(beside_of(run_of(result, "a"), killed, (1, 1)))
    assert body["a"]["headline"] == "finished after 2 steps"
    assert body["b"]["headline"] == "no result: it was killed after 0 steps"
    assert not any("cross-validation" in remark for remark in body["remarks"])


def test_json_says_the_same(run_of: Any, result: TrainResult) -> None:
    """What was not measured is null, as in the other documents."""
    other = replace(result, best_test=None, best={"system": "B"}, usage={"forward": Usage(calls=2, dollars=None)})
    body = beside_as_json(beside_of(run_of(result, "a"), run_of(other, "b"), (3, 1)))
    json.dumps(body, allow_nan=False)
    assert body["b"]["test"]["best"] is None
    assert body["a"]["status"] == "finished"
    assert body["a"]["test_openings"] == 3
    assert body["b"]["total"]["dollars"] is None
    assert [each["on"] for each in body["pairings"]] == ["test", "val"]
    assert body["pairings"][0]["comparison"] is None
    assert body["pairings"][1]["comparison"]["verdict"] == "not shown"
    assert body["settings"] is None
    assert any("3 times for A and 1 time for B" in remark for remark in body["remarks"])


def test_a_metric_that_counts_for_more_in_one_of_two_runs_says_in_which(run_of: Any, result: TrainResult) -> None:
    """Two shares without names could be either's."""

    def weighed(name: str, weight: float) -> Any:
        parts = [MetricScores("label", (1.0,) * 20, (0, 1), weight), MetricScores("style", (0.5,) * 20, (0, 1), 1.0)]
        scored = [replace(each, parts=tuple(parts)) for each in (result.best_val, result.best_test) if each is not None]
        return run_of(replace(result, best_val=scored[0], best_test=scored[1]), name)

    lines = shown(weighed("a", 1.0), weighed("b", 0.4), width=120).splitlines()
    assert [" ".join(line.split()) for line in lines if line.lstrip().startswith(("label", "style"))] == [
        "label 50% in A, 28.6% in B 1.000 1.000 1.000 1.000",
        "style 50% in A, 71.4% in B 0.500 0.500 0.500 0.500",
    ]
    same = shown(weighed("a", 1.0), weighed("b", 1.0), width=120)
    assert "50% in" not in same
