"""Functions of the module itself: memory, addresses, time, threads, constants, handles."""

from __future__ import annotations

import array
from typing import Any

import numpy as np
from cases import Cases, named, raised
from mpi4py import MPI

cases = Cases()


def memory() -> None:
    room = MPI.Alloc_mem(16)
    room[:] = 0
    room[2:5] = b"abc"
    room[0] = 7
    cases.add("Alloc_mem", len(room), room.nbytes, room, room[0], room[2:5], room.readonly)
    cases.add("Alloc_mem", room.format, room.itemsize, room.tobytes(), room.cast("i").tolist())
    view = np.frombuffer(room, "B")
    view[15] = 9
    cases.add("Alloc_mem", room[15], room.address == MPI.Get_address(room))
    del view
    MPI.Free_mem(room)
    cases.add("Alloc_mem", len(room))
    data = bytearray(b"some bytes")
    buffer = MPI.buffer(data)
    cases.add("buffer", buffer, buffer.obj is data, buffer.readonly, buffer.toreadonly().readonly)
    cases.add("buffer", MPI.buffer.frombuffer(b"abc", True).readonly, MPI.memory is MPI.buffer)
    other = MPI.buffer.fromaddress(buffer.address, 4)
    other[0] = ord("S")
    cases.add("buffer", data, other, memoryview(other).nbytes, MPI.buffer.allocate(3, clear=True))
    cases.error("buffer", lambda: buffer.toreadonly().__setitem__(0, 1))
    cases.error("buffer", lambda: buffer[99])
    cases.error("buffer", MPI.buffer, "text")
    buffer[2:4] = 0x2D
    cases.add("buffer", buffer, len(MPI.buffer()), buffer[::1])
    buffer.release()
    cases.add("buffer", len(buffer))
    numbers = array.array("i", range(5))
    address = MPI.Get_address(numbers)
    later = MPI.Get_address(memoryview(numbers)[2:])
    cases.add("addresses", MPI.Aint_diff(later, address), MPI.Aint_add(address, 8) == later)
    cases.add("addresses", MPI.Get_address(MPI.BOTTOM), int(MPI.BOTTOM), bool(MPI.BOTTOM))


def process() -> None:
    cases.add("process", MPI.Is_initialized(), MPI.Is_finalized(), MPI.Is_thread_main())
    cases.add("process", MPI.Query_thread() == MPI.THREAD_MULTIPLE)
    first, tick = MPI.Wtime(), MPI.Wtick()
    cases.add("process", MPI.Wtime() >= first, 0 < tick <= 1, type(first), type(tick))
    cases.add("process", len(MPI.Get_processor_name()) > 0, len(MPI.Get_library_version()) > 0)
    cases.add("process", MPI.Get_version() >= (4, 0), MPI.VERSION, raised(MPI.Pcontrol, 1))
    cases.add("process", len(MPI.get_vendor()), len(MPI.get_vendor()[1]))
    cases.add("process", type(MPI.Get_hw_resource_info()).__name__)
    levels = "SINGLE", "FUNNELED", "SERIALIZED", "MULTIPLE"
    numbers = [getattr(MPI, f"THREAD_{level}") for level in levels]
    cases.add("process", numbers == sorted(numbers))


def constants() -> None:
    special = [MPI.ANY_SOURCE, MPI.PROC_NULL, MPI.ROOT, MPI.UNDEFINED]
    cases.add("constants", len(set(special)) == 4, max(special) < 0, MPI.ANY_TAG < 0, MPI.SUCCESS)
    for kind, names in {
        "comparisons": ("IDENT", "CONGRUENT", "SIMILAR", "UNEQUAL"),
        "topologies": ("CART", "GRAPH", "DIST_GRAPH", "UNDEFINED"),
        "attributes": ("TAG_UB", "IO", "WTIME_IS_GLOBAL", "APPNUM", "LASTUSEDCODE"),
        "combiners": tuple(name for name in dir(MPI) if name.startswith("COMBINER_")),
    }.items():
        cases.add("constants", kind, len({getattr(MPI, name) for name in names}) == len(names))
    for name in ("IN_PLACE", "BOTTOM", "BUFFER_AUTOMATIC"):
        cases.add("constants", repr(getattr(MPI, name)), getattr(MPI, name) == getattr(MPI, name))
    kinds = MPI.InPlaceType, MPI.BottomType, MPI.BufferAutomaticType
    cases.add("constants", [kind.__name__ for kind in kinds], isinstance(MPI.IN_PLACE, kinds[0]))
    cases.add("constants", MPI.ORDER_F == MPI.ORDER_FORTRAN, MPI.MAX_PROCESSOR_NAME > 30)
    cases.add("constants", MPI.BSEND_OVERHEAD > 0, MPI.MAX_ERROR_STRING > 30)


def handles() -> None:
    """Handles as numbers and back; equality; use as keys; truth."""
    made: dict[str, Any] = {
        "Datatype": MPI.INT,
        "Op": MPI.SUM,
        "Comm": MPI.COMM_WORLD,
        "Group": MPI.COMM_WORLD.Get_group(),
        "Info": MPI.Info.Create(),
        "Errhandler": MPI.ERRORS_RETURN,
        "Request": MPI.Grequest.Start(),
        "Session": MPI.Session.Init(),
        "Message": MPI.MESSAGE_NO_PROC,
    }
    for name, handle in made.items():
        kind = getattr(MPI, name)
        null = kind()
        cases.add(
            f"handle {name}", bool(handle), bool(null), handle == null, kind(handle) == handle
        )
        cases.add(f"handle {name}", handle != null, handle == 5, handle is None, null == kind())
        cases.add(f"handle {name}", kind.fromhandle(handle.handle) == handle)
        cases.add(f"handle {name}", kind.f2py(handle.py2f()) == handle)
        if name != "Session":
            cases.add(f"handle {name}", kind.fromint(handle.toint()) == handle)
        cases.error(f"handle {name}", hash, handle)
        cases.add(f"handle {name}", type(kind.fromhandle(null.handle)).__name__)
    cases.add("casts", type(MPI.Comm.fromhandle(MPI.COMM_WORLD.handle)).__name__)
    made["Session"].Finalize()
    made["Request"].Complete()
    made["Request"].Wait()
    info = made["Info"]
    info.free()
    cases.add("free", info)
    for handle in (MPI.COMM_WORLD, MPI.INT, MPI.SUM, MPI.COMM_NULL, MPI.REQUEST_NULL):
        handle.free()
        cases.add("free", bool(handle))

    class Own(MPI.Intracomm):
        def __new__(cls, comm: MPI.Comm | None = None) -> Own:
            return super().__new__(cls, comm)

        def hello(self) -> str:
            return f"hello from {self.rank}"

    world = Own(MPI.COMM_WORLD)
    cases.add("subclass", world.hello(), type(world.Dup()).__name__, world == MPI.COMM_WORLD)
    cases.add("subclass", type(world.Split()).__name__, type(world.Create_cart([1])).__name__)


def ports() -> None:
    """Names that some MPI needs a server for are there."""
    for word in ("Open_port", "Close_port", "Publish_name", "Unpublish_name", "Lookup_name"):
        cases.add("ports", callable(getattr(MPI, word)))
    cases.add("ports", named(MPI.UNDEFINED, "UNDEFINED"))


memory()
process()
constants()
handles()
ports()
cases.done()
