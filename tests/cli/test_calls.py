"""``textgrad-engine calls``: what was asked and answered, from the record of a run."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import textgrad_engine as tg
from textgrad_engine import nn, optim
from textgrad_engine.cli import calls as calls_command
from textgrad_engine.report.calls import Call, Wanted, call_in_words, render_calls
from textgrad_engine.report.printing import harmless, shortened
from textgrad_engine.testing import FunctionModel


def recorded(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (path / "completions.jsonl").read_text(encoding="utf-8").splitlines()]


def test_calls_are_listed_by_what_they_were_made_for(cli: Any, trained: tuple[Path, Any]) -> None:
    """With the numbers by which each can be shown, and how many there are besides."""
    path = trained[0]
    every = recorded(path)
    found = json.loads(cli("calls", path, "--purpose", "backward", "--step", "2", "--json").stdout)
    wanted = [n for n, each in enumerate(every, 1) if (each["purpose"], each["step"]) == ("backward", 2)]
    assert (found["matching"], [each["call"] for each in found["calls"]]) == (len(wanted), wanted)
    assert all("request" not in each for each in found["calls"])
    shown = cli("calls", path, "--most", "3").stdout
    assert f"and {len(every) - 3:,} calls more: --most N shows as many" in " ".join(shown.split())
    assert ["call", "step", "for", "about", "read", "written", "answer"] in [
        line.split() for line in shown.splitlines()
    ]
    assert max(map(len, shown.splitlines())) <= 80
    example = every[0]["example"]
    of_one = json.loads(cli("calls", path, "--example", example, "--most", "999", "--json").stdout)
    assert {each["call"] for each in of_one["calls"]} == {
        n for n, each in enumerate(every, 1) if example in each["example"].split(", ")
    }


def test_calls_are_found_by_an_example_as_reports_show_it() -> None:
    """Long ids are cut there, and copied from there; a critic's call may be about several."""
    name = f"corpus/{'x' * 60}/document-17"
    for about in (name, f"t1, {name}", "two\nlines"):
        assert Wanted(example=shortened(about.removeprefix("t1, "), 24)).has({"example": about})
        assert not Wanted(example="corpus/xxxxx…ument-18").has({"example": about})


def test_the_calls_of_an_example_are_listed_as_they_were_asked(cli: Any, tmp_path: Path) -> None:
    """An agent's turns stand in the record in the order of their digests, as many examples may go on side by side."""
    chain = nn.Sequential(*[nn.ChatCompletion("{text}", system=nn.Parameter(f"Step {n}.")) for n in range(5)])
    model = FunctionModel(lambda request: request.messages[0].text)

    class Chain(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.chain = chain

        def forward(self, text: str) -> tg.Variable:
            return self.chain(text)

    rows = [{"text": f"text {n}", "target": "Step 4."} for n in range(4)]
    with tg.use_models(forward=model):
        optimizer = optim.TGD(chain.parameters())
        tg.Trainer(max_steps=1, run_dir=tmp_path / "run").fit(Chain(), nn.ExactMatch(), optimizer, rows, rows)
    listed = json.loads(cli("calls", tmp_path / "run", "--json").stdout)["calls"]
    of_each = [[each for each in listed if each["example"] == name] for name in ("0", "1", "2", "3")]
    assert [[each["text"] for each in of_one] for of_one in of_each] == [[f"Step {n}." for n in range(5)]] * 4
    for each in listed:
        shown = json.loads(cli("calls", tmp_path / "run", str(each["call"]), "--json").stdout)
        assert (shown["example"], shown["text"]) == (each["example"], each["text"])


def test_a_call_is_shown_as_it_was_sent_and_answered(cli: Any, trained: tuple[Path, Any]) -> None:
    """Every message whole, and the answer."""
    every = recorded(trained[0])
    number, entry = next((n, each) for n, each in enumerate(every, 1) if each["purpose"] == "optimizer")
    shown = cli("calls", trained[0], str(number)).stdout
    assert shown.startswith(f"call {number} of {len(every):,}: optimizer, step {entry['step']}")
    for message in entry["request"]["messages"]:
        assert f"== {message['role']}\n{message['content']}\n" in shown
    assert shown.endswith(f"== answer\n{entry['text']}\n")
    assert json.loads(cli("calls", trained[0], str(number), "--json").stdout)["request"] == entry["request"]


@pytest.mark.parametrize(
    ("options", "why"),
    [
        (("999999",), "there is no call 999999, as"),
        (("--purpose", "critic"), "--purpose critic: it is one of forward, judge, backward, optimizer"),
        (("1", "--step", "1"), "N names one call"),
        (("0",), "greater than or equal to 1"),
    ],
)
def test_what_cannot_be_shown_is_told(cli: Any, trained: tuple[Path, Any], options: tuple[str, ...], why: str) -> None:
    """Exit code 2."""
    done = cli("calls", trained[0], *options)
    assert (done.exit_code, why in " ".join(done.stderr.split())) == (2, True)


def test_where_nothing_matches_it_says_so(cli: Any, trained: tuple[Path, Any]) -> None:
    """An empty table would look like an error."""
    done = cli("calls", trained[0], "--example", "nobody")
    assert (done.exit_code, done.stdout) == (0, "")
    assert "no such call is on record" in done.stderr


def test_a_terminal_obeys_nothing_that_was_said(
    cli: Any, run: Callable[[], Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Answers may hold its codes; a file gets them as they are."""
    path = run()
    first, *rest = (path / "completions.jsonl").read_text(encoding="utf-8").splitlines(keepends=True)
    entry = {**json.loads(first), "text": "a\x1b[2Jb"}
    (path / "completions.jsonl").write_text(json.dumps(entry) + "\n" + "".join(rest), encoding="utf-8")
    assert "\x1b" in cli("calls", path, "1").stdout
    monkeypatch.setattr(calls_command, "at_terminal", lambda: True)
    assert "a\ufffd[2Jb" in cli("calls", path, "1").stdout
    assert "\x1b" not in cli("calls", path, "--most", "1").stdout


INNER = {"type": "object", "properties": {"c": {"description": "which"}}}
ODD: dict[str, Any] = {
    "purpose": "forward",
    "phase_name": "test",
    "step": 3,
    "example": "a, b",
    "model": "m",
    "request": {
        "messages": [
            {"role": "user", "content": [{"type": "image_url", "image_url": {"url": "data:x"}}]},
            {"role": "assistant", "content": None, "tool_calls": [{"function": {"name": "f", "arguments": "{}"}}]},
        ],
        "config": {
            "tools": [
                {
                    "type": "function",
                    "function": {
                        "name": "f",
                        "description": "Does\n\none of:",
                        "parameters": {"properties": {"a": {"description": "what"}, "b": {"items": INNER}}},
                    },
                },
                {"type": "web_search"},
            ],
            "response_format": {"name": "form"},
        },
    },
    "text": "",
    "tool_calls": [{"function": {"name": "g", "arguments": '{"n": 1}'}}],
    "finish_reason": "tool_calls",
    "attempts": 2,
    "usage": {"input_tokens": 1200, "output_tokens": 3, "dollars": None},
}


@pytest.mark.parametrize("space", [" ", "\u00a0", "\u3000", "\t"])
@pytest.mark.parametrize("end", ["\n", "\r", "\x0b", "\u2028"])
def test_no_text_of_a_call_passes_for_another_message(end: str, space: str) -> None:
    """A row of data could hold an answer that nobody gave, its id another call, and the name of a model both."""
    forged = end.join(["Where is it?", "", f"=={space}answer", "trust", f"==={space}user", "Sort."])
    entry = {
        "purpose": "forward",
        "model": f"m{end}== answer{end}trust",
        "example": f"val/3{end}m, 1 token read{end}== answer{end}trust",
        "request": {"messages": [{"role": "user", "content": forged}]},
        "text": "billing",
    }
    shown = call_in_words(Call(1, entry), 1)
    heads = [line for line in harmless(shown).splitlines() if line.startswith("=")]
    assert shown.splitlines()[0].endswith("about val/3 m, 1 token read == answer trust")
    assert [line for line in heads if line.startswith("====")] == ["==== user", "==== answer"]
    assert heads[0] == "==== user"
    assert f"\n{forged}\n" in shown


@pytest.mark.parametrize(
    "forged",
    [
        {"request": 3},
        {"request": {"purpose": "forward", "messages": ["x"]}},
        {"request": {"purpose": "forward", "messages": [], "config": [1]}},
        {"request": {"purpose": "forward", "messages": [], "config": {"response_format": "x"}}},
        {"request": {"purpose": "forward", "messages": [], "config": {"tools": 3}}},
        {"usage": {"input_tokens": "many"}},
        {"latency": "x"},
        {"attempts": [1]},
        {"item": 3},
    ],
    ids=str,
)
@pytest.mark.parametrize("command", ["calls", "show", "resume"])
@pytest.mark.parametrize("cut", [False, True])
def test_a_line_whose_fields_are_of_other_kinds_is_named(
    cli: Any, run: Callable[[], Path], command: str, forged: dict[str, Any], cut: bool
) -> None:
    """A folder may come from anybody; each command ends with the file and the line, and none with a traceback."""
    killed = run()
    (killed / "result.json").unlink()
    file = killed / "completions.jsonl"
    lines = file.read_bytes().splitlines(keepends=True)[:4]
    forged = {**json.loads(lines[1]), **forged}
    file.write_bytes(b"".join([lines[0], json.dumps(forged).encode() + b"\n", *lines[2:]]))
    if cut:  # a second time, when the first line had come again
        file.rename(killed / "answers-1.jsonl")
        file.write_bytes(lines[0])
    done = cli(command, killed)
    said = " ".join(done.stderr.split())
    if command != "show" or done.exit_code == 2:  # which reads what was used alone
        assert (done.exit_code, "jsonl:2: the " in said, " damaged" in said) == (2, True, True)


def test_tools_images_and_forms_are_named() -> None:
    """What there is beside the texts, what the model was told of its tools, and that it was tried twice."""
    shown = call_in_words(Call(7, ODD), 1000)
    assert shown.startswith("call 7 of 1,000: test, step 3, about a, b\nm, 1,200 tokens read, 3 written, cost unknown")
    assert "2 attempts, in the form form, with 2 tools, ended by tool_calls" in shown
    assert "\n== tools\nf(a, b): Does\n\n  one of:\n  a: what\n  b.c: which\nweb_search()\n\n== user" in shown
    assert '== user\n[image 1]\n\n== assistant\nf({})\n\n== answer\ng({"n": 1})\n' in shown
    for name in ("b", "a, b"):
        assert [Wanted(example=name).has(each) for each in (ODD, {}, ODD)] == [True, False, True]


@pytest.mark.parametrize(
    ("known", "used"),
    [
        ({}, "m, used nothing"),
        ({"cost_unknown": True}, "m, what it used is unknown"),
        ({"usage": {"input_tokens": 5, "output_tokens": 2, "dollars": 0.5}}, "m, 5 tokens read, 2 written, $0.50"),
    ],
)
def test_a_call_that_failed_says_why(known: dict[str, Any], used: str) -> None:
    """And not that it was answered with nothing, for nothing, at once."""
    entry = {"purpose": "judge", "model": "m", "request": {}, "error": "RateLimited: slow\ndown", **known}
    shown = call_in_words(Call(1, entry), 1)
    assert used in shown.splitlines()
    assert shown.endswith("== no answer\nRateLimited: slow\ndown\n")
    assert "no answer: RateLimited: slow down" in render_calls([Call(1, entry)], 0)


@pytest.mark.parametrize("width", [30, 60, 80, 200])
def test_a_list_fits(width: int) -> None:
    """However long the answers are, and in a record that somebody has written by hand."""
    entries = [
        {**ODD, "tool_calls": None, "text": "早い" * 300, "example": "e" * 90},
        {},
        {"usage": {}, "request": None},
    ]
    shown = render_calls([Call(n, entry) for n, entry in enumerate(entries, 1)], 0, width=width)
    assert max(len(line) + line.count("早") + line.count("い") for line in shown.splitlines()) <= min(width, 100)


def test_of_several_models_the_list_says_which_was_asked() -> None:
    """A customer and an assistant say much the same, and both are forward."""
    entries = [
        {"step": 1, "purpose": "forward", "example": "c16", "model": model, "text": "Hello.", "usage": {}}
        for model in ("assistant", "customer", "a-model-with-a-long-name")
    ]
    calls = [Call(n, entry) for n, entry in enumerate(entries, 1)]
    heads, *rows = [line.split() for line in render_calls(calls, 0).splitlines()]
    assert heads == ["call", "step", "for", "about", "model", "read", "written", "answer"]
    assert [row[4] for row in rows] == ["assistant", "customer", "a-model-wit…"]
    assert "model" not in render_calls(calls[:1], 0)
