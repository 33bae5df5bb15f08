"""MPI has every name of mpi4py's, with a text that says what it is."""

from __future__ import annotations

import ast
import inspect
import json
import operator
import subprocess
import sys
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from types import FunctionType
from typing import Any

import numpy as np
import pytest

from sfm_kernel.mpi import MPI
from sfm_kernel.mpi.base import constants, general

INTERNAL = {
    "__pyx_capi__",  # of C
    "_comm_lock",  # how it guards its own collectives of objects
    "_comm_lock_table",
    "_commctx_intra",
    "_commctx_inter",
    "_keyval_registry",
    "_typedict",
    "_typedict_c",
    "_typedict_f",
}
"""Names of mpi4py's own inside."""

OF_CYTHON = {"__pyx_vtable__", "__reduce_cython__", "__setstate_cython__", "__test__"}


THEIRS = """
import inspect, json, mpi4py
mpi4py.rc.initialize = False
from mpi4py import MPI
print(json.dumps({
    "names": dir(MPI),
    "members": {name: dir(cls) for name, cls in inspect.getmembers(MPI, inspect.isclass)},
    "numbers": {name: one for name, one in vars(MPI).items() if type(one) is int},
    "vendor": MPI.get_vendor()[0],
}))
"""


def names(found: list[str]) -> set[str]:
    return {name for name in found if not name.startswith("__")} - INTERNAL - OF_CYTHON


@pytest.fixture(scope="module")
def theirs() -> Any:
    """What mpi4py has; asked in another process, which does not start MPI."""
    if find_spec("mpi4py") is None:
        pytest.skip("mpi4py is not installed")
    found = subprocess.run([sys.executable, "-c", THEIRS], capture_output=True, text=True)
    if found.returncode:
        pytest.skip(f"mpi4py cannot be imported: {found.stderr}")
    return json.loads(found.stdout)


def test_every_name_of_mpi4py_is_here(theirs: Any) -> None:
    assert names(theirs["names"]) <= names(dir(MPI))
    missing = {
        f"{name}.{member}"
        for name, members in theirs["members"].items()
        for member in names(members) - names(dir(getattr(MPI, name)))
    }
    assert not missing


def test_arguments_have_the_names_of_mpi4py() -> None:
    spec = find_spec("mpi4py")
    if spec is None or spec.origin is None:
        pytest.skip("mpi4py is not installed")
    stub = Path(spec.origin).with_name("MPI.pyi")
    other = []
    for where, function in functions(ast.parse(stub.read_text())):
        mine = [one for one in signature(MPI, where).parameters if one != "self"]
        given = [one.arg for one in (*function.args.args, *function.args.kwonlyargs)]
        named = [one for one in given if one not in ("self", "cls")]
        if mine[-2:] != ["args", "kwds"] and mine[: len(named)] != named:
            other.append((where, named, mine))
    assert not other


def functions(module: ast.Module) -> Iterator[tuple[str, ast.FunctionDef]]:
    """The functions and methods of a stub that have a name, and what they are called."""
    for one in module.body:
        for part in one.body if isinstance(one, ast.ClassDef) else [one]:
            if isinstance(part, ast.FunctionDef) and not part.name.startswith("_"):
                is_property = any(ast.unparse(by) == "property" for by in part.decorator_list)
                if not is_property and not any(arg.arg for arg in part.args.posonlyargs[1:]):
                    yield f"{one.name}.{part.name}" if part is not one else part.name, part


def signature(module: Any, where: str) -> inspect.Signature:
    return inspect.signature(operator.attrgetter(where)(module))


def test_nothing_else_is_public(theirs: Any) -> None:
    assert not {name for name in names(dir(MPI)) - names(theirs["names"]) if name[0] != "_"}


def test_constants_have_the_values_that_programs_know(theirs: Any) -> None:
    if theirs["vendor"] != "MPICH":
        pytest.skip("the values are MPICH's")
    own = {"UNWEIGHTED", "WEIGHTS_EMPTY", "ERR_ABI", "ERR_REVOKED"}
    own |= {"ERR_PROC_FAILED", "ERR_PROC_FAILED_PENDING"}  # MPICH leaves them undefined
    for name, value in vars(constants).items():
        if name.isupper() and name not in own:
            assert theirs["numbers"][name] == value, name


def test_everything_says_what_it_is() -> None:
    silent = []
    for name, thing in vars(MPI).items():
        if name[0] == "_" or not isinstance(thing, (type, FunctionType)):
            continue
        if not inspect.getdoc(thing):
            silent.append(name)
        if isinstance(thing, type):
            silent += [
                f"{name}.{member}"
                for member in names(dir(thing))
                if isinstance(
                    inspect.getattr_static(thing, member),
                    (FunctionType, classmethod, staticmethod, property),
                )
                and member[0] != "_"
                and not inspect.getdoc(getattr(thing, member))
            ]
    assert not silent


def test_classes_are_pickled_as_from_here() -> None:
    for name, thing in vars(MPI).items():
        if isinstance(thing, type) and name[0] != "_":
            assert thing.__module__ == MPI.__name__
            assert getattr(MPI, thing.__name__) is thing
    assert MPI.memory is MPI.buffer


def test_importing_joins_nothing_and_loads_little() -> None:
    program = (
        "import sys; from sfm_kernel.mpi import MPI; from sfm_kernel.mpi.engine import process;"
        "assert process.current() is None and MPI.Is_initialized() and not MPI.Is_finalized();"
        "print(sorted({'zmq', 'IPython', 'pandas', 'scipy', 'mpi4py'} & set(sys.modules)))"
    )
    found = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert (found.stdout, found.stderr) == ("[]\n", "")


@pytest.mark.parametrize(
    "call",
    [
        lambda: MPI.Win.Create(bytearray(8)),
        lambda: MPI.Win.Allocate(8, comm=MPI.COMM_NULL),
        lambda: MPI.File.Open(MPI.COMM_NULL, "file"),
        MPI.WIN_NULL.Free,
        lambda: MPI.FILE_NULL.size,
        MPI.COMM_NULL.Revoke,
        lambda: MPI.Intracomm().Spawn("program"),
        lambda: MPI.Comm.Join(0),
        MPI.Open_port,
        lambda: MPI.Register_datarep("mine", None, None, len),
    ],
)
def test_what_is_not_offered_says_what_to_do_instead(call: Any) -> None:
    with pytest.raises(MPI.Exception, match=r"MPI\.\S+ is not offered here: \w+") as caught:
        call()
    assert caught.value.Get_error_class() == MPI.ERR_UNSUPPORTED_OPERATION
    assert isinstance(caught.value, NotImplementedError)


def test_files_that_are_opened_later_have_a_handler() -> None:
    before = MPI.FILE_NULL.Get_errhandler()
    assert before == MPI.ERRORS_RETURN
    MPI.FILE_NULL.Set_errhandler(MPI.ERRORS_ARE_FATAL)
    assert MPI.FILE_NULL.Get_errhandler() == MPI.ERRORS_ARE_FATAL
    MPI.FILE_NULL.Set_errhandler(before)


@pytest.mark.parametrize(
    ("nnodes", "dims", "extents"),
    [
        (12, 3, [3, 2, 2]),
        (72, 2, [9, 8]),
        (1000, 4, [8, 5, 5, 5]),
        (100, 4, [5, 5, 2, 2]),
        (37, 2, [37, 1]),
        (2**30, 3, [1024, 1024, 1024]),
        (12, [0, 2], [6, 2]),
        (12, (2, 0, 0), [2, 3, 2]),
        (6, [2, 3], [2, 3]),  # nothing to find
        (5, 0, []),
        (0, [0], [0]),
        (np.int64(12), np.int64(2), [4, 3]),
        (12, np.array([0]), [12]),
    ],
)
def test_extents_of_grids(nnodes: int, dims: Any, extents: list[int]) -> None:
    assert MPI.Compute_dims(nnodes, dims) == extents


@pytest.mark.parametrize(("nnodes", "dims"), [(12, [0, 5]), (5, [-1, 0]), (5, [2, 3])])
def test_extents_that_are_no_grid(nnodes: int, dims: list[int]) -> None:
    with pytest.raises(MPI.Exception) as caught:
        MPI.Compute_dims(nnodes, dims)
    assert caught.value == MPI.ERR_DIMS


def test_general_calls() -> None:
    assert MPI.Get_version() == (MPI.VERSION, MPI.SUBVERSION)
    assert MPI.get_vendor()[0] in MPI.Get_library_version()
    assert MPI.Query_thread() == MPI.THREAD_MULTIPLE and MPI.Is_thread_main() in (True, False)
    assert 0 < MPI.Wtick() < 1 and MPI.Wtime() <= MPI.Wtime()
    assert MPI.Get_processor_name() and MPI.Get_abi_info()["mpi_aint_size"] == "8"
    MPI.Pcontrol(1)
    with pytest.raises(MPI.Exception):
        MPI.Pcontrol(3)
    with pytest.raises(MPI.Exception, match="already"):
        MPI.Init()


def test_memory() -> None:
    memory = MPI.Alloc_mem(16)
    memory[:] = 1
    assert memory.tobytes() == b"\1" * 16 and MPI._sizeof(MPI.Comm) == MPI._sizeof(MPI.Status())
    MPI.Free_mem(memory)
    assert len(memory) == 0
    for wrong in (None, bytearray(3)):
        with pytest.raises(TypeError):
            MPI.Free_mem(wrong)  # type: ignore[arg-type]
    with pytest.raises(MPI.Exception):
        MPI.Alloc_mem(-1)
    with pytest.raises(TypeError):
        MPI._sizeof(None)


def test_the_options_that_are_obeyed(monkeypatch: pytest.MonkeyPatch) -> None:
    from types import SimpleNamespace

    from sfm_kernel.mpi.base import errhandler, options

    assert general._phase == "active"
    for errors, handler in (("exception", "RETURN"), ("fatal", "ARE_FATAL"), ("abort", "ABORT")):
        monkeypatch.setitem(sys.modules, "mpi4py.rc", SimpleNamespace(errors=errors))  # type: ignore[arg-type]
        assert errhandler.default() is getattr(MPI, f"ERRORS_{handler}")._state
        assert options.option("initialize") is True
