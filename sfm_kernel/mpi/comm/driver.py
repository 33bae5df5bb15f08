"""How collectives are carried out: each is written once, and called in three ways.

A *plan* is a function that looks over what a program gave, raises what is wrong with that, and
returns the *work*: a function that does it, once or again and again (persistent requests)::

    def bcast(state, buf, root):                           # a plan
        data = calls.bcast(buf, root, state)
        return lambda driver: driver.bcast(data, root)     # the work

    blocking(comm, bcast, buf, root)          # Bcast: returns what the work returns
    started(comm, bcast, buf, root)           # Ibcast: a Request
    prepared(comm, bcast, buf, root)          # Bcast_init: a Prequest; each Start does the work

The work is given a *driver*, which is how the processes of a communicator reach each other. Each
communicator has two of them, which never hear each other: one for blocking calls, and one for all
others, whose works a thread does one after the other, in the order in which they were started. MPI
demands the same order of calls on all members, so each driver does the same works everywhere.

While other transfers of the process are under way, a thread moves those on during a blocking
call: somebody may wait for them before he comes to the call.

``Driver`` names what every driver can do. Between the members of one group it is done by
``comm.intra.IntraDriver``, between two groups by ``comm.interdriver.InterDriver``. Works that send
messages of their own (collectives of neighbours) do that in a ``round``.

In plans and works, errors are raised as ``MPIError(code, text)``. The call, or the wait for its
request, tells the communicator's error handler.
"""

from __future__ import annotations

import sys
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NoReturn

from sfm_kernel.collectives import Group
from sfm_kernel.endpoint import UNBOUNDED, Context
from sfm_kernel.errors import PeerLost, SFMError, UnknownName
from sfm_kernel.mpi.base.constants import ERR_COMM
from sfm_kernel.mpi.base.errors import MPIError, report, translated
from sfm_kernel.mpi.comm.worker import Worker
from sfm_kernel.mpi.engine.communicator import CommState
from sfm_kernel.mpi.engine.operation import Operation
from sfm_kernel.transport.base import Name

if TYPE_CHECKING:
    from sfm_kernel.mpi.buffers import Blocks, Elements
    from sfm_kernel.mpi.requests.prequest import Prequest
    from sfm_kernel.mpi.requests.request import Request


PyOp = Callable[[Any, Any], Any]


class Driver(ABC):
    """What the collectives of one communicator are made of.

    The sides of a call (``send``, ``receive``) are what ``buffers.calls`` makes of what the program
    gave: None where this process has no part in it, the same object on both sides in place.
    ``even``: all blocks have one size, here and on the other members. ``op``: a function of two
    arrays (what ``values`` makes of elements) or of two objects; it may change neither.

    Args:
        purpose: "" for blocking calls; else it tells the driver's messages from those of others.
    Attributes:
        on_wait: called now and then while a work waits for others; what it raises ends the work.
    """

    def __init__(self, state: CommState, purpose: str = "") -> None:
        self.state, self.rank, self.size = state, state.rank, state.size
        self._purpose = purpose
        self.on_wait: Callable[[], None] | None = None
        self._other_group: Group | None = None
        self._context: Context | None = None
        self._rounds = 0

    @property
    def group(self) -> Group:
        """The local members. Blocks, the first time, until all of them have come here."""
        if not self._purpose:
            return self.state.group()
        if self._other_group is None:
            self._other_group = self.state.another_group(self._purpose, self.on_wait)
        return self._other_group

    def round(self) -> Round:
        """Messages of one call, from and to ``state.peers``. All members make it alike."""
        if self._context is None:
            name = f"mpi {self.state.cid} rounds {self._purpose}"
            self._context = Context(self.state.process.sfm, name, UNBOUNDED, library=True)
            self._context.tick = self.on_wait
            self._context.private = True
            self._context.doing = lambda: self.state._called("a collective call")
        self._rounds += 1
        return Round(self._context, self.state.peers, self._rounds)

    @abstractmethod
    def barrier(self) -> None: ...

    # Of elements.

    @abstractmethod
    def bcast(self, data: Elements | None, root: int) -> None: ...
    @abstractmethod
    def gather(
        self, send: Elements | None, receive: Blocks | None, root: int, even: bool
    ) -> None: ...
    @abstractmethod
    def scatter(
        self, send: Blocks | None, receive: Elements | None, root: int, even: bool
    ) -> None: ...
    @abstractmethod
    def allgather(self, send: Elements, receive: Blocks) -> None: ...
    @abstractmethod
    def alltoall(self, send: Blocks, receive: Blocks) -> None: ...
    @abstractmethod
    def reduce(
        self, send: Elements | None, receive: Elements | None, op: PyOp, root: int
    ) -> None: ...
    @abstractmethod
    def allreduce(self, send: Elements, receive: Elements, op: PyOp) -> None: ...
    @abstractmethod
    def reduce_scatter(self, send: Blocks, receive: Elements, op: PyOp) -> None: ...

    # Of objects.

    @abstractmethod
    def bcast_object(self, value: Any, root: int) -> Any: ...
    @abstractmethod
    def gather_objects(self, value: Any, root: int) -> list[Any] | None: ...
    @abstractmethod
    def scatter_objects(self, values: Sequence[Any] | None, root: int) -> Any: ...
    @abstractmethod
    def allgather_objects(self, value: Any) -> list[Any]: ...
    @abstractmethod
    def alltoall_objects(self, values: Sequence[Any]) -> list[Any]: ...
    @abstractmethod
    def reduce_objects(self, value: Any, op: PyOp, root: int) -> Any: ...
    @abstractmethod
    def allreduce_objects(self, value: Any, op: PyOp) -> Any: ...


class Round:
    """The messages of one call of a driver: seen by the same call of the others, and nobody else.

    Values are objects or arrays; between two members they arrive in their order.
    """

    __slots__ = ("_context", "_number", "_peers")

    def __init__(self, context: Context, peers: Sequence[Name], number: int) -> None:
        self._context, self._peers, self._number = context, peers, number

    def send(self, rank: int, value: Any = None) -> None:
        """Send a value, which may be changed at once. Does not wait for the receiver."""
        name = self._peers[rank]
        try:
            self._context.send(dest=name, round=self._number, value=value)
        except UnknownName:  # it was there when the communicator was made
            raise PeerLost(name, "and the collective call cannot go on without it") from None

    def recv(self, rank: int) -> Any:
        """The next value that this member sends in this call; an array is the receiver's own.

        Raises PeerLost.
        """
        return self._context.recv(src=self._peers[rank], round=self._number).value


Work = Callable[[Any], Any]
"""Given a Driver, does the collective call."""

Plan = Callable[..., Work]
"""Called with the communicator's state and what the program gave."""


def blocking(comm: Any, plan: Plan, *given: Any) -> Any:
    """Do a collective call, and return what its work returns."""
    try:
        state = state_of(comm)
        work = plan(state, *given)
        with state.process.engine.attended():
            return work(driver_of(state))
    except SFMError as error:
        tell(comm, error)


def members_at_once(comm: Any) -> Group | None:
    """The members, where a call may go to them without further ado: for calls that take no time.

    None on intercommunicators, and while other transfers are under way. May raise PeerLost.
    """
    state: CommState | None = comm._state
    if state is None or state.freed or state.remote is not None or not state.process.engine.idle:
        return None
    return state.group()


def started(comm: Any, plan: Plan, *given: Any) -> Request:
    """Start a collective call. ``Operation.result`` will be what its work returns."""
    from sfm_kernel.mpi.requests.request import Request

    try:
        state = state_of(comm)
        return Request._for(_start(state, plan(state, *given), _caller()))
    except SFMError as error:
        tell(comm, error)


def prepared(comm: Any, plan: Plan, *given: Any) -> Prequest:
    """Prepare a collective call: it is made at each Start of the request."""
    from sfm_kernel.mpi.requests.prequest import Prequest

    try:
        state = state_of(comm)
        work = plan(state, *given)
        text = _caller()
        return Prequest._of_start(lambda: _start(state, work, text))
    except SFMError as error:
        tell(comm, error)


def tell(comm: Any, error: SFMError) -> NoReturn:
    """Give an error to the communicator's error handler, as one of MPI, and raise it."""
    if isinstance(error, MPIError):
        report(error, comm)
    with translated(comm):
        raise error


def state_of(comm: Any) -> CommState:
    """What the communicator is. Raises MPI.Exception (ERR_COMM) where it is none any more."""
    state: CommState | None = comm._state
    if state is None or state.freed:
        what = "was freed" if state else "is COMM_NULL"
        raise MPIError(ERR_COMM, f"the communicator {what}: collective calls need one that exists")
    return state


def driver_of(state: CommState) -> Driver:
    """The driver of blocking calls."""
    driver: Driver | None = state.driver
    if driver is None:
        driver = state.driver = _new_driver(state, "")
    return driver


def _caller() -> str:
    """The call of MPI that a program has made, in which our caller is."""
    return sys._getframe(2).f_code.co_name


def _start(state: CommState, work: Work, text: str) -> Operation:
    operation = Operation(state.process.engine, f"{text} of {state.title()}", state)
    worker: Worker | None = state.worker
    if worker is None:
        driver = _new_driver(state, "started")
        worker = state.worker = Worker(driver, f"sfm-mpi-started-{state.cid}")
    if state.size == 1 and state.remote is None:
        worker.carry_out(work, operation)  # it waits for nobody
    else:
        worker.submit(work, operation)
    return operation


def _new_driver(state: CommState, purpose: str) -> Driver:
    if state.remote is None:
        from sfm_kernel.mpi.comm.intra import IntraDriver

        return IntraDriver(state, purpose)
    from sfm_kernel.mpi.comm.interdriver import InterDriver

    return InterDriver(state, purpose)
