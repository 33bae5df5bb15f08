"""Two sites, "a" and "b", whose processes share no memory, and talk through gateways.

Gateways, and what joins by ``join``, are in this process. A site is a machine, which is a folder.
"""

from __future__ import annotations

import os
import tempfile
import threading
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pytest

import sfm_kernel
from sfm_kernel import Endpoint
from sfm_kernel.directory import DirectoryServer
from sfm_kernel.directory.gateways import GatewayKey
from sfm_kernel.gateway import service
from sfm_kernel.gateway.service import Service
from tests.waiting import wait_until

LOOPBACK = "127.0.0.1"


class TwoSites:
    """A world with a directory server; ``gateways`` is empty until ``add_gateway``."""

    def __init__(self, world: str, root: str, stack: ExitStack) -> None:
        self.world, self._root, self._stack = world, Path(root), stack
        self.gateways: list[Service] = []
        url = f"tcp://{LOOPBACK}:0"
        self._server = stack.enter_context(DirectoryServer(world, os.urandom(32), url))

    def add_gateway(self, site: str, **options: Any) -> Service:
        """A gateway of the site, which serves; with options of ``Service``."""
        key = GatewayKey.of_world(self._server.key)
        gateway = Service(self.world, self._server.url, key, site, bind=LOOPBACK, **options)
        self._stack.enter_context(gateway)
        end = threading.Event()
        thread = threading.Thread(target=gateway.serve, args=(end,))
        thread.start()
        self._stack.callback(thread.join)
        self._stack.callback(end.set)
        self.gateways.append(gateway)
        return gateway

    def environment(self, site: str) -> dict[str, str]:
        """The environment variables of a process there."""
        about = {"SFM_DIRECTORY": self._server.url, "SFM_KEY": self._server.key.hex()}
        about |= {"SFM_DIR": str(self._root / site), "SFM_SITE": site}
        return about | {"SFM_TRANSPORT": "shm,zmq"}  # not straight through this process

    def join(self, site: str, name: str | None = None, **options: Any) -> Endpoint:
        """An endpoint there. Its gateways have met before."""
        wait_until(lambda: all(self._has_met(gateway) for gateway in self.gateways))
        with changed(self.environment(site)):
            return sfm_kernel.join(self.world, name, **options)

    def _has_met(self, gateway: Service) -> bool:
        others = gateway.status()["gateways"]
        return sum(len(other["connections"]) > 0 for other in others) == len(self.gateways) - 1


@contextmanager
def changed(environment: Mapping[str, str]) -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        for name, value in environment.items():
            patch.setenv(name, value)
        yield


@contextmanager
def two_sites(world: str, sfm_dir: Path) -> Iterator[TwoSites]:
    with ExitStack() as stack:
        patch = stack.enter_context(pytest.MonkeyPatch.context())
        patch.setattr(service, "UPDATE_SECONDS", 0.02)
        root = stack.enter_context(tempfile.TemporaryDirectory(dir=sfm_dir.parent))
        yield TwoSites(world, root, stack)


def meet_through_gateways(*ends: Endpoint) -> None:
    """Return when messages between each two of them at different sites go through gateways."""
    pairs = [(end, other) for end in ends for other in ends if end.site != other.site]
    wait_until(lambda: all(end.route_kind(other.name) == "gateway" for end, other in pairs))
