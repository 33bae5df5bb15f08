"""The lab: sites in network namespaces, and paths between them. Nothing here asserts a time."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from sfm_kernel.errors import SFMError
from sfm_kernel.lessons.sites.lab import Lab, LabRefused
from sfm_kernel.transport.tcp_info import choosable
from tests.sites.conftest import MakeLab
from tests.waiting import next_line, wait_until

pytestmark = pytest.mark.zmq  # in CI a lab that is refused is a failure
RAW = [sys.executable, "-m", "sfm_kernel.lessons.sites.raw"]

ECHO = """
import socket, sys
server = socket.create_server((sys.argv[1], 7000))
print("ready", flush=True)
while True:
    connection, peer = server.accept()
    print(peer[0], flush=True)
    try:
        while data := connection.recv(100_000):
            connection.sendall(data)
    except ConnectionResetError:
        print("reset", flush=True)
"""
SAY = """
import socket, sys
connection = socket.create_connection((sys.argv[1], 7000))
for line in sys.stdin:
    try:
        connection.sendall(line.encode())
        print(connection.recv(100_000).decode().strip(), flush=True)
    except ConnectionResetError:
        print("reset", flush=True)
"""


def python(
    lab: Lab, site: str, code: str, *arguments: str, **options: Any
) -> subprocess.Popen[str]:
    pipe = subprocess.PIPE
    return lab.run(
        site, [sys.executable, "-c", code, *arguments], stdin=pipe, stdout=pipe, text=True,
        bufsize=1, **options,
    )  # fmt: skip


def say(process: subprocess.Popen[str], text: str) -> None:
    assert process.stdin is not None
    process.stdin.write(text + "\n")


def echo(lab: Lab, host: int = 1) -> subprocess.Popen[str]:
    server = python(lab, "A", ECHO, lab.address("A", host), host=host)
    assert next_line(server) == "ready"
    return server


def ask(lab: Lab, **job: Any) -> dict[str, Any]:
    address = lab.address("A")
    pipe = subprocess.PIPE
    with lab.run("A", [*RAW, "serve", address, "7000"], stdout=pipe, text=True) as server:
        assert next_line(server) == "ready"
        client = lab.run("B", [*RAW, "ask", address, "7000", json.dumps(job)], stdout=pipe)
        printed, _ = client.communicate()
        server.kill()
    answer: dict[str, Any] = json.loads(printed)
    return answer


def test_packets_go_through_and_the_round_trip_is_measured(
    make_lab: MakeLab, record_property: Callable[[str, object], None]
) -> None:
    lab = make_lab(rtt=0.01, rate=100e6)
    measured = ask(lab, job="bulk", length=1_000_000, count=2)
    report = lab.report()
    record_property("rtt_s", measured["rtt_s"])
    record_property("late_mean_s", report["late_mean_s"])
    assert measured["connect_s"] >= 0.01  # the lab is never too fast
    way = report["ways"]["A-B"]
    assert way["back"]["delivered_bytes"] >= 2_000_000
    assert way["there"]["delivered"] > 0
    assert report["late_mean_s"] <= report["late_max_s"]
    assert way["failure"] is None
    lab.clear()
    assert lab.report()["ways"]["A-B"]["back"]["offered"] == 0


def test_hosts_of_a_site_reach_each_other_and_other_sites(make_lab: MakeLab) -> None:
    lab = make_lab({"A": 2, "B": 1, "C": 1}, rtt=0.002)
    assert lab.address("C") == "10.3.0.1"
    server = echo(lab, host=2)
    for site, address in (("A", "10.1.0.1"), ("B", "10.2.0.1"), ("C", "10.3.0.1")):
        client = python(lab, site, SAY, lab.address("A", 2))
        assert next_line(server) == address
        say(client, f"from {site}")
        assert next_line(client) == f"from {site}"
        client.kill()
    ways = lab.report()["ways"]
    assert set(ways) == {"A-B", "A-C", "B-C"}
    assert ways["A-B"]["there"]["delivered"] > 0
    assert ways["B-C"]["there"]["offered"] == 0
    with pytest.raises(SFMError, match=r"no host 3 of site 'A'. There are: A \(1 to 2\)"):
        lab.address("A", 3)


def test_nothing_else_is_reached(make_lab: MakeLab) -> None:
    lab = make_lab(rtt=0)
    code = "import socket; print(*sorted(name for _, name in socket.if_nameindex()))"
    process = python(lab, "A", code)
    assert {"eth0", "lo"} <= set(next_line(process).split())
    code = "import socket; print(socket.socket().connect_ex(('192.0.2.1', 9)))"
    process = python(lab, "A", code)
    assert int(next_line(process)) != 0  # no route


def test_a_cut_stops_everything_until_it_is_over(make_lab: MakeLab) -> None:
    lab = make_lab(rtt=0.002)
    echo(lab)
    client = python(lab, "B", SAY, lab.address("A"))
    say(client, "before")
    assert next_line(client) == "before"
    lab.settings(down=True)
    say(client, "during")
    wait_until(lambda: lab.report()["ways"]["A-B"]["back"]["cut"])
    before = lab.report()["ways"]["A-B"]["back"]["delivered"]
    wait_until(lambda: lab.report()["ways"]["A-B"]["back"]["cut"] > 1)  # TCP tries again
    assert lab.report()["ways"]["A-B"]["back"]["delivered"] == before
    lab.settings(down=False)
    assert next_line(client) == "during"
    lab.cut(0.05)
    say(client, "after")
    assert next_line(client) == "after"


def test_one_way_and_one_pair_can_be_changed(make_lab: MakeLab) -> None:
    lab = make_lab({"A": 1, "B": 1, "C": 1}, rtt=0.002)
    lab.settings(down=True, between=("B", "A"), one_way=True)
    code = "import socket,sys; socket.socket(type=2).sendto(b'x', (sys.argv[1], 9))"
    for source, dest in (("A", "B"), ("B", "A"), ("A", "C")):
        python(lab, source, code, lab.address(dest)).wait()
    wait_until(lambda: lab.report()["ways"]["A-C"]["there"]["delivered"])
    wait_until(lambda: lab.report()["ways"]["A-B"]["back"]["cut"])
    assert lab.report()["ways"]["A-B"]["there"]["cut"] == 0
    with pytest.raises(ValueError, match="loss is 0 to 1, not 2"):
        lab.settings(loss=2)
    with pytest.raises(ValueError, match="between"):
        lab.settings(loss=0.1, one_way=True)


def test_loss_and_a_full_queue_are_counted_and_repaired(make_lab: MakeLab) -> None:
    lab = make_lab(rtt=0.004, rate=50e6, loss=0.01, queue=20_000)
    measured = ask(lab, job="bulk", length=3_000_000, count=1)
    way = lab.report()["ways"]["A-B"]
    assert way["back"]["lost"] > 0
    assert way["back"]["full"] > 0
    assert 0 < way["back"]["deepest"] <= 20_000
    assert measured["total_retrans"] > 0


def test_other_peoples_packets_take_room(make_lab: MakeLab) -> None:
    lab = make_lab(rtt=0.004, rate=50e6, cross=25e6)
    ask(lab, job="bulk", length=1_000_000, count=1)
    assert lab.report()["ways"]["A-B"]["back"]["others"] > 0


def test_connections_are_reset_and_new_ones_are_not(make_lab: MakeLab) -> None:
    lab = make_lab(rtt=0.002)
    server = echo(lab)
    client = python(lab, "B", SAY, lab.address("A"))
    say(client, "before")
    assert next_line(client) == "before"
    lab.reset_connections()
    say(client, "after")
    assert next_line(client) == "reset"
    assert [next_line(server), next_line(server)] == [lab.address("B"), "reset"]  # both ends notice
    assert lab.report()["ways"]["A-B"]["reset"] > 0
    another = python(lab, "B", SAY, lab.address("A"))
    say(another, "new")
    assert next_line(another) == "new"


@pytest.mark.parametrize("algorithm", choosable())
def test_the_congestion_control_is_the_requested_one(make_lab: MakeLab, algorithm: str) -> None:
    lab = make_lab(rtt=0.002, algorithm=algorithm)
    assert set(lab.algorithms.values()) == {algorithm}
    assert ask(lab, job="bulk", length=1000, count=1)["algorithm"] == algorithm


def test_a_congestion_control_that_does_not_exist_is_refused(make_lab: MakeLab) -> None:
    make_lab(rtt=0)  # or skip
    with pytest.raises(SFMError, match="nonesuch"):
        Lab(algorithm="nonesuch")


def test_its_processes_and_their_children_end_with_it(make_lab: MakeLab) -> None:
    lab = make_lab(rtt=0)
    code = (
        "import os,subprocess,sys; "
        "child = subprocess.Popen(['sleep', '1000'], start_new_session=True); "
        "print(child.pid, flush=True); sys.stdin.read()"
    )
    process = python(lab, "A", code)
    pid = int(next_line(process))
    lab.close()
    assert process.returncode == -signal.SIGKILL
    wait_until(lambda: not Path(f"/proc/{pid}/ns/net").exists())
    lab.close()
    with pytest.raises(OSError):
        os.kill(lab._holder.pid, 0)


def test_everything_ends_with_the_process_that_made_it(make_lab: MakeLab) -> None:
    make_lab(rtt=0)  # or skip
    code = (
        "import sys; from sfm_kernel.lessons.sites.lab import Lab; lab = Lab(rtt=0); "
        "child = lab.run('A', ['sleep', '1000']); print(lab._holder.pid, child.pid, flush=True); "
        "sys.stdin.read()"
    )
    command = [sys.executable, "-c", code]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True) as owner:
        pids = [int(pid) for pid in next_line(owner).split()]
        assert all(Path(f"/proc/{pid}/ns/net").exists() for pid in pids)
        owner.kill()
    for pid in pids:
        wait_until(lambda pid=pid: not Path(f"/proc/{pid}/exe").exists())


def test_the_refusal_of_a_machine_says_what_to_do(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    # A Python that finds no way to make namespaces, whatever this machine allows.
    (tmp_path / "sitecustomize.py").write_text(
        "from sfm_kernel import _native\n"
        "def unshare(flags):\n    raise PermissionError(1, 'Operation not permitted')\n"
        "_native.unshare = unshare\n"
    )
    path = os.pathsep.join(filter(None, [str(tmp_path), os.environ.get("PYTHONPATH")]))
    monkeypatch.setenv("PYTHONPATH", path)
    with pytest.raises(LabRefused, match=r"refuses user and network namespaces .*: run as root"):
        Lab()
