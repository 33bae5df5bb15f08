"""The timeline of random programs; read at once, and bit by bit in any order between processes."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from operator import itemgetter
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from sfm_kernel.observe.timeline import Recorder, style
from sfm_kernel.observe.timeline.history import PATIENCE, Reading
from sfm_kernel.observe.timeline.runs import Runs
from tests.unit.timelines import BEGIN, Act, Histories, carried_out

TICK = 1e-6  # s: floats of today's dates are exact to a quarter of it

seconds = st.floats(0, 0.01)


@st.composite
def programs(draw: st.DrawFn) -> list[list[Act]]:
    """Programs that come to their end: all send and receive in the order of one list."""
    count = draw(st.integers(2, 4))
    made: list[list[Act]] = [[] for _ in range(count)]
    process = st.integers(0, count - 1)
    for src, dest, waits in draw(st.lists(st.tuples(process, process, st.booleans()), max_size=20)):
        made[src].append(("compute", draw(seconds)))
        made[dest].append(("compute", draw(seconds)))
        made[src].append(("ssend" if waits and src != dest else "send", dest))
        made[dest].append(("recv", src))
    return made


runs = st.builds(
    carried_out,
    programs(),
    delays=st.lists(seconds, max_size=20),
    capacity=st.integers(1, 3),
)


half_seconds = st.integers(0, 60).map(lambda steps: steps / 2)


@st.composite
def wild(draw: st.DrawFn) -> Histories:
    """Anything that events can say, in steps of half a second: no program does all of that."""
    h = Histories(draw(st.integers(1, 3)), guests=1)
    process = st.integers(0, len(h.processes) - 1)
    states = ["idle", *style.STATES, "left", "gap"]
    happens = st.tuples(half_seconds, process, st.sampled_from(states))
    acts: list[tuple[float, int, str, Any]] = [
        (*event, None) for event in draw(st.lists(happens, max_size=30))
    ]
    messages = st.tuples(half_seconds, process, process, half_seconds)
    for sent, src, dest, flies in sorted(draw(st.lists(messages, max_size=10))):
        number = sum((act[1], act[2], act[3]) == (src, "sent", dest) for act in acts) + 1
        # The sending may be written down after the receipt.
        acts.append((sent + 0.5, src, "sent", dest))
        acts.append((sent + flies, dest, "received", (src, number)))
    for time, nth, kind, peer in sorted(acts, key=itemgetter(0)):
        if kind == "gap":
            h.skip(nth, 1)
        elif kind == "sent":
            h.sent(nth, peer, time)
        elif kind == "received":
            h.received(peer[0], nth, time, peer[1])
        else:
            h.event(nth, time, kind)
    return h


def whole(h: Histories) -> dict[str, Any]:
    recorder = Recorder("/nowhere/w")
    recorder.take(h.reading(10_000))
    return recorder.whole()


def length(h: Histories) -> float:
    return max((event["time"] for event in h.events), default=BEGIN) - BEGIN


@given(runs)
def test_flights_go_forward_in_time(h: Histories) -> None:
    flights = whole(h)["flights"]
    assert 2 * len(flights) == sum(event["what"] in ("sent", "received") for event in h.events)
    for flight in flights:
        assert flight["sent"] <= flight["received"]
        assert flight["cost"] >= 0 and (flight["late"] is not None) == (flight["cost"] > 0)
        assert (flight["late"] is None) == (flight["since"] is None)


@given(runs)
def test_spans_cover_a_history_and_do_not_overlap(h: Histories) -> None:
    data = whole(h)
    for process in data["processes"]:
        spans = [span for span in data["spans"] if span["uid"] == process["uid"]]
        times = [event["time"] for event in h.events if event["uid"] == process["uid"]]
        assert (spans[0]["begin"], spans[-1]["end"]) == (min(times), max(times))
        for span, following in pairwise(spans):
            assert span["begin"] < span["end"] == following["begin"]
            assert span["state"] != following["state"]


@given(runs)
def test_late_ones_cost_no_more_than_was_waited(h: Histories) -> None:
    """All together, process by process and state by state: no wait counts twice."""
    data = whole(h)
    for late, state, end in (
        ("sender", "blocked in recv", "dest"),
        ("receiver", "blocked in send", "src"),
    ):
        for process in data["processes"]:
            uid = process["uid"]
            cost = [
                one["cost"] for one in data["flights"] if (one["late"], one[end]) == (late, uid)
            ]
            spans = [
                one["end"] - one["begin"]
                for one in data["spans"]
                if (one["uid"], one["state"]) == (uid, state)
            ]
            assert sum(cost) <= sum(spans) + TICK
            assert max(cost, default=0) <= sum(sorted(spans)[-2:]) + TICK


@given(st.one_of(runs, wild()), st.data())
def test_bit_by_bit_it_is_the_same(h: Histories, data: st.DataObject) -> None:
    """Updates add up to what one reading gives, though processes are read one after the other."""
    span = length(h)
    recorder = Recorder("/nowhere/w")
    told: dict[str, dict[Any, dict[str, Any]]] = {"spans": {}, "flights": {}}
    times = sorted(data.draw(st.lists(st.floats(0, span), max_size=6)))
    late = [data.draw(st.floats(0, PATIENCE / 2)) for _ in h.processes]
    for time in [*times, 10_000.0]:
        reached = {
            one["uid"]: BEGIN + time - (0 if time == 10_000 else lag)
            for one, lag in zip(h.processes, late, strict=True)
        }
        new = [one for one in h.events if one["time"] <= reached[one["uid"]]]
        update = told_by(recorder, Reading(BEGIN + time, h.processes, new))
        told["spans"] |= {(one["uid"], one["begin"]): one for one in update["spans"]}
        told["flights"] |= {one["id"]: one for one in update["flights"]}
    expected = whole(h)
    begin = expected["begin"]
    assert recorder.whole() == {**expected, "flights": recorder.whole()["flights"]}
    assert by_id(recorder.whole()["flights"]) == by_id(expected["flights"])
    assert {key: update[key] for key in ("begin", "end", "missing", "processes")} == {
        key: expected[key] for key in ("begin", "end", "missing", "processes")
    }
    spans = [one for one in told["spans"].values() if one["end"] is None or one["end"] > begin]
    assert sorted(spans, key=by_begin) == sorted(expected["spans"], key=by_begin)
    flights = [
        one
        for one in told["flights"].values()
        if max(one["sent"] or 0, one["received"] or 0) >= begin
    ]
    assert by_id(flights) == by_id(expected["flights"])


def told_by(recorder: Recorder, reading: Reading) -> dict[str, Any]:
    """The news of an update with this reading."""
    recorder.take(reading)
    return recorder.news()


def by_id(flights: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    return sorted(flights, key=lambda flight: flight["id"])


def by_begin(span: dict[str, Any]) -> tuple[str, float]:
    return span["uid"], span["begin"]


@given(
    st.lists(st.tuples(st.integers(0, 30), st.integers(0, 8))),
    st.lists(st.integers(0, 40), max_size=2),
)
def test_the_last_stretch(intervals: list[tuple[int, int]], still: list[int]) -> None:
    """Against a walk over all moments, of which there are few here."""
    found = Runs()
    for begin, more in intervals:
        found.add(begin, begin + more)
    last = found.last(still)
    busy = {2 * begin + half for begin, more in intervals for half in range(2 * more + 1)}
    busy |= {moment for begin in still for moment in range(2 * begin, 82)}
    if not busy:
        assert last[0] != last[0]
        return
    begin = max(moment for moment in busy if moment - 1 not in busy)
    assert last == (begin / 2, float("inf") if still else max(busy) / 2)
