"""What processes use, as the view of processes shows it."""

from __future__ import annotations

import os
import resource
import subprocess
import sys

from sfm_kernel.jupyter.server.usage import Usage
from tests.observe.pictures import check, process

LARGE = 50_000_000
LIMIT = 4 << 30


def of(usage: Usage, pid: int | None, **more: object) -> dict[str, object]:
    """What the process with this number uses."""
    about = process("A", "running") | {"uid": "u", "pid": pid, "here": True, "alive": True}
    found = check("usage", usage.read("w", [about | more]))
    (used,) = found["processes"]
    return dict(used)


def test_memory_of_a_process_grows_with_what_it_holds() -> None:
    before = of(Usage(), os.getpid())["memory"]
    held = bytearray(os.urandom(1)) * LARGE
    after = of(Usage(), os.getpid())["memory"]
    assert isinstance(before, int) and isinstance(after, int)
    assert after - before >= 0.9 * len(held)


def test_processor_time_is_that_since_the_last_reading() -> None:
    usage = Usage()
    assert of(usage, os.getpid())["processor"] is None
    while not of(usage, os.getpid())["processor"]:  # its clock has steps of 10 ms
        sum(range(1_000_000))
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as sleeper:
        of(usage, sleeper.pid)
        while of(usage, sleeper.pid)["processor"]:  # until it waits
            pass
        sleeper.kill()


def test_the_limit_is_the_process_s_own() -> None:
    assert of(Usage(), os.getpid())["limit"] is None
    waits = [sys.executable, "-c", "input(chr(10))"]
    with subprocess.Popen(waits, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as limited:
        assert limited.stdout is not None
        limited.stdout.readline()  # it runs, and has memory of its own
        resource.prlimit(limited.pid, resource.RLIMIT_DATA, (LIMIT, LIMIT))
        used = of(Usage(), limited.pid)
        assert used["limit"] == LIMIT and used["memory"]
        limited.kill()


def test_nothing_is_known_of_a_process_elsewhere_or_of_none() -> None:
    nothing = {"uid": "u", "memory": None, "limit": None, "processor": None}
    usage = Usage()
    assert of(usage, os.getpid(), here=False) == nothing
    assert of(usage, os.getpid(), alive=False) == nothing
    assert of(usage, None) == nothing
    assert of(usage, 2**22 + 1) == nothing
