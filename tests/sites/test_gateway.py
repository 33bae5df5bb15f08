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
from typing import Any

import pytest

from sfm_kernel.directory import DirectoryServer, RemoteDirectory
from sfm_kernel.directory.gateways import GatewayKey
from sfm_kernel.gateway.service import Service
from tests.waiting import wait_until

pytestmark = pytest.mark.tcp
KEY = bytes(range(32))
LOOPBACK = "127.0.0.1"


@pytest.fixture
def server(world: str) -> Iterator[DirectoryServer]:
    with DirectoryServer(world, KEY, f"tcp://{LOOPBACK}:0") as running:
        yield running


@pytest.fixture
def directory(server: DirectoryServer, sfm_dir: Path) -> Iterator[RemoteDirectory]:
    with RemoteDirectory(server.world, server.url, KEY) as opened:
        yield opened


def command(*arguments: str) -> list[str]:
    return [sys.executable, "-m", "sfm_kernel.gateway", "--bind", LOOPBACK, *arguments]


@pytest.fixture
def start(server: DirectoryServer) -> Iterator[Callable[..., subprocess.Popen[str]]]:
    """Starts a gateway of a site that has the gateway key only; returns when it listens."""
    surroundings = os.environ | {
        "SFM_DIRECTORY": server.url,
        "SFM_GATEWAY_KEY": str(GatewayKey.of_world(KEY)),
    }
    running: list[subprocess.Popen[str]] = []

    def started(site: str, *arguments: str) -> subprocess.Popen[str]:
        one = subprocess.Popen(
            command("--world", server.world, "--site", site, *arguments),
            env=surroundings, stdout=subprocess.PIPE, text=True,
        )  # fmt: skip
        running.append(one)
        assert one.stdout and f"of site '{site}'" in one.stdout.readline()
        return one

    yield started
    for one in running:
        one.kill()
        one.communicate()


def connected(directory: RemoteDirectory) -> dict[str, list[dict[str, Any]]]:
    """Each gateway's connections, by its name, once it has reported what TCP says of them."""
    names = {one.uid: one.name for one in directory.gateways()}
    return {
        names[uid]: [
            two
            for one in told["gateways"]
            for two in one["connections"]
            if two["tcp"]["rtt_s"] is not None
        ]
        for uid, told in directory.reports().items()
        if uid in names
    }


def test_gateways_meet_and_tell_of_their_connections(
    directory: RemoteDirectory, start: Callable[..., subprocess.Popen[str]]
) -> None:
    start("A", "--algorithm", "reno", "--connections", "2", "--rate", "100M")
    other = start("B", "--weight", "A=3", "--scheduler", "smallest")
    wait_until(lambda: {one: len(two) for one, two in connected(directory).items()}
               == {"A-1": 2, "B-1": 2})  # fmt: skip
    first = connected(directory)["A-1"]
    for one in first:
        assert one["algorithm"] == one["algorithm_asked"] == "reno"
        assert one["pacing"] == 6_250_000 and not one["silent"] and one["mptcp"] is None
        tcp = one["tcp"]
        assert tcp["snd_cwnd"] > 0 and tcp["rtt_s"] > 0 and tcp["total_retrans"] == 0
        assert {"total_rto", "dsack_dups", "reord_seen", "rto_s"} <= tcp.keys()
    reports = {one["site"]: one for one in directory.reports().values()}
    assert reports["B"]["scheduler"] == "smallest" and reports["A"]["connections"] == 2
    assert reports["A"]["notes"] == []
    other.send_signal(signal.SIGTERM)
    assert other.wait() == 0
    wait_until(lambda: [one.name for one in directory.gateways()] == ["A-1"])


def test_without_mptcp_a_connection_is_tcp_and_somebody_is_told(
    directory: RemoteDirectory, start: Callable[..., subprocess.Popen[str]]
) -> None:
    for site in ("A", "B"):
        start(site, "--mptcp", "--algorithm", "reno")
    start("C")
    wait_until(lambda: [len(two) for two in connected(directory).values()] == [2, 2, 2])
    told = {one["site"]: one for one in directory.reports().values()}
    (asked, plain) = (
        next(one for one in told["A"]["gateways"] if one["site"] == site) for site in ("B", "C")
    )
    for other, given in ((asked, has_mptcp()), (plain, False)):
        (one,) = other["connections"]
        assert one["mptcp"] is given and one["algorithm"] == one["algorithm_asked"] == "reno"
        assert one["tcp"]["rtt_s"] > 0 and one["tcp"]["bytes_sent"] > 0
        note = f"the connection to {other['address'][6:]} was to be MPTCP, and fell back to TCP"
        assert (note in told["A"]["notes"]) is not given
    assert told["C"]["notes"] == [] and not told["C"]["mptcp"]


def has_mptcp() -> bool:
    try:
        socket.socket(proto=socket.IPPROTO_MPTCP).close()
    except OSError:
        return False
    return True


@pytest.mark.fault
def test_a_killed_gateway_is_forgotten_and_another_is_found(
    directory: RemoteDirectory, start: Callable[..., subprocess.Popen[str]]
) -> None:
    start("A")
    killed = start("B")
    wait_until(lambda: len(connected(directory).get("A-1", [])) == 1)
    killed.kill()
    wait_until(lambda: connected(directory) == {"A-1": []})
    start("B")
    wait_until(lambda: len(connected(directory).get("A-1", [])) == 1)


def test_it_says_what_a_played_path_cannot_show(
    directory: RemoteDirectory, start: Callable[..., subprocess.Popen[str]]
) -> None:
    one = start("A", "--delay", "20ms", "--limit", "200M")
    assert one.stdout and "cannot be seen" in one.stdout.readline()
    wait_until(directory.reports)
    told = next(iter(directory.reports().values()))["emulation"]
    assert (told["delay_s"], told["bytes_per_s"]) == (0.02, 25_000_000)


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
    surroundings = {
        **os.environ,
        "SFM_DIRECTORY": server.url,
        "SFM_GATEWAY_KEY": str(GatewayKey.of_world(KEY)),
        **change,
    }
    failed = subprocess.run(
        command("--world", server.world, "--site", "A", *arguments),
        env=surroundings, capture_output=True, text=True,
    )  # fmt: skip
    assert failed.returncode in (1, 2) and sentence in failed.stderr
    assert "Traceback" not in failed.stderr


def test_it_goes_on_without_the_directory_and_enlists_again(
    world: str, sfm_dir: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    key = GatewayKey.of_world(KEY)
    with DirectoryServer(world, KEY, f"tcp://{LOOPBACK}:0") as server:
        service = Service(world, server.url, key, "A", bind=LOOPBACK)
    end = threading.Event()
    thread = threading.Thread(target=service.serve, args=(end,))
    thread.start()
    wait_until(lambda: "goes on" in capsys.readouterr().err)
    assert service.status()["site"] == "A"
    with (
        DirectoryServer(world, KEY, server.url),
        RemoteDirectory(world, server.url, KEY) as directory,
    ):
        wait_until(lambda: [one.name for one in directory.gateways()] == ["A-1"])
        end.set()
        thread.join()
        service.close()
        wait_until(lambda: directory.gateways() == [])


def test_a_closed_one_leaves_nothing(server: DirectoryServer) -> None:
    def held() -> tuple[int, int]:
        return len(os.listdir("/proc/self/task")), len(os.listdir("/proc/self/fd"))

    key, before = GatewayKey.of_world(KEY), (0, 0)
    for nth in range(3):
        with (
            Service(server.world, server.url, key, "A", bind=LOOPBACK) as one,
            Service(server.world, server.url, key, "B", bind=LOOPBACK) as two,
        ):
            wait_until(lambda: (one.update(), two.update(), _up(one) and _up(two))[2])
        assert one._native.status() == "{}"
        one.close()
        if nth == 0:  # the server's ZeroMQ keeps what it has made for its first client
            time.sleep(0.5)
            before = held()
    wait_until(lambda: held() <= before)


def _up(service: Service) -> bool:
    gateways = service.status()["gateways"]
    return any(len(one["connections"]) == 1 for one in gateways)
