import os
import re
import shutil
import string
import tempfile
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from textgrad_engine import fences, templates
from textgrad_engine.errors import TemplateError

from .forks import forked_beside

NAMES = sorted(path.stem for path in (Path(__file__).parent.parent / "prompts").glob("*.md"))
HEADER = "---\nname: metric\npurpose: a test\nversion: 1\nslots: {slots}\n---\n"

hostile = st.text(
    alphabet=st.sampled_from("{}<>/#%&|\\'\"\n\0 abn") | st.characters(exclude_categories=["Cs"]), max_size=60
)


@pytest.fixture
def written(tmp_path):
    """Writes the prompt `metric` to a folder of the user's and loads it from there."""

    def write(text, name="metric"):
        (tmp_path / f"{name}.md").write_text(text, encoding="utf-8")
        with templates.use_prompts(tmp_path):
            return templates.load(name)

    return write


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("# User\nhello", "begins with a header"),
        ("---\nname metric\n---\n# User\n", r"metric\.md:2: expected 'key: value'"),
        ("---\nname: metric\nslots:\n---\n# User\n", "the header lacks 'purpose'"),
        (HEADER.format(slots="a") + "hello {{ a }}", "a part '# User'"),
    ],
)
def test_a_malformed_file_is_named_with_what_is_wrong(written, text, problem):
    """Who overrides a prompt learns the file and the repair."""
    with pytest.raises(TemplateError, match=problem):
        written(text)


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig"])
@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_a_prompt_is_the_same_from_every_editor(tmp_path, encoding, end):
    """Those of Windows write other line breaks, and some a mark in front; the model is told the same."""
    text = HEADER.format(slots="") + "# User\nGrüße,\n\nwas fehlt?\n"
    (tmp_path / "metric.md").write_bytes(text.replace("\n", end).encode(encoding))
    with templates.use_prompts(tmp_path):
        prompt = templates.load("metric")
    assert prompt.render() == "Grüße,\n\nwas fehlt?"


@pytest.mark.parametrize("encoding", ["cp1252", "utf-16"])
def test_a_prompt_that_is_not_utf_8_is_named_with_its_line(tmp_path, encoding):
    """Not a traceback; the message says what to do."""
    text = HEADER.format(slots="") + "# User\nGrüße"
    line = 1 if encoding == "utf-16" else text.count("\n") + 1
    (tmp_path / "metric.md").write_bytes(text.encode(encoding))
    with pytest.raises(TemplateError, match=rf"metric\.md:{line}: the byte 0x.. is not UTF-8; save the file as UTF-8"):
        templates.check_prompts(tmp_path)


def test_missing_and_unknown_slots_are_errors(written):
    """No prompt is sent with a hole in it, and no value is dropped."""
    prompt = written(HEADER.format(slots="a, b") + "# User\n{{ a }} {{ b }}")
    with pytest.raises(TemplateError, match=r"metric\.md: slot 'b' was given no value"):
        prompt.render(a=1)
    with pytest.raises(TemplateError, match="there is no slot 'c'; its header names a, b"):
        prompt.render(a=1, b=2, c=3)


@pytest.mark.parametrize("body", ["{{ other }}", "{{ a.missing }}", "{% if %}", "{{ a | no_such_filter }}"])
def test_a_broken_template_is_an_error_that_names_the_file(written, body):
    """Also when the mistake is only found while rendering; nothing undefined becomes an empty string."""
    with pytest.raises(TemplateError, match=r"metric\.md"):
        written(HEADER.format(slots="a") + "# User\n" + body).render(a="text")


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", "a prompt begins with a header"),
        ("Just say something.", "a prompt begins with a header"),
        (HEADER.format(slots="a") + "# User\n{{ a }}\n{% if %}", "unexpected end of block"),
        (HEADER.format(slots="a") + "# User\n{{ a }} {{ other }}", "there is no slot 'other'; there are a"),
    ],
)
def test_what_could_never_be_filled_is_told_of_before_anything_is_asked(tmp_path, text, problem):
    """By the block itself: a critic is first asked when a whole validation and a minibatch are paid for."""
    (tmp_path / "metric.md").write_text(text)
    with (
        pytest.raises(TemplateError, match=rf"metric\.md.*{problem}"),
        templates.use_prompts(tmp_path),
    ):
        pytest.fail("nothing in the block is begun")


def test_an_error_names_the_line_of_the_file_and_no_value(written):
    """What fills the slots is data, and may be anybody's."""
    prompt = written(HEADER.format(slots="a") + "# User\nfirst\n{{ a.missing }}")
    with pytest.raises(TemplateError) as caught:
        prompt.render(a="a secret")
    assert str(caught.value).startswith(f"{prompt.path}:9: ")
    assert "\n" not in str(caught.value)
    assert "secret" not in str(caught.value)


SLOTS = "purpose, score, low, high, must_pass, prediction, target, explanation"


@pytest.mark.parametrize(
    ("slots", "body", "problem"),
    [
        ("purpose", "{{ purpose }}", rf"metric\.md: the header must say 'slots: {SLOTS}'"),
        (SLOTS + ", more", "{{ more }}", "the header must say"),
        (SLOTS, "{{ scroe }}", rf"metric\.md: there is no slot 'scroe'; there are {SLOTS}"),
        (SLOTS, "one\n{% if %}", r"metric\.md:9: unexpected end of block"),
    ],
)
def test_prompts_can_be_checked_before_they_are_used(tmp_path, slots, body, problem):
    """A mistake in one that is filled late would be found when much has been paid for."""
    (tmp_path / "metric.md").write_text(HEADER.format(slots=slots) + "# User\n" + body)
    with pytest.raises(TemplateError, match=problem):
        templates.check_prompts(tmp_path)


def test_the_librarys_own_prompts_pass_the_check():
    """A copy of any of them is a fine place to begin."""
    templates.check_prompts(Path(__file__).parent.parent / "prompts")


def test_an_unknown_prompt_or_folder_is_an_error(tmp_path):
    """A misspelt file name would otherwise override nothing, in silence."""
    with pytest.raises(TemplateError, match="no prompt 'mertic'"):
        templates.load("mertic")
    with (
        pytest.raises(TemplateError, match="no such folder"),
        templates.use_prompts(tmp_path / "nowhere"),
    ):
        pass
    (tmp_path / "mertic.md").write_text("")
    with (
        pytest.raises(TemplateError, match=r"no prompt 'mertic'; did you mean 'metric'\? It has .*metric"),
        templates.use_prompts(tmp_path),
    ):
        pass


@pytest.mark.parametrize(
    ("files", "told"),
    [
        ((), r"there is no prompt in it; copy a file of the library's prompts"),
        (("notes.txt",), r"there is no prompt in it; copy"),
        (("metric.txt", "notes.txt"), r"there is no prompt in it; metric\.txt is to be called metric\.md"),
        (("feedback.md", "metric.md.txt"), r"metric\.md\.txt is to be called metric\.md"),
        (("feedback.md", "notes.txt", ".gitignore", "feedback.md~", ".metric.md.swp"), ""),
    ],
)
def test_a_folder_that_overrides_nothing_is_an_error(tmp_path, files, told):
    """And so is a file that was to; any other may lie there, too."""
    shipped = Path(__file__).parent.parent / "prompts/feedback.md"
    for name in files:
        shutil.copy(shipped, tmp_path / name)
    if not told:
        templates.check_prompts(tmp_path)
        return
    with pytest.raises(TemplateError, match=told):
        templates.check_prompts(tmp_path)


def test_the_users_prompts_hold_inside_the_block_only(tmp_path):
    """Other prompts stay the library's, and so does this one afterwards, also after an exception."""
    (tmp_path / "metric.md").write_text(HEADER.format(slots="") + "# System\nBe kind.\n\n# User\nmine\n")

    def inside():
        with templates.use_prompts(tmp_path):
            assert templates.load("metric").render() == "mine"
            assert templates.load("metric").system == "Be kind."
            assert templates.load("judge").path.parent != tmp_path
            raise KeyError

    with pytest.raises(KeyError):
        inside()
    assert templates.load("metric").path.parent != tmp_path


@settings(max_examples=50)
@given(value=hostile)
def test_values_are_never_scanned_again(value):
    """Braces, tags and statements inside data stay data, byte for byte."""
    prompt = templates.load("exact_match")
    rendered = prompt.render(prediction=value, target="x", got="", unseen="")
    assert fences.fence(value, "got") in rendered + "\n"


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")
def test_a_child_that_is_forked_while_another_thread_renders_can_render():
    """The event loop often renders, and a worker process must not wait for a thread that it does not have."""
    prompt = templates.load("exact_match")
    ended = forked_beside(
        lambda _: prompt.render(prediction="x" * 200_000, target="y", got="", unseen=""),
        lambda _: prompt.render(prediction="x", target="y", got="", unseen=""),
        5,
    )
    assert ended == [0] * 5


SHOWN = [
    '{{ a | fence("x") }}\n{% for one in b %}\n{{ one.role }}: {{ one.text | fence("message") }}\n{% endfor %}\nEnd.',
    "{{ a }}{% for one in b %}, {{ one.text }}{% endfor %}",
    "{# a #}{% if a %}{{ a }}{% endif %}{% for one in b %}{% if one.text is not none %}+{% endif %}{% endfor %}",
    "{% if a %}first{% else %}none{% endif %} {% for one in b %}{% if not one.text %}empty{% endif %}{% endfor %}",
    '<x-12345678>\n{{ a }}\n</x-12345678> {{ a | fence("x") }}{{ a | fence("y") }}{% for one in b %}{% endfor %}',
    'A:{{ a | quoted("x") }}{% for one in b %}\n{{ one.text | quoted("y") }}\n{{ one.text | fence("y") }}{% endfor %}',
    '"{{ a }}" and "{{ a }}":{{ a | quoted("x") }}{% for one in b %} "{{ one.text }}"{% endfor %}',
]
LOOKED_INTO = [
    "{{ a | upper }}{% for one in b %}{{ one.text | length }}{% endfor %}",
    '{% if a == "abba" %}yes{% endif %}{% for one in b %}{% if "a" in one.text %}has{% endif %}{% endfor %}',
    "{% for c in a %}.{% endfor %}{% for one in b %}{% for c in one.text %}{{ c }},{% endfor %}{% endfor %}",
    "{% set c = a %}{{ c | trim }}{% for one in b %}{{ one.text ~ a }}{% endfor %}",
    "{{ a[0:2] }}{% for one in b %}{% if one.text is string %}s{% endif %}{% endfor %}",
]
texts = hostile | st.sampled_from(["", " ", "abba", "a", "\n a \n", "<x-12345678>", "\0"])


@settings(max_examples=40, deadline=None)
@pytest.mark.parametrize("body", SHOWN + LOOKED_INTO)
@given(
    st.lists(st.lists(texts, min_size=3, max_size=3), min_size=1, max_size=4),
    st.sampled_from(["user", "\0", "{{ a }}"]),
)
def test_a_form_says_what_its_prompt_says(body, fillings, role):
    """Law: that the engine is run once for many texts changes nothing, also where a template looks into a text."""
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "metric.md").write_text(HEADER.format(slots="a, b") + "# User\n" + body, encoding="utf-8")
        with templates.use_prompts(folder):
            prompt = templates.load("metric")
    blank = templates.Blank
    form = prompt.form(a=blank(1), b=[{"role": role, "text": blank(0)}, {"role": "", "text": blank(2)}])
    for first, a, second in fillings:
        said = prompt.render(a=a, b=[{"role": role, "text": first}, {"role": "", "text": second}])
        assert form.fill([first, a, second]) == said


def test_a_form_does_not_run_the_engine_again(monkeypatch):
    """That is what it is for; only an empty text, which a template may leave out, is shown to it."""
    rendered = []
    render = templates.Prompt.render
    monkeypatch.setattr(
        templates.Prompt, "render", lambda self, **slots: rendered.append(slots) or render(self, **slots)
    )
    form = templates.load("apply_edit").form(text=templates.Blank(0), edit=templates.Blank(1))
    rendered.clear()
    assert all(text in form.fill([text, "add: b"]) for text in ("a", "{{ edit }}", "</text>"))
    assert rendered == []
    form.fill(["", "add: b"])
    assert rendered == [{"text": "", "edit": "add: b"}]
    case = {"messages": [{"role": "user", "keys": "", "text": templates.Blank(0)}], "feedback": [templates.Blank(2)]}
    slots = {"tools": None, "schema": None, "inputs": [], "shared": [], "example": ""}
    form = templates.load("feedback").form(**slots, cases=[{**case, "answer": templates.Blank(1)}])
    rendered.clear()
    assert '\nThe model\'s answer: "billing"\n' in form.fill(["Hello?", "billing", "No."])
    assert "\nThe model's answer:\n<answer-" in form.fill(["Hello?", "a\nb", "No."])
    assert rendered == []


def test_a_form_of_a_broken_template_is_an_error_that_names_the_file(written):
    """As rendering it is, and where the form is made."""
    with pytest.raises(TemplateError, match=r"metric\.md"):
        written(HEADER.format(slots="a") + "# User\n{{ a.missing }}").form(a=templates.Blank(0))


@pytest.mark.parametrize("name", NAMES)
def test_a_shipped_prompt_declares_what_it_uses(name):
    """The header tells the truth: the file's name, a purpose, a version, and exactly the slots of the template."""
    prompt = templates.load(name)
    used = templates._environment().undeclared_variables_in_str(prompt.user)
    assert prompt.name == name
    assert prompt.purpose
    assert set(used) == set(prompt.slots)
    assert re.search(r"^version: \d+$", prompt.path.read_text(encoding="utf-8"), re.MULTILINE)


def test_every_shipped_prompt_is_known_here():
    """A new prompt gets the checks above."""
    assert sorted(path.stem for path in templates.load("metric").path.parent.glob("*.md")) == NAMES


def test_the_digest_changes_with_the_words(written):
    """A report can say which wording was used."""
    one = written(HEADER.format(slots="") + "# User\none").digest
    assert re.fullmatch(f"[{string.hexdigits}]{{12}}", one)
    assert one != templates.load("metric").digest
