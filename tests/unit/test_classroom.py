"""A class by real HTTP: permissions, accepted reports, and limits."""

from __future__ import annotations

import contextlib
import http.client
import os
import signal
import socket
import subprocess
import sys
import time
from contextlib import closing
from pathlib import Path

import pytest

from sfm_kernel.classroom import shared_worlds
from sfm_kernel.classroom.connections import Connections
from sfm_kernel.classroom.report import LARGEST, BadReport, checked, encoded
from sfm_kernel.classroom.shared_worlds import BURST, MOST, SILENT, Refused, SharedWorlds
from tests.unit.classes import KEY, OTHER, OWN, Class, report

# ---- who may do what


def test_a_student_shares_and_the_teacher_sees(room: Class) -> None:
    stuck = {"title": "Deadlock: A → A", "stuck": ["A"], "since": time.time() - 180}
    assert (
        room.share(encoded(report(verdict="deadlock", sentences=["A waits."], **stuck)))[0] == 204
    )
    (world,) = room.worlds()
    assert (world["name"], world["state"], world["title"]) == ("Emmy", "stuck", "Deadlock: A → A")
    assert (world["engines"], world["blocked"], world["queued"]) == (1, 1, 1)
    assert 179 < time.time() - world["since"] < 300
    status, details = room.teach(f"/worlds/{world['id']}")
    assert status == 200 and details["diagnosis"]["sentences"] == ["A waits."]
    assert details["snapshot"]["processes"][0]["waits"] == "recv(tag=2)"
    assert room.teach("/session") == (200, {"join": room.shared.join, "url": ""})


def test_nobody_else_sees_anything(room: Class) -> None:
    room.share(encoded(report()))
    (world,) = room.worlds()
    for key in ("", "wrong", room.shared.join, KEY[:-1]):
        for path in ("/worlds", f"/worlds/{world['id']}", "/session"):
            status, text = room.teach(path, key)
            assert status == 403 and "Emmy" not in str(text) and room.shared.join not in str(text)
    assert room.ask("GET", "/worlds")[0] == 403
    assert room.ask("GET", "/share")[0] in (403, 405)
    assert "Emmy" not in room.ask("GET", "/")[1]


def test_the_page_has_nothing_of_students_and_forbids_everything(room: Class) -> None:
    line = http.client.HTTPConnection("127.0.0.1", room.port, timeout=60)
    for path in ("/", "/page.js", "/page.css"):
        line.request("GET", path)
        answer = line.getresponse()
        text = answer.read().decode()
        assert answer.status == 200 and text
        policy = answer.headers["Content-Security-Policy"]
        # The browser refuses every text that is to become markup, React's, too.
        assert policy.startswith("default-src 'none'; ") and "trusted-types 'none'" in policy
        assert answer.headers["Access-Control-Allow-Origin"] is None
    line.close()
    assert room.ask("GET", "/page.html")[0] == room.ask("GET", "/../web.py")[0] == 404


@pytest.mark.parametrize("token", ["x", KEY, "é", "a" * 5000])
def test_without_the_join_token_nothing_is_shared(room: Class, token: str) -> None:
    body = encoded(report())
    status, answer = room.share(body, token=token)
    assert status == 403 and "join token" in answer["message"]
    assert room.ask("POST", "/share", body)[0] == 403
    assert room.worlds() == []


def test_a_student_changes_no_other_one(room: Class) -> None:
    room.share(encoded(report("Emmy")))
    room.share(encoded(report("Emmy", "running")), secret=OTHER)
    headers = {"Authorization": f"Bearer {room.shared.join}"}
    assert room.ask("DELETE", "/share", **headers, **{"X-SFM-Share": OTHER})[0] == 204
    assert [(world["name"], world["state"]) for world in room.worlds()] == [
        ("Emmy", "idle"),
        ("Emmy (2)", "left"),
    ]
    assert room.share(encoded(report()), secret="short")[0] == 400
    assert room.share(encoded(report()), secret="")[0] == 400


def test_after_off_only_the_name_is_known(room: Class) -> None:
    room.share(encoded(report()))
    headers = {"Authorization": f"Bearer {room.shared.join}", "X-SFM-Share": OWN}
    room.ask("DELETE", "/share", **headers)
    (world,) = room.worlds()
    details = room.teach(f"/worlds/{world['id']}")[1]
    assert details["name"] == "Emmy" and details["snapshot"]["processes"] == []
    assert details["code"] == details["diagnosis"]["sentences"] == []
    assert room.share(b"")[0] == 404  # its report is wanted anew
    assert room.share(encoded(report()))[0] == 204 and room.worlds()[0]["state"] == "idle"


# ---- what cannot fill it


def test_too_large_is_refused_before_it_is_read(room: Class) -> None:
    with socket.create_connection(("127.0.0.1", room.port), timeout=60) as line:
        head = f"POST /share HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {room.shared.join}\r\n"
        line.sendall(f"{head}Content-Length: {LARGEST + 1}\r\n\r\n".encode())
        assert b" 413 " in line.recv(100)
    assert room.worlds() == []


def test_chunks_do_not_grow_beyond_the_limit(room: Class) -> None:
    with socket.create_connection(("127.0.0.1", room.port), timeout=60) as line:
        head = f"POST /share HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {room.shared.join}\r\n"
        line.sendall(f"{head}Transfer-Encoding: chunked\r\n\r\n".encode())
        try:
            for _ in range(4 * LARGEST // 1000):
                line.sendall(b"3e8\r\n" + b"x" * 1000 + b"\r\n")
            answer = line.recv(1000)
        except OSError:
            answer = b""  # hung up
    assert b"200" not in answer and b"204" not in answer
    assert room.worlds() == []


def test_a_student_who_reports_too_often_is_slowed_down() -> None:
    clock = [1000.0]
    shared = SharedWorlds(lambda: clock[0])
    shared.take(OWN, encoded(report()))
    for _ in range(int(BURST)):
        shared.take(OWN, b"")
    with pytest.raises(Refused, match="too often") as refused:
        shared.take(OWN, b"")
    assert refused.value.status == 429
    shared.take(OTHER, encoded(report()))  # others are not concerned
    clock[0] += 1
    shared.take(OWN, b"")


def test_a_full_class_replaces_a_world_that_has_left() -> None:
    clock = [1000.0]
    shared = SharedWorlds(lambda: clock[0])
    for nth in range(MOST):
        shared.take(f"{nth:020}", encoded(report(str(nth))))
    with pytest.raises(Refused, match="the class is full"):
        shared.take(OWN, encoded(report("late")))
    shared.leave(f"{7:020}")
    shared.take(OWN, encoded(report("late")))
    names = {world["name"] for world in shared.listing()["worlds"]}
    assert len(names) == MOST and "late" in names and "7" not in names


def test_silence_is_shown_and_the_longest_stuck_come_first() -> None:
    clock = [1000.0]
    shared = SharedWorlds(lambda: clock[0])

    def share(secret: str, verdict: str, since: float | None = None) -> None:
        sent = report(secret[:3], verdict, since=since)
        sent["snapshot"]["time"] = clock[0]
        sent["snapshot"]["processes"][0]["since"] = clock[0] - 5
        shared.take(secret.ljust(20), encoded(sent))

    share("one", "idle")
    clock[0] += SILENT + 1
    share("two", "deadlock", clock[0] - 10)
    share("six", "deadlock", clock[0] - 100)
    share("run", "running")
    share("wai", "waiting")
    shown = [(world["name"], world["state"]) for world in shared.listing()["worlds"]]
    assert shown == [
        ("six", "stuck"), ("two", "stuck"), ("wai", "waiting"), ("one", "unseen"),
        ("run", "running"),
    ]  # fmt: skip
    silent = next(world for world in shared.listing()["worlds"] if world["state"] == "unseen")
    assert silent["since"] == 1000.0
    shared.take("one".ljust(20), b"")
    assert "unseen" not in {world["state"] for world in shared.listing()["worlds"]}
    assert {world["state"] for world in shared.listing()["worlds"]} <= set(shared_worlds.ORDER)


def test_slow_and_many_connections_do_not_block_others() -> None:
    room = Class(most=20, slow=1.0)
    lines = []
    try:
        for _ in range(60):
            line = socket.create_connection(("127.0.0.1", room.port), timeout=60)
            lines.append(line)
        head = f"POST /share HTTP/1.1\r\nAuthorization: Bearer {room.shared.join}\r\nContent-"
        for line in lines[:10]:
            try:
                line.sendall(head.encode())  # and no more
            except OSError:
                pass
        assert room.share(encoded(report()))[0] == 204
        for line in lines:
            with contextlib.suppress(ConnectionError):  # the slow ones are hung up on
                assert b"204" not in line.recv(100)
    finally:
        for line in lines:
            line.close()
        room.close()


HALF = {
    "nothing": "",
    "half a head": "POST /share HTTP/1.1\r\nAuthorization: Bearer {join}\r\nContent-",
    "half a body": "POST /share HTTP/1.1\r\nHost: x\r\nContent-Length: 1000\r\n\r\n{{",
    "answered requests": "GET /page.js HTTP/1.1\r\nHost: x\r\n\r\n" * 3,
}


@pytest.mark.parametrize("sent", HALF.values(), ids=HALF)
def test_who_has_no_token_keeps_nobody_out(sent: str) -> None:
    """Though all have one address, as behind a proxy, and no request is too slow."""
    with contextlib.ExitStack() as lines:
        room = lines.enter_context(closing(Class(most=80, slow=60.0)))

        def strangers() -> None:
            for _ in range(85):
                line = lines.enter_context(socket.create_connection(("127.0.0.1", room.port)))
                line.setblocking(False)
                with contextlib.suppress(OSError):
                    line.sendall(sent.format(join=room.shared.join).encode())

        strangers()
        students = [http.client.HTTPConnection("127.0.0.1", room.port) for _ in range(30)]
        for student in students:
            lines.enter_context(closing(student))
            student.connect()
        for again in (False, True):
            for nth, student in enumerate(students):
                assert not again or student.sock is not None, "the connection was closed"
                secret = {"X-SFM-Share": f"{nth:020}"}
                headers = {"Authorization": f"Bearer {room.shared.join}"} | secret
                student.request("POST", "/share", encoded(report()), headers)
                with student.getresponse() as answer:
                    assert answer.status == 204
            strangers()
            assert len(room.worlds()) == 30


def test_an_address_of_ipv6_is_a_network() -> None:
    """Everybody there has 2^64 addresses."""
    ended: list[Line] = []

    class Line:
        def close(self) -> None:
            ended.append(self)

    limited, lines = Connections(most=4, from_one=2), [Line() for _ in range(6)]
    for line, host in zip(
        lines, ["2001:db8::1", "2001:db8::2", "2001:db8::3", "::1"], strict=False
    ):
        limited.add(line, host)
    assert ended == [lines[0]]
    limited.prove(lines[1])
    limited.prove(lines[0])  # it has ended, and stays so
    limited.add(lines[4], "192.0.2.1")
    limited.add(lines[5], "192.0.2.2")  # it is full
    assert ended == [lines[0], lines[2]]


def test_no_picture_is_an_error_of_its_own() -> None:
    with pytest.raises(BadReport, match="no snapshot"):
        checked(b"{}", 1.0)


def started(*words: str, **environment: str) -> tuple[str, int]:
    """The output of ``python -m sfm_kernel.classroom`` until it is ended, and its exit status."""
    process = subprocess.Popen(
        [sys.executable, "-m", "sfm_kernel.classroom", *words],
        env=os.environ | environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    assert process.stdout is not None
    said = ""
    while line := process.stdout.readline():
        said += line
        if line.startswith("Ctrl-C"):
            process.send_signal(signal.SIGTERM)
    process.stdout.close()
    return said, process.wait()


def test_it_prints_its_address_or_what_is_wrong(tmp_path: Path) -> None:
    said, status = started("--port", "0")
    assert status == 0 and "http://127.0.0.1:" in said and "plain HTTP" not in said
    said, status = started("--port", "0", "--host", "0.0.0.0", SFM_HOST_IP="192.0.2.7")
    assert status == 0 and "%sfm share http://192.0.2.7:" in said and "plain HTTP" in said
    prefix, url = "/services/room/", "http://127.0.0.1:0/services/room/"
    said, _ = started("--port", "0", JUPYTERHUB_SERVICE_PREFIX=prefix, JUPYTERHUB_SERVICE_URL=url)
    assert "https://YOUR.HUB/services/room/#teach-" in said
    said, status = started("--cert", str(tmp_path / "none.pem"))
    assert status == 1 and "is no usable certificate" in said
    with socket.create_server(("127.0.0.1", 0)) as taken:
        said, status = started("--port", str(taken.getsockname()[1]))
    assert status == 1 and "Choose another port with --port" in said
