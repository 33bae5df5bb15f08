"""Requests of every kind: tests and waits for one, any, all, some; statuses, probes, cancelling."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import product
from typing import Any

import numpy as np
from cases import LARGE, Cases, blank, named, numbers, raised
from mpi4py import MPI

cases = Cases()


class Exchange:
    """Receives of this process from itself, posted but not yet sent to."""

    def __init__(self, count: int) -> None:
        self.comm = MPI.COMM_SELF.Dup()
        self.memories = [blank("i", 4) for _ in range(count)]
        self.requests = [self.comm.Irecv(into, 0, tag) for tag, into in enumerate(self.memories)]

    def send(self, *tags: int) -> None:
        for tag in tags:
            self.comm.Send(numbers("i", tag % 4 + 1, tag), 0, tag)

    def state(self) -> list[Any]:
        return [[request == MPI.REQUEST_NULL for request in self.requests], self.memories]

    def close(self) -> None:
        for request in self.requests:
            if not request.Test():
                request.Cancel()
                request.Wait()
        self.comm.Free()


def index(value: int) -> Any:
    return named(value, "UNDEFINED")


def one_request() -> None:
    for word in ("Test", "Get_status", "test", "get_status"):
        exchange, status = Exchange(1), MPI.Status()
        (request,) = exchange.requests
        call = getattr(request, word)
        if word != "test":
            cases.add(word, call(status), call())
        else:  # it takes a message for a pickle
            cases.add(word, call(status))
            exchange.close()
            continue
        exchange.send(0)
        while not call(status):
            pass
        cases.add(word, status, exchange.state(), call(status), status)
        exchange.close()
    exchange = Exchange(1)
    exchange.send(0)
    status = MPI.Status()
    cases.add("Wait", exchange.requests[0].Wait(status), status, exchange.state())
    cases.add("Wait", exchange.requests[0].Wait(status), status)
    exchange.close()
    empty = MPI.Request()
    cases.add("null", empty, empty.Test(), empty.Wait(), empty.wait(), empty.test())
    cases.error("null", empty.Cancel)
    cases.error("null", empty.Free)
    cases.add("null", MPI.Request(empty) == MPI.REQUEST_NULL, empty.Get_status())


def several_requests() -> None:
    Many = Callable[[Sequence[MPI.Request]], Any]
    for word in ("any", "all", "some"):
        for call in (f"Test{word}", f"Wait{word}", f"Get_status_{word}"):
            many: Many = getattr(MPI.Request, call)
            exchange = Exchange(3)
            if not call.startswith("Wait"):
                cases.add(call, plain(many(exchange.requests)), exchange.state())
            for tags in ((1,), (0, 2)):
                exchange.send(*tags)
                if word == "all" and tags == (1,):
                    if call.startswith("Wait"):
                        continue  # it would wait for the others
                    cases.add(call, plain(many(exchange.requests)), exchange.state())
                    continue
                filled: Any = MPI.Status() if word == "any" else [MPI.Status()]
                for tag in tags:  # now all that were sent have come
                    while not exchange.comm.Iprobe(0, tag):
                        if exchange.requests[tag].Get_status():
                            break
                result = many(exchange.requests, filled)
                cases.add(call, plain(result), filled, exchange.state())
            exchange.close()
            cases.add(call, plain(many(exchange.requests)), plain(many([])))
    null = [MPI.REQUEST_NULL] * 2
    for verb, word in product(("wait", "test", "get_status_"), ("any", "all", "some")):
        many = getattr(MPI.Request, verb + word)
        cases.add(verb + word, plain(many([])), plain(many(null)))


def plain(result: Any) -> Any:
    if isinstance(result, tuple):
        return tuple(map(plain, result))
    return index(result) if type(result) is int else result


def objects() -> None:
    comm = MPI.COMM_SELF.Dup()
    for word in ("any", "all", "some"):
        for verb in ("wait", "test"):
            many = getattr(MPI.Request, verb + word)
            requests = [comm.irecv(source=0, tag=tag) for tag in range(3)]
            for tag in range(3):
                comm.send({"tag": tag}, 0, tag)
            found: list[Any] = []
            while len(found) < (1 if word == "all" else 3):
                filled: Any = MPI.Status() if word == "any" else [MPI.Status()]
                result = many(requests, filled)
                done = result[1] if verb == "test" and word == "any" else result[0]
                if verb == "wait" or done:
                    found.append((result, filled) if word == "any" else (result,))
                if word == "some":
                    found.extend([None] * (len(result[0]) - 1) if result[0] else [])
            if word == "some":  # how many come at once is not said
                found = sorted(str(item) for item in found)
                cases.add(verb + word, len(found))
            else:
                cases.add(verb + word, found, requests)
    request = comm.irecv(source=0, tag=5)
    status = MPI.Status()
    cases.add("test", request.test(status), request.get_status(status))
    comm.send([1, 2], 0, 5)
    cases.add("wait", request.wait(status), status.source, status.tag, request)
    comm.Free()


def cancelling() -> None:
    comm, status = MPI.COMM_SELF.Dup(), MPI.Status()
    for word in ("Cancel", "cancel"):
        request = comm.Irecv(bytearray(3), 0, 1)
        getattr(request, word)()
        request.Wait(status)
        cases.add(word, status.Is_cancelled(), request)
    request = comm.irecv(source=0)
    request.cancel()
    cases.add("cancel an object's", raised(request.wait, status), status.Is_cancelled())
    memory = bytearray(3)
    requests = [comm.Irecv(memory, 0, 1), comm.Irecv(bytearray(3), 0, 1)]
    requests[0].Cancel()
    requests[0].Wait()
    comm.Send(b"one", 0, 1)
    requests[1].Wait(status)
    cases.add("cancel the first", memory, status)
    request = comm.Isend(b"gone", 0, 7)
    request.Free()
    comm.Recv(bytearray(4), 0, 7, status)
    cases.add("Free", status, request)
    comm.Free()


def persistent(comm: MPI.Intracomm) -> None:
    after, before = (comm.rank + 1) % comm.size, (comm.rank - 1) % comm.size
    for mode in ("Send_init", "Ssend_init", "Bsend_init", "Rsend_init"):
        for size in (3, LARGE // 8):
            data, memory, status = numbers("d", size), blank("d", size), MPI.Status()
            receive = comm.Recv_init(memory, before, 3)
            send = getattr(comm, mode)(data, after, 3)
            cases.add(mode, send, receive, send.Test(), receive.Get_status())
            for turn in range(3):
                data[:] = numbers("d", size, comm.rank + turn)
                receive.Start()
                comm.Barrier()
                if turn < 2:
                    send.Start()
                else:
                    MPI.Prequest.Startall([send])
                receive.Wait(status)
                send.Wait()
                cases.add(mode, memory, status, send == MPI.REQUEST_NULL)
            send.Free()
            receive.Free()
            cases.add(mode, send, receive)
    data, memory = numbers("i", 6, comm.rank), blank("i", 6)
    send, receive = comm.Send_init(data, after), comm.Recv_init(memory, before)
    for turn in range(2):
        data += turn
        MPI.Prequest.Startall([receive, send])
        MPI.Request.Waitall([receive, send])
        cases.add("Startall", memory, send == MPI.REQUEST_NULL)
    status = MPI.Status()
    cases.add("inactive", receive.Test(status), status, receive.Wait(status), status)
    first = MPI.Request.Waitany([receive, send], status)
    cases.add("inactive", index(first), status, MPI.Request.Waitsome([receive, send]))
    comm.Barrier()
    receive.Start()
    receive.Cancel()
    receive.Wait(status)
    cases.add("cancel a persistent", status.Is_cancelled())
    send.Free()
    receive.Free()


def partitioned(comm: MPI.Intracomm) -> None:
    after, before = (comm.rank + 1) % comm.size, (comm.rank - 1) % comm.size
    data, memory = numbers("i", 12, comm.rank), blank("i", 12)
    send, receive = comm.Psend_init(data, 4, after, 2), comm.Precv_init(memory, 4, before, 2)
    for turn in range(3):
        data += turn
        MPI.Prequest.Startall([receive, send])
        if turn == 0:
            for partition in (2, 0, 3, 1):
                send.Pready(partition)
        elif turn == 1:
            send.Pready_range(1, 3)
            send.Pready(0)
        else:
            send.Pready_list([3, 1])
            send.Pready_list([0, 2])
        MPI.Request.Waitall([send, receive])
        cases.add("partitioned", memory)
    receive.Start()
    send.Start()
    send.Pready_range(0, 3)
    while not all(receive.Parrived(partition) for partition in range(4)):
        pass
    cases.add("Parrived", memory)
    receive.Wait()
    send.Wait()
    send.Free()
    receive.Free()


def generalised() -> None:
    said: list[str] = []

    def query(status: MPI.Status, word: str, end: str = "") -> None:
        status.source, status.tag = 3, 4
        status.Set_elements(MPI.INT, 5)
        status.Set_cancelled(False)
        said.append(f"query {word}{end}")

    def free(word: str, end: str = "") -> None:
        said.append(f"free {word}{end}")

    def cancel(completed: bool, word: str, end: str = "") -> None:
        said.append(f"cancel {completed} {word}{end}")

    status = MPI.Status()
    request = MPI.Grequest.Start(query, free, cancel, args=("a",), kwargs={"end": "b"})
    cases.add("Grequest", request, request.Test())
    request.Cancel()
    request.Complete()
    request.Cancel()
    request.Wait(status)
    cases.add("Grequest", status, status.Get_count(MPI.INT), said, request)
    request = MPI.Grequest.Start()
    request.complete({"an": "object"})
    cases.add("Grequest", request.wait())
    request = MPI.Grequest.Start(lambda status: 1 / 0)
    request.Complete()
    cases.error("Grequest", request.Wait)
    request = MPI.Grequest.Start()
    request.Complete()
    cases.add("Grequest", MPI.Request.Waitany([MPI.REQUEST_NULL, request]))
    for length in 1, 2:  # an array of one number is as true as that, and of two neither
        said.clear()
        request = MPI.Grequest.Start(lambda _, *given: said.extend(given), args=np.zeros(length))
        request.Complete()
        request.Wait()
        cases.add("Grequest with an array", len(said))


def statuses() -> None:
    status = MPI.Status()
    cases.add("Status", status, status.error, status.Get_error())
    status.Set_source(2)
    status.Set_tag(3)
    status.Set_error(MPI.ERR_RANK)
    status.Set_elements(MPI.DOUBLE, 4)
    status.Set_cancelled(True)
    cases.add("Status", status, status.Get_source(), status.Get_tag(), status.cancelled)
    cases.add("Status", status.error == MPI.ERR_RANK, status.count)
    for datatype in (MPI.BYTE, MPI.INT, MPI.DOUBLE, MPI.DOUBLE_INT):
        cases.add("Get_count", index(status.Get_count(datatype)))
        cases.add("Get_elements", index(status.Get_elements(datatype)))
    status.Set_elements(MPI.BYTE, 18)
    pair = MPI.INT.Create_contiguous(3).Commit()
    cases.add("Get_count", index(status.Get_count(pair)), index(status.Get_elements(pair)))
    cases.add("Get_count", index(status.Get_count(MPI.INT)), index(status.Get_elements(MPI.INT)))
    struct = MPI.Datatype.Create_struct([1, 1], [0, 8], [MPI.INT, MPI.DOUBLE]).Commit()
    for count in (0, 12, 16, 24, 28, 14):
        status.Set_elements(MPI.BYTE, count)
        cases.add("Get_elements", index(status.Get_elements(struct)))
        cases.add("Get_elements", index(status.Get_count(struct)))
    copy = MPI.Status(status)
    cases.add("Status", copy == status, copy is status, copy.count)
    copy.tag = 9
    copy.source, copy.error, copy.count, copy.cancelled = 1, 0, 3, False
    cases.add("Status", copy == status, copy, MPI.Status.f2py(copy.py2f()))
    cases.add("Status", copy.tomemory().nbytes > 0)
    cases.error("Status", lambda: setattr(copy, "tag", "text"))
    pair.Free()
    struct.Free()


def probes(comm: MPI.Intracomm) -> None:
    last, status = comm.size - 1, MPI.Status()
    cases.add("Iprobe", comm.Iprobe(0, 1, status), status, comm.Improbe(0, 1, status))
    comm.Barrier()
    sends = [comm.Isend(np.arange(n), last, n) for n in (2, 3, 4)] if comm.rank == 0 else []
    if comm.rank == last:
        cases.add("Probe", comm.Probe(0, 3, status), status, status.Get_count(MPI.LONG))
        cases.add("Probe", comm.Probe(0, MPI.ANY_TAG, status), status)
        comm.Probe(MPI.ANY_SOURCE, 4, status)
        cases.add("Iprobe", comm.Iprobe(MPI.ANY_SOURCE, 4, status), status)
        memory = np.zeros(4, int)
        message = comm.Mprobe(0, 3, status)
        cases.add("Mprobe", message, status, comm.Iprobe(0, 3))
        message.Recv([memory, 3, MPI.LONG], status)
        cases.add("Mprobe", message, status, memory)
        message = MPI.Message.Probe(comm, 0, MPI.ANY_TAG, status)
        request = message.Irecv(memory)
        request.Wait(status)
        cases.add("Message.Probe", message, status, memory)
        message = None
        while message is None:
            message = MPI.Message.Iprobe(comm, 0, MPI.ANY_TAG, status)
        message.Recv(memory)
        cases.add("Message.Iprobe", status, memory, MPI.Message.Iprobe(comm))
    MPI.Request.Waitall(sends)
    comm.Barrier()
    sends = [comm.isend(["an", n], last, n) for n in range(4)] if comm.rank == 0 else []
    if comm.rank == last:
        cases.add("probe", comm.probe(0, 2, status), status.source, status.tag)
        message = comm.mprobe(tag=2, status=status)
        cases.add("mprobe", message, status.tag, message.recv(status), status.tag, message)
        message = MPI.Message.probe(comm, 0, 1)
        cases.add("Message.probe", message.irecv().wait())
        message = None
        while message is None:
            message = comm.improbe(0, MPI.ANY_TAG, status)
        cases.add("improbe", status.tag, message.recv())
        while not comm.iprobe(0, 3, status):
            pass
        cases.add("iprobe", status.tag, comm.iprobe(0, 9))
        message = MPI.Message.iprobe(comm, 0, 3)
        cases.add("Message.iprobe", message.recv(), MPI.Message.iprobe(comm, 0, 3))
        cases.add("null message", MPI.Message(), MPI.Message(message) == message)
        cases.error("null message", MPI.Message().Recv, bytearray(1))
    MPI.Request.waitall(sends)


world = MPI.COMM_WORLD.Dup()
MPI.Attach_buffer(bytearray(1 << 20))
one_request()
several_requests()
objects()
cancelling()
statuses()
generalised()
probes(world)
persistent(world)
partitioned(world)
cases.done()
