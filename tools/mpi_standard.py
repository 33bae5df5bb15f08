"""Writes the tables that the MPI libraries and their headers are generated from.

    python tools/mpi_standard.py [MPICC [MPICC_ABI]]

needs pympistandard and MPICH's compiler wrappers, for MPICH's ABI and for the standard's.

`sfm_kernel/native/mpi/standard.txt` has every C function of the standard in a line: `early` for
those that may be called before MPI_Init and after MPI_Finalize (`-` for the others), then its
prototype. The prototypes come from pympistandard, whose licence (MIT) permits a table made from
it; the functions that later standards removed, and that old programs call, are added here.

`sfm_kernel/native/mpi/constants.txt` has every constant in a line: its name, its type, its value.
A program that was compiled against MPICH has these values in its code, so they are facts about
MPICH's ABI: this tool finds them by compiling a program that prints each. `constants_abi.txt` has
the same names as they are in the standard's own ABI (MPI 5.0, chapter 20).

All are kept in the repository: to build or install, neither package is needed.
"""

from __future__ import annotations

import re
import subprocess
import sys
import tempfile
from pathlib import Path

FOLDER = Path(__file__).resolve().parents[1] / "sfm_kernel/native/mpi"

# Functions that may be called at any time (MPI 4.1, table 11.1), and those that only compute.
EARLY = re.compile(
    r"""MPI_(
        Init | Init_thread | Initialized | Finalized | Get_version | Get_library_version
      | Info_\w+ | \w+_(toint|fromint|c2f|f2c|f082c|c2f08|f082f|f2f08)
      | Session_\w+ | Abi_\w+ | T_\w+ | Pcontrol | Abort
      | \w+_create_errhandler | Errhandler_(create|free)
      | Error_(class|string) | (Add|Remove)_error_\w+
      | Aint_\w+ | Get_address | Address | Wtime | Wtick | Status_(get|set)_\w+ | \w+_FN | DUP_FN
    )$""",
    re.VERBOSE,
)

# Removed in MPI-3, called by the programs of older courses.
REMOVED = """
int MPI_Address(void* location, MPI_Aint* address)
int MPI_Errhandler_create(MPI_Handler_function* function, MPI_Errhandler* errhandler)
int MPI_Errhandler_get(MPI_Comm comm, MPI_Errhandler* errhandler)
int MPI_Errhandler_set(MPI_Comm comm, MPI_Errhandler errhandler)
int MPI_Type_extent(MPI_Datatype datatype, MPI_Aint* extent)
int MPI_Type_hindexed(int count, int array_of_blocklengths[], \
MPI_Aint array_of_displacements[], MPI_Datatype oldtype, MPI_Datatype* newtype)
int MPI_Type_hvector(int count, int blocklength, MPI_Aint stride, MPI_Datatype oldtype, \
MPI_Datatype* newtype)
int MPI_Type_lb(MPI_Datatype datatype, MPI_Aint* displacement)
int MPI_Type_struct(int count, int array_of_blocklengths[], MPI_Aint array_of_displacements[], \
MPI_Datatype array_of_types[], MPI_Datatype* newtype)
int MPI_Type_ub(MPI_Datatype datatype, MPI_Aint* displacement)
"""

# The standard has no such name: MPICH's header gives it to MPI_COMM_DUP_FN.
ABI = """
int MPIR_Dup_fn(MPI_Comm oldcomm, int keyval, void* extra_state, void* attribute_val_in, \
void* attribute_val_out, int* flag)
"""

# Not values of the ABI: functions, formats, and the version of a library's standard.
NO_CONSTANT = re.compile(r"_FMT_|_DEFINED$|_FN(_|$)|^MPI_((SUB)?VERSION|ABI)$")

# The C types that MPICH's header gives to constants.
TYPES = (
    "MPI_Comm", "MPI_Datatype", "MPI_Group", "MPI_Op", "MPI_Errhandler", "MPI_Info", "MPI_Win",
    "MPI_Request", "MPI_Message", "MPI_Session", "MPI_File",
)  # fmt: skip


def prototypes() -> list[str]:
    """All C functions, in the order of their names."""
    import pympistandard

    pympistandard.use_api_version(1)
    standard = list(pympistandard.PROCEDURES.values())
    found = [str(procedure.express.iso_c) for procedure in standard]
    # Twins are for large counts: MPI_Send_c of MPI_Send.
    with_twins = [procedure for procedure in standard if procedure.has_embiggenment()]
    found += [str(procedure.express.embiggen.iso_c) for procedure in with_twins]
    found += [*REMOVED.strip().splitlines(), *ABI.strip().splitlines()]
    mended = [_mended(prototype) for prototype in found if "(" in prototype]
    return sorted(mended, key=lambda prototype: name(prototype).lower())


def _mended(prototype: str) -> str:
    """A prototype in C: some of pympistandard's are written for LaTeX, or lack a star."""
    prototype = prototype.replace("\\ldots", "...")
    return prototype.replace("(int argc, char argv[]", "(int argc, char* argv[]")


def name(prototype: str) -> str:
    return re.split(r"[\s*]+", prototype.split("(")[0])[-1]


# Constants that our sources name and the standard's ABI does not have. Its programs cannot use
# them, so that any number is right that no other constant of the type has.
LACKING = """
MPIX_BFLOAT16 MPI_Datatype 0x000002f2
MPIX_C_FLOAT16 MPI_Datatype 0x000002f3
MPI_COMBINER_HINDEXED_INTEGER int 118
MPI_COMBINER_HVECTOR_INTEGER int 119
MPI_COMBINER_STRUCT_INTEGER int 120
MPI_LB MPI_Datatype 0x000002f0
MPI_T_BIND_INVALID int 0
MPI_T_PVAR_CLASS_INVALID int 0
MPI_T_SCOPE_INVALID int 0
MPI_T_VERBOSITY_INVALID int 0
MPI_UB MPI_Datatype 0x000002f1
"""


def constants(mpicc: str) -> list[str]:
    """Each constant that the compiler's header defines, with its type and value."""
    header = _run(mpicc, "-E", "-dM", "-include", "mpi.h", "-xc", "/dev/null")
    names = re.findall(
        r"^#define (MPI_[A-Z0-9][A-Z0-9_]*|MPIX_\w*FLOAT16) +\S", header, re.MULTILINE
    )
    text = _run(mpicc, "-E", "-include", "mpi.h", "-xc", "/dev/null")
    for body in re.findall(r"enum \w*\s*\{(.*?)\}", text, re.DOTALL):
        if "MPI_SEND_T" not in body:  # the numbers of MPICH's functions, which no program uses
            names += re.findall(r"\bMPI_[A-Z0-9][A-Z0-9_]*", body)
    return _values(mpicc, sorted({name for name in names if not NO_CONSTANT.search(name)}))


def _values(mpicc: str, names: list[str]) -> list[str]:
    """Print the constants by a program: a handle in hex, a pointer as a number."""
    header = _run(mpicc, "-E", "-dM", "-include", "mpi.h", "-xc", "/dev/null")
    enums = "extern|typedef"
    lines = []
    for constant in names:
        body = re.search(rf"^#define {constant} +(.*)$", header, re.MULTILINE)
        value = body.group(1) if body else enums
        kind = next((type_ for type_ in TYPES if f"({type_})" in value), "int")
        if re.search(r"\w ?\*+\)|MPI_T_\w+\)(NULL|\d)", value):
            kind = "pointer"
        elif "MPI_Offset" in value:
            kind = "MPI_Offset"
        elif value in names:  # MPI_LONG_LONG is MPI_LONG_LONG_INT
            kind = next(line.split()[1] for line in _values(mpicc, [value]))
        lines.append((constant, kind))
    prints = "\n".join(
        f'printf("{constant} {kind} "); '
        + (
            f'printf("%ld\\n", (long){constant});'
            if kind in ("int", "pointer", "MPI_Offset", "MPI_File")
            else f'printf("0x%08x\\n", (unsigned)(size_t){constant});'
        )
        for constant, kind in lines
    )
    with tempfile.TemporaryDirectory() as folder:
        source, program = Path(folder) / "constants.c", Path(folder) / "constants"
        headers = "#include <stdio.h>\n#include <stddef.h>\n#include <mpi.h>\n"
        source.write_text(f"{headers}int main(void) {{{prints}\nreturn 0; }}\n")
        _run(mpicc, "-w", str(source), "-o", str(program))
        return _run(str(program)).splitlines()


def _run(*command: str) -> str:
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def main() -> None:
    mpicc, mpicc_abi = [*sys.argv[1:], *("mpicc", "mpicc_abi")[len(sys.argv) - 1 :]]
    lines = []
    for prototype in prototypes():
        is_early = EARLY.match(name(prototype).removesuffix("_c"))
        lines.append(f"{'early' if is_early else '-'} {prototype}")
    (FOLDER / "standard.txt").write_text("\n".join(lines) + "\n")
    (FOLDER / "constants.txt").write_text("\n".join(constants(mpicc)) + "\n")
    of_abi = sorted([*constants(mpicc_abi), *LACKING.split("\n")[1:-1]])
    (FOLDER / "constants_abi.txt").write_text("\n".join(of_abi) + "\n")


if __name__ == "__main__":
    main()
