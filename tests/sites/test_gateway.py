"""Gateways as programs, which find each other through the directory server."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NoReturn

import pytest

from sfm_kernel.directory import DirectoryServer, RemoteDirectory
from sfm_kernel.directory.gateways import GatewayKey
from sfm_kernel.errors import WorldGone
from sfm_kernel.gateway import service as service_module
from sfm_kernel.gateway.service import Service
from tests.dealers import place
from tests.sites.conftest import KEY
from tests.waiting import wait_until

pytestmark = pytest.mark.zmq
LOOPBACK = "127.0.0.1"


def command(*arguments: str) -> list[str]:
    return [sys.executable, "-m", "sfm_kernel.gateway", "--bind", LOOPBACK, *arguments]


def surroundings(server: DirectoryServer) -> dict[str, str]:
    """The environment of a gateway that has the gateway key only."""
    key = str(GatewayKey.of_world(KEY))
    return os.environ | {"SFM_DIRECTORY": server.url, "SFM_GATEWAY_KEY": key}


Start = Callable[..., subprocess.Popen[str]]


@pytest.fixture
def start(server: DirectoryServer) -> Iterator[Start]:
    """Starts a gateway of a site; returns when it listens."""
    running: list[subprocess.Popen[str]] = []

    def started(site: str, *arguments: str) -> subprocess.Popen[str]:
        gateway = subprocess.Popen(
            command("--world", server.world, "--site", site, *arguments),
            env=surroundings(server), stdout=subprocess.PIPE, text=True,
        )  # fmt: skip
        running.append(gateway)
        assert gateway.stdout and f"of site '{site}'" in gateway.stdout.readline()
        return gateway

    yield started
    for gateway in running:
        gateway.kill()
        gateway.communicate()


def connected(directory: RemoteDirectory) -> dict[str, list[dict[str, Any]]]:
    """Each gateway's connections, by its name, once it has reported TCP's facts about them."""
    names = {gateway.uid: gateway.name for gateway in directory.gateways()}
    return {
        names[uid]: [
            connection
            for other in report["gateways"]
            for connection in other["connections"]
            if connection["tcp"]["rtt_s"] is not None
        ]
        for uid, report in directory.reports().items()
        if uid in names
    }


def test_gateways_meet_and_report_their_connections(
    directory: RemoteDirectory, start: Start
) -> None:
    start("A", "--algorithm", "reno", "--connections", "2", "--rate", "100M")
    other = start("B", "--weight", "A=3", "--scheduler", "smallest")
    wait_until(lambda: {name: len(rows) for name, rows in connected(directory).items()}
               == {"A-1": 2, "B-1": 2})  # fmt: skip
    first = connected(directory)["A-1"]
    for row in first:
        assert row["algorithm"] == row["algorithm_asked"] == "reno"
        assert row["pacing"] == 6_250_000 and not row["silent"] and row["mptcp"] is None
        tcp = row["tcp"]
        assert tcp["snd_cwnd"] > 0 and tcp["rtt_s"] > 0 and tcp["total_retrans"] == 0
        assert {"total_rto", "dsack_dups", "reord_seen", "rto_s"} <= tcp.keys()
    reports = {report["site"]: report for report in directory.reports().values()}
    assert reports["B"]["scheduler"] == "smallest" and reports["A"]["connections"] == 2
    assert reports["A"]["notes"] == []
    other.send_signal(signal.SIGTERM)
    assert other.wait() == 0
    wait_until(lambda: [gateway.name for gateway in directory.gateways()] == ["A-1"])


def test_without_mptcp_a_connection_is_tcp_and_a_note_says_so(
    directory: RemoteDirectory, start: Start
) -> None:
    for site in ("A", "B"):
        start(site, "--mptcp", "--algorithm", "reno")
    start("C")
    wait_until(lambda: [len(two) for two in connected(directory).values()] == [2, 2, 2])
    reports = {report["site"]: report for report in directory.reports().values()}
    asked, plain = (
        next(row for row in reports["A"]["gateways"] if row["site"] == site) for site in ("B", "C")
    )
    for other, given in ((asked, has_mptcp()), (plain, False)):
        (row,) = other["connections"]
        assert row["mptcp"] is given and row["algorithm"] == row["algorithm_asked"] == "reno"
        assert row["tcp"]["rtt_s"] > 0 and row["tcp"]["bytes_sent"] > 0
        note = f"the connection to {other['address'][6:]} was to be MPTCP, and fell back to TCP"
        assert (note in reports["A"]["notes"]) is not given
    assert reports["C"]["notes"] == [] and not reports["C"]["mptcp"]


def has_mptcp() -> bool:
    try:
        socket.socket(proto=socket.IPPROTO_MPTCP).close()
    except OSError:
        return False
    return True


@pytest.mark.fault
def test_a_killed_gateway_is_forgotten_and_another_is_found(
    directory: RemoteDirectory, start: Start
) -> None:
    start("A")
    killed = start("B")
    wait_until(lambda: len(connected(directory).get("A-1", [])) == 1)
    killed.kill()
    wait_until(lambda: connected(directory) == {"A-1": []})
    start("B")
    wait_until(lambda: len(connected(directory).get("A-1", [])) == 1)


def test_it_names_the_limits_of_an_emulated_path(directory: RemoteDirectory, start: Start) -> None:
    gateway = start("A", "--delay", "20ms", "--limit", "200M")
    assert gateway.stdout and "cannot be seen" in gateway.stdout.readline()
    wait_until(directory.reports)
    emulation = next(iter(directory.reports().values()))["emulation"]
    assert (emulation["delay_s"], emulation["bytes_per_s"]) == (0.02, 25_000_000)


@pytest.mark.parametrize(
    ("arguments", "change", "sentence"),
    [
        ([], {"SFM_DIRECTORY": ""}, "set SFM_DIRECTORY"),
        ([], {"SFM_GATEWAY_KEY": ""}, "set SFM_GATEWAY_KEY"),
        ([], {"SFM_GATEWAY_KEY": "", "SFM_KEY": "xyz"}, "not hexadecimal"),
        ([], {"SFM_GATEWAY_KEY": "12"}, "128 hexadecimal digits"),
        ([], {"SFM_GATEWAY_KEY": str(GatewayKey.of_world(KEY[::-1]))}, "refuses the key"),
        (["--algorithm", "no such"], {}, "reno"),
        (["--bind", "nowhere"], {}, "'tcp://IP:port' is needed"),
        (["--bind", "192.0.2.1"], {}, "no gateway at 192.0.2.1"),
        (["--connections", "0"], {}, "1 to 64"),
        (["--rate", "fast"], {}, "100M"),
        (["--delay", "20"], {}, "20ms"),
        (["--weight", "3"], {}, "NAME=WEIGHT"),
    ],
)
def test_the_command_says_what_is_wrong_in_a_sentence(
    server: DirectoryServer, arguments: list[str], change: dict[str, str], sentence: str
) -> None:
    failed = subprocess.run(
        command("--world", server.world, "--site", "A", *arguments),
        env=surroundings(server) | change, capture_output=True, text=True,
    )  # fmt: skip
    assert failed.returncode in (1, 2) and sentence in failed.stderr
    assert "Traceback" not in failed.stderr


@pytest.fixture
def said(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What a gateway's thread has said. (capsys loses what is written while it is read.)"""
    sentences: list[str] = []
    monkeypatch.setattr(service_module, "_say", sentences.append)
    return sentences


def test_it_goes_on_while_the_directory_is_silent(
    server: DirectoryServer,
    directory: RemoteDirectory,
    monkeypatch: pytest.MonkeyPatch,
    said: list[str],
) -> None:
    def silence(*_: object, **__: object) -> NoReturn:
        raise WorldGone("the directory server does not answer")

    end = threading.Event()
    with Service(server.world, server.url, GatewayKey.of_world(KEY), "A", bind=LOOPBACK) as service:
        thread = threading.Thread(target=service.serve, args=(end,))
        thread.start()
        with monkeypatch.context() as cut:
            cut.setattr(service._client, "ask", silence)
            wait_until(lambda: "goes on" in "".join(said))
            assert service.status()["site"] == "A"
        wait_until(lambda: "answers again" in "".join(said))
        assert [gateway.name for gateway in directory.gateways()] == ["A-1"]
        end.set()
        thread.join()
    wait_until(lambda: directory.gateways() == [])


def test_it_does_not_take_another_server_for_its_own(
    world: str, sfm_dir: Path, said: list[str]
) -> None:
    with DirectoryServer(world, KEY, f"tcp://{LOOPBACK}:0") as server:
        service = Service(world, server.url, GatewayKey.of_world(KEY), "A", bind=LOOPBACK)
    end = threading.Event()
    with DirectoryServer(world, KEY, place(server.url)) as other, service:
        thread = threading.Thread(target=service.serve, args=(end,))
        thread.start()
        wait_until(lambda: "is not the server with the key" in "".join(said))
        with RemoteDirectory(world, other.url, KEY) as directory:
            assert directory.gateways() == []
        end.set()
        thread.join()


def test_a_closed_one_leaves_nothing(server: DirectoryServer) -> None:
    def held() -> tuple[int, int]:
        return len(os.listdir("/proc/self/task")), len(os.listdir("/proc/self/fd"))

    key, before = GatewayKey.of_world(KEY), (0, 0)
    for nth in range(3):
        with (
            Service(server.world, server.url, key, "A", bind=LOOPBACK) as first,
            Service(server.world, server.url, key, "B", bind=LOOPBACK) as second,
        ):
            wait_until(lambda: (first.update(), second.update(), _up(first) and _up(second))[2])
        assert first._native.status() == "{}"
        first.close()
        if nth == 0:  # the server's ZeroMQ keeps what it has made for its first client
            time.sleep(0.5)
            before = held()
    wait_until(lambda: held() <= before)


def _up(service: Service) -> bool:
    gateways = service.status()["gateways"]
    return any(len(gateway["connections"]) == 1 for gateway in gateways)
