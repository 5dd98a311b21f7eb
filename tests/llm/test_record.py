import asyncio
import dataclasses
import importlib
import json
import os

import pytest

from textgrad_engine import Trainer, llm, nn, use_models
from textgrad_engine.errors import (
    BadRequest,
    BudgetExceeded,
    ConnectionFailed,
    MalformedResponse,
    ModelError,
    NoModelError,
    RateLimited,
    RequestRefused,
    RunError,
    Stopped,
    TextgradError,
    TruncatedResponse,
)
from textgrad_engine.llm import (
    Completion,
    GenerateConfig,
    Message,
    OpenAIModel,
    ResponseFormat,
    RetryPolicy,
    Stop,
    Taped,
    Usage,
    budget,
    call_key_scope,
    meter,
    model_for,
    record,
    replay,
    resolve,
)
from textgrad_engine.optim import TGD
from textgrad_engine.testing import FunctionModel, ScriptedModel, feedback_for

recording_module = importlib.import_module("textgrad_engine.llm.recording")
replay_module = importlib.import_module("textgrad_engine.llm.replay")  # the package has a function of that name
ONCE = RetryPolicy(max_attempts=1)


def taped(run, model, path, *requests):
    async def main():
        with record(path):
            return [await resolve(model, policy=ONCE).complete(request) for request in requests]

    return run(main())


def recorded_and_played(run, path, main):
    """What comes of some code while it is recorded, and in a replay of that."""

    async def within(tape):
        with tape:
            return await main()

    return run(within(record(path))), run(within(replay(path)))


def played(run, path, *requests, model="o"):
    """Answers, or errors, of a replay to each request."""

    async def one(request):
        try:
            return await (model_for(request.purpose) if model is None else resolve(model)).complete(request)
        except ModelError as error:
            return error

    async def main():
        with replay(path) as tape:
            return [await one(request) for request in requests], tape.left

    return run(main())


def model_named(name, fn):
    return FunctionModel(fn, name=name)


def test_an_unknown_request_names_the_nearest_and_the_difference(run, ask, tmp_path):
    """Somebody changed a prompt: the message shows which line, so that nobody has to search."""
    path = tmp_path / "c.jsonl"
    long = "Sort the ticket.\nBe brief.\nAnswer with one word."
    taped(run, model_named("o", lambda request: "x"), path, ask("something else"), ask(long))
    (error,), left = played(run, path, ask(long.replace("brief", "kind")), model=model_named("o", str))
    assert isinstance(error, RequestRefused)
    assert "nearest is line 3" in str(error)
    assert "-Be brief." in str(error)
    assert "+Be kind." in str(error)
    assert left == 2
    (error,), _ = played(run, path, ask(long, config=GenerateConfig(temperature=0.5)), model=model_named("o", str))
    assert '+  "temperature": 0.5' in str(error)


def test_the_nearest_request_is_looked_for_once(run, ask, tmp_path, monkeypatch):
    """A changed prompt makes all requests unknown; each says in what, by the first of them."""
    path = tmp_path / "c.jsonl"
    taped(run, model_named("o", lambda request: "x"), path, *(ask(f"Sort.\nItem {n}") for n in range(5)))
    made = []
    difference = replay_module.difference
    monkeypatch.setattr(replay_module, "difference", lambda *given: made.append(1) or difference(*given))
    errors, _ = played(run, path, *(ask(f"Order.\nItem {n}") for n in range(5)), model=model_named("o", str))
    assert len(made) == 1
    assert "was not recorded; the nearest is line 2, and" in str(errors[0])
    for error in errors[1:]:
        assert isinstance(error, RequestRefused)
        assert "was not recorded; nor was one that was asked before it, of which the nearest is line 2" in str(error)
        assert "Order." in str(error)


def test_the_nearest_request_is_the_one_with_the_most_letters_in_common(run, ask, tmp_path):
    """As `difflib` counts them, of the first 4,000; of equally near ones the first is named."""
    path = tmp_path / "c.jsonl"
    asked = ["a" * 30 + "b" * 9, "a" * 30 + "c" * 20, "c" * 20 + "a" * 30, "d" * 50]
    taped(run, model_named("o", lambda request: "x"), path, *map(ask, asked))
    for text, line in (("a" * 30 + "c" * 19, 3), ("d" * 49, 5), ("a" * 30 + "b" * 8, 2)):
        (error,), _ = played(run, path, ask(text), model=model_named("o", str))
        assert f"nearest is line {line}" in str(error)


def test_of_a_program_with_two_prompts_the_request_of_the_changed_one_is_the_nearest(run, ask, tmp_path):
    """The other one's may have more letters in common; what both were shown stays to the letter."""
    path = tmp_path / "c.jsonl"

    def asking(prompt, shown):
        return ask(shown).model_copy(
            update={"messages": (Message(role="system", content=prompt), *ask(shown).messages)}
        )

    recorded = asking("Sort the ticket into one of the queues.", "hello"), asking("Write.", "hello x")
    taped(run, model_named("o", lambda request: "x"), path, *recorded)
    (error,), _ = played(run, path, asking("Sort.", "hello"), model=model_named("o", str))
    assert "nearest is line 2" in str(error)
    assert "Write." not in str(error)


def test_asking_more_often_than_recorded_is_an_error(run, ask, tmp_path):
    """The last answer is not handed out for ever."""
    path = tmp_path / "c.jsonl"
    taped(run, model_named("o", lambda request: "x"), path, ask())
    (_, error), _ = played(run, path, ask(), ask(), model=model_named("o", str))
    assert "recorded once, and is asked once more" in str(error)


def test_another_model_s_answer_is_not_used(run, ask, tmp_path):
    """A cassette of a large model says nothing about a small one."""
    path = tmp_path / "c.jsonl"
    taped(run, model_named("large", lambda request: "x"), path, ask())
    (error,), _ = played(run, path, ask(), model=model_named("small", str))
    assert "recorded with 'large' only" in str(error)


@pytest.mark.parametrize(("here", "there"), [("openai/gpt-5-mini", "gpt-5-mini"), ("gpt-5-mini", "openai/gpt-5-mini")])
def test_a_cassette_is_played_where_openai_base_url_is_set_on_one_machine_only(run, ask, tmp_path, here, there):
    """It makes another name of "openai/gpt-5-mini", and to record anew would make the same cassette."""
    path = tmp_path / "c.jsonl"
    taped(run, model_named(here, lambda request: "x"), path, ask())
    (found,), _ = played(run, path, ask(), model=model_named(there, str))
    assert found.text == "x"

    async def go_on():
        with record(path, resume=True):
            return await resolve(model_named(there, lambda request: "y"), policy=ONCE).complete(ask())

    assert run(go_on()).text == "x", "what is on record is not paid for again"


def test_of_a_name_with_openai_before_it_and_without_each_gets_its_own(run, ask, tmp_path):
    """A program may ask a gateway and OpenAI in turn."""
    path = tmp_path / "c.jsonl"

    async def main():
        with record(path):
            for name in ("gpt-5", "openai/gpt-5"):
                await resolve(model_named(name, lambda request, name=name: name), policy=ONCE).complete(ask())

    run(main())
    (found, once_more), _ = played(run, path, ask(), ask(), model=model_named("openai/gpt-5", str))
    assert found.text == "openai/gpt-5"
    assert isinstance(once_more, RequestRefused)


def test_an_empty_cassette_answers_nothing(run, ask, tmp_path):
    """Not even without a model."""
    with record(tmp_path / "c.jsonl"):
        pass
    (error,), _ = played(run, tmp_path / "c.jsonl", ask(), model=None)
    assert "the cassette is empty" in str(error)
    with pytest.raises(NoModelError):
        model_for("forward")


def test_a_cassette_that_is_not_there_says_how_it_is_made(tmp_path):
    """The test was written before it, or the file was not committed."""
    with pytest.raises(RunError, match=r"there is no such cassette; .* `with llm.record\('answers.jsonl'\)` around"):
        replay(tmp_path / "answers.jsonl").__enter__()


@pytest.mark.parametrize("kind", ["Recording", "Replay"])
def test_a_cassette_that_cannot_be_opened_is_shown_where_a_test_fails_for_it(tmp_path, kind):
    """pytest prints what stood where an error was raised."""
    path = tmp_path / "c.jsonl"
    path.write_text("no cassette")
    with pytest.raises(RunError) as caught:
        getattr(llm, kind)(path)
    shown = {repr(entry.locals["self"]) for entry in caught.traceback if "self" in entry.locals}
    assert len(shown) == 1
    assert "c.jsonl" in shown.pop()


def test_a_cassette_is_not_recorded_over(tmp_path):
    """A recording costs money; a second run must not wipe it out."""
    path = tmp_path / "c.jsonl"
    path.write_text("precious")
    with pytest.raises(RunError, match="not recorded over"), record(path):
        pass
    assert path.read_text() == "precious"
    with (
        pytest.raises(RunError, match=r"cannot be written: .*c\.jsonl is a file, and a folder"),
        record(path / "below"),
    ):
        pass


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (None, "there is no such cassette"),
        ("", ":1: the file is empty; delete it"),
        (
            "version https://git-lfs.github.com/spec/v1\noid sha256:ab\nsize 3\n",
            ":1: .* fetch that with `git lfs pull`",
        ),
        ('<<<<<<< HEAD\n{"cassette": 1}\n', ":1: a merge left a conflict"),
        (
            '{"cassette": 1}\n<<<<<<< HEAD\n=======\n>>>>>>> theirs\n',
            ":2: a merge left a conflict here; keep the lines",
        ),
        ('{"cassette": 99}\n', ":1: this is no cassette"),
        ('{"cassette": 1}\nnot json\n', ":2: the line is damaged"),
        ('{"cassette": 1}\n' + "[" * 100_000 + "\n", ":2: the line is damaged"),
        ('{"cassette": 1}\n{"model": "m"}\n', ":2: the line is damaged: it lacks 'error'; record"),
    ],
)
def test_a_damaged_cassette_says_where(tmp_path, text, said):
    """A file that was edited by hand, or is another one."""
    path = tmp_path / "c.jsonl"
    if text is not None:
        path.write_text(text)
    with pytest.raises(RunError, match=said), replay(path):
        pass


_NOTHING_CAN_HAVE_USED = [
    {"dollars": -1000.0},
    {"dollars": float("nan")},
    {"calls": -5},
    {"output_tokens": -1},
]


@pytest.mark.parametrize("forged", _NOTHING_CAN_HAVE_USED)
@pytest.mark.parametrize("told_in", ["answer", "saved", "failure"])
def test_a_cassette_with_a_use_that_nothing_can_have_had_is_refused(run, ask, tmp_path, forged, told_in):
    """What is played back counts in a budget, so one that somebody forged would let a program spend beyond it."""
    path = tmp_path / "c.jsonl"
    taped(run, model_named("o", lambda request: "x"), path, ask("a"))
    first, line = path.read_text().splitlines()
    entry = json.loads(line)
    if told_in == "answer":
        entry["completion"]["usage"] |= forged
    elif told_in == "saved":
        entry["completion"] |= {"cached": True, "saved": forged}
    else:
        entry["completion"], entry["error"] = None, {"type": "ServerFailed", "message": "down", "usage": forged}
    path.write_text(f"{first}\n{json.dumps(entry)}\n")
    with pytest.raises(RunError, match=r"c\.jsonl:2: .*nothing can have used (-|nan)"), replay(path):
        pass


def look(city: str) -> str:
    """Look up the weather."""
    return "sunny"


def test_a_cassette_whose_fields_are_of_other_kinds_is_refused_with_the_line(tmp_path):
    """It may come from anybody, or from another program; an error of Python's says neither the file nor the repair."""
    path = tmp_path / "c.jsonl"
    calling = {"id": "1", "type": "function", "function": {"name": "look", "arguments": '{"city": "Rome"}'}}

    def answer(request):
        if request.messages[-1].role == "user":
            return Completion("", "tool_calls", tool_calls=(calling,))
        return "sunny"

    def asked():
        return nn.ChatCompletion("{q}", tools=[look], model=FunctionModel(answer, name="m"))(q="Weather?").data

    with record(path):
        assert asked() == "sunny"
    first, *lines = path.read_text().splitlines()
    refused = 0
    for at, line in enumerate(lines):
        for odd in _changes(json.loads(line)):
            others = [*lines[:at], json.dumps(odd), *lines[at + 1 :]]
            path.write_text("\n".join([first, *others]) + "\n")
            try:
                with replay(path):
                    asked()
            except RunError as error:
                refused += "the line is damaged" in str(error)
            except TextgradError:  # another request, or another answer, than that which was recorded
                pass
    assert refused > 100


_ODD = [None, True, -1, float("inf"), "x", [], {}, [1], {"a": 1}]


def _changes(entry):
    """An entry with each of its fields, on any level, replaced by something else."""
    paths, waiting = [], [((), entry)]
    while waiting:
        path, value = waiting.pop()
        paths.append(path)
        inside = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
        waiting += [((*path, key), each) for key, each in inside]
    for path in paths[1:]:
        for odd in _ODD:
            changed = json.loads(json.dumps(entry))
            place = changed
            for key in path[:-1]:
                place = place[key]
            place[path[-1]] = odd
            yield changed


def test_a_failure_whose_fields_are_no_failures_is_refused(tmp_path):
    """It would be raised amid a run, as another error, where nobody knows the file that it came from."""
    forged = {"status": "bad", "retry_after": "soon", "message": {"a": 1}, "setting": 1, "unserved": "yes"}
    for at, (field, value) in enumerate(forged.items()):
        path = tmp_path / f"{at}.jsonl"
        entry = {"model": "o", "example": "", "nth": 0, "request": {"purpose": "forward", "messages": []}}
        entry["error"] = {"type": "RateLimited", "message": "slow down", field: value}
        path.write_text(f'{{"cassette": 1}}\n{json.dumps(entry)}\n')
        with pytest.raises(RunError, match=rf":2: the line is damaged: .*{field}"), replay(path):
            pass


def test_two_cassettes_in_one_file_are_one(run, ask, tmp_path):
    """As two people's are that git merged with `merge=union`; of equal requests, the first line answers first."""
    for name, first in (("a", 1), ("b", 2)):
        texts = iter([f"{name}1", f"{name}2"])
        model = model_named("o", lambda request, texts=texts: next(texts))
        taped(run, model, tmp_path / name, ask(f"q{first}"), ask("q"))
    content = [(tmp_path / name).read_bytes() for name in "ab"]
    (tmp_path / "c").write_bytes(b"\n".join(content))
    answers, left = played(run, tmp_path / "c", ask("q2"), ask("q"), ask("q1"), ask("q"), model=None)
    assert [each.text for each in answers] == ["b1", "a2", "a1", "b2"]
    assert left == 0


def test_a_torn_last_line_is_left_out(run, ask, tmp_path):
    """A recording that was killed is good up to there."""
    path = tmp_path / "c.jsonl"
    taped(run, model_named("o", lambda request: "x"), path, ask("a"), ask("b"))
    path.write_bytes(path.read_bytes()[:-20])
    with replay(path) as tape:
        assert tape.left == 1


def refused_for_all(mark, value):
    """What an endpoint says of a model that it has no longer, or a gateway while it has no endpoint."""
    error = BadRequest("no such model", status=404)
    setattr(error, mark, value)
    return error


FAILURES = [
    RateLimited("slow down", status=429, retry_after=3.0),
    ConnectionFailed("gone"),
    BadRequest("too many examples", status=400),
    refused_for_all("setting", "model"),
    refused_for_all("unserved", True),
    MalformedResponse("no JSON"),
    ModelError("plain"),
]


@pytest.mark.parametrize("failure", FAILURES, ids=lambda failure: type(failure).__name__)
def test_failures_are_recorded_and_raised_again(run, ask, tmp_path, failure):
    """A run with lost answers replays as it was: same kind, words, status, notes."""
    path = tmp_path / "c.jsonl"
    model = ScriptedModel([failure], name="o")
    with pytest.raises(type(failure)):
        taped(run, model, path, ask())
    notes = list(getattr(failure, "__notes__", ()))
    (error,), _ = played(run, path, ask(), model=model)
    assert (type(error), str(error), getattr(error, "__notes__", [])) == (type(failure), str(failure), notes)
    for name in ("status", "retry_after", "sent", "usage", "setting", "unserved"):
        assert getattr(error, name, None) == getattr(failure, name, None)


def test_what_a_useless_answer_cost_is_replayed(run, ask, tmp_path):
    """Sums of a replay are those of the run."""
    path = tmp_path / "c.jsonl"
    cut = Completion(text="x", finish_reason="length", usage=Usage(output_tokens=50, calls=1))
    with pytest.raises(TruncatedResponse):
        taped(run, ScriptedModel([cut], name="o"), path, ask())
    with meter() as m:
        played(run, path, ask(), model=model_named("o", str))
    assert m.total == Usage(output_tokens=50, calls=1)


def test_a_stopped_or_cancelled_call_is_not_recorded(run, ask, tmp_path):
    """Ctrl-C says nothing about the request."""
    path = tmp_path / "c.jsonl"

    async def main():
        model = resolve(FunctionModel(lambda request: "x", latency=9))
        with record(path) as tape:
            with Stop() as stop:
                stop.set()
                with pytest.raises(Stopped):
                    await model.complete(ask())
            task = asyncio.ensure_future(model.complete(ask()))
            await asyncio.sleep(1)
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)
            return tape.answers

    assert run(main()) == 0


def test_a_line_that_the_disk_does_not_take_leaves_a_whole_cassette(run, ask, tmp_path, monkeypatch):
    """A full disk takes a part of a write and says so by a number only; what is recorded later must stay readable."""
    path = tmp_path / "c.jsonl"
    write, room = os.write, [10**6]

    def nearly_full(fd, content):
        if not room[0]:
            raise OSError(28, "No space left on device")
        part = content[: room[0]]
        room[0] -= len(part)
        return write(fd, part)

    monkeypatch.setattr("textgrad_engine.llm.lines.os.write", nearly_full)
    model = model_named("o", lambda request: request.messages[0].text.upper())

    async def main():
        with record(path) as tape:
            await resolve(model).complete(ask("one"))
            room[0] = 100
            with pytest.raises(RunError, match="the cassette cannot be written: no space left on device"):
                await resolve(model).complete(ask("two"))
            room[0] = 10**6
            await resolve(model).complete(ask("three"))
            return tape.answers

    assert run(main()) == 2
    answers, left = played(run, path, ask("one"), ask("three"), model=None)
    assert ([answer.text for answer in answers], left) == (["ONE", "THREE"], 0)
    room[0] = 3
    with pytest.raises(RunError, match="cannot be written"), record(tmp_path / "no.jsonl"):
        pass


def test_secrets_are_taken_out(run, ask, tmp_path, monkeypatch):
    """A cassette is committed to a repository."""
    monkeypatch.setenv("SOME_SERVICE_TOKEN", "tok-0123456789")
    path = tmp_path / "c.jsonl"
    model = Offline("m", base_url="http://ann:hunter22@localhost:9/v1", api_key="canary-key-0123456789")
    said = "key canary-key-0123456789, tok-0123456789, sk-proj-0123456789abcdefghij, Bearer abcdefgh.ijkl.012345"
    extra = {"extra_headers": {"Authorization": "Basic c2VjcmV0OnNlY3JldA==", "x-api-key": "short"}}
    request = ask(said, config=GenerateConfig(extra=extra))
    model.answer = Completion(text=f"echo {said}", raw={"api_key": "also-secret"})

    async def main():
        with record(path):
            await Taped(model).complete(request)

    run(main())
    text = path.read_text()
    for secret in ("canary", "tok-0", "sk-proj", "abcdefgh", "hunter22", "ann", "c2Vjc", "short", "also-secret"):
        assert secret not in text, secret
    assert "http://localhost:9/v1" in text
    (answer,), _ = played(run, path, request, model=model)
    assert answer.text == "echo key [redacted], [redacted], [redacted], Bearer [redacted]"


class Offline(OpenAIModel):
    """An adapter, with its key, that asks nobody."""

    async def complete(self, request):
        return self.answer


@pytest.mark.parametrize("there", [None, "another-77"])
def test_a_cassette_is_of_use_where_other_secrets_are_known(run, ask, tmp_path, monkeypatch, there):
    """A password may be a word of a prompt: it is taken out of the file, and the request is found all the same."""
    monkeypatch.setenv("DB_PASSWORD", "customer42")
    taped(run, model_named("o", lambda request: "x"), tmp_path / "c.jsonl", ask("mail of customer42"), ask("other"))
    assert "customer42" not in (tmp_path / "c.jsonl").read_text()
    if there is None:
        monkeypatch.delenv("DB_PASSWORD")
    else:
        monkeypatch.setenv("DB_PASSWORD", there)
    answers, left = played(run, tmp_path / "c.jsonl", ask("mail of customer42"), ask("other"), model=None)
    assert ([answer.text for answer in answers], left) == (["x", "x"], 0)


def test_a_cassette_is_of_use_where_a_secret_is_known_that_was_none_then(run, ask, tmp_path, monkeypatch):
    """What was recorded with no key at all is played where one is set that is a word of a prompt."""
    taped(run, model_named("o", lambda request: "x"), tmp_path / "c.jsonl", ask("mail of customer42"), ask("other"))
    monkeypatch.setenv("DB_PASSWORD", "customer42")
    answers, left = played(run, tmp_path / "c.jsonl", ask("mail of customer42"), ask("other"), model=None)
    assert ([answer.text for answer in answers], left) == (["x", "x"], 0)


def test_equal_requests_get_their_answers_in_the_order_asked(run, ask, tmp_path):
    """n samples stay n samples, whichever came first and whatever was asked between."""
    path = tmp_path / "c.jsonl"
    numbers = iter(range(9))

    async def answer(request):
        number = next(numbers)
        await asyncio.sleep(9 - number)  # later ones answer sooner
        return f"{request.messages[0].text}{number}"

    async def main():
        model = resolve(model_named("o", answer))
        with record(path):
            return await asyncio.gather(*(model.complete(ask(text)) for text in "abab"))

    assert [each.text for each in run(main())] == ["a0", "b1", "a2", "b3"]
    answers, left = played(run, path, *map(ask, "bbaa"), model=model_named("o", str))
    assert ([each.text for each in answers], left) == (["b1", "b3", "a0", "a2"], 0)


def test_equal_requests_of_different_examples_keep_their_own_answers(run, ask, tmp_path):
    """Two examples with the same text may have been answered differently."""
    path = tmp_path / "c.jsonl"
    model = ScriptedModel(["one", "two"], name="o")

    async def each(model, *keys):
        answers = []
        for key in keys:
            with call_key_scope(key):
                answers.append((await model.complete(ask())).text)
        return answers

    async def main():
        with record(path):
            await each(resolve(model), "ex/1", "ex/2")
        with replay(path):
            own = await each(resolve(model), "ex/2", "ex/1")
        with replay(path):
            return own, await each(resolve(model), "renamed", "ex/2")

    assert run(main()) == (["two", "one"], ["one", "two"])


def test_every_field_of_an_answer_comes_back(run, ask, tmp_path):
    """Byte for byte, but for what belongs to one response: the time that it took, its id and when it was made."""
    path = tmp_path / "c.jsonl"
    answer = Completion(
        text="söme\ntext\x00",
        usage=Usage(input_tokens=3, calls=1, dollars=0.25),
        model="o-1",
        tool_calls=({"id": "1", "function": {"name": "f"}},),
        items=({"type": "reasoning", "encrypted_content": "gAAAA"},),
        finish_reason="tool_calls",
        attempts=2,
        latency=7.0,
        raw={"id": "c", "created": 1767225600, "nested": [1, None]},
    )

    async def main():
        with record(path):
            await Taped(ScriptedModel([answer], name="o")).complete(ask())

    run(main())
    (again,), _ = played(run, path, ask(), model=None)
    assert again == answer.model_copy(update={"latency": 0.0, "raw": {"nested": [1, None]}})


@pytest.mark.parametrize("quick", [range(6), range(5, -1, -1), (3, 0, 5, 1, 4, 2)])
def test_a_cassette_that_is_recorded_again_is_the_same_whoever_answers_first(run, ask, tmp_path, quick):
    """What changes in git is what was answered; here of each of six examples two calls, of which one waits."""
    path = tmp_path / "c.jsonl"

    async def main():
        gates = {number: asyncio.Event() for number in range(6)}

        async def answer(request):
            if request.messages[-1].text.startswith("first"):
                await gates[int(request.messages[-1].text[-1])].wait()
            return Completion(request.messages[-1].text.upper(), raw={"id": f"chat-{len(gates)}"})

        async def one(number):
            with call_key_scope(f"e{number}"):
                await resolve(model_named("o", answer)).complete(ask(f"first {number}"))
                await resolve(model_named("o", answer)).complete(ask(f"second {number}"))
            done[number].set()

        done = {number: asyncio.Event() for number in range(6)}
        with record(path):
            tasks = [asyncio.ensure_future(one(number)) for number in range(6)]
            for number in quick:
                gates[number].set()
                await done[number].wait()
            await asyncio.gather(*tasks)

    run(main())
    lines = [json.loads(line) for line in path.read_text().splitlines()[1:]]
    assert [line["completion"]["text"] for line in lines] == [
        f"{which} {number}" for number in range(6) for which in ("FIRST", "SECOND")
    ]
    assert [each.name for each in tmp_path.iterdir()] == ["c.jsonl"]
    with replay(path) as tape:
        assert tape.left == 12


def out_of_order(run, ask, path, behind=lambda: None):
    """Records two calls, of which the second is answered first, and lets `behind` happen before the block ends."""

    async def main():
        gate = asyncio.Event()

        async def answer(request):
            if request.messages[-1].text == "one":
                await gate.wait()
            return "x"

        model = resolve(model_named("o", answer))
        with record(path, resume=True):
            first = asyncio.ensure_future(model.complete(ask("one")))
            await asyncio.sleep(0)
            await model.complete(ask("two"))
            gate.set()
            await first
            behind()

    run(main())


def asked_in(path):
    return [json.loads(line)["request"]["messages"][-1]["content"] for line in path.read_text().splitlines()[1:]]


def test_what_stood_there_before_stays_where_it_is(run, ask, tmp_path):
    """A cassette that is gone on with keeps its lines, its mode, and its place behind a link."""
    path = tmp_path / "c.jsonl"
    taped(run, model_named("o", lambda request: "x"), path, ask("zero"))
    path.chmod(0o644)
    (tmp_path / "link.jsonl").symlink_to(path)
    out_of_order(run, ask, tmp_path / "link.jsonl")
    assert asked_in(path) == ["zero", "one", "two"]
    assert (tmp_path / "link.jsonl").is_symlink()
    assert path.stat().st_mode & 0o777 == 0o644


@pytest.mark.parametrize("name", ["replace", "fsync", "write"])
def test_a_file_that_cannot_be_put_in_order_stays_as_it_is(run, ask, tmp_path, monkeypatch, name):
    """What was paid for is worth more than its order: a full disk, or one that does not replace open files."""
    path = tmp_path / "c.jsonl"

    def refused(*args):
        raise OSError("no")

    out_of_order(run, ask, path, lambda: monkeypatch.setattr(os, name, refused))
    monkeypatch.undo()
    assert asked_in(path) == ["two", "one"]
    assert [each.name for each in tmp_path.iterdir()] == ["c.jsonl"]


@pytest.fixture
def as_on_windows(windows_files, monkeypatch):
    """No file is replaced or removed that this process has open, not even for its lock."""
    monkeypatch.setattr(recording_module, "_LOCK_HINDERS", True)


def test_on_windows_the_lines_stand_in_order_too(run, ask, tmp_path, as_on_windows):
    """Else git shows a cassette that is recorded anew as another one."""
    out_of_order(run, ask, tmp_path / "c.jsonl")
    assert asked_in(tmp_path / "c.jsonl") == ["one", "two"]
    assert [each.name for each in tmp_path.iterdir()] == ["c.jsonl"]


def test_on_windows_a_cassette_can_be_deleted_once_it_is_recorded(run, ask, tmp_path, as_on_windows):
    """In a notebook the name that it was given keeps the recording alive, and Windows removes no open file."""
    path = tmp_path / "c.jsonl"
    model = resolve(model_named("o", lambda request: "x"))

    async def main():
        with record(path) as recording:
            await model.complete(ask("one"))
        return recording

    recording = run(main())
    path.unlink()
    assert recording.answers == 1


def test_what_is_answered_behind_the_block_is_written(run, ask, tmp_path):
    """It was asked inside of it, and is paid for; nobody else's file is made of it."""
    gate = asyncio.Event()

    async def answer(request):
        if request.messages[-1].text != "one":
            await gate.wait()
        return "x"

    async def main():
        model = resolve(model_named("o", answer))
        with record(tmp_path / "c.jsonl") as recording:
            await model.complete(ask("one"))
            two, three = (asyncio.ensure_future(model.complete(ask(text))) for text in ("two", "three"))
            await asyncio.sleep(0)
        gate.set()
        await two
        await three
        assert asked_in(tmp_path / "c.jsonl") == ["one", "two", "three"]
        assert recording.answers == 3

    run(main())


@pytest.mark.skipif(os.name == "nt", reason="a file that is open cannot be deleted there")
def test_a_cassette_that_was_deleted_meanwhile_does_not_come_back(run, ask, tmp_path):
    """Its lines are put in order where they are, and nowhere else."""
    out_of_order(run, ask, tmp_path / "c.jsonl", (tmp_path / "c.jsonl").unlink)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.skipif(os.name == "nt", reason="a file that is open cannot be deleted there")
def test_a_cassette_that_is_deleted_while_it_is_recorded_is_told(run, ask, tmp_path):
    """Else answers that were paid for go into a file that nobody can open any more."""
    path = tmp_path / "c.jsonl"

    async def main():
        with record(path):
            await resolve(model_named("o", lambda request: "x")).complete(ask("one"))
            path.unlink()
            with pytest.raises(RunError, match=r"c\.jsonl: the cassette cannot be written: it was deleted, or another"):
                await resolve(model_named("o", lambda request: "x")).complete(ask("two"))

    run(main())


def test_nothing_below_is_asked_and_recording_a_replay_gives_the_same_file(run, ask, tmp_path):
    """A replay needs no network; a cassette survives being copied through it."""
    model = ScriptedModel(["x"], name="o")
    taped(run, model, tmp_path / "a.jsonl", ask())

    async def main():
        with replay(tmp_path / "a.jsonl"), record(tmp_path / "b.jsonl"):
            await resolve(model).complete(ask())

    run(main())
    assert len(model.requests) == 1
    assert (tmp_path / "a.jsonl").read_bytes() == (tmp_path / "b.jsonl").read_bytes()


def shouting(request):
    if request.purpose == "backward":
        return feedback_for(request, "Say to shout.")
    if request.purpose == "optimizer":
        edit = {"op": "add", "line": 1, "text": "Shout.", "reason": "asked for", "feedback": [1]}
        return {"edits": [edit]}
    text = request.messages[-1].text
    return text.upper() if "Shout" in request.messages[0].text else text


def fit(run_dir, **settings):
    program = nn.ChatCompletion("{word}", system=nn.Parameter("Repeat.", role="system prompt"))
    rows = [{"word": word, "target": word.upper()} for word in ("one", "two", "three", "four", "one", "two")]
    trainer = Trainer(max_epochs=2, batch_size=2, run_dir=run_dir, **settings)
    optimizer = TGD(program.parameters())
    optimizer.to_the_end = True
    return trainer.fit(program, nn.ExactMatch(), optimizer, rows[:4], rows[2:], rows)


def untimed(path):
    """The completions of a run folder without their times."""
    lines = [json.loads(line) for line in (path / "completions.jsonl").read_text().splitlines()]
    return [{name: value for name, value in line.items() if name not in ("time", "latency")} for line in lines]


def test_a_training_run_replays_with_no_model_at_all(tmp_path):
    """A paid run can be shown, debugged and tested offline, with an identical result and an equal run folder."""
    with record(tmp_path / "run.jsonl"), use_models(forward=FunctionModel(shouting, name="live")):
        live = fit(tmp_path / "live")
    with replay(tmp_path / "run.jsonl") as tape:
        again = fit(tmp_path / "again")
    assert dataclasses.replace(again, seconds=0.0) == dataclasses.replace(live, seconds=0.0)
    assert live.best["system"] == "Repeat.\nShout."
    assert tape.left == 0
    assert untimed(tmp_path / "again") == untimed(tmp_path / "live")


@pytest.mark.parametrize("calls", [10, 24, 30])
def test_a_run_that_a_budget_ends_replays_as_it_was(tmp_path, calls):
    """What is decided by what is left comes out the same, with the model and without it."""
    model = FunctionModel(shouting, name="gpt-5-mini")
    with record(tmp_path / "run.jsonl"), use_models(forward=model), budget(calls=calls) as spent:
        live = fit(None)
    assert live.status == "budget"
    for models in ({"forward": model}, {}):
        with replay(tmp_path / "run.jsonl") as tape, use_models(**models), budget(calls=calls) as charged:
            again = fit(None)
        assert dataclasses.replace(again, seconds=0.0) == dataclasses.replace(live, seconds=0.0)
        assert (tape.left, charged.spent, charged.unknown) == (0, spent.spent, spent.unknown)


def test_an_answer_without_room_in_the_budget_can_be_asked_for_again(run, ask, tmp_path):
    """A call that was refused had not been recorded; the next equal one was sent."""
    model = ScriptedModel(["x"], name="o")

    async def main():
        asked = resolve(model)
        with budget(calls=0), pytest.raises(BudgetExceeded):
            await asked.complete(ask())
        return await asked.complete(ask())

    async def taping():
        with record(tmp_path / "c.jsonl"):
            await main()

    async def playing():
        with replay(tmp_path / "c.jsonl") as tape:
            return (await main()).text, tape.left

    run(taping())
    assert run(playing()) == ("x", 0)


def test_a_further_attempt_without_room_is_refused_by_the_same_budget(run, ask, tmp_path):
    """What was paid for by then is recorded; a control ends there, where an error would end the run."""
    used = Usage(input_tokens=5, output_tokens=1, calls=1)
    model = FunctionModel(lambda request: Completion(text="no JSON", usage=used), name="o")
    wanted = ResponseFormat(name="n", json_schema={"type": "object", "required": ["n"]})

    async def main():
        with budget(calls=9) as outer, budget(calls=1) as inner:
            with pytest.raises(BudgetExceeded) as caught:
                await resolve(model).complete(ask(config=GenerateConfig(response_format=wanted)))
            return inner.refused(caught.value), outer.refused(caught.value), inner.spent, outer.spent

    before, after = recorded_and_played(run, tmp_path / "c.jsonl", main)
    assert before == after == (True, False, used, used)


@pytest.mark.parametrize("limit", [1, 2, 9])
def test_a_replay_holds_what_lost_attempts_may_have_cost(run, ask, tmp_path, limit):
    """Whether there was an answer in the end, or no room for a further attempt."""
    lost = ConnectionFailed("it broke")
    model = resolve(ScriptedModel([lost, lost, "fine"], name="o"), policy=RetryPolicy(base=0, cap=0))

    async def main():
        with budget(calls=limit, tokens=10**6) as account:
            try:
                found = (await model.complete(ask())).text
            except BudgetExceeded as error:
                found = type(error)
            return found, account.spent, account.held

    before, after = recorded_and_played(run, tmp_path / "c.jsonl", main)
    assert before == after
    assert before[0] == (BudgetExceeded if limit < 9 else "fine")
    assert before[2].calls == min(limit, 2)


def test_an_answer_of_the_cache_costs_a_replay_nothing_either(run, ask, tmp_path):
    """As it cost nothing then."""
    model = ScriptedModel([Completion(text="x", cached=True, saved=Usage(calls=1), usage=Usage())], name="o")

    async def taping():
        with record(tmp_path / "c.jsonl"):
            await Taped(model).complete(ask())

    async def playing():
        with replay(tmp_path / "c.jsonl"), budget(calls=0):
            return await Taped(model).complete(ask())

    run(taping())
    assert run(playing()).cached


@pytest.mark.parametrize("purpose", ["an optimizer", "a judge"])
def test_a_request_that_was_not_recorded_is_told_with_the_article_of_its_purpose(run, ask, tmp_path, purpose):
    """Sentences are made of purposes, one of which begins with a vowel."""
    path = tmp_path / "c.jsonl"
    taped(run, model_named("o", lambda request: "x"), path, ask("one"))
    (error,), _ = played(run, path, ask("another", purpose=purpose.split()[1]), model=model_named("o", str))
    assert f"{purpose} request to 'o' was not recorded" in str(error)
