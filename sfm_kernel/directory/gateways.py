"""The gateways of a world: their key, and the directory server's list of them."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any

from sfm_kernel._native import GATEWAY_KEY_BYTES, check_site, gateway_key, stretched
from sfm_kernel.directory.carrier import UID
from sfm_kernel.directory.liveness import LivenessMonitor
from sfm_kernel.errors import BadName, WorldAccess, WorldError, WorldFull
from sfm_kernel.transport.base import Gateway

MOST = 256
LARGEST_REQUEST = 1 << 19
"""The most bytes of a gateway's request: the server stores the last report of each gateway."""


@dataclass(frozen=True)
class GatewayKey:
    """The key of a gateway, which has it instead of the world's key.

    A program that has it can stop messages between sites, and see which processes send to which,
    and how much; it can neither read nor forge them, nor speak as a process to a gateway.
    """

    key: bytes

    @classmethod
    def of_world(cls, key: bytes) -> GatewayKey:
        """Derive the gateways' key from the world's. Raises WorldAccess if that is too short."""
        return cls(gateway_key(stretched(key)))

    @classmethod
    def from_text(cls, text: str) -> GatewayKey:
        """Parse the text that ``str`` gives. Raises WorldError on anything else."""
        try:
            key = bytes.fromhex(text)
        except ValueError:
            key = b""
        if len(key) != GATEWAY_KEY_BYTES:
            raise WorldError(
                f"SFM_GATEWAY_KEY has {2 * GATEWAY_KEY_BYTES} hexadecimal digits; copy it "
                f"from the output of `python -m sfm_kernel.directory`"
            )
        return cls(key)

    def __str__(self) -> str:
        return self.key.hex()


class Gateways:
    """The gateways that have enlisted and still listen. For one thread.

    Attributes:
        listed: the gateways, oldest first.
        reports: the last report of each gateway, by uid.
    """

    def __init__(self) -> None:
        self._entries: dict[str, tuple[Gateway, LivenessMonitor]] = {}
        self._owners: dict[str, str] = {}
        self._reports: dict[str, tuple[float, dict[str, Any]]] = {}

    @property
    def listed(self) -> list[Gateway]:
        return [gateway for gateway, _ in self._entries.values()]

    @property
    def watches(self) -> list[LivenessMonitor]:
        """The connections that show whether the gateways listen; the server polls them."""
        return [watch for _, watch in self._entries.values()]

    @property
    def reports(self) -> dict[str, dict[str, Any]]:
        now = time.monotonic()
        return {
            uid: {**report, "age": now - since} for uid, (since, report) in self._reports.items()
        }

    def enlist(self, asked: dict[str, Any], owner: str) -> tuple[Gateway, bool]:
        """Enter a gateway ("uid", "site", "address"), or store the "report" of a listed one.

        ``owner``: the client that asks; only who has entered a gateway reports for it.
        Returns: the gateway, and whether it is new.
        Raises: BadName, WorldFull, WorldAccess; TypeError, ValueError on a malformed request.
        """
        uid, site = asked["uid"], check_site(asked["site"])
        if not isinstance(uid, str) or not UID.fullmatch(uid):
            raise BadName(f"uid {uid!r}: 32 hexadecimal digits are needed")
        if uid not in self._entries:
            if len(self._entries) >= MOST:
                raise WorldFull(f"the world has {MOST} gateways, which is its limit")
            names = {gateway.name for gateway in self.listed}
            name = next(name for n in range(1, MOST + 1) if (name := f"{site}-{n}") not in names)
            watch = LivenessMonitor(asked["address"])
            self._entries[uid] = Gateway(uid, site, asked["address"], name), watch
            self._owners[uid] = owner
            is_new = True
        elif self._owners[uid] != owner:
            raise WorldAccess("this gateway is another client's, which alone reports for it")
        else:
            is_new = False
        report = asked.get("report")
        if isinstance(report, dict):
            self._reports[uid] = time.monotonic(), report
        return self._entries[uid][0], is_new

    def forget_dead(self) -> bool:
        """Remove the gateways that no longer listen; return whether there were any."""
        dead = [uid for uid, (_, watch) in self._entries.items() if watch.dead]
        for uid in dead:
            self._entries.pop(uid)[1].close()
            self._reports.pop(uid, None)
            del self._owners[uid]
        return bool(dead)
