"""The drawings of a cell: the graph of a diagnosis, the inboxes, the matrix of messages."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET
from typing import Any

import pytest

from sfm_kernel.observe.drawings.animation import MOST as MOST_MOVING
from sfm_kernel.observe.drawings.animation import Animation
from sfm_kernel.observe.drawings.graph import graph
from sfm_kernel.observe.drawings.inboxes import inboxes
from sfm_kernel.observe.drawings.matrix import MOST, Matrix
from tests.observe.pictures import flight, idle, judge, message, picture, process, recv

EVIL = "<script>&\"'"


def drawn(*processes: Any) -> ET.Element:
    found = graph(judge(*processes))
    assert found is not None
    return ET.fromstring(found)


def texts(root: ET.Element) -> list[str]:
    return [node.text or "" for node in root.iter("{http://www.w3.org/2000/svg}text")]


def boxes(root: ET.Element) -> list[tuple[float, float, float, float]]:
    found = root.iter("{http://www.w3.org/2000/svg}rect")
    return [tuple(float(box.get(key, 0)) for key in ("x", "y", "width", "height")) for box in found]  # type: ignore[misc]


RING = [recv("A", "B"), recv("B", "C"), recv("C", "A")]


@pytest.mark.parametrize(
    "processes",
    [
        RING,
        [*RING, recv("D", "A"), recv("E", "D"), recv("F", "D")],
        [recv("A", "B"), recv("B", "A")],
        [recv("A", "C"), recv("B", "C"), process("C")],
        [recv(rank, (rank + 1) % 12) for rank in range(12)],
    ],
)
def test_no_two_processes_overlap_and_all_lie_inside(processes: Any) -> None:
    root = drawn(*processes)
    places = boxes(root)
    assert len(places) == len(processes)
    width, height = map(float, root.get("viewBox", "").split()[2:])
    for nth, (x, y, wide, high) in enumerate(places):
        assert x >= 0 and y >= 0 and x + wide <= width and y + high <= height
        for other_x, other_y, *_ in places[:nth]:
            assert abs(x - other_x) >= wide or abs(y - other_y) >= high


def test_the_words_of_the_processes_agree_with_the_diagnosis() -> None:
    where = {"file": "a.py", "line": 3, "function": None, "cell": 2, "cell_id": None}
    failed = idle("C", failed={"error": "NameError", "where": where}, kind="engine")
    root = drawn(recv("A", "B"), recv("B", "A"), recv("D", "C"), failed)
    words = dict(zip(texts(root)[::2], texts(root)[1::2], strict=True))
    assert words == {"A": "stuck", "B": "stuck", "D": "waits", "C": "failed"}


def test_nobody_who_waits_for_nobody_is_drawn() -> None:
    assert graph(judge(*(recv(rank) for rank in range(8)), process(8))) is None
    assert graph(judge(process("A"), process("B"))) is None


def test_names_and_texts_are_no_markup() -> None:
    root = drawn(recv(EVIL, "B", text=EVIL), recv("B", EVIL))
    assert texts(root)[0] == EVIL
    lying = [message(EVIL, tag=EVIL)]
    shown = inboxes(picture(process(EVIL, messages=lying, depth=1))["processes"])
    assert "<script" not in shown and "&lt;script&gt;" in shown


def test_what_a_receive_asks_for_is_bold() -> None:
    lying = [message("B", tag="'a'", step=1), message("C", tag="'b'", step=1)]
    (one, *_) = picture(recv("A", template={"tag": "'b'"}, messages=lying, depth=5))["processes"]
    shown = inboxes([one])
    assert re.findall(r"<b>([^<]*)</b>", shown) == ["tag=&#x27;b&#x27;"]
    colours = re.findall(r"background:(rgba\([^)]*\))", shown)
    assert len(colours) == 2 and "3 more" in shown


def test_an_empty_inbox() -> None:
    assert "empty" in inboxes(picture(process("A"))["processes"])


def test_the_matrix_counts_messages_and_bytes() -> None:
    rows = [{"uid": uid, "name": name} for uid, name in (("a", "A"), ("b", EVIL))]
    pairs = [("a", "b", 10), ("a", "b", 5), ("b", "a", 1), ("b", "gone", 1)]
    flights = [{"src": src, "dest": dest, "bytes": size} for src, dest, size in pairs]
    matrix = Matrix.of({"processes": rows, "flights": flights})
    assert matrix.counts == [[0, 2], [1, 0]] and matrix.sizes == [[0, 15], [1, 0]]
    assert "3 messages of 16 B in the last run" in repr(matrix)
    html = matrix._repr_html_()
    assert "<script" not in html and "2 messages of 15 B" in html


def test_a_large_matrix_is_cut() -> None:
    rows = [{"uid": str(nth), "name": nth} for nth in range(MOST + 3)]
    assert "3 more processes" in repr(Matrix.of({"processes": rows, "flights": []}))


def test_a_reduction_is_a_tree_with_a_dot_for_each_message() -> None:
    pairs = [("1", "0"), ("3", "2"), ("2", "0"), ("0", "2"), ("0", "1"), ("2", "3")]
    rows = [{"uid": str(rank), "name": rank, "rank": rank} for rank in range(4)]
    rows.append({"uid": "h", "name": "home", "rank": None})
    flights = [
        flight(str(nth), *pair, nth, nth + 0.1) for nth, pair in enumerate([*pairs, ("h", "0")])
    ]
    shown = Animation({"processes": rows, "flights": flights})
    assert repr(shown) == "1 → 0, 3 → 2, 2 → 0, 0 → 2, 0 → 1, 2 → 3"
    root = ET.fromstring(shown._repr_mimebundle_()["text/html"])
    circles = [dict(node.items()) for node in root.iter("{http://www.w3.org/2000/svg}circle")]
    level = [float(circle["cy"]) for circle in circles if "cy" in circle]
    assert level[0] < level[1] == level[2] < level[3]
    moving = [circle for circle in circles if circle.get("class") == "sfm-moving"]
    assert len(moving) == len(pairs)
    begins = re.findall(r"begin\+([\d.]+)s", shown._repr_mimebundle_()["text/html"])[::2]
    assert begins == sorted(begins, key=float)


def test_an_animation_of_nothing_and_of_too_much() -> None:
    rows = [{"uid": str(rank), "name": rank, "rank": rank} for rank in range(2)]
    assert repr(Animation({"processes": rows, "flights": []})) == "no messages between engines"
    many = [flight(str(nth), "0", "1", nth, nth + 0.5) for nth in range(MOST_MOVING + 7)]
    assert repr(Animation({"processes": rows, "flights": many})).endswith("and 7 more")
