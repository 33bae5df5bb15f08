"""Questions to one process, each with an answer: who waits for it, and who asks meanwhile.

A process that waits for an answer answers itself what is asked on behalf of its own question, and
nothing else: A may ask B, which asks A. Each question tells in which attachments others wait until
it is answered (its chain); a question to one of them goes there instead of where it serves.
"""

from __future__ import annotations

import itertools
import threading
import time
import weakref
from collections.abc import Callable
from concurrent import futures
from typing import Any

from sfm_kernel.endpoint import Endpoint
from sfm_kernel.errors import PeerLost, RecvTimeout, RemoteError, SFMError
from sfm_kernel.message import Message
from sfm_kernel.serving.owner import Attachment, Service
from sfm_kernel.serving.process import users_code
from sfm_kernel.serving.values import Failure, pack
from sfm_kernel.transport.base import Name

_TURN = 0.05
"""Seconds after which threads that wait for answers look whose turn it is to receive them."""

_numbers = itertools.count(1)


class _Here(threading.local):
    chain: tuple[tuple[Name, str], ...] = ()


_here = _Here()
"""For whom this thread works: who waits for it, and in the attachment with which key."""


class Question(futures.Future[Any]):
    """What was asked; ``concurrent.futures`` can wait for its answer. It cannot be cancelled."""

    def __init__(self, asker: Asker, title: str) -> None:
        super().__init__()
        self._asker, self.title = asker, title
        self.set_running_or_notify_cancel()

    def result(self, timeout: float | None = None) -> Any:
        """What the answer gives, or raises. RecvTimeout after so many seconds, as it goes on."""
        self._asker.wait(self, timeout)
        if (error := super().exception(0)) is None:
            return super().result(0)
        try:
            raise error
        finally:
            del self, error  # or its traceback would keep all of them

    def exception(self, timeout: float | None = None) -> BaseException | None:
        """What the answer raises, if it does."""
        self._asker.wait(self, timeout)
        return super().exception(0)


class Asker:
    """Who asks one process. Thread-safe: of the threads that wait, one receives for all.

    Args:
        answerer: makes, or finds, the service that answers, here and there.
    Attributes:
        attachment: to that process. It is released when nobody holds this any more.
        lost: why nothing more can be asked, if so.
    """

    def __init__(
        self,
        sfm: Endpoint,
        name: Name,
        answerer: Callable[[Endpoint, Name, str], Answerer],
        title: str,
    ) -> None:
        self.sfm, self._answerer = sfm, answerer
        self.attachment = Attachment(sfm, [name], answerer, title)
        (self.name,) = self.attachment.names
        self._who = [self.name].copy  # without self: the attachment must not keep this
        self.lost: Exception | None = None
        self._open: dict[int, Question] = {}
        self._receiving, self._lock = threading.RLock(), threading.Lock()
        self._waiting = 0
        self._helper: threading.Thread | None = None
        self._helps = False
        weakref.finalize(self, self.attachment.release).atexit = False

    def result(self, question: Question, message: Message) -> Any:
        """What an answer gives. To override."""
        raise NotImplementedError

    def ask(self, title: str, /, *, waits: bool = True, **attributes: Any) -> Question:
        """Send a question, for the answerer there.

        Args:
            waits: this thread calls ``result`` next, and does nothing in between. If not, the
                answer is received by a thread beside the program.
        Raises: PeerLost, at once or from ``result``.
        """
        if self.lost is not None:
            raise self.lost
        question, number = Question(self, title), next(_numbers)
        with self._lock:
            self._open[number] = question
            if not waits and self._helper is None:
                self._helper = threading.Thread(target=self._help, name="sfm-asking", daemon=True)
                self._helper.start()
        try:
            self.tell(number=number, waits=waits, **attributes)
        except SFMError as error:
            if isinstance(error, PeerLost):
                self._fail(error)
            self._open.pop(number, None)
            raise
        return question

    def tell(self, /, **attributes: Any) -> None:
        """Send what is not answered."""
        attributes |= {"chain": _here.chain, "by": self.attachment.key}
        if key := dict(_here.chain).get(self.name):
            self.attachment.call_back(self.name, key, **attributes)
        else:
            self.attachment.send(self.name, **attributes)

    def wait(self, question: Question, timeout: float | None) -> None:
        """Return when it has been answered, or nobody can.

        Blocks: so long; Stop ends it, and what the process runs.
        Raises: RecvTimeout.
        """
        end = None if timeout is None else time.monotonic() + timeout
        self._waiting += 1
        try:
            while not question.done():
                left = _TURN if end is None else end - time.monotonic()
                if left <= 0:
                    what = f"{question.title} on {self.name!r} has not ended within {timeout:g} s"
                    raise RecvTimeout(
                        f"{what}. It goes on there, or waits until {self.name!r} serves"
                    )
                if self._receiving.acquire(blocking=False):
                    try:
                        self._receive(question.title, limit=end and left)
                    finally:
                        self._receiving.release()
                    continue
                if self._helps:
                    self.attachment.wake()
                futures.wait([question], min(left, _TURN))
        except KeyboardInterrupt:
            self.attachment.interrupt([self.name])
            raise
        finally:
            self._waiting -= 1

    def _help(self) -> None:
        """Receive answers beside the program, while no thread of it does."""
        while True:
            with self._lock:
                if not self._open:
                    self._helper = None
                    return
            if self._waiting or not self._receiving.acquire(timeout=_TURN):
                time.sleep(_TURN / 5)
                continue
            try:
                self._helps = True
                self._receive("", quiet=_TURN)
            except SFMError as error:  # the endpoint was closed
                self._fail(error)
            finally:
                self._helps = False
                self._receiving.release()

    def _receive(self, title: str, **limit: float | None) -> None:
        self.attachment.tell(f"{title} on {self.name}")
        try:
            message = self.attachment.receive(self._who, **limit)
        except RecvTimeout:
            return
        if message is None:
            if self.attachment.lost():
                self._fail(PeerLost(self.name, f"while it was to do {title or 'something'}"))
        elif "chain" in message:  # asked on behalf of a question from here
            self._answerer(self.sfm, message.src, message.by).take(message)
        elif "number" in message and (question := self._open.pop(message.number, None)):
            try:
                question.set_result(self._answer(question, message))
            except BaseException as error:  # noqa: BLE001 - whatever was raised there
                question.set_exception(error.with_traceback(None))

    def _answer(self, question: Question, message: Message) -> Any:
        if "failure" not in message:
            return self.result(question, message)
        error, trace = message.failure.error, message.failure.traceback(self.name)
        cause = RemoteError(f"{question.title} raised on {self.name!r}:\n{trace}")
        if not isinstance(error, Exception):
            raise cause
        raise error from cause

    def _fail(self, error: Exception) -> None:
        self.lost = error
        while self._open:
            self._open.popitem()[1].set_exception(error)


class Answerer(Service):
    """Answers one asker's questions, wherever they arrive."""

    def take(self, message: Message) -> None:
        """Answer a question."""
        if "number" not in message:
            self.hear(message)
            return
        before = _here.chain
        _here.chain = (*message.chain, (self.owner, self.key)) if message.waits else ()
        try:
            with users_code():
                told = self.do(message)
        except BaseException as error:  # noqa: BLE001 - the asker is told
            told = {"failure": Failure(error)}
        finally:
            _here.chain = before
        self.answer(number=message.number, **told)

    def do(self, message: Message) -> dict[str, Any]:
        """The attributes of the answer. To override."""
        return pack(None)

    def hear(self, message: Message) -> None:
        """What is not answered. To override."""
