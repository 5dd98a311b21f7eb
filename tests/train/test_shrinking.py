"""`train.shrink`: the shortest prompt that a paired race does not show to be worse."""

from __future__ import annotations

import asyncio
import threading
from typing import Any

import pytest

import textgrad_engine as tg
from textgrad_engine import nn
from textgrad_engine.errors import BadRequest, DataError
from textgrad_engine.llm import Request
from textgrad_engine.optim.contracts import Placeholders, Requires
from textgrad_engine.report.shrunk import render_shrunk
from textgrad_engine.testing import FunctionModel, simulated_task
from textgrad_engine.train import Guards, ShrinkResult, ashrink, shrink

PROMPT = "Repeat.\nBe kind.\nShout odd words.\nBe good.\nWhisper w40."


def answer(request: Request) -> Any:
    text, system = request.messages[-1].text, request.messages[0].text
    if text == "w40":
        return "(w40)" if "w40" in system else text
    return text.upper() if "Shout" in system and int(text[1:]) % 2 else text


def rows() -> list[dict[str, Any]]:
    right = {f"w{n}": "(w40)" if n == 40 else f"W{n}" if n % 2 else f"w{n}" for n in range(48)}
    return [{"id": word, "word": word, "target": target} for word, target in right.items()]


def program(text: str = PROMPT, model: Any = answer) -> Any:
    return nn.ChatCompletion("{word}", system=nn.Parameter(text, role="system prompt"), model=FunctionModel(model))


def short(text: str = PROMPT, **settings: Any) -> tuple[Any, ShrinkResult]:
    made = program(text)
    return made, shrink(made, nn.ExactMatch(), settings.pop("val", rows()), **settings)


def test_no_examples() -> None:
    """Said before anything is asked; there is no training set in it, which it spoke of."""
    with pytest.raises(DataError, match="there is nothing to shrink on: there are no examples"):
        short(val=[])


@pytest.mark.parametrize("setting", [{"doubt": 0.4}, {"allowance": 0}, {"lanes": 0}, {"max_tries": 0}])
def test_a_number_out_of_range(setting: Any) -> None:
    """Named, with what was given."""
    with pytest.raises(ValueError, match=r"got"):
        short(**setting)


def test_lines_that_do_nothing_go() -> None:
    """What is left does all that the whole prompt did, also what only one example in forty-eight shows."""
    made, result = short()
    assert result.after == {"system": "Shout odd words.\nWhisper w40."}
    assert result.removed == {"system": (1, 2, 4)}
    assert made.system.data == result.after["system"]
    assert result.tokens[1] < result.tokens[0]
    assert (result.before_val.mean, result.after_val.mean) == (1.0, 1.0)
    assert result.ended == "finished"
    assert result.comparison.difference == 0.0


def test_examples_that_belong_together_are_not_taken_for_independent() -> None:
    """In the intervals of both prompts and in what is said of them, as in a run."""
    val = [{**row, "mail": n // 8} for n, row in enumerate(rows())]
    result = short(val=val, clusters="mail", max_tries=1)[1]
    assert result.comparison.clusters == 6
    assert len(set(result.before_val.clusters)) == len(set(result.after_val.clusters)) == 6
    with pytest.raises(DataError, match="'thread', which says which examples belong together"):
        short(val=val, clusters="thread")


def test_the_result_does_not_depend_on_lanes() -> None:
    """Only how many races turn out not to have been needed does."""
    one, four = short(lanes=1)[1], short(lanes=4)[1]
    assert (one.after, one.removed) == (four.after, four.removed)


def test_as_many_lanes_race_with_a_metric_as_one_likes() -> None:
    """A race waits for metrics, so that neither may take the threads of the other."""
    lines = [f"Line {number}." for number in range(24)]

    def needs(request: Request) -> str:
        return "yes" if all(line in request.messages[0].text for line in lines[::3]) else "no"

    made = program("\n".join(lines), model=needs)
    val = [{"word": f"w{number}", "target": "yes"} for number in range(12)]
    found = shrink(made, nn.Metric(lambda got, wanted: float(got == wanted), "likeness"), val, lanes=40)
    assert found.after["system"] == "\n".join(lines[::3])


def test_contracts_and_guards_are_kept() -> None:
    """A line that a contract wants stays, and so does one that a guarded example needs where a race may miss it."""
    assert "Be kind." in short(contracts=[Requires(["kind"])])[1].after["system"]
    guarded = short(allowance=12, seed=1, guards=Guards(("w40",)))[1]
    assert "Whisper w40." in guarded.after["system"]


def test_what_lost_its_race_is_not_run_again_for_guards() -> None:
    """It is not taken in any case; of a long list each text that was tried would cost as much as a whole run."""
    odd = [f"w{n}" for n in range(1, 48, 2)]
    once, again = (short(guards=Guards(odd, reruns=reruns))[1] for reruns in (0, 2))
    assert again.usage.calls == once.usage.calls
    assert (again.after, again.tried, again.front) == (once.after, once.tried, once.front)


def test_a_text_that_never_kept_a_contract_is_shrunk_all_the_same() -> None:
    """A phrase that another text is to have does not come by leaving out lines, so it is not asked for."""
    lacking = short(contracts=[Requires(["JSON"]), Requires(["kind"])])[1]
    assert lacking.after == short(contracts=[Requires(["kind"])])[1].after
    assert lacking.removed["system"]


def test_slots_stay() -> None:
    """As in every new text: a program refuses a field that has no slot, and it would never be shown again."""
    text, val = PROMPT.replace("Be good.", "It is for {who}."), [{**row, "who": "Ann"} for row in rows()]
    for own in ([], [Placeholders(["who"])]):
        found = short(text, val=val, contracts=own)[1]
        assert found.after == {"system": "Shout odd words.\nIt is for {who}.\nWhisper w40."}


def test_each_text_keeps_its_own_contracts() -> None:
    """By its name; a name that is none is refused."""
    own = {"system": [Requires(["kind"])]}
    assert short(contracts=own)[1].after == short(contracts=own["system"])[1].after
    with pytest.raises(ValueError, match="contracts names 'user', and what is shrunk is system"):
        short(contracts={"user": []})


def test_nothing_that_is_needed_can_be_spared() -> None:
    """A prompt whose every line counts stays as it is, and the front says what less of it would cost."""
    _, result = short("Shout odd words.\nWhisper w40.")
    assert result.before == result.after
    assert result.removed == {"system": ()}
    assert result.front[0].texts == result.before
    assert all(point.score < 1.0 for point in result.front[1:])
    assert "Left out of the prompt: nothing" in render_shrunk(result)


def test_the_report_says_what_the_examples_could_not_show() -> None:
    """No difference shown of two prompts is worth as much as the comparison could see."""
    _, result = short("Shout odd words.\nWhisper w40.\nBe kind.")
    assert result.comparison.remark.startswith("with n = ")
    assert result.comparison.remark[1:] in " ".join(render_shrunk(result).split())


def test_a_limit_of_tries_and_of_the_budget() -> None:
    """Both end it with what was found until then, and say so."""
    _, few = short(max_tries=2)
    assert (few.ended, few.tried) == ("tries", 2)
    whole = short()[1].usage.calls
    with tg.budget(calls=whole - 60):
        made, spent = short()
    assert spent.ended == "budget"
    assert made.system.data == spent.after["system"]
    assert "the budget was spent, so not every line was tried" in " ".join(render_shrunk(spent).split())


def test_answers_that_cannot_be_had_are_no_proof() -> None:
    """A shorter text with which the endpoint fails is not taken."""

    def down(request: Request) -> Any:
        if "Be kind." not in request.messages[0].text:
            raise BadRequest("refused", status=400)
        return answer(request)

    made = program(model=down)
    result = shrink(made, nn.ExactMatch(), rows())
    assert "Be kind." in result.after["system"]


def test_a_shorter_text_that_loses_most_answers_is_not_shown_to_be_as_good() -> None:
    """Though all that it does answer is right: with the texts of before there was an answer each time."""

    def lossy(request: Request) -> Any:
        if "Be kind." not in request.messages[0].text and int(request.messages[-1].text[1:]) % 5:
            raise BadRequest("refused", status=400)
        return answer(request)

    result = shrink(program("Shout odd words.\nWhisper w40.\nBe kind.", lossy), nn.ExactMatch(), rows())
    assert result.removed == {"system": ()}


def test_several_texts_are_shrunk_one_after_the_other() -> None:
    """Each keeps what it is needed for."""

    class Two(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.first, self.second = program("Be kind.\nShout odd words."), program("Whisper w40.\nBe good.")

        def forward(self, word: str) -> Any:
            return self.second(word=word) if word == "w40" else self.first(word=word)

    result = shrink(Two(), nn.ExactMatch(), rows())
    assert result.after == {"first.system": "Shout odd words.", "second.system": "Whisper w40."}
    assert result.removed == {"first.system": (1,), "second.system": (2,)}


def test_on_a_task_with_a_known_optimum() -> None:
    """What the optimum says stays, and fillers go, as far as validation can tell."""
    task = simulated_task(rules=6, seed=3, train=8, val=96, test=96)
    made = task.program()
    text = task.optimum_prompt + "\nBe polite.\nThink about it.\nParcels matter.\nAnswer quickly.\nTake your time."
    with tg.no_grad():
        made.system.data = text
    with tg.use_models(forward=task.model):
        result = shrink(made, task.loss, task.val, lanes=4)
    assert task.expected(result.after["system"]) >= task.expected(text) - 0.02
    assert result.tokens[1] < result.tokens[0] - 10
    shown = render_shrunk(result, title="runs/x-1")
    assert max(map(len, shown.split("\n"))) <= 80
    assert "Score against length, of all that was raced" in shown


def test_an_awaited_shrink_finds_the_same() -> None:
    """As `shrink`, in a thread."""
    made, again = program(), program()
    awaited = asyncio.run(ashrink(made, nn.ExactMatch(), rows()))
    assert awaited.after == shrink(again, nn.ExactMatch(), rows()).after
    assert made.system.data == again.system.data


def test_a_shrink_whose_wait_is_cancelled_keeps_the_texts() -> None:
    """And sends nothing more; the wait is over when that is so."""
    begun, cancelled = threading.Event(), threading.Event()
    asked: list[str] = []

    def slow(request: Request) -> Any:
        asked.append(request.messages[-1].text)
        begun.set()
        assert cancelled.wait(60)
        return answer(request)

    async def main() -> Any:
        made = program(model=slow)
        waiting = asyncio.ensure_future(ashrink(made, nn.ExactMatch(), rows(), concurrency=2))
        assert await asyncio.to_thread(begun.wait, 60)
        waiting.cancel()
        await asyncio.to_thread(cancelled.set)
        with pytest.raises(asyncio.CancelledError):
            await waiting
        return made

    made = asyncio.run(main())
    assert made.system.data == PROMPT
    assert len(asked) < len(rows())
