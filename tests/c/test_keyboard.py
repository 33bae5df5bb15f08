"""A program reads from the user, who is asked when the program reads, and only then."""

from __future__ import annotations

import os
import queue

import pytest

from tests.c.building import needs_cc
from tests.jupyter.notebook import Notebook

pytestmark = [
    pytest.mark.jupyter,
    pytest.mark.keeps("one notebook for the whole module"),
    needs_cc,
    pytest.mark.skipif(
        not os.path.exists("/proc/self/syscall"), reason="the system does not say who reads"
    ),
]

CELLS: list[str] = []

SUM = 'int k, sum = 0; printf("numbers? "); while (scanf("%d", &k) == 1) sum += k; SAY("%d", sum)'
ONE = 'int k; printf("number? "); if (scanf("%d", &k) == 1) SAY("twice is %d", 2 * k);'
LINES = "import sys; print('line', sys.stdin.readline(), 'rest', sys.stdin.read().split())"


def program(line: str, rank_0: str, others: str = "") -> str:
    return (
        f"%%sfm c {line}\n#include <mpi.h>\n#include <stdio.h>\n#include <unistd.h>\n"
        '#define SAY(...) (printf(__VA_ARGS__), puts(""))\n'
        "int main(int argc, char **argv) {\nint rank;\nMPI_Init(&argc, &argv);\n"
        "MPI_Comm_rank(MPI_COMM_WORLD, &rank);\n"
        f"if (rank == 0) {{ {rank_0}; }} else {{ {others}; }}\nMPI_Finalize();\n}}"
    )


def no_question(book: Notebook) -> bool:
    try:
        book.client.get_stdin_msg(timeout=0.1)
    except queue.Empty:
        return True
    return False


def test_rank_0_reads_the_answer_of_the_user(book: Notebook) -> None:
    cell = book.send(program("-n 2", ONE), asks=True)
    book.answer("21")
    shown = book.wait(cell)
    assert "[0] number? twice is 42" in shown.text and not shown.error
    assert no_question(book)


@pytest.mark.parametrize("end", ["^D", "\x04"])
def test_each_line_is_asked_for_and_one_ends_the_input(end: str, book: Notebook) -> None:
    cell = book.send(program("-n 1", f'{SUM}; SAY("%d", getchar())'), asks=True)
    for line in ("1 2", "", "3", end):
        book.answer(line)
    shown = book.wait(cell)
    assert "numbers? 6\n-1" in shown.text and not shown.error
    assert no_question(book)  # at its end there is nothing to ask for


def test_a_program_in_python_reads_it_too(book: Notebook) -> None:
    cell = book.send(f'%sfm run -n 1 -c "{LINES}"', asks=True)
    for line in ("é ß", "a", "b", "^D"):
        book.answer(line)
    assert "line é ß\n rest ['a', 'b']" in book.wait(cell).text


def test_a_program_that_does_not_read_asks_nothing(book: Notebook) -> None:
    cell = book.send(program("-n 2", 'usleep(700000); SAY("end")', "getchar()"), asks=True)
    assert "[0] end" in book.wait(cell).text
    assert no_question(book)


def test_stop_while_the_user_is_asked(book: Notebook) -> None:
    cell = book.send(program("-n 2", SUM, "MPI_Barrier(MPI_COMM_WORLD)"), asks=True)
    book.asked()
    book.interrupt()
    error = book.wait(cell).error
    assert error.endswith("was stopped while it read its input, which the line ^D ends")
    cell = book.send("print(input('mine?'))", asks=True)  # the keyboard is the notebook's again
    assert book.asked() == "mine?"
    book.client.input("yes")
    assert "yes" in book.wait(cell).text


def test_output_comes_while_the_user_is_asked(book: Notebook) -> None:
    cell = book.send(program("-n 2", ONE, 'sleep(1); SAY("meanwhile")'), asks=True)
    book.asked()
    book.wait(cell, lambda shown: "[1] meanwhile" in shown.text)
    book.client.input("4")
    assert "twice is 8" in book.wait(cell).text


def test_others_that_write_all_the_time_do_not_keep_it_from_asking(book: Notebook) -> None:
    rest = "usleep(1000); MPI_Iprobe(0, 0, MPI_COMM_WORLD, &ended, MPI_STATUS_IGNORE)"
    writing = f'for (int ended = 0; !ended;) {{ SAY("on"); {rest}; }}'
    asking = f"{ONE} MPI_Send(0, 0, MPI_INT, 1, 0, MPI_COMM_WORLD)"
    cell = book.send(program("-n 2", asking, writing), asks=True)
    book.answer("4")
    assert "twice is 8" in book.wait(cell).text


def test_a_program_that_ends_takes_its_question_back(book: Notebook) -> None:
    code = program("-n 2", ONE, "sleep(1); MPI_Abort(MPI_COMM_WORLD, 3)")
    cell = book.send(code, asks=True)
    book.asked()
    assert book.wait(cell).error == "CellFailed: the program ended with exit status 3"


def test_a_front_end_without_input_gives_the_end_of_it(book: Notebook) -> None:
    shown = book.run(program("-n 1", SUM))
    assert "numbers? 0" in shown.text and not shown.error
