import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import textgrad_engine

TESTS = """
import asyncio, os, pytest
from textgrad_engine.errors import RequestRefused, ModelError
from textgrad_engine.llm import Message, OpenAIModel, Request
from textgrad_engine.testing import LoopbackServer, ScriptedModel

REFUSED = "TEXTGRAD_ENGINE_REFUSE_REQUESTS"

def ask(**where):
    async def main():
        model = OpenAIModel("m", api_key="sk-none-at-all", **where)
        try:
            return await model.complete(Request(messages=(Message(role="user", content="hello"),)))
        finally:
            await model.aclose()
    return asyncio.run(main())

def test_refused():
    with pytest.raises(RequestRefused, match="pytest.mark.live"):
        ask()

def test_a_missing_key_is_not_what_to_set(monkeypatch):
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    with pytest.raises(ModelError, match="nothing was sent, and while tests run nothing would be: use a model of"):
        asyncio.run(OpenAIModel("m").complete(Request(messages=(Message(role="user", content="hello"),))))

def test_loopback_is_permitted():
    with LoopbackServer(ScriptedModel(["fine"])) as server:
        assert ask(base_url=server.base_url).text == "fine"

@pytest.mark.live
def test_live():
    assert REFUSED not in os.environ

def test_fixture(allow_requests):
    assert REFUSED not in os.environ

def test_refused_again():
    assert os.environ[REFUSED] == "1"
"""

CASSETTES = """
import os, unittest, pytest
from textgrad_engine import nn, use_models
from textgrad_engine.testing import LoopbackServer, ScriptedModel

REFUSED = "TEXTGRAD_ENGINE_REFUSE_REQUESTS"
SAYS = os.environ.get("SAYS", "")
chat = nn.ChatCompletion("{question}")

@pytest.fixture(autouse=True)
def model():
    with use_models(forward=ScriptedModel([SAYS] * 2 if SAYS else [], name="m")) as models:
        yield

def test_said(cassette):
    assert chat(question="a").data in ("first", "second")
    assert (REFUSED in os.environ) == (not SAYS)

@pytest.mark.parametrize("question", ["a/b", "a:b", "a" * 200, "plain"])
def test_each(cassette, question):
    assert chat(question=question).data == "first"

class TestInClass:
    def test_said(self, cassette):
        assert chat(question="b").data == "first"

@pytest.mark.usefixtures("cassette")
class TestOfUnittest(unittest.TestCase):
    def test_said(self):
        self.assertEqual(chat(question="c").data, "first")
"""


@pytest.fixture
def pytest_run(tmp_path):
    def run(text, *arguments, **variables):
        (tmp_path / "test_it.py").write_text(text)
        root = str(Path(textgrad_engine.__file__).parents[1])
        environment = {**os.environ, "PYTHONPATH": root, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", **variables}
        command = [
            sys.executable,
            "-m",
            "pytest",
            "-q",
            "-p",
            "textgrad_engine.testing.plugin",
            "-p",
            "no:cacheprovider",
        ]
        return subprocess.run(
            [*command, "--strict-markers", *arguments, "test_it.py"],
            cwd=tmp_path,
            env=environment,
            capture_output=True,
            text=True,
        )

    return run


def test_real_requests_are_refused_unless_a_test_says_so(pytest_run):
    """A test can't reach a paid model by accident; loopback, the marker and the fixture are ways that are meant."""
    result = pytest_run(TESTS)
    assert "6 passed" in result.stdout, result.stdout + result.stderr


def test_a_test_with_a_cassette_is_answered_from_it(pytest_run, tmp_path):
    """It is recorded when somebody says so, asks nobody later, and one that was deleted is recorded anew."""
    assert "7 passed" in pytest_run(CASSETTES, "--record-cassettes", SAYS="first").stdout
    files = sorted((tmp_path / "cassettes").rglob("*.jsonl"))
    assert len(files) == 7
    assert all(re.fullmatch(r"[\w.\[\]-]{1,120}", file.name) for file in files)
    assert tmp_path / "cassettes" / "test_it" / "TestInClass.test_said.jsonl" in files
    said = tmp_path / "cassettes" / "test_it" / "test_said.jsonl"
    said.unlink()
    files.remove(said)
    before = [file.read_bytes() for file in files]
    result = pytest_run(CASSETTES)
    assert "6 passed, 1 error" in result.stdout, result.stdout
    assert "test_said.jsonl: nothing is recorded for this test; record it: pytest --record-cassettes" in result.stdout
    again = pytest_run(CASSETTES, "--record-cassettes", SAYS="second")
    assert "7 passed" in again.stdout, "what is on record is not asked again"
    assert [file.read_bytes() for file in files] == before
    assert "second" in said.read_text()


def test_a_test_whose_cassette_no_longer_fits_says_what_to_type(pytest_run):
    """Somebody changed a word of the prompt: what was recorded for it is to go, and the rest stays as it is."""
    assert "7 passed" in pytest_run(CASSETTES, "--record-cassettes", SAYS="first").stdout
    changed = CASSETTES.replace('nn.ChatCompletion("{question}")', 'nn.ChatCompletion("{question}!")')
    told = " ".join(pytest_run(changed, "-k", "TestInClass").stdout.split())
    assert (
        "If the change is meant, delete that file and record it anew: "
        "pytest --record-cassettes 'test_it.py::TestInClass::test_said'" in told
    ), told
    assert "llm.replay" not in told, "the fixture has a block of its own for each test"
    twice = CASSETTES.replace('question="b").data', 'question="b").data == chat(question="b").data')
    told = " ".join(pytest_run(twice, "-k", "TestInClass").stdout.split())
    assert "was recorded once, and is asked once more; delete that file and record it anew: pytest --rec" in told, told
    assert "llm.replay" not in told


ASYNC_CASES = """
import os, unittest, pytest
from textgrad_engine import budget, nn, use_models
from textgrad_engine.errors import BudgetExceeded
from textgrad_engine.testing import ScriptedModel

SAYS = os.environ.get("SAYS", "")
chat = nn.ChatCompletion("{question}")

@pytest.fixture(autouse=True)
def model():
    with use_models(forward=ScriptedModel([SAYS] * 2 if SAYS else [], name="m")), budget(calls=1):
        yield

@pytest.mark.usefixtures("cassette")
class TestOfUnittest(unittest.IsolatedAsyncioTestCase):
    async def asyncSetUp(self):
        self.first = await chat(question="a")

    async def test_awaited(self):
        self.assertEqual(self.first.data, "first")
        with self.assertRaises(BudgetExceeded):
            await chat(question="a")

    def test_read(self):
        self.assertEqual(self.first.data, "first")

def test_behind_it():
    assert chat(question="b").data == "second"
"""


def test_an_async_case_of_unittest_is_inside_the_blocks_of_its_fixtures(pytest_run):
    """It runs in a copy of the context that is made before the fixtures are, where none of them would be seen."""
    result = pytest_run(ASYNC_CASES, "--record-cassettes", "-k", "TestOfUnittest", SAYS="first")
    assert "2 passed" in result.stdout, result.stdout
    assert "warning" not in result.stdout
    result = pytest_run(ASYNC_CASES, SAYS="second")
    assert "3 passed" in result.stdout, result.stdout


FAILURES = """
from textgrad_engine import Variable, llm, nn, use_models
from textgrad_engine.testing import ScriptedModel

LONG = "\\n".join(f"Rule {n} of the house." for n in range(60))

def test_text():
    assert Variable(LONG, role="prompt") == LONG.replace("Rule 55", "rule 55")

def test_answer_on_the_right():
    with use_models(forward=ScriptedModel([LONG])):
        assert LONG.replace("Rule 55", "rule 55") == nn.ChatCompletion("{question}")("?")

def test_batch():
    assert Variable(["a", "b", "c"]) == ["a", "x", "c"]

def test_in():
    assert "rule 55" in Variable(LONG)

def test_not_in():
    assert "Rule 55" not in Variable(LONG)

def test_two():
    assert Variable("a") == Variable("a")

def test_requests():
    model = ScriptedModel(["yes"])
    with use_models(forward=model):
        assert nn.ChatCompletion("{question}")("?") == "yes"
    assert model.requests[0] == llm.Request(messages=(llm.Message(role="user", content="!"),))
"""


def test_an_assertion_about_a_variable_shows_where_the_texts_differ(pytest_run):
    """Of a Variable itself only the beginning is shown, also with -vv; of a request the end."""

    def told_of(*arguments):
        return " ".join(pytest_run(FAILURES, *arguments).stdout.split())

    told = told_of()
    assert "E - rule 55 of E ? ^ E + Rule 55 of" in told, told
    assert "E - Rule 55 of E ? ^ E + rule 55 of" in told
    assert "At index 1 diff: 'b' != 'x'" in told
    assert "'Rule 55' is contained here:" in told
    assert "two Variables are equal only where they are one; compare their .data" in told
    assert "{'messages': ({'role': 'user', 'content': '?'},)} != {'messages': ({'role': 'user', 'content': '!'" in told
    assert "Rule 59 of the house." in told_of("-vvv", "-k", "test_in")


POOLS = """
import concurrent.futures, contextvars, pytest
from textgrad_engine import nn, use_models
from textgrad_engine.testing import FunctionModel

chat = nn.ChatCompletion("{question}", model=FunctionModel(lambda request: "first", name="m"))

def test_a_pool_that_knows_nothing(cassette):
    with concurrent.futures.ThreadPoolExecutor() as pool:
        assert pool.submit(chat, "a").result().data == "first"

def test_that_is_skipped(cassette):
    pytest.skip("no such system here")

@pytest.fixture
def key(cassette):
    pytest.skip("no key here")

def test_that_a_fixture_skips(key):
    chat("a")

def test_a_pool_that_knows(cassette):
    with concurrent.futures.ThreadPoolExecutor() as pool:
        assert pool.submit(contextvars.copy_context().run, chat, "a").result().data == "first"
"""


def test_a_test_whose_calls_no_cassette_sees_is_told_of_when_it_is_recorded(pytest_run):
    """Or it would ask its models for ever, and its author would think that it does not."""
    result = pytest_run(POOLS, "--record-cassettes")
    assert "2 passed, 2 skipped, 1 warning" in result.stdout, "of one that was skipped nothing is to be told"
    told = " ".join(result.stdout.split())
    assert "test_a_pool_that_knows_nothing.jsonl: nothing was recorded, as no call was made where the test's" in told
    assert "pool.submit(contextvars.copy_context().run, function, item)" in told


def test_of_a_test_that_fails_before_its_first_call_no_other_cause_is_guessed(pytest_run):
    """Such as one that names no model, which its error says."""
    test = "from textgrad_engine import nn\n\ndef test_it(cassette):\n    assert nn.ChatCompletion('a')().data == 'b'\n"
    result = pytest_run(test, "--record-cassettes")
    assert "NoModelError: no model was named for 'forward' calls" in result.stdout
    assert "nothing was recorded" not in result.stdout


def test_the_plugin_loads_nothing_heavy():
    """Every pytest run on a machine that has the library installed loads it."""
    code = (
        "import importlib.util, sys; before = set(sys.modules); import textgrad_engine.testing.plugin;"
        "print(sorted({'openai', 'tiktoken', 'genai_prices', 'httpx2', 'rich'} & (set(sys.modules) - before)))"
    )
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert result.stdout == "[]\n"
