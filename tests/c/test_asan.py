"""--asan: wrong accesses that the ordinary checks cannot see, each told in one sentence."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.c.building import needs_mpi
from tests.mpi.launching import run

pytestmark = needs_mpi

PROGRAM = """\
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
static int table[4];
int main(int argc, char **argv)
{
    int rank, size, *numbers = malloc(4 * sizeof *numbers), own[4] = {0}, one = 1, *where = own;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    memset(numbers, 0, 4 * sizeof *numbers);
    %s
    MPI_Finalize();
    return 0;
}
"""
LINE = PROGRAM[: PROGRAM.index("%s")].count("\n") + 1
OTHERS = "; the other ranks were ended\n"

MISTAKES = {
    "numbers[size + 2] = 1;": "writes 4 bytes outside of what malloc has given",
    "printf(\"%d\", numbers[-1]);": "reads 4 bytes outside of what malloc has given",
    "where[argc + 3] = 1;": "writes 4 bytes outside of a variable",
    "where = table; where[argc + 3] = 1;": "writes 4 bytes outside of a global variable",
    "free(numbers); printf(\"%d\", numbers[0]);": "reads 4 bytes of memory that was freed",
    "free(numbers); free(numbers);": "frees memory that was freed",
    "free(where + 1);": "AddressSanitizer has found: bad-free",
    # Buffers that are too small for their count: MPI reads and writes them, not the program.
    "MPI_Allreduce(MPI_IN_PLACE, numbers, 5, MPI_INT, MPI_SUM, MPI_COMM_WORLD);":
        "20 bytes outside of what malloc has given",
    "MPI_Sendrecv(&one, 2000, MPI_INT, 1 - rank, 0, calloc(2000, 4), 2000, MPI_INT, 1 - rank, 0,"
    " MPI_COMM_WORLD, MPI_STATUS_IGNORE);": "reads 8000 bytes outside of a variable",
    "if (rank == 0) MPI_Send(calloc(100, 4), 100, MPI_INT, 1, 0, MPI_COMM_WORLD);"
    " else MPI_Recv(numbers, 100, MPI_INT, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);":
        "writes 400 bytes outside of what malloc has given",
    # While the program computes, a thread of MPI receives.
    "MPI_Request request; if (rank == 0) usleep(300000), MPI_Send(calloc(100, 4), 100, MPI_INT, 1,"
    " 0, MPI_COMM_WORLD); else MPI_Irecv(numbers, 100, MPI_INT, 0, 0, MPI_COMM_WORLD, &request),"
    " sleep(60);": "writes 400 bytes outside of what malloc has given",
}  # fmt: skip


@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_wrong_access_is_found_in_its_line(mistake: str, tmp_path: Path) -> None:
    source = tmp_path / "wrong.c"
    source.write_text(PROGRAM.replace("%s", mistake))
    done = run("-n", "2", "--timeout", "60", "--asan", "wrong.c", cwd=tmp_path)
    (said,) = [line for line in done.stderr.splitlines(True) if line.startswith("sfm: ")]
    assert f"was stopped in wrong.c, line {LINE}: " in said and said.endswith(OTHERS), done.stderr
    assert MISTAKES[mistake] in said and done.returncode == 134
    assert "====" not in done.stderr, "AddressSanitizer's own report"


def test_a_right_program_says_nothing(tmp_path: Path) -> None:
    (tmp_path / "right.c").write_text(PROGRAM.replace("%s", 'numbers[3] = rank; puts("done");'))
    done = run("-n", "2", "--asan", "right.c", cwd=tmp_path)
    assert (done.stdout, done.stderr, done.returncode) == ("done\ndone\n", "", 0)


def test_a_null_pointer_is_still_a_crash_with_its_line(tmp_path: Path) -> None:
    (tmp_path / "null.c").write_text(PROGRAM.replace("%s", "numbers = 0; numbers[size] = 1;"))
    done = run("-n", "2", "--asan", "null.c", cwd=tmp_path)
    assert f"a null pointer) in null.c, line {LINE} (main)" in done.stderr


def test_it_is_not_without_checks(tmp_path: Path) -> None:
    done = run("--asan", "--fast", "x.c", cwd=tmp_path)
    assert done.returncode == 2 and "--fast: not allowed with argument --asan" in done.stderr
