"""A run as one page: whole, the same every time, and with nothing in it that loads or runs."""

from __future__ import annotations

import html
import json
import re
import time
import tomllib
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

from textgrad_engine.errors import RunError
from textgrad_engine.llm import Usage
from textgrad_engine.optim import Edit, Evidence, Origin
from textgrad_engine.optim.cells import Gone
from textgrad_engine.optim.search.racing import RaceRecord
from textgrad_engine.report import is_page, page_of, page_parts, page_texts
from textgrad_engine.report.html import element
from textgrad_engine.report.lineage import step_of
from textgrad_engine.report.metric_parts import Parts
from textgrad_engine.report.slices import Sliced, slices_of
from textgrad_engine.train import Control, Controls, Evaluation, FrontPoint, TrainResult
from textgrad_engine.train.events import ParameterChange
from textgrad_engine.train.standing import Standing

MINUS = "\N{MINUS SIGN}"
VOID = {"meta", "br", "!doctype"}


class Page(HTMLParser):
    """A page that is read strictly: what is opened is closed, and nothing asks for anything."""

    def __init__(self, markup: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tags: set[str] = set()
        self.attributes: dict[str, set[str]] = {}
        self.words: list[str] = []
        self.feed(markup)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        for name, value in attrs:
            self.attributes.setdefault(name, set()).add(value or "")
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if "style" not in self.open:
            self.words += data.split()

    @property
    def text(self) -> str:
        return " ".join(self.words)


def page(run: Any, **options: Any) -> Page:
    return Page(page_of(run, **options))


CONFIG: dict[str, Any] = {
    "version": "0.1.0",
    "feedback": True,
    "digests": {"train": "31fa", "val": "0686"},
    "config": {
        "seed": 7,
        "program": {"system": "Sort.\nBe brief.", "user": "{ticket}", "class": None},
        "data": {"train": "train.jsonl", "val": "val.jsonl"},
        "models": {"forward": "simulated/tickets", "backward": "large"},
        "optimizer": {"name": "TGD"},
    },
}


def test_the_page_of_a_run_that_was_killed_early(run_of: Any) -> None:
    """There is nothing but that."""
    text = page(run_of(None, events=({"event": "RunStarted", "train": 3},))).text
    assert "No result It was killed after 0 steps" in text
    assert "What is on record so far." in text


def test_an_unfinished_run_is_shown_as_far_as_it_came(run_of: Any, result: TrainResult) -> None:
    """Its error, its steps, its best prompt so far with who asked for each line, and what is on record."""
    killed = run_of(
        None, seed=result.seed, best=result.best, steps=result.steps, error="AuthenticationFailed: <b>no</b> key\nt7"
    )
    entry = {"purpose": "forward", "usage": {"input_tokens": 1200, "calls": 1, "dollars": 0.25}}
    (killed.path / "completions.jsonl").write_text(f"{json.dumps(entry)}\n" * 2)
    found = page(killed)
    assert "No result It ended with an error after 2 steps" in found.text
    assert "AuthenticationFailed: <b>no</b> key t7" in found.text
    assert "forward 2 2,400 0 $0.50" in found.text
    assert "nobody knew Feedback that asked for it: t9, t10 Say where gift cards go." in found.text
    assert "The run ended before both prompts were tested" not in found.text


def test_damaged_calls_are_named(run_of: Any, result: TrainResult) -> None:
    """With file and line."""
    killed = run_of(None, seed=result.seed, best=result.best)
    (killed.path / "completions.jsonl").write_text('{"usage": {"calls": "many"}}\n')
    with pytest.raises(RunError, match=r"completions.jsonl:1: the usage was damaged"):
        page_of(killed)


HOSTILE = (
    "</script></style></bdi><img src=x onerror=alert(1)><script>alert(2)</script>\"'\u202e\x1b[2J\x00\ud800{{ x }}"
)


def test_nothing_in_a_run_becomes_markup(run_of: Any, result: TrainResult) -> None:
    """Texts, reasons, feedback, ids, names, problems, errors, settings, the folder's name."""
    names = HOSTILE.replace("\ud800", "")
    evidence = Evidence(HOSTILE, (HOSTILE,))
    edit = Edit("replace", 2, HOSTILE, HOSTILE, (1,), "1.1")
    change = replace(result.steps[0].changes[0], name=names, after=HOSTILE, edits=(edit,), feedback=(evidence,))
    dropped = replace(change, problem=HOSTILE)
    race = RaceRecord("better", (HOSTILE, "b"), (0.0, 0.0), (1.0, None), 0.9, 0.5)
    steps = tuple(
        replace(result.steps[0], step=number, kind=names, why=HOSTILE, race=race, changes=(each,), problems=(HOSTILE,))
        for number, each in ((1, change), (2, dropped))
    )
    best = f"Sort the mail.\n{HOSTILE}\nAnswer."
    control = Control(HOSTILE, {}, None, None, None, None, 1, 0, Usage(), HOSTILE)
    found = replace(
        result,
        seed={names: result.seed["system"]},
        best={names: best},
        origins={names: [None, Origin(1, HOSTILE, (evidence,), "1.1"), None]},
        steps=steps,
        usage={HOSTILE: Usage(calls=1)},
        controls=Controls(HOSTILE, 3, Usage(), (control,)),
        overlaps=(HOSTILE,),
        untested=HOSTILE,
    )
    config = json.loads(json.dumps(CONFIG))
    config["version"] = HOSTILE
    config["config"]["models"]["forward"] = HOSTILE
    config["config"]["program"] = {HOSTILE: HOSTILE}
    config["digests"][HOSTILE] = HOSTILE
    run = run_of(found, '<img src="x" onerror=alert(1)>', config=config, notes=(HOSTILE,))
    markup = page_of(run, remark=HOSTILE)
    read = Page(markup)
    assert not {"script", "img", "iframe", "link", "object", "form", "a", "base"} & read.tags
    assert not [name for name in read.attributes if name.startswith("on") or name in ("src", "href", "style")]
    assert "<img src=x onerror=alert(1)><script>alert(2)</script>" in read.text
    assert read.text.count("U+202E") >= 15
    assert not {"\u202e", "\x1b", "\x00"} & set(markup)
    markup.encode("utf-8")


def test_long_texts_are_cut_and_say_so(run_of: Any, result: TrainResult) -> None:
    """A page of a megabyte of one letter is of use to nobody."""
    long = "x" * 1_000_000
    best = f"Sort the mail.\n{long}"
    found = replace(
        result, best={"system": best}, origins={"system": [None, Origin(1, long, (Evidence(long, (long,)),), "1.1")]}
    )
    markup = page_of(run_of(found, config={**CONFIG, "config": {"program": {"system": long}}}))
    assert len(markup) < 200_000
    assert "… 998,000 more characters" in markup
    assert "The settings are too long for a page" in Page(markup).text
    assert "Save the settings below" not in Page(markup).text
    many = replace(result, best={"system": "\n".join(str(number) for number in range(3_000))}, origins={})
    markup = page_of(run_of(many))
    assert len(markup) < 1_000_000
    assert "and 2,003 more lines" in Page(markup).text


def test_the_page_is_the_same_for_the_same_folder(
    run_of: Any, result: TrainResult, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Whatever the time, and however the folder is named."""
    run = run_of(result, config=CONFIG)
    first = page_of(run)
    monkeypatch.setattr(time, "time", lambda: 0.0)
    monkeypatch.chdir(run.path)
    assert page_of(replace(run, path=Path())) == first
    assert str(tmp_path) not in first


def test_each_line_of_a_text_is_written_in_its_own_direction(run_of: Any, result: TrainResult) -> None:
    """A prompt may have a line in Arabic below one in English; that of the first letter would hold for both."""
    markup = page_of(run_of(result))
    assert "pre bdi { unicode-bidi: plaintext; }" in markup
    assert "</summary><pre><bdi>" in markup


def test_a_whole_run(run_of: Any, result: TrainResult) -> None:
    """Verdict, scores, remarks, lines with who asked for them, steps, cost."""
    found = page(run_of(result), openings=3)
    for said in (
        "Finished after 2 steps.",
        "Better +0.500 [+0.211, +0.698], p = 0.002, on test",
        "Test score 0.400 → 0.900",
        f"Lines of the prompt +1 {MINUS}1",
        "test, best prompt 0.900 [0.699, 0.972]",
        "difference on test +0.500 [+0.211, +0.698]",
        "The test set was opened 3 times, by the run at its end and by evaluations of it.",
        "1 line added, 1 line removed, 2 lines as before.",
        f"{MINUS} Be brief. brevity hurts Feedback that asked for it: t3 It is too brief. Removed in step 1: kept",
        "+ Gift cards go to account. Edit 1.2: nobody knew",
        "nobody knew Feedback that asked for it: t9, t10 Say where gift cards go.",
        "Accepted in step 1: kept The run folder holds no race for it. It was never tried without this edit.",
        "1 step kept 2 edits, validation 0.900",
        f"{MINUS} Be brief. Edit 1.1: brevity hurts",
        "2 step not kept no change: dropped: the new text is empty",
        "step 2: 1 example of the minibatch had no answer",
        "all 86 1,200 34 $0.25 It took 1 min 15 s.",
        "The run was started from Python, so its folder keeps no settings",
    ):
        assert said in found.text, said


def test_scores_of_kinds_of_examples_are_shown_where_they_are_asked_for(run_of: Any, result: TrainResult) -> None:
    """In a table, with all that is to be known of it, and nothing of a value becomes markup."""
    before = Evaluation(("a", "b", "c"), (0.0, 1.0, 0.0), ("", "", ""), {})
    after = replace(before, scores=(1.0, 0.0, 1.0))
    kind = "<script>alert(1)</script>"
    slices = Sliced(kind, "val", before, after, slices_of([kind, "b", kind], after, before))
    page = Page(page_of(run_of(result), slices=slices))
    assert f"Validation examples by {kind}" in page.text
    assert f"{kind} 2 0.000 1.000 +1.000" in page.text
    assert "hold for all 2 slices together" in page.text
    assert "These examples chose the best prompt, so its scores on them flatter it." in page.text
    assert "script" not in page.tags
    assert "Validation examples by" not in Page(page_of(run_of(result))).text


def test_a_floor_that_is_not_reached_stands_beside_the_verdict(run_of: Any, result: TrainResult) -> None:
    """A page is sent to colleagues, who read its first line."""
    floor = Standing("queue = 'billing'", 0.9, "test", 10, 0.7, 0.8)
    shown = page(run_of(replace(result, floors=(floor,)))).text
    assert "on test; floor not reached: queue = 'billing', 0.800 of 0.9 on test" in shown


def test_races_and_ablations_are_told(run_of: Any, result: TrainResult) -> None:
    """On which examples a line did better, what became of the text without it."""
    race = RaceRecord("better", ("a", "b", "c"), (0.0, 1.0, 0.0), (1.0, 0.0, 0.0), 0.97, 0.1)
    best, seed = result.best["system"], result.seed["system"]
    without = replace(result.steps[0].changes[0], before=best, after="Sort the mail.\nAnswer.", edits=(), feedback=())
    steps = (
        replace(result.steps[0], kind="patch", why="better", race=race),
        replace(
            result.steps[1],
            kind="ablation",
            why="it is worse without",
            race=race,
            changes=(without,),
            ablated=("1.2",),
        ),
    )
    text = page(run_of(replace(result, steps=steps, seed={"system": seed}))).text
    told = "Race on 3 examples: difference +0.100, better with probability 0.97. Better on a. Worse on b."
    assert (
        f"Accepted in step 1, patch: better {told} Tried without in step 2, ablation: it is worse without {told}"
        in text
    )
    assert f"2 ablation not kept 1 edit, +1 {MINUS}1 of 3: it is worse without" in text
    assert "Without edit 1.2, made because: nobody knew Feedback that had asked for it: t9, t10" in text


def test_lines_with_the_same_story_open_together(run_of: Any, result: TrainResult) -> None:
    """Of a text that was written as a whole it is told once; each line keeps its number."""
    wrote = Origin(1, "a whole example", (), "1.1")
    best = "Sort the mail.\none\ntwo\nthree"
    origins = {"system": [None, wrote, wrote, replace(wrote, reason="another", edit="1.2")]}
    markup = page_of(run_of(replace(result, best={"system": best}, origins=origins)))
    text = Page(markup).text
    assert "2 + one 3 + two Edit 1.1: a whole example" in text
    assert "4 + three Edit 1.2: another" in text
    assert text.count("a whole example") == 1


def test_what_the_lines_of_a_rewrite_have_in_common_is_made_once(
    run_of: Any, result: TrainResult, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each of its lines stands for all lines of before, so a page would grow with the square of their number."""
    seed, best = ("\n".join(f"{word} {n}" for n in range(40)) for word in ("old", "new"))
    gone = tuple(Gone(line, None, "1.1") for line in seed.split("\n"))
    wrote = Origin(1, "a whole example", (), "1.1")
    step = replace(result.steps[0], changes=(ParameterChange("system", seed, best, (), ()),))
    origins = {"system": [replace(wrote, gone_before=gone), *[wrote] * 39]}
    asked = list[int]()
    made = list[str]()
    monkeypatch.setattr(page_texts, "step_of", lambda *given: asked.append(given[1]) or step_of(*given))
    monkeypatch.setattr(
        page_texts, "element", lambda *given, **kwargs: made.append(given[0]) or element(*given, **kwargs)
    )
    found = replace(result, seed={"system": seed}, best={"system": best}, origins=origins, steps=(step,))
    text = page(run_of(found)).text
    assert text.count("It stands for") == 40
    assert asked == [1, 1]  # for all removed lines, and for the list of steps
    assert len(made) < 40 * 40


def test_what_stood_beside_a_line_is_told(run_of: Any, result: TrainResult) -> None:
    """A line that came and went shows nowhere else."""
    gone = Origin(1, "nobody knew", (), "1.2", gone=(Gone("Short-lived.", None, "2.1"),))
    removed = ParameterChange("system", f"{result.best['system']}\nShort-lived.", result.best["system"])
    steps = (result.steps[0], replace(result.steps[1], kept=True, changes=(removed,)))
    found = replace(result, steps=steps, origins={"system": [None, None, gone]})
    assert "Beside it stood Short-lived. , until step 2." in page(run_of(found)).text


@pytest.mark.parametrize("config", [{}, {"config": []}, {"config": {"models": 3, "data": "x"}, "digests": {"val": 1}}])
def test_a_config_that_was_damaged_is_shown_as_far_as_it_can(run_of: Any, result: TrainResult, config: Any) -> None:
    """The result is what counts."""
    text = page(run_of(result, config=config)).text
    assert "Finished after 2 steps. Better +0.500" in text
    assert "None" not in text.split("Better")[0]


def test_a_run_that_is_not_better_says_so(run_of: Any, changed: Any, result: TrainResult) -> None:
    """Without a picture of a difference that there is not."""
    text = page(run_of(changed(best=result.seed, best_val=result.seed_val, best_test=result.seed_test))).text
    assert "The best prompt is the seed prompt No change did better" in text
    assert "What changed in the prompt Nothing." in text
    assert "difference on" not in text
    assert "best prompt 0" not in text
    assert "Test score, seed 0.400" in text
    worse = page_of(run_of(changed(comparison=replace(result.comparison, verdict="worse"))))
    assert 'class="verdict bad"' in worse
    assert 'class="dot bad"' in worse
    assert 'class="dot bad"' not in page_of(run_of(result))


def test_scores_that_nobody_knows_the_limits_of(run_of: Any, changed: Any) -> None:
    """An interval may be infinite, and a scale may be any."""
    odd = Evaluation(("a", "b"), (250.0, 250.0), ("x", "x"), {})
    assert odd.interval[1] == float("inf")
    markup = page_of(run_of(changed(seed_val=odd, best_val=odd)))
    assert "250.000 [-inf, inf]" in Page(markup).text
    assert "nan" not in markup


def test_how_much_was_measured_is_said_as_in_the_terminal(run_of: Any, result: TrainResult) -> None:
    """Of a prompt that was run on a part of the validation set, and of examples that come in clusters."""
    best = result.best_val
    assert best is not None
    assert result.best_test is not None
    assert result.seed_test is not None
    part = replace(best, scores=(*best.scores[:-1], None), not_run=best.ids[-1:])
    names = tuple(str(n // 2) for n in range(len(result.best_test)))
    seed, test = (replace(each, clusters=names) for each in (result.seed_test, result.best_test))
    words = page(run_of(replace(result, best_val=part, seed_test=seed, best_test=test))).text
    every, clusters = len(best), len(set(names))
    assert (
        f"Validation: {every} examples with the seed prompt, {every - 1} of {every} examples with the best prompt; "
        f"test: {len(test)} examples in {clusters} clusters."
    ) in words


def test_controls_and_front(run_of: Any, result: TrainResult) -> None:
    """Beside what the optimizer found; a front of one text is none."""
    control = Control(
        "random edits", result.seed, result.seed_val, result.seed_test, result.comparison, "test", 4, 0, Usage(calls=9)
    )
    points = (
        FrontPoint(result.best, 30, 0.9, 1.5),
        FrontPoint({"system": "x"}, 20, 0.6),
        FrontPoint(result.seed, 9, 0.4),
    )
    found = replace(result, controls=Controls("TGD", 86, Usage(calls=86), (control,)), front=points)
    read = page(run_of(found, config=CONFIG))
    assert "random edits 0.400 0.400 [0.219, 0.613] 9 0 $0.00" in read.text
    assert "TGD against random edits: better: +0.500" in read.text
    assert "best prompt 30 0.900 1.50 s" in read.text
    assert "textgrad-engine train config.toml --controls" in read.text
    assert "of prompts run on the whole validation set. No other prompt beats one of these in all columns." in read.text
    assert "Score against length" not in page(run_of(replace(result, front=points[:1]))).text
    assert result.seed_val is not None
    seed_val = replace(result.seed_val, scores=(None, *result.seed_val.scores[1:]))
    read = page(run_of(replace(result, front=points, seed_val=seed_val)))
    assert "on the 19 validation examples that the seed prompt answered. No other prompt" in read.text


def test_how_to_run_it_again(run_of: Any, result: TrainResult) -> None:
    """Version, seed, data by digest, the command, and settings that a config can be made of."""
    started = ({"event": "RunStarted", "train": 113, "val": 87, "test": 0},)
    markup = page_of(run_of(result, config={**CONFIG, "feedback": False}, events=started))
    text = Page(markup).text
    assert "TGD , simulated/tickets , large . Examples: 113 to train, 87 to validate, none to test." in text
    assert "The run was made with textgrad_engine 0.1.0 and seed 7." in text
    assert "Save the settings below as config.toml beside the data and run the command." in text
    assert "textgrad-engine train config.toml --no-feedback" in text
    assert "train train.jsonl 31fa" in text
    assert "a simulation inside the package: what it does is no evidence about real models" in text
    settings = re.search(r"The settings</summary><pre><bdi>(.*?)</bdi>", markup, re.DOTALL)
    assert settings is not None
    read = tomllib.loads(settings[1].replace("&#x27;", "'").replace("&quot;", '"'))
    assert read["program"] == {"system": "Sort.\nBe brief.", "user": "{ticket}"}
    assert "of a version that the folder does not name" in page(run_of(result, config={"config": {"seed": 1}})).text


@pytest.mark.parametrize("text", ["a\u00a0b", "\u200b\u202e\x85", "tab\there\nand \u200d there", "\ufeff\u2028\x1b\n"])
def test_settings_are_copied_as_they_were(run_of: Any, result: TrainResult, text: str) -> None:
    """Also what a page cannot show, such as the spaces that come along from a web page."""
    config = {**CONFIG, "config": {**CONFIG["config"], "program": {"system": text}}}
    markup = page_of(run_of(result, config=config))
    settings = re.search(r"The settings</summary><pre><bdi>(.*?)</bdi>", markup, re.DOTALL)
    assert settings is not None
    assert tomllib.loads(html.unescape(re.sub("<.*?>", "", settings[1])))["program"] == {"system": text}


def test_settings_are_those_that_the_run_began_with(run_of: Any, result: TrainResult) -> None:
    """Its prompt, whatever the file holds now; controls, also where it was killed before them; and where paths lead."""
    program, data = {"system_file": "prompt.txt", "user": "{ticket}"}, {"train": "../data/train.jsonl"}
    kept = {**CONFIG, "controls": True, "config": {**CONFIG["config"], "program": program, "data": data}}
    markup = page_of(run_of(result, config=kept))
    settings = re.search(r"The settings</summary><pre><bdi>(.*?)</bdi>", markup, re.DOTALL)
    assert settings is not None
    assert tomllib.loads(html.unescape(settings[1]))["program"] == {"system": result.seed["system"], "user": "{ticket}"}
    text = Page(markup).text
    assert "config.toml where the paths in it lead to the data and run the command" in text
    assert "textgrad-engine train config.toml --controls" in text


def test_a_form_that_no_toml_can_say_is_a_file_of_its_own(run_of: Any, result: TrainResult) -> None:
    """TOML has no null: the settings name the file, and the page says to save it, too."""
    schema = {"type": "object", "properties": {"why": {"enum": ["a", None], "default": None}, "more": {}}}
    program = {**CONFIG["config"]["program"], "response_format": schema}
    markup = page_of(run_of(result, config={**CONFIG, "config": {**CONFIG["config"], "program": program}}))
    text = Page(markup).text
    assert "as config.toml beside the data, the form of the answers as answer.json beside it and run" in text
    found = re.findall(r"</summary><pre><bdi>(.*?)</bdi>", markup, re.DOTALL)
    settings, form = (html.unescape(each) for each in found[-2:])
    assert tomllib.loads(settings)["program"]["response_format"] == "answer.json"
    assert json.loads(form) == schema


def test_several_texts_are_shown_each(run_of: Any, result: TrainResult) -> None:
    """By their names."""
    found = replace(
        result,
        seed={**result.seed, "other": "as it was"},
        best={**result.best, "other": "as it was"},
        origins={**result.origins, "other": [None]},
    )
    text = page(run_of(found)).text
    assert "What changed in system 1 line added" in text
    assert "What changed in other Nothing." in text


def test_steps_beyond_many_are_counted(run_of: Any, result: TrainResult) -> None:
    """A run of a thousand steps still opens."""
    steps = tuple(replace(result.steps[1], step=number) for number in range(1, 301))
    assert "and 50 more steps, in events.jsonl" in page(run_of(replace(result, steps=steps))).text


def test_a_page_is_known_for_one(run_of: Any, result: TrainResult, tmp_path: Path) -> None:
    """So that no other file is ever replaced by one."""
    (tmp_path / "page.html").write_text(page_of(run_of(result)), encoding="utf-8")
    (tmp_path / "other.html").write_text("<!doctype html>")
    assert is_page(tmp_path / "page.html")
    assert not is_page(tmp_path / "other.html")
    with pytest.raises(RunError, match="cannot be read"):
        is_page(tmp_path)


def test_a_criterion_is_shown_whole() -> None:
    """It is a sentence, which is broken into lines, and no name; what is too long even so is cut."""
    sentence = "It says sorry in words that are neither cold nor too warm, whatever has happened to the parcel."
    found = Parts(("criterion", "share", "val"), ((sentence, "50%", "1.000"), ("x" * 400, "50%", "0.000")))
    text = "".join(each.text for each in page_parts.metrics(found))
    assert sentence in text
    assert "100 more characters" in text
