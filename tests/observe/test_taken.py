"""Messages that a receive waits for, and that its process has received before."""

from __future__ import annotations

import time

from sfm_kernel import Endpoint
from tests.observe.harness import running


def take_too_much(sfm: Endpoint) -> None:
    """A's callback gets what its receive waits for; B receives one message more than A sends."""
    if sfm.name == "A":
        sfm.regcb(lambda _: None, tag="log")
        for nth in range(3):
            sfm.send(dest="B", nth=nth)
        sfm.recv(src="B", tag="log", level="final")
    else:
        for nth in range(4):
            sfm.recv(src="A")
            sfm.send(dest="A", tag="log" if nth == 2 else "other", level="final")


def test_what_was_received_before_is_said_where_it_would_be_a_deadlock() -> None:
    first = take_too_much.__code__.co_firstlineno
    with running(take_too_much, 2, names=["A", "B"]) as run:
        while not (found := run.explain())["but_for"]:
            time.sleep(0.05)
    of_a, of_b = found["sentences"][:2]
    here = f"test_taken.py, line {first + 3}"
    assert of_a.endswith(
        "The only message that would have fitted was received before, by callback "
        f"regcb(tag='log') (in {here}), from B."
    )
    assert of_b.endswith(
        "B has received 3 of 3 messages that would have fitted, from A, the last one in "
        f"test_taken.py, line {first + 9} (take_too_much)."
    )
