from __future__ import annotations

import re
from typing import Any

import pytest

import textgrad_engine as tg
from textgrad_engine import Variable, func, nn, ops
from textgrad_engine.errors import BadRequest, ContextOverflow
from textgrad_engine.llm import Request
from textgrad_engine.llm.context import Room
from textgrad_engine.ops import images
from textgrad_engine.ops.images import ContentPart, gallery_of
from textgrad_engine.testing import FunctionModel, ScriptedModel, feedback_for

CLIP = {"type": "input_audio", "input_audio": {"data": "AAAA", "format": "wav"}}


def image(name: str, **more: Any) -> dict[str, Any]:
    return {"type": "image_url", "image_url": {"url": f"https://example.org/{name}.png", **more}}


def critic(request: Request) -> Any:
    if request.purpose != "backward":
        return "an answer"
    return feedback_for(request, "Be brief.")


class Asking:
    """A program with a trained system prompt, and what was asked."""

    def __init__(self, user: str = "{picture}\n{question}", system: str = "Look.") -> None:
        self.model = FunctionModel(critic)
        self.prompt = nn.Parameter(system, role="system prompt")
        self.chat = nn.ChatCompletion(user, system=self.prompt)

    def told(self, **values: Any) -> Any:
        """What the critic was told about a call with these values."""
        with tg.use_models(forward=self.model):
            self.chat(**values).backward("wrong")
        return self.model.requests[-1].messages[-1].content


def names_in(content: Any) -> list[str]:
    """The images in a message, by name, and the lines before them."""
    if isinstance(content, str):
        return []
    return [
        part["text"].strip() if part["type"] == "text" else re.search(r"(\w+)\.png", part["image_url"]["url"])[1]
        for part in content[:-1]
    ]


def test_an_image_fills_the_slot_where_it_stands() -> None:
    """The text around it stays in order, without the line breaks at the seams and without empty parts."""
    asking = Asking("Before {first}\n{{first}} between {second} {question}\n{third}")
    asking.told(first=image("a"), second=image("b", detail="low"), third="c", question="why {first}?")
    assert asking.model.requests[0].messages[-1].content == [
        {"type": "text", "text": "Before "},
        image("a"),
        {"type": "text", "text": "{first} between "},
        image("b", detail="low"),
        {"type": "text", "text": " why {first}?\nc"},
    ]


def test_a_message_without_that_slot_stays_a_text() -> None:
    """Endpoints cache a system prompt by its text."""
    asking = Asking()
    asking.told(picture=image("a"), question="?")
    assert asking.model.requests[0].messages[0].content == "Look."


def test_an_image_cannot_go_into_the_system_message() -> None:
    """No endpoint takes it there; nothing is sent, and the message names the slot."""
    asking = Asking("{question}", system="Compare with {picture}.")
    with pytest.raises(
        ValueError, match=r"slot \{picture\} of the system message was given an image.*put the slot there"
    ):
        asking.told(picture=image("a"), question="?")
    assert asking.model.requests == []


@pytest.mark.parametrize(
    ("value", "why"),
    [
        ({"type": "image_url", "image_url": {}}, r"an image without an address.*data\.image_part\(path\)"),
        ({"type": "image_url", "image_url": "cat.png"}, r"data\.image_part\('cat\.png'\)"),
        (image("a") | {"image_url": {"url": "cat.png"}}, "no model can get it"),
        (image("a") | {"image_url": {"url": Variable("https://example.org/a.png")}}, "with a Variable in it"),
        (b"\x89PNG", r"bytes.*data\.image_part"),
        ({"a": 1}, "an object, which is no text"),
    ],
)
def test_what_no_slot_takes_is_refused_with_the_repair(value: Any, why: str) -> None:
    """Before anybody is asked; of a batch each entry."""
    asking = Asking()
    for given in (value, [value]):
        with pytest.raises(TypeError, match=why):
            asking.told(picture=given, question="?")
    assert asking.model.requests == []


def test_vmap_takes_a_dict_apart_and_says_so() -> None:
    """An image is a dict; `pmap` runs the program once for each."""
    asking = Asking("{picture}")
    with tg.use_models(forward=asking.model):
        with pytest.raises(TypeError, match=r"func\.pmap runs a program on images"):
            func.vmap(lambda picture: asking.chat(picture=picture))([image("a"), image("b")])
        answers = func.pmap(lambda picture: asking.chat(picture=picture))([image("a"), image("b")])
        assert [answer.data for answer in answers] == ["an answer"] * 2


def test_the_critic_sees_the_image_and_where_it_stood() -> None:
    """Before the text, with its number; the text has a tag in its place."""
    told = Asking().told(picture=image("a", detail="low"), question="What is it?")
    assert names_in(told) == ["Image 1:", "a"]
    assert told[1] == image("a", detail="low")
    tag = re.search(r"^- (<image_1-\w{8}/>) stands for image 1$", told[-1]["text"], re.MULTILINE)[1]
    assert f"\n{tag}\nWhat is it?\n" in told[-1]["text"]


def test_a_text_that_speaks_of_images_refers_to_nothing() -> None:
    """A dataset can say "image 2", and imitate a tag of the request that it was part of: it is another one then."""
    asking, said = Asking(), "Image 2: see <image_1-00000000/> and image 2"
    for _ in range(3):
        told = asking.told(picture=image("a"), question=said)
        tags = re.findall(r"<image_\d+-\w{8}/>", told[-1]["text"])
        own = re.search(r"- (\S+) stands for image 1$", told[-1]["text"], re.MULTILINE)[1]
        assert own not in said
        assert tags.count(own) == 2
        assert "stands for image 2" not in told[-1]["text"]
        assert names_in(told) == ["Image 1:", "a"]
        said += own


def test_an_image_in_several_places_is_sent_once() -> None:
    """In the order in which they stand; the same address looked at more closely is another image."""
    asking = Asking("{one} {two} {three} {four}")
    told = asking.told(one=image("b"), two=image("a"), three=image("b"), four=image("b", detail="high"))
    assert names_in(told) == ["Image 1:", "b", "Image 2:", "a", "Image 3:", "b"]
    assert re.search(r"(<image_1-\w+/>) <image_2-\w+/> \1 <image_3-\w+/>", told[-1]["text"])


@pytest.mark.parametrize(("most", "shown"), [(1, ["c"]), (2, ["b", "c"]), (3, ["a", "b", "c"])])
def test_of_too_many_the_last_are_shown(most: int, shown: list[str], caplog: pytest.LogCaptureFixture) -> None:
    """The others are named where they stood, and the log says how many."""
    images._tell_left_out.cache_clear()
    with ops.feedback_images(most):
        told = Asking("{one} {two} {three}").told(one=image("a"), two=image("b"), three=image("c"))
    assert names_in(told)[1::2] == shown
    assert told[-1]["text"].count("[an image, not shown here]") == 3 - most
    assert ("images left out" in caplog.text) == (most < 3)


def test_a_critic_that_reads_none_is_told_where_they_stood() -> None:
    """As a plain text, which any model takes."""
    with ops.feedback_images(0):
        told = Asking().told(picture=image("a"), question="What is it?")
    assert "[an image, not shown here]\nWhat is it?" in told


def test_fewer_than_none_are_refused() -> None:
    """Where it is said, not where a critic is asked."""
    for make in (
        ops.feedback_images,
        lambda most: nn.Judge("?", images=most),
        lambda most: tg.Trainer(feedback_images=most),
    ):
        with pytest.raises(ValueError, match="images in a request at most, 0 for none, got -1"), make(-1):
            pass


@pytest.mark.parametrize("value", [True, ["photo"], "16", 2.5, None], ids=repr)
def test_what_is_no_number_of_images_is_refused_by_name(value: Any) -> None:
    """True would be one image, and the names of columns belong to `data.load`."""
    with pytest.raises(TypeError, match=r"^images is how many images are shown at most, 0 for none, got"):
        nn.Judge("?", images=value)
    with pytest.raises(TypeError, match=r"^feedback_images is how many"):
        tg.Trainer(feedback_images=value)


def test_recordings_and_files_are_sent_and_named() -> None:
    """No critic is sent one."""
    asking = Asking()
    told = asking.told(picture=CLIP, question="What is said?")
    assert asking.model.requests[0].messages[-1].content[0] == CLIP
    assert "[a recording, not shown here]\nWhat is said?" in told


def test_cases_that_share_a_request_share_the_numbering() -> None:
    """Each case has its tags."""
    asking = Asking("{one} {two} {question}")
    with tg.use_models(forward=asking.model), ops.feedback_batch_size(2), ops.feedback_images(3):
        first = asking.chat(one=image("a"), two=image("b"), question="1")
        second = asking.chat(one=image("c"), two=image("b"), question="2")
        tg.backward([first, second], ["wrong", "wrong"])
    told = asking.model.requests[-1].messages[-1].content
    assert names_in(told) == ["Image 1:", "a", "Image 2:", "b", "Image 3:", "c"]
    assert re.search(
        r"(?s)Case 1.*<image_1-(\w+)/> <image_2-\1/> 1.*Case 2.*<image_3-\1/> <image_2-\1/> 2", told[-1]["text"]
    )
    assert [item.data for item in asking.prompt.grad] == ["Be brief."] * 2


@pytest.mark.parametrize(
    ("most", "shown"),
    [(0, [""]), (1, ["a", "b", "c", "x"]), (2, ["ab", "cx"]), (3, ["ab", "cx"]), (4, ["abcx"])],
)
def test_cases_that_would_lose_images_to_each_other_are_asked_about_apart(
    most: int, shown: list[str], caplog: pytest.LogCaptureFixture
) -> None:
    """Each is judged with what a request about it alone would show; nothing is said to be left out."""
    asking = Asking("{picture}")
    with tg.use_models(forward=asking.model), ops.feedback_batch_size(4), ops.feedback_images(most):
        tg.backward([asking.chat(picture=image(name)) for name in "abcx"], ["wrong"] * 4)
    critics = [asked.messages[-1].content for asked in asking.model.requests if asked.purpose == "backward"]
    assert sorted(["".join(names_in(told)[1::2]) for told in critics]) == shown
    assert "left out" not in caplog.text
    assert len(asking.prompt.grad) == 4


def test_a_case_with_too_many_images_has_no_other_asked_about_apart() -> None:
    """It loses its first ones alone, too; what all share is sent once."""
    asking = Asking("{one} {two}")
    with tg.use_models(forward=asking.model), ops.feedback_batch_size(3), ops.feedback_images(1):
        tg.backward([asking.chat(one=image(name), two=image("z")) for name in "abc"], ["wrong"] * 3)
    assert names_in(asking.model.requests[-1].messages[-1].content) == ["Image 1:", "z"]
    assert [asked.purpose for asked in asking.model.requests].count("backward") == 1


def test_half_of_a_known_context_holds_images() -> None:
    """The rest is for the text and the answer; what has no room is left out, the first of them first."""
    room = Room("gpt-4o", 2000, 1000, 1900)
    found = gallery_of([image(name, detail="low") for name in "abcdef"], 16, room)
    assert found is not None
    assert [each["image_url"]["url"][-5] for each in found.images] == ["c", "d", "e", "f"][-len(found.images) :]
    assert 0 < found.tokens <= 500


def test_an_image_whose_message_is_left_out_is_said_to_be_of_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is sent all the same, and without a word it would seem to stand nowhere."""
    monkeypatch.setattr("textgrad_engine.ops.feedback.critic_room", lambda: Room("gpt-4o", 2000, 900, 1900))
    model = FunctionModel(critic)
    early, late = [image("a", detail="low"), "word " * 600], [image("b", detail="low"), "And this?"]
    said = [("system", wanting := Variable("Look.", requires_grad=True)), ("user", early), ("assistant", "A cat.")]
    with tg.use_models(forward=model):
        messages = [{"role": role, "content": content} for role, content in [*said, ("user", late)]]
        ops.chat_completion(None, messages).backward("wrong")
    told = model.requests[-1].messages[-1].content
    assert names_in(told) == ["Image 1:", "a", "Image 2:", "b"]
    assert "- image 1 stood in a message that is left out here\n- <image_2-" in told[-1]["text"]
    assert len(wanting.grad) == 1


def test_no_image_fits_a_tiny_context() -> None:
    """Then the request is as it is without any."""
    assert gallery_of([image("a")], 16, Room("gpt-4o", 200, 100, 190)) is None


def test_the_criticism_of_feedback_sees_the_images_too() -> None:
    """With a graph of its own feedback is a call like any other."""
    asking = Asking()
    with tg.use_models(forward=asking.model):
        asking.chat(picture=image("a"), question="?").backward("wrong", create_graph=True)
        asking.prompt.grad[0].data  # noqa: B018  it is waited for
    assert names_in(asking.model.requests[-1].messages[-1].content) == ["Image 1:", "a"]


def test_an_edit_is_asked_about_with_the_image() -> None:
    """Forward mode predicts what the model would say, and it saw the picture."""
    model = FunctionModel(lambda asked: {"change": "says cat"} if asked.purpose == "backward" else "a dog")
    with tg.use_models(forward=model):
        chat = lambda system: nn.ChatCompletion("{picture}", system=system)(picture=image("a"))  # noqa: E731
        _, edit = func.jvp(chat, (Variable("Look."),), ("say cat",))
        assert edit.data == "says cat"
    assert names_in(model.requests[-1].messages[-1].content) == ["Image 1:", "a"]


def verdict(request: Request) -> Any:
    """What a judge or a critic of free text says."""
    fields = request.config.response_format.json_schema["properties"]
    return (
        {"score": 0, "explanation": "It is a cat."} if "score" in fields else {"nothing_wrong": False, "criticism": "!"}
    )


@pytest.mark.parametrize("loss", [nn.Judge, nn.TextLoss])
def test_judges_see_the_images_among_their_inputs(loss: Any) -> None:
    """Once each, by tags; recordings are named, and so is what stands in a text."""
    model = FunctionModel(verdict)
    inputs = {"picture": image("a"), "again": image("a"), "clip": CLIP, "said": "image 1"}
    result = loss("Is it right?", model=model)(Variable("A dog.", requires_grad=True), None, inputs)
    result.backward()
    told = model.requests[0].messages[-1].content
    assert names_in(told) == ["Image 1:", "a"]
    assert len(set(re.findall(r"<image_1-\w{8}/>", told[-1]["text"]))) == 1
    assert re.search(r"picture:\n<input-(\w+)>\n(<image_1-\w{8}/>)\n</input-\1>", told[-1]["text"])
    assert "[a recording, not shown here]" in told[-1]["text"]


@pytest.mark.parametrize("loss", [nn.Judge, nn.TextLoss])
def test_what_a_judge_leaves_out_of_each_example_is_told_once(loss: Any, caplog: pytest.LogCaptureFixture) -> None:
    """A thousand lines that say the same would push all else that is told out of sight."""
    images._tell_left_out.cache_clear()
    with tg.use_models(judge=FunctionModel(verdict)):
        for number in range(3):
            inputs = {name: image(f"{name}{number}") for name in ("one", "two")}
            _ = loss("Right?", images=1)(Variable("a cat"), inputs=inputs).data
    assert len(caplog.messages) == 1
    assert "1 of 2 images left out: 1 are shown at most" in caplog.text


@pytest.mark.parametrize("loss", [nn.Judge, nn.TextLoss])
def test_a_judge_that_reads_none_is_asked_in_text(loss: Any) -> None:
    """A cheap model can still compare two answers."""
    model = FunctionModel(verdict)
    assert loss("Is it right?", model=model, images=0)(Variable("A dog."), "A cat.", {"picture": image("a")}).data in (
        0,
        "!",
    )
    assert "picture:\n<input" in model.requests[0].messages[-1].content
    assert "[an image, not shown here]" in model.requests[0].messages[-1].content


def test_a_judge_that_is_trained_has_its_images_shown_to_its_critic() -> None:
    """Its call is a call like any other."""
    model = FunctionModel(lambda asked: verdict(asked) if asked.purpose == "judge" else critic(asked))
    criteria = nn.Parameter("Is it right?", role="criteria")
    with tg.use_models(forward=model):
        score = nn.Judge(criteria, eval_mode=False)(Variable("A dog."), None, {"picture": image("a")})
        score.backward("too strict")
    assert names_in(model.requests[-1].messages[-1].content) == ["Image 1:", "a"]
    assert [item.data for item in criteria.grad] == ["Be brief."]


def refusing() -> ScriptedModel:
    return ScriptedModel([BadRequest("this model takes no images", status=400)])


def test_a_critic_that_refuses_images_is_told_of_with_the_repair() -> None:
    """We put them into its request, so the user has to know how not to."""
    asking = Asking()
    with tg.use_models(forward=asking.model, backward=refusing()):
        answer = asking.chat(picture=image("a"), question="?")
        with pytest.raises(BadRequest) as caught:
            answer.backward("wrong")
    assert re.search(r"takes no images; the request had 1 image: .*\[train\] feedback_images = 0", str(caught.value))


def test_a_judge_that_refuses_images_is_told_of_with_the_repair() -> None:
    """Likewise; what a program sends by itself is its own affair."""
    asking = Asking()
    with tg.use_models(forward=refusing(), judge=refusing()):
        with pytest.raises(BadRequest) as caught:
            nn.Judge("?")(Variable("A dog."), None, {"picture": image("a")}).data  # noqa: B018
        with pytest.raises(BadRequest) as own:
            asking.chat(picture=image("a"), question="?").data  # noqa: B018
    assert re.search(r"the request had 1 image: .*nn\.Judge\(\.\.\., images=0\)", str(caught.value))
    assert "the request had" not in str(own.value)


def test_a_content_part_says_nothing_of_its_bytes() -> None:
    """Whoever writes a value down as text writes no megabytes."""
    part = ContentPart({"type": "image_url", "image_url": {"url": "data:image/png;base64," + "A" * 10_000}})
    assert str(part) == "[an image, not shown here]"
    assert repr(part) == "ContentPart('image_url')"


@pytest.mark.parametrize("most", ["3", 2.5, None, True])
def test_what_is_no_number_of_images_is_refused(most: Any) -> None:
    """2.5 would never be reached, and any number of them sent."""
    for make in (nn.Judge, nn.TextLoss):
        with pytest.raises(TypeError, match="how many images"):
            make("?", images=most)
    with pytest.raises(TypeError, match="feedback_images is how many images"):
        tg.Trainer(feedback_images=most)


def test_images_that_are_sent_in_two_requests_are_not_said_to_be_left_out(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where there is no room for the images of all, each case is asked about with its own."""
    monkeypatch.setattr("textgrad_engine.ops.feedback.critic_room", lambda: Room("small", 8000, 5000, 7600))
    asking = Asking()
    with tg.use_models(forward=asking.model), ops.feedback_batch_size(4), ops.feedback_images(3):
        tg.backward([asking.chat(picture=image(name), question="?") for name in "abcd"], ["wrong"] * 4)
    critics = [names_in(asked.messages[-1].content) for asked in asking.model.requests if asked.purpose == "backward"]
    assert sorted(name for names in critics for name in names if len(name) == 1) == list("abcd")
    assert not caplog.records


def test_a_critic_whose_endpoint_finds_the_images_too_large_is_told_of_with_the_repair() -> None:
    """An endpoint takes so many bytes, however long the context is."""
    asking = Asking()
    critic = ScriptedModel([ContextOverflow("request too large: maximum size 32 MB", status=413)])
    with tg.use_models(forward=asking.model, backward=critic):
        answer = asking.chat(picture=image("a"), question="?")
        with pytest.raises(ContextOverflow, match=r"the request had 1 image: .*feedback_images = n has fewer sent"):
            answer.backward("wrong")
