"""A process ends as it should, whatever its daemon threads do at that moment."""

from __future__ import annotations

import subprocess
import sys
import threading

import pytest

import sfm_kernel
from sfm_kernel import Endpoint
from tests.conftest import KINDS


@pytest.mark.timeout(1800)
@pytest.mark.parametrize("kind", ["inproc", *KINDS], indirect=True)
def test_a_process_ends_while_its_threads_are_blocked(kind: str, world: str, effort: int) -> None:
    ends = [sys.executable, "-m", "tests.stress.endings", world, str(effort)]
    ended = subprocess.run(ends, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    assert (ended.returncode, ended.stdout) == (0, "")


def test_a_process_that_has_left_its_worlds_joins_no_other() -> None:
    script = """
import atexit, sys
def late():
    try:
        sfm_kernel.join('late')
    except sfm_kernel.SFMError as error:
        print(type(error).__name__, error)
atexit.register(late)  # runs after all that is registered later
import sfm_kernel
sfm_kernel.join('early')
"""
    late = subprocess.run([sys.executable, "-c", script], stdout=subprocess.PIPE, text=True)
    assert late.returncode == 0 and late.stdout.startswith("EndpointClosed this process is ending")


@pytest.mark.skipif((3, 12) <= sys.version_info < (3, 12, 2), reason="starts no thread then")
def test_a_thread_that_python_waits_for_joins_one_world_after_the_other() -> None:
    script = """
import threading
import sfm_kernel
def late():
    threading.main_thread().join()
    for world in 'first', 'second':
        with sfm_kernel.join(world, 'A') as sfm:
            print(sfm.world)
threading.Thread(target=late).start()
"""
    late = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert (late.stdout, late.stderr) == ("first\nsecond\n", "")


def test_a_group_lives_until_the_interpreter_ends() -> None:
    """Modules are no longer imported then, as NumPy does for the name of a type."""
    script = """
import numpy, sfm_kernel
sfm = sfm_kernel.join('late', 'A')
group = sfm_kernel.Group(sfm, ['A'])
group.allreduce(numpy.ones(3))
"""
    late = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert (late.returncode, late.stderr) == (0, "")


def leaves_a_thread(sfm: Endpoint) -> int | None:
    threading.Thread(target=sfm.recv, daemon=True).start()
    return sfm.rank


def test_a_thread_that_a_run_leaves_prints_nothing(capfd: pytest.CaptureFixture[str]) -> None:
    assert sfm_kernel.run(leaves_a_thread, n=2) == [0, 1]
    assert capfd.readouterr() == ("", "")
