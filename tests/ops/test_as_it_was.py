"""Feedback without a critic: whoever rewrites a text is shown the calls in which it stood."""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable
from typing import Any

import textgrad_engine as tg
from textgrad_engine import Variable, func, nn, ops
from textgrad_engine.autograd import grad
from textgrad_engine.data import image_part
from textgrad_engine.fences import fence
from textgrad_engine.llm import Completion, Request, Usage
from textgrad_engine.optim.feedback import item_of
from textgrad_engine.testing import FunctionModel

from ..values import wanting


def answering(answer: str = "Oslo") -> FunctionModel:
    """Answers, and fails a test that has a critic asked."""

    def model(request: Request) -> str:
        assert request.purpose == "forward"
        return answer

    return FunctionModel(model)


def said(variable: Variable) -> list[str]:
    return [str(item.data) for item in variable.grad]


def test_it_is_the_case_without_the_text_itself() -> None:
    """An optimizer's request has the text already, in numbered lines."""
    program = nn.ChatCompletion("Where is {who}?", system=nn.Parameter("Name the capital."))
    with tg.use_models(forward=answering()), ops.critic(None):
        nn.ExactMatch()(program(who="the king"), "Rome").backward()
    (feedback,) = said(program.system)
    assert feedback == "\n\n".join(
        [
            "system message: this text.",
            f"user message:\n{fence('Where is the king?', 'message')}",
            'The model\'s answer: "Oslo"',
            'Feedback on the answer: "The answer is wrong. Expected exactly `Rome`."',
        ]
    )


def test_a_text_in_a_slot_called_case_does_not_stand_between_the_tags_of_later_calls() -> None:
    """Who reads "between tags <case-...>" would look at what came of the answer."""
    text = wanting("My lamp is dark.", "complaint")
    first = nn.ChatCompletion("Sort {case} today.", model=answering())
    second = nn.ChatCompletion("Check {word}.", model=answering("no"))
    with ops.critic(None):
        nn.ExactMatch()(second(word=first(case=text)), "yes").backward()
    (feedback,) = said(text)
    assert "(this text is a part of it, between tags <case_input-...> that the model did not see)" in feedback
    assert feedback.count("<case-") == 1


def test_a_right_answer_says_nothing() -> None:
    program = nn.ChatCompletion("{who}", system=nn.Parameter("Rules."))
    with tg.use_models(forward=answering()), ops.critic(None):
        nn.ExactMatch()(program(who="x"), "Oslo").backward()
    assert program.system.grad == []


def test_several_texts_of_one_call_are_each_told_where_they_stand() -> None:
    """One is a whole message, one a template, one stands amid a message, and one says nothing of the others' places."""
    system, template, style = wanting("Rules."), wanting("Q: {q}"), wanting("Be brief.", "style")
    messages = [
        {"role": "system", "content": system},
        {"role": "user", "content": template},
        {"role": "user", "content": ["Also: ", style, " Thanks."]},
    ]
    with ops.critic(None):
        ops.chat_completion(answering(), messages, {"q": "why"}).backward("No.")
    (of_system,), (of_template,), (of_style,) = map(said, (system, template, style))
    assert "system message: this text." in of_system
    assert fence("Rules.", "message") not in of_system
    assert fence("Rules.", "message") in of_template
    assert f"user message (made from this text):\n{fence('Q: why', 'message')}" in of_template
    assert "user message (made from this text)" not in of_style
    assert "user message (this text is a part of it, between tags <user_2-...> that the model did not see):" in of_style
    assert ">Be brief.</user_2-" in of_style
    assert fence("Also: Be brief. Thanks.", "message") in of_system
    assert all("Feedback on the answer:" in text and "No." in text for text in (of_system, of_template, of_style))


def test_in_a_chain_the_first_text_is_shown_what_came_of_its_answer() -> None:
    """The case of the second call is what was said of the first one's answer."""
    first, second = (
        nn.ChatCompletion("{q}", system=nn.Parameter("One.")),
        nn.ChatCompletion("{q}", system=nn.Parameter("Two.")),
    )
    answers = itertools.cycle(["draft", "final"])
    with tg.use_models(forward=FunctionModel(lambda request: next(answers))), ops.critic(None):
        draft = first(q="go")
        assert draft.data == "draft"
        nn.ExactMatch()(second(q=draft), "right").backward()
    (of_second,), (of_first,) = said(second.system), said(first.system)
    assert of_second.index("draft") < of_second.index("final")
    assert 'The model\'s answer: "draft"\n' in of_first
    inner = of_first.partition("What came of the answer:\n")[2]
    assert fence("Two.", "message") in inner
    assert ">draft</q-" in inner
    assert (
        "(the text that this is feedback on is a part of it, between tags <q-...> that the model did not see)" in inner
    )
    assert "this text" not in inner
    assert fence("draft", "message") in of_second
    assert "Expected exactly `right`" in inner
    item = item_of(first.system.grad[0])
    assert item.evidence.text == "The answer is wrong. Expected exactly `right`, got `final`."


def test_what_operations_made_of_a_text_is_shown() -> None:
    """An optimizer has the text itself before it, and neither what code put behind it nor the field that was read."""
    prompt = wanting("Rules.")
    with ops.critic(None):
        found = ops.chat_completion(
            answering('{"city": "Oslo"}'), [{"role": "system", "content": prompt + " In French."}]
        )
        ops.chat_completion(answering(), [{"role": "user", "content": ops.field(found, "city")}]).backward("No.")
    (feedback,) = said(prompt)
    assert f"system message (the text that this is feedback on):\n{fence('Rules. In French.', 'message')}" in feedback
    assert f"user message (the text that this is feedback on):\n{fence('Oslo', 'message')}" in feedback


def test_cases_of_what_code_made_of_a_text_are_cases_of_it() -> None:
    """One piece of feedback tells of several calls, and an optimizer is told what to do with cases all the same."""
    prompt = wanting("be kind")
    with ops.critic(None):
        rules = ops.straight_through(prompt.data.upper(), prompt, role="parsed rules")
        both = [
            ops.chat_completion(
                answering(), [{"role": "system", "content": rules}, {"role": "user", "content": question}]
            )
            for question in "ab"
        ]
        tg.backward([nn.ExactMatch()(answer, "Rome") for answer in both])
    (feedback,) = prompt.grad
    item = item_of(feedback)
    assert (item.case, item.answer) == (True, "")
    assert item.evidence.text.startswith("The answer is wrong. Expected exactly `Rome`, got `Oslo`.")
    assert item.text.count("BE KIND") == 1
    assert item.text.count("(the text that this is feedback on):\nthe outcome above") == 2


def test_a_text_that_is_a_message_and_a_part_of_another_is_not_taken_for_the_other() -> None:
    style = wanting("Be brief.", "style")
    messages = [{"role": "system", "content": style}, {"role": "user", "content": ["Also: ", style, " Thanks."]}]
    with ops.critic(None):
        ops.chat_completion(answering(), messages).backward("No.")
    (feedback,) = said(style)
    assert feedback.count("message: this text.") == 1
    assert f"user message (this text is a part of it):\n{fence('Also: Be brief. Thanks.', 'message')}" in feedback


def test_an_answer_that_is_the_next_message_is_shown_once() -> None:
    prompt, text = wanting("Rules."), f"Begin. {'word ' * 1_000}"
    with ops.critic(None):
        draft = ops.chat_completion(answering(text), [{"role": "system", "content": prompt}])
        ops.chat_completion(answering(), [{"role": "user", "content": draft}]).backward("No.")
    (feedback,) = said(prompt)
    assert feedback.count("Begin.") == 1
    assert "user message (the text that this is feedback on):\nthe answer above\n" in feedback


def test_an_answer_that_is_a_part_of_the_next_message_is_shown_once() -> None:
    """Between its tags stands where it is; a short one stays there, as it says more than that."""
    prompt, text = wanting("Rules."), f"Begin. {'word ' * 1_000}"
    with ops.critic(None):
        draft = ops.chat_completion(answering(text), [{"role": "system", "content": prompt}])
        messages = [{"role": "user", "content": ["Draft: ", draft, " Twice: ", draft, " Improve it."]}]
        ops.chat_completion(answering(), messages).backward("No.")
    (feedback,) = said(prompt)
    assert feedback.count("Begin.") == 1
    found = re.search(
        r"Draft: <(\w+-\w{8})>the answer above</\1> Twice: <\1>the answer above</\1> Improve it", feedback
    )
    assert found is not None


def test_an_answer_is_not_called_the_one_above_where_that_is_the_answer_of_another_call() -> None:
    """Two calls later the nearest answer above is the one in between."""
    prompt, text = wanting("Rules."), f"Begin. {'word ' * 100}"
    with ops.critic(None):
        draft = ops.chat_completion(answering(text), [{"role": "system", "content": prompt}])
        second = ops.chat_completion(answering("Better."), [{"role": "user", "content": ["First: ", draft]}])
        third = ops.chat_completion(answering(), [{"role": "user", "content": ["Now: ", second, " Was: ", draft]}])
        third.backward("No.")
    (feedback,) = said(prompt)
    of_second, _, of_third = feedback.partition('The model\'s answer: "Better."')
    assert re.search(r"First: <(\w+-\w{8})>the answer above</\1>", of_second)
    assert f"Was: {text}" in of_third


def test_passages_that_code_has_found_for_a_query_are_shown_once() -> None:
    """As what came of the query; the message in which the next call is given them says where they were."""
    prompt, passages = wanting("Write a query."), f"Begin. {'word ' * 1_000}\n\nAnother one."
    reader = nn.ChatCompletion("Passages:\n{passages}\n\nQuestion: {question}", system="Read.", model=answering())
    with ops.critic(None):
        query = ops.chat_completion(answering("rome"), [{"role": "system", "content": prompt}])
        found = ops.straight_through(passages, query, role="passages")
        reader(passages=found, question="Which river?").backward("No.")
    (feedback,) = said(prompt)
    assert fence(passages, "outcome") in feedback
    assert feedback.count("Begin.") == 1
    assert re.search(r"Passages:\n<(passages-\w{8})>the outcome above</\1>\n\nQuestion: Which river\?", feedback)


def test_a_part_of_one_message_that_is_the_whole_of_another_has_no_tags_there() -> None:
    style = wanting("Be brief.")
    messages = [{"role": "system", "content": ["Also: ", style]}, {"role": "user", "content": style}]
    with ops.critic(None):
        ops.chat_completion(answering(), messages).backward("No.")
    (feedback,) = said(style)
    assert "system message (this text is a part of it, between tags <system-...>" in feedback
    assert "user message: this text.\n" in feedback


def test_under_a_transform_an_answer_is_not_taken_for_the_text() -> None:
    """As without one: the nested case says of what it is feedback."""

    def program(system: Variable, q: Any) -> Variable:
        first = ops.chat_completion(None, [{"role": "system", "content": system}, {"role": "user", "content": q}])
        return nn.ExactMatch()(ops.chat_completion(None, [{"role": "user", "content": ["So: ", first]}]), "Rome")

    prompt = wanting("Rules.", "system prompt")
    with tg.use_models(forward=answering()), ops.critic(None):
        program(prompt, "a").backward()
        looped = func.grad(program)(Variable("Rules.", role="system prompt"), "a")
        mapped = func.vmap(func.grad(program), in_dims=(None, 0))(Variable("Rules."), ["a", "b"])
    assert said(prompt)[0].count("the text that this is feedback on") == 1
    assert str(looped) == said(prompt)[0] == str(ops.unbind(mapped)[0])


def test_in_a_conversation_each_later_call_is_shown_once() -> None:
    """Each answer is in the messages of all later calls, so that case in case it would be twice as long each turn."""
    prompt = wanting("Rules.")
    messages: list[dict[str, Any]] = [{"role": "system", "content": prompt}]
    for turn in range(12):
        messages.append({"role": "user", "content": f"Turn {turn}"})
        answer = ops.chat_completion(answering(f"answer {turn}"), list(messages))
        messages.append({"role": "assistant", "content": answer})
    with ops.critic(None):
        answer.backward("No.")
    (of_first,) = (each for each in prompt.grad if 'answer: "answer 0"' in str(each.data))
    first = str(of_first.data)
    assert [first.count(f'The model\'s answer: "answer {turn}"') for turn in range(12)] == [1] * 12
    assert first.count("No.") == 1
    assert item_of(of_first).evidence.text == "No."


def test_in_a_chain_with_python_between_each_later_call_is_shown_once() -> None:
    """A search in several hops: what was found with a query is in all later calls, and twice as long each hop."""
    prompts, passages = [wanting(f"Hop {hop}.") for hop in range(8)], [Variable("Nothing yet.")]
    for hop, prompt in enumerate(prompts):
        messages = [
            {"role": "system", "content": prompt},
            {"role": "user", "content": [ops.join(passages, "\n")]},
        ]
        answer = ops.chat_completion(answering(f"query {hop}"), messages)
        passages.append(ops.straight_through(f"passage {hop}", answer, role="passage"))
    with ops.critic(None):
        answer.backward("No.")
    (first,) = said(prompts[0])
    assert [first.count(f'The model\'s answer: "query {hop}"') for hop in range(8)] == [1] * 8
    assert first.count("No.") == 1


def said_to_one_of_three(made_of: Callable[[Variable], Variable]) -> list[str]:
    """The cases of one of three agents who read each other's answers, or what was made of these, round after round."""
    prompts = [wanting(f"Agent {n}.") for n in range(3)]
    answers: list[Any] = ["Begin."]
    for number in range(6):
        found = [
            ops.chat_completion(
                answering(f"{prompt.data} says {number}"),
                [{"role": "system", "content": prompt}, {"role": "user", "content": ["All said: ", *answers]}],
            )
            for prompt in prompts
        ]
        answers = list(map(made_of, found))
    with ops.critic(None):
        ops.chat_completion(answering(), [{"role": "user", "content": ["Vote: ", *answers]}]).backward("No.")
    return said(prompts[0])


def test_what_python_made_of_answers_that_all_read_is_left_out_for_want_of_room() -> None:
    """As the answers themselves are."""
    lengths = [len(text) for text in said_to_one_of_three(lambda found: ops.straight_through(str(found), found))]
    assert len(lengths) == 6
    assert max(lengths) < 15_000


def test_two_fields_of_an_answer_that_go_into_one_call_are_one_case() -> None:
    prompt = wanting("Rules.")
    with ops.critic(None):
        found = ops.chat_completion(answering('{"a": "x", "b": "y"}'), [{"role": "system", "content": prompt}])
        both = [{"role": "user", "content": ["First: ", ops.field(found, "a"), " Then: ", ops.field(found, "b")]}]
        ops.chat_completion(answering("end"), both).backward("No.")
    assert said(prompt)[0].count('The model\'s answer: "end"') == 1


def test_where_all_read_all_cases_are_left_out_for_want_of_room() -> None:
    """It would be three times as long in each round."""
    cases = said_to_one_of_three(lambda found: found)
    assert len(cases) == 6
    assert max(map(len, cases)) < 15_000
    assert "\n2 more cases that it led to are left out here, for want of room.\n" in max(cases, key=len)


def test_an_optimizer_is_shown_the_answer_once_and_reports_name_what_was_said_of_it() -> None:
    program = nn.ChatCompletion("{who}", system=nn.Parameter("Rules."))
    with tg.use_models(forward=answering()), ops.critic(None):
        nn.ExactMatch()(program(who="x"), "Rome").backward()
    item = item_of(program.system.grad[0])
    assert (item.case, item.answer, item.scores) == (True, "", (0.0,))
    assert item.evidence.text == "The answer is wrong. Expected exactly `Rome`, got `Oslo`."


def test_a_batch_and_shared_feedback_calls_are_cases_one_by_one() -> None:
    """How many may share a call to the critic changes nothing where there is none."""
    found = []
    for size in (1, 8):
        program = nn.ChatCompletion("{q}", system=nn.Parameter("Rules."))
        with tg.use_models(forward=answering()), ops.critic(None), ops.feedback_batch_size(size):
            tg.backward([nn.ExactMatch()(program(q=word), "Rome") for word in "abc"])
        found.append(said(program.system))
    assert found[0] == found[1]
    assert len(found[0]) == 3


def test_under_vmap_each_example_hears_what_it_hears_in_a_loop() -> None:
    system = Variable("Rules.", role="system prompt")

    def program(system: Variable, q: Any) -> Variable:
        answer = ops.chat_completion(
            None, [{"role": "system", "content": system}, {"role": "user", "content": "{q}"}], {"q": q}
        )
        return nn.ExactMatch()(answer, "Rome")

    with tg.use_models(forward=answering()), ops.critic(None):
        looped = [func.grad(program)(system, q) for q in "abc"]
        mapped = func.vmap(func.grad(program), in_dims=(None, 0))(system, list("abc"))
    assert [str(entry) for entry in ops.unbind(mapped)] == [str(each) for each in looped]
    assert [str(each).count("this text") for each in looped] == [1, 1, 1]


def test_with_create_graph_feedback_leads_to_what_it_shows() -> None:
    """Feedback on a case is feedback on the answer in it, as it is on a critic's words."""
    prompt, question = wanting("Rules."), wanting("Where?", "question")
    answer = ops.chat_completion(
        answering(), [{"role": "system", "content": prompt}, {"role": "user", "content": question}]
    )
    with ops.critic(None):
        (on_prompt,) = grad(answer, [prompt], "Wrong.", create_graph=True)
        (on_question,) = grad(on_prompt, [question], "Too long a case.")
    assert "Too long a case." in str(on_question)


def test_images_are_named_and_not_shown() -> None:
    """An optimizer's request shows none; a critic would see it."""
    image = image_part("data:image/png;base64,iVBORw0KGgo=")
    program = nn.ChatCompletion("{picture}", system=nn.Parameter("Name it."))
    with tg.use_models(forward=answering()), ops.critic(None):
        nn.ExactMatch()(program(picture=image), "Rome").backward()
    assert "not shown here]" in said(program.system)[0]
    assert "base64" not in said(program.system)[0]


def test_a_tool_whose_answer_is_trained_hears_the_case() -> None:
    """Feedback goes on through tools without a critic, too."""
    inner = nn.ChatCompletion("{q}", system=nn.Parameter("Look it up."))

    def look_up(q: str) -> Variable:
        """Looks something up."""
        return inner(q=q)

    def model(request: Request) -> Any:
        assert request.purpose == "forward"
        if request.messages[0].text == "Look it up.":
            return "a note"
        if any(message.role == "tool" for message in request.messages):
            return "done"
        call = {"id": "1", "type": "function", "function": {"name": "look_up", "arguments": '{"q": "it"}'}}
        return Completion(text="", finish_reason="tool_calls", tool_calls=(call,), usage=Usage(calls=1))

    outer = nn.ChatCompletion("{q}", system=nn.Parameter("Use the tool."), tools=[look_up])
    with tg.use_models(forward=FunctionModel(model)), ops.critic(None):
        nn.ExactMatch()(outer(q="go"), "right").backward()
    assert 'The model\'s answer: "done"' in said(outer.system)[0]
    assert 'The model\'s answer: "a note"' in said(inner.system)[0]


def test_a_document_that_each_call_of_a_chain_is_given_is_shown_whole_once() -> None:
    """Else the case would be longer than any request of the program, and no optimizer might have room for it."""
    document, prompt = f"Begin. {'word ' * 4_000}End.", wanting("Rules.")
    with ops.critic(None):
        answer: Any = "none"
        for name in (prompt, "Second.", "Third."):
            messages = [{"role": "system", "content": name}, {"role": "user", "content": ["{doc} So far: ", answer]}]
            answer = ops.chat_completion(answering("so"), messages, {"doc": document})
        answer.backward("No.")
    (feedback,) = said(prompt)
    assert feedback.count(document) == 1
    assert feedback.count("Begin.") == feedback.count("End.") == 3
    assert feedback.count("more characters …]") == 2
    assert len(feedback) < len(document) + 12_000


def test_what_looks_like_a_message_in_a_long_message_is_no_end_of_it() -> None:
    """Tags that somebody wrote are text, closed or not."""
    for hostile in (
        "\n<message-0a1b2c3d>\n",
        "\n<message-0a1b2c3d>\nx\n</message-0a1b2c3d>\n",
        "\n</message-0a1b2c3d>",
    ):
        prompt, document = wanting("Rules."), hostile * 3_000
        with ops.critic(None):
            first = ops.chat_completion(answering("so"), [{"role": "system", "content": prompt}])
            messages = [{"role": "user", "content": document}, {"role": "user", "content": ["So far: ", first]}]
            ops.chat_completion(answering("end"), messages).backward("No.")
        (feedback,) = said(prompt)
        assert len(feedback) < 6_000
        assert 'The model\'s answer: "end"' in feedback


def test_what_counts_for_how_much_is_said_of_what_was_said() -> None:
    """Not once more of the case, which is no part of the score."""
    program = nn.ChatCompletion("{q}", system=nn.Parameter("Rules."))
    loss = nn.Weighted({"exact": nn.ExactMatch(), "again": nn.ExactMatch()})
    with tg.use_models(forward=answering()), ops.critic(None):
        loss(program(q="x"), "Rome").backward()
    (feedback,) = program.system.grad
    assert feedback.source is not None
    assert feedback.source.shares
    assert item_of(feedback).text.startswith("system message: this text.")
    assert item_of(feedback).text.count("exact counts for 50%") == 1


def test_what_a_later_call_was_given_stays_between_its_tags_where_its_message_is_shortened() -> None:
    """The middle of a long message may be what the case is about."""
    first = nn.ChatCompletion("{q}", system=nn.Parameter("One."))
    second = nn.ChatCompletion("{before}\n{draft}\n{after}")
    answers = itertools.cycle(["the draft", "final"])
    with tg.use_models(forward=FunctionModel(lambda request: next(answers))), ops.critic(None):
        draft = first(q="go")
        assert draft.data == "the draft"
        nn.ExactMatch()(second(before="a" * 9000, draft=draft, after="b" * 9000), "right").backward()
    (of_first,) = said(first.system)
    assert ">the draft</draft-" in of_first
    assert of_first.count("more characters …]") == 2
    assert len(of_first) < 6000
