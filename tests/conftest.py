"""What all tests share: property tests try the same examples everywhere, so that a red run can be run again; no test
fetches a vocabulary, not even one that may ask endpoints; and Ctrl-C is heard, also where tests run in the background."""

import os
import signal

from hypothesis import settings

from textgrad_engine.llm.vocabulary import NO_FETCH

os.environ[NO_FETCH] = "1"

if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:  # a shell's `command &`, and child processes would have it too
    signal.signal(signal.SIGINT, signal.default_int_handler)

settings.register_profile("same-everywhere", derandomize=True, deadline=None, database=None)
settings.load_profile("same-everywhere")
