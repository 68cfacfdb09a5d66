"""A command of iclab that ends when the process that began it does: `python -m iclab.commands.serving.child run …`.

Its standard input is held by that process; where it closes, however that comes, the command is asked to end and keeps
what is finished.
"""

import os
import signal
import sys
import threading

__all__: list[str] = []


def _end_with_parent() -> None:
    while os.read(0, 1024):  # not by way of sys.stdin, whose lock would outlive the command
        pass
    os.kill(os.getpid(), signal.SIGTERM)


if __name__ == "__main__":
    from iclab.commands.main import main

    threading.Thread(target=_end_with_parent, daemon=True).start()
    sys.exit(main(sys.argv[1:]))
