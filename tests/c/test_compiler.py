"""Sources become programs: once, with checks, and with errors that say what to do."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from sfm_kernel.c import INCLUDE, LIBMPI, tools
from sfm_kernel.c.advice import advice
from sfm_kernel.c.cache import Cache
from sfm_kernel.c.compiler import CELL, Built, Source, build, file
from sfm_kernel.c.text import declared, defines_main
from sfm_kernel.errors import CompileError

HELLO = "#include <stdio.h>\nint main(void) { puts(WORD); return 0; }\n"


@pytest.fixture
def cache(tmp_path: Path) -> Cache:
    folder = tmp_path / "cache"
    folder.mkdir(mode=0o700)
    return Cache(str(folder))


def cell(text: str, cache: Cache, **options: bool) -> Built:
    return build([Source(CELL, f"\n{text}", "c", "cell 4")], cache=cache, **options)


def out(built: Built, **environment: str) -> subprocess.CompletedProcess[str]:
    env = {**os.environ, **environment}
    return subprocess.run([built.path], capture_output=True, text=True, env=env)


def test_unchanged_sources_are_not_compiled_again(
    cache: Cache, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("word.h").write_text('#define WORD "one"\n')
    Path("prog.c").write_text('#include "word.h"\n' + HELLO)
    first = build([file("prog.c")], cache=cache)
    again = build([file("prog.c")], cache=cache)
    assert (first.compiled, again.compiled, again.path) == (True, False, first.path)
    assert out(again).stdout == "one\n"
    Path("word.h").write_text('#define WORD "two"\n')
    changed = build([file("prog.c")], cache=cache)
    assert changed.compiled and out(changed).stdout == "two\n"
    assert build([file("prog.c")], fast=True, cache=cache).compiled
    assert not [name for name in os.listdir(cache.folder) if name.startswith("new-")]


def test_a_cell_that_is_run_again_has_another_number_and_is_not_compiled(cache: Cache) -> None:
    text = "int main(void) { return 0; }"
    build([Source(CELL, text, "c", "cell 4")], cache=cache)
    assert not build([Source(CELL, text, "c", "cell 9")], cache=cache).compiled


def test_the_cache_has_a_bound(tmp_path: Path) -> None:
    folder = tmp_path / "cache"
    folder.mkdir(mode=0o700)
    small = Cache(str(folder), largest=1)
    for number in range(3):
        cell(f"int main(void) {{ return {number}; }}", small)
        for entry in folder.iterdir():
            os.utime(entry, (1, 1))  # not used for long
    cell("int main(void) { return 3; }", small)
    assert len(list(folder.iterdir())) <= 2  # its program, and the checks


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ("int a[3] = {0}; return a[argc + 4];", "index 5 is out of bounds of 'int [3]'"),
        ("int zero = argc - 1; return 1 / zero;", "division by zero"),
        ("int *p = argc > 1 ? &argc : 0; return *p;", "load through a null pointer to 'int'"),
        ("int n = argc - 2; int a[n]; a[0] = 1; return a[0];", "an array of -1 elements"),
    ],
)
def test_checks_tell_the_line_of_the_cell(line: str, says: str, cache: Cache) -> None:
    built = cell(f"int main(int argc, char **argv) {{\n{line}\n}}", cache)
    done = out(built, SFM_CELL="7\tid")
    assert (done.stderr, done.returncode) == (f"cell 7, line 3: {says}\n", 134)


def test_errors_have_the_compilers_text_and_the_names_of_the_sources(cache: Cache) -> None:
    with pytest.raises(CompileError) as found:
        cell("int main(void) { return x; }", cache)
    text = str(found.value)
    assert "cell 4:2:25: error: " in text and "return x" in text and "^" in text
    assert cache.folder not in text and os.listdir(cache.folder) == []


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("#include <gsl/gsl_rng.h>\nint main(void) {}", "apt install libgsl-dev"),
        ('#include "mine.h"\nint main(void) {}', "put the file there"),
        ("#include <vector>\nint main(void) {}", "a header of C++"),
        ("int f(void) { return 1; }", "no source has a main"),
        ("int f(void);\nint main(void) { return f(); }", "f is declared, but not defined"),
        ("int main(void) { return f(); }", "there is no function f in a header, a source or a"),
    ],
)
def test_errors_say_what_to_do(text: str, says: str, cache: Cache) -> None:
    with pytest.raises(CompileError) as found:
        cell(text, cache)
    assert says in str(found.value)


def test_what_the_compiler_has_warned_of_stands_with_an_error_of_the_linker(cache: Cache) -> None:
    with pytest.raises(CompileError) as found:
        cell("#include <mpi.h>\nint main(void)\n{ MPI_Bariier(0);\nreturn MPI_Bariier(1); }", cache)
    warned, linked = str(found.value).split("undefined reference", 1)
    assert "cell 4:4:3: warning: " in warned and "MPI_Bariier(0);" in warned
    assert "cell 4:4: " in warned and "cell 4:5: " in linked
    assert not re.search(r"\./|\bcell:|\d\.o\b", str(found.value))
    assert str(found.value).endswith(": did you mean MPI_Barrier?")


def test_names_that_llvms_linker_knows() -> None:
    text = (
        "cell 8:3:50: warning: call to undeclared function 'MPI_Bariier'; ISO C99 and later …\n"
        "ld.lld: error: undefined symbol: MPI_Bariier\n>>> referenced by cell 8:3\n"
        ">>>               0.o:(main)\n>>> did you mean: MPI_Barrier\n"
    )
    assert advice(text).endswith(": did you mean MPI_Barrier?")


def test_address_sanitizer_may_not_be_there() -> None:
    assert "apt install gcc" in advice("/usr/bin/ld: cannot find libasan_preinit.o: No such file")
    with pytest.raises(CompileError, match="--asan needs GCC or Clang"):
        tools.Compiler(("zig", "cc"), "c", zig=True).link_flags(asan=True)


def test_our_own_header_is_not_to_be_installed_from_elsewhere() -> None:
    assert "install it again" in advice("x.c:1:10: fatal error: mpi.h: No such file or directory")
    assert "install it again" in advice("x.c:1:10: fatal error: 'mpi.h' file not found")


def test_several_files_c_and_cxx(
    cache: Cache, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("half.c").write_text("int half(int x) { return x / 2; }\n")
    Path("main.cpp").write_text(
        '#include <iostream>\nextern "C" int half(int);\n'
        "int main() { std::cout << half(84) << std::endl; }\n"
    )
    assert out(build([file("main.cpp"), file("half.c")], cache=cache)).stdout == "42\n"


def test_without_a_compiler(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("SFM_CC", raising=False)
    monkeypatch.delenv("CC", raising=False)
    monkeypatch.setattr(tools, "_zig", lambda: None)
    monkeypatch.setattr(sys, "prefix", str(tmp_path))
    with pytest.raises(CompileError, match="-m pip install 'ziglang>="):
        tools.find("c")
    monkeypatch.setenv("SFM_CC", "tcc")
    with pytest.raises(CompileError, match="no compiler 'tcc', which SFM_CC names"):
        tools.find("c")


def test_a_source_is_searched_for_main_types_and_functions() -> None:
    assert defines_main("int main(argc, argv) int argc; char **argv; { }")
    assert not defines_main('void domain(void) { puts("int main() {}"); } // int main() {}')
    text = (
        "#include <math.h>\n#define N 3\ntypedef struct { double x; } P;\n"
        "static int k = 1;\nint a[] = {1, 2};\nP f(double x[N]) { if (x) { } return (P){1}; }\n"
    )
    found = declared(text, "c")
    assert found.types == ["#define N 3", "typedef struct { double x; } P;"]
    assert found.functions == {"f": "P f(double x[N])"}


def test_the_words_for_those_who_compile_themselves() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "sfm_kernel.c", "--cflags", "--libs"], capture_output=True, text=True
    )
    assert done.stdout.split()[0] == f"-I{INCLUDE}" and LIBMPI in done.stdout.split()
