"""`!mpiexec` and `!mpicc` in a notebook, and in a shell's cell of an engine."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.c.building import needs_mpi
from tests.jupyter.notebook import Notebook, notebook

pytestmark = [
    pytest.mark.jupyter,
    pytest.mark.keeps("one notebook with an engine for the whole module"),
    *needs_mpi,
]

PROGRAM = """
#include <mpi.h>
#include <stdio.h>
int main(int argc, char **argv)
{
    int one = 1, all;
    MPI_Init(&argc, &argv);
    MPI_Allreduce(&one, &all, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    printf("%d of them\\n", all);
    MPI_Finalize();
    return 0;
}
"""
CALLS = "mpicc prog.c -o prog && mpiexec --oversubscribe --allow-run-as-root -n 4 ./prog"


@pytest.fixture(scope="module")
def book(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Notebook]:
    """A notebook on a machine that has no other MPI."""
    folder = tmp_path_factory.mktemp("course")
    (folder / "prog.c").write_text(PROGRAM)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PATH", "/usr/bin:/bin")
        with notebook(f"%cd {folder}", "%sfm start 1", f"%%sfm\n%cd {folder}") as opened:
            yield opened


def test_a_shell_line_of_a_notebook(book: Notebook) -> None:
    assert book.text(f"!{CALLS}").replace("\r", "").count("4 of them\n") == 4


def test_a_shell_cell_of_an_engine(book: Notebook) -> None:
    assert book.text(f"%%sfm\n%%bash\n{CALLS}").count("4 of them") == 4


def test_python(book: Notebook, tmp_path: Path) -> None:
    text = "from mpi4py import MPI; print(MPI.COMM_WORLD.allreduce(1), 'of them')"
    book.run(f"%%writefile {tmp_path}/prog.py\n{text}").ok()
    assert book.text(f"!mpiexec -n 3 python {tmp_path}/prog.py").count("3 of them") == 3
