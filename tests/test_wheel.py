"""What is shipped: the wheel, not the checkout."""

import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel, built from this tree without touching the network."""
    folder = tmp_path_factory.mktemp("wheel")
    command = [sys.executable, "-m", "hatchling", "build", "--target", "wheel", "--directory", str(folder)]
    subprocess.run(command, cwd=ROOT, check=True, capture_output=True)
    (found,) = folder.glob("*.whl")
    return found


def test_every_prompt_is_in_the_wheel(wheel: Path) -> None:
    """A prompt that is only in the checkout would be missing on a user's machine."""
    names = set(zipfile.ZipFile(wheel).namelist())
    prompts = {path.name for path in (ROOT / "prompts").glob("*.md")}
    assert prompts
    assert {f"textgrad_engine/prompts/{name}" for name in prompts} <= names
    assert "textgrad_engine/py.typed" in names
    assert "textgrad_engine/report/page.css" in names


def test_nothing_else_is_in_the_wheel(wheel: Path) -> None:
    """Tests, examples and benchmarks stay out of site-packages."""
    tops = {name.split("/")[0] for name in zipfile.ZipFile(wheel).namelist()}
    assert {top for top in tops if not top.endswith(".dist-info")} == {"textgrad_engine"}


def test_the_unpacked_wheel_finds_its_prompts(wheel: Path, tmp_path: Path) -> None:
    """Prompts are found beside the installed package, with no checkout around."""
    zipfile.ZipFile(wheel).extractall(tmp_path)
    code = (
        f"import sys; sys.path.insert(0, {str(tmp_path)!r}); from textgrad_engine import templates;"
        "print(templates.load('feedback').path)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=tmp_path)
    assert done.stdout.strip() == str(tmp_path / "textgrad_engine" / "prompts" / "feedback.md")
