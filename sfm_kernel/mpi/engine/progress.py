"""The engine: moves all that is under way on, whichever call of MPI a process is in."""

from __future__ import annotations

import itertools
import json
import os
import time
import weakref
from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager, nullcontext, suppress
from typing import TYPE_CHECKING, Any

from sfm_kernel.endpoint import UNBOUNDED, Busy, Context, Endpoint, asked, facts
from sfm_kernel.errors import DeadlockDetected, PeerLost, SFMError, TransferError
from sfm_kernel.mpi.base.pickles import pickle
from sfm_kernel.mpi.engine.helper import Helper
from sfm_kernel.mpi.engine.operation import Operation, waited_for
from sfm_kernel.mpi.engine.section import Section

if TYPE_CHECKING:
    from sfm_kernel.message import Message
    from sfm_kernel.mpi.engine.communicator import CommState
    from sfm_kernel.mpi.engine.receives import Receive, Template
    from sfm_kernel.mpi.engine.sends import Send

_ATTENDED = nullcontext()

PATIENCE = 20
"""So many tests in vain, one after the other, only give way to other processes; the next ones rest
until something comes."""

REST = 500
"""Microseconds of such a rest: a program that computes between its tests loses so little."""

LOOK_EVERY = 0.5
"""Seconds between two looks for the dead, of a process that tests again and again."""


class Engine:
    """All sends and receives of this process that are not over. Thread-safe.

    Nothing happens by itself: whoever is in a call of MPI, in whatever thread, moves all of them
    on. (MPI allows that: it promises progress to a process that waits for the other side in a
    call of MPI; MPI 4.1, section 3.5.)

    Attributes:
        outgoing, incoming: by transfer; a receive is there from its first chunk to its last.
        communicators: all of this process.
        busy: true unless a native send or receive may look after itself alone.
    """

    def __init__(self, sfm: Endpoint) -> None:
        self.sfm = sfm
        self.outgoing: dict[str, Send] = {}
        self.incoming: dict[str, Receive] = {}
        self.communicators: weakref.WeakSet[CommState] = weakref.WeakSet()
        self._posted: dict[CommState, None] = {}  # that have posted receives
        self._flow = Context(sfm, "mpi transfers", UNBOUNDED, library=True)
        self._answers = Context(self._flow, None, UNBOUNDED, answers=True)
        self._section = Section()
        self._streams: list[Send] = []  # whose receivers wait for all the rest
        self._numbers = itertools.count()
        self._looked = 0.0
        self._waiters = 0
        self._in_vain = 0  # tests, one after the other, that found nothing
        self.busy = Busy()
        pickle.changed = self.note

    @property
    def idle(self) -> bool:
        """Nothing is under way: a call may wait without looking after anything else."""
        return not (self._posted or self.outgoing or self.incoming)

    def note(self) -> None:
        """Tell the native calls whether they may look after themselves alone."""
        self.busy.set(not self.idle or not pickle.is_default)

    def new_transfer(self) -> str:
        """A name that no other transfer of any process has."""
        return f"{self.sfm.uid[:12]}-{next(self._numbers)}"

    def tell(self, dest: Any, **what: Any) -> None:
        """Send something about a transfer to the engine at its other end, which may have died."""
        with suppress(PeerLost):
            (self._answers if "ack" in what else self._flow).send(dest=dest, **what)

    # ---- what is under way ----

    def start(self, begin: Callable[[], None]) -> None:
        """Begin an operation, alone with the engine."""
        with self._section:
            begin()
            self.note()

    def post(self, receive: Receive) -> None:
        """Post a receive, and give it its message if that is there."""
        with self._section:
            posted = receive.state.posted
            posted.append(receive)
            posted.match()
            if posted:
                self._posted[receive.state] = None
            self.note()

    def withdraw(self, receive: Receive) -> bool:
        """Take a posted receive back; false if it has got its message."""
        with self._section:
            found = receive.state.posted.remove(receive)
            if not receive.state.posted:
                self._posted.pop(receive.state, None)
            self.note()
            return found

    def progress(self) -> None:
        """Move on what can move on now. Never waits."""
        if self.idle:
            return
        with self._section:
            for state in list(self._posted):
                state.posted.match()
                if not state.posted:
                    del self._posted[state]
            if self.outgoing or self.incoming:
                self._serve()
            self.note()
        while self._streams:
            self._run_stream()

    def _serve(self) -> None:
        while (found := self._answers._any([{}], True)) is not None:
            send = self.outgoing.get(found[1].ack)
            if send is not None:
                send.acknowledged(found[1])
        while (found := self._flow._any([{}], True)) is not None:
            receive = self.incoming.get(found[1].to)
            if receive is not None:
                receive.go_on(found[1])
            del found  # memory of a chunk goes back before the next is looked for

    def stream(self, send: Send) -> None:
        """Let this send stream, when the caller has let go of the engine."""
        self._streams.append(send)

    def _run_stream(self) -> None:
        send = None
        try:
            with self._section:
                if self._streams:
                    send = self._streams.pop()
            if send is not None:
                send.stream()
        except BaseException:
            if send is not None and not send.done:
                with self._section:
                    send.give_up(TransferError("interrupted while its data were on their way"))
            raise
        finally:
            self.note()

    def probe(self, state: CommState, wanted: Template, take: bool) -> Message | None:
        """The message that a receive which was posted now would get."""
        with self._section:
            self.progress()
            return state.posted.look(wanted, take)

    # ---- waiting ----

    def wake(self) -> None:
        """Something is done: let those who wait look."""
        if self._waiters:
            self.sfm._inbox.wake()

    def wait(self, operations: Sequence[Operation], text: str = "", some: bool = False) -> None:
        """Return when all are done; with ``some``, when one is. They may have failed."""
        enough = any if some else all

        def done() -> bool:
            return enough(one.done for one in operations)

        if done():
            return
        self.wait_until(done, text or operations[0].text, operations)

    def wait_until(
        self, done: Callable[[], object], text: str, operations: Iterable[Operation] = ()
    ) -> None:
        """Return when ``done()`` is true; looked at whenever something was moved on.

        Operations whose peer dies meanwhile end with PeerLost.
        """

        def look() -> object:
            self.progress()
            return done()

        def check() -> str:
            self._check(operations)
            return _facts(text, operations)

        operations = list(operations)
        sending = bool(operations) and all(one.sends or one.done for one in operations)
        helpers = {one.helper for one in operations if one.helper is not None}
        self._waiters += 1
        for helper in helpers:
            helper.awaited += 1
        try:
            while True:
                try:
                    self.sfm._inbox.wait_until(look, text, check, sending)
                    return
                except PeerLost as lost:
                    if not self._bury(operations, lost):
                        raise
        except DeadlockDetected as found:
            for helper in helpers:  # what nobody can end is not gone on with, either
                helper.give_up(found)
            raise
        finally:
            self._waiters -= 1
            for helper in helpers:
                helper.awaited -= 1

    def attended(self) -> AbstractContextManager[object]:
        """While the caller waits in something else, a thread moves on what is under way.

        For calls that wait natively: with a receive posted or a large send under way, others may
        wait for this process meanwhile. Costs nothing if there is nothing.
        """
        return _ATTENDED if self.idle else _Attendant(self)

    def poll(self, operations: Sequence[Operation], call: str) -> None:
        """For who only tests, in this call: move on, and now and then look for the dead."""
        self.progress()
        if all(one.done for one in operations):
            self._in_vain = 0
            return
        self.sfm._inbox.polled(lambda: _asked(call, operations))
        # Who tests in a loop would keep the one that it waits for from the core.
        self._in_vain += 1
        if self._in_vain < PATIENCE:
            os.sched_yield()
        else:
            self.sfm._inbox.rest(REST)
        now = time.monotonic()
        if now - self._looked > LOOK_EVERY:
            self._looked = now
            try:
                self._check(operations)
            except PeerLost as lost:
                self.progress()  # what it had sent before is still received
                self._bury(operations, lost)

    def _check(self, operations: Iterable[Operation]) -> None:
        for one in operations:
            if not one.done:
                for name in one.peers():
                    self.check_peer(name)

    def check_peer(self, name: Any) -> None:
        """Raise PeerLost if this process has died or left."""
        member = self.sfm._peers.lookup(name)
        if member is not None and self.sfm.alive(member):
            return
        living = [one for one in self.sfm.members() if one.name == name and self.sfm.alive(one)]
        if not living:
            raise PeerLost(name)

    def _bury(self, operations: Iterable[Operation], lost: PeerLost) -> bool:
        """End those that wait for the lost one; whether there are any."""
        found = False
        with self._section:
            for one in operations:
                if not one.done and lost.peer in list(one.peers()):
                    found = True
                    one.lost(lost)
        return found


def _facts(text: str, operations: Iterable[Operation]) -> str:
    """What observers are told of a wait for these."""
    open_ones = [one for one in operations if not one.done]
    told = [one.helper.facts for one in open_ones if one.helper is not None]
    helped = [one for one in told if one is not None]
    if len(helped) < len(told):
        return ""  # a thread is at work, or has not said yet for whom it waits
    if len(open_ones) == len(helped) == 1:
        return json.dumps(helped[0] | {"purpose": text})
    peers = [list(one.peers()) for one in open_ones if one.helper is None]
    peers += [one["peers"] or [] for one in helped]
    known = list(dict.fromkeys(itertools.chain(*peers))) if peers and all(peers) else None
    since = min((one["known"] for one in helped if one["known"]), default=0.0)
    wanted, space = open_ones[0].wanted() if len(open_ones) == 1 else ({}, 0)
    kind = "recv" if space else "other"
    return facts(kind, known, template=wanted, space=space, purpose=text, known=since)


def _asked(call: str, operations: Iterable[Operation]) -> str:
    """What observers are told of a test in vain."""
    text = waited_for(call, operations)
    return asked(text, _facts(text, operations))


class _Attendant(Helper):
    """A thread that moves on what is under way, from ``with`` to its end."""

    def __init__(self, engine: Engine) -> None:
        super().__init__(engine.sfm)
        self._engine, self._over = engine, False
        self._place = engine.sfm._inbox.place()
        self._thread = self.thread(self._run, "sfm-mpi-progress")

    def _run(self) -> None:
        with (
            suppress(SFMError),
            self.helping(self._place),
        ):  # whoever waits for the operation is told
            self._engine.wait_until(lambda: self._over or self._engine.idle, "")

    def __enter__(self) -> None:
        self._thread.start()

    def __exit__(self, *_: object) -> None:
        self._over = True
        self._engine.wake()
        self._thread.join()
