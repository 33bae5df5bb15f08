"""Sentences for observers about faults of sites and gateways."""

from __future__ import annotations

import subprocess
import sys

import pytest

from sfm_kernel.directory import DirectoryServer
from sfm_kernel.directory.gateways import LARGEST_REQUEST, GatewayKey
from sfm_kernel.errors import BadName, SFMError
from sfm_kernel.gateway.service import Service
from sfm_kernel.lessons.sites.world import LabWorld
from tests.sites.conftest import KEY, MakeLab

pytestmark = pytest.mark.zmq

WAITS_FOR = """
import sys, time
import sfm_kernel
from sfm_kernel.observe import snapshot
from sfm_kernel.relay.view import RemoteView
with sfm_kernel.join("lab", "A") as sfm:
    view = RemoteView.of(sfm)
    while True:
        for site in snapshot(sfm, view.states())["sites"]:
            if all(word in site["sentence"] for word in sys.argv[1:]):
                print(site["sentence"])
                sys.exit()
        time.sleep(0.1)
"""


def seen_in(world: LabWorld, site: str, *words: str) -> str:
    """The sentence with these words that a process there sees about a site, as soon as it does."""
    command = [sys.executable, "-c", WAITS_FOR, *words]
    environment = world._environment(site, 1)
    process = world.lab.run(site, command, environment, stdout=subprocess.PIPE, text=True)
    return str(process.communicate()[0])


def test_two_sites_of_one_name(make_lab: MakeLab) -> None:
    lab = make_lab({"A": 2, "B": 2}, rtt=0.02)
    with LabWorld(lab) as world:
        command = [sys.executable, "-m", "sfm_kernel.gateway", "--world", "lab", "--site", "lyon"]
        for site in "AB":
            lab.run(site, command, world._environment(site, 2), host=2, stdout=subprocess.DEVNULL)
        text = seen_in(world, "A", "ms away", "two sites of this name")
        assert "the other gateway of site" in text and "rename one" in text


def test_a_site_without_a_gateway(make_lab: MakeLab) -> None:
    lab = make_lab({"A": 2, "B": 1}, rtt=0.02)
    with LabWorld(lab) as world:
        command = [sys.executable, "-m", "sfm_kernel.gateway", "--world", "lab", "--site", "A"]
        lab.run("A", command, world._environment("A", 2), host=2, stdout=subprocess.DEVNULL)
        text = seen_in(world, "B", "has no gateway")
        assert text.startswith("B has no gateway: messages between it and other sites go directly")


def service(server: DirectoryServer, site: str = "A", bind: str = "127.0.0.1") -> Service:
    return Service(server.world, server.url, GatewayKey.of_world(KEY), site, bind=bind)


def test_a_report_that_is_too_large_ends_nothing(
    server: DirectoryServer, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    with service(server) as gateway:
        monkeypatch.setattr(gateway, "status", lambda: {"x": "x" * LARGEST_REQUEST})
        for _ in range(2):
            gateway._report()
        assert capsys.readouterr().err.count("refuses this gateway's report") == 1
        gateway.update()


def test_a_gateway_that_no_process_could_find_is_refused(server: DirectoryServer) -> None:
    with pytest.raises(BadName, match="one word"):
        service(server, site="two words")
    with pytest.raises(SFMError, match="IPv4"):
        service(server, bind="[::1]:0")
