"""Late senders and receivers, and the cost: a history for each rule."""

from __future__ import annotations

import time
from typing import Any

import numpy as np

import sfm_kernel
from sfm_kernel import mpi
from sfm_kernel.observe import snapshot
from sfm_kernel.observe.timeline import Recorder
from tests.unit.timelines import BEGIN, Histories, carried_out, read


def late_receiver(sfm: sfm_kernel.Endpoint) -> dict[str, Any] | None:
    """0 sends synchronously, then a large message; 1 receives once 0 has waited for it."""
    mpi.use(sfm)
    from mpi4py import MPI

    comm, items = MPI.COMM_WORLD, np.zeros(1 << 18)
    if comm.rank == 0:
        comm.ssend("now", dest=1, tag=7)
        comm.Send(items, dest=1, tag=7)
        comm.recv(source=1)
        recorder = Recorder(sfm)
        recorder.read()
        comm.send("seen", dest=1)
        return recorder.whole()
    first = await_send(sfm)
    comm.recv(source=0, tag=7)
    await_send(sfm, other_than=first)
    comm.Recv(items, source=0, tag=7)
    comm.send("done", dest=0)
    comm.recv(source=0)
    return None


def await_send(sfm: sfm_kernel.Endpoint, other_than: int = 0) -> int:
    """Return the number of 0's send once it is blocked in another send than the given one."""
    while True:
        sender = snapshot(sfm)["processes"][0]
        if sender["state"] == "blocked in send" and sender["call"] != other_than:
            return int(sender["call"])
        time.sleep(0.01)


def lateness(data: dict[str, Any]) -> list[tuple[str | None, float]]:
    return [(flight["late"], round(flight["cost"], 3)) for flight in data["flights"]]


def test_a_flight_says_since_when_the_other_end_waited() -> None:
    """It waited for the sender; for room and then the receipt; for nobody; for the receipt."""
    h = Histories(2)
    h.state(1, (1, "blocked in recv"))
    h.received(0, 1, 4.5, h.sent(0, 1, 4))
    h.state(1, (5, "running"))
    h.state(0, (6, "blocked in send"))
    both = h.sent(0, 1, 7)
    h.state(0, (7, "running"), (7.5, "blocked in send"))
    h.received(0, 1, 8, both)
    h.state(0, (8, "running"))
    h.received(0, 1, 10, h.sent(0, 1, 9))
    synchronous = h.sent(0, 1, 11)
    h.state(0, (11.5, "blocked in send"))
    h.received(0, 1, 12, synchronous)
    h.state(0, (12, "running"))
    since = [flight["since"] for flight in read(h)["flights"]]
    assert [time and time - BEGIN for time in since] == [1, 6, None, 11.5]


def test_a_late_sender() -> None:
    """The cost is the time from the receiver's blocking to the send."""
    h = Histories(2)
    h.state(1, (1, "blocked in recv"))
    number = h.sent(0, 1, 4)
    h.received(0, 1, 4.5, number)
    h.state(1, (4.6, "running"))
    assert lateness(read(h)) == [("sender", 3)]


def test_a_receiver_that_did_not_wait_makes_nobody_late() -> None:
    h = Histories(2)
    number = h.sent(0, 1, 1)
    h.state(1, (2, "running"))
    h.received(0, 1, 3, number)
    assert lateness(read(h)) == [(None, 0)]


def test_only_the_last_message_of_a_wait_ended_it() -> None:
    """The others went to a callback."""
    h = Histories(2)
    h.state(1, (1, "blocked in recv"))
    first, second = h.sent(0, 1, 3), h.sent(0, 1, 5)
    h.received(0, 1, 3.1, first)
    h.received(0, 1, 5.1, second)
    h.state(1, (5.2, "running"))
    assert lateness(read(h)) == [(None, 0), ("sender", 4)]


def test_a_message_that_was_there_before_the_wait_is_not_late() -> None:
    """It waited in the inbox while a callback or another thread ran."""
    h = Histories(2)
    number = h.sent(0, 1, 0.5)
    h.state(1, (1, "blocked in recv"))
    h.received(0, 1, 2, number)
    assert lateness(read(h)) == [(None, 0)]


def test_a_late_receiver_keeps_a_sender_without_buffer() -> None:
    h = Histories(2)
    number = h.sent(0, 1, 1)
    h.state(0, (1.25, "blocked in send"))
    h.received(0, 1, 4, number)
    h.state(0, (4.25, "running"))
    assert lateness(read(h)) == [("receiver", 2.75)]


def test_a_late_receiver_whose_inbox_is_full() -> None:
    """The wait was for room, before the send; the message's time in the inbox costs nothing."""
    h = Histories(2)
    first = h.sent(0, 1, 0.5)
    h.state(0, (1, "blocked in send"))
    second = h.sent(0, 1, 3)
    h.state(0, (3.1, "running"))
    h.received(0, 1, 2.9, first)
    h.received(0, 1, 9, second)
    assert lateness(read(h)) == [(None, 0), ("receiver", 2)]


def test_an_acknowledgement_is_nobodys_message() -> None:
    """It ends the sender's wait, and arrives after the message that ended another wait."""
    h = Histories(2)
    number = h.sent(0, 1, 1)
    h.state(0, (1.25, "blocked in send"))
    h.received(0, 1, 4, number)
    h.answered(1, 0, 4.1)
    h.state(0, (4.25, "running"), (5, "blocked in recv"))
    back = h.sent(1, 0, 7)
    h.received(1, 0, 7.1, back)
    h.answered(1, 0, 7.2)
    h.state(0, (7.3, "running"))
    assert lateness(read(h)) == [("receiver", 2.75), ("sender", 2)]


def test_a_synchronous_send_waits_for_its_late_receiver() -> None:
    """It does not wait for the acknowledgement's sender; in real processes."""
    data, _ = sfm_kernel.run(late_receiver, n=2)
    assert not any("ack" in dict(flight["attributes"]) for flight in data["flights"])
    there = [flight for flight in data["flights"] if flight["src"] == data["processes"][0]["uid"]]
    there.sort(key=lambda flight: flight["number"])
    first, *large = (flight["late"] for flight in there)
    assert first == "receiver" and "receiver" in large


def test_room_and_receipt_are_added() -> None:
    h = Histories(2)
    h.state(0, (1, "blocked in send"))
    number = h.sent(0, 1, 3)
    h.state(0, (3, "running"), (3.5, "blocked in send"))
    h.received(0, 1, 7, number)
    h.state(0, (7.5, "running"))
    assert lateness(read(h)) == [("receiver", 2 + 3.5)]


def test_a_later_wait_for_room_leaves_the_wait_for_the_receipt_as_it_was() -> None:
    """Both waits are the sender's, and no message is sent between them."""
    h = Histories(2)
    first = h.sent(0, 1, 1)
    h.state(0, (1.25, "blocked in send"))
    h.received(0, 1, 4, first)
    h.state(0, (4.25, "running"), (5, "blocked in send"))
    assert lateness(read(h)) == [("receiver", 2.75)]
    second = h.sent(0, 1, 6)
    h.state(0, (6.1, "running"))
    h.received(0, 1, 6.2, second)
    assert lateness(read(h)) == [("receiver", 2.75), ("receiver", 1)]


def test_a_wait_without_length_is_not_the_wait_for_the_receipt() -> None:
    h = Histories(2)
    number = h.sent(0, 1, 1)
    h.state(0, (1.25, "blocked in send"), (1.25, "running"), (2, "blocked in send"))
    h.received(0, 1, 4, number)
    h.state(0, (4.25, "running"))
    assert lateness(read(h)) == [("receiver", 2)]


def test_a_receiver_that_was_there_first_is_not_late() -> None:
    """Without a buffer the sender is blocked for a moment, even if it was the late one."""
    h = Histories(2)
    h.state(1, (1, "blocked in recv"))
    number = h.sent(0, 1, 2)
    h.state(0, (2.01, "blocked in send"))
    h.received(0, 1, 2.5, number)
    h.state(0, (2.6, "running"))
    assert lateness(read(h)) == [("sender", 1)]


def test_both_were_late_one_after_the_other() -> None:
    """The sender waited for room for 5 s; then the receiver, who had made it, for 0.5 s."""
    h = Histories(2)
    h.state(0, (1, "blocked in send"))
    h.state(1, (5.5, "blocked in recv"))
    number = h.sent(0, 1, 6)
    h.received(0, 1, 6.1, number)
    assert lateness(read(h)) == [("receiver", 5)]


def test_there_is_no_verdict_before_the_receipt() -> None:
    h = Histories(2)
    h.sent(0, 1, 1)
    h.state(0, (1.1, "blocked in send"))
    assert lateness(read(h)) == [(None, 0)]


def test_a_collective_call_makes_nobody_late() -> None:
    h = Histories(2)
    h.state(1, (1, "blocked in collective"))
    number = h.sent(0, 1, 4)
    h.received(0, 1, 4.1, number)
    assert lateness(read(h)) == [(None, 0)]


def test_a_program_without_buffers() -> None:
    """Process 1 computes for 1 s and then receives; its answer comes 2 s later."""
    h = carried_out(
        [[("ssend", 1), ("recv", 1)], [("compute", 1), ("recv", 0), ("compute", 2), ("send", 0)]]
    )
    assert [(late, round(cost)) for late, cost in lateness(read(h))] == [
        ("receiver", 1),
        ("sender", 2),
    ]
