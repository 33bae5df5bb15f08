"""The class of the error that each wrong call raises, and the parts of errors."""

from __future__ import annotations

from typing import Any

import numpy as np
from cases import Cases, error_name, raised
from mpi4py import MPI

cases = Cases()
WORLD, SELF = MPI.COMM_WORLD.Dup(), MPI.COMM_SELF.Dup()
NAMES = sorted({name for name in dir(MPI) if name.startswith("ERR_")} - {"ERR_ABI", "ERR_LASTCODE"})


def point_to_point() -> None:
    data = np.zeros(4)
    for word in ("Send", "Ssend", "Rsend", "Isend", "Issend", "Irsend", "Send_init", "Ssend_init"):
        call = getattr(WORLD, word)
        cases.error(f"{word} to a rank outside", call, data, WORLD.size)
        cases.error(f"{word} to a rank below 0", call, data, -7)
        cases.error(f"{word} with a tag below 0", call, data, 0, -7)
        cases.error(f"{word} with any tag", call, data, 0, MPI.ANY_TAG)
        cases.error(f"{word} to any source", call, data, MPI.ANY_SOURCE)
        cases.error(f"{word} of nothing", call, None, 0)
        cases.error(f"{word} of a number", call, 5, 0)
        cases.error(f"{word} of a null type", call, [data, 1, MPI.DATATYPE_NULL], 0)
        cases.error(f"{word} to a text", call, data, "0")
        cases.error(f"{word} on no comm", getattr(MPI.COMM_NULL, word), data, 0)
    for word in ("Recv", "Irecv", "Recv_init"):
        call = getattr(WORLD, word)
        cases.error(f"{word} from a rank outside", call, data, WORLD.size)
        cases.error(f"{word} from a rank below 0", call, data, -7)
        cases.error(f"{word} with a tag below 0", call, data, 0, -7)
        cases.error(f"{word} into bytes", call, bytes(3), 0)
        cases.error(f"{word} into nothing", call, None, 0)
        cases.error(f"{word} on no comm", getattr(MPI.COMM_NULL, word), data, 0)
    for word in ("Probe", "Iprobe", "Mprobe", "Improbe", "probe", "iprobe"):
        cases.error(f"{word} of a rank outside", getattr(WORLD, word), WORLD.size)
        cases.error(f"{word} of a tag below 0", getattr(WORLD, word), 0, -7)
        cases.error(f"{word} on no comm", getattr(MPI.COMM_NULL, word))
    for word in ("send", "isend", "ssend", "issend"):
        cases.error(f"{word} to a rank outside", getattr(WORLD, word), 1, WORLD.size)
        cases.error(f"{word} with a tag below 0", getattr(WORLD, word), 1, 0, -7)
    tag = WORLD.Get_attr(MPI.TAG_UB)
    cases.add("largest tag", SELF.sendrecv("x", 0, tag, None, 0, tag))
    cases.error("too large a tag", SELF.send, "x", 0, tag + 1)


def truncated() -> None:
    """A message that is longer than the memory for it; the next one comes as it was."""
    small, status = np.zeros(2, "i"), MPI.Status()
    requests = [SELF.Isend(np.arange(5, dtype="i"), 0), SELF.Isend(np.arange(2, dtype="i"), 0)]
    cases.error("truncated Recv", SELF.Recv, small, 0)
    SELF.Recv(small, 0, 0, status)
    cases.add("truncated Recv", small, status)
    MPI.Request.Waitall(requests)
    receive = SELF.Irecv(small, 0)
    SELF.Isend(np.arange(5, dtype="i"), 0).Wait()
    cases.error("truncated Irecv", receive.Wait)
    receive = SELF.Irecv(small, 0)
    SELF.Isend(np.arange(5, dtype="i"), 0).Wait()
    failed = raised(MPI.Request.Waitall, [receive], [status])  # in which class, the status tells
    cases.add("truncated Waitall", failed != "none")
    cases.add("truncated Waitall", error_name(status.Get_error()))
    request = SELF.Isend(np.arange(5, dtype="i"), 0)
    message = SELF.Mprobe(0)
    cases.error("truncated message", message.Recv, small)
    request.Wait()


def collectives() -> None:
    n, data = WORLD.size, np.zeros(4)
    for root in (n, -7, MPI.ANY_SOURCE):
        cases.error(f"Bcast {root - n}", WORLD.Bcast, data, root)
        cases.error(f"bcast {root - n}", WORLD.bcast, 1, root)
        cases.error(f"Reduce {root - n}", WORLD.Reduce, data, data.copy(), MPI.SUM, root)
        cases.error(f"Ibcast {root - n}", WORLD.Ibcast, data, root)
    null = MPI.Intracomm(MPI.COMM_NULL)
    calls: dict[str, tuple[Any, ...]] = {
        "Barrier barrier Split Dup Get_rank Get_group Get_name Get_topology Is_inter": (),
        "bcast gather allreduce": (1,),
        "Bcast": (data,),
        "Allreduce Allgather Scan": (data, data.copy()),
    }
    for words, arguments in calls.items():
        for word in words.split():
            cases.error(f"{word} on no comm", getattr(null, word), *arguments)
    cases.error("Allreduce of two types", SELF.Allreduce, data, np.zeros(4, "i"))
    cases.error("Allreduce of two sizes", SELF.Allreduce, data, np.zeros(5))
    cases.error("Allreduce of bits", SELF.Allreduce, data, data.copy(), MPI.BAND)
    cases.error("Allreduce of no op", SELF.Allreduce, data, data.copy(), MPI.OP_NULL)
    cases.error("Allreduce into bytes", SELF.Allreduce, data, bytes(32))
    cases.error("Scatterv without counts", SELF.Scatterv, 5, data)
    cases.error("Gatherv, too many counts", SELF.Gatherv, data, [data.copy(), [1, 2, 3]])
    cases.error("Alltoallw without types", SELF.Alltoallw, [data, [1], [0]], [data, [1], [0]])
    cases.error("Reduce_scatter of counts", SELF.Reduce_scatter, data, np.zeros(4), [3])
    cases.error("null comm Dup", MPI.COMM_NULL.Dup)


def handles() -> None:
    cases.error("Request", MPI.Request().Cancel)
    cases.error("Prequest", MPI.Prequest().Start)
    cases.error("Message", MPI.MESSAGE_NULL.recv)
    cases.error("Op", MPI.OP_NULL.Free)
    cases.error("Op", MPI.SUM.Free)
    cases.error("Group", MPI.GROUP_NULL.Free)
    cases.error("Errhandler", MPI.ERRHANDLER_NULL.Free)
    cases.error("Datatype", MPI.INT.Free)
    cases.error("Comm", MPI.COMM_WORLD.Free)
    cases.error("Comm", MPI.COMM_NULL.Get_size)
    cases.error("Intercomm", MPI.Intercomm().Get_remote_size)
    cases.error("class", MPI.Intercomm, MPI.COMM_WORLD)
    cases.error("class", MPI.Datatype, MPI.COMM_WORLD)
    cases.error("class", MPI.Request, 5)


def exceptions() -> None:
    for name in NAMES:
        code = getattr(MPI, name)
        error = MPI.Exception(code)
        cases.add(name, error.Get_error_class() == code, error.Get_error_code() == code)
        cases.add(name, error == code, error == MPI.Exception(code), int(error) == code)
        cases.add(name, bool(error), error != MPI.SUCCESS, hash(error) == hash(code))
        cases.add(name, error.error_class == code, MPI.Get_error_class(code) == code)
    for name in ("ERR_RANK", "ERR_COMM", "ERR_TRUNCATE", "ERR_OTHER"):
        code = getattr(MPI, name)
        cases.add(name, MPI.Get_error_string(code) == MPI.Exception(code).Get_error_string() != "")
    cases.add("order", MPI.Exception(3) < MPI.Exception(4), MPI.Exception(3) >= 3)
    cases.add("success", bool(MPI.Exception()), int(MPI.Exception(MPI.SUCCESS)))
    cases.add("base", issubclass(MPI.Exception, RuntimeError), MPI.Exception.__name__)
    error = MPI.Exception(MPI.ERR_RANK)
    cases.add("words", error.error_code == MPI.ERR_RANK, len(str(error)) > 0, len(error.args))
    try:
        WORLD.Send(b"", WORLD.size)
    except MPI.Exception as error:
        cases.add("caught", error_name(error.error_class), error_name(error.Get_error_class()))
        cases.add("caught", error_name(MPI.Get_error_class(error.Get_error_code())))
        cases.add("caught", len(error.error_string) > 5, str(error) != "")


def added() -> None:
    kind = MPI.Add_error_class()
    code = MPI.Add_error_code(kind)
    cases.add("added", kind > MPI.ERR_LASTCODE, MPI.Get_error_class(code) == kind, code != kind)
    MPI.Add_error_string(kind, "a class of errors")
    MPI.Add_error_string(code, "an error")
    cases.add("added", MPI.Get_error_string(kind), MPI.Get_error_string(code))
    cases.add("added", str(MPI.Exception(code)))
    cases.add("added", MPI.COMM_SELF.Get_errhandler() == MPI.ERRORS_RETURN)
    cases.add("added", raised(MPI.COMM_SELF.Call_errhandler, code))
    MPI.Remove_error_string(code)
    MPI.Remove_error_string(kind)
    MPI.Remove_error_code(code)
    MPI.Remove_error_class(kind)


point_to_point()
truncated()
collectives()
handles()
exceptions()
added()
cases.done()
