"""A unified diff that tools read back: what it is applied to becomes the other text, byte for byte."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from textgrad_engine.report.unified import NOWHERE, file_lines, unified

LINES = st.sampled_from(
    ["", "a", "b", "--- a", "+++ b", "@@ -1 +1 @@", "\\ No newline", "c\r", "d\u2028e", "\x0cf", " ", "\t", "é\udc80"]
)
TEXTS = st.lists(LINES, max_size=12).map("\n".join)


def content(text: str) -> str:
    return text.encode("utf-8", "backslashreplace").decode()


def patched(before: str, patch: str) -> str:
    """What a tool makes of a text, in a few lines; strict about every number and every line that stays."""
    old, new, at = file_lines(before), [], 0
    lines = iter(patch.split("\n")[2:-1])
    last: list[str] = []
    counts = [0, 0]
    for line in lines:
        if line.startswith("@@") and counts == [0, 0]:
            found = re.fullmatch(r"@@ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@", line)
            assert found is not None
            counts = [int(found[2] or 1), int(found[4] or 1)]
            begin = int(found[1]) - (counts[0] > 0)
            new += old[at:begin]
            at = begin
            assert len(new) == int(found[3]) - (counts[1] > 0)
        elif line.startswith("\\ ") and not line.startswith("\\ No newline at end of file, "):
            for which in last:
                if which == "new":
                    new[-1] = new[-1].removesuffix("\n")
                else:
                    assert not old[at - 1].endswith("\n")
        else:
            last = {" ": ["old", "new"], "-": ["old"], "+": ["new"]}[line[0]]
            if "old" in last:
                assert old[at].removesuffix("\n") == line[1:]
                at, counts[0] = at + 1, counts[0] - 1
            if "new" in last:
                new.append(line[1:] + "\n")
                counts[1] -= 1
    assert counts == [0, 0]
    return "".join([*new, *old[at:]])


@given(TEXTS, TEXTS)
@example("a", "a\n")
@example("", "a")
@example("a\n", "")
def test_a_patch_gives_the_other_text(before: str, after: str) -> None:
    """Whatever is in it: carriage returns, other line ends, lines that look like a patch, none at all."""
    patch = unified(before, after, "seed.txt", "best.txt")
    assert bool(patch) == (content(before) != content(after))
    if patch:
        assert patched(before, patch) == content(after)


@pytest.mark.parametrize("tool", [["patch", "--binary", "-s", "a b.txt"], ["git", "apply", "-p0"]])
@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("Sort.\nAnswer.", "Sort.\nBe brief.\nAnswer."),
        ("Sort.\nAnswer.", "Sort.\nAnswer.\nBe brief."),
        ("Sort.\r\nAnswer.\n", "Answer."),
        ("a\n" * 20, "b\n" + "a\n" * 18 + "c"),
        ("--- a\n+++ b\n", "--- b\n+++ a\n@@ -1 +1 @@"),
    ],
)
def test_tools_read_it(tool: list[str], before: str, after: str, tmp_path: Path) -> None:
    """``patch`` and ``git apply``, also where the file's name has a space."""
    if shutil.which(tool[0]) is None:
        pytest.skip(f"there is no {tool[0]}")
    (tmp_path / "a b.txt").write_bytes(before.encode())
    patch = unified(before, after, "a b.txt", "a b.txt")
    done = subprocess.run(tool, input=patch.encode(), cwd=tmp_path, capture_output=True, check=False)
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "a b.txt").read_bytes() == after.encode()


def test_names_cannot_end_the_line_they_are_in() -> None:
    """A folder may be called anything."""
    patch = unified("a", "b", 'x\n+++ y"', NOWHERE)
    assert patch.startswith('--- "x\\n+++ y\\""\n+++ /dev/null\n@@')
    assert unified("a", "b", "\x1b", "\udc80").startswith('--- "\\033"\n+++ "\\200"\n')
