"""What a class believes of the reports that students send."""

from __future__ import annotations

import json
import time

import pytest

from sfm_kernel.classroom.report import LARGEST, BadReport, checked, encoded, report_of
from tests.observe.pictures import check, message
from tests.unit.classes import HOSTILE, Class, diagnosis, engine, report


@pytest.mark.parametrize(
    "body",
    [
        b"{",
        b"[]",
        b"null",
        b"\xff\xfe",
        b"[" * 100_000,
        b'{"snapshot": {}, "diagnosis": {}}',
        b'{"snapshot": {"time": 1e400, "processes": []}, "diagnosis": {}}',
        b'{"snapshot": {"time": true, "processes": []}, "diagnosis": {}}',
        b'{"snapshot": {"time": 1, "processes": [1]}, "diagnosis": {}}',
        b'{"snapshot": {"time": 1, "processes": {}}, "diagnosis": {}}',
        b'{"snapshot": {"time": 1, "processes": [{"since": "x"}]}, "diagnosis": {}}',
        b'{"snapshot": {"time": 1, "processes": []},'
        b' "diagnosis": {"verdict": "deadlock", "since": []}}',
        b'{"snapshot": {"time": 1, "processes": []}, "diagnosis": {"sentences": 3}}',
        b'{"snapshot": {"time": 1, "processes": []}, "diagnosis": {}, "code": [[]]}',
        b'{"snapshot": {"time": 1' + b"0" * 5000 + b', "processes": []}, "diagnosis": {}}',
    ],
)
def test_another_shape_is_refused_and_changes_nothing(room: Class, body: bytes) -> None:
    room.share(encoded(report()))
    status, answer = room.share(body)
    assert status == 400 and "no report" in answer["message"]
    assert [world["state"] for world in room.worlds()] == ["idle"]


def test_texts_are_printable_and_short() -> None:
    hostile = [{**message("B"), "attributes": [[HOSTILE, HOSTILE]]}] * 50
    process = engine(HOSTILE * 50, waits=HOSTILE * 500, messages=hostile)
    seen = {"time": 5.0, "processes": [process] * 200}
    said = diagnosis(HOSTILE, title=HOSTILE * 99, sentences=[HOSTILE * 999] * 99, stuck=[[], 3])
    code = [{"title": HOSTILE, "lines": [[1, HOSTILE * 99], ["x", "y"], 3], "at": ["z"]}] * 20
    body = json.dumps({"name": HOSTILE, "snapshot": seen, "diagnosis": said, "code": code})
    found = checked(body.encode(), time.time())
    text = json.dumps(found, ensure_ascii=False)
    assert not {"\u202e", "\x1b", "\x00"} & set(text) and "\\u0000" not in text
    shown = check("snapshot", found["snapshot"])["processes"]
    judged = check("diagnosis", found["diagnosis"])
    assert judged["verdict"] == "running" and len(found["name"]) <= 60
    assert len(shown) == 64 and len(judged["sentences"]) == 40
    assert max(map(len, judged["sentences"])) <= 1000
    assert len(shown[0]["messages"]) == 5 and len(found["code"]) == 8
    assert len(text) < LARGEST


def test_a_wrong_clock_is_corrected() -> None:
    now = time.time()
    sent = report(verdict="deadlock", since=now + 990)
    sent["snapshot"]["time"] += 1000
    found = checked(encoded(sent), now)
    assert 9 < now - found["since"] < 60
    sent["snapshot"]["processes"][0]["since"] = now + 10**9  # after its own now
    assert checked(encoded(sent), now)["snapshot"]["processes"][0]["since"] == now


def test_what_a_notebook_saw_long_ago_is_shown_so() -> None:
    now = time.time()
    sent = report()
    sent["snapshot"]["processes"][0]["unseen"] = sent["snapshot"]["time"] - 60
    (shown,) = checked(encoded(sent), now)["snapshot"]["processes"]
    assert 59 < now - shown["unseen"] < 90
    sent["snapshot"]["processes"][0]["unseen"] = "x"
    with pytest.raises(BadReport):
        checked(encoded(sent), now)


def test_a_diagnosis_names_only_processes_of_the_report() -> None:
    def edge(start: object, to: object) -> dict[str, object]:
        return {"from": start, "to": to, "kind": "recv", "label": "tag=2", "cycle": True}

    edges = [edge("A", "A"), edge("A", HOSTILE), edge(None, "A"), {}]
    names = ["A", "A", "B", HOSTILE, 3, None, {}]
    said = {"edges": edges, "cycle": names, "stuck": names, "processes": [{}, {"name": "B"}]}
    found = checked(encoded(report(verdict="deadlock") | {"diagnosis": said}), time.time())
    shown = check("diagnosis", found["diagnosis"])
    assert shown["edges"] == edges[:1] and shown["cycle"] == shown["stuck"] == ["A"]
    assert shown["processes"] == [] and shown["verdict"] == "running"


def test_reports_say_nothing_of_machine_and_folders() -> None:
    location = {"file": "/srv/emmy/secret/a.py", "line": 3, "function": None, "cell": None}
    process = engine("A", where={**location, "cell_id": None}, pid=4711, host="ada-laptop")
    seen = {"world": "w", "time": 1.0, "processes": [process], "sites": [], "links": []}
    text = encoded(report_of("Emmy", seen, diagnosis(), [], [], {})).decode()
    assert "4711" not in text and "ada-laptop" not in text and "/srv" not in text
    assert '"file":"a.py"' in text


def test_a_huge_world_is_sent_small() -> None:
    many = [engine(f"{n}" * 100, messages=[message("B", text="x" * 500)] * 9) for n in range(500)]
    seen = {"world": "w", "time": 1.0, "processes": many, "sites": [], "links": []}
    body = encoded(report_of("Emmy", seen, diagnosis(sentences=["x" * 900] * 900), [], [], {}))
    assert len(body) <= LARGEST
    assert len(checked(body, 2.0)["snapshot"]["processes"]) == 64
