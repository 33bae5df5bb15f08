"""``%sfm start --sites``: sites with gateways on one machine, and errors about wrong input."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import psutil
import pytest

from sfm_kernel.directory import DirectoryServer, RemoteDirectory
from sfm_kernel.errors import BadName
from sfm_kernel.jupyter import gateway
from sfm_kernel.jupyter.cluster_files import DIRECTORY, world_key, world_name
from sfm_kernel.jupyter.sites import Sites, settle, take_sites
from tests.jupyter.notebook import cluster_files, descendants, notebook, runs, wait_for

ROUTES = "%%sfm\nprint(sfm.site, [sfm.route_kind(one) for one in range(3)])"
GATEWAYS = "sfm_kernel.jupyter.gateways"


@pytest.mark.parametrize(
    ("words", "problem"),
    [
        ("--sites A", "'A' has no number"),
        ("--sites", "has no number"),
        ("--sites A=x", "has no number"),
        ("--sites A=0", "gives A no engine"),
        ("--sites A=1,A=2", "names A twice"),
        ("--sites =1", "is empty"),
        ("--sites A=100000", "more than the 256"),
        ("--delay 20ms", "needs --sites"),
        ("--sites A=1,B=1 --delay fast", "as in 20ms"),
        ("--sites A=1,B=1 --limit wide", "as in 100M"),
    ],
)
def test_bad_input(words: str, problem: str) -> None:
    with pytest.raises(BadName, match=problem):
        take_sites(words.split())
    with pytest.raises(BadName, match="two words"):
        take_sites(["--sites", "two words=1"])


def test_sites_survive_the_environment() -> None:
    rest, sites = take_sites(["--sites", "A=2,B=1", "X", "--delay=20ms", "--limit", "200M"])
    assert rest == ["X"] and sites is not None
    assert (sites.total, sites.names, sites.first) == (3, ["A", "B"], "A")
    assert [sites.number(rank) for rank in range(3)] == [0, 0, 1]
    assert sites.options == ("--delay", "20ms", "--limit", "200M")
    assert (
        Sites.from_environment(sites.environment()) == sites and Sites.from_environment({}) is None
    )
    assert take_sites(["4"]) == (["4"], None)


def test_an_engine_of_a_site_is_the_first_process_of_all(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    top = tmp_path / "nothing is here yet"
    monkeypatch.setenv("SFM_DIR", str(top))
    for name, value in Sites((("A", 1), ("B", 1))).environment().items():
        monkeypatch.setenv(name, value)
    settle(1, "w")
    folders = [top, top / "w.sites", top / "w.sites/1"]
    assert [os.environ["SFM_DIR"], os.environ["SFM_SITE"]] == [str(folders[-1]), "B"]
    assert [path.stat().st_mode & 0o777 for path in folders] == [0o700] * 3


@pytest.mark.zmq
def test_a_cluster_s_gateway_finds_all_in_the_connection_file(tmp_path: Path) -> None:
    about = {"key": "0123456789abcdef" * 2, "location": "x", "registration": "tcp://127.0.0.1:7"}
    world, key = world_name(about), world_key(about)
    with DirectoryServer(world, key, "tcp://127.0.0.1:0") as server:
        path = tmp_path / "ipcontroller-engine.json"
        path.write_text(json.dumps(about | {DIRECTORY: server.url}))
        command = [sys.executable, "-m", "sfm_kernel.jupyter.gateway", str(path), "--site", "lyon"]
        command += ["--bind", "127.0.0.1"]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
            assert process.stdout is not None and "of site 'lyon'" in process.stdout.readline()
            with RemoteDirectory(world, server.url, key) as directory:
                assert [found.site for found in directory.gateways()] == ["lyon"]
            process.terminate()
        assert process.returncode == 0


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        (None, "No such file"),
        ("no JSON", "is no connection file"),
        ("[]", "is no connection file"),
        ('{"key": "k", "location": "x", "registration": "tcp://a:1"}', "is no connection file"),
        ('{"key": "", "sfm_directory": "tcp://a:1"}', "no session key"),
    ],
)
def test_a_wrong_connection_file_is_refused(
    text: str | None, problem: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "engine.json"
    if text is not None:
        path.write_text(text)
    assert gateway.main([str(path), "--site", "lyon"]) == 1
    assert problem in capsys.readouterr().err
    assert gateway.main([]) == gateway.main(["--site", "lyon"]) == 2


def gateways(pid: int) -> list[psutil.Process]:
    """The process that runs a notebook's gateways, and the gateways."""
    found = []
    for process in descendants(pid):
        with contextlib.suppress(psutil.Error):  # it has just ended
            found += [process] if GATEWAYS in " ".join(process.cmdline()) else []
    return found


@pytest.mark.timeout(600)
def test_engines_of_two_sites_talk_through_gateways(sfm_dir: Path) -> None:
    with notebook() as book:
        assert "nothing" not in book.text("%sfm start --sites A=2,B=1 --delay 5ms")
        routes = book.text(ROUTES)
        assert "A ['inproc', 'shm', 'gateway']" in routes and "A ['shm', 'inproc'" in routes
        assert "B ['gateway', 'gateway', 'inproc']" in routes
        assert "A ['zmq', 'zmq', 'gateway']" in book.text(ROUTES.partition("\n")[2])
        book.run("%%sfm\nif rank == 0: send(dest=2, tag='x')\nif rank == 2: recv(tag='x')").ok()
        wait_for(lambda: "A → B" in book.text("%sfm sites"), "a report of the gateways")
        shown = book.text("%sfm sites")
        assert "A-1" in shown and "B-1" in shown and "emulated" in shown
        assert "site" in book.text("%sfm status")
        assert "takes no other number than 3" in book.run("%sfm scale 5").text
        assert "nothing started" in book.run("%sfm start 3").text
        (victim, *_) = sorted(gateways(book.pid), key=lambda process: -process.pid)
        victim.kill()
        wait_for(
            lambda: len([process for process in gateways(book.pid) if runs(process)]) == 3,
            "another",
        )
        book.run("%%sfm\nif rank == 0: send(dest=2, tag='x')\nif rank == 2: recv(tag='x')").ok()
        book.run("%sfm restart 2").ok()
        wait_for(lambda: "B ['gateway'" in book.text(ROUTES), "its way to the gateways")
        book.run("%sfm stop").ok()
        assert not gateways(book.pid)
        wait_for(lambda: not [*sfm_dir.glob("ipp-*")], "the removal of the sites")


@pytest.mark.timeout(600)
def test_an_engine_is_put_out(sfm_dir: Path) -> None:
    with notebook("%sfm start --sites A=1,B=1") as book:
        assert "Known: 0, 1, home" in book.run("%sfm expel 7").text
        assert "takes the name of one process" in book.run("%sfm expel").text
        assert "1 (process" in book.text("%sfm expel 1")
        assert "still here" in book.text("%%sfm 0\nprint('still here')")
        said = book.run("sfm.recv(src=1)").shown
        assert "PeerLost" in said and "was put out of the world" in said
        book.run("%sfm restart 1").ok()  # another process, with another key
        assert book.text("%%sfm\nprint('rank', rank)").count("rank") == 2
    with notebook("%sfm start 1") as book:
        assert "for worlds of several machines" in book.run("%sfm expel 0").text


@pytest.mark.fault
@pytest.mark.timeout(600)
def test_no_gateway_outlives_its_notebook(sfm_dir: Path) -> None:
    with notebook("%sfm start --sites A=1,B=1") as book:
        processes = descendants(book.pid)
        assert len(gateways(book.pid)) == 3
        book.kill(signal.SIGKILL)
        wait_for(lambda: not any(map(runs, processes)), "the end of all")
        wait_for(lambda: not cluster_files(sfm_dir), "the removal of sites and files")
