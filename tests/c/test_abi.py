"""Our mpi.h and MPICH's agree in all that a program is compiled with: every constant, the layout of
a status, every prototype; and our library exports every name. The same holds for the ABI of
MPI 5.0, whose header MPICH has, too."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.c import mpich
from tests.c.building import INCLUDE, library

ROOT = Path(__file__).parents[2]
TABLES = ROOT / "sfm_kernel/native/mpi"
STATUS = {
    "count_lo": 0,
    "count_hi_and_cancelled": 4,
    "MPI_SOURCE": 8,
    "MPI_TAG": 12,
    "MPI_ERROR": 16,
}
TYPES = {
    "MPI_Comm": 4, "MPI_Datatype": 4, "MPI_Request": 4, "MPI_Info": 4, "MPI_Fint": 4,
    "MPI_File": 8, "MPI_Aint": 8, "MPI_Count": 8, "MPI_Offset": 8, "MPI_Status": 20,
}  # fmt: skip
DATA = ["MPI_UNWEIGHTED", "MPI_WEIGHTS_EMPTY", "MPI_F_STATUS_IGNORE", "MPI_F_STATUSES_IGNORE"]


def prototypes() -> list[str]:
    lines = (TABLES / "standard.txt").read_text().splitlines()
    return [line.split(" ", 1)[1] for line in lines]


def names() -> list[str]:
    """Every function that the library exports."""
    declared = [re.split(r"[ *]+", prototype.split("(")[0])[-1] for prototype in prototypes()]
    return declared + [f"P{name}" for name in declared if name.startswith("MPI_")]


def check(tmp_path: Path, header: Path, text: str, *options: str) -> None:
    """The text compiles after this mpi.h."""
    source = tmp_path / "check.c"
    source.write_text(f"#include <stddef.h>\n#include <mpi.h>\n{text}")
    command = [shutil.which("cc") or "gcc", "-std=c11", "-fsyntax-only", *options]
    done = subprocess.run([*command, f"-I{header}", source], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def values(table: str) -> str:
    """Assertions in C that the constants have the values of a table."""
    asserted = []
    for line in (TABLES / table).read_text().splitlines():
        name, _kind, value = line.split(" ")
        number = f"(long)(int){value}u" if value.startswith("0x") else value
        asserted.append(f'_Static_assert((long){name} == {number}, "{name}");')
    assert len(asserted) > 300
    return "\n".join(asserted)


@pytest.mark.parametrize("whose", ["MPICH's", "ours"])
def test_both_headers_have_the_values_of_the_table(tmp_path: Path, whose: str) -> None:
    check(tmp_path, mpich.include() if whose == "MPICH's" else INCLUDE, values("constants.txt"))


def test_so_has_the_header_of_mpi_5(tmp_path: Path) -> None:
    lacking = "COMBINER_H(INDEXED|VECTOR)_INTEGER|COMBINER_STRUCT_INTEGER|[LU]B|T_\\w+_INVALID"
    text = re.sub(rf"(?m)^.*\b(MPI_({lacking})|MPIX_\w+)\b.*$", "", values("constants_abi.txt"))
    for field, at in {"MPI_SOURCE": 0, "MPI_TAG": 4, "MPI_ERROR": 8}.items():
        text += f'\n_Static_assert(offsetof(MPI_Status, {field}) == {at}, "{field}");'
    text += '\n_Static_assert(sizeof(MPI_Status) == 32 && sizeof(MPI_Comm) == 8, "sizes");'
    check(tmp_path, mpich.include(), text, "-DMPI_ABI")


@pytest.mark.parametrize("whose", ["MPICH's", "ours"])
def test_both_headers_lay_out_types_alike(tmp_path: Path, whose: str) -> None:
    asserted = [
        f'_Static_assert(sizeof({name}) == {size}, "{name}");' for name, size in TYPES.items()
    ]
    for field, at in STATUS.items():
        asserted.append(f'_Static_assert(offsetof(MPI_Status, {field}) == {at}, "{field}");')
    check(tmp_path, mpich.include() if whose == "MPICH's" else INCLUDE, "\n".join(asserted))


@pytest.mark.parametrize("whose", ["MPICH's", "ours"])
def test_both_headers_declare_the_same_functions(tmp_path: Path, whose: str) -> None:
    """Declaring a function again is an error in C unless both agree in every type and const."""
    undefined = [f"#undef {name}" for name in names()]
    again = [f"{prototype};" for prototype in prototypes()]
    text = "\n".join(undefined + again)
    check(tmp_path, mpich.include() if whose == "MPICH's" else INCLUDE, text)


@pytest.mark.parametrize("dialect", ["c89", "c23", "c++17"])
def test_our_header_has_no_warning(tmp_path: Path, dialect: str) -> None:
    source = tmp_path / "empty.c"
    source.write_text("#include <mpi.h>\nint main(void) { return MPI_SUCCESS; }\n")
    compiler = "c++" if dialect == "c++17" else "cc"
    if shutil.which(compiler) is None:
        pytest.skip(f"no {compiler} here")
    strict = ["-Wall", "-Wextra", "-Werror", "-pedantic", "-Wno-long-long", f"-I{INCLUDE}"]
    language = ["-x", "c++" if dialect == "c++17" else "c", f"-std={dialect.replace('23', '2x')}"]
    command = [compiler, *language, "-fsyntax-only", *strict, str(source)]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_our_header_is_what_its_tables_say() -> None:
    tool = ROOT / "tools/mpi_header.py"
    done = subprocess.run([sys.executable, tool, "--compare"], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("soname", ["libmpi.so.12", "libmpi_abi.so.1"])
def test_the_library_exports_every_name(soname: str) -> None:
    """A separate process loads the library, then finds it by the name that the ABI gives it."""
    wanted = names() + DATA
    assert len(wanted) > 1000
    script = (
        "import ctypes, sys\n"
        "library = ctypes.CDLL(sys.argv[1])\n"
        "print([name for name in sys.stdin.read().split() if not hasattr(library, name)])\n"
        "print(ctypes.CDLL(sys.argv[2])._handle == library._handle)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", script, library(soname), soname],
        input=" ".join(wanted), capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert done.stdout.splitlines() == ["[]", "True"]


NULLS = """
import ctypes, json, sys
library, calls = ctypes.CDLL(sys.argv[1]), json.load(sys.stdin)
number = ctypes.byref(ctypes.c_int())
handle = ctypes.c_int if sys.argv[1].endswith(".12") else ctypes.c_void_p
library.MPI_T_init_thread(0, number)
library.MPI_Init(None, None)
for comm in json.loads(sys.argv[2]):
    library.MPI_Comm_set_errhandler(handle(comm), handle(json.loads(sys.argv[3])))
for function, parameters, null in calls:
    text = ctypes.create_string_buffer(1024)
    given = [None if name == null or not pointer else text for name, pointer in parameters]
    print(function, null, end=" ", flush=True)
    code = getattr(library, function)(*given)
    library.MPI_Error_string(code, text, number)
    print(text.value.endswith(f"{function}: argument {null} is a null pointer".encode()))
library.MPI_Finalize()
"""
"""Calls each function with one null pointer, other pointers to zeros, and zero for the rest."""


@pytest.mark.parametrize("table", ["constants.txt", "constants_abi.txt"])
def test_a_null_pointer_to_a_handle_is_an_error_in_every_function(table: str) -> None:
    handles = "Comm|Datatype|Errhandler|File|Group|Info|Message|Op|Request|Session|Win"
    handles += "|T_[cp]var_handle|T_pvar_session|T_event_registration"
    calls = []
    for prototype in prototypes():
        function, parameters = re.fullmatch(r"\w+ (\w+)\((.*)\)", prototype, re.S).groups()
        pairs = [(text.split(" ")[-1], "*" in text) for text in parameters.split(", ")]
        if " desc," in parameters:  # there, null means that a result is not wanted
            continue
        for name in re.findall(rf"\bMPI_(?:{handles})\* (\w+)(?=,|$)", parameters):
            calls.append((function, pairs, name))
    assert len(calls) > 250
    value = dict(re.findall(r"(?m)^(\w+) \w+ (\w+)$", (TABLES / table).read_text()))
    comms = [int(value[name], 0) for name in ("MPI_COMM_WORLD", "MPI_COMM_SELF")]
    soname = "libmpi_abi.so.1" if "abi" in table else "libmpi.so.12"
    words = [str(library(soname)), str(comms), str(int(value["MPI_ERRORS_RETURN"], 0))]
    command, given = [sys.executable, "-c", NULLS, *words], json.dumps(calls)
    done = subprocess.run(command, input=given, capture_output=True, text=True)
    wrong = [line for line in done.stdout.splitlines() if not line.endswith(" True")]
    assert (wrong, done.returncode, done.stderr) == ([], 0, "")
