"""Who holds the leases of a cache file, and whether that process is gone."""

from __future__ import annotations

import contextlib
import functools
import os
import platform
from pathlib import Path


def new_owner() -> str:
    """A name for who holds leases in this process, by which others see whether the process is there."""
    return f"{_place()} {os.getpid()} {os.urandom(8).hex()}"


def is_gone(owner: str) -> bool:
    """Whether the process of an owner ran where this one runs, and does not run any more."""
    place, _, rest = owner.partition(" ")
    number = rest.partition(" ")[0]
    if os.name != "posix" or place != _place() or not number.isdecimal():  # on Windows, signal 0 is Ctrl-C
        return False
    try:
        os.kill(int(number), 0)
    except ProcessLookupError:
        return True
    except OSError:  # it is there, and somebody else's
        return False
    return False


@functools.cache
def _place() -> str:
    """Where process ids mean the same as here: the machine, and on Linux the namespace, as a container has its own.

    Machines may have one name, such as "localhost", and the first namespace has one number everywhere; no two of them
    started with one id.
    """
    start = namespace = ""
    with contextlib.suppress(OSError):
        start = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    with contextlib.suppress(OSError):
        namespace = os.readlink("/proc/self/ns/pid")
    return f"{platform.node()}/{start}/{namespace}".replace(" ", "_")
