"""How messages get from site to site: which ways are compared, and what each sets."""

from __future__ import annotations

from dataclasses import dataclass, replace


@dataclass(frozen=True)
class Way:
    """One way.

    Attributes:
        algorithm: congestion control between sites.
        tcp: SFM_TCP of the processes, which is about their own connections.
        gateways: of each site; 0: every process has a connection to each that it talks to.
        options: of ``python -m sfm_kernel.gateway``.
    """

    algorithm: str
    tcp: str
    gateways: int = 0
    options: tuple[str, ...] = ()

    @property
    def kind(self) -> str:
        """What ``route_kind`` says of a process at another site, once all is settled."""
        return "gateway" if self.gateways else "tcp"

    def with_options(self, *options: str) -> Way:
        """The same, with gateways that are told this, too."""
        return replace(self, options=(*self.options, *options))

    def with_gateways(self, gateways: int) -> Way:
        """The same with so many in each site, if it has any."""
        return replace(self, gateways=gateways if self.gateways else 0)


def _through(algorithm: str, *options: str) -> Way:
    return Way(algorithm, algorithm, 1, ("--algorithm", algorithm, *options))


WAYS = {
    "direct": Way("cubic", "cubic,still"),
    "direct heartbeat": Way("cubic", "cubic"),
    "direct bbr": Way("bbr", "bbr"),
    "gateway": _through("bbr"),
    "gateway cubic": _through("cubic"),
    "gateway cubic x4": _through("cubic", "--connections", "4"),
}
"""``direct`` is what TCP does where nobody looks after it; ``direct heartbeat`` keeps it awake;
``direct bbr`` and ``gateway`` are what SFM does by itself."""

DIRECT = WAYS["direct"]
