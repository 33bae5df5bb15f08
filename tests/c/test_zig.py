"""The compiler of the extra ``c``, on a machine that has no other."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest

from tests.jupyter.notebook import Notebook, notebook
from tests.mpi.launching import run

pytestmark = [
    pytest.mark.skipif(importlib.util.find_spec("ziglang") is None, reason="no ziglang"),
    pytest.mark.timeout(900),  # it compiles its libraries, which no other test has to wait for
]

HELLO = """
#include <mpi.h>
#include <stdio.h>
int main(int argc, char **argv)
{
    int rank, numbers[3] = {0};
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    printf("hello %d\\n", rank);
    numbers[argc + 1] = 1;
    MPI_Finalize();
    return 0;
}
"""
THROWS = """
#include <iostream>
#include <stdexcept>
#include <vector>
int main(int argc, char **argv)
{
    std::vector<int> numbers{1, 2, 3};
    try {
        numbers.at(3 * argc);
    } catch (const std::out_of_range &) {
        std::cout << "caught" << std::endl;
    }
    if (argc > 1)
        throw std::runtime_error("thrown");
}
"""


@pytest.fixture(scope="module")
def libraries(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of the libraries that zig builds, once for this module."""
    return tmp_path_factory.mktemp("zig")


@pytest.fixture(autouse=True)
def alone(tmp_path: Path, libraries: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "bin").mkdir()
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("ZIG_GLOBAL_CACHE_DIR", str(libraries))
    for name in ("SFM_CC", "SFM_CXX", "CC", "CXX"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.chdir(tmp_path)
    Path("hello.c").write_text(HELLO)
    Path("throws.cpp").write_text(THROWS)


def test_a_program_on_two_ranks_and_its_checks() -> None:
    done = run("-n", "2", "hello.c")
    assert sorted(done.stdout.splitlines()) == ["hello 0", "hello 1"]
    assert done.stderr in ("", f"{slow('C')}\n") and done.returncode == 0
    done = run("-n", "2", "hello.c", "word")
    assert "was stopped in hello.c, line 10: index 3 is out of bounds of 'int[3]'" in done.stderr
    assert done.returncode == 134


def test_cxx_and_who_has_thrown() -> None:
    done = run("-n", "1", "throws.cpp")
    assert (done.stdout, done.returncode) == ("caught\n", 0)
    assert done.stderr in ("", f"{slow('C++')}\n")
    done = run("-n", "1", "throws.cpp", "word")
    assert "uncaught exception of type std::runtime_error: thrown" in done.stderr
    (line,) = (nth for nth, text in enumerate(THROWS.splitlines(), 1) if " throw " in text)
    assert f"was killed by SIGABRT in throws.cpp, line {line} (main)" in done.stderr
    assert done.returncode == 134


@pytest.mark.jupyter
def test_cells() -> None:
    with notebook() as book:
        check_cells(book)


def check_cells(book: Notebook) -> None:
    code = "double norm(const double *x, int n) { double s = 0; for (int i = 0; i < n; i++) "
    cell = book.run(f"%%sfm c\n#include <math.h>\n{code}s += x[i] * x[i]; return sqrt(s); }}").ok()
    assert "sfm.c.norm in this notebook" in cell.text
    called = "import numpy as np; print(sfm.c.norm(np.array([3.0, 4.0]), 2))"
    assert book.text(called).strip() == "5.0"
    body = 'double v[] = {6, 8}; printf("%g\\n", norm(v, 2)); return 0;'
    program = f"%%sfm c -n 1\n#include <stdio.h>\nint main(void) {{ {body} }}"
    assert book.text(program).strip() == "10"
    bad = book.run("%%sfm c\nint f(void) { return x; }")
    assert "use of undeclared identifier 'x'" in bad.shown
    code = "%%sfm c++ -n 1\n#include <iostream>\nint main() { std::cout << 6 * 7 << std::endl; }"
    assert "42" in book.text(code)
    code = "%%sfm c++\n#include <vector>\n"
    code += 'extern "C" int count(int n) { return std::vector<int>(n).size(); }'
    assert "sfm.c.count" in book.text(code)
    assert book.text("print(sfm.c.count(7))").strip() == "7"


def slow(language: str) -> str:
    return f"sfm: the first program in {language} takes longer: it builds a library"
