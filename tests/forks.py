"""Children that are forked while another thread of their parent is in the middle of something."""

from __future__ import annotations

import itertools
import os
import signal
import threading
from collections.abc import Callable


def forked_beside(busy: Callable[[int], object], work: Callable[[int], object], children: int) -> list[int]:
    """How children end that have five seconds for some work: 0, unless they wait for a thread that they do not have.

    Args:
        busy: what the other thread does again and again, with the number of the time.
        work: what a child does, with its number.
        children: how many.
    """
    done = threading.Event()

    def keep_busy() -> None:
        for number in itertools.count():
            if done.is_set():
                return
            busy(number)

    thread = threading.Thread(target=keep_busy)
    thread.start()
    ended = []
    try:
        for number in range(children):
            child = os.fork()
            if child == 0:
                code = 1
                try:
                    signal.signal(signal.SIGALRM, signal.SIG_DFL)  # pytest-timeout has one of its own
                    signal.alarm(5)
                    work(number)
                    code = 0
                finally:
                    os._exit(code)
            ended.append(os.waitpid(child, 0)[1])
    finally:
        done.set()
        thread.join()
    return ended
