"""A gateway with its connection to the directory server."""

from __future__ import annotations

import json
import sys
import threading
import time
from typing import Any

from sfm_kernel import _native
from sfm_kernel.directory import check_site
from sfm_kernel.directory.client import Client
from sfm_kernel.directory.gateways import GatewayKey
from sfm_kernel.directory.signals import Ending
from sfm_kernel.errors import SFMError, WorldGone
from sfm_kernel.transport.address import own_ip, raise_descriptors
from sfm_kernel.transport.base import Gateway
from sfm_kernel.transport.closing import Closing

UPDATE_SECONDS = 0.25
"""Seconds between two requests for the world's members and gateways."""
REPORT_SECONDS = 1.0
"""Seconds between two reports."""
RETRY_SECONDS = 2.0
"""Seconds between two attempts to reach a directory server that does not answer."""


class Service(Closing):
    """A gateway of ``site``, known to the directory server; it forwards until ``close``.

    While the server does not answer, the gateway goes on with the gateways that it knows. Another
    server at the same address has another key, and is not asked.

    Args:
        world, url, key: as for ``Client``.
        bind: "IP:port"; by default a port of this machine's address.
        weights: the weights of senders, by name.
        options: those of ``_native.Gateway``.
    Attributes:
        gateway: the server's entry of it.
    Raises:
        WorldGone, WorldAccess, WorldError: as ``Client``.
        SFMError: this machine cannot run such a gateway; the message says why.
    """

    def __init__(
        self,
        world: str,
        url: str,
        key: GatewayKey,
        site: str,
        *,
        bind: str | None = None,
        weights: dict[str, float] | None = None,
        **options: Any,
    ) -> None:
        self._site = check_site(site)
        self._weights = weights or {}
        self._version = -1
        self._report_at, self._refused = 0.0, False
        raise_descriptors()
        self._client = Client(world, url, key)
        try:
            self._native = _listening(site, key.key, bind, options)
            try:
                self.gateway = self._enlist()
            except BaseException:
                self._native.close()
                raise
        except BaseException:
            self._client.close()
            raise

    def status(self) -> dict[str, Any]:
        """The gateway's status, see native/src/gateway/status.rs."""
        status: dict[str, Any] = json.loads(self._native.status())
        return status

    def serve(self, end: Ending | threading.Event) -> None:
        """Keep in touch with the directory server, until ``end`` is set."""
        silent = False
        while not end.wait(RETRY_SECONDS if silent else UPDATE_SECONDS):
            try:
                self.update()
            except WorldGone as error:
                if not silent:
                    _say(f"{error}. This gateway goes on with the gateways that it knows")
                silent = True
            else:
                if silent:
                    _say("the directory server answers again")
                silent = False

    def update(self) -> None:
        """Read the server's state, and report when it is time. Raises WorldGone."""
        answer = self._client.ask("state", version=self._version)
        if "gateways" in answer:
            known = [Gateway.from_json(gateway) for gateway in answer["gateways"]]
            self._native.peers([(gateway.uid, gateway.site, gateway.address) for gateway in known])
            self._weigh(answer["members"])
            if all(gateway.uid != self.gateway.uid for gateway in known):
                self._enlist()  # the server has taken this gateway for dead
        self._version = answer["version"]
        if time.monotonic() >= self._report_at:
            self._report_at = time.monotonic() + REPORT_SECONDS
            self._report()

    def _report(self) -> None:
        """Send the server a report; the gateway forwards even if the server refuses it."""
        try:
            self._enlist(report=self.status())
        except WorldGone:
            raise
        except SFMError as error:
            if not self._refused:
                _say(f"the directory server refuses this gateway's report: {error}")
            self._refused = True

    def _enlist(self, **more: Any) -> Gateway:
        address = self._native.address.replace("//0.0.0.0:", f"//{own_ip()}:")
        uid = self._native.uid
        answer = self._client.ask("enlist", uid=uid, site=self._site, address=address, **more)
        return Gateway.from_json(answer["gateway"])

    def _weigh(self, members: list[dict[str, Any]]) -> None:
        if self._weights:
            named = {str(member["name"]): member["uid"] for member in members}
            known = self._weights.items()
            self._native.weights({named[name]: weight for name, weight in known if name in named})

    def close(self) -> None:
        """End the gateway. Idempotent."""
        self._native.close()
        self._client.close()


def _listening(site: str, key: bytes, bind: str | None, options: dict[str, Any]) -> _native.Gateway:
    if bind is not None:
        if bind.startswith("["):
            raise SFMError(f"no gateway: {bind} is an address of IPv6, and processes use IPv4")
        address = bind if ":" in bind else f"{bind}:0"
        try:
            return _native.Gateway(site, key, address, **options)
        except ValueError as error:
            raise SFMError(f"no gateway: {error}") from None
    ip = own_ip()
    try:
        return _native.Gateway(site, key, f"{ip}:0", **options)
    except SFMError as error:
        if "(os error 99)" not in str(error):  # EADDRNOTAVAIL
            raise
        # A router in front of this machine has the address, and forwards to it.
        return _native.Gateway(site, key, "0.0.0.0:0", **options)


def _say(text: str) -> None:
    print(f"sfm: {text}", file=sys.stderr, flush=True)
