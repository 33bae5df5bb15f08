"""The launcher runs C: programs start, are refused, and end. No test here calls MPI."""

from __future__ import annotations

import os
import signal
import struct
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest

from sfm_kernel.mpi.launch import elf
from sfm_kernel.mpi.launch.native import unfit
from tests.mpi.launching import launched, lines, mpi_worlds, run
from tests.unit.processes import killed
from tests.waiting import wait_until

HELLO = """
#include <stdio.h>
#include <stdlib.h>
int twice(int);
int main(int argc, char **argv)
{
    char *rank = getenv("SFM_MPI_RANK"), *size = getenv("SFM_MPI_SIZE");
    printf("%s of %s: %s %d\\n", rank, size, argv[1], twice(21));
    return 0;
}
"""
TWICE = "int twice(int x) { return 2 * x; }\n"
DATA = """
#include <stdio.h>
#include "mine.h"
int main(void) { char s[9]; FILE *f = fopen("data.txt", "r"); fgets(s, 9, f); printf(MINE, s); }
"""
PROJECT = {"src/main.c": DATA, "include/mine.h": '#define MINE "read %s\\n"\n', "data.txt": "this"}


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    return tmp_path / "here"


def put(files: dict[str, str], folder: Path) -> None:
    for name, text in files.items():
        place = folder / name
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(text)


def test_sources_with_arguments(folder: Path) -> None:
    put({"hello.c": HELLO, "twice.c": TWICE}, folder)
    done = run("-n", "3", "hello.c", "twice.c", "word")
    assert sorted(done.stdout.splitlines()) == [f"{rank} of 3: word 42" for rank in range(3)]
    assert (done.stderr, done.returncode) == ("", 0)


def test_a_program_in_c_does_not_import_heavy_modules(folder: Path) -> None:
    put({"a.c": "int main() { return 0; }"}, folder)
    run("-n", "1", "a.c")
    words = [sys.executable, "-X", "importtime", "-m", "sfm_kernel.mpi", "-n", "2", "a.c"]
    done = subprocess.run(words, capture_output=True, text=True, check=True)
    imported = {line.rpartition("|")[2].strip() for line in done.stderr.splitlines()}
    heavy = ("asyncio", "dataclasses", "inspect", "numpy", "subprocess", "tarfile", "zipfile")
    heavy += ("zmq", "IPython", "sfm_kernel.endpoint", "sfm_kernel.mpi.launch.rank")
    assert "sfm_kernel.mpi.launch.job" in imported
    assert sorted(imported.intersection(heavy)) == []


def test_a_process_in_c_removes_worlds_whose_last_process_was_killed(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As one in Python: see tests/unit/test_cleaning.py."""
    put({"a.c": "#include <mpi.h>\nint main() { MPI_Init(0, 0); return MPI_Finalize(); }"}, folder)
    monkeypatch.setenv("SFM_DIR", str(folder / "root"))
    dead, owned = killed("w"), killed(f"run-{os.getpid()}-ab")
    done = run("-n", "1", "a.c")
    assert (done.stderr, done.returncode) == ("", 0)
    assert not dead.exists() and owned.exists()


def test_mpicc_and_pkg_config_lead_to_this_library(folder: Path) -> None:
    """As in Python: see tests/mpi/test_library.py."""
    version = "char text[MPI_MAX_LIBRARY_VERSION_STRING]; int length;"
    version += " MPI_Get_library_version(text, &length); puts(text); return 0;"
    build = "mpicc v.c -o v && ./v && ls ${PKG_CONFIG_PATH%%:*}"
    put({"v.c": "#include <mpi.h>\n#include <stdio.h>\nint main() { " + version + " }"}, folder)
    put({"a.c": f'#include <stdlib.h>\nint main() {{ return system("{build}"); }}'}, folder)
    done = run("-n", "1", "a.c")
    ours = "sfm-kernel, a part of MPI 4.1 in MPICH's ABI\n"
    assert (done.stdout, done.stderr) == (ours + "mpi.pc\nmpich.pc\n", "")


def test_folders_and_archives_with_their_data(folder: Path) -> None:
    put(PROJECT, folder / "project")
    with zipfile.ZipFile("project.zip", "w") as archive, tarfile.open("p.tar.gz", "w:gz") as tape:
        for name in PROJECT:
            archive.write(folder / "project" / name, f"project/{name}")
            tape.add(folder / "project" / name, name)
    for name in ("project", "project.zip", "p.tar.gz"):
        done = run("-n", "2", name)
        assert (done.stdout, done.stderr, done.returncode) == ("read this\n" * 2, "", 0), name


def test_a_folder_of_several_programs(folder: Path) -> None:
    put({"all/a.c": "int main() {}", "all/b.c": "int main() {}"}, folder)
    done = run("-n", "2", "all")
    assert "all holds 2 programs (a.c, b.c): name the source files of one" in done.stderr
    assert done.returncode == 1


def test_a_compiled_program(folder: Path) -> None:
    assert run("-n", "2", "/bin/echo", "x").stdout == "x\nx\n"
    whole = Path("/bin/echo").read_bytes()
    other = bytearray(whole)
    other[18:20] = struct.pack("<H", 183 if elf.read("/bin/echo").machine != "aarch64" else 62)
    Path("other").write_bytes(other)
    Path("cut").write_bytes(whole[:70])
    for name in ("other", "cut"):
        os.chmod(name, 0o755)
    assert "was compiled for" in unfit("other") and "compile it here" in unfit("other")
    assert "it is damaged" in unfit("cut")
    assert "may not be run" in unfit(_without_x("plain", whole))


def _without_x(name: str, data: bytes) -> str:
    Path(name).write_bytes(data)
    os.chmod(name, 0o644)
    # root may run nothing without the bit either
    return name


@pytest.mark.parametrize("library", ["libmpi.so.40", "libmpi_abi.so.0"])
def test_a_program_of_another_mpi(library: str, folder: Path) -> None:
    put({"main.c": "int f(void); int main(void) { return f(); }", "f.c": "int f(void) {return 0;}"},
        folder)  # fmt: skip
    os.system(f"cc -shared -fPIC -Wl,-soname,{library} f.c -o {library} && cc main.c ./{library}")
    done = run("-n", "2", "./a.out")
    assert f"({library}); our library has the ABI of MPICH" in done.stderr
    assert done.returncode == 1


def test_how_c_ranks_end(folder: Path) -> None:
    put({"end.c": "#include <stdlib.h>\n#include <signal.h>\n#include <unistd.h>\n"
         'int main(int c, char **v) { if (*getenv("SFM_MPI_RANK") == \'0\') pause();\n'
         "if (c > 1) raise(SIGKILL);\nreturn 3; }"}, folder)  # fmt: skip
    done = run("-n", "2", "end.c")
    assert done.stderr == "sfm: rank 1 ended with exit status 3; the other ranks were ended\n"
    assert done.returncode == 3
    done = run("-n", "2", "end.c", "x")
    assert "sfm: rank 1 was killed by SIGKILL" in done.stderr and done.returncode == 137
    assert mpi_worlds() == []


def test_a_check_ends_all(folder: Path) -> None:
    put({"b.c": "#include <unistd.h>\nint main(int c, char **v) {\nint a[2] = {0};\n"
         "if (a[c + 1]) return 1; pause(); }"}, folder)  # fmt: skip
    done = run("-n", "2", "b.c")
    assert "was stopped in b.c, line 4: index 2 is out of bounds of 'int [2]'" in done.stderr
    assert done.returncode == 134
    with launched("-n", "1", "--fast", "b.c") as process:
        process.send_signal(signal.SIGTERM)
        process.communicate()


def test_an_array_of_no_elements_is_no_error(folder: Path) -> None:
    put({"vla.c": "int main(int c, char **v) { int a[c - 1]; return sizeof a; }"}, folder)
    done = run("-n", "2", "vla.c")
    assert (done.stderr, done.returncode) == ("", 0)


def test_lines_come_as_they_are_written_and_questions_before_their_answers(folder: Path) -> None:
    put({"ask.c": '#include <stdio.h>\nint main() { int k; puts("a"); printf("how many? ");\n'
         'if (scanf("%d", &k) == 1) printf("%d\\n", k); getchar(); getchar(); }'},
        folder)  # fmt: skip
    with launched("-n", "1", "ask.c") as process:
        assert lines(process, 1) == ["a\n"]
        assert process.stdout is not None and process.stdin is not None
        assert process.stdout.read(9) == "how many?"
        process.stdin.write("7\n")
        process.stdin.flush()
        assert process.stdout.readline() == " 7\n"
        process.stdin.close()
        assert process.wait() == 0


def test_stop_ends_a_loop_and_leaves_nothing(folder: Path) -> None:
    put({"loop.c": '#include <stdio.h>\nint main() { puts("in"); for (;;); }'}, folder)
    with launched("-n", "2", "loop.c") as process:
        assert lines(process, 2) == ["in\n"] * 2
        process.send_signal(signal.SIGINT)
        assert process.wait() == 130
    wait_until(lambda: mpi_worlds() == [])


def test_an_error_of_the_compiler_is_all_that_is_shown(folder: Path) -> None:
    put({"bad.c": "int main() { return x; }\n"}, folder)
    done = run("-n", "2", "bad.c")
    assert "bad.c:1:21: error:" in done.stderr and "Traceback" not in done.stderr
    assert done.returncode == 1
