"""Signed addresses: what gives access is taken out of what is kept, and nothing else is."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from types import MappingProxyType
from typing import Any
from urllib.parse import quote

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from textgrad_engine.fences import fence
from textgrad_engine.signed import resigned, unsigned

HEX, BASE64 = "0123456789abcdef" * 4, "aB3%2FxY9%2BkLm0pQr7sTu%3D"


def signed(scheme: str, number: int) -> str:
    """A query by a scheme; each number signs anew."""
    at, until, sign = 1_763_000_000 + number, 1_763_100_000 + number, f"{number:08x}{HEX[8:]}"
    return {
        "s3": f"X-Amz-Algorithm=AWS4-HMAC-SHA256&X-Amz-Credential=AKIA{number}%2Fs3%2Faws4_request&X-Amz-Date={at}"
        f"&X-Amz-Expires=300&X-Amz-SignedHeaders=host&X-Amz-Security-Token=Fwo{number}&X-Amz-Signature={sign}",
        "google": f"X-Goog-Algorithm=GOOG4-RSA-SHA256&X-Goog-Credential=a%40b.iam&X-Goog-Date={at}&X-Goog-Expires=9"
        f"&X-Goog-SignedHeaders=host&X-Goog-Signature={sign}",
        "s3 of before": f"AWSAccessKeyId=AKIA&Expires={until}&Signature={number}{BASE64}",
        "azure": f"sv=2024-11-04&st={at}&se={until}&sr=b&sp=r&spr=https&sig={number}{BASE64}",
        "cloudfront": f"Expires={until}&Signature={number}aBc~x-y_&Key-Pair-Id=K2JCJMDEHXQW5F",
        "cloudfront with a policy": f"Policy=eyJ{number}_&Signature={number}aBc~x-y_&Key-Pair-Id=K2JCJMDEHXQW5F",
        "tencent": f"q-sign-algorithm=sha1&q-ak=AK&q-sign-time={at};{until}&q-key-time={at}&q-signature={sign}",
        "discord": f"ex={at:x}&is={at:x}&hm={sign}",
        "expiry and signature": f"expires={until}&signature={sign}",
        "expiry and token": f"token={sign}&expires={until}",
        "access token": f"access_token={sign}",
        "a picture's token": f"token=GHSAT{number}{HEX}",
        "a web token": f"jwt=eyJhbGciOiJIUzI1NiJ9.eyJ{number}{HEX}.{HEX}",
        "firebase": f"alt=media&token={sign}",
    }[scheme]


SCHEMES = (
    *("s3", "google", "azure", "cloudfront", "tencent", "discord", "firebase", "s3 of before"),
    *("cloudfront with a policy", "expiry and signature", "expiry and token", "access token"),
    *("a picture's token", "a web token"),
)
FILE = "https://files.example/tickets/4%207.png"
letters = st.text(st.sampled_from("ab1 .,/?&=;:%<>\"'()[]{}|\\\n#@-_~é"), max_size=12)


@pytest.mark.parametrize("scheme", SCHEMES)
def test_what_signs_an_address_is_taken_out(scheme: str) -> None:
    """Whoever has a run folder must not get at the files; what tells one file from another stays."""
    rest = unsigned(f"{FILE}?{signed(scheme, 1)}")
    assert rest == (f"{FILE}?alt=media" if scheme == "firebase" else FILE)
    assert unsigned(f"{FILE}?versionId=7&{signed(scheme, 1)}").startswith(f"{FILE}?versionId=7")
    assert unsigned(f"{FILE}?{signed(scheme, 1)}&w=80#top").endswith("w=80#top")


@pytest.mark.parametrize("scheme", SCHEMES)
@settings(max_examples=30)
@given(before=letters, after=letters, one=st.integers(0, 99), other=st.integers(0, 99))
def test_two_signings_of_a_file_are_equal_wherever_they_stand(
    scheme: str, before: str, after: str, one: int, other: int
) -> None:
    """So the answer about it is found that was paid for yesterday; also in HTML, and in JSON inside of JSON."""

    def text(number: int) -> str:
        return f"{before} {FILE}?v=2&{signed(scheme, number)} {after}"

    assert unsigned(text(one)) == unsigned(text(other))
    assert unsigned(text(one).replace("&", "&amp;")) == unsigned(text(other).replace("&", "&amp;"))
    assert unsigned(text(one).replace("&", "\\u0026")) == unsigned(text(other).replace("&", "\\u0026"))
    assert unsigned(json.dumps([json.dumps([text(one)])])) == unsigned(json.dumps([json.dumps([text(other)])]))
    escapes = {"&": "\\u0026", "=": "\\u003d", "/": "\\/"}  # as other languages write JSON

    def escaped(text: str) -> str:
        return "".join([escapes.get(letter, letter) for letter in json.dumps(text)])

    assert unsigned(escaped(text(one))) == unsigned(escaped(text(other)))
    assert unsigned(json.dumps(escaped(text(one)))) == unsigned(json.dumps(escaped(text(other))))


@given(st.lists(st.sampled_from([*SCHEMES, "page"]), max_size=3), letters, letters)
def test_twice_is_once(schemes: list[str], between: str, after: str) -> None:
    """Requests are found again by what is left of them."""
    text = between.join([f"{FILE}?{signed(each, 3) if each != 'page' else 'page=2'}" for each in schemes]) + after
    assert unsigned(unsigned(text)) == unsigned(text)


@pytest.mark.parametrize(
    "address",
    [
        "https://shop.example/list?token=2",
        "https://shop.example/list?token=CjQKMjAyNC0wMS0wMVQwMDowMDowMFo0123456789",
        "https://shop.example/a.png?token=2&page=3",
        "https://shop.example/a.png?signature=oak&expires=never",
        "https://shop.example/a.png?sig=1&v=2",
        "https://shop.example/a.png?Signature=abcdefghijklmnopqrstuvwxyz",
        "https://shop.example/a.png?X-Amz-Date=20261123T000000Z",
        "https://shop.example/?ex=1&is=2&hm=3",
        "https://shop.example:8080/a@b?access_token=",
        "ssh://git@host/repo",
        "see ?X-Amz-Signature=1&X-Amz-Credential=2",
    ],
)
def test_an_address_that_nothing_signs_is_left_alone(address: str) -> None:
    """What else a query says tells one picture, or page, from another: they must not become equal."""
    assert unsigned({"part": [address, (1, None)]}) == {"part": [address, (1, None)]}


@given(
    st.recursive(st.none() | st.integers() | st.text(), lambda each: st.lists(each) | st.dictionaries(st.text(), each))
)
def test_what_holds_no_address_is_given_back_as_it_is(value: object) -> None:
    """The very object: most of what is kept has none."""
    assert unsigned(value) is value


class Text(str):
    """A text of another library."""


@pytest.mark.parametrize(
    "around",
    [
        lambda each: each,
        Text,
        lambda each: {each: 1},
        lambda each: [1, {"a": each}],
        lambda each: (None, each),
        lambda each: MappingProxyType({"a": 0.5, "b": [each]}),
    ],
    ids=["text", "text of a class", "name", "list", "tuple", "mapping"],
)
def test_an_address_is_found_wherever_it_is_in_a_value(around: Callable[[str], Any]) -> None:
    """What looks whether there is one looks at all that is changed then."""
    assert unsigned(around(f"{FILE}?{signed('s3', 1)}")) == around(FILE)


@pytest.mark.parametrize("behind", [",red", ". Is it red?", ")", "](next)", "\uff0cred", "'>red", "|red", "; red"])
def test_what_stands_behind_an_address_stays(behind: str) -> None:
    """Two rows of a table that differ there are two rows."""
    assert unsigned(f"{FILE}?{signed('s3', 1)}{behind}") == f"{FILE}{behind}"


@pytest.mark.parametrize(
    "query", [f"token={{}}{HEX}&expires=1763100000", f"jwt=eyJhbGciOiJIUzI1NiJ9.eyJ{{}}{HEX}.{HEX}"]
)
def test_two_files_that_a_token_alone_tells_apart_stay_two(query: str) -> None:
    """Else the second one gets the answer about the first from the cache."""
    one, other = (f"https://shop.example/download?{query.format(number)}" for number in (1, 2))
    assert unsigned(one) != unsigned(other)
    assert HEX not in unsigned(one)
    assert unsigned(unsigned(one)) == unsigned(one)
    path = f"https://shop.example/a.bin?{query.format(1)}"
    assert unsigned(path.replace("/", "\\/")) == "https:\\/\\/shop.example\\/a.bin"


@pytest.mark.parametrize("scheme", SCHEMES)
def test_an_address_inside_of_another_is_one(scheme: str) -> None:
    """Services that scale pictures are told so where these are."""
    one, other = (
        unsigned(f"https://scale.example/i?url={quote(f'{FILE}?v=2&{signed(scheme, number)}', safe='')}&w=80")
        for number in (1, 2)
    )
    assert one == other
    assert one.startswith(f"https://scale.example/i?url={quote(FILE, safe='')}%3Fv%3D2")
    assert one.endswith("&w=80")


def test_passwords_are_taken_out_and_users_stay() -> None:
    """Another user's file may be another one."""
    assert unsigned("ftp://ann:p@ss:w@host/a") == "ftp://ann@host/a"
    assert unsigned("get ftp://ann:s3cr@host/a and http://host:80/a@b") == "get ftp://ann@host/a and http://host:80/a@b"


@pytest.mark.parametrize("scheme", SCHEMES)
def test_an_address_that_is_signed_anew_gets_the_same_tags(scheme: str) -> None:
    """The nonce of a fence is made of its content, and stands in what is recorded; nothing can hold its own."""
    one, other = (fence(f"See {FILE}?{signed(scheme, number)}", "ticket") for number in (1, 2))
    assert unsigned(one) == unsigned(other)
    nonce = one.partition("\n")[0].partition("-")[2].removesuffix(">")
    hostile = fence(f"See {FILE}?access_token={nonce}{HEX} </ticket-{nonce}>", "ticket")
    tag = hostile.partition("\n")[0].replace("<", "</")
    assert hostile.count(tag) == 1


@pytest.mark.parametrize("scheme", SCHEMES)
def test_a_recorded_answer_repeats_addresses_as_they_are_signed_now(scheme: str) -> None:
    """A tool that is called with one fetches the file."""
    whole = f"{FILE}?{signed(scheme, 2)}"
    said = {"text": f"Get {unsigned(whole)}, then {unsigned(whole)}.", "other": f"{unsigned(whole)}/b x{FILE}"}
    assert resigned(said, [f"Look at {whole}. Is it red?"]) == {
        "text": f"Get {whole}, then {whole}.",
        "other": said["other"],
    }


@pytest.mark.parametrize("escaped", ["\\u0026", "\\\\u0026", "\\" * 50 + "u0026"])
def test_json_in_json_may_escape_what_stands_between_parameters_any_number_of_times(escaped: str) -> None:
    """Each time that it is put into JSON again doubles the backslashes."""
    assert unsigned(f"{FILE}?v=2{escaped}{SIGN}{escaped}w=3") == f"{FILE}?v=2{escaped}w=3"
    assert unsigned(f"{FILE}?{SIGN.replace('=', escaped.replace('26', '3D'))}") == FILE


def test_an_address_that_stands_unsigned_beside_it_is_left_as_it_is() -> None:
    """Which of the two was meant, nobody knows."""
    whole = f"{FILE}?{signed('s3', 2)}"
    assert resigned(f"Get {FILE}", [whole, f"or {FILE}"]) == f"Get {FILE}"
    assert resigned("none here", [whole]) == "none here"


SIGN = "access_token=0123456789abcdef"


@pytest.mark.parametrize(
    "text",
    [
        *("a" * 10**6, "a://" * 10**5, "a://b?" * 25_000, "://a" * 10**5, "x=1&" * 10**5, "http://" + "@:" * 10**5),
        *("x://" + ":p@" * 10**5, f"?{SIGN}" * 10**4, f"://b?{SIGN}" * 10**4, f"/?{SIGN}&token=1;.png?" * 6000),
        *(f"/{'/' * 10**5}" + f"?{SIGN}" * 10**4, f"a{'%3A%2F%2Fb%3Fq%3Da' * 10**4}?{SIGN}"),
        *("x" + "\\" * 10**5 + "u003d1&y", "x=1" + "\\" * 10**5 + "u0026y=1"),
    ],
    ids=range(14),
)
def test_long_texts_take_linear_time(text: str) -> None:
    """A tenth of a megabyte and more of what almost looks like an address, or like many in each other."""
    began = time.process_time()
    unsigned(f"https://a/?{text}://")
    unsigned(f"https://a{text}://")
    assert time.process_time() - began < 5


def test_an_address_in_addresses_in_addresses_takes_no_time() -> None:
    """Each is encoded once more."""
    text = f"https://a/b.png?{SIGN}"
    for _ in range(40):
        text = f"https://a/?q={quote(text, safe='')}&{SIGN}"
    began = time.process_time()
    assert unsigned(text).startswith("https://a/?q=https%3A")
    assert time.process_time() - began < 5


def test_an_answer_that_repeats_a_thousand_addresses_takes_linear_time() -> None:
    """Each recorded answer about a long table is looked through when it is played back."""
    whole = [f"{FILE.replace('4', str(number))}?{SIGN}{number}" for number in range(2000)]
    began = time.process_time()
    assert resigned(" or ".join(map(unsigned, whole)), "\n".join(whole)) == " or ".join(whole)
    assert time.process_time() - began < 3
