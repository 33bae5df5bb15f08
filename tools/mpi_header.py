"""Writes mpi.h from the same tables as the MPI library.

    python tools/mpi_header.py              writes sfm_kernel/c/include/mpi.h
    python tools/mpi_header.py --compare    fails if the file differs from that

Constants come from `constants.txt`, prototypes from `standard.txt` (tools/mpi_standard.py). This
file has the rest: types, the status, callbacks, macros. Names, values and layout are those of
MPICH's ABI; tests/c/test_abi.py compiles both headers and compares them.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
TABLES = ROOT / "sfm_kernel/native/mpi"
HEADER = ROOT / "sfm_kernel/c/include/mpi.h"

BEGINNING = """\
/* MPI for programs that run on sfm-kernel. Made by tools/mpi_header.py: change that instead.
 *
 * Values and layout are those of MPICH's ABI, so that what is compiled with this header runs on
 * MPICH too, and what was compiled with MPICH's runs here. */
#ifndef SFM_MPI_H
#define SFM_MPI_H
#define MPI_INCLUDED /* what other headers ask for */

#if defined(__cplusplus)
extern "C" {
#endif

#define MPI_VERSION 4
#define MPI_SUBVERSION 1

/* Handles */
typedef int MPI_Comm;
typedef int MPI_Datatype;
typedef int MPI_Errhandler;
typedef int MPI_Group;
typedef int MPI_Info;
typedef int MPI_Message;
typedef int MPI_Op;
typedef int MPI_Request;
typedef int MPI_Session;
typedef int MPI_Win;
typedef struct ADIOI_FileD *MPI_File;

typedef long MPI_Aint;
typedef long long MPI_Count;
typedef long long MPI_Offset;
typedef int MPI_Fint;

typedef struct MPI_Status {
    int count_lo;               /* not for programs: MPI_Get_count */
    int count_hi_and_cancelled; /* not for programs: MPI_Test_cancelled */
    int MPI_SOURCE;
    int MPI_TAG;
    int MPI_ERROR;
} MPI_Status;

typedef struct MPI_F08_status {
    MPI_Fint count_lo;
    MPI_Fint count_hi_and_cancelled;
    MPI_Fint MPI_SOURCE;
    MPI_Fint MPI_TAG;
    MPI_Fint MPI_ERROR;
} MPI_F08_status;

/* Functions that a program gives to MPI */
typedef void(MPI_User_function)(void *invec, void *inoutvec, int *len, MPI_Datatype *datatype);
typedef void(MPI_User_function_c)(void *invec, void *inoutvec, MPI_Count *len,
                                  MPI_Datatype *datatype);
typedef int(MPI_Comm_copy_attr_function)(MPI_Comm, int, void *, void *, void *, int *);
typedef int(MPI_Comm_delete_attr_function)(MPI_Comm, int, void *, void *);
typedef int(MPI_Type_copy_attr_function)(MPI_Datatype, int, void *, void *, void *, int *);
typedef int(MPI_Type_delete_attr_function)(MPI_Datatype, int, void *, void *);
typedef int(MPI_Win_copy_attr_function)(MPI_Win, int, void *, void *, void *, int *);
typedef int(MPI_Win_delete_attr_function)(MPI_Win, int, void *, void *);
typedef MPI_Comm_copy_attr_function MPI_Copy_function;
typedef MPI_Comm_delete_attr_function MPI_Delete_function;
typedef void(MPI_Comm_errhandler_function)(MPI_Comm *, int *, ...);
typedef void(MPI_File_errhandler_function)(MPI_File *, int *, ...);
typedef void(MPI_Win_errhandler_function)(MPI_Win *, int *, ...);
typedef void(MPI_Session_errhandler_function)(MPI_Session *, int *, ...);
typedef MPI_Comm_errhandler_function MPI_Handler_function;
typedef MPI_Comm_errhandler_function MPI_Comm_errhandler_fn;
typedef MPI_File_errhandler_function MPI_File_errhandler_fn;
typedef MPI_Win_errhandler_function MPI_Win_errhandler_fn;
typedef MPI_Session_errhandler_function MPI_Session_errhandler_fn;
typedef int(MPI_Grequest_query_function)(void *extra_state, MPI_Status *status);
typedef int(MPI_Grequest_free_function)(void *extra_state);
typedef int(MPI_Grequest_cancel_function)(void *extra_state, int complete);
typedef int(MPI_Datarep_conversion_function)(void *, MPI_Datatype, int, void *, MPI_Offset,
                                             void *);
typedef int(MPI_Datarep_conversion_function_c)(void *, MPI_Datatype, MPI_Count, void *, MPI_Offset,
                                               void *);
typedef int(MPI_Datarep_extent_function)(MPI_Datatype, MPI_Aint *, void *);

/* The tool information interface */
typedef struct MPIR_T_enum_s *MPI_T_enum;
typedef struct MPIR_T_cvar_handle_s *MPI_T_cvar_handle;
typedef struct MPIR_T_pvar_handle_s *MPI_T_pvar_handle;
typedef struct MPIR_T_pvar_session_s *MPI_T_pvar_session;
typedef struct MPIR_T_event_registration_s *MPI_T_event_registration;
typedef struct MPIR_T_event_instance_s *MPI_T_event_instance;
typedef int MPI_T_cb_safety;
typedef int MPI_T_source_order;
typedef void(MPI_T_event_cb_function)(MPI_T_event_instance, MPI_T_event_registration,
                                      MPI_T_cb_safety, void *);
typedef void(MPI_T_event_free_cb_function)(MPI_T_event_registration, MPI_T_cb_safety, void *);
typedef void(MPI_T_event_dropped_cb_function)(MPI_Count, MPI_T_event_registration, int,
                                              MPI_T_cb_safety, void *);

/* Constants */
"""

MIDDLE = """
#define MPI_NULL_COPY_FN ((MPI_Copy_function *)0)
#define MPI_NULL_DELETE_FN ((MPI_Delete_function *)0)
#define MPI_DUP_FN MPIR_Dup_fn
#define MPI_COMM_NULL_COPY_FN ((MPI_Comm_copy_attr_function *)0)
#define MPI_COMM_NULL_DELETE_FN ((MPI_Comm_delete_attr_function *)0)
#define MPI_COMM_DUP_FN ((MPI_Comm_copy_attr_function *)MPI_DUP_FN)
#define MPI_TYPE_NULL_COPY_FN ((MPI_Type_copy_attr_function *)0)
#define MPI_TYPE_NULL_DELETE_FN ((MPI_Type_delete_attr_function *)0)
#define MPI_TYPE_DUP_FN ((MPI_Type_copy_attr_function *)MPI_DUP_FN)
#define MPI_WIN_NULL_COPY_FN ((MPI_Win_copy_attr_function *)0)
#define MPI_WIN_NULL_DELETE_FN ((MPI_Win_delete_attr_function *)0)
#define MPI_WIN_DUP_FN ((MPI_Win_copy_attr_function *)MPI_DUP_FN)
#define MPI_CONVERSION_FN_NULL ((MPI_Datarep_conversion_function *)0)
#define MPI_CONVERSION_FN_NULL_C ((MPI_Datarep_conversion_function_c *)0)

extern int *const MPI_UNWEIGHTED;
extern int *const MPI_WEIGHTS_EMPTY;
extern MPI_Fint *MPI_F_STATUS_IGNORE;
extern MPI_Fint *MPI_F_STATUSES_IGNORE;
extern struct MPIR_T_pvar_handle_s *const MPI_T_PVAR_ALL_HANDLES;

/* Functions */
"""

END = """
#if defined(__cplusplus)
}
#endif

#endif
"""

# The C type of a constant that is a pointer.
POINTERS = {
    "MPI_STATUS_IGNORE": "MPI_Status *",
    "MPI_STATUSES_IGNORE": "MPI_Status *",
    "MPI_ERRCODES_IGNORE": "int *",
    "MPI_ARGV_NULL": "char **",
    "MPI_ARGVS_NULL": "char ***",
    "MPI_T_ENUM_NULL": "MPI_T_enum",
    "MPI_T_CVAR_HANDLE_NULL": "MPI_T_cvar_handle",
    "MPI_T_PVAR_HANDLE_NULL": "MPI_T_pvar_handle",
    "MPI_T_PVAR_SESSION_NULL": "MPI_T_pvar_session",
}
WIDTH = 100


def header() -> str:
    """The text of mpi.h."""
    constants = (line.split(" ") for line in (TABLES / "constants.txt").read_text().splitlines())
    text = BEGINNING
    text += "".join(f"#define {name} {_value(name, *rest)}\n" for name, *rest in constants)
    text += MIDDLE
    for line in (TABLES / "standard.txt").read_text().splitlines():
        prototype = line.split(" ", 1)[1]
        text += _wrapped(prototype)
        if "MPIR_" not in prototype:
            text += _wrapped(re.sub(r" (MPI_\w+\()", r" P\1", prototype))
    return text + END


def _value(name: str, kind: str, value: str) -> str:
    if kind == "int":
        return value if not value.startswith("-") else f"({value})"
    if kind == "pointer":
        return f"(({POINTERS.get(name, 'void *')}){value})"
    return f"(({kind}){value})"


def _wrapped(prototype: str) -> str:
    """A prototype as a declaration, in lines of at most WIDTH."""
    head, rest = prototype.split("(", 1)
    lines = [head + "("]
    parameters = rest.removesuffix(")").split(", ")
    for number, parameter in enumerate(parameters):
        last = number == len(parameters) - 1
        text = _star(parameter) + (");" if last else ", ")
        if len(lines[-1] + text.rstrip()) > WIDTH:
            lines[-1] = lines[-1].rstrip()
            lines.append(" " * (len(head) + 1) if len(head) < WIDTH // 2 else "    ")
        lines[-1] += text
    return "\n".join(lines) + "\n"


def _star(parameter: str) -> str:
    """`void* buf` as C programmers write it: `void *buf`.

    An array of statuses becomes a pointer: MPI_STATUSES_IGNORE is not an array, and compilers warn.
    """
    kind, _, name = parameter.rpartition(" ")
    if kind == "MPI_Status" and name.endswith("[]"):
        kind, name = "MPI_Status*", name.removesuffix("[]")
    stars = len(kind) - len(kind.rstrip("*"))
    return f"{kind.rstrip('*')} {'*' * stars}{name}" if kind else name


def main() -> None:
    if "--compare" in sys.argv:
        if not HEADER.exists() or HEADER.read_text() != header():
            sys.exit(f"{HEADER} does not match its tables: run python tools/mpi_header.py")
        return
    HEADER.parent.mkdir(parents=True, exist_ok=True)
    HEADER.write_text(header())


if __name__ == "__main__":
    main()
