"""What the models behind the servers say; shared by the servers' set-up and by the checks."""

TALK = "Grüße aus 東京, the bicycle 🚲 stands here."
"""Plain text, with characters of one to four bytes."""

JSON = '{"verdict": "right", "score": 7}'
"""What fits `checks.FORMAT`."""

CRITIC = '{"case_1": {"system": "Say that the answer is one word."}}'
"""Feedback on the system prompt of one call."""

OPTIMIZER = (
    '{"edits": [{"op": "add", "line": 1, "text": "Answer with one word.", '
    '"reason": "The feedback asks for it.", "feedback": [1]}]}'
)
"""A patch that adds a line."""

ENDLESS = "1, 2, 3, "
"""What is said again and again, where a request says `COUNT`."""

COUNT = "Count without end."

HEARD = ((COUNT, ENDLESS), ('{"edits"', OPTIMIZER), ('"case_1"', CRITIC), ("JSON schema", JSON), ("", TALK))
"""A phrase in the last message, and the answer to it; the first that is found counts."""
