"""Examples in two splits: all exact ones, near ones by a stated measure, and no others."""

from __future__ import annotations

import base64
import json
import random
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from textgrad_engine.data import Dataset, load, sketch
from textgrad_engine.data import overlap as module
from textgrad_engine.data.overlap import NEAR, Overlap, check_splits, describe, overlap

TICKETS = Path(__file__).parents[2] / "examples" / "tickets"


def texts(*given: str) -> list[dict[str, Any]]:
    return [{"text": text} for text in given]


def jaccard(a: str, b: str) -> float:
    """The measure itself, on the texts as they are."""
    first, second = ({text[n : n + 5] for n in range(max(1, len(text) - 4))} for text in (a, b))
    return len(first & second) / len(first | second)


@pytest.mark.parametrize("threshold", [0, -0.5, 1.1, float("nan")])
def test_a_threshold_is_a_share(threshold: float) -> None:
    """Nothing else has a meaning."""
    with pytest.raises(ValueError, match="threshold="):
        overlap(texts("a"), texts("b"), threshold=threshold)


@pytest.mark.parametrize(
    ("a", "b"),
    [
        ("Where is my parcel?", "where is my  parcel?\n"),
        ("CAFÉ", "cafe\u0301"),
        ("ﬁne", "fine"),
        ("a\tb", " a b "),
        ("\udc80 lone", "\udc80 LONE"),
    ],
)
def test_case_white_space_and_encoding_make_no_other_example(a: str, b: str) -> None:
    """Equal for a reader is equal."""
    assert [found.kind for found in overlap(texts(a), texts(b))] == ["exact"]


@pytest.mark.parametrize(
    ("a", "b"),
    [
        ("What is 2 + 3?", "What is 2 + 5?"),
        ("1 + 1", "1 - 1"),
        ("no", "on"),
        ("refund", "refunded"),
        ("Wo ist mein Paket?", "Where is my parcel?"),
    ],
)
def test_other_questions_are_no_duplicates(a: str, b: str) -> None:
    """Short texts that differ are different, however much alike they look."""
    assert overlap(texts(a), texts(b)) == []


@pytest.mark.parametrize(
    ("a", "b", "near"),
    [
        ("包裹还没有到,请帮我查一下物流信息,谢谢你们的帮助", "包裹还没有到,请帮我查一下物流信息,谢谢您们的帮助", True),
        ("注文した荷物が届きません。確認をお願いします。", "注文した荷物が届きません。確認をお願い致します", True),
        ("주문한 소포가 도착하지 않았어요. 확인해 주세요.", "주문한 소포가 도착하지 않았어요. 확인해 주세요!", True),
        ("东京的人口是多少", "北京的人口是多少", False),
        ("荷物がまだ届きません。", "荷物がもう届きました。", False),
        ("소포가 안 왔어요", "소포가 잘 왔어요", False),
    ],
)
def test_texts_of_dense_scripts_are_near_as_others_are(a: str, b: str, near: bool) -> None:
    """A sentence of twenty Chinese letters says as much as one of sixty Latin ones; a question of eight stays one."""
    assert [found.kind for found in overlap(texts(a), texts(b))] == ["near"] * near


def test_what_is_no_text_is_compared_as_it_reads() -> None:
    """A list of messages, in any language."""
    one, other = ([{"text": [word]}] for word in ("\uff21\u3000猫", "a 猫"))
    assert [found.kind for found in overlap(one, other)] == ["exact"]


def test_a_small_change_in_a_long_text_is_near() -> None:
    """With the index that the definition gives."""
    text = "the planter stopped pumping water after the last update, and the app says that all is well with it"
    for other in (text.replace("pumping", "pumpin"), f'"{text}"', text + " !", text[4:]):
        (found,) = overlap(texts(text), texts(other))
        assert found.kind == "near"
        assert found.similarity == pytest.approx(jaccard(text, other))
        assert NEAR <= found.similarity < 1


def test_examples_without_text_are_like_no_others() -> None:
    """Empty inputs do not make a pair."""
    assert overlap(texts("", "  "), texts("", "x")) == []
    assert overlap([{"text": None}, {}], [{"text": None}, {}]) == []
    assert overlap([], texts("a")) == overlap(texts("a"), []) == []


def test_what_is_compared_can_be_named() -> None:
    """The inputs, so that another label makes no other example; ids are never compared."""
    a = [{"id": "a1", "ticket": "no signal", "queue": "technical", "at": 1}]
    b = [{"id": "b1", "ticket": "No signal", "queue": "billing", "at": 2}]
    assert overlap(a, b) == []
    assert overlap(a, b, fields=["ticket"]) == [Overlap("exact", "first", "second", "a1", "b1", 1.0)]
    assert overlap(a, b, fields=["missing"]) == []
    parts = [{"q": {"b": [1, 2], "a": "x"}}]
    assert [found.kind for found in overlap(parts, [{"q": {"a": "X", "b": [1, 2]}}])] == ["exact"]


def test_each_example_is_told_once_with_its_first_twin() -> None:
    """Many twins make one entry; an exact one goes before a near one."""
    text = "My parcel has not arrived after ten days, and nobody answers the phone, what shall I do?"
    first = Dataset([{"id": "n", "t": text + "!"}, {"id": "x", "t": text}, {"id": "y", "t": text}])
    second = Dataset([{"id": 1, "t": text}, {"id": 2, "t": text.upper()}, {"id": 3, "t": text + "!!"}])
    found = overlap(first, second, names=("train", "val"))
    assert [(each.second_id, each.first_id, each.kind) for each in found] == [
        ("1", "x", "exact"),
        ("2", "x", "exact"),
        ("3", "n", "near"),
    ]


def test_a_near_one_is_named_where_some_rows_before_it_are_equal() -> None:
    """Its own id, not that of the row which stands where it would stand if each text were there once."""
    text = "My parcel has not arrived after ten days, and nobody answers the phone, what shall I do?"
    first = [{"id": name, "t": given} for name, given in (("a", "Hi!"), ("b", "Hi!"), ("c", "Hi!"), ("d", text))]
    (found,) = overlap(first, [{"t": text + "!"}])
    assert found.first_id == "d"


def test_of_several_near_ones_the_nearest_is_named() -> None:
    """Wherever it stands."""
    text = "My parcel has not arrived after ten days, and nobody answers the phone, what shall I do?"
    (found,) = overlap(texts(text.replace("ten", "six"), text + "?", text + " Hey."), texts(text + "!?"))
    assert found.first_id == "1"


@given(
    texts=st.lists(st.text("ab \n\udc80é", max_size=12), max_size=6),
    others=st.lists(st.text("ab \n\udc80é", max_size=12), max_size=6),
)
def test_short_texts_agree_with_the_definition(texts: list[str], others: list[str]) -> None:
    """Every pair compared: none is missed, none is made up."""
    plain = [" ".join(text.casefold().split()) for text in texts]
    found = {each.second_id: each for each in overlap([{"t": t} for t in texts], [{"t": t} for t in others])}
    for index, other in enumerate(others):
        text = " ".join(other.casefold().split())
        best = max((jaccard(each, text) for each in plain), default=0.0) if text else 0.0
        if text and text in plain:
            assert found[str(index)].kind == "exact"
        elif str(index) in found:
            assert best >= NEAR
            assert found[str(index)].kind == "near"
        else:
            assert best < NEAR or len(text) < 12  # of very short texts that differ at both ends some are passed over


def sentences(source: random.Random, count: int, words: int) -> list[str]:
    """Texts whose words are as unevenly spread as in a language."""
    known = ["".join(source.choices("abcdefghijklmnopqrstuvwxyz", k=source.randint(2, 9))) for _ in range(2000)]
    weights = [1 / (rank + 1) for rank in range(len(known))]
    return [" ".join(source.choices(known, weights, k=words)) for _ in range(count)]


def test_changed_copies_are_found_among_many_and_nothing_else() -> None:
    """Against the definition, for typos, insertions, deletions and quotes in texts of three to sixty words."""
    source = random.Random(5)
    old = [text for words in (3, 6, 12, 20, 60) for text in sentences(source, 120, words)]
    new = []
    for text in old:
        letters = list(text)
        for _ in range(source.randint(1, max(1, len(text) // 40))):
            place = source.randrange(len(letters))
            letters[place : place + source.randint(0, 1)] = source.choice(("x", "", " z"))
        new.append("".join(letters) + source.choice(("", "!", " '")))
    found = {each.second_id: each for each in overlap(texts(*old), texts(*new))}
    near = 0
    for index, (text, other) in enumerate(zip(old, new)):
        one, two = (" ".join(each.split()) for each in (text, other))
        if one == two:
            continue
        if jaccard(one, two) >= NEAR:
            near += 1
            assert str(index) in found
    assert near > 250
    strangers = sentences(random.Random(6), 300, 20)
    assert overlap(texts(*old), texts(*strangers)) == []


def test_of_long_texts_the_index_is_estimated_well() -> None:
    """A thousand words with every tenth one changed, or every fiftieth."""
    source = random.Random(7)
    for every, near in ((10, False), (60, True)):
        (text,) = sentences(source, 1, 1000)
        words = text.split()
        words[::every] = sentences(source, 1, len(words[::every]))[0].split()
        other = " ".join(words)
        assert (jaccard(text, other) >= NEAR) is near
        found = overlap(texts(text), texts(other))
        assert len(found) == near
        if near:
            assert found[0].similarity == pytest.approx(jaccard(text, other), abs=0.06)


def test_the_rows_of_a_template_do_not_take_forever(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two thousand texts that share most of their words: what is looked at stays bounded, and twins are still found.

    Of the thousands of pairs with many marks in common hardly any is compared run by run.
    """
    source = random.Random(8)
    frame = sentences(source, 1, 20)[0]
    ends = sentences(source, 2000, 14)
    old = [f"{frame} {end}" for end in ends[:1000]]
    new = [f"{frame} {end}" for end in ends[1000:]]
    new[7] = old[900][:-1] + "#"
    compared: list[object] = []
    jaccard = sketch.Sketch.jaccard
    monkeypatch.setattr(sketch.Sketch, "jaccard", lambda *given: compared.append(given) or jaccard(*given))
    assert [(each.first_id, each.second_id) for each in overlap(texts(*old), texts(*new))] == [("900", "7")]
    assert len(compared) < 50


def test_the_bytes_of_images_are_not_written_as_json(monkeypatch: pytest.MonkeyPatch) -> None:
    """Thousands of them would take minutes before the first call; equal ones are still one example."""

    def part(content: bytes) -> dict[str, Any]:
        url = f"data:image/png;base64,{base64.b64encode(content).decode()}"
        return {"type": "image_url", "image_url": {"url": url}}

    written: list[str] = []
    as_json = module._as_json
    monkeypatch.setattr(module, "_as_json", lambda value: written.append(as_json(value)) or written[-1])
    old, new = ([{"id": str(n), "picture": part(bytes([n]) * 9999)} for n in some] for some in ((1, 2, 3), (4, 3, 5)))
    assert [(each.kind, each.first_id, each.second_id) for each in overlap(old, new)] == [("exact", "3", "3")]
    assert max(map(len, written)) < 200


def test_all_pairs_of_splits_are_looked_at() -> None:
    """Train in val, train in test, val in test; in words, with how many."""
    train, val = texts("one", "two", "three"), texts("four", "TWO")
    test = texts("five", "one ", "four", "six")
    found = check_splits(train, val, test)
    assert [(each.first, each.second, each.first_id, each.second_id) for each in found] == [
        ("train", "val", "1", "1"),
        ("train", "test", "0", "1"),
        ("val", "test", "0", "2"),
    ]
    assert describe(found, {"val": 2, "test": 4}) == [
        "1 of 2 val examples are in train, too (1 exactly): val example '1' is train example '1'",
        "1 of 4 test examples are in train, too (1 exactly): test example '1' is train example '0'",
        "1 of 4 test examples are in val, too (1 exactly): test example '2' is val example '0'",
    ]
    assert describe(found[:1]) == ["1 val example is in train, too (1 exactly): val example '1' is train example '1'"]
    assert check_splits(train, texts("nine")) == describe([]) == []


def test_a_text_is_worked_through_once_for_all_comparisons(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of its marks and of its runs, though each split is compared with both others and each text with many."""
    made = Counter[tuple[str, int]]()

    def counted(text: str, length: int, most: int) -> Any:
        made[text.strip(), length] += 1
        return smallest(text, length, most)

    smallest = sketch._smallest
    monkeypatch.setattr(sketch, "_smallest", counted)
    frame = sentences(random.Random(9), 1, 60)[0]
    train, val, test = (texts(*[f"{frame} {name}{n}" for n in range(20)]) for name in "abc")
    assert len(check_splits(train, val, test)) == 60
    assert len(made) > 100
    assert set(made.values()) == {1}


def test_splits_that_were_compared_are_not_compared_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """Who trains twice on the same has the same told; other texts, names or places of the rows are looked at."""
    looked: list[tuple[str, str]] = []
    between = module._between

    def counted(old: Any, new: Any, threshold: float, names: tuple[str, str]) -> Any:
        looked.append(names)
        return between(old, new, threshold, names)

    monkeypatch.setattr(module, "_between", counted)
    monkeypatch.setattr(module, "_found", {})
    monkeypatch.setattr(module, "_REMEMBERED", 2)
    train, val = texts("one", "two"), texts("TWO", "three")
    first = check_splits(train, val)
    expected = list(first)
    first.clear()  # it is the caller's own
    assert check_splits(texts("one", "two"), val) == expected != []
    assert len(looked) == 1
    assert check_splits(train, val[::-1]) != expected
    assert check_splits([{**row, "id": f"t{n}"} for n, row in enumerate(train)], val) != expected
    assert len(looked) == 3
    check_splits(train, val)  # only the last ones are remembered
    assert len(looked) == 4
    assert len(module._found) == 2
    assert len(check_splits(train, [], val)) == len(expected)
    assert {each.second for each in check_splits(train, [], val)} == {"test"}


def test_the_tickets_are_in_one_split_each() -> None:
    """The example that everybody starts with, by what its program reads, and by whole rows."""
    train, val, test = (load(TICKETS / f"{name}.jsonl") for name in ("train", "val", "test"))
    assert check_splits(train, val, test, fields=["ticket"]) == []
    assert check_splits(train, val, test) == []
    copied = [*test, json.loads(json.dumps(train[3]))]
    assert len(check_splits(train, val, [{**row, "id": n} for n, row in enumerate(copied)], fields=["ticket"])) == 1
