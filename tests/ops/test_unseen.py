# ruff: noqa: RUF001  the letters of other scripts are meant
from __future__ import annotations

import pytest

from textgrad_engine.ops.unseen import without_unseen

TAGS = "".join(chr(0xE0000 + ord(c)) for c in "obey me")
SCOTLAND = "\U0001f3f4\U000e0067\U000e0062\U000e0073\U000e0063\U000e0074\U000e007f"


@pytest.mark.parametrize(
    ("text", "left"),
    [
        (f"Be brief.{TAGS}", "Be brief."),
        (f"{SCOTLAND}{TAGS}", SCOTLAND),
        ("Be \u202efeirb\u202c and \u2066kind\u2069.", "Be feirb and kind."),
        ("Be \x1b[8mbrief\x1b[0m.\x07\x00\x9b", "Be [8mbrief[0m."),
        ("Keep this.\rObey.", "Keep this. Obey."),
        ("a\x0bb\x0cc\x85d", "a b c d"),
        ("re\u200bfund, re\u200dfund, re\u200cfund, re\u2060fund", "refund, refund, refund, refund"),
        ("\ufeffSort.\ufeff", "Sort."),
        ("Gut\u00adschein", "Gutschein"),
        ("Sort.\u200e\u200f", "Sort."),
        ("\u200fSort.\n\u200f\u200e\u200fשלום", "Sort.\n\u200fשלום"),
        ("Sort.\ufe00\U000e0100\U000e01ef\ufe0f", "Sort."),
        ("❤\ufe0f\ufe0e\ufe0f\ufe0e", "❤\ufe0f"),
        ("می\u200c\u200d\u200c\u200dخواهم", "می\u200cخواهم"),
        ("a\u3164\u115f\u2063\ufff9b", "ab"),
    ],
)
def test_what_nobody_sees_and_what_a_terminal_obeys_is_left_out(text: str, left: str) -> None:
    """A reviewer sees all that is left; a control that is white space leaves a space, so no words grow together."""
    assert without_unseen(text) == left
    assert without_unseen(left) == left


@pytest.mark.parametrize(
    "text",
    [
        "Plain text,\twith a tab,\r\nand\nlines.\r",
        "👩\u200d🚀 👩🏽\u200d⚕\ufe0f 🏳\ufe0f\u200d⚧\ufe0f 🙂\u200d↔\ufe0f 👨\u200d👩\u200d👧",
        "1\ufe0f\u20e3 ℹ\ufe0f ☎\ufe0e",
        f"{SCOTLAND} 🇫🇷",
        "می\u200cخواهم API\u200cهای ه\u200d.ش",  # Persian
        "क\u094d\u200dष ന\u0d4d\u200d ශ\u0dca\u200dරී র\u200c\u09cd",  # Hindi, Malayalam, Sinhala, Bengali
        "ភាសា\u200bខ្មែរ ภาษา\u200bไทย",  # Khmer and Thai, where a line may be broken between words
        "שלום\u200f! (C\u200e++)",  # a mark of direction, in a line that is written from the right
        "\u200f1. שלום\n\u061c- سلام",  # at its beginning, where a number or a sign would turn the line
        "葛\U000e0100城 ≩\ufe00",  # the form of a sign
        "caf\u00e9 cafe\u0301 m\u00a0s \u2028 \u3000",
    ],
)
def test_what_a_script_or_an_emoji_is_written_with_stays(text: str) -> None:
    """Joiners between letters that join, in emoji, forms of signs, flags of regions, and line ends of Windows."""
    assert without_unseen(text) == text


def test_what_a_text_had_before_may_stay_in_it() -> None:
    """Lines that nobody touched stay as they are; a flag that is in order brings no letters for a hidden text."""
    before = "\ufeffGut\u00adschein.\rOld."
    after = "\ufeffGut\u00adschein.\rOld.\nVer\u00adsand.\u200b"
    assert without_unseen(after, before) == "\ufeffGut\u00adschein.\rOld.\nVer\u00adsand."
    assert without_unseen(f"{SCOTLAND} Obey\U000e0067\U000e0062", SCOTLAND) == f"{SCOTLAND} Obey"
