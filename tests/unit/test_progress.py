"""Who has solved what: what a notebook notes and a class believes, and the table as CSV."""

from __future__ import annotations

import csv
import json
import time
from collections.abc import Iterator
from contextlib import closing
from typing import Any

import pytest

from sfm_kernel.classroom.progress import COLUMNS, StudentProgress, csv_of, table
from sfm_kernel.classroom.report import LARGEST, encoded
from tests.unit.classes import HOSTILE, KEY, OTHER, OWN, Class, report

Json = dict[str, Any]


@pytest.fixture
def room() -> Iterator[Class]:
    with closing(Class()) as made:
        yield made


def exercise(name: str, state: str, tries: int = 1, at: float | None = None) -> Json:
    """An exercise in a report."""
    return {"name": name, "state": state, "tries": tries, "time": at or time.time()}


def send(room: Class, name: str, *exercises: Json, secret: str = OWN, **more: Any) -> int:
    """Share a report with exercises; returns the status of the answer."""
    progress = {"hand": None, "exercises": list(exercises), **more}
    return room.share(encoded(report(name, progress=progress)), secret)[0]


def solved(room: Class) -> Json:
    """The table that the page gets."""
    found: Json = room.teach("/worlds")[1]["progress"]
    return found


def states(room: Class) -> dict[str, dict[str, str]]:
    """The states by student and exercise."""
    return {
        student["name"]: {name: of["state"] for name, of in student["of"].items()}
        for student in solved(room)["students"]
    }


# ---- in the notebook


def test_a_notebook_notes_the_last_result_and_keeps_what_has_passed() -> None:
    progress = StudentProgress()
    assert progress.report() == {"hand": None, "exercises": []}
    for state in ("tried", "hangs"):
        progress.note("ring", state)
    (noted,) = progress.report()["exercises"]
    assert (noted["state"], noted["tries"]) == ("hangs", 2)
    for state in ("passed", "tried"):
        progress.note("ring", state)
    (noted,) = progress.report()["exercises"]
    assert (noted["state"], noted["tries"]) == ("passed", 4)


def test_of_many_exercises_the_latest_are_reported() -> None:
    progress = StudentProgress()
    for nth in range(COLUMNS + 3):
        progress.note(f"own_{nth}", "tried")
    progress.note("own_0", "passed")
    names = [exercise["name"] for exercise in progress.report()["exercises"]]
    assert len(names) == COLUMNS and names[-1] == "own_0" and "own_1" not in names


# ---- on the page


def test_columns_are_in_the_notebooks_order_and_rows_by_name(room: Class) -> None:
    send(room, "grace", exercise("simpson", "hangs"), exercise("mine", "tried"))
    send(room, "Ada", exercise("swap", "passed"), exercise("ring", "tried", 3), secret=OTHER)
    found = solved(room)
    assert found["exercises"] == ["ring", "swap", "simpson", "mine"]
    assert [student["name"] for student in found["students"]] == ["Ada", "grace"]
    assert found["students"][0]["of"]["ring"] == {"state": "tried", "tries": 3}
    assert states(room)["grace"] == {"simpson": "hangs", "mine": "tried"}


def test_notebooks_of_one_name_are_one_student(room: Class) -> None:
    now = time.time()
    first = [exercise("ring", "passed", 2, now - 9), exercise("swap", "hangs", 1, now - 9)]
    send(room, "Ada", *first)
    send(
        room,
        "Ada",
        exercise("ring", "tried", 1, now),
        exercise("swap", "tried", 1, now - 5),
        secret=OTHER,
    )
    assert states(room) == {"Ada": {"ring": "passed", "swap": "tried"}}
    assert solved(room)["students"][0]["of"]["ring"]["tries"] == 3


def test_it_stays_when_a_student_no_longer_shares(room: Class) -> None:
    send(room, "Ada", exercise("ring", "passed"), hand=time.time())
    headers = {"Authorization": f"Bearer {room.shared.join}", "X-SFM-Share": OWN}
    room.ask("DELETE", "/share", **headers)
    assert room.worlds()[0]["state"] == "left" and room.worlds()[0]["hand"] is None
    assert states(room) == {"Ada": {"ring": "passed"}}


def test_raised_hands_come_first_the_longest_up_before_others(room: Class) -> None:
    now = time.time()
    stuck = {"stuck": ["A"], "since": now - 99}
    room.share(encoded(report("stuck", "deadlock", **stuck)), "a-secret-of-the-third-one")
    send(room, "late", hand=now - 5)
    send(room, "early", secret=OTHER, hand=now - 50)
    assert [world["name"] for world in room.worlds()] == ["early", "late", "stuck"]
    assert 49 < time.time() - room.worlds()[0]["hand"] < 300
    send(room, "early", secret=OTHER)
    assert [world["name"] for world in room.worlds()] == ["late", "stuck", "early"]


@pytest.mark.parametrize(
    "bad",
    [
        {"exercises": 3},
        {"exercises": ["ring"]},
        {"exercises": [exercise("ring", "solved")]},
        {"exercises": [exercise("<b>ring</b>", "passed")]},
        {"exercises": [exercise("=ring()", "passed")]},
        {"exercises": [exercise("r" * 500, "passed")]},
        {"exercises": [{**exercise("ring", "passed"), "name": 3}]},
        {"exercises": [{**exercise("ring", "passed"), "state": ["passed"]}]},
        {"exercises": [{**exercise("ring", "passed"), "time": "now"}]},
        {"hand": "up"},
        {"hand": True},
    ],
)
def test_what_is_made_up_badly_is_refused_and_changes_nothing(room: Class, bad: Json) -> None:
    send(room, "Ada", exercise("ring", "passed"))
    sent = {**report("Ada"), **bad}
    status, answer = room.share(json.dumps(sent).encode())
    assert status == 400 and "this is no report of a world: " in answer["message"]
    assert states(room) == {"Ada": {"ring": "passed"}}


def test_what_is_made_up_well_is_bounded(room: Class) -> None:
    many = [exercise(f"own_{nth}", "passed", 10**30) for nth in range(900)]
    assert send(room, HOSTILE, *many, hand=time.time() + 10**9) == 204
    send(room, "Ada", exercise("ring", "passed"), exercise("total", "tried"), secret=OTHER)
    send(room, "Bob", exercise("total", "tried"), secret="a-secret-of-the-third-one")
    found = solved(room)
    assert len(found["exercises"]) == COLUMNS and found["exercises"][:2] == ["ring", "total"]
    (hostile,) = [one for one in found["students"] if one["name"].startswith("<img")]
    assert not {"\u202e", "\x1b", "\x00", "\n"} & set(hostile["name"])
    assert {of["tries"] for of in hostile["of"].values()} == {0}
    assert room.worlds()[0]["hand"] <= time.time()
    full = [report(str(nth), progress={"exercises": many[:COLUMNS]}) for nth in range(3)]
    assert max(len(encoded(one)) for one in full) < LARGEST / 10


# ---- as CSV


def rows(text: str) -> list[list[str]]:
    """The rows of a CSV file."""
    return list(csv.reader(text.splitlines()))


def test_the_csv_has_all_and_only_the_teacher_gets_it(room: Class) -> None:
    send(room, 'Ada, "the first"', exercise("ring", "passed"), exercise("swap", "hangs"))
    send(room, "Grace", exercise("swap", "tried"), secret=OTHER)
    status, answer = room.teach("/exercises")
    assert status == 200
    assert rows(answer["csv"]) == [
        ["student (as the student's machine reports)", "ring", "swap"],
        ['Ada, "the first"', "passed", "hangs"],
        ["Grace", "not yet", "tried"],
    ]
    for key in ("", "wrong", room.shared.join, KEY[:-1]):
        status, text = room.teach("/exercises", key)
        assert status == 403 and "Ada" not in str(text)


@pytest.mark.parametrize("name", ["=1+1", "+1", "-1", "@SUM(A1)", "=cmd|' /C calc'!A0"])
def test_a_name_is_no_formula(room: Class, name: str) -> None:
    for sent in (name, f"  {name}", f"\t{name}", f"\r\n{name}"):
        send(room, sent, exercise("ring", "passed"))
        ((shown, state),) = rows(room.teach("/exercises")[1]["csv"])[1:]
        assert state == "passed" and shown.endswith(name)
        assert shown[0] in "'\ufffd", "a spreadsheet takes it for text"


def test_an_empty_class_has_an_empty_table() -> None:
    assert table([]) == {"exercises": [], "students": []}
    assert len(rows(csv_of(table([])))) == 1
