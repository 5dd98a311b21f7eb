"""The documentation runs as it stands, and the tests that it names exist."""

import contextlib
import importlib
import inspect
import operator
import pkgutil
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

import textgrad_engine as tg
from textgrad_engine import nn, optim
from textgrad_engine.missing import ELSEWHERE

from .pages import Reader, reading
from .runner import COMMANDS

ROOT = Path(__file__).parent.parent
PAGES = sorted((ROOT / "docs").glob("*.md"))

LINKING = [
    *PAGES,
    *(ROOT / name for name in ("README.md", "CONTRIBUTING.md", "CHANGELOG.md")),
    *ROOT.glob("*/*/README.md"),
]
BENCHMARKS = sorted((ROOT / "benchmarks").rglob("*.py"))


@pytest.fixture
def reader(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Reader]:
    """Somebody with an empty folder."""
    with reading(tmp_path, monkeypatch) as found:
        yield found


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_the_examples_of_a_page_run_in_order(page: Path, reader: Reader) -> None:
    """What a reader pastes, block after block into one session, works, and prints what the page shows."""
    reader.read(page.read_text(encoding="utf-8"))
    assert reader.session or "```python" not in page.read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("page", "what"),
    [
        ("```python\nprint(1)\n```\n\n```text\n2\n```\n", "and the page shows"),
        ("```python\nprint(1)\n1 / 0\n```\n", "division by zero"),
        ("```console\n$ textgrad-engine show none\n```\n", "does not say so"),
        ("```console\n$ textgrad-engine show none\n$ echo $?\n0\n```\n", "and the page shows"),
        ("```console\n$ textgrad-engine --version\ntextgrad-engine 9\n```\n", "and the page shows"),
    ],
)
def test_a_page_that_does_not_hold_is_found(page: str, what: str, reader: Reader) -> None:
    """Else outputs could be made up, and a command fail."""
    with pytest.raises((AssertionError, ZeroDivisionError, pytest.fail.Exception), match=re.escape(what)):
        reader.read(page)


def prose(page: Path) -> str:
    """A page without its blocks of code."""
    return re.sub(r"^```.*?^```", "", page.read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL)


def headings(page: Path) -> set[str]:
    """What a link behind ``#`` may name, as GitHub makes it of the headings of a page."""
    titles = re.findall(r"^#+ (.*)$", prose(page), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles}


@pytest.mark.parametrize("page", LINKING, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_between_pages_lead_somewhere(page: Path) -> None:
    """Also behind the ``#``, after a heading was changed."""
    lost = []
    for link in re.findall(r"\]\((?!https?:)([^)\s]+)\)", re.sub(r"`[^`]*`", "", prose(page))):
        name, _, heading = link.partition("#")
        found = page.parent / name if name else page
        if not found.exists() or (heading and heading not in headings(found)):
            lost.append(link)
    assert lost == []


@pytest.mark.parametrize("page", LINKING, ids=lambda page: str(page.relative_to(ROOT)))
def test_the_options_that_a_page_names_are_those_of_the_command(page: Path) -> None:
    """In backticks or on a line of its own: `train --folds 5`, or `--folds` alone, which some command must have."""
    every = {name for command in COMMANDS.values() for each in command.params for name in each.opts}
    others = (*BENCHMARKS, ROOT / "textgrad_engine" / "testing" / "plugin.py")
    every |= set(re.findall(r'"(--[a-z-]+)"', "".join(each.read_text(encoding="utf-8") for each in others)))
    every |= {"--install-completion", "--help", "--json", "--version", "--strict"}  # mypy's, the last one
    lost = []
    for said in re.findall(r"`([^`\n]*--[a-z][^`\n]*)`|^    (.*--[a-z].*)$", prose(page), re.MULTILINE):
        words = re.sub(r".*textgrad-engine ", "", "".join(said)).split("#")[0].split()
        known = every
        if words[0] in COMMANDS:
            known = {name for each in COMMANDS[words[0]].params for name in each.opts} | {"--help"}
        lost += [f"{' '.join(words)}: {word}" for word in words if word.startswith("--") and word not in known]
    assert lost == []


def test_every_test_that_a_page_names_exists() -> None:
    """A promise names the test that protects it; a renamed test must not leave the page lying."""
    apart = "json.md"  # what is in backticks there are keys
    pages = [page.read_text(encoding="utf-8") for page in PAGES if page.name != apart]
    named = {name for page in pages for name in re.findall(r"`(?:[\w/]+::)?(test_\w+)`", page)}
    sources = [path.read_text(encoding="utf-8") for path in (ROOT / "tests").rglob("test_*.py")]
    defined = {name for source in sources for name in re.findall(r"def (test_\w+)\(", source)}
    assert named
    assert named <= defined, sorted(named - defined)


def test_the_modules_that_the_tour_names_are_there() -> None:
    """Somebody who looks for the file that architecture.md names finds it, also after it was renamed."""
    page = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    packages = page[page.index("\n**`") : page.index("## A run folder")]
    named = {name.rstrip("/").split("/")[-1] for name in re.findall(r"`([a-z_/]+)`", packages)}
    there = {path.stem for path in (ROOT / "textgrad_engine").rglob("*")} | {"functional_call"}  # no module, a function
    assert len(named) > 80
    assert named <= there, sorted(named - there)


ROWS = [
    row.split(" | ")
    for row in re.findall(r"^\| (.*) \|$", (ROOT / "docs" / "porting.md").read_text(encoding="utf-8"), re.MULTILINE)
]


def test_the_parts_that_there_are_already_are_there() -> None:
    """extending.md lists contracts, proposers, transforms and schedules; each can be named as it says."""
    page = (ROOT / "docs" / "extending.md").read_text(encoding="utf-8")
    said = page[page.index("There are already, in `optim`") : page.index("Several settings go into")]
    for place, names in zip(("optim", "proposers", "transforms", "schedules"), said.split(";"), strict=True):
        home = optim if place == "optim" else getattr(optim, place)
        listed = set(re.findall(r"`(\w+)`", names)) - {place}
        assert len(listed) >= 3
        assert {name for name in listed if not hasattr(home, name)} == set()


PORTED = [
    (path, words)
    for row in ROWS
    for path, words in re.findall(r"`([A-Za-z_.]+)(?:\((.*?)\))?`", row[-1])
    if path not in {"forward", "fn"}  # of the reader's own
]


@pytest.mark.parametrize(("path", "words"), sorted(set(PORTED)))
def test_what_another_library_s_name_is_called_here_is_there(path: str, words: str) -> None:
    """Who ports a program can type what the right-hand column says, with its keywords."""
    found = operator.attrgetter(path)(tg)
    if words:
        signature, given = inspect.signature(found), [word.removesuffix("=…") for word in words.split(", ")]
        named = [word for word in given if word.isidentifier()]
        signature.bind_partial(**dict.fromkeys(named))
        any_number = any(one.kind is one.VAR_POSITIONAL for one in signature.parameters.values())
        assert (named != given) == any_number, "`ops.field(answer)` by itself raises: it takes a field, too"


@pytest.mark.parametrize(("name", "here"), sorted(ELSEWHERE.items()))
def test_the_error_about_another_library_s_name_says_what_the_page_says(name: str, here: str) -> None:
    """`tg.MIPROv2` and its row name the same thing of ours."""
    if name == "BootstrapFewShotWithRandomSearch":
        name = "BootstrapFewShot"  # "and its like"
    rows = [row for row in ROWS if re.search(rf"(?<!\w){name}(?!\w)", row[0])]
    assert any(re.search(rf"`{re.escape(here)}\b", row[1]) for row in rows), rows


CALLED = sorted(
    {
        found
        for row in ROWS
        if not row[1].startswith("nothing")  # such as weights, which are not trained
        for found in re.findall(r"`@?(?:dspy|gepa|adal|cog)\.(\w+)(?=[`(])", row[0])
    }
)


@pytest.mark.parametrize("name", CALLED)
def test_a_name_of_another_library_that_a_row_has_gets_a_hint(name: str) -> None:
    """The page promises an error that says what to use, and ported code reads each of these of one module."""
    if not hasattr(tg, name):
        with pytest.raises(AttributeError, match=rf"no attribute '{name}'; it is \S"):
            getattr(tg, name)


METHODS = sorted(
    {found for row in ROWS for found in re.findall(r"`(module|program|optimizer|variable)\.(\w+)\(", row[0])}
)


@pytest.mark.parametrize(("of", "name"), METHODS)
def test_a_method_of_another_library_that_is_not_here_says_what_is(of: str, name: str) -> None:
    """`program.save(path)` is what ported code calls long after its names are found; the page promises it a hint."""
    prompt = nn.Parameter("Sort.", role="prompt")
    value = {"optimizer": optim.TGD([prompt]), "variable": prompt}.get(of, nn.ChatCompletion("{text}", system=prompt))
    with pytest.raises(AttributeError, match=rf"no attribute '{name}'; \S"):
        getattr(value, name)


PARTS = sorted({name for _, name, _ in pkgutil.iter_modules(tg.__path__)})


@pytest.mark.parametrize("part", PARTS)
def test_what_the_code_refers_to_is_there(part: str) -> None:
    """`optim.search.race` in a docstring leads a reader somewhere, also after something was moved."""
    lost = []
    for path in (ROOT / "textgrad_engine").rglob("*.py"):
        for name in re.findall(rf"`({part}(?:\.[a-z_]+)+(?:\.[A-Z]\w+)?)`", path.read_text(encoding="utf-8")):
            found = importlib.import_module(f"textgrad_engine.{part}")
            for step in name.split(".")[1:]:
                if hasattr(found, "__path__") and not hasattr(found, step):
                    with contextlib.suppress(ModuleNotFoundError):  # a module that nobody has loaded yet
                        importlib.import_module(f"{found.__name__}.{step}")
                found = getattr(found, step, None)
            if found is None:
                lost.append(f"{path.relative_to(ROOT)}: {name}")
    assert lost == []
