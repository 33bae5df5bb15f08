"""Frames are sent again when a connection broke, or when one was lost on the way."""

from __future__ import annotations

import pytest

from tests.zmq import wire
from tests.zmq.by_hand import Impostor
from tests.zmq.conftest import packet, unpacked

pytestmark = pytest.mark.zmq


def test_frames_before_one_that_came_too_early_are_asked_for_again(fake: Impostor) -> None:
    b = fake.receiver
    fake.greet()
    fake.put(b"D", 1, packet(n=1))
    fake.put(b"D", 3, packet(n=3))
    asked = fake.hears(b"R")
    while not asked.flag:
        asked = fake.hears(b"R")
    assert asked.arrived == 1
    for number in (1, 2, 3, 3, 1, 2):
        fake.put(b"D", number, packet(n=number))
    fake.put(b"D", 4, packet(n=4))
    assert [b.recv(src="A").n for _ in range(4)] == [1, 2, 3, 4]
    assert not b.peek()


def test_a_peer_that_reconnects_is_told_how_far_everything_has_come(fake: Impostor) -> None:
    b = fake.receiver
    fake.greet()
    assert fake.hears(b"W").arrived == 0
    for number in (1, 2):
        fake.put(b"D", number, packet(n=number))
    b.send(dest="A", n="answer")
    assert fake.hears(b"D").number == 1
    assert b.recv(n=2)
    fake.again()
    fake.greet(7, again=True)
    welcome = fake.hears(b"W")
    assert (welcome.number, welcome.arrived) == (7, 2)
    # And it asks itself: its answer was not said to have arrived.
    fake.again()
    fake.greet(7, again=True)
    question = fake.hears(b"H")
    assert question.number and question.klass == wire.RESUME
    b.send(dest="A", n="next")
    for number in (1, 1, question.number):  # the answer to any question will do, once
        fake.put(b"W", number)
    for number, n in ((1, "answer"), (2, "next")):
        again = fake.hears(b"D")
        assert (again.number, unpacked(again.body).n) == (number, n)
    b.send(dest="A", n="last")
    assert fake.hears(b"D").number == 3


def test_missing_frames_are_reported_once_for_each_question(fake: Impostor) -> None:
    for question in (0, 5, 6):
        fake.greet(question)
        while fake.hears(b"W").number != question:
            pass
        for number in (3, 4, 5):
            fake.put(b"D", number, packet(n=number))
    fake.greet(7)
    fake.hears(b"W")
    said = [frame for frame in fake.heard if frame.kind == b"R" and frame.flag]
    assert [(frame.number, frame.arrived) for frame in said] == [(0, 0), (5, 0), (6, 0)]


def test_frames_missing_before_a_question_are_no_reason_to_ask_again(fake: Impostor) -> None:
    b = fake.receiver
    fake.greet()
    fake.hears(b"W")  # before that, B would make a connection of its own: to A
    b.send(dest="A", n=1)
    assert fake.hears(b"D").number == 1
    fake.heard.clear()
    for question in (1, 2):
        fake.put(b"R", question - 1, flag=True)
        assert fake.hears(b"H").number == question
        fake.put(b"R", question - 1, flag=True)
        fake.put(b"W", question)
        assert fake.hears(b"D").number == 1
        assert not [frame for frame in fake.heard if frame.kind == b"H"]
