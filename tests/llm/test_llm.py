import subprocess
import sys

import textgrad_engine.llm as llm


def test_importing_loads_no_heavy_package():
    """`import textgrad_engine` must stay cheap; each of these costs a good part of a second."""
    heavy = "{'openai', 'httpx2', 'tiktoken', 'genai_prices', 'minijinja', 'rich', 'typer'}"
    code = f"import sys, textgrad_engine.llm; print(sorted({heavy} & set(sys.modules)))"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "[]\n"


def test_the_public_names_are_sorted_and_there():
    """`__all__` is the promise."""
    assert llm.__all__ == sorted(llm.__all__)
    assert all(hasattr(llm, name) for name in llm.__all__)


def test_functions_are_not_hidden_by_modules_of_the_same_name():
    """`llm.resolve` and `llm.budget` are functions, though files are called so too."""
    assert callable(llm.resolve)
    assert callable(llm.budget)
