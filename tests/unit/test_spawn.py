"""Processes are asked to end, or are killed together with the processes that they started."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import pytest

from sfm_kernel.spawn import process
from tests.mpi.launching import lives
from tests.waiting import wait_until


@pytest.mark.parametrize("grace", [0, 0.1])
def test_a_process_that_does_not_end_is_killed_with_its_group(grace: float) -> None:
    script = "trap '' TERM; sleep 1000 & echo $!; wait"
    stubborn = process.start(["sh", "-c", script], stdout=subprocess.PIPE, text=True)
    child = int(stubborn.stdout.readline())
    process.end([stubborn], grace)
    assert stubborn.returncode == -signal.SIGKILL and stubborn.stdout.closed
    wait_until(lambda: not lives(child))
    process.end([stubborn], grace)


def test_a_process_that_is_asked_ends_by_itself() -> None:
    script = "trap 'exit 3' TERM; echo ready; while true; do sleep 0.01; done"
    willing = process.start(["sh", "-c", script], stdout=subprocess.PIPE, text=True)
    willing.stdout.readline()
    process.end([willing], 60)
    assert willing.returncode == 3


OWNER = """
import os, sys
from sfm_kernel.spawn import process
from sfm_kernel.spawn.forkserver import ForkServer
os.environ["PYTHONPATH"] = sys.argv[1]
server = ForkServer()
read, write = os.pipe()
child = server.fork("forked:begun", [write], owner=os.getpid(), status=3)
process.wait([child])
print(child.returncode, os.read(read, 100).decode())
server.close()
try:
    server.fork("forked:begun", [write])
except OSError:
    print("closed")
"""
FORKED = """
import os
def begun(fd, owner, status):
    while os.getppid() != owner:  # it was born a moment ago
        pass
    os.write(fd, str(os.listdir("/proc/self/fd")).encode())
    os._exit(status)
"""


def test_a_fork_of_a_server_is_a_child_with_the_descriptors_that_it_is_given(
    tmp_path: Path,
) -> None:
    (tmp_path / "forked.py").write_text(FORKED)
    command = [sys.executable, "-c", OWNER, str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    code, open_files = done.stdout.partition("\n")[0].split(" ", 1)
    assert (code, done.stdout.splitlines()[1]) == ("3", "closed"), done.stdout
    assert open_files.count("'") == 2 * 5, "standard streams, the pipe, and what lists them"


STOPPED_AT_A_FORK = """
import os, signal, threading, time
from sfm_kernel.spawn.forked import Fork
signal.signal(signal.SIGTERM, signal.default_int_handler)
threading.Thread(target=threading.Event().wait, daemon=True).start()
def stop():
    os.kill(os.getpid(), signal.SIGTERM)  # the other thread gets it if this one has a mask
    time.sleep(0.1)
os.register_at_fork(after_in_parent=stop)
try:
    Fork(lambda: None)
except KeyboardInterrupt:
    print("stopped")
"""


def test_an_owner_that_is_asked_to_end_while_it_forks_hears_it() -> None:
    """Python ignores errors in functions that os.fork calls; logging has such a function.

    Nor does it warn of the threads that libraries have begun.
    """
    command = [sys.executable, "-W", "always", "-c", STOPPED_AT_A_FORK]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert (done.stdout, done.stderr) == ("stopped\n", "")
