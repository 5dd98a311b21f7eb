import os
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


@pytest.fixture
def pytest_run(tmp_path):
    def run(text, *arguments):
        (tmp_path / "test_it.py").write_text(text)
        root = str(Path(textgrad_engine.__file__).parents[1])
        environment = {**os.environ, "PYTHONPATH": root, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
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


def test_the_plugin_loads_nothing_heavy():
    """Every pytest run on a machine that has the library installed loads it."""
    code = (
        "import importlib.util, sys; before = set(sys.modules); import textgrad_engine.testing.plugin;"
        "print(sorted({'openai', 'tiktoken', 'genai_prices', 'httpx2', 'rich'} & (set(sys.modules) - before)))"
    )
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert result.stdout == "[]\n"
