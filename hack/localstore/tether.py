"""Runs a command that dies with the process that asked for it, even if that one is SIGKILLed.

    python tether.py PARENT_PID COMMAND...

The kernel's parent-death signal survives exec, so the command needs no companion process. It is
set here rather than in a `preexec_fn`, which may deadlock in a process with threads.
"""

import ctypes
import os
import signal
import sys

_PR_SET_PDEATHSIG = 1


def main() -> None:
    """Ties this process to its parent and becomes the command."""
    parent, command = int(sys.argv[1]), sys.argv[2:]
    if ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL) != 0:
        sys.exit(f"prctl failed: {os.strerror(ctypes.get_errno())}")
    if os.getppid() != parent:  # it died before the signal was set: nobody is left to serve
        sys.exit("the parent is gone")
    os.execvp(command[0], command)  # noqa: S606 - the command is our own


if __name__ == "__main__":
    main()
