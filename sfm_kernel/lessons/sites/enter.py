"""Runs a program in a host of a lab.

    python -P enter.py OWNER USER NETWORK PROGRAM [ARGUMENT...]

It is run as a file, since its package would have to be imported before: 0.2 s for each program.

OWNER is the process that has the lab, USER and NETWORK are the descriptors of the namespaces to
enter; USER is - where there is none of its own. It becomes the program, which has its process id,
and inherits neither.
"""

from __future__ import annotations

import os
import sys

from sfm_kernel._native import setns

COMMAND = (sys.executable, "-P", __file__)


def main(arguments: list[str]) -> int:
    """Does not return if all goes well; otherwise as a shell does: 126 or 127."""
    owner, user, network, program, *_ = arguments
    try:
        for namespace in (user, network):
            if namespace != "-":
                setns(int(namespace))
                os.close(int(namespace))
        if os.getppid() != int(owner):
            return 1  # it died before: the lab's helper may have looked before we came in
        os.execvp(program, arguments[3:])
    except OSError as error:
        print(f"{program} cannot be run in the lab: {error.strerror}", file=sys.stderr)
        return 127 if isinstance(error, FileNotFoundError) else 126


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
