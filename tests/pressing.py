"""Ctrl-C, as a terminal sends it while the main thread waits."""

import signal
import threading


def press_ctrl_c() -> None:
    """Interrupt the main thread from another one; on Windows it hears that when it looks up."""
    if hasattr(signal, "pthread_kill"):
        main = threading.main_thread().ident
        assert main is not None
        signal.pthread_kill(main, signal.SIGINT)
    else:
        signal.raise_signal(signal.SIGINT)
