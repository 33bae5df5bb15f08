"""Questions to one process, each with an answer.

While a process waits for an answer, it answers the questions that are asked on behalf of its own
question, and no others: A may ask B, which asks A. Each question carries its chain: the attachments
in which processes wait until it is answered. A question to one of these processes is sent over that
attachment, where the process receives, and not to the context in which it serves.
"""

from __future__ import annotations

import itertools
import threading
import time
import weakref
from collections.abc import Callable
from concurrent import futures
from typing import Any

from sfm_kernel.directory import Name
from sfm_kernel.endpoint import Endpoint
from sfm_kernel.endpoint.bystanders import ASKING
from sfm_kernel.errors import PeerLost, RecvTimeout, RemoteError, SFMError
from sfm_kernel.message import Message
from sfm_kernel.serving.owner import Attachment, Service
from sfm_kernel.serving.process import users_code
from sfm_kernel.serving.values import Failure, pack

_TURN = 0.05
"""Seconds after which a thread that waits for an answer checks whether it has to receive."""

_numbers = itertools.count(1)


class _Local(threading.local):
    chain: tuple[tuple[Name, str], ...] = ()


_local = _Local()
"""The processes that wait for this thread's work, each with the key of the attachment in which it
receives."""


class Question(futures.Future[Any]):
    """A future of an answer, for ``concurrent.futures`` too. It cannot be cancelled."""

    def __init__(self, asker: Asker, title: str) -> None:
        super().__init__()
        self._asker, self.title = asker, title
        self.set_running_or_notify_cancel()

    def result(self, timeout: float | None = None) -> Any:
        """Wait for the answer; return its value or raise its error.

        Args:
            timeout: seconds after which RecvTimeout is raised; the other process continues.
        """
        self._asker.wait(self, timeout)
        if (error := super().exception(0)) is None:
            return super().result(0)
        try:
            raise error
        finally:
            del self, error  # otherwise the traceback would keep them alive

    def exception(self, timeout: float | None = None) -> BaseException | None:
        """Wait for the answer; return its error, or None."""
        self._asker.wait(self, timeout)
        return super().exception(0)


class Asker:
    """Asks one process. Thread-safe: one of the threads that wait receives for all.

    Args:
        answerer: makes or finds the service that answers, in this process and in the other.
    Attributes:
        attachment: to the other process. It is released when this object is collected.
        lost: the error that ended the attachment, or None.
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
        self._awaited = [self.name].copy  # without self, so that the attachment does not hold it
        self.lost: Exception | None = None
        self._open: dict[int, Question] = {}
        self._receiving, self._lock = threading.RLock(), threading.Lock()
        self._waiting = 0
        self._helper: threading.Thread | None = None
        self._helps = False
        weakref.finalize(self, self.attachment.release).atexit = False

    def result(self, question: Question, message: Message) -> Any:
        """The value of an answer. To override."""
        raise NotImplementedError

    def ask(self, title: str, /, *, waits: bool = True, **attributes: Any) -> Question:
        """Send a question to the other process.

        Args:
            waits: whether this thread calls ``result`` next. If not, a helper thread receives the
                answer.
        Raises: PeerLost, at once or from ``result``.
        """
        if self.lost is not None:
            raise self.lost
        question, number = Question(self, title), next(_numbers)
        with self._lock:
            self._open[number] = question
            if not waits and self._helper is None:
                self._helper = threading.Thread(target=self._help, name=ASKING, daemon=True)
                self._helper.start()
        try:
            self.send(number=number, waits=waits, **attributes)
        except SFMError as error:
            if isinstance(error, PeerLost):
                self._fail(error)
            self._open.pop(number, None)
            raise
        return question

    def send(self, /, **attributes: Any) -> None:
        """Send a message without waiting for an answer."""
        attributes |= {"chain": _local.chain, "by": self.attachment.key}
        if key := dict(_local.chain).get(self.name):
            self.attachment.call_back(self.name, key, **attributes)
        else:
            self.attachment.send(self.name, **attributes)

    def wait(self, question: Question, timeout: float | None) -> None:
        """Wait until the question has an answer, or the other process has died.

        Blocks: for at most ``timeout`` seconds. Stop ends it, and what the other process runs.
        Raises: RecvTimeout.
        """
        end = None if timeout is None else time.monotonic() + timeout
        self._waiting += 1
        try:
            while not question.done():
                remaining = _TURN if end is None else end - time.monotonic()
                if remaining <= 0:
                    raise RecvTimeout(
                        f"{question.title} on {self.name!r} has not ended within {timeout:g} s. "
                        f"It still runs there, or waits until {self.name!r} serves"
                    )
                if self._receiving.acquire(blocking=False):
                    try:
                        self._receive(question.title, limit=end and remaining)
                    finally:
                        self._receiving.release()
                    continue
                if self._helps:
                    self.attachment.wake()
                futures.wait([question], min(remaining, _TURN))
        except KeyboardInterrupt:
            self.attachment.interrupt([self.name])
            raise
        finally:
            self._waiting -= 1

    def _help(self) -> None:
        """Receive answers in the helper thread, while no thread of the program does."""
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
        self.attachment.set_purpose(f"{title} on {self.name}")
        try:
            message = self.attachment.receive(self._awaited, **limit)
        except RecvTimeout:
            return
        if message is None:
            if self.attachment.lost():
                self._fail(PeerLost(self.name, f"while it was to do {title or 'something'}"))
        elif "chain" in message:  # asked on behalf of one of this process's questions
            self._answerer(self.sfm, message.src, message.by).take(message)
        elif "number" in message and (question := self._open.pop(message.number, None)):
            try:
                question.set_result(self._answer(question, message))
            except BaseException as error:  # noqa: BLE001 - the other process's error can be any
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
    """Answers one asker's questions."""

    def take(self, message: Message) -> None:
        """Answer a question."""
        if "number" not in message:
            self.notice(message)
            return
        before = _local.chain
        _local.chain = (*message.chain, (self.owner, self.key)) if message.waits else ()
        try:
            with users_code():
                answer = self.do(message)
        except BaseException as error:  # noqa: BLE001 - the answer reports it
            answer = {"failure": Failure(error)}
        finally:
            _local.chain = before
        self.answer(number=message.number, **answer)

    def do(self, message: Message) -> dict[str, Any]:
        """Compute the attributes of the answer. To override."""
        return pack(None)

    def notice(self, message: Message) -> None:
        """Take a message that has no answer. To override."""
