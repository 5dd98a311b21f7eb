"""What all tests share: property tests try the same examples everywhere, so that a red run can be run again; and no
test fetches a vocabulary, not even one that may ask endpoints."""

import os

from hypothesis import settings

from textgrad_engine.llm.vocabulary import NO_FETCH

os.environ[NO_FETCH] = "1"

settings.register_profile("same-everywhere", derandomize=True, deadline=None, database=None)
settings.load_profile("same-everywhere")
