"""Cleans up after a pytest that was killed: ``python janitor.py PID FOLDER...``.

The watchdog ends a hung run without running any fixture's end. This process waits until process
PID has gone, then kills what carries the session's SFM_DIR (the first FOLDER) in its environment
and removes the folders.
"""

import os
import shutil
import signal
import sys
import time


def main(parent: int, folders: list[str]) -> None:
    """Wait for ``parent`` to end, then clean."""
    while os.getppid() == parent:
        time.sleep(0.5)
    marker = b"SFM_DIR=" + os.fsencode(folders[0])  # or a folder in it
    for entry in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{entry}/environ", "rb") as file:
                if int(entry) != os.getpid() and marker in file.read():
                    os.kill(int(entry), signal.SIGKILL)
        except OSError:
            continue  # it ended meanwhile, or is somebody else's
    for folder in folders:
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main(int(sys.argv[1]), sys.argv[2:])
