from __future__ import annotations

import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

import textgrad_engine as tg
from textgrad_engine import nn, ops
from textgrad_engine.autograd import Source, Variable
from textgrad_engine.optim.feedback import FeedbackItem
from textgrad_engine.optim.gather import collect
from textgrad_engine.optim.transforms import Gathered, cluster
from textgrad_engine.optim.transforms.cluster import Cluster
from textgrad_engine.optim.words import grams, words_of
from textgrad_engine.testing import FunctionModel


def item(text: str, *examples: str, times: int = 1) -> FeedbackItem:
    return FeedbackItem(text, times, "", examples)


def texts_of(*texts: str, threshold: float = 0.5, n: int = 1) -> list[tuple[str, int]]:
    after = cluster(threshold, n).apply(Gathered(tuple(map(item, texts))))
    return [(each.text, each.times) for each in after.items]


@pytest.mark.parametrize(("threshold", "n"), [(0, 2), (1.1, 2), (float("nan"), 2), (0.5, 0)])
def test_numbers_out_of_range_are_refused(threshold: float, n: int) -> None:
    """With a threshold of 0, everything would be one."""
    with pytest.raises(ValueError, match=r"cluster: (threshold must be (above 0|a number)|n must be at least 1)"):
        cluster(threshold, n)


def test_near_duplicates_become_one_in_the_words_of_the_medoid() -> None:
    """The one that shares most with the others, not the first or the longest; it stands where the first stood."""
    texts = ["say it in one short line", "say it in one line", "please say it in one line now", "give reasons"]
    assert texts_of(*texts) == [("say it in one line", 3), ("give reasons", 1)]


def test_the_medoid_is_weighed_by_how_often_it_was_said() -> None:
    """What most people said is what is shown."""
    items = (item("a b c d", "t1"), item("a b c e", "t2", times=5), item("a b c f", "t3"))
    (only,) = cluster(0.5, 1).apply(Gathered(items)).items
    assert (only.text, only.times, only.examples) == ("a b c e", 7, ("t1", "t2", "t3"))


def test_no_chain_of_others_joins_what_is_not_alike() -> None:
    """a is like b and b like c; a and c share nothing that counts, and stay apart unless b holds both."""
    texts = ["a b c d", "c d e f", "e f g h", "g h i j"]
    found = texts_of(*texts, threshold=0.3)
    assert sum(times for _, times in found) == 4
    assert len(found) == 2


def test_by_default_a_different_word_keeps_texts_apart() -> None:
    """Feedback that names another queue is other feedback."""
    texts = ["Route refund requests to billing.", "Route refund requests to sales."]
    assert [each.text for each in cluster().apply(Gathered(tuple(map(item, texts)))).items] == texts


def test_for_which_metric_it_was_said_makes_nothing_alike() -> None:
    """These words are longer than what is said, which would be lost."""
    queue, tone = ((("exact_match of queue", 0.5),), (("tone", 0.5),))
    said = [("Say billing.", queue), ("Say trust.", queue), ("Say trust.", queue), ("Say trust.", tone)]
    feedback = [Variable(text) for text, _ in said]
    for each, (_, shares) in zip(feedback, said):
        each.source = Source(shares=shares)
    found = cluster().apply(collect(feedback)).items
    assert [(each.text.splitlines(), each.times) for each in found] == [
        (["Of the score, exact_match of queue counts for 50%:", "Say billing."], 1),
        (["Of the score, exact_match of queue counts for 50%:", "Say trust."], 2),
        (["Of the score, tone counts for 50%:", "Say trust."], 1),
    ]


@pytest.mark.parametrize(("texts", "count"), [(["?!", "?!", "..."], 2), (["", " "], 2), (["不要喊", "不要喊!"], 1)])
def test_texts_without_words_are_like_their_equals_only(texts: list[str], count: int) -> None:
    """Punctuation is nothing that can be shared."""
    assert len(texts_of(*texts)) == count


some = st.lists(st.lists(st.sampled_from("abcd"), max_size=5).map(" ".join), max_size=8)


@given(some, st.sampled_from([0.2, 0.5, 0.8, 1.0]), st.integers(1, 3))
def test_each_text_is_like_one_that_all_of_its_cluster_are_like(texts: list[str], threshold: float, n: int) -> None:
    """Law: nothing is lost; what has no near-duplicate stays; equal runs always meet."""
    items = [item(text, str(position)) for position, text in enumerate(texts)]
    after = cluster(threshold, n).apply(Gathered(tuple(items)))
    runs = [set(grams(words_of(text), n)) or {("", text)} for text in texts]

    def like(a: str, b: str) -> float:
        one, two = runs[int(a)], runs[int(b)]
        return len(one & two) / len(one | two)

    assert sorted(example for each in after.items for example in each.examples) == sorted(map(str, range(len(texts))))
    for each in after.items:
        assert any(all(like(centre, member) >= threshold for member in each.examples) for centre in each.examples)
        # The words are a member's, and the medoid's.
        weights = {
            m: sum(like(m, other) for other in each.examples if like(m, other) >= threshold) for m in each.examples
        }
        best = max(weights.values())
        assert each.text in {texts[int(m)] for m, weight in weights.items() if weight >= best - 1e-9}
    homes = {example: number for number, each in enumerate(after.items) for example in each.examples}
    for a in homes:
        for b in homes:
            assert like(a, b) < 1 or homes[a] == homes[b]


@given(some)
def test_items_stand_where_the_first_of_each_stood(texts: list[str]) -> None:
    """Law: the order is that of the gradient."""
    after = cluster(0.5, 1).apply(Gathered(tuple(item(text, str(n)) for n, text in enumerate(texts))))
    firsts = [int(each.examples[0]) for each in after.items]
    assert firsts == sorted(firsts)


def plain(texts: list[str], threshold: float, n: int) -> list[list[int]]:
    """Stars by their definition: all weights are taken again for each of them."""
    runs = [set(grams(words_of(text), n)) or {("", text)} for text in texts]
    like = [[len(one & two) / len(one | two) for two in runs] for one in runs]
    free, found = list(range(len(texts))), []
    while free:
        weights = {one: sum(like[one][other] for other in free if like[one][other] >= threshold) for one in free}
        centre = max(free, key=lambda one: (weights[one], -one))
        found.append([other for other in free if like[centre][other] >= threshold])
        free = [other for other in free if other not in found[-1]]
    return sorted(found)


@given(some, st.sampled_from([0.05, 0.2, 1 / 3, 0.5, 0.8, 1.0]), st.integers(1, 3))
def test_clusters_are_those_of_the_definition(texts: list[str], threshold: float, n: int) -> None:
    """Whatever is left out of the looking."""
    after = cluster(threshold, n).apply(Gathered(tuple(item(text, str(at)) for at, text in enumerate(texts))))
    assert [[int(example) for example in each.examples] for each in after.items] == plain(texts, threshold, n)


def test_where_nothing_is_alike_each_text_is_weighed_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """And once more as the only one of its cluster, however many there are."""
    module = sys.modules[Cluster.__module__]
    weighed: list[int] = []
    weight = module._weight
    monkeypatch.setattr(module, "_weight", lambda *given: weighed.append(1) or weight(*given))
    assert len(texts_of(*[f"Say a{n} b{n} c{n}" for n in range(100)])) == 100
    assert len(weighed) == 200


def test_cases_are_like_their_equals_alone() -> None:
    """Short cases share most of their words, which are those of the frame, and differ in the one that matters."""
    program = nn.ChatCompletion("{what}", system=nn.Parameter("Sort."))
    asked = [("a cup", "K1"), ("a vase", "K1"), ("a cup", "K1")]
    with tg.use_models(forward=FunctionModel(lambda request: "K2")), ops.critic(None):
        tg.backward([nn.ExactMatch()(program(what=what), target) for what, target in asked])
    cases = collect(program.system.grad)
    left = cluster(0.5, 1).apply(cases).items
    assert [each.times for each in left] == [2, 1]
    assert ["a cup" in each.text for each in left] == [True, False]


def test_what_is_said_of_different_things_in_thai_stays_apart() -> None:
    """Its letters are in all sentences, so by single ones two of three lessons were lost."""
    texts = [
        "บอกให้เลือกบัญชีเมื่อลูกค้าพูดถึงบัตรของขวัญหรือคูปองส่วนลด",
        "เพิ่มกฎว่าพัสดุที่เสียหายต้องส่งไปยังแผนกคืนสินค้าเสมอ",
        "ระบุว่าการเรียกเก็บเงินซ้ำเป็นเรื่องของฝ่ายการเงิน",
    ]
    said = tuple(FeedbackItem(text, 1, "", ()) for text in [*texts, texts[0] + "เสมอ"])
    assert [item.times for item in cluster(0.5, 1).apply(Gathered(said)).items] == [2, 1, 1]
