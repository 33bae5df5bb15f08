"""Runs a program in a host of a lab.

    python -P enter.py OWNER USER NETWORK PROGRAM [ARGUMENT...]

It runs as a file, since as a module it would first import its package: 0.2 s for each program.

OWNER is the process that owns the lab, USER and NETWORK are the descriptors of the namespaces to
enter; USER is - if the lab has no user namespace. This process becomes the program, which keeps its
process id and does not inherit the descriptors.
"""

from __future__ import annotations

import os
import sys

from sfm_kernel._native import setns

COMMAND = (sys.executable, "-P", __file__)


def main(arguments: list[str]) -> int:
    """Become the program. If that fails, return 126 or 127, as a shell does."""
    owner, user, network, program, *_ = arguments
    try:
        for namespace in (user, network):
            if namespace != "-":
                setns(int(namespace))
                os.close(int(namespace))
        if os.getppid() != int(owner):
            # It has died, and the lab's helper may have looked before this process entered.
            return 1
        os.execvp(program, arguments[3:])
    except OSError as error:
        print(f"{program} cannot be run in the lab: {error.strerror}", file=sys.stderr)
        return 127 if isinstance(error, FileNotFoundError) else 126


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
