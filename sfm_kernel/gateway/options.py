"""The command line of a gateway, and its environment variables."""

from __future__ import annotations

import argparse
import os
import re
from collections.abc import Mapping

from sfm_kernel._native import MOST_CONNECTIONS, SCHEDULERS
from sfm_kernel.directory.gateways import GatewayKey
from sfm_kernel.errors import WorldError
from sfm_kernel.transport.address import environment_key

_BITS = {"": 1, "k": 10**3, "M": 10**6, "G": 10**9}
_SECONDS = {"us": 1e-6, "ms": 1e-3, "s": 1.0}


def bytes_per_second(text: str) -> int:
    """Parse bits per second, such as "100M"; raises ArgumentTypeError."""
    found = re.fullmatch(r"(\d+(?:\.\d+)?)([kMG]?)(?:bit/s)?", text)
    rate = int(float(found[1]) * _BITS[found[2]]) // 8 if found else 0
    if rate == 0:
        raise argparse.ArgumentTypeError(f"{text!r}: bits per second are needed, as in 100M")
    return rate


def seconds(text: str) -> float:
    """Parse a time, such as "20ms"; raises ArgumentTypeError."""
    found = re.fullmatch(r"(\d+(?:\.\d+)?)(us|ms|s)", text)
    if not found:
        raise argparse.ArgumentTypeError(f"{text!r}: a time is needed, as in 20ms")
    return float(found[1]) * _SECONDS[found[2]]


def weight(text: str) -> tuple[str, float]:
    """Parse a sender's weight, such as "NAME=3"; raises ArgumentTypeError."""
    name, _, value = text.rpartition("=")
    try:
        number = float(value)
    except ValueError:
        number = 0.0
    if not name or not 0.01 <= number <= 100:
        raise argparse.ArgumentTypeError(f"{text!r}: NAME=WEIGHT is needed, from 0.01 to 100")
    return name, number


def connections(text: str) -> int:
    """Parse a number of connections; raises ArgumentTypeError."""
    if not text.isdecimal() or not 1 <= int(text) <= MOST_CONNECTIONS:
        raise argparse.ArgumentTypeError(
            f"{text!r}: a number from 1 to {MOST_CONNECTIONS} is needed"
        )
    return int(text)


def parser() -> argparse.ArgumentParser:
    """The parser of ``python -m sfm_kernel.gateway``."""
    made = argparse.ArgumentParser(
        prog="python -m sfm_kernel.gateway",
        description="A gateway of a site, until SIGINT or SIGTERM. SFM_DIRECTORY and "
        "SFM_GATEWAY_KEY, as `python -m sfm_kernel.directory` prints them, are taken from the "
        "environment.",
    )
    add = made.add_argument
    add("--world", default=os.environ.get("SFM_WORLD"), help="the world's name (SFM_WORLD)")
    add("--site", required=True, help="the site whose processes use this gateway")
    add("--bind", help="IP:port to listen on (default: a port of this machine's own address)")
    add(
        "--algorithm",
        help="TCP's congestion control to other sites (default: bbr if the kernel has it)",
    )
    add(
        "--connections",
        type=connections,
        metavar="N",
        help="connections to each other gateway (default: 1; 4 without bbr)",
    )
    add("--mptcp", action="store_true", help="use MPTCP if the kernel has it")
    add("--rate", type=bytes_per_second, help="the most to each other gateway: 100M, in bits/s")
    add("--scheduler", choices=SCHEDULERS, default="round-robin",
        help="the order in which senders' frames are forwarded")  # fmt: skip
    add("--weight", type=weight, action="append", default=[], metavar="NAME=3",
        help="a sender's share of the turns; may be given several times")  # fmt: skip
    add("--delay", type=seconds, default=0.0, help="emulate a delay to other sites: 20ms one way")
    add("--limit", type=bytes_per_second, help="emulate a limited rate to other sites: 200M")
    return made


def from_environment(environment: Mapping[str, str]) -> tuple[str, GatewayKey]:
    """The directory server's address, and the key. Raises WorldError, WorldAccess."""
    url = environment.get("SFM_DIRECTORY")
    if not url:
        raise WorldError(
            "a gateway needs the directory server's address: set SFM_DIRECTORY as "
            "`python -m sfm_kernel.directory` prints it. (Within one machine there are no sites; a "
            "cluster's gateway is started by python -m sfm_kernel.jupyter.gateway.)"
        )
    if text := environment.get("SFM_GATEWAY_KEY"):
        return url, GatewayKey.from_text(text)
    key = environment_key(environment)
    if not key:
        raise WorldError(
            "the directory server admits no gateway without a key: set SFM_GATEWAY_KEY"
        )
    return url, GatewayKey.of_world(key)
