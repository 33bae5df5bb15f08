"""The displays of a timeline: the drawing, the tables, the trace, and the summary."""

from __future__ import annotations

import json
import random
import re
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

from sfm_kernel.observe.timeline import Recorder, Timeline, diagram, svg, words
from tests.observe.pictures import where
from tests.unit.timelines import BEGIN, Act, Histories, carried_out, uid

SVG = "{http://www.w3.org/2000/svg}"


def shown(h: Histories, time: float = 1e6) -> Timeline:
    recorder = Recorder("/nowhere/demo")
    recorder.take(h.reading(time))
    return recorder.timeline()


def drawing(timeline: Timeline) -> ElementTree.Element:
    """The SVG, parsed as XML."""
    return ElementTree.fromstring(timeline._repr_svg_())


def texts(root: ElementTree.Element, kind: str = "text") -> list[str]:
    """The texts, without those of tooltips."""
    found = root.iter(SVG + kind)
    return ["".join([tag.text or "", *(child.tail or "" for child in tag)]) for tag in found]


def of_class(root: ElementTree.Element, name: str) -> list[ElementTree.Element]:
    return [element for element in root.iter() if name in element.get("class", "").split()]


def busy(processes: int, messages: int) -> Histories:
    """A program whose processes exchange messages."""
    chance = random.Random(1)
    programs: list[list[Act]] = [[] for _ in range(processes)]
    for _ in range(messages):
        src, dest = chance.sample(range(processes), 2)
        for nth in (src, dest):
            programs[nth].append(("compute", chance.expovariate(100)))
        programs[src].append((chance.choice(["send", "ssend"]), dest))
        programs[dest].append(("recv", src))
    return carried_out(programs)


def story() -> Histories:
    """0 lets 1 wait for a message; 1 sends one that nobody receives."""
    h = Histories(2)
    h.state(0, (0, "running"))
    h.state(1, (0, "running"), (1, "blocked in recv"))
    number = h.sent(0, 1, 3, attributes=[("tag", "'x'")], where=where(12), nbytes=2000)
    h.received(0, 1, 3, number, where=where(34), nbytes=2000)
    h.state(1, (3, "running"))
    h.sent(1, 0, 3.5)
    h.state(0, (4, "left"))
    h.state(1, (4, "left"))
    return h


# --- words -------------------------------------------------------------------------------------


def test_the_summary() -> None:
    assert repr(shown(story())).splitlines() == [
        "World demo: 2 processes, 2 messages of 2.1 kB, 4 s",
        "1 message sent and not received.",
        "1 waited 2 s for late senders.",
    ]


def test_sums_say_of_how_much_they_are() -> None:
    h = story()
    h.skip(0, 24)
    h.state(0, (5, "running"))
    timeline = shown(h)
    note = "All sums are of the other 8, which are 25 %."
    assert note in repr(timeline).splitlines()
    assert note in repr(timeline.between(0, 2)).splitlines()
    assert note in texts(drawing(timeline))


@pytest.mark.parametrize(
    ("count", "rest", "text"),
    [(1, 999_999, "1, which are 0.1 %"), (1200, 2800, "1 200, which are 30 %"),
     (99_999, 1, "99 999, which are 99.9 %"), (0, 5, "0, which are 0 %")],
)  # fmt: skip
def test_shares(count: int, rest: int, text: str) -> None:
    assert words.share(count, rest) == text


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0, "0 µs"), (1.234e-6, "1.23 µs"), (9.999e-6, "10 µs"), (1e-3, "1 ms"), (0.9996, "1 s"),
     (0.0999, "99.9 ms"), (0.1, "100 ms"), (59.96, "60 s"), (119.6, "2 min 0 s"),
     (200, "3 min 20 s"), (3600 * 5 + 61, "5 h 1 min")],
)  # fmt: skip
def test_durations(seconds: float, text: str) -> None:
    assert words.duration(seconds) == text


def test_sizes_and_numbers() -> None:
    assert [words.size(nbytes) for nbytes in (0, 999, 1000, 2_345_678)] == [
        "0 B", "999 B", "1 kB", "2.35 MB",
    ]  # fmt: skip
    assert words.count(1, "process") == "1 process"
    assert words.count(12345, "process") == "12 345 processes"


@pytest.mark.parametrize("seconds", [0, 1e-7, 3e-5, 0.012, 1, 59, 61, 3599, 86400, 1e7])
def test_ticks_are_few_and_tell_themselves_apart(seconds: float) -> None:
    marks = words.ticks(seconds)
    assert 1 <= len(marks) <= 8
    assert all(0 <= time <= seconds * 1.001 for time, _ in marks)
    assert len({text for _, text in marks}) == len(marks)
    assert seconds == 0 or len(marks) >= 2


# --- tables and the trace ----------------------------------------------------------------------


def test_messages_as_a_table() -> None:
    table = shown(story()).to_dataframe()
    first, second = table.to_dict("records")
    assert (first["src"], first["dest"], first["sent"], first["received"]) == (0, 1, 3, 3)
    assert (first["late"], first["cost"], first["bytes"]) == ("sender", 2, 2000)
    assert first["attributes"] == {"tag": "'x'"}
    assert "12" in first["sent_at"] and "34" in first["received_at"]
    assert second["received"] != second["received"], "it was not received: NaN"
    assert table.attrs["begin"] == BEGIN


def test_spans_as_a_table() -> None:
    table = shown(story()).spans_to_dataframe()
    assert table.groupby("process")["seconds"].sum().to_dict() == {0: 4, 1: 4}
    assert table[table.state == "blocked in recv"]["seconds"].tolist() == [2]


def test_tables_of_nothing_have_columns() -> None:
    timeline = shown(Histories(0))
    assert "sent" in timeline.to_dataframe() and "state" in timeline.spans_to_dataframe()


def test_the_trace(tmp_path: Path) -> None:
    timeline = shown(story())
    path = tmp_path / "trace.json"
    trace = timeline.to_chrome(path)
    assert json.loads(path.read_text(encoding="utf-8")) == trace
    events = trace["traceEvents"]
    assert {row["args"]["name"] for row in events if row["name"] == "thread_name"} == {"0", "1"}
    slices = [row for row in events if row["ph"] == "X"]
    assert [(row["tid"], row["name"], row["ts"], row["dur"]) for row in slices] == [
        (1, "running", 0, 4e6),
        (2, "running", 0, 1e6),
        (2, "blocked in recv", 1e6, 2e6),
        (2, "running", 3e6, 1e6),
    ]
    starts = [row for row in events if row["ph"] == "s"]
    (finish,) = [row for row in events if row["ph"] == "f"]
    assert (finish["id"], finish["tid"], finish["ts"]) == (starts[0]["id"], 2, 3e6)
    assert (starts[0]["tid"], starts[0]["ts"]) == (1, 3e6)
    assert starts[0]["args"]["attribute tag"] == "'x'"
    assert starts[0]["args"]["late"] == "sender, 2 s"
    (lost,) = [row for row in events if row["ph"] == "i"]
    assert (lost["name"], lost["ts"]) == ("not received", 3.5e6)


def test_each_end_of_a_flow_lies_in_a_slice() -> None:
    """Viewers draw no arrow to an end outside of a slice."""
    events = shown(busy(4, 100)).to_chrome()["traceEvents"]
    slices = [row for row in events if row["ph"] == "X"]
    ends = [row for row in events if row["ph"] in "sf"]
    assert len(ends) == 200
    for end in ends:
        assert any(
            span["tid"] == end["tid"] and span["ts"] <= end["ts"] <= span["ts"] + span["dur"] + 1
            for span in slices
        )


# --- what is lost, and parts -------------------------------------------------------------------


def test_lost_messages() -> None:
    assert [(lost["src"], lost["dest"]) for lost in shown(story()).lost] == [(uid(1), uid(0))]


def test_a_message_that_may_have_been_received_is_not_lost() -> None:
    """The receiver's events were overwritten after the send; or it has none on this machine."""
    h = story()
    h.skip(0, 1)
    h.event(0, 5, "running")
    assert shown(h).lost == []
    h = Histories(1)
    h.event(0, 1, "sent", peer="00000000000000aa", number=1, nbytes=1)
    assert shown(h).lost == []


def test_a_part() -> None:
    timeline = shown(busy(3, 50))
    cut = timeline.between(0.05, 0.1)
    assert (cut.data["begin"], cut.data["end"]) == (BEGIN + 0.05, BEGIN + 0.1)
    assert 0 < len(cut.data["flights"]) < len(timeline.data["flights"])
    assert cut.spans_to_dataframe()["begin"].between(0, 0.05).all()
    assert cut.spans_to_dataframe()["end"].between(0, 0.05).all()
    ElementTree.fromstring(cut._repr_svg_())
    with pytest.raises(ValueError, match="ends after its begin"):
        timeline.between(2, 1)


# --- the drawing -------------------------------------------------------------------------------


def test_the_drawing() -> None:
    root = drawing(shown(story()))
    assert root.get("role") == "img" and "2 messages" in root.get("aria-label", "")
    assert len(of_class(root, "blocked-in-recv")) == 2, "the span, and the legend"
    titles = texts(root, "title")
    (late,) = [title for title in titles if "late sender:" in title]
    assert late.startswith("0 → 1, 2 kB\ntag='x'\nsent at 3 s, prog.py, line 12")
    assert "received at 3 s, prog.py, line 34" in late and late.endswith("1 waited 2 s")
    assert any(title.endswith("not received") for title in titles)
    for said in ("blocked in recv", "late sender", "not received", "waited", "2 s"):
        assert said in texts(root)


def test_texts_of_messages_are_only_texts() -> None:
    bad = "<script>alert(1)</script>&\"'\x00\x1b\ud800]]>--><svg onload=x>"
    h = story()
    for process in h.processes:
        process["name"] = bad
    for event in h.events:
        if event["what"] == "sent":
            event["attributes"] = [(bad, bad)]
        event["where"] = {**where(1), "file": bad, "function": bad}
    timeline = shown(h)
    plain = {element.tag for element in drawing(shown(story())).iter()}
    root = drawing(timeline)
    assert {element.tag for element in root.iter()} == plain
    assert not [name for element in root.iter() for name in element.attrib if name.startswith("on")]
    assert any("<script>alert(1)</script>" in title for title in texts(root, "title"))
    html = timeline._repr_mimebundle_()["text/html"]
    assert "<script" not in html and "\x00" not in html
    html.encode()


@pytest.mark.parametrize(
    ("processes", "messages"), [(2, 5), (2, 3000), (16, 60), (16, 3000), (100, 1000)]
)
def test_it_stays_small(processes: int, messages: int) -> None:
    picture = shown(busy(processes, messages))._repr_svg_()
    assert len(picture) < 400_000
    root = ElementTree.fromstring(picture)
    said = "\n".join(texts(root))
    assert ("messages is drawn, besides the costliest" in said) == (messages > 240)
    assert ("short spans, drawn together" in said) == (messages >= 1000)
    assert ("The first 64 of 100 processes" in said) == (processes == 100)
    assert len(of_class(root, "hit")) <= 300


def test_a_thinned_drawing_keeps_what_matters() -> None:
    """The costliest late message is drawn, and each state has its share."""
    timeline = shown(busy(16, 3000))
    root = drawing(timeline)
    table = timeline.to_dataframe()
    costliest = words.duration(table["cost"].max())
    assert any(title.endswith(f"waited {costliest}") for title in texts(root, "title"))


def test_crowds_have_each_state_by_its_share() -> None:
    h = Histories(1)
    for nth in range(5000):
        h.state(0, (nth, "running"), (nth + 0.75, "blocked in recv"))
    h.state(0, (5000, "left"))
    (crowd,) = of_class(drawing(shown(h)), "crowd")
    widths = {
        path.get("class"): sum(map(float, re.findall(r"h(\d[\d.]*)", path.get("d", ""))))
        for path in crowd.iter(SVG + "path")
    }
    assert widths["running"] / sum(widths.values()) == pytest.approx(0.75, abs=0.01)


def test_all_is_within_the_picture() -> None:
    root = drawing(shown(busy(5, 200)))
    _, _, width, height = map(float, root.get("viewBox", "").split())
    for box in root.iter(SVG + "rect"):
        if box.get("width") == "100%":
            continue
        x, y = float(box.get("x", 0)), float(box.get("y", 0))
        assert 0 <= x <= x + float(box.get("width", 0)) <= width
        assert 0 <= y <= y + float(box.get("height", 0)) <= height
    for text in root.iter(SVG + "text"):
        assert 0 <= float(text.get("x", 0)) <= width and 0 <= float(text.get("y", 0)) <= height


def test_nothing_yet() -> None:
    assert "Nothing has happened yet." in texts(drawing(shown(Histories(0))))


def test_every_id_that_is_used_is_defined() -> None:
    """Patterns, arrowheads and areas; and two drawings in one page have different ids."""
    first, second = shown(story())._repr_svg_(), shown(busy(2, 9))._repr_svg_()
    for picture in (first, second):
        used = set(re.findall(r"url\(#([^)]+)\)", picture))
        assert used <= set(re.findall(r'id="([^"]+)"', picture))
    assert not set(re.findall(r'id="([^"]+)"', first)) & set(re.findall(r'id="([^"]+)"', second))


def test_the_bundle_has_all_forms() -> None:
    bundle: dict[str, Any] = shown(story())._repr_mimebundle_()
    assert set(bundle) == {"text/html", "image/svg+xml", "text/plain"}
    assert bundle["image/svg+xml"].startswith("<svg ")


def test_numbers_and_texts_of_svg() -> None:
    shape = svg.element("path", "a<b", class_="x", stroke_width=1.0, x=-0.001, y=0.126, z=None)
    assert shape == '<path class="x" stroke-width="1" x="0" y="0.13">a&lt;b</path>'
    assert svg.cut("abcdefghij", 40) == "abcde…"
    assert svg.length("学生") > svg.length("ab")
    assert diagram.ROWS == 64


def test_names_are_cut_only_where_they_are_long() -> None:
    h = story()
    h.processes[0]["name"], h.processes[1]["name"] = "home", "a-name-that-is-much-too-long"
    said = texts(drawing(shown(h)))
    assert "home" in said and "a-name-that-is-much-too-long" not in said
    h.processes[1]["name"] = 1
    assert "home" in texts(drawing(shown(h)))
