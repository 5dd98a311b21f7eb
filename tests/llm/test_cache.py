import asyncio
import contextlib
import itertools
import json
import os
import sqlite3
import stat
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel, field_validator

from textgrad_engine import Trainer, nn, use_models
from textgrad_engine.errors import (
    BudgetExceeded,
    ConfigError,
    RequestRefused,
    ServerFailed,
    Stopped,
    TruncatedResponse,
)
from textgrad_engine.llm import (
    Cache,
    Cached,
    Completion,
    GenerateConfig,
    Message,
    OpenAIModel,
    Request,
    ResponseFormat,
    Stop,
    Usage,
    budget,
    cache_folder,
    caching,
    innermost,
    meter,
    observe,
    repeat,
    resolve,
)
from textgrad_engine.llm.cachefile import CacheFile
from textgrad_engine.llm.cachekey import keys_of, sampling_apart
from textgrad_engine.llm.cacheowners import new_owner
from textgrad_engine.llm.resolve import Defaults
from textgrad_engine.optim import TGD
from textgrad_engine.testing import Fault, FunctionModel, LoopbackServer, ScriptedModel, feedback_for

FILE = "completions-1.sqlite"


def paid(fn, latency=0.0, cache_key="mine"):
    """A model of one's own that is no endpoint, and may be cached."""
    model = FunctionModel(fn, name="mine", latency=latency)
    model.free = False
    model.cache_key = cache_key
    return model


def counted():
    numbers = iter(range(10**6))
    return paid(lambda request: f"answer {next(numbers)}")


def started(*coroutines):
    return [asyncio.ensure_future(each) for each in coroutines]


@pytest.fixture
def clock():
    class Clock:
        now = 1000.0

        def __call__(self):
            return self.now

    return Clock()


def test_errors_and_partial_answers_are_not_kept(tmp_path, ask):
    """A failure that is remembered would last for ever."""
    cut = Completion(text="half", finish_reason="length", usage=Usage(calls=1))
    answers = iter([cut, ServerFailed("broken", status=400), "whole"])

    def answer(request):
        found = next(answers)
        if isinstance(found, Exception):
            raise found
        return found

    model = resolve(paid(answer), cache=tmp_path)

    async def main():
        with pytest.raises(TruncatedResponse):
            await model.complete(ask())
        with pytest.raises(ServerFailed):
            await Cached(paid(answer), model.inner.inner.inner.cache).complete(ask())
        return [(await model.complete(ask())).text for _ in range(2)]

    assert asyncio.run(main()) == ["whole", "whole"]


def test_what_no_check_has_seen_is_not_kept_either_when_it_is_unfinished(tmp_path, ask):
    """Also around a bare model, only finished answers are kept."""
    cache = Cache(tmp_path)
    model = Cached(paid(lambda request: Completion(text="half", finish_reason="length")), cache)

    async def main():
        await model.complete(ask())
        return len(cache)

    assert asyncio.run(main()) == 0


def test_a_folder_that_cannot_be_written_is_an_error_before_the_first_call(tmp_path):
    """Not a surprise after an hour; the message names the repair."""
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(ConfigError, match=r"TEXTGRAD_CACHE_DIR"), caching(tmp_path / "file" / "folder"):
        pass


@pytest.mark.parametrize("garbage", [b"this is no database", b"SQLite format 3\0" + b"\xff" * 8192])
def test_a_damaged_file_is_set_aside_and_a_new_one_begun(tmp_path, ask, caplog, garbage):
    """A torn disk must not stop a run, and what was there may still be wanted."""
    (tmp_path / FILE).write_bytes(garbage)
    (tmp_path / f"{FILE}.corrupt-1").write_bytes(b"older")
    cache = Cache(tmp_path)
    asyncio.run(Cached(counted(), cache).complete(ask()))
    assert len(cache) == 1
    assert (tmp_path / f"{FILE}.corrupt-2").read_bytes() == garbage
    assert (tmp_path / f"{FILE}.corrupt-1").read_bytes() == b"older"
    assert "corrupt-2" in caplog.text


def test_a_file_system_without_rights_takes_a_cache(tmp_path, ask, monkeypatch):
    """FAT and shares of Windows have none to give, and answers are kept there as well."""

    def refused(path, mode):
        raise PermissionError(1, "Operation not permitted", str(path))

    monkeypatch.setattr(os, "chmod", refused)
    cache = Cache(tmp_path)
    asyncio.run(Cached(counted(), cache).complete(ask()))
    assert len(cache) == 1


def test_folders_that_are_not_there_are_made_for_nobody_else(tmp_path, ask):
    """A new account has no folder for caches; what answers say is the user's own."""
    cache = Cache(tmp_path / "new" / "cache")
    asyncio.run(Cached(counted(), cache).complete(ask()))
    assert len(cache) == 1
    assert os.name == "nt" or stat.S_IMODE((tmp_path / "new" / "cache").stat().st_mode) == 0o700


def test_a_file_in_the_place_of_its_folder_is_named(tmp_path):
    (tmp_path / "notes.txt").write_text("mine")
    for place in (tmp_path / "notes.txt", tmp_path / "notes.txt" / "cache"):
        with pytest.raises(
            ConfigError, match=r"notes\.txt is a file, and a folder is wanted there; name another folder"
        ):
            Cache(place)


def test_a_damaged_file_that_somebody_holds_is_an_error_with_its_repair(tmp_path, monkeypatch):
    """On Windows nobody can set aside what another process has open."""
    (tmp_path / FILE).write_bytes(b"this is no database")

    def held(file, place):
        raise PermissionError(13, "The file is being used by another process", str(file))

    monkeypatch.setattr(os, "replace", held)
    with pytest.raises(ConfigError, match=r"the cache cannot use .*used by another process.*; name another folder"):
        Cache(tmp_path)


def test_damage_that_is_found_later_is_handled_too(tmp_path, ask, caplog):
    """Pages can be broken in a file that opens well; the answer is asked for again, and kept."""
    with_one = Cache(tmp_path)
    model = counted()

    async def fill(cache):
        for number in range(200):
            await Cached(model, cache).complete(ask(f"{number} " + "x" * 2000))

    asyncio.run(fill(with_one))
    with_one.close()
    path = tmp_path / FILE
    assert not (tmp_path / f"{FILE}-wal").exists()
    body = bytearray(path.read_bytes())
    body[8192:] = b"\xa5" * (len(body) - 8192)
    path.write_bytes(bytes(body))
    cache = Cache(tmp_path)
    asyncio.run(fill(cache))
    assert len(cache) == 200
    assert len(model.requests) == 400
    assert (tmp_path / f"{FILE}.corrupt-1").exists()


def test_a_disk_that_takes_nothing_costs_the_copy_and_not_the_answer(tmp_path, ask, caplog):
    """What was paid for is handed on, and the trouble is logged once."""
    cache = Cache(tmp_path)
    cache._worker.file._db.execute("PRAGMA query_only = ON")
    model = counted()

    async def main():
        return [(await Cached(model, cache).complete(ask())).text for _ in range(3)]

    assert asyncio.run(main()) == ["answer 0", "answer 1", "answer 2"]
    assert caplog.text.count("not cached") == 1


def test_a_disk_that_takes_nothing_gives_what_was_kept(tmp_path, clock, caplog):
    """When an answer was used is noted there, too; that this fails is no reason to pay for it once more."""
    file = CacheFile(tmp_path / FILE, 10**6, 60, clock)
    file.put(b"k", "me", "kept")
    clock.now += 3600
    file._db.execute("PRAGMA query_only = ON")
    assert [file.claim(b"k", "me"), file.claim(b"k", "other")] == [("hit", "kept")] * 2
    assert file.find(b"k") == "kept"
    assert caplog.text.count("not cached") == 1
    file.close()


def test_an_entry_that_is_no_answer_is_asked_for_anew(tmp_path, ask):
    """Somebody else's bytes are not trusted."""
    cache = Cache(tmp_path)
    model = counted()
    cache._worker.file.put(keys_of(model, ask())[0], "other", '{"text": 3}')

    async def main():
        return [(await Cached(model, cache).complete(ask())).text for _ in range(2)]

    assert asyncio.run(main()) == ["answer 0", "answer 0"]


@pytest.mark.parametrize(
    "change",
    [
        "UPDATE answers SET used = 'yesterday'",
        "UPDATE answers SET bytes = 'many'; UPDATE total SET bytes = 'more'",
        "DELETE FROM answers; UPDATE total SET bytes = 99999999999",
        "DELETE FROM answers; INSERT INTO leases SELECT x'00', 7, 9e99",
        "UPDATE answers SET body = printf('%.*c', 200000, '[')",
        "UPDATE answers SET body = x'ff00'",
    ],
)
def test_a_file_that_others_have_written_costs_an_answer_at_most(tmp_path, ask, change):
    """SQLite lets it hold anything anywhere, and nobody waits for ever or loses the run."""
    cache = Cache(tmp_path)
    asyncio.run(Cached(counted(), cache).complete(ask()))
    cache.close()
    (path,) = tmp_path.glob("*.sqlite")
    with contextlib.closing(sqlite3.connect(path)) as file:
        file.executescript(change)
    cache = Cache(tmp_path)
    model = Cached(counted(), cache)
    assert [asyncio.run(model.complete(ask(text))).text[:6] for text in ("hello", "other")] == ["answer"] * 2
    cache.close()


_ENDLESS = "WITH RECURSIVE r(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM r) SELECT n FROM r"


@pytest.mark.timeout(30)
@pytest.mark.parametrize(
    ("change", "what"),
    [
        (f"CREATE TRIGGER own AFTER INSERT ON leases BEGIN SELECT count(*) FROM ({_ENDLESS}); END", "trigger 'own'"),
        (f"CREATE TRIGGER own AFTER INSERT ON total BEGIN SELECT count(*) FROM ({_ENDLESS}); END", "trigger 'own'"),
        (f"DROP TABLE leases; CREATE VIEW leases AS {_ENDLESS}", "view 'leases'"),
        ("DROP TABLE answers; CREATE TABLE answers (key BLOB, b TEXT AS (hex(zeroblob(1e8))))", "table 'answers'"),
        ("DROP TRIGGER answers_added; CREATE TRIGGER answers_added DELETE ON total BEGIN SELECT 1; END", "trigger"),
    ],
)
def test_a_file_that_runs_what_others_have_put_into_it_is_refused(tmp_path, ask, change, what):
    """SQLite runs triggers and views of a file: one that somebody sent could hold up the process for ever."""
    cache = Cache(tmp_path)
    asyncio.run(Cached(counted(), cache).complete(ask()))
    cache.close()
    (path,) = tmp_path.glob("*.sqlite")
    with contextlib.closing(sqlite3.connect(path)) as file:
        file.executescript(f"{change}; DELETE FROM total")
    with pytest.raises(ConfigError, match=f"it holds the {what}.*, which this library has not put there"):
        Cache(tmp_path)
    assert path.exists()


@pytest.mark.parametrize("forged", [{"dollars": -1000.0}, {"dollars": float("nan")}, {"calls": -5}])
def test_a_kept_answer_that_used_what_nothing_can_have_used_is_asked_for_anew(tmp_path, ask, forged):
    """A cache that others have written would say that it has saved less than nothing, or end the run."""
    cache = Cache(tmp_path)
    asyncio.run(Cached(counted(), cache).complete(ask()))
    cache.close()
    (path,) = tmp_path.glob("*.sqlite")
    with contextlib.closing(sqlite3.connect(path)) as file, file:
        body = json.loads(file.execute("SELECT body FROM answers").fetchone()[0])
        file.execute("UPDATE answers SET body = ?", (json.dumps({**body, "usage": {**body["usage"], **forged}}),))
    with use_models(forward=resolve(counted(), cache=tmp_path)), meter() as used:
        assert nn.ChatCompletion("{text}")(text="hello").data == "answer 0"
    assert (used.total.calls, used.cached) == (1, 0)


def test_models_that_nothing_tells_apart_are_refused_when_asked_for_and_passed_over_else(tmp_path, ask):
    """Two functions of one name would answer for each other."""
    with pytest.raises(TypeError, match="cache_key"):
        resolve(FunctionModel(lambda request: "x"), cache=tmp_path)
    model = FunctionModel(lambda request: "x")

    async def main():
        with caching(tmp_path) as cache:
            await resolve(model).complete(ask())
            await resolve(model).complete(ask())
        return len(cache)

    assert asyncio.run(main()) == 0
    assert len(model.requests) == 2


@pytest.mark.parametrize(("key", "free", "said"), [(None, False, 1), ("mine", False, 0), (None, True, 0)])
def test_that_a_model_that_costs_is_not_cached_is_told_once(tmp_path, ask, caplog, key, free, said):
    """Whoever opens the block counts on paying once; outside of it nobody does, and a free model owes nothing."""
    model = paid(lambda request: "x", cache_key=key)
    model.free = free
    given = resolve(model)

    async def main():
        await given.complete(ask())
        assert caplog.messages == []
        with caching(tmp_path):
            await given.complete(ask())
            await given.complete(ask())

    asyncio.run(main())
    assert len([each for each in caplog.messages if "answers of 'mine' are not cached" in each]) == said
    assert all("Give it an attribute cache_key" in each for each in caplog.messages)


def test_a_free_model_of_ones_own_is_cached_where_it_says_how_its_answers_are_told_apart(tmp_path, ask):
    """A model on the user's own machine costs no money, but hours; `cache_key` was accepted and ignored."""
    model = paid(lambda request: "x", cache_key="weights 3f2a")
    model.free = True

    async def main():
        with caching(tmp_path) as cache:
            await resolve(model).complete(ask())
            await resolve(model).complete(ask())
        return len(cache)

    assert asyncio.run(main()) == 1
    assert len(model.requests) == 1


def test_a_request_that_has_no_json_is_refused(tmp_path, ask):
    """Silently uncached would be an option accepted and ignored."""
    request = ask(config=GenerateConfig(extra={"odd": object()}))
    with pytest.raises(RequestRefused, match="no cache key"):
        asyncio.run(Cached(counted(), Cache(tmp_path)).complete(request))


def test_embedded_models_are_not_cached_by_a_block(tmp_path, ask):
    """They cost nothing, and their answers depend on how they were made."""

    async def main():
        with caching(tmp_path) as cache:
            await resolve("simulated/tickets").complete(ask())
        return len(cache)

    assert asyncio.run(main()) == 0


def test_a_hit_costs_neither_budget_nor_time_and_is_counted_apart(tmp_path, ask):
    """Cached answers are free, and reports say how many there were and what they saved."""
    records = []
    answer = Completion(text="x", usage=Usage(input_tokens=7, output_tokens=2, calls=1, dollars=0.5))
    model = resolve(paid(lambda request: answer), cache=tmp_path)

    async def main():
        with meter() as m, budget(calls=1) as b, observe(records.append):
            first = await model.complete(ask())
            again = await model.complete(ask())
        return m, b, first, again

    m, b, first, again = asyncio.run(main())
    assert (first.cached, first.saved, again.cached, again.usage, again.attempts) == (False, None, True, Usage(), 0)
    assert again.saved == first.usage
    assert b.spent.calls == 1
    assert (m.total, m.cached, m.saved) == (first.usage, 1, first.usage)
    assert [(each.cached, each.attempts) for each in records] == [(False, 1), (True, 0)]
    assert all(each.latency >= 0 for each in records)


def test_what_was_kept_is_there_for_the_next_process(tmp_path, ask):
    """Every field comes back, through JSON."""
    answer = Completion(
        text="söme\ntext",
        finish_reason="tool_calls",
        model="m-1",
        tool_calls=({"id": "1"},),
        items=({"type": "reasoning"},),
        raw={"id": "c"},
    )
    asyncio.run(Cached(paid(lambda request: answer), Cache(tmp_path)).complete(ask()))
    again = asyncio.run(Cached(paid(lambda request: "never"), Cache(tmp_path)).complete(ask()))
    assert again == answer.model_copy(update={"cached": True, "saved": answer.usage, "usage": Usage(), "attempts": 0})
    row = sqlite3.connect(tmp_path / FILE)
    assert json.loads(row.execute("SELECT body FROM answers").fetchone()[0])["text"] == "söme\ntext"
    assert row.execute("PRAGMA journal_mode").fetchone() == ("wal",)  # so that readers and a writer do not wait
    row.close()
    assert os.name == "nt" or stat.S_IMODE((tmp_path / FILE).stat().st_mode) == 0o600


def test_equal_requests_under_way_are_sent_once(tmp_path, ask):
    """A hundred examples with the same text pay for one."""
    model = counted()
    cached = Cached(model, Cache(tmp_path))

    async def main():
        return await asyncio.gather(*(cached.complete(ask()) for _ in range(100)))

    answers = asyncio.run(main())
    assert len(model.requests) == 1
    assert sorted(each.cached for each in answers) == [False] + [True] * 99


def test_those_who_wait_share_the_failure_and_each_has_an_error_of_its_own(tmp_path, ask):
    """A hundred equal requests to a broken endpoint are one failure, not a hundred retries in a row."""
    failure = ServerFailed("broken", status=500)
    failure.add_note("noted")
    failure.usage = Usage(calls=1)

    def fail(request):
        raise failure

    model = paid(fail)
    cached = Cached(model, Cache(tmp_path))

    async def main():
        return await asyncio.gather(*(cached.complete(ask()) for _ in range(5)), return_exceptions=True)

    errors = asyncio.run(main())
    assert len(model.requests) == 1
    assert len({id(each) for each in errors}) == 5
    assert [each.__notes__ for each in errors] == [["noted"]] * 5
    assert [each.usage for each in errors] == [Usage(calls=1)] + [None] * 4
    assert all(each.status == 500 for each in errors)


def test_an_answer_with_odd_parts_is_handed_on(tmp_path, ask, caplog):
    """It was paid for; text that UTF-8 cannot hold is even kept, and what is no JSON is not."""
    odd = iter([Completion(text="x", raw={"text": "\udc80"}), Completion(text="y", raw={"object": object()})])
    cached = Cached(paid(lambda request: next(odd)), Cache(tmp_path))

    async def main():
        return [await cached.complete(ask(text)) for text in "xxy"]

    first, again, other = asyncio.run(main())
    assert first.raw == again.raw
    assert (again.cached, other.text, len(cached.cache)) == (True, "y", 1)
    assert "no JSON" in caplog.text


@pytest.mark.parametrize("kind", [Stopped, BudgetExceeded])
def test_a_failure_that_is_the_first_one_s_own_is_not_shared(tmp_path, ask, kind):
    """Another run's budget, or its Ctrl-C, is not mine."""
    answers = iter([kind("mine"), "fine"])

    def answer(request):
        found = next(answers)
        if isinstance(found, Exception):
            raise found
        return found

    cached = Cached(paid(answer), Cache(tmp_path))

    async def main():
        return await asyncio.gather(*(cached.complete(ask()) for _ in range(3)), return_exceptions=True)

    first, *others = asyncio.run(main())
    assert isinstance(first, kind)
    assert [each.text for each in others] == ["fine", "fine"]


def test_when_the_first_is_cancelled_another_asks(tmp_path, ask):
    """Cancelling one example must not take others with it, nor leave a lease behind."""
    begun, go = asyncio.Event(), asyncio.Event()

    async def answer(request):
        begun.set()
        await go.wait()
        return "fine"

    model = paid(answer)
    cached = Cached(model, Cache(tmp_path))

    async def main():
        first, second = started(cached.complete(ask()), cached.complete(ask()))
        await begun.wait()
        first.cancel()
        begun.clear()
        await begun.wait()
        go.set()
        return await asyncio.gather(first, second, return_exceptions=True)

    first, second = asyncio.run(main())
    assert isinstance(first, asyncio.CancelledError)
    assert second.text == "fine"
    assert len(model.requests) == 2


def test_n_samples_are_n_samples(tmp_path, ask):
    """A temperature means nothing when every sample is the first one again."""
    model = counted()
    cached = Cached(model, Cache(tmp_path))

    async def sample(index):
        with repeat(index):
            return (await cached.complete(ask())).text

    async def main():
        plain = (await cached.complete(ask())).text
        numbered = [await sample(index) for index in (0, 1, 2, 1)]
        with repeat():
            counted_once = [(await cached.complete(ask())).text for _ in range(3)]
        with repeat():
            counted_again = [(await cached.complete(ask())).text for _ in range(3)]
        with repeat(1):
            inner = [await sample(index) for index in (0, 1)]
        return plain, numbered, counted_once, counted_again, inner

    plain, numbered, counted_once, counted_again, inner = asyncio.run(main())
    assert (plain, numbered) == ("answer 0", ["answer 0", "answer 1", "answer 2", "answer 1"])
    assert counted_once == counted_again == ["answer 0", "answer 1", "answer 2"]
    assert inner == ["answer 1", "answer 3"]
    with pytest.raises(ValueError, match="must be at least 0, got -1"), repeat(-1):
        pass


@pytest.mark.parametrize("order", list(itertools.permutations((0, 1, 2))))
def test_samples_that_a_program_numbers_are_the_same_whichever_comes_first(tmp_path, ask, order):
    """A run counts equal requests apart; those with a number of their own came to be other samples by their order."""
    cached = Cached(counted(), Cache(tmp_path))

    async def votes(order):
        found = {}
        with sampling_apart():
            for index in order:
                with repeat(index):
                    found[index] = (await cached.complete(ask())).text
        return found

    async def main():
        return await votes((0, 1, 2)), await votes(order), await votes((*order, *order))

    first, again, twice = asyncio.run(main())
    assert len(set(first.values())) == 3
    assert again == first
    assert not set(twice.values()) & set(first.values())  # the second of each number is another sample


def test_a_lease_makes_others_wait_until_it_runs_out(tmp_path, clock):
    """The requests of a killed process are sent by others in the end."""
    one, other = (CacheFile(tmp_path / FILE, 10**6, 60, clock) for _ in range(2))
    assert one.claim(b"k", "one") == ("lead", None)
    assert other.claim(b"k", "other") == ("wait", None)
    clock.now += 40
    one.renew("one")
    clock.now += 40
    assert other.claim(b"k", "other") == ("wait", None)
    clock.now += 21
    assert other.claim(b"k", "other") == ("lead", None)
    one.put(b"k", "one", "late")  # it was only asleep: its answer counts, and the other's lease is left alone
    assert other.claim(b"k", "other") == ("hit", "late")
    other.put(b"k", "other", "later still")
    assert one.claim(b"k", "one") == ("hit", "late")
    assert one.claim(b"free", "one") == ("lead", None)
    one.release(b"free", "one")
    assert other.claim(b"free", "other") == ("lead", None)
    one.close()
    other.close()


def test_the_least_recently_used_answers_are_removed(tmp_path, clock):
    """The size is bounded, and what is used stays."""
    file = CacheFile(tmp_path / FILE, 100_000, 60, clock)
    for number in range(200):
        clock.now += 100
        file.put(b"%d" % number, "me", "x" * 1000)
        assert file.claim(b"0", "me")[0] == "hit"
        assert file.measure()[1] <= 100_000
    kept = [number for number in range(200) if file._find(b"%d" % number) is not None]
    assert kept[0] == 0
    assert kept[1:] == list(range(200 - len(kept) + 1, 200))
    assert 60 < len(kept) < 90
    file.put(b"huge", "me", "x" * 100_001)
    assert file.claim(b"huge", "me") == ("lead", None)
    size = (tmp_path / FILE).stat().st_size
    file.clear()
    assert file.measure() == (0, 0)
    file._db.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
    assert (tmp_path / FILE).stat().st_size < size
    file.close()


def test_a_stopped_run_does_not_wait_for_another_process(tmp_path, ask, run):
    """Ctrl-C ends the wait for somebody else's lease."""
    cache = Cache(tmp_path)
    model = counted()
    cache._worker.file.claim(keys_of(model, ask())[0], "somebody else")

    async def main():
        with Stop() as stop:
            (task,) = started(Cached(model, cache).complete(ask()))
            while not stop._listeners:
                await asyncio.sleep(0)
            stop.set()
            await task

    with pytest.raises(Stopped):
        asyncio.run(main())
    assert model.requests == []


WORKER = """
import asyncio, sys
from textgrad_engine.llm import Completion, Message, Request, caching, meter, resolve

asked_of, folder, keys = sys.argv[1], sys.argv[2], int(sys.argv[3])

class Model:
    name = cache_key = "m"

    async def complete(self, request):
        with open(asked_of, "a") as file:  # one write, which goes to the end whoever else writes
            file.write(request.messages[0].text + "\\n")
        await asyncio.sleep(0.05)
        return Completion(text=request.messages[0].text.upper())

async def main():
    model = resolve(Model())
    asked = [Request(messages=(Message(role="user", content=f"question {n % keys}"),)) for n in range(2 * keys)]
    with caching(folder), meter() as m:
        answers = await asyncio.gather(*(model.complete(request) for request in asked))
    assert [each.text for each in answers] == [request.messages[0].text.upper() for request in asked]
    print(m.total.calls, m.cached)

print("loaded", flush=True)
sys.stdin.readline()
asyncio.run(main())
"""


def test_two_processes_send_each_request_once(tmp_path):
    """Equal requests in flight are one, across processes too: unique keys = requests sent."""
    script = tmp_path / "worker.py"
    script.write_text(WORKER)
    folder, asked, keys = tmp_path / "cache", tmp_path / "asked.txt", 25
    command = [sys.executable, str(script), str(asked), str(folder), str(keys)]
    pipes = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.PIPE)
    running = [subprocess.Popen(command, text=True, **pipes) for _ in range(2)]
    assert [process.stdout.readline() for process in running] == ["loaded\n"] * 2
    for process in running:  # so that they ask at the same time
        process.stdin.write("\n")
        process.stdin.flush()
    ended = [process.communicate(timeout=60) for process in running]
    assert [process.returncode for process in running] == [0] * 2, ended
    assert sorted(asked.read_text().splitlines()) == sorted(f"question {n}" for n in range(keys))
    counts = [tuple(map(int, out.split())) for out, _ in ended]
    assert sum(sent for sent, _ in counts) == keys
    assert all(sent + cached == 2 * keys for sent, cached in counts)
    assert Cache(folder)._worker.file._db.execute("SELECT count(*) FROM leases").fetchone() == (0,)


@pytest.mark.parametrize("where", ["here", "on another machine"])
def test_a_killed_process_leaves_a_lease_that_runs_out(tmp_path, ask, where):
    """Kill -9 in the middle of a call costs the others one lease at most, not the answer; of this machine none."""
    if where == "here" and os.name != "posix":
        pytest.skip("whether a process is there cannot be asked")
    code = f"""
        import asyncio, os
        from textgrad_engine.llm import Cache, Cached, Message, Request
        from textgrad_engine.testing import FunctionModel
        model = FunctionModel(lambda request: os._exit(9), name="mine")
        model.cache_key = "mine"
        request = Request(messages=(Message(role="user", content="hello"),))
        asyncio.run(Cached(model, Cache({str(tmp_path)!r})).complete(request))
    """
    assert subprocess.run([sys.executable, "-c", textwrap.dedent(code)]).returncode == 9
    rows = sqlite3.connect(tmp_path / FILE)
    with rows:
        ((expires,),) = rows.execute("SELECT expires FROM leases").fetchall()
        if where != "here":
            rows.execute("UPDATE leases SET expires = expires - 60")  # as if the minute had passed
            rows.execute("UPDATE leases SET owner = 'else' || owner")
    rows.close()
    assert 0 < expires - time.time() <= 60
    cache = Cache(tmp_path)
    cache._worker.file._clock = lambda: expires - 30 if where == "here" else time.time()
    answer = asyncio.run(Cached(paid(lambda request: "fine"), cache).complete(ask()))
    assert answer.text == "fine"


def _boot() -> str:
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    except OSError:
        return "/"


def test_a_lease_of_a_process_that_is_there_or_cannot_be_looked_for_holds(tmp_path, clock):
    """To ask while another asks is to pay twice."""
    file = CacheFile(tmp_path / FILE, 10**6, 60, clock)
    mine = new_owner()
    place, pid, _ = mine.split(" ")
    away = [f"else{place} 999999999 x", f"{place.replace(_boot(), 'x')} 999999999 x"]  # also one of the same name
    for number, owner in enumerate((mine, f"{place} 1 x", *away, "somebody else")):
        key = b"%d" % number
        assert file.claim(key, owner) == ("lead", None)
        assert file.claim(key, new_owner()) == ("wait", None)
    assert int(pid) == os.getpid()
    file.close()


def said_by(code: str) -> str:
    """What a program prints that forks, which a process with the threads of other tests should not."""
    command = [sys.executable, "-W", "ignore", "-c", textwrap.dedent(code)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert not done.returncode, done.stderr
    return done.stdout


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_forked_child_has_a_thread_and_a_file_of_its_own(tmp_path):
    """SQLite's connections and threads do not survive a fork."""
    code = f"""
        import asyncio, os
        from textgrad_engine.llm import Cache, Cached, Message, Request
        from textgrad_engine.testing import FunctionModel
        model = FunctionModel(lambda request: "x", name="mine")
        model.cache_key = "mine"
        cached = Cached(model, Cache({str(tmp_path)!r}))
        def ask(text):
            request = Request(messages=(Message(role="user", content=text),))
            return asyncio.run(cached.complete(request)).cached
        assert not ask("before")
        child = os.fork()
        assert ask("before")
        assert not ask("parent" if child else "child")
        if not child:
            os._exit(0)
        assert os.waitpid(child, 0)[1] == 0
        print(ask("child"), len(cached.cache))
    """
    assert said_by(code) == "True 3\n"


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_child_that_is_forked_amid_a_write_can_use_the_cache(tmp_path):
    """As a server's workers are: the fork waits for the write, or the child would wait for a lock that nobody holds."""
    code = f"""
        import os, threading
        from textgrad_engine.llm import Cache, cachefile
        cachefile._PATIENCE = 1.0  # else one that fails takes a minute
        cache = Cache({str(tmp_path)!r})
        file, begun, go = cache._worker.file, threading.Event(), threading.Event()
        def write():
            with file._transaction():
                begun.set()
                go.wait(60)
                file._db.execute("DELETE FROM answers")
        cache._worker.post(file._safely, write, None)
        begun.wait(60)
        os.register_at_fork(before=go.set)
        child = os.fork()
        if not child:
            file = cache._current().file
            file.put(b"key", "owner", "said")
            os._exit(0 if file.find(b"key") == "said" else 1)
        print(os.waitpid(child, 0)[1], file.find(b"key"))
    """
    assert said_by(code) == "0 said\n"


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_what_a_child_keeps_stays_when_its_parent_closes_the_cache(tmp_path):
    """The child has locks of its own in the file, so the parent does not take it for the last one who uses it."""
    code = f"""
        import os
        from textgrad_engine.llm import Cache
        cache, (opened, told), (closed, tell) = Cache({str(tmp_path)!r}), os.pipe(), os.pipe()
        cache._current().run_here(lambda: cache._worker.file.put(b"0", "owner", "said"))
        child = os.fork()
        if not child:
            file = cache._current().file
            file.put(b"1", "owner", "said")
            os.write(told, b"x")
            os.read(closed, 1)
            file.put(b"2", "owner", "said")
            os._exit(0)
        os.read(opened, 1)
        cache.close()
        os.write(tell, b"x")
        os.waitpid(child, 0)
        print(len(Cache({str(tmp_path)!r})))
    """
    assert said_by(code) == "3\n"


def test_a_long_call_keeps_its_lease(tmp_path, ask, run):
    """A call of five minutes is not sent again by others, and the timer ends with it."""
    cache = Cache(tmp_path, lease=60)
    renewed = []
    renew = cache._worker.file.renew
    cache._worker.file.renew = lambda owner: renewed.append(renew(owner))

    async def main():
        await Cached(paid(lambda request: "x", latency=300), cache).complete(ask())
        assert cache._flights.get()._timer is None

    run(main())
    assert len(cache) == 1
    assert len(renewed) >= 14


def test_a_block_after_a_closed_one_opens_the_file_anew(tmp_path, ask):
    """Closing is final for the object, not for the folder."""
    with caching(tmp_path) as one:
        one.close()
    with caching(tmp_path) as other:
        assert (one.closed, other.closed, len(other)) == (True, False, 0)
    with pytest.raises(ValueError, match="max_bytes must be at least 1, got 0"):
        Cache(tmp_path, max_bytes=0)


def test_an_answer_under_way_when_the_cache_is_closed_is_handed_on(tmp_path, ask):
    """It was paid for; only its copy is lost. Those who wait for the same answer get it too."""
    cache = Cache(tmp_path)

    def close_and_answer(request):
        cache.close()
        return "paid"

    model = resolve(paid(close_and_answer), cache=cache)

    async def main():
        return await asyncio.gather(model.complete(ask()), model.complete(ask()))

    one, other = asyncio.run(main())
    assert (one.text, one.cached, other.text, other.cached) == ("paid", False, "paid", True)
    with caching(tmp_path) as again:
        assert len(again) == 0


def test_a_second_training_run_asks_for_nothing_new(tmp_path):
    """What the cache is for: the same run again is free, and ends the same."""

    def answer(request):
        if request.purpose == "backward":
            return feedback_for(request, "Say to shout.")
        if request.purpose == "optimizer":
            return {"edits": [{"op": "add", "line": 1, "text": "Shout.", "reason": "so", "feedback": [1]}]}
        text = request.messages[-1].text
        return text.upper() if "Shout" in request.messages[0].text else text

    model = paid(answer)

    def fit():
        program = nn.ChatCompletion("{word}", system=nn.Parameter("Repeat.", role="system prompt"))
        rows = [{"word": word, "target": word.upper()} for word in ("one", "two", "three", "four")]
        with use_models(forward=model), caching(tmp_path):
            return Trainer(batch_size=2).fit(program, nn.ExactMatch(), TGD(program.parameters()), rows[:2], rows[2:])

    first = fit()
    sent = len(model.requests)
    second = fit()
    assert len(model.requests) == sent == first.total.calls
    assert (second.total, second.total.calls) == (Usage(), 0)
    assert (second.best, second.best_val, second.steps) == (first.best, first.best_val, first.steps)


def test_a_kept_answer_is_given_without_the_thoughts_that_older_versions_kept_with_it(tmp_path, ask):
    """What was paid for stays of use, and is what a new answer to the same would be."""
    cache = Cache(tmp_path)

    async def scenario():
        kept = lambda: asyncio.sleep(0, Completion(text="<think>Hm.</think>billing"))  # noqa: E731
        model = Cached(paid(lambda request: "unused"), cache)
        await cache.answer(keys_of(model.inner, ask())[0], kept)
        return await model.complete(ask())

    answer = asyncio.run(scenario())
    assert (answer.text, answer.cached) == ("billing", True)


def test_retries_happen_inside(tmp_path, ask):
    """A hit is found before anything waits, and an answer that took two attempts is kept once."""
    with LoopbackServer(FunctionModel(lambda request: "x"), script=[Fault(500)]) as server:
        model = resolve("m", base_url=server.base_url, cache=tmp_path)

        async def main():
            try:
                return [await model.complete(ask()) for _ in range(2)]
            finally:
                await innermost(model).aclose()

        first, again = asyncio.run(main())
        assert (server.requests, first.attempts, again.attempts) == (2, 2, 0)
    assert "Cached(Retry(" in repr(model)
    assert resolve("m", base_url="http://localhost/v1", cache=False).inner.inner.inner.__class__.__name__ == "Retry"


def test_where_the_cache_is_by_default(monkeypatch, tmp_path):
    """The user's cache folder, by each system's rules; one variable overrides them."""
    for name in ("TEXTGRAD_CACHE_DIR", "XDG_CACHE_HOME", "LOCALAPPDATA"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr("pathlib.Path.home", lambda: tmp_path)
    monkeypatch.setattr(sys, "platform", "linux")
    assert cache_folder() == tmp_path / ".cache" / "textgrad_engine"
    monkeypatch.setenv("XDG_CACHE_HOME", "relative/is/ignored")
    assert cache_folder() == tmp_path / ".cache" / "textgrad_engine"
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))
    assert cache_folder() == tmp_path / "xdg" / "textgrad_engine"
    monkeypatch.setattr(sys, "platform", "darwin")
    assert cache_folder() == tmp_path / "Library" / "Caches" / "textgrad_engine"
    monkeypatch.setattr(sys, "platform", "win32")
    assert cache_folder() == tmp_path / "AppData" / "Local" / "textgrad_engine"
    monkeypatch.setenv("LOCALAPPDATA", str(tmp_path / "local"))
    assert cache_folder() == tmp_path / "local" / "textgrad_engine"
    monkeypatch.setenv("TEXTGRAD_CACHE_DIR", str(tmp_path / "own"))
    assert cache_folder() == tmp_path / "own"
    with caching() as cache:
        assert cache.path == tmp_path / "own"
    with caching() as again:
        assert again is cache


texts = st.text(max_size=8)
settings_of = st.fixed_dictionaries(
    {},
    optional={
        "temperature": st.floats(0, 2),
        "top_p": st.floats(0, 1),
        "max_tokens": st.integers(1, 9),
        "stop": st.lists(texts, max_size=2).map(tuple),
        "seed": st.integers(0, 3),
        "reasoning_effort": st.sampled_from(["low", "high"]),
        "response_format": st.just(ResponseFormat(name="r", json_schema={"type": "object"})),
        "tools": st.just(({"type": "function"},)),
        "extra": st.dictionaries(st.sampled_from(["a", "b"]), st.integers(0, 1) | st.booleans() | st.none()),
    },
)
messages_of = st.lists(
    st.builds(Message, role=st.sampled_from(["system", "user"]), content=texts), min_size=1, max_size=2
).map(tuple)
asked = st.fixed_dictionaries(
    {
        "endpoint": st.sampled_from(["http://localhost:1/v1", "http://localhost:2/v1"]),
        "model": st.sampled_from(["m", "n"]),
        "messages": messages_of,
        "config": settings_of,
        "defaults": settings_of,
        "purpose": st.sampled_from(["forward", "judge"]),
        "repeat": st.integers(0, 2),
    }
)


def key(whole):
    model = OpenAIModel(whole["model"], base_url=whole["endpoint"], api_key="k", **whole["defaults"])
    request = Request(messages=whole["messages"], config=GenerateConfig(**whole["config"]), purpose=whole["purpose"])
    with repeat(whole["repeat"]):
        return keys_of(model, request)[0]


def meaning(whole):
    """Everything that can change an answer, compared as JSON: True is not 1 for an endpoint, and None is not sent."""
    config = GenerateConfig(**whole["config"]).over(GenerateConfig(**whole["defaults"]))
    sent = {name: value for name, value in config.model_dump(mode="json").items() if value is not None}
    messages = [message.model_dump() for message in whole["messages"]]
    rest = [whole[name] for name in ("endpoint", "model", "purpose", "repeat")]
    return json.dumps([rest, messages, sent], sort_keys=True)


@given(asked, asked)
def test_keys_are_equal_exactly_when_the_requests_are(one, other):
    """Keys that ignore temperature, endpoint or model: a defect of earlier systems."""
    assert (key(one) == key(other)) == (meaning(one) == meaning(other))


@given(asked, st.data())
def test_one_difference_is_a_difference(whole, data):
    """Whatever single part changes, the key changes."""
    name = data.draw(st.sampled_from(sorted(whole)))
    changed = {**whole, name: data.draw(st.one_of(asked).map(lambda other: other[name]))}
    assert (key(whole) == key(changed)) == (meaning(whole) == meaning(changed))


def test_keys_last_and_look_inside_every_wrapper():
    """The same key in another process (no `hash()`), and the defaults of every wrapper count."""
    request = Request(messages=(Message(role="user", content="hé\udc80"),))
    model = OpenAIModel("m", base_url="http://ann:pw@localhost/v1", api_key="k")
    assert keys_of(model, request) == keys_of(OpenAIModel("m", base_url="http://localhost/v1", api_key="x"), request)
    warm = Defaults(Defaults(model, GenerateConfig(temperature=1.0)), GenerateConfig(seed=1))
    assert keys_of(warm, request) == keys_of(
        model, request.model_copy(update={"config": GenerateConfig(temperature=1.0, seed=1)})
    )
    code = (
        "from textgrad_engine.llm import *; from textgrad_engine.llm.cachekey import keys_of;"
        "print(keys_of(OpenAIModel('m', base_url='http://localhost/v1', api_key='k'),"
        "Request(messages=(Message(role='user', content='hé\\udc80'),)))[0].hex())"
    )
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert found.strip() == keys_of(model, request)[0].hex()


def test_the_order_of_fields_in_a_schema_counts():
    """Structured output is written in the schema's order, so another order is another answer."""
    model = OpenAIModel("m", api_key="k")

    def asking(*names):
        form = ResponseFormat(name="r", json_schema={"properties": {name: {"type": "string"} for name in names}})
        message = Message(role="user", content="x")
        return keys_of(model, Request(messages=(message,), config=GenerateConfig(response_format=form)))

    assert asking("reason", "score") != asking("score", "reason")


def test_nothing_is_opened_by_importing(tmp_path):
    """No folder is made until somebody wants a cache."""
    code = "import textgrad_engine.llm, os; print(os.listdir(os.environ['HOME']))"
    env = {**os.environ, "HOME": str(tmp_path)}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, env=env)
    assert done.stdout == "[]\n"


def test_a_scripted_answer_may_be_cached_when_it_says_what_it_is(tmp_path, ask):
    """`resolve(model, cache=...)` is a choice that overrides "it is free"."""
    model = ScriptedModel(["once"])
    model.cache_key = "script"
    resolved = resolve(model, cache=Cache(tmp_path))

    async def main():
        return [(await resolved.complete(ask())).text for _ in range(2)]

    assert asyncio.run(main()) == ["once", "once"]


@pytest.mark.parametrize("make", [cache_folder, Cache, lambda: Cache("~/x")])
def test_without_a_home_the_repair_is_named(monkeypatch, make):
    """A user of a container often has none."""

    def none(*_):
        raise RuntimeError("Could not determine home directory.")

    for name in ("TEXTGRAD_CACHE_DIR", "XDG_CACHE_HOME", "LOCALAPPDATA"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr("pathlib.Path.home", none)
    monkeypatch.setattr("pathlib.Path.expanduser", none)
    with pytest.raises(ConfigError, match=r"could not determine home directory; name .*TEXTGRAD_CACHE_DIR"):
        make()


def test_a_kept_answer_that_its_pydantic_model_no_longer_takes_is_asked_for_anew(tmp_path, ask, monkeypatch):
    """The key has the schema, which does not tell a validator from another one; what does not fit goes for good."""

    def taking(*queues):
        class Answer(BaseModel):
            queue: str

            @field_validator("queue")
            @classmethod
            def _known(cls, given: str) -> str:
                if given not in queues:
                    raise ValueError("no such queue")
                return given

        return ask(config=GenerateConfig(response_format=Answer))

    asked = []

    def answer(request):
        asked.append(request)
        return {"queue": "old" if len(asked) == 1 else "new"}

    cache = Cache(tmp_path)
    model = Cached(paid(answer), cache)
    assert [asyncio.run(model.complete(taking("old"))).cached for _ in range(2)] == [False, True]
    assert [asyncio.run(model.complete(taking("new"))).text for _ in range(2)] == ['{"queue": "new"}'] * 2
    assert len(asked) == 2
    monkeypatch.setattr(cache._worker.file, "drop", lambda key: None)
    assert asyncio.run(model.complete(taking("old"))).text == '{"queue": "new"}'
    assert len(asked) == 3
    cache.close()


def test_a_kept_call_of_a_tool_is_no_answer_that_has_to_have_the_form(tmp_path, ask):
    """It comes before that, and would be paid for each time."""

    class Answer(BaseModel):
        queue: str

    call = {"id": "1", "type": "function", "function": {"name": "look", "arguments": "{}"}}
    usage = Usage(calls=1)
    model = paid(lambda request: Completion(text="", finish_reason="tool_calls", tool_calls=(call,), usage=usage))
    request = ask(config=GenerateConfig(response_format=Answer))
    assert [asyncio.run(Cached(model, Cache(tmp_path)).complete(request)).cached for _ in range(2)] == [False, True]


def test_what_is_no_folder_is_told_of_the_block():
    """True stands for the user's own folder on the command line, and for nothing here."""
    with (
        pytest.raises(TypeError, match=r"^caching: path must be a text, a path, a Cache or None, got True"),
        caching(True),
    ):
        pass
