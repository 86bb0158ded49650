"""What holds for all tests."""

import signal


def pytest_configure() -> None:
    """Let programs that tests start hear Ctrl-C; a shell's background jobs begin deaf to it."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
