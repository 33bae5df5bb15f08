"""The output of many processes is forwarded in complete lines and complete tracebacks."""

from __future__ import annotations

import os
import selectors

import pytest

from sfm_kernel.spawn import output as forwarding
from sfm_kernel.spawn.output import OutputMux, Stream, Tail

TRACEBACK = (
    b"Traceback (most recent call last):\n",
    b'  File "a.py", line 1, in <module>\n    work()\n',
    b"ValueError: x\n",
)


class Rank:
    """A rank that writes, and its stream."""

    def __init__(self, output: OutputMux, selector: selectors.BaseSelector, gathers: bool) -> None:
        read, self.fd = os.pipe()
        self.stream = Stream(read, output, b"", selector, gathers)

    def writes(self, *pieces: bytes) -> None:
        for piece in pieces:
            os.write(self.fd, piece)
            self.stream.read()

    def ends(self) -> None:
        os.close(self.fd)
        self.stream.drain()


def shown(*, gathers: bool) -> bytes:
    """The output of two ranks that write the same traceback at the same time."""
    read, write = os.pipe()
    with selectors.PollSelector() as selector:
        output = OutputMux(write, selector)
        ranks = [Rank(output, selector, gathers) for _ in range(2)]
        ranks[0].writes(b"a line\n")
        for piece in TRACEBACK:
            for rank in ranks:
                rank.writes(piece)
        for rank in ranks:
            rank.ends()
        assert output.flush()
    data = os.read(read, 1 << 16)
    os.close(read)
    os.close(write)
    return data


def test_a_traceback_is_shown_as_a_whole_and_once() -> None:
    assert shown(gathers=True) == b"a line\n" + b"".join(TRACEBACK)


def test_lines_of_others_come_as_they_are_written() -> None:
    pieces = b"".join(2 * piece for piece in TRACEBACK)
    assert shown(gathers=False) == b"a line\n" + pieces


def test_a_line_repeated_later_is_shown_again(monkeypatch: pytest.MonkeyPatch) -> None:
    now = 100.0
    monkeypatch.setattr(forwarding.time, "monotonic", lambda: now)
    with selectors.PollSelector() as selector:
        output = OutputMux(1, selector)
        assert [output.is_repeated(b"a"), output.is_repeated(b"b")] == [False, False]
        now += 0.9
        assert output.is_repeated(b"a")
        now += 0.9
        assert not output.is_repeated(b"b")


def test_the_end_of_the_output_is_remembered() -> None:
    tail, (read, write) = Tail(), os.pipe()
    with selectors.PollSelector() as selector:
        out, err = (OutputMux(write, selector, tail) for _ in range(2))
        out.put(b"\x1b[1;31mred\x1b[0m ", "a", b"[0] ")
        err.put("ümlaut\r\n".encode(), "b", b"[1] ")
        out.say("end <b>")
        out.flush(), err.flush()
    os.close(read)
    os.close(write)
    assert tail.text() == "[0] red [1] ümlaut\n\nend <b>"


def test_of_much_output_the_last_64_kb_are_remembered() -> None:
    tail = Tail()
    for nth in range(20_000):
        tail.add(b"%019d\n" % nth)
    text = tail.text()
    assert text.startswith("…") and text.endswith("19999\n") and len(text) == (1 << 16) + 1
