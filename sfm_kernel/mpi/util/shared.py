"""Something that several processes share: one of them keeps it, and all ask that one.

The keeper answers in a thread of its own, whatever its program does meanwhile. Questions reach it
one after the other, so what it does for one is not seen half done.
"""

from __future__ import annotations

import itertools
import secrets
import threading
from contextlib import suppress
from typing import Any, NamedTuple

from sfm_kernel.endpoint import UNBOUNDED, Context
from sfm_kernel.errors import EndpointClosed, PeerLost, SFMError
from sfm_kernel.mpi.base.errors import translated
from sfm_kernel.transport.base import Name

LATER = object()
"""What a kept thing returns for a question that it will answer later."""


class Asker(NamedTuple):
    """Who has a question, and which."""

    name: Name
    number: int


class Kept:
    """What a keeper has. A question calls the method of its name, with who asks and arguments."""

    keeper: Keeper

    def look(self) -> None:
        """Called about every 100 ms while nobody asks."""

    def forget(self, asker: Asker) -> None:
        """Who asked does not wait for the answer any more: it was stopped."""


class Keeper:
    """The thread that answers questions about one thing."""

    def __init__(self, context: Context, kept: Kept, is_alive: Any) -> None:
        self._context, self._kept, self.is_alive = context, kept, is_alive
        kept.keeper = self
        context.tick = kept.look
        self._thread = threading.Thread(target=self._serve, name="sfm-mpi-sync", daemon=True)
        self._thread.start()

    def answer(self, asker: Asker, value: Any = None, **more: Any) -> None:
        """Answer a question."""
        with suppress(PeerLost):
            self._context.send(dest=asker.name, answers=asker.number, value=value, **more)

    def _serve(self) -> None:
        with suppress(EndpointClosed):
            while True:
                message = self._context.recv(question=_is_text)
                if message.question == "stop":
                    return
                asker = Asker(message.src, message.number)
                value = getattr(self._kept, message.question)(asker, *message.given)
                if value is not LATER and message.question != "forget":
                    self.answer(asker, value)

    def stop(self) -> None:
        """End the thread."""
        self._context.send(dest=self._context._member.name, question="stop")
        self._thread.join()


def _is_text(value: Any) -> bool:
    return isinstance(value, str)


class Shared:
    """A process's share in a thing that another one, or itself, keeps. Made by all together.

    Args:
        comm: an intracommunicator.
        root: the rank of the keeper.
        kept: the thing; used on the keeper.
    """

    def __init__(self, comm: Any, root: int, kept: Kept) -> None:
        state = comm._state
        name = f"mpi sync {comm.bcast(secrets.token_hex(8), root)}"
        self._sfm, self._home = state.process.sfm, state.names[root]
        self._comm, self._numbers = comm, itertools.count()
        self._context = Context(self._sfm, name, UNBOUNDED, library=True)
        self._keeper: Keeper | None = None
        if comm.Get_rank() == root:
            alive = {one.name: one for one in self._sfm.members() if one.name in state.names}
            context = Context(self._sfm, name, UNBOUNDED, library=True)
            self._keeper = Keeper(context, kept, lambda who: self._sfm.alive(alive[who]))
        comm.Barrier()

    def ask(self, question: str, *given: Any) -> Any:
        """The answer to a question. Blocks until it comes."""
        return self.wait_for(self.begin(question, *given))

    def begin(self, question: str, *given: Any) -> int:
        """Ask, and return the number of the question. For what is answered more than once."""
        number = next(self._numbers)
        with translated(self._comm):
            self._send(question, number, given)
        return number

    def _send(self, question: str, number: int, given: tuple[Any, ...] = ()) -> None:
        self._context.send(dest=self._home, question=question, number=number, given=given)

    def wait_for(self, number: int) -> Any:
        """The next answer to the question of this number."""
        with translated(self._comm):
            try:
                answer = self._context.recv(src=self._home, answers=number)
            except BaseException:
                with suppress(SFMError):
                    self._send("forget", number)
                raise
            if "lost" in answer:
                raise PeerLost(answer.lost, answer.value)
        return answer.value

    def free(self) -> None:
        """Nobody asks any more. All processes call it together."""
        self._comm.Barrier()
        if self._keeper is not None:
            with suppress(SFMError):
                self._keeper.stop()
