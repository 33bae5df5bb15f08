"""Datatypes: the predefined ones, every constructor, packing, and sending from one to another."""

from __future__ import annotations

from typing import Any

import numpy as np
from cases import Cases, blank, error_name, named, raised, text
from mpi4py import MPI

cases = Cases()
OPTIONAL = ["BFLOAT16_T", "COMPLEX4", "INTEGER16", "REAL2"] + [
    f"LOGICAL{size}" for size in (1, 2, 4, 8, 16)
]
"""An MPI need not have them, and MPICH has none of them."""

PREDEFINED = sorted(
    name
    for name, value in vars(MPI).items()
    if isinstance(value, MPI.Datatype) and not name.startswith("_") and name not in OPTIONAL
)
COMBINERS = sorted(name for name in dir(MPI) if name.startswith("COMBINER_"))
ORDERS = ("ORDER_C", "ORDER_F")


def predefined() -> None:
    cases.add("names", PREDEFINED)
    for name in PREDEFINED:
        datatype = getattr(MPI, name)
        cases.add(f"type {name}", datatype, bool(datatype))
        if datatype == MPI.DATATYPE_NULL:
            cases.error(f"type {name}", datatype.Get_size)
            continue
        cases.add(f"type {name}", datatype.size, datatype.Get_extent(), datatype.ub)
        cases.add(
            f"type {name}", datatype.Get_true_extent(), datatype.true_extent, datatype.true_ub
        )
        cases.add(f"type {name}", datatype.is_named, datatype.is_predefined)
        cases.add(f"type {name}", combiner(datatype), datatype.envelope[1:4])
        if name not in ("PACKED", "LOGICAL", "CHARACTER"):
            cases.add(f"type {name}", datatype.typestr, datatype.typechar)
        cases.error(f"type {name}", datatype.Free)
    for code in (*"?bhilqBHILQefdgFDGcSUpnP", "i4", "f8", "c16", "u2", "b1", "no code"):
        cases.add("fromcode", code, raised(MPI.Datatype.fromcode, code))
        if raised(MPI.Datatype.fromcode, code) == "none":
            cases.add("fromcode", MPI.Datatype.fromcode(code))
    for name in ("INT", "DOUBLE", "C_DOUBLE_COMPLEX", "BYTE", "SHORT_INT", "DATATYPE_NULL"):
        cases.error(f"tocode {name}", getattr(MPI, name).tocode)
    cases.add("tocode", MPI.INT.tocode(), MPI.DOUBLE.tocode(), MPI.C_BOOL.tocode())
    for kind in ("INTEGER", "REAL", "COMPLEX", "LOGICAL"):
        for size in (1, 2, 3, 4, 8, 16, 32):
            call = MPI.Datatype.Match_size
            kinds = getattr(MPI, f"TYPECLASS_{kind}"), size
            found = raised(call, *kinds)
            if kind != "LOGICAL":  # which of those there are is a choice of the compiler
                cases.add("Match_size", found if found != "none" else call(*kinds).size)
    for digits in (2, 4, 9, 18):
        cases.add("Fortran", MPI.Datatype.Create_f90_integer(digits).size)
    for digits, exponent in ((6, 30), (15, 300), (MPI.UNDEFINED, 30), (6, MPI.UNDEFINED)):
        real = MPI.Datatype.Create_f90_real(digits, exponent)
        number = MPI.Datatype.Create_f90_complex(digits, exponent)
        cases.add("Fortran", real.size, number.size, combiner(real), combiner(number))
        cases.add("Fortran", real.is_named, real.is_predefined, real.envelope[1:4])
    for value, index in ((MPI.DOUBLE, MPI.INT), (MPI.FLOAT, MPI.INT), (MPI.INT, MPI.INT)):
        pair = MPI.Datatype.Get_value_index(value, index)
        cases.add("Get_value_index", pair)


def combiner(datatype: MPI.Datatype) -> Any:
    return named(datatype.combiner, *COMBINERS).removeprefix("COMBINER_")


def derived() -> dict[str, MPI.Datatype]:
    """Datatypes of many shapes, over a few elements each."""
    integer, double, byte = MPI.INT, MPI.DOUBLE, MPI.BYTE
    pair = MPI.Datatype.Create_struct([1, 2], [0, 8], [integer, double])
    made = {
        "dup": integer.Dup(),
        "Create_dup": integer.Create_vector(2, 1, 3).Create_dup(),
        "contiguous": integer.Create_contiguous(3),
        "contiguous of none": integer.Create_contiguous(0),
        "vector": integer.Create_vector(3, 2, 4),
        "vector backwards": integer.Create_vector(3, 1, -2),
        "hvector": integer.Create_hvector(2, 2, 12),
        "indexed": integer.Create_indexed([2, 1, 3], [0, 4, 7]),
        "indexed, unordered": integer.Create_indexed([1, 2], [5, 1]),
        "indexed of none": integer.Create_indexed([], []),
        "hindexed": integer.Create_hindexed([1, 2], [4, 16]),
        "indexed block": integer.Create_indexed_block(2, [0, 3, 6]),
        "hindexed block": integer.Create_hindexed_block(1, [0, 8, 20]),
        "struct": pair,
        "struct of bytes": MPI.Datatype.Create_struct([3, 1], [1, 8], [byte, double]),
        "struct, backwards": MPI.Datatype.Create_struct([1, 1], [8, 0], [double, integer]),
        "subarray C": integer.Create_subarray([4, 5], [2, 3], [1, 1], MPI.ORDER_C),
        "subarray F": integer.Create_subarray([4, 5], [2, 3], [1, 1], MPI.ORDER_F),
        "subarray 3": integer.Create_subarray([2, 3, 4], [1, 2, 2], [1, 0, 2]),
        "resized": integer.Create_resized(-4, 20),
        "Resized": integer.Create_vector(2, 1, 2).Resized(0, 4),
        "vector of struct": pair.Create_vector(2, 1, 2),
        "vector of vector": integer.Create_vector(2, 1, 2).Create_hvector(2, 1, 40),
        "contiguous of resized": integer.Create_resized(0, 12).Create_contiguous(2),
        "struct of resized": MPI.Datatype.Create_struct(
            [2, 1], [0, 24], [byte.Create_resized(0, 4), integer]
        ),
    }
    default, none = MPI.DISTRIBUTE_DFLT_DARG, MPI.DISTRIBUTE_NONE
    for kind in ("BLOCK", "CYCLIC"):
        for rank in range(3):
            distributions = [getattr(MPI, f"DISTRIBUTE_{kind}"), none]
            made[f"darray {kind} {rank}"] = integer.Create_darray(
                3, rank, [7, 4], distributions, [default] * 2, [3, 1]
            )
    made["darray cyclic(2), F"] = integer.Create_darray(
        4, 3, [8, 6], [MPI.DISTRIBUTE_CYCLIC, MPI.DISTRIBUTE_BLOCK], [2, 4], [2, 2], MPI.ORDER_F
    )
    return made


def contents(datatype: MPI.Datatype) -> str:
    integers, addresses, counts, types = datatype.Get_contents()
    return text([integers, addresses, counts, [inner.size for inner in types]])


def decoded(datatype: MPI.Datatype) -> str:
    base, kind, parameters = datatype.decode()
    parameters.pop("datatypes", None)
    for name, value in parameters.items():
        parameters[name] = named(value, *ORDERS) if name == "order" else value
    return text([base, kind, parameters])


def shapes() -> None:
    """Each derived datatype's description of itself, and the bytes of memory that it takes."""
    memory = np.arange(400, dtype=np.uint8)
    for name, datatype in derived().items():
        case = f"derived {name}"
        cases.add(case, datatype.size, datatype.Get_extent(), datatype.Get_true_extent())
        cases.add(case, combiner(datatype), datatype.Get_envelope()[1:4])
        cases.add(case, datatype.lb, datatype.ub, datatype.extent, datatype.true_lb)
        cases.add(case, datatype.is_named, datatype.is_predefined, datatype.Get_name() == "")
        cases.add(case, datatype.is_named or contents(datatype), decoded(datatype))
        datatype.Commit()
        if datatype.lb >= 0 and 0 < datatype.true_ub <= datatype.extent:
            pack(name, datatype, memory[: 2 * datatype.extent])
        datatype.Free()
        cases.add(case, datatype)


def pack(name: str, datatype: MPI.Datatype, memory: np.ndarray) -> None:
    packed, comm = bytearray(datatype.Pack_size(2, MPI.COMM_SELF)), MPI.COMM_SELF
    end = datatype.Pack(memory, packed, 0, comm)
    back = np.full_like(memory, 255)
    cases.add(f"pack {name}", end, packed, datatype.Unpack(packed, 0, back, comm), back)
    if "struct" not in name:  # MPICH 5.0 crashes
        packed = bytearray(datatype.Pack_external_size("external32", 2))
        end = datatype.Pack_external("external32", memory, packed, 0)
        back[:] = 255
        cases.add(f"external32 {name}", end, packed)
        end = datatype.Unpack_external("external32", packed, 0, back)
        cases.add(f"external32 {name}", end, back)


def placed(memory: np.ndarray, count: int, datatype: MPI.Datatype) -> MPI.Datatype:
    """Some elements at byte 40 of memory, as one at BOTTOM: some types begin before it."""
    address = MPI.Aint_add(MPI.Get_address(memory), 40)
    return MPI.Datatype.Create_struct([count], [address], [datatype]).Commit()


def sending() -> None:
    """Every derived type, sent to oneself as bytes, and received as what it is."""
    comm, status = MPI.COMM_SELF, MPI.Status()
    for name, datatype in derived().items():
        datatype.Commit()
        memory, flat = np.arange(600, dtype=np.uint16), np.zeros(2 * datatype.size, np.uint8)
        receive = comm.Irecv([flat, MPI.BYTE], 0)
        comm.Isend([MPI.BOTTOM, 1, placed(memory, 2, datatype)], 0).Wait()
        receive.Wait(status)
        cases.add(f"send {name}", flat, status.Get_count(MPI.BYTE))
        back = np.full(600, 255, np.uint16)
        receive = comm.Irecv([MPI.BOTTOM, 1, placed(back, 3, datatype)], 0)
        comm.Isend([flat, MPI.BYTE], 0).Wait()
        receive.Wait(status)
        cases.add(f"receive {name}", back, named(status.Get_count(datatype), "UNDEFINED"))
        cases.add(f"receive {name}", named(status.Get_elements(datatype), "UNDEFINED"))


def packing() -> None:
    """Several things in one buffer, one after another."""
    comm = MPI.COMM_SELF
    buffer, position = bytearray(100), 0
    for array in (np.arange(3, dtype="i"), np.array([1.5]), np.frombuffer(b"text", "b")):
        datatype = MPI.Datatype.fromcode(array.dtype.char)
        position = datatype.Pack(array, buffer, position, comm)
    cases.add("Pack", position, buffer[:position])
    comm.Sendrecv([buffer, position, MPI.PACKED], 0, 0, [bytearray(100), MPI.PACKED], 0, 0)
    position = 0
    for code, count in (("i", 3), ("d", 1), ("b", 4)):
        array = blank(code, count)
        datatype = MPI.Datatype.fromcode(code)
        position = datatype.Unpack(buffer, position, array, comm)
        cases.add("Unpack", position, array)
    for name in ("INT", "DOUBLE", "LONG", "SHORT", "CHAR", "C_BOOL", "LONG_DOUBLE", "C_COMPLEX"):
        datatype = getattr(MPI, name)
        cases.add("Pack_size", datatype.Pack_size(3, comm))
        cases.add("Pack_external_size", datatype.Pack_external_size("external32", 3))
    for code in "bhilqBHILQfdFD":
        datatype, array = MPI.Datatype.fromcode(code), np.array([1, 2, 77], code)
        buffer = bytearray(64)
        end = datatype.Pack_external("external32", array, buffer, 2)
        back = blank(code, 3)
        cases.add("Pack_external", end, buffer)
        cases.add("Unpack_external", datatype.Unpack_external("external32", buffer, 2, back), back)


def names_and_attributes() -> None:
    datatype = MPI.INT.Create_contiguous(2)
    datatype.Set_name("a name")
    cases.add("name", datatype.Get_name(), datatype.name, datatype.Dup().name)
    datatype.name = "another"
    cases.add("name", datatype.Get_name())
    said: list[str] = []

    def copied(owner: MPI.Datatype, keyval: int, value: Any) -> Any:
        said.append(f"copied {value}")
        return value + 1 if value < 10 else NotImplemented

    def deleted(owner: MPI.Datatype, keyval: int, value: Any) -> None:
        said.append(f"deleted {value}")

    keyval = MPI.Datatype.Create_keyval(copied, deleted)
    cases.add("attributes", datatype.Get_attr(keyval))
    datatype.Set_attr(keyval, 5)
    copy = datatype.Dup()
    cases.add("attributes", datatype.Get_attr(keyval), copy.Get_attr(keyval))
    datatype.Set_attr(keyval, 20)
    other = datatype.Dup()
    cases.add("attributes", other.Get_attr(keyval))
    datatype.Delete_attr(keyval)
    copy.Free()
    cases.add("attributes", datatype.Get_attr(keyval), said)
    keyval = MPI.Datatype.Free_keyval(keyval)
    cases.add("attributes", named(keyval, "KEYVAL_INVALID"))
    cases.error("attributes", datatype.Get_attr, MPI.KEYVAL_INVALID)


def wrong() -> None:
    pair = MPI.INT.Create_contiguous(2)
    cases.error("not committed", MPI.COMM_SELF.Isend, [bytes(8), 1, pair], 0)
    cases.error("null", MPI.COMM_SELF.Isend, [bytes(8), 1, MPI.DATATYPE_NULL], 0)
    cases.error("negative", MPI.INT.Create_contiguous, -1)
    cases.error("negative", MPI.INT.Create_vector, -1, 1, 1)
    cases.error("negative", MPI.INT.Create_vector, 1, -1, 1)
    cases.error("negative", MPI.INT.Create_indexed, [-1], [0])
    cases.error("lengths", MPI.INT.Create_indexed, [1, 2], [0])
    cases.error("lengths", MPI.Datatype.Create_struct, [1], [0, 1], [MPI.INT])
    cases.error("subarray", MPI.INT.Create_subarray, [4], [2], [-1])
    cases.error("order", MPI.INT.Create_subarray, [4], [2], [1], 999)
    cases.error("contents of a named one", MPI.INT.Get_contents)
    cases.error("null", MPI.DATATYPE_NULL.Create_contiguous, 1)
    cases.error("null", MPI.DATATYPE_NULL.Commit)
    cases.error("null", MPI.DATATYPE_NULL.Free)
    cases.error("null", MPI.Datatype.Create_struct, [1], [0], [MPI.DATATYPE_NULL])
    cases.add("equal", MPI.INT.Dup() == MPI.INT, MPI.Datatype(MPI.INT) == MPI.INT)
    cases.add("equal", MPI.INT == 5, MPI.INT != MPI.DOUBLE, error_name(MPI.SUCCESS))


predefined()
shapes()
sending()
packing()
names_and_attributes()
wrong()
cases.done()
