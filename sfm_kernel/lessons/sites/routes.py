"""The routes from site to site that are compared, and the settings of each.

Rows, tables and options call a route a way.
"""

from __future__ import annotations

from dataclasses import dataclass, replace


@dataclass(frozen=True)
class Route:
    """One route.

    Attributes:
        algorithm: congestion control between sites.
        tcp: SFM_TCP of the processes, which sets up their direct connections.
        gateways: the number of gateways in each site; 0: processes connect directly.
        options: options of ``python -m sfm_kernel.gateway``.
    """

    algorithm: str
    tcp: str
    gateways: int = 0
    options: tuple[str, ...] = ()

    @property
    def kind(self) -> str:
        """``route_kind`` of a process at another site, after the gateways have met."""
        return "gateway" if self.gateways else "zmq"

    def with_options(self, *options: str) -> Route:
        """The same, with further options for the gateways."""
        return replace(self, options=(*self.options, *options))

    def with_gateways(self, gateways: int) -> Route:
        """The same with another number of gateways in each site, if it has any."""
        return replace(self, gateways=gateways if self.gateways else 0)


def _through(algorithm: str, *options: str) -> Route:
    return Route(algorithm, algorithm, 1, ("--algorithm", algorithm, *options))


ROUTES = {
    "direct": Route("cubic", "cubic,still"),
    "direct heartbeat": Route("cubic", "cubic"),
    "direct bbr": Route("bbr", "bbr"),
    "gateway": _through("bbr"),
    "gateway cubic": _through("cubic"),
    "gateway cubic x4": _through("cubic", "--connections", "4"),
}
"""``direct`` leaves its connections to TCP, and ``direct heartbeat`` keeps them awake;
``direct bbr`` and ``gateway`` are SFM's defaults."""

DIRECT = ROUTES["direct"]
