"""The ranks' output and input, passed on by the launcher.

Nothing here blocks: the launcher must notice signals and dead ranks while nobody reads its output.
What is registered with the selector has as data the function to call when it is ready.
"""

from __future__ import annotations

import contextlib
import os
import re
import selectors
import time

_MOST = 1 << 16
"""Bytes that wait to be written before reading from ranks pauses."""

_ATOM = 4096
"""Bytes that do not block where something can be written: PIPE_BUF."""

_PAUSE, _LONGEST_PAUSE = 0.05, 1.0
"""Seconds until the start of a line is shown whose end does not come: a question, say. The first
where all ranks are silent, since the line may go on; the other where only its own is."""

_TRACEBACK = re.compile(rb"^Traceback \(most recent call last\):$", re.MULTILINE)
_TOGETHER = 1.0
"""Seconds in which processes that fail for the same reason write the same traceback."""


class Output:
    """The launcher's stdout or stderr, to which all ranks write.

    Attributes:
        broken: its reader has gone, and what comes is dropped.
        since: when something was added last, in ``time.monotonic()``.
    """

    def __init__(self, fd: int, selector: selectors.BaseSelector) -> None:
        self._fd, self._selector = fd, selector
        self._pending = bytearray()
        self._begun_by: object = None  # who has written the start of a line
        self._tracebacks: dict[bytes, float] = {}  # those that were shown last, and when
        self.broken = False
        self.since = 0.0

    @property
    def full(self) -> bool:
        """Whether the ranks have to wait."""
        return len(self._pending) >= _MOST

    def put(self, data: bytes, source: object, prefix: bytes = b"") -> None:
        """Add what one source says; every line gets the prefix."""
        if not data or self.broken:
            return
        if self._begun_by is not source and prefix:
            self._end_line()
        inside = self._begun_by is not None
        for line in data.splitlines(keepends=True) if prefix else [data]:
            self._pending += line if inside else prefix + line
            inside = not line.endswith(b"\n")
        self._begun_by = source if inside else None
        self.since = time.monotonic()
        self._watch(True)

    def is_repeated(self, traceback: bytes) -> bool:
        """Whether another process has just said the same; from now on this one has."""
        now = time.monotonic()
        recent = {one: at for one, at in self._tracebacks.items() if now - at < _TOGETHER}
        self._tracebacks = {traceback: now} | recent
        return traceback in recent

    def say(self, text: str, prefix: bytes = b"") -> None:
        """Add whole lines of the launcher's own."""
        self._end_line()
        self.put(text.encode(errors="backslashreplace"), self, prefix)

    def flush(self) -> bool:
        """Write what can be written now; whether that was all."""
        if not self._pending:
            return True
        try:
            count = os.write(self._fd, self._pending[:_ATOM])
        except BlockingIOError:
            return False
        except OSError:
            self.broken, count = True, len(self._pending)
        del self._pending[:count]
        if not self._pending:
            self._watch(False)
        return not self._pending

    def _end_line(self) -> None:
        if self._begun_by is not None:
            self._pending += b"\n"
            self._begun_by = None

    def _watch(self, wanted: bool) -> None:
        if wanted == (self._fd in self._selector.get_map()):
            return
        if wanted:
            self._selector.register(self._fd, selectors.EVENT_WRITE, self.flush)
        else:
            self._selector.unregister(self._fd)


class Stream:
    """The stdout or stderr of one rank: a pipe, which is read as long as ``output`` has room.

    ``tells``: the rank itself writes the traceback of what ends it, in pieces. That is shown as a
    whole, and but once where several do so together. Who does not, reports to the launcher.
    """

    def __init__(
        self,
        fd: int,
        output: Output,
        prefix: bytes,
        selector: selectors.BaseSelector,
        tells: bool = False,
    ) -> None:
        os.set_blocking(fd, False)
        self._tells = tells
        self._fd, self._output, self._prefix, self._selector = fd, output, prefix, selector
        self._begun = b""  # the start of a line, or of a traceback
        self._since = 0.0
        self._watched = False
        self.watch()

    def watch(self) -> None:
        """Wait for data if there is room for it."""
        wanted = self._fd >= 0 and not self._output.full
        if wanted and not self._watched:
            self._selector.register(self._fd, selectors.EVENT_READ, self.read)
            self._since = time.monotonic()  # the rest of a line may have waited
        elif self._watched and not wanted:
            self._selector.unregister(self._fd)
        self._watched = wanted

    def read(self) -> bool:
        """Take what is there, up to 64 kB, and pass whole lines on; whether there was anything."""
        try:
            data = os.read(self._fd, 1 << 16) if self._fd >= 0 else b""
        except BlockingIOError:
            return False
        if not data:
            self.close()
            return False
        self._begun += data
        end = self._begun.rfind(b"\n") + 1
        if self._tells and (found := _TRACEBACK.search(self._begun, 0, end)):
            end = found.start()  # its end is not known: what else comes soon is a part of it
        self._output.put(self._begun[:end], self, self._prefix)
        self._begun = self._begun[end:]
        self._since = time.monotonic()
        if len(self._begun) >= _MOST:
            self.show()
        return True

    def due(self) -> float | None:
        """When to show the start of a line, in ``time.monotonic()``."""
        if not self._begun or not self._watched:
            return None
        silent = max(self._since, self._output.since)
        return min(silent + _PAUSE, self._since + _LONGEST_PAUSE)

    def show(self) -> None:
        """Show the start of a line, or a traceback."""
        begun, self._begun = self._begun, b""
        if not (self._tells and _TRACEBACK.match(begun) and self._output.is_repeated(begun)):
            self._output.put(begun, self, self._prefix)

    def drain(self) -> None:
        """Pass on all that the rank has written."""
        for _ in range(64):  # 4 MB: more than a pipe holds. A process it left may go on writing
            if not self.read():
                self.show()
                break

    def close(self) -> None:
        """Stop reading. Harmless when repeated."""
        if self._fd >= 0:
            if self._watched:
                self._selector.unregister(self._fd)
            os.close(self._fd)
            self._fd, self._watched = -1, False
        self.show()


class Input:
    """The launcher's terminal, read for rank 0, which has a pipe: it is in another session."""

    def __init__(self, terminal: int, pipe: int, selector: selectors.BaseSelector) -> None:
        os.set_blocking(pipe, False)
        self._terminal, self._pipe, self._selector = terminal, pipe, selector
        self._pending = b""
        selector.register(terminal, selectors.EVENT_READ, self._read)

    def close(self) -> None:
        """Rank 0 reads the end of its input. Harmless when repeated."""
        if self._pipe >= 0:
            for fd in (self._terminal, self._pipe):
                with contextlib.suppress(KeyError):
                    self._selector.unregister(fd)
            os.close(self._pipe)
            self._pipe = -1

    def _read(self) -> None:
        try:
            self._pending = os.read(self._terminal, _ATOM)
        except OSError:  # this process is in the background, or the terminal has gone
            self._pending = b""
        if not self._pending:
            self.close()
            return
        self._selector.unregister(self._terminal)
        self._selector.register(self._pipe, selectors.EVENT_WRITE, self._write)

    def _write(self) -> None:
        try:
            self._pending = self._pending[os.write(self._pipe, self._pending) :]
        except BlockingIOError:
            return
        except OSError:  # rank 0 has closed its end
            self.close()
            return
        if not self._pending:
            self._selector.unregister(self._pipe)
            self._selector.register(self._terminal, selectors.EVENT_READ, self._read)
