"""The student's side of a class: its reports, and its behaviour while the class is away."""

from __future__ import annotations

import shutil
import socket
import subprocess
import threading
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

import sfm_kernel
from sfm_kernel.classroom import sharing
from sfm_kernel.classroom.sharing import NotShared, Share
from sfm_kernel.classroom.web import certificate
from sfm_kernel.observe.record import ProvenDeadlock
from tests.jupyter.notebook import wait_for
from tests.unit.classes import Class


@pytest.fixture
def room(monkeypatch: pytest.MonkeyPatch) -> Iterator[Class]:
    monkeypatch.setattr(sharing, "EVERY", 0.05)
    monkeypatch.setattr(sharing, "KEEPALIVE", 0.2)
    with closing(Class()) as made:
        yield made


@pytest.fixture
def sfm(request: pytest.FixtureRequest) -> Iterator[Any]:
    with sfm_kernel.join(f"share-{abs(hash(request.node.name))}", name="A") as endpoint:
        yield endpoint


def url(room: Class, token: str = "") -> str:
    return f"http://127.0.0.1:{room.port}/#{token or room.shared.join}"


def test_changes_are_reported_to_the_class(room: Class, sfm: Any) -> None:
    deadlocks = [ProvenDeadlock(1.0, "long ago"), ProvenDeadlock(2.0, "a\nb")]
    share = Share(sfm, url(room), "Emmy", deadlocks=deadlocks)
    assert [world["name"] for world in room.worlds()] == ["Emmy"]
    sfm.send(dest="A", tag=1)
    wait_for(lambda: room.worlds()[0]["queued"] == 1, "the message is seen")
    assert room.worlds()[0]["hung"]["text"] == "a\nb"
    share.stop()
    share.stop()
    assert room.worlds()[0]["state"] == "left"


def test_calm_costs_no_reports(room: Class, sfm: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sharing, "CALM", 0.0)
    share = Share(sfm, url(room), "Emmy")
    sent, send = [], share._client.send

    def noted(method: str, body: bytes = b"", **more: Any) -> bool:
        sent.append(body)
        return send(method, body, **more)

    monkeypatch.setattr(share._client, "send", noted)
    wait_for(lambda: sent.count(b"") > 2, "it says that nothing has changed")
    assert room.worlds()[0]["state"] != "gone"
    share.stop()


def test_while_the_class_is_away_it_tries_again(room: Class, sfm: Any) -> None:
    share = Share(sfm, url(room), "Emmy")
    real, share._client._address = share._client._address, "http://127.0.0.1:1/share"
    wait_for(lambda: share.problem, "it notices")
    assert "no answer from http://127.0.0.1:1" in share.problem
    share._client._address = real
    wait_for(lambda: not share.problem, "it is heard again")
    share.stop()


def test_a_class_that_begins_anew_gets_the_report(room: Class, sfm: Any) -> None:
    share = Share(sfm, url(room), "Emmy")
    room.shared._shares.clear()
    wait_for(room.worlds, "it is known again")
    share.stop()


def test_a_refusal_ends_it(room: Class, sfm: Any) -> None:
    share = Share(sfm, url(room), "Emmy")
    room.shared.join = "another-token"
    wait_for(lambda: "join token" in share.problem, "it is refused")
    share._thread.join()
    share.stop()
    with pytest.raises(NotShared, match="join token"):
        Share(sfm, url(room, "wrong"), "Emmy")


@pytest.mark.parametrize(
    ("status", "headers", "reason"),
    [
        (302, "Location: http://127.0.0.1:1/login\r\n", "it asks for a login"),
        (404, "", "does not answer now"),
        (418, "", "refuses this world: status 418"),
        (503, "", "does not answer now"),
    ],
)
def test_other_servers(sfm: Any, status: int, headers: str, reason: str) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:

        def answer() -> None:
            line, _ = server.accept()
            with line:
                while b"\r\n\r\n" not in line.recv(65536):
                    pass
                line.sendall(f"HTTP/1.1 {status} X\r\n{headers}Content-Length: 0\r\n\r\n".encode())
                line.shutdown(socket.SHUT_WR)
                while line.recv(65536):
                    pass

        thread = threading.Thread(target=answer)
        thread.start()
        with pytest.raises(NotShared, match=reason):
            Share(sfm, f"http://127.0.0.1:{server.getsockname()[1]}/#token", "Emmy")
        thread.join()


def test_https(sfm: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if shutil.which("openssl") is None:
        pytest.skip("openssl makes the certificate")
    cert, key = tmp_path / "cert.pem", tmp_path / "key.pem"
    make = "openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 2"
    about = ["-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost"]
    paths = ["-keyout", key, "-out", cert]
    subprocess.run([*make.split(), *about, *paths], check=True, capture_output=True)
    with closing(Class(context=certificate(str(cert), str(key)))) as room:
        line = f"https://localhost:{room.port}/#{room.shared.join}"
        with pytest.raises(NotShared, match=r"certificate of .* is not trusted: self.signed"):
            Share(sfm, line, "Emmy")
        assert room.shared.listing()["worlds"] == []
        monkeypatch.setenv("SSL_CERT_FILE", str(cert))
        Share(sfm, line, "Emmy").stop()
        assert room.shared.listing()["worlds"][0]["state"] == "left"
