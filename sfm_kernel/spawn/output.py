"""Forwards the output of many processes into their owner's, and the owner's terminal to one.

Nothing in this module blocks: the owner must notice signals and deaths while its output is not
read. Each descriptor is registered in the selector with the function to call when it is ready.
"""

from __future__ import annotations

import contextlib
import os
import re
import selectors
import time

_MOST = 1 << 16
"""Bytes waiting to be written above which the processes' output is not read."""

_ATOM = 4096
"""Bytes that can be written without blocking to a pipe that is ready for writing: PIPE_BUF."""

_PAUSE, _LONGEST_PAUSE = 0.05, 1.0
"""Seconds after which the start of a line is shown without its end: it may be a question. The first
applies while all processes are silent, the second while only the writer is."""

_TRACEBACK = re.compile(rb"^Traceback \(most recent call last\):$", re.MULTILINE)
_TOGETHER = 1.0
"""Seconds within which equal tracebacks of several processes are shown only once."""


_LAST = 1 << 16
"""Bytes of the output that a ``Tail`` has."""

_CONTROLS = re.compile(r"\x1b\[[0-?]*[ -/]*[@-~]|\r(?=\n)")
"""What changes colours, or ends lines of terminals."""


class Tail:
    """The end of a job's output: at least the last 64 kB, if there is as much."""

    def __init__(self) -> None:
        self._data = bytearray()
        self._dropped = False

    def add(self, data: bytes) -> None:
        """Add what comes next."""
        self._data += data
        if len(self._data) > 2 * _LAST:
            del self._data[:-_LAST]
            self._dropped = True

    def text(self) -> str:
        """The last 64 kB as text, without colours; it begins with an ellipsis if there was more."""
        start = max(0, len(self._data) - _LAST)
        text = _CONTROLS.sub("", self._data[start:].decode(errors="replace"))
        return f"…{text}" if start or self._dropped else text


class OutputMux:
    """The owner's stdout or stderr, into which the output of all processes is forwarded.

    Attributes:
        broken: whether its reader has ended; further output is dropped.
        since: the time of the last added output, in ``time.monotonic()``.
    """

    def __init__(self, fd: int, selector: selectors.BaseSelector, tail: Tail | None = None) -> None:
        self._fd, self._selector = fd, selector
        self._pending = bytearray()
        self._begun_by: object = None  # the source of an unfinished line
        self._tracebacks: dict[bytes, float] = {}  # the last shown tracebacks, and their times
        self._tail = tail
        self.broken = False
        self.since = 0.0

    @property
    def full(self) -> bool:
        """Whether the processes' output must not be read now."""
        return len(self._pending) >= _MOST

    def put(self, data: bytes, source: object, prefix: bytes = b"") -> None:
        """Add the output of one source, with a prefix at each line."""
        if not data or self.broken:
            return
        if self._begun_by is not source and prefix:
            self._end_line()
        inside = self._begun_by is not None
        for line in data.splitlines(keepends=True) if prefix else [data]:
            self._add(line if inside else prefix + line)
            inside = not line.endswith(b"\n")
        self._begun_by = source if inside else None
        self.since = time.monotonic()
        self._watch(True)

    def is_repeated(self, traceback: bytes) -> bool:
        """Whether the same traceback was shown within ``_TOGETHER`` seconds. It counts as shown
        from now on."""
        now = time.monotonic()
        recent = {
            text: shown for text, shown in self._tracebacks.items() if now - shown < _TOGETHER
        }
        self._tracebacks = {traceback: now} | recent
        return traceback in recent

    def say(self, text: str, prefix: bytes = b"") -> None:
        """Add complete lines of the owner itself."""
        self._end_line()
        self.put(text.encode(errors="backslashreplace"), self, prefix)

    def flush(self) -> bool:
        """Write as much as possible without blocking; returns whether nothing remains."""
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
            self._add(b"\n")
            self._begun_by = None

    def _add(self, data: bytes) -> None:
        self._pending += data
        if self._tail is not None:
            self._tail.add(data)

    def _watch(self, enabled: bool) -> None:
        if enabled == (self._fd in self._selector.get_map()):
            return
        if enabled:
            self._selector.register(self._fd, selectors.EVENT_WRITE, self.flush)
        else:
            self._selector.unregister(self._fd)


def standard_outputs(
    selector: selectors.BaseSelector, tail: Tail | None = None
) -> tuple[OutputMux, OutputMux]:
    """This process's stdout and stderr; one object for both if they are the same file.

    ``tail``: gets what is added to either.
    """
    out = OutputMux(1, selector, tail)
    with contextlib.suppress(OSError):
        if os.path.samestat(os.fstat(1), os.fstat(2)):
            return out, out
    return out, OutputMux(2, selector, tail)


class Stream:
    """The stdout or stderr of one process: a pipe that is read while ``output`` is not full.

    Args:
        gathers: whether the process writes the traceback of its end itself, in several writes.
            Such a traceback is shown in one piece, and once if several processes write it.
    """

    def __init__(
        self,
        fd: int,
        output: OutputMux,
        prefix: bytes,
        selector: selectors.BaseSelector,
        gathers: bool = False,
    ) -> None:
        os.set_blocking(fd, False)
        self._gathers, self._prefix = gathers, prefix
        self._fd, self._output, self._selector = fd, output, selector
        self._begun = b""  # the start of a line, or of a traceback
        self._since = 0.0
        self._watched = False
        self.watch()

    def watch(self) -> None:
        """Have the selector wait for data, unless the output is full."""
        enabled = self._fd >= 0 and not self._output.full
        if enabled and not self._watched:
            self._selector.register(self._fd, selectors.EVENT_READ, self.read)
            self._since = time.monotonic()  # the rest of a line may be in the pipe
        elif self._watched and not enabled:
            self._selector.unregister(self._fd)
        self._watched = enabled

    def read(self) -> bool:
        """Read up to 64 kB and forward complete lines; returns whether there was any data."""
        try:
            data = os.read(self._fd, 1 << 16) if self._fd >= 0 else b""
        except BlockingIOError:
            return False
        if not data:
            self.close()
            return False
        self._begun += data
        end = self._begun.rfind(b"\n") + 1
        if self._gathers and (found := _TRACEBACK.search(self._begun, 0, end)):
            end = found.start()  # later output may still belong to the traceback
        self._output.put(self._begun[:end], self, self._prefix)
        self._begun = self._begun[end:]
        self._since = time.monotonic()
        if len(self._begun) >= _MOST:
            self.show()
        return True

    def due(self) -> float | None:
        """The time at which to show an unfinished line, in ``time.monotonic()``."""
        if not self._begun or not self._watched:
            return None
        silent = max(self._since, self._output.since)
        return min(silent + _PAUSE, self._since + _LONGEST_PAUSE)

    def show(self) -> None:
        """Show an unfinished line, or a traceback."""
        begun, self._begun = self._begun, b""
        if not (self._gathers and _TRACEBACK.match(begun) and self._output.is_repeated(begun)):
            self._output.put(begun, self, self._prefix)

    def drain(self) -> None:
        """Forward everything that the process has written."""
        for _ in range(64):  # 4 MB, more than a pipe holds: a child may still be writing
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
    """Forwards the owner's terminal to a pipe of one process, which is in another session."""

    def __init__(self, terminal: int, pipe: int, selector: selectors.BaseSelector) -> None:
        os.set_blocking(pipe, False)
        self._terminal, self._pipe, self._selector = terminal, pipe, selector
        self._pending = b""
        selector.register(terminal, selectors.EVENT_READ, self._read)

    def close(self) -> None:
        """End the process's input. Harmless when repeated."""
        if self._pipe >= 0:
            for fd in (self._terminal, self._pipe):
                with contextlib.suppress(KeyError):
                    self._selector.unregister(fd)
            os.close(self._pipe)
            self._pipe = -1

    def _read(self) -> None:
        try:
            self._pending = os.read(self._terminal, _ATOM)
        except OSError:  # this process is in the background, or the terminal is closed
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
        except OSError:  # the process has closed its end
            self.close()
            return
        if not self._pending:
            self._selector.unregister(self._pipe)
            self._selector.register(self._terminal, selectors.EVENT_READ, self._read)
