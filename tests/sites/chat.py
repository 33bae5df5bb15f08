"""A process that sends numbered messages, small and large, and checks those that its peer sends.

    python -m tests.sites.chat NAME PEER SECONDS      with SFM_WORLD, SFM_DIRECTORY and SFM_KEY

With "inf" it talks until its standard input ends.
Prints the route when it begins, then "way ADDRESS" whenever messages take another one: that of a
gateway, or "direct"; and a report at the end, as JSON.
"""

from __future__ import annotations

import json
import os
import sys
import threading
import time
from typing import Any

import numpy as np

import sfm_kernel
from sfm_kernel import Endpoint
from sfm_kernel._native import Exchange
from sfm_kernel.transport.zmq import ZmqTransport

SMALL, LARGE = 200, 1_500_000


def receive(sfm: Endpoint, peer: str, report: dict[str, Any]) -> None:
    """Receive until the peer has sent its last message: each must be the next one, and whole."""
    last = time.monotonic()
    try:
        while "end" not in (message := sfm.recv(50, src=peer)):
            now = time.monotonic()
            report["longest"], last = max(report["longest"], now - last), now
            assert message.n == report["got"], f"number {message.n}, not {report['got']}"
            assert (message.data == message.n % 251).all(), f"number {message.n} is damaged"
            report["got"] += 1
        report["end"] = message.end
    except Exception as error:  # noqa: BLE001 - reported to the test
        report["failed"].append(repr(error))


def way(exchange: Exchange, uid: str) -> str | None:
    """The present route of messages to it; None while a connection is being made."""
    rows = (row for row in exchange.connections() if uid in row["peers"])
    return next((row["address"] if row["gateway"] else "direct" for row in rows), None)


def main(name: str, peer: str, seconds: str) -> None:
    """Talk with the peer."""
    over = threading.Event()
    if seconds == "inf":
        threading.Thread(target=lambda: (sys.stdin.read(), over.set()), daemon=True).start()
    report: dict[str, Any] = {"got": 0, "longest": 0.0, "failed": []}
    with sfm_kernel.join(os.environ["SFM_WORLD"], name) as sfm:
        sfm.wait_for(peer, timeout=50)
        time.sleep(0.5)  # gateways answer meanwhile
        print(sfm.route_kind(peer), flush=True)
        (exchange,) = (far.exchange for far in sfm._transports if isinstance(far, ZmqTransport))
        (uid,) = (member.uid for member in sfm.members() if member.name == peer)
        ear = threading.Thread(target=receive, args=(sfm, peer, report))
        ear.start()
        end, n, last = time.monotonic() + float(seconds), 0, None
        try:
            while time.monotonic() < end and not over.wait(0.01):
                length = LARGE if n % 40 == 7 else SMALL
                sfm.send(dest=peer, n=n, data=np.full(length, n % 251, np.uint8))
                n += 1
                if (now := way(exchange, uid)) not in (None, last):
                    last = now
                    print("way", now, flush=True)
            sfm.send(dest=peer, end=n)
        except Exception as error:  # noqa: BLE001
            report["failed"].append(repr(error))
        ear.join()
    print(json.dumps(report | {"sent": n}))


if __name__ == "__main__":
    main(*sys.argv[1:])
