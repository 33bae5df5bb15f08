"""JupyterLab's debugger on an engine: its requests go to the notebook's kernel."""

from __future__ import annotations

import itertools
from typing import Any

import pytest

from tests.jupyter.notebook import PATIENCE, Notebook
from tests.waiting import wait_until

pytestmark = pytest.mark.keeps("one notebook with three engines for the whole module")

CELLS = ["%sfm start 3"]

CELL = """%%sfm

def twice(x):
    y = 2 * x
    return y
print("twice", twice(rank + 10))
"""
LINE = 5
MAIN = 1
"""The number that debugpy gives to the main thread, and the only one that JupyterLab asks about."""

_numbers = itertools.count(1)


def asked(book: Notebook, command: str, **arguments: Any) -> Any:
    """The body of the answer to a request of the debugger (Debug Adapter Protocol)."""
    content = {"type": "request", "seq": next(_numbers), "command": command, "arguments": arguments}
    request = book.client.session.msg("debug_request", content)
    book.client.control_channel.send(request)
    while True:
        reply = book.client.get_control_msg(timeout=PATIENCE)
        if reply["parent_header"].get("msg_id") == request["header"]["msg_id"]:
            assert reply["content"]["success"], reply["content"]
            return reply["content"].get("body")


def turn_on(book: Notebook) -> None:
    asked(book, "initialize", clientID="test", adapterID="python", pathFormat="path")
    asked(book, "attach")


def stops(book: Notebook) -> str:
    """Set a breakpoint in the cell, and run it up to there; returns the cell's message."""
    path = asked(book, "dumpCell", code=CELL)["sourcePath"]
    asked(book, "setBreakpoints", source={"path": path}, breakpoints=[{"line": LINE}])
    asked(book, "configurationDone")
    message = book.send(CELL)
    wait_until(lambda: MAIN in asked(book, "debugInfo")["stoppedThreads"])
    frame = asked(book, "stackTrace", threadId=MAIN)["stackFrames"][0]
    assert (frame["source"]["path"], frame["line"], frame["name"]) == (path, LINE, "twice")
    value = asked(book, "evaluate", expression="y", frameId=frame["id"])["result"]
    assert value == "22", "not the notebook's, and not another engine's"
    asked(book, "continue", threadId=MAIN)
    return message


def test_an_engine_stops_at_the_notebook_s_breakpoint(book: Notebook) -> None:
    assert "stops engine 1 at breakpoints" in book.text("%sfm debug 1 --attach")
    turn_on(book)
    assert "twice 22" in book.wait(stops(book)).text
    for command in ("%sfm debug 0 --attach", "%sfm debug --detach"):
        assert "turn the debugger off first" in book.run(command).text
    asked(book, "disconnect", restart=False)
    assert book.text("%sfm debug --detach") == "the debugger is the notebook's again\n"
    assert "no engine is attached" in book.run("%sfm debug --detach").text
    # The debugger's threads send no messages.
    message = book.send("%%sfm 1\nrecv(tag='never')")
    book.wait(message, until=lambda cell: "1 waits for" in cell.text)
    book.interrupt()
    book.wait(message)


def test_an_engine_that_has_ended_leaves_the_debugger_to_the_notebook(book: Notebook) -> None:
    book.run("%sfm debug 2 --attach").ok()
    book.run("%sfm restart 2").ok()
    turn_on(book)
    asked(book, "disconnect", restart=False)
    assert "no engine is attached" in book.run("%sfm debug --detach").text


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("%sfm debug --attach", "takes an engine"),
        ("%sfm debug 7 --attach", "takes one engine, not '7'"),
        (
            "import sys; sys.modules['debugpy'] = None\n%sfm debug 0 --attach",
            "debugpy is not installed where 0 runs",
        ),
    ],
)
def test_what_cannot_be_attached(book: Notebook, line: str, said: str) -> None:
    if "import" in line:
        first, _, line = line.partition("\n")
        book.run(f"%%sfm 0\n{first}").ok()
    assert said in book.run(line).text
