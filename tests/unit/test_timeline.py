"""The timeline of a history: spans, flights, the last run, and missing events."""

from __future__ import annotations

from typing import Any

import pytest

import sfm_kernel
from sfm_kernel.observe.timeline import Recorder, history
from sfm_kernel.observe.timeline.history import Reading
from tests.observe.pictures import check, where
from tests.unit.timelines import BEGIN, Histories, read, spans, uid

# --- spans and flights -------------------------------------------------------------------------


def test_states_become_spans() -> None:
    h = Histories(1)
    h.state(0, (0, "running"), (1, "blocked in recv"), (3, "running"), (4, "left"))
    assert spans(read(h), 0) == [(0, 1, "running"), (1, 3, "blocked in recv"), (3, 4, "running")]


def test_a_span_that_lasts_has_no_end() -> None:
    h = Histories(1)
    h.state(0, (0, "running"), (1, "blocked in recv"))
    assert spans(read(h), 0)[-1] == (1, None, "blocked in recv")


def test_the_same_state_again_begins_nothing_new() -> None:
    h = Histories(1)
    h.state(0, (0, "running"), (1, "running"), (2, "idle"))
    assert spans(read(h), 0) == [(0, 2, "running"), (2, None, "idle")]


def test_a_message_has_both_ends() -> None:
    h = Histories(2)
    h.state(0, (0, "running"))
    h.state(1, (0, "running"))
    number = h.sent(0, 1, 1, nbytes=7, attributes=[("tag", "3")], where=where(10))
    h.received(0, 1, 2, number, nbytes=7, where=where(20))
    (flight,) = read(h)["flights"]
    assert (flight["src"], flight["dest"], flight["number"]) == (uid(0), uid(1), 1)
    assert (flight["sent"], flight["received"]) == (BEGIN + 1, BEGIN + 2)
    assert (flight["bytes"], flight["attributes"]) == (7, [["tag", "3"]])
    assert (flight["sent_at"]["line"], flight["received_at"]["line"]) == (10, 20)
    assert (flight["late"], flight["cost"]) == (None, 0)


def test_nothing_is_received_before_it_is_sent() -> None:
    """The sender records the send after the message has left: the receiver may be faster."""
    h = Histories(2)
    number = h.sent(0, 1, 1.5)
    h.received(0, 1, 1.25, number)
    (flight,) = read(h)["flights"]
    assert flight["sent"] == flight["received"] == BEGIN + 1.25


def test_a_peer_is_found_by_half_its_uid() -> None:
    """Its events are found this way when the peer's segment was removed."""
    h = Histories(2)
    number = h.sent(0, 1, 1)
    h.received(0, 1, 2, number)
    for event in h.events:
        event["peer"] = event["peer"][-16:]
    (flight,) = read(h)["flights"]
    assert (flight["src"], flight["dest"]) == (uid(0), uid(1))


def test_a_peer_that_was_never_seen_has_a_row() -> None:
    h = Histories(1)
    h.event(0, 1, "sent", peer="00000000000000aa", number=1, nbytes=1)
    data = read(h)
    assert [process["name"] for process in data["processes"]] == [0, "00000000"]
    assert data["flights"][0]["dest"] == data["processes"][1]["uid"]


# --- the last run ------------------------------------------------------------------------------


def cells(*runs: tuple[float, float], processes: int = 2) -> Histories:
    """Engines that are at work between these times; the last one starts and ends later."""
    h = Histories(processes)
    for nth in range(processes):
        h.state(nth, (0, "running"), (1 + nth, "idle"))
        for begin, end in runs:
            h.state(nth, (begin + 0.1 * nth, "running"), (end + 0.1 * nth, "idle"))
    return h


def test_the_last_run_begins_when_all_were_idle() -> None:
    data = read(cells((10, 12), (20, 22)))
    assert (data["begin"] - BEGIN, data["end"] - BEGIN) == pytest.approx((20, 22.1))
    assert spans(data, 1) == [(12.1, 20.1, "idle"), (20.1, 22.1, "running"), (22.1, None, "idle")]


def test_a_run_that_lasts_ends_now() -> None:
    data = read(cells((10, 12), (20, 30)), time=25)
    assert (data["begin"] - BEGIN, data["end"] - BEGIN) == (20, 25)


def test_starting_up_is_no_run() -> None:
    """Nor does one more engine that joins begin a run."""
    h = cells((10, 12), processes=3)
    late = [event for event in h.events if event["uid"] == uid(2)]
    for event, time in zip(late, (20, 21, 22, 23), strict=True):
        event["time"] = BEGIN + time
    h.events = [event for event in h.events if event not in late[2:]]
    assert read(h)["begin"] - BEGIN == 10


def test_plain_processes_have_one_run() -> None:
    h = Histories(2)
    h.state(0, (3, "running"), (5, "blocked in recv"), (6, "running"), (7, "left"))
    h.state(1, (4, "running"), (8, "left"))
    data = read(h)
    assert (data["begin"] - BEGIN, data["end"] - BEGIN) == (3, 8)


def test_a_cell_is_one_run_though_its_engines_take_turns() -> None:
    """A short cell ends on one engine before another one starts it; the notebook waits for all."""
    h = Histories(2, guests=1)
    h.state(2, (0, "running"), (5, "blocked in cell"), (9, "running"))
    h.state(0, (0, "running"), (1, "idle"), (5.5, "running"), (6, "idle"))
    h.state(1, (0, "running"), (1, "idle"), (7, "running"), (8, "idle"))
    data = read(h)
    assert (data["begin"] - BEGIN, data["end"] - BEGIN) == (5, 9)


def test_a_message_sent_before_the_run_is_in_it_once_it_is_received() -> None:
    h = Histories(2)
    h.state(0, (0, "running"), (1, "idle"), (10, "running"))
    first, second = h.sent(0, 1, 11), h.sent(0, 1, 11.5)
    h.state(0, (12, "idle"))
    h.state(1, (0, "running"), (1, "idle"), (20, "running"))
    h.received(0, 1, 21, second)
    h.state(1, (22, "idle"))
    data = read(h)
    assert data["begin"] == BEGIN + 20
    (flight,) = data["flights"]
    assert (flight["number"], flight["sent"]) == (second, BEGIN + 11.5)
    assert first != second


def test_the_notebook_may_receive_when_all_are_idle_again() -> None:
    h = Histories(1, guests=1)
    h.state(1, (0, "running"))
    h.state(0, (0, "running"), (1, "idle"), (10, "running"))
    number = h.sent(0, 1, 11)
    h.state(0, (12, "idle"))
    h.received(0, 1, 15, number)
    data = read(h)
    assert (data["begin"] - BEGIN, data["end"] - BEGIN) == (10, 15)
    assert len(data["flights"]) == 1


# --- what is missing ---------------------------------------------------------------------------


def test_a_gap_is_counted_and_drawn_as_a_hole() -> None:
    h = Histories(2)
    h.state(0, (0, "running"), (1, "blocked in recv"))
    h.sent(0, 1, 2)
    h.skip(0, 5)
    h.sent(0, 1, 7)
    h.state(0, (9, "idle"))
    data = read(h)
    assert data["missing"] == 5
    assert spans(data, 0) == [
        (0, 1, "running"),
        (1, 2, "blocked in recv"),
        (7, 9, "running"),
        (9, None, "idle"),
    ]


def test_events_missing_before_the_run_do_not_count() -> None:
    h = Histories(1)
    h.skip(0, 100)
    h.state(0, (1, "running"), (2, "idle"), (3, "running"), (4, "idle"))
    assert read(h)["missing"] == 0


def test_the_oldest_are_dropped_and_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(history, "SPANS", 50)
    monkeypatch.setattr(history, "FLIGHTS", 20)
    recorder = Recorder("/nowhere/w")
    h = Histories(2)
    h.state(1, (0, "running"))
    for nth in range(200):
        h.state(0, (nth, "blocked in recv"), (nth + 0.5, "running"))
        number = h.sent(0, 1, nth + 0.6)
        h.received(0, 1, nth + 0.7, number)
    for time in range(0, 201, 4):
        recorder.take(h.reading(time))
    data = recorder.whole()
    assert len(data["spans"]) <= 51 and len(data["flights"]) <= 20
    assert data["missing"] == 2 * (200 - len(data["flights"])) + 401 - len(data["spans"])
    assert data["flights"][-1]["number"] == 200 and spans(data, 0)[-1][1] is None
    check("timeline", data)
    # News that nobody has read does not pile up either.
    first = recorder._history.news()
    assert len(first[0]) <= 60 and len(first[1]) <= 30


# --- processes that come and go ----------------------------------------------------------------


def test_the_last_state_of_a_killed_process_lasts_until_it_was_last_seen_alive() -> None:
    h = Histories(2)
    h.state(0, (0, "running"))
    h.state(1, (0, "running"), (1, "blocked in recv"))
    recorder = Recorder("/nowhere/w")
    recorder.take(h.reading(5))
    h.processes[1]["alive"] = False
    recorder.take(h.reading(9))
    data = recorder.whole()
    assert spans(data, 1)[-1] == (1, 5, "blocked in recv")
    assert spans(data, 0) == [(0, None, "running")]


def test_a_process_that_joins_during_a_reading_is_shown() -> None:
    """It joins after the snapshot, before the events are read."""
    h = Histories(2)
    h.state(0, (0, "running"))
    h.state(1, (4, "running"))
    recorder = Recorder("/nowhere/w")
    recorder.take(Reading(BEGIN + 5, h.processes[:1], h.events))
    assert spans(recorder.whole(), 1) == [(4, None, "running")]
    recorder.take(Reading(BEGIN + 6, h.processes, []))
    assert spans(recorder.whole(), 1) == [(4, None, "running")]


def test_a_process_that_has_left_is_still_shown() -> None:
    h = Histories(2)
    h.state(0, (0, "running"))
    h.state(1, (0, "running"), (1, "blocked in recv"))
    recorder = Recorder("/nowhere/w")
    recorder.take(h.reading(5))
    recorder.take(Reading(BEGIN + 9, h.processes[:1], []))
    assert [process["name"] for process in recorder.whole()["processes"]] == [0, 1]
    assert spans(recorder.whole(), 1)[-1] == (1, 5, "blocked in recv")
    assert recorder.blind()[uid(1)] == float("inf"), "it may have received before it left"


# --- a world -----------------------------------------------------------------------------------


def pair(sfm: sfm_kernel.Endpoint) -> dict[str, Any] | None:
    if sfm.rank == 0:
        recorder = Recorder(sfm)
        first = recorder.update()
        check("timeline", first)
        sfm.send(dest=1, number=7)
        assert sfm.recv(20, src=1).answer == 8
        check("timeline", recorder.update())
        # A sender may record a send just after the message has arrived.
        while any(flight["sent"] is None for flight in recorder.whole()["flights"]):
            check("timeline", recorder.update())
        return recorder.whole()
    number = sfm.recv(20, src=0).number
    sfm.send(dest=0, answer=number + 1)
    return None


def test_a_run_of_two_processes() -> None:
    data, _ = sfm_kernel.run(pair, n=2)
    assert data is not None
    check("timeline", data)
    there, back = data["flights"]
    if there["sent"] > back["sent"]:
        there, back = back, there
    assert dict(there["attributes"])["number"] == "7"
    assert there["sent"] <= there["received"] <= back["received"]
    assert back["sent"] <= back["received"]
    assert {process["name"] for process in data["processes"]} == {0, 1}
    assert data["missing"] == 0
