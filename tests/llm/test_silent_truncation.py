import pytest

from textgrad_engine.llm import Message, Request, Usage
from textgrad_engine.llm.silent_truncation import was_cut


@pytest.mark.parametrize(
    ("text", "counted", "cut"),
    [
        ("Sort this ticket, please. " * 1_200, 4096, True),  # 31,200 characters are some 7,000 tokens
        ("Sort this ticket, please. " * 1_200, 2050, True),
        ("Sort this ticket, please. " * 1_200, 7_206, False),
        ("Sort this ticket, please. " * 1_200, 20, False),  # those that it had cached left out, as old Ollamas do
        ("Sort this ticket, please. " * 1_200, 0, False),
        ("\n" * 60_000, 1_200, False),
        ("分類" * 6_000, 1_600, True),
    ],
)
def test_fewer_tokens_than_a_text_can_have_mean_that_it_was_cut(text, counted, cut):
    """A warning that is not true would be worse than none."""
    request = Request(messages=(Message(role="system", content="Be brief."), Message(role="user", content=text)))
    assert was_cut(request, Usage(input_tokens=counted)) is cut


def test_what_was_cached_and_counted_apart_was_read(ask):
    """Some endpoints leave it out of the tokens of the input, and nothing in the numbers shows it."""
    request = ask("Sort this ticket. " * 1000)
    assert was_cut(request, Usage(input_tokens=2000))
    assert not was_cut(request, Usage(input_tokens=2000, cached_tokens=1900))
