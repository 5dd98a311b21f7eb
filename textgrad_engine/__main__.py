"""``python -m textgrad_engine``, and the console script: the command line, with what comes before it is imported."""

from __future__ import annotations

import contextlib
import gc
import os
import signal
from types import FrameType

_INTERRUPTED = 130


def main() -> None:
    """Run the command that the arguments name."""
    # Ctrl-C while packages are imported, which is most of what `--help` does. A command listens itself while it runs.
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:  # who has it ignored wants that to stay so
        signal.signal(signal.SIGINT, _end)
    # Nothing that is imported goes again, and to look for what does takes a tenth of the time. A command turns it on.
    gc.disable()
    from textgrad_engine.cli.main import main as run

    run()


def _end(number: int, frame: FrameType | None) -> None:
    """End at once: nothing was begun, or all is written. An exception could be lost in what is being imported."""
    with contextlib.suppress(OSError):  # whoever reads stderr has gone
        os.write(2, b"interrupted\n")
    os._exit(_INTERRUPTED)


if __name__ == "__main__":
    main()
