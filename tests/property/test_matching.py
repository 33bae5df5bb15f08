"""Matching against a plain list: the paper's linear walk is the specification."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, rule

from sfm_kernel import _native
from sfm_kernel._native import CallHooks, Calls, Channel, Inbox
from sfm_kernel.errors import WouldBlock
from sfm_kernel.message import pack

NAMES = ["a", "b", "c"]
VALUES = st.one_of(
    st.integers(-2, 3),
    st.sampled_from([0.0, -0.0, 1.0, 2.5, float("inf"), float("nan"), 2**63, 2**70, float(2**70)]),
    st.sampled_from([True, False, None, "a", "b", "", b"a", b"", bytearray(b"a")]),
    st.sampled_from([(1, 2), [1, 2], {"k": 1}, 1 + 0j]),
)
ATTRIBUTES = st.dictionaries(st.sampled_from(NAMES), VALUES, max_size=3)
PREDICATES = st.sampled_from(
    [lambda v: v == 1, lambda v: isinstance(v, str), lambda v: True, lambda v: False]
)
TEMPLATES = st.dictionaries(st.sampled_from(NAMES), st.one_of(VALUES, PREDICATES), max_size=2)


def matches(message: dict[str, Any], template: dict[str, Any]) -> bool:
    """Section 4.3 of the paper, word by word."""
    for name, wanted in template.items():
        if name not in message:
            return False
        if callable(wanted):
            if not wanted(message[name]):
                return False
        elif not message[name] == wanted:  # noqa: SIM201 - the paper's equality
            return False
    return True


class Receiver(Calls):
    recv_nb = _native.recv_nb
    peek = _native.peek


def unused(*_: Any) -> Any:
    raise AssertionError("no receive here waits, and nothing is sent")


HOOKS = CallHooks(
    channel=unused,
    successor=unused,
    canonical=unused,
    begin_wait=unused,
    timed_out=unused,
    would_block=lambda _, template: WouldBlock(str(template)),
    polled=lambda *_: "",
)


def interrupt() -> None:
    raise KeyboardInterrupt


class QueueMachine(RuleBasedStateMachine):
    """Sends and receives at random; the inbox must do what a list does."""

    @initialize()
    def start(self) -> None:
        self.inbox = Inbox()
        self.calls = Receiver()
        self.calls._wire(self.inbox, {}, {}, HOOKS)
        uid = "0" * 32
        self.channel = Channel.local(self.inbox, uid, self.inbox, uid, "A", "A", lambda: None)
        self.list: list[tuple[int, dict[str, Any]]] = []
        self.count = 0

    @rule(attributes=ATTRIBUTES, times=st.integers(1, 40))
    def arrive(self, attributes: dict[str, Any], times: int) -> None:
        for _ in range(times):
            self.count += 1
            packet = pack({"nth": self.count, **attributes})
            self.channel.send(packet, 1 << 40)
            self.list.append((self.count, attributes))

    @rule(template=TEMPLATES)
    def receive(self, template: dict[str, Any]) -> None:
        expected = next((entry for entry in self.list if matches(entry[1], template)), None)
        assert self.calls.peek(**template) == (expected is not None)
        if expected is None:
            with pytest.raises(WouldBlock):
                self.calls.recv_nb(**template)
        else:
            assert self.calls.recv_nb(**template).nth == expected[0]
            self.list.remove(expected)

    @rule(template=TEMPLATES)
    def receive_and_be_interrupted(self, template: dict[str, Any]) -> None:
        """A message that nobody has looked at when Stop strikes goes back to where it was."""
        if any(matches(entry[1], template) for entry in self.list):
            with pytest.raises(KeyboardInterrupt):
                [self.calls.recv_nb(**template), interrupt()]

    @rule()
    def count_them(self) -> None:
        assert self.inbox.depth == len(self.list)

    def teardown(self) -> None:
        if hasattr(self, "inbox"):
            self.inbox.close()


TestQueue = pytest.mark.timeout(600)(QueueMachine.TestCase)
