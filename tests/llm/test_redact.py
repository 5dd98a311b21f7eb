import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import SecretStr

from textgrad_engine.keys import HIDDEN
from textgrad_engine.llm import resolve
from textgrad_engine.llm.openai import OpenAIModel
from textgrad_engine.llm.redact import redacted, secrets_of, without_password
from textgrad_engine.testing import ScriptedModel


@pytest.mark.parametrize(
    "text",
    [
        "a basic understanding of authentication",
        "the bearer acknowledges responsibility",
        "an sk-learn-compatible-estimator",
        "task-0123456789-abcdefgh",
        "see http://host:80/a@b and mail ann@example.com",
        "key-012345",
    ],
)
def test_ordinary_text_is_left_alone(text):
    """A replayed answer must be the answer."""
    assert redacted(text) == text


@pytest.mark.parametrize(
    ("text", "left"),
    [
        ("sk-abcdefghijkl0123456789", HIDDEN),
        ("(sk-proj-Abc_123-xyzXYZ0123)", f"({HIDDEN})"),
        ("Authorization: Bearer eyJhbGciOiJIUzI1NiJ9.e30", f"Authorization: Bearer {HIDDEN}"),
        ("https://user:pass@host/v1", f"https://{HIDDEN}@host/v1"),
        ("https://token@host/v1", f"https://{HIDDEN}@host/v1"),
    ],
)
def test_what_has_the_form_of_a_secret_is_taken_out(text, left):
    """Keys of others, that nobody told us of."""
    assert redacted({"deep": [text]}) == {"deep": [left]}


def test_secrets_are_those_of_the_model_and_of_the_environment(monkeypatch):
    """Known secrets are found whatever they look like; words in variables are none."""
    model = ScriptedModel([])
    model.anything = SecretStr("  held in here since 2024 ")
    model.short = SecretStr("test")
    model.word = SecretStr("not-needed")
    monkeypatch.setenv("MY_API_KEY", "from-the-env-1")
    monkeypatch.setenv("OTHER_TOKEN", "disabled")
    monkeypatch.setenv("HOME_SWEET", "not-a-secret-1")
    found = secrets_of(resolve(model))
    assert {"held in here since 2024", "from-the-env-1"} <= set(found)
    assert not {"test", "not-needed", "disabled", "not-a-secret-1"} & set(found)
    assert redacted("held in here since 2024: from-the-env-1.", found) == f"{HIDDEN}: {HIDDEN}."


def test_the_keys_of_models_that_a_model_holds_in_a_list_are_known(monkeypatch):
    """As one of the user's own has, that sends each request to another."""
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    model = ScriptedModel([])
    model.others = [OpenAIModel("a", api_key="held-by-a-1"), {"b": OpenAIModel("b", api_key="held-by-b-1")}]
    model.others.append(model.others)
    model.named = {"name": "c", "weight": 1.5, "key": SecretStr("held-by-c-1")}
    assert {"held-by-a-1", "held-by-b-1", "held-by-c-1"} <= set(secrets_of(resolve(model)))


def test_of_a_secret_that_begins_with_another_one_nothing_is_left(monkeypatch):
    """An endpoint's own key may be that of an account, and some letters more."""
    monkeypatch.setenv("ONE_API_KEY", "swordfish-42")
    monkeypatch.setenv("TWO_API_KEY", "swordfish-42-and-more")
    monkeypatch.setenv("ALSO_API_KEY", "at-the-end-swordfish-42")
    found = secrets_of(ScriptedModel([]))
    said = "swordfish-42-and-more, swordfish-42, at-the-end-swordfish-42"
    assert redacted(said, found) == ", ".join([HIDDEN] * 3)


@pytest.mark.parametrize("cut", [16, 20, 31, 32, 40])
def test_of_a_secret_that_a_quotation_cuts_off_nothing_is_left(cut):
    """A message quotes the beginning of a body; keys without a form, such as Azure's, are known as a whole alone."""
    key = "4f9c0d1e2b3a49587766554433221100"
    assert redacted(f"it begins '{key} {key[:cut]}'", [key]) == f"it begins '{HIDDEN} {HIDDEN}'"
    assert redacted(key[:cut] * 2, [key]) == HIDDEN * 2
    assert redacted(f"commit {key[:10]} is no secret", [key]) == f"commit {key[:10]} is no secret"


def test_what_other_tokens_begin_with_too_does_not_hide_their_beginning_alone():
    """The first part of a web token says how it is signed; what is left of another one would not be known as one."""
    first, ours, theirs = "eyJhbGciOiJIUzI1NiIsInR5cCI6IkpXVCJ9", "eyJzdWIiOiJvdXJzIn0", "eyJzdWIiOiJ0aGVpcnMifQ"
    held = f"{first}.{ours}.{'s' * 43}"
    assert redacted(f"{first}.{theirs}.{'t' * 43}", [held]) == HIDDEN


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inside: st.lists(inside) | st.dictionaries(st.text() | st.just("api_key"), inside),
    max_leaves=20,
)


@given(json_values)
def test_twice_is_once(value):
    """Requests are found again by what is left of them."""
    assert redacted(redacted(value)) == redacted(value)


def test_long_texts_take_linear_time():
    """Half a megabyte of what almost looks like a secret: by its square it would take hours."""
    for part in ("://", "sk-", "a", "bearer ", "://a"):
        text = (part * 5 * 10**5)[: 5 * 10**5]
        assert len(redacted(text)) == len(text)


def test_addresses_without_a_password_stay():
    """Only what stands before the host is taken away."""
    assert without_password("https://host/v1/a@b") == "https://host/v1/a@b"
    assert without_password("localhost:80") == "localhost:80"
