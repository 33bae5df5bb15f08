"""Matching against a plain list: the paper's linear walk is the specification."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, rule

from sfm_kernel.message import encode
from sfm_kernel.transport.shm import Inbox, Outflow

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


class QueueMachine(RuleBasedStateMachine):
    """Sends and receives at random; the inbox must do what a list does."""

    @initialize()
    def start(self) -> None:
        self.inbox = Inbox()
        self.lane = self.inbox.lane("0" * 32, Outflow(self.inbox))
        self.list: list[tuple[int, dict[str, Any]]] = []
        self.taken: list[Any] = []
        self.count = 0

    @rule(attributes=ATTRIBUTES, times=st.integers(1, 40))
    def arrive(self, attributes: dict[str, Any], times: int) -> None:
        for _ in range(times):
            self.count += 1
            self.inbox.deliver(self.lane, encode(nth=self.count, **attributes))
            self.list.append((self.count, attributes))

    @rule(template=TEMPLATES)
    def receive(self, template: dict[str, Any]) -> None:
        expected = next((one for one in self.list if matches(one[1], template)), None)
        assert self.inbox.peek(template) == (expected is not None)
        out: list[Any] = []
        assert self.inbox.recv_nb(template, out) == (expected is not None)
        if expected is not None:
            assert out[0].nth == expected[0]
            self.list.remove(expected)
            self.taken.append((expected, out[0]))

    @rule(data=st.data())
    def put_back(self, data: st.DataObject) -> None:
        if self.taken:
            entry, message = self.taken.pop(data.draw(st.integers(0, len(self.taken) - 1)))
            self.inbox.put_back(message)
            self.list.append(entry)
            self.list.sort(key=lambda one: one[0])

    @rule()
    def count_them(self) -> None:
        assert self.inbox.depth == len(self.list)

    def teardown(self) -> None:
        if hasattr(self, "inbox"):
            self.inbox.close()


TestQueue = pytest.mark.timeout(600)(QueueMachine.TestCase)
