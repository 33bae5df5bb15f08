"""Worlds that spawn and meet others: who has done its part leaves, and nobody is ended for that."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.mpi.launching import PATIENCE, run

PROGRAM = Path(__file__).with_name("worlds.py")


@pytest.mark.parametrize("processes", [2, 3])
def test_random_programs_of_several_worlds(processes: int, effort: int) -> None:
    words = ["-n", str(processes), "--detect", str(PROGRAM), str(1000 * processes)]
    done = run(*words, str(5 * effort), timeout=PATIENCE * effort)
    assert (done.stderr, done.returncode) == ("", 0)
    assert done.stdout == "over\n" * processes
