import asyncio
import hashlib
import os
import socket
import subprocess
import sys
import threading
import urllib.error
from contextlib import contextmanager

import httpx
import pytest
import respx
import tiktoken

from textgrad_engine.llm import OpenAIModel, tokens, vocabulary
from textgrad_engine.llm.transport import REFUSE_REQUESTS

CONTENT = b"".join(b"%d\n" % n for n in range(256)) * 200
"""What stands for a vocabulary here; each byte is a token."""

MODEL = "openai/gpt-5-mini"
TEXT = "Sort the ticket."
ESTIMATE, EXACT = 4, 16
HEAD = b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\nConnection: close\r\n\r\n" % len(CONTENT)


@contextmanager
def serving(answer):
    """A server on this machine; `answer(connection)` is called for each connection once its request is there."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        asked = []

        def serve():
            while True:
                try:
                    connection, _ = listening.accept()
                except OSError:
                    return
                with connection:
                    request = connection.recv(65536)
                    if not request:
                        return
                    asked.append(request)
                    try:
                        answer(connection)
                    except OSError:
                        continue

        thread = threading.Thread(target=serve)
        thread.start()
        port = listening.getsockname()[1]
        try:
            yield f"http://127.0.0.1:{port}/", asked
        finally:
            socket.create_connection(("127.0.0.1", port)).close()  # so that `accept` ends
            thread.join()


@pytest.fixture
def fetching(tmp_path, monkeypatch):
    """Fetching is allowed, from a server of this machine, into an empty folder; returns a function that begins anew."""
    monkeypatch.setenv("TIKTOKEN_CACHE_DIR", str(tmp_path / "kept"))
    monkeypatch.delenv(vocabulary.NO_FETCH)
    monkeypatch.setattr(vocabulary, "_VOCABULARIES", {"o200k_base": hashlib.sha256(CONTENT).hexdigest()})
    monkeypatch.setattr(vocabulary, "_loaded", bytewise)

    def anew():
        vocabulary._decided.clear()
        vocabulary._attempts.clear()

    anew()
    yield anew
    anew()


def bytewise(name):
    assert vocabulary._whole(name), "tiktoken would fetch it, without a timeout"
    ranks = {bytes([n]): n for n in range(256)}
    return tiktoken.Encoding(name, pat_str=r"[\s\S]", mergeable_ranks=ranks, special_tokens={})


def kept():
    return vocabulary._file("o200k_base")


def finished():
    """Wait for the attempt to end, whatever became of it."""
    vocabulary._attempts["o200k_base"].found.result(60)


def no_fetch(*args):
    raise AssertionError("it was fetched")


def test_a_vocabulary_that_comes_in_time_counts_and_is_kept(fetching, monkeypatch):
    """The numbers are those of the endpoint's own tokenizer; the next process finds the file and asks nobody."""
    with serving(lambda connection: connection.sendall(HEAD + CONTENT)) as (url, asked):
        monkeypatch.setattr(vocabulary, "_SOURCE", url)
        monkeypatch.setattr(vocabulary, "DEADLINE", 30.0)
        assert tokens.method(MODEL) == "o200k_base"
        assert tokens.count(TEXT, MODEL) == tokens.count(TEXT, "gpt-5") == EXACT
    assert len(asked) == 1
    assert asked[0].startswith(b"GET /o200k_base.tiktoken ")
    assert kept().read_bytes() == CONTENT
    assert [file.name for file in kept().parent.iterdir()] == [kept().name]
    monkeypatch.setattr(vocabulary, "_download", no_fetch)
    fetching()
    assert tokens.count(TEXT, MODEL) == EXACT


BAD = {
    "other bytes": HEAD + CONTENT[:-1] + b"!",
    "fewer bytes": HEAD + CONTENT[:-1],
    "dropped in the middle": HEAD + CONTENT[:100],
    "no HTTP": b"\x00\xff",
    "nothing": b"",
    "not found": b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n",
    "a page to log in": b"HTTP/1.1 200 OK\r\n\r\n<html>Please log in</html>",
}


@pytest.mark.parametrize("name", BAD)
def test_what_is_not_the_vocabulary_is_not_used(fetching, monkeypatch, name):
    """A captive portal or a broken download must not decide how many tokens are counted; it is not tried twice."""
    with serving(lambda connection: connection.sendall(BAD[name])) as (url, asked):
        monkeypatch.setattr(vocabulary, "_SOURCE", url)
        monkeypatch.setattr(vocabulary, "DEADLINE", 30.0)
        assert (tokens.count(TEXT, MODEL), tokens.method(MODEL)) == (ESTIMATE, "estimate")
        assert tokens.count(TEXT, MODEL) == ESTIMATE
    assert len(asked) == 1
    assert not kept().exists()


def test_an_answer_that_refuses_is_closed(fetching):
    """It holds a connection, and Python 3.14 warns of one that is left to the collector."""
    answer = b"HTTP/1.1 404 Not Found\r\nContent-Length: 5\r\n\r\nNone."
    with serving(lambda connection: connection.sendall(answer)) as (url, _):
        with pytest.raises(urllib.error.HTTPError) as refused:
            vocabulary._download(url)
        assert refused.value.closed


def test_what_has_no_end_is_given_up(fetching, monkeypatch):
    """It must not fill the memory."""
    monkeypatch.setattr(vocabulary, "_LARGEST", len(CONTENT) - 1)
    with serving(lambda connection: connection.sendall(HEAD + CONTENT)) as (url, _):
        monkeypatch.setattr(vocabulary, "_SOURCE", url)
        monkeypatch.setattr(vocabulary, "DEADLINE", 30.0)
        assert tokens.method(MODEL) == "estimate"
    assert not kept().exists()


def test_what_comes_after_the_deadline_is_for_the_next_process(fetching, monkeypatch):
    """Numbers must not change in the middle of a run."""
    late = threading.Event()

    def answer(connection):
        late.wait()
        connection.sendall(HEAD + CONTENT)

    with serving(answer) as (url, _):
        monkeypatch.setattr(vocabulary, "_SOURCE", url)
        monkeypatch.setattr(vocabulary, "DEADLINE", 0.05)
        assert tokens.count(TEXT, MODEL) == ESTIMATE
        late.set()
        finished()
        assert kept().read_bytes() == CONTENT
        assert (tokens.count(TEXT, MODEL), tokens.method(MODEL)) == (ESTIMATE, "estimate")
        assert asyncio.run(vocabulary.settled(MODEL)) is False
    fetching()
    assert (tokens.count(TEXT, MODEL), tokens.method(MODEL)) == (EXACT, "o200k_base")


def test_the_deadline_is_for_all_who_wait_together(fetching, monkeypatch):
    """A hundred counts behind a firewall take two seconds, not two hundred."""
    waited = []
    monkeypatch.setattr(vocabulary, "DEADLINE", 0.05)
    monkeypatch.setattr(vocabulary, "_log_late", waited.append)
    late = threading.Event()
    with serving(lambda connection: late.wait()) as (url, asked):
        monkeypatch.setattr(vocabulary, "_SOURCE", url)
        assert [tokens.count(TEXT, MODEL) for _ in range(100)] == [ESTIMATE] * 100
        late.set()
        finished()
    assert (waited, len(asked)) == (["o200k_base"], 1)


def test_a_count_on_an_event_loop_does_not_wait(fetching, monkeypatch):
    """It would hold up every call that is under way; here it would wait for an hour."""
    late = threading.Event()

    async def main():
        return tokens.count(TEXT, MODEL), tokens.method(MODEL)

    with serving(lambda connection: late.wait()) as (url, _):
        monkeypatch.setattr(vocabulary, "_SOURCE", url)
        monkeypatch.setattr(vocabulary, "DEADLINE", 3600.0)
        assert asyncio.run(main()) == (ESTIMATE, "estimate")
        assert not vocabulary._attempts["o200k_base"].found.done()
        assert tokens.count(TEXT, MODEL) == ESTIMATE  # what has been said once holds
        late.set()
        finished()


def test_who_awaits_a_vocabulary_leaves_the_loop_to_others(fetching, monkeypatch):
    """The server answers only when another task has run: a loop that is held would never get there."""
    free = threading.Event()

    def answer(connection):
        free.wait()
        connection.sendall(HEAD + CONTENT)

    async def main():
        calls = [asyncio.ensure_future(vocabulary.settled(MODEL)) for _ in range(8)]
        await asyncio.sleep(0)
        free.set()
        return await asyncio.gather(*calls), tokens.count(TEXT, MODEL)

    with serving(answer) as (url, asked):
        monkeypatch.setattr(vocabulary, "_SOURCE", url)
        monkeypatch.setattr(vocabulary, "DEADLINE", 30.0)
        assert asyncio.run(main()) == ([True] * 8, EXACT)
    assert len(asked) == 1


def test_who_awaits_a_vocabulary_gives_up_at_the_deadline(fetching, monkeypatch):
    """A download that hangs is not waited for, and outlives the loop that began it without harm."""
    late = threading.Event()
    with serving(lambda connection: late.wait()) as (url, _):
        monkeypatch.setattr(vocabulary, "_SOURCE", url)
        monkeypatch.setattr(vocabulary, "DEADLINE", 0.05)
        assert asyncio.run(vocabulary.settled(MODEL)) is False
        late.set()
        finished()


PROGRAM = """
import sys
from textgrad_engine.llm import tokens, vocabulary
vocabulary._SOURCE, vocabulary.DEADLINE, vocabulary._STALLED = sys.argv[1], 0.05, 3600.0
print(tokens.count("Sort the ticket.", "gpt-5-mini"))
sys.stdin.read()
"""


def test_a_download_that_hangs_does_not_keep_the_process(fetching):
    """A command that is done ends."""
    begun, late = threading.Event(), threading.Event()

    def hang(connection):
        begun.set()
        late.wait()

    with serving(hang) as (url, asked):
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
        with subprocess.Popen([sys.executable, "-c", PROGRAM, url], text=True, **pipes) as process:
            try:
                assert begun.wait(60)
                stdout, stderr = process.communicate("", timeout=60)  # it is done, and the download is under way
            finally:
                late.set()
    assert (stdout, stderr, process.returncode) == ("4\n", "", 0)
    assert len(asked) == 1


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system does not fork")
@pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")
def test_a_forked_child_waits_for_no_thread_of_its_parent(fetching, monkeypatch):
    """The parent's download is not the child's; it begins its own, and the lock is nobody's."""
    late = threading.Event()
    with serving(lambda connection: late.wait()) as (url, _):
        monkeypatch.setattr(vocabulary, "_SOURCE", url)
        monkeypatch.setattr(vocabulary, "DEADLINE", 3600.0)
        parents = vocabulary._begin("o200k_base")
        with vocabulary._lock:
            child = os.fork()
            if child == 0:
                vocabulary._SOURCE = "http://127.0.0.1:1/"
                code = 1
                try:
                    mine = vocabulary._begin("o200k_base")
                    code = 0 if mine is not parents and tokens.count(TEXT, MODEL) == ESTIMATE else 2
                finally:
                    os._exit(code)
            _, status = os.waitpid(child, 0)
        late.set()
        finished()
    assert os.waitstatus_to_exitcode(status) == 0


@pytest.mark.parametrize(
    ("name", "value"), [(vocabulary.NO_FETCH, "1"), (vocabulary.NO_FETCH, "true"), ("TIKTOKEN_CACHE_DIR", "")]
)
def test_nothing_is_fetched_where_that_is_forbidden(fetching, monkeypatch, name, value):
    """For CI, and for people behind a firewall: no attempt, no waiting."""
    monkeypatch.setattr(vocabulary, "_download", no_fetch)
    monkeypatch.setattr(vocabulary, "_SOURCE", "http://127.0.0.1:1/")
    monkeypatch.setenv(name, value)
    assert (tokens.count(TEXT, MODEL), tokens.method(MODEL)) == (ESTIMATE, "estimate")
    assert asyncio.run(vocabulary.settled(MODEL)) is False
    assert not vocabulary._attempts


def test_nothing_is_fetched_while_tests_run(fetching, monkeypatch):
    """The plugin forbids it, as it forbids requests to models."""
    assert os.environ[REFUSE_REQUESTS]
    monkeypatch.setattr(vocabulary, "_download", no_fetch)
    assert tokens.method(MODEL) == "estimate"
    assert not vocabulary._attempts


@pytest.mark.parametrize("model", ["llama3.2", "qwen3:8b", "", None])
def test_no_vocabulary_is_fetched_for_other_models(fetching, monkeypatch, model):
    """Only OpenAI's have one of those that are known here."""
    monkeypatch.setattr(vocabulary, "_may_fetch", no_fetch)
    assert (tokens.count(TEXT, model), tokens.method(model)) == (ESTIMATE, "estimate")


def test_a_damaged_file_is_fetched_anew(fetching, monkeypatch):
    """By us: tiktoken would do it without a timeout."""
    kept().parent.mkdir()
    kept().write_bytes(b"damaged")
    with serving(lambda connection: connection.sendall(HEAD + CONTENT)) as (url, _):
        monkeypatch.setattr(vocabulary, "_SOURCE", url)
        monkeypatch.setattr(vocabulary, "DEADLINE", 30.0)
        assert tokens.count(TEXT, MODEL) == EXACT
    assert kept().read_bytes() == CONTENT


def test_a_file_that_cannot_be_kept_is_not_used(fetching, monkeypatch):
    """tiktoken reads it from the disk."""
    kept().parent.write_text("no folder")
    with serving(lambda connection: connection.sendall(HEAD + CONTENT)) as (url, _):
        monkeypatch.setattr(vocabulary, "_SOURCE", url)
        monkeypatch.setattr(vocabulary, "DEADLINE", 30.0)
        assert tokens.method(MODEL) == "estimate"


def test_a_link_in_the_way_is_not_followed(fetching, monkeypatch, tmp_path):
    """The folder of temporary files is everybody's: nobody may choose which file is written over."""
    precious = tmp_path / "precious"
    precious.write_text("mine")
    kept().parent.mkdir()
    kept().symlink_to(precious)
    with serving(lambda connection: connection.sendall(HEAD + CONTENT)) as (url, _):
        monkeypatch.setattr(vocabulary, "_SOURCE", url)
        monkeypatch.setattr(vocabulary, "DEADLINE", 30.0)
        assert tokens.count(TEXT, MODEL) == EXACT
    assert precious.read_text() == "mine"
    assert not kept().is_symlink()


def answering(**fields):
    choices = [{"index": 0, "message": {"role": "assistant", "content": "fine"}, "finish_reason": "stop"}]
    return httpx.Response(200, json={"model": "m", "choices": choices, **fields})


def ask_once(ask):
    model = OpenAIModel("gpt-5-mini", api_key="sk-0123456789")

    async def main():
        try:
            return await model.complete(ask(TEXT))
        finally:
            await model.aclose()

    return asyncio.run(main())


def test_where_an_endpoint_is_silent_about_usage_it_is_counted_by_the_vocabulary(fetching, monkeypatch, ask):
    """From the first answer on, so that all numbers of a run are of one kind; and still marked as counted here."""
    with (
        serving(lambda connection: connection.sendall(HEAD + CONTENT)) as (url, _),
        respx.mock(using="httpcore2") as router,
    ):
        router.post("https://api.openai.com/v1/chat/completions").mock(return_value=answering())
        monkeypatch.setattr(vocabulary, "_SOURCE", url)
        monkeypatch.setattr(vocabulary, "DEADLINE", 30.0)
        completion = ask_once(ask)
    assert (completion.usage.output_tokens, completion.usage.input_tokens) == (4, EXACT + 4)
    assert completion.raw == {"usage_estimated": True}


def test_where_an_endpoint_says_what_was_used_no_vocabulary_is_looked_for(fetching, monkeypatch, ask):
    """The usual case: nobody's address is told to anybody."""
    monkeypatch.setattr(vocabulary, "vocabulary_of", no_fetch)
    with respx.mock(using="httpcore2") as router:
        usage = {"prompt_tokens": 11, "completion_tokens": 7}
        router.post("https://api.openai.com/v1/chat/completions").mock(return_value=answering(usage=usage))
        assert ask_once(ask).usage.total_tokens == 18
