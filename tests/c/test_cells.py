"""%%sfm c: programs and functions in the cells of a notebook."""

from __future__ import annotations

from pathlib import Path

import psutil
import pytest

from tests.jupyter.notebook import Notebook, descendants, runs, wait_for

pytestmark = [
    pytest.mark.jupyter,
    pytest.mark.keeps("one notebook with two engines for the whole module"),
]

CELLS = ["%sfm start A B", "import numpy as np"]

SAY = "#include <stdio.h>\n#include <stdlib.h>\n"


def program(line: str, body: str) -> str:
    return f"%%sfm c {line}\n{SAY}int main(int argc, char **argv) {{\n{body}\n}}"


def test_a_program(book: Notebook) -> None:
    body = 'printf("%s %s\\n", getenv("SFM_MPI_SIZE"), argv[1]); return 0;'
    text = book.text(program("-n 3 word", body))
    assert sorted(text.split("\n")[:3]) == [f"[{rank}] 3 word" for rank in range(3)]
    assert "2 word" in book.text(program("word", body))  # as many as there are engines
    assert "1 word" in book.text(program("B word", body))


def test_input_and_exit_status(book: Notebook) -> None:
    body = 'int k; if (scanf("%d", &k) != 1) return 9; printf("%d\\n", 6 * k); return k;'
    assert "42" in book.run(program("-n 1 --stdin 7", body)).text
    assert book.run(program("-n 1 --stdin 7", body)).error.endswith("ended with exit status 7")
    assert book.run(program("-n 1", body)).error.endswith("ended with exit status 9")


def test_errors_name_the_cell_and_its_line(book: Notebook) -> None:
    cell = book.run(program("-n 1", "return x;"))
    assert ":5:8: error: 'x' undeclared" in cell.shown and "| return x;" in cell.shown
    assert cell.error.startswith("CompileError: cell ") and "File" not in cell.traceback
    cell = book.run(program("-n 2", "int a[2] = {0}; return a[argc + 1];"))
    assert ", line 5: index 2 is out of bounds of 'int [2]'" in cell.shown
    wrong = "int *a = malloc(4); a[argc] = 1; return 0;"
    book.run(program("-n 2", wrong)).ok()
    cell = book.run(program("-n 2 --asan", wrong))
    assert ", line 5: writes 4 bytes outside of what malloc has given" in cell.shown


def test_stop_ends_a_program(book: Notebook) -> None:
    before = {process.pid for process in descendants(book.pid)}
    message = book.send(program("-n 2", 'puts("in"); for (;;);'))
    book.wait(message, lambda cell: cell.text.count("in") >= 2)
    book.interrupt()
    assert book.wait(message).error == "CellInterrupted: the program was stopped"
    wait_for(
        lambda: (
            not [
                process
                for process in descendants(book.pid)
                if process.pid not in before and runs(process)
            ]
        ),
        "the ranks end",
    )
    book.run("%%sfm\nprint('alive')").ok()


def test_a_cell_that_never_runs_leaves_no_process(book: Notebook, tmp_path: Path) -> None:
    before = {process.pid for process in descendants(book.pid)}

    def new() -> list[psutil.Process]:
        return [process for process in descendants(book.pid) if process.pid not in before]

    assert book.run(program("-n 2", "return y;")).error.startswith("CompileError: ")
    assert not new()
    slow = tmp_path / "cc"
    slow.write_text("#!/bin/sh\nexec sleep 1000\n")
    slow.chmod(0o700)
    book.run(f"import os; os.environ['SFM_CC'] = '{slow}'").ok()
    message = book.send(program("-n 2", 'puts("never");'))
    wait_for(lambda: "sleep" in str([process.cmdline() for process in new()]), "the compiler")
    book.interrupt()
    assert book.wait(message).error.startswith("KeyboardInterrupt")
    book.run("del os.environ['SFM_CC']").ok()
    assert not [process for process in new() if runs(process)]


def test_functions_are_called_by_later_cells_and_by_python(book: Notebook) -> None:
    code = (
        "%%sfm c\n#include <math.h>\n"
        "double norm(const double *x, int n)\n"
        "{ double s = 0; for (int i = 0; i < n; i++) s += x[i] * x[i]; return sqrt(s); }\n"
        "void scale(double *x, int n, double f) { for (int i = 0; i < n; i++) x[i] *= f; }"
    )
    assert "sfm.c.norm, sfm.c.scale in this notebook and on A, B" in book.text(code)
    called = "x = np.array([3.0, 4.0]); sfm.c.scale(x, 2, 2.0); print(sfm.c.norm(x, 2))"
    assert book.text(called).strip() == "10.0"
    assert book.text(f"%%sfm\nimport numpy as np\n{called}").count("10.0") == 2
    body = 'double v[2] = {6, 8}; printf("%g\\n", norm(v, 2)); return 0;'
    assert book.text(program("-n 1", body)).strip() == "10"


def test_a_misspelt_function_is_named_when_functions_are_loaded(book: Notebook) -> None:
    cell = book.run("%%sfm c\n#include <mpi.h>\nint wait(void)\n{ return MPI_Bariier(0); }")
    assert cell.error.startswith("CompileError: cell ") and "/" not in cell.error
    assert cell.error.endswith("did you mean MPI_Barrier?") and ":4:10: warning: " in cell.shown


def test_wrong_calls_of_functions_are_refused(book: Notebook) -> None:
    book.run("%%sfm c\nlong total(const long *x, int n) { return n ? x[n - 1] : 0; }").ok()
    assert "x.astype('i8')" in book.run("sfm.c.total(np.ones(3), 3)").error
    assert "takes a NumPy array, not list" in book.run("sfm.c.total([1], 1)").error
    assert "takes 2 arguments, not 1" in book.run("sfm.c.total(1)").error
    assert "not contiguous" in book.run("sfm.c.total(np.arange(9)[::2], 3)").error
    assert "no C cell has defined a function 'missing'" in book.run("sfm.c.missing").error


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ("c -n 0", "a number from 1 to 512"),
        ("c -q", "unrecognized"),
        ("c++ -n x", "not 'x'"),
        ("c --fast --asan", "not allowed with argument --fast"),
    ],
)
def test_wrong_words(line: str, says: str, book: Notebook) -> None:
    assert says in book.run(f"%%sfm {line}\nint main() {{}}").shown


def test_functions_that_python_calls_have_no_address_sanitizer(book: Notebook) -> None:
    shown = book.run("%%sfm c --asan\nint f(void) { return 1; }").shown
    assert "--asan is for programs, and this cell has no main" in shown


def test_cxx(book: Notebook) -> None:
    code = "%%sfm c++ -n 1\n#include <iostream>\nint main() { std::cout << 6 * 7 << std::endl; }"
    assert book.text(code).strip() == "42"
    code = "%%sfm c++\n#include <vector>\nint count(int n) { return std::vector<int>(n).size(); }"
    shown = book.text(code)
    assert "no function in this notebook" in shown and 'write `extern "C"` in front of' in shown
    assert "sfm.c.count" in book.text(code.replace("int count", 'extern "C" int count'))
    assert book.text("print(sfm.c.count(7))").strip() == "7"
