"""Run a command that dies with its parent process, even if SIGKILL ends the parent.

    python tether.py PARENT_PID COMMAND...

The kernel's parent-death signal survives exec, so the command needs no companion process. It is not
set in a `preexec_fn`, which may deadlock in a process with threads.
"""

import ctypes
import os
import signal
import sys

_PR_SET_PDEATHSIG = 1


def main() -> None:
    """Tie this process to its parent and replace it by the command."""
    parent, command = int(sys.argv[1]), sys.argv[2:]
    if ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL) != 0:
        sys.exit(f"prctl failed: {os.strerror(ctypes.get_errno())}")
    if os.getppid() != parent:  # the parent died before the signal was set
        sys.exit("the parent is gone")
    os.execvp(command[0], command)  # noqa: S606 - the command is our own


if __name__ == "__main__":
    main()
