"""``python -m sfm_kernel.classroom``: one page with the worlds that students share.

Students type the printed line into their notebooks; the page shows no other notebooks.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import secrets
import signal
import socket
import sys
from urllib.parse import urlsplit

from tornado.netutil import bind_sockets

from sfm_kernel.classroom.shared_worlds import SharedWorlds
from sfm_kernel.classroom.web import Server, application, certificate
from sfm_kernel.classroom.web import server as make_server
from sfm_kernel.transport.address import LOOPBACK_HOSTS, own_ip


def main(arguments: list[str] | None = None) -> int:
    """Serve until Ctrl-C; returns the exit status."""
    options = _options(arguments)
    try:
        context = certificate(options.cert, options.key) if options.cert else None
    except OSError as problem:
        print(f"{options.cert} is no usable certificate: {problem}", file=sys.stderr)
        return 1
    base = "/" + options.base.strip("/") + "/" if options.base.strip("/") else "/"
    try:
        sockets = bind_sockets(options.port, options.host)
    except OSError as problem:
        print(
            f"cannot listen on {options.host}, port {options.port}: {problem.strerror}. "
            "Choose another port with --port; 0 takes any free one",
            file=sys.stderr,
        )
        return 1
    port = sockets[0].getsockname()[1]
    local = options.host in LOOPBACK_HOSTS
    host = own_ip() if options.host in ("0.0.0.0", "::", "") else options.host
    url = f"{'https' if context else 'http'}://{host}:{port}{base}"
    worlds, key = SharedWorlds(), secrets.token_urlsafe(24)
    server = make_server(application(worlds, key, base, "" if local else url), context)
    public = url
    if "JUPYTERHUB_SERVICE_PREFIX" in os.environ:  # browsers reach it through the hub's proxy
        public = os.environ.get("JUPYTERHUB_PUBLIC_URL") or f"https://YOUR.HUB{base}"
    print(f"Your page; keep this address to yourself:\n    {public}#teach-{key}")
    print(f"Students type into a notebook with engines:\n    %sfm share {public}#{worlds.join}")
    if not local and context is None and public == url:
        print(
            "This is plain HTTP: others on the network can read what students share, and your key. "
            "--cert FILE (and --key FILE) make it HTTPS; so does a hub."
        )
    asyncio.run(_serve(server, sockets))
    return 0


async def _serve(server: Server, sockets: list[socket.socket]) -> None:
    over = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, over.set)
    server.add_sockets(sockets)
    print("Ctrl-C ends the class.", flush=True)
    await over.wait()
    server.stop()
    await server.close_all_connections()


def _options(arguments: list[str] | None) -> argparse.Namespace:
    service = urlsplit(os.environ.get("JUPYTERHUB_SERVICE_URL", ""))
    parser = argparse.ArgumentParser(
        prog="python -m sfm_kernel.classroom",
        description="One page with the worlds that students share: who is stuck, since when, why.",
    )
    add = parser.add_argument
    address = "the address to listen on (default: %(default)s; 0.0.0.0 is all of this machine's)"
    add("--host", default=service.hostname or "127.0.0.1", help=address)
    add("--port", type=int, default=service.port or 8799, help="default: %(default)s")
    add("--cert", help="a certificate (PEM), which makes it HTTPS")
    add("--key", help="the certificate's key, if it is not in the same file")
    add("--base", default=os.environ.get("JUPYTERHUB_SERVICE_PREFIX", "/"),
        help="the path of the page, as a service of a hub (default: %(default)s)")  # fmt: skip
    return parser.parse_args(arguments)


if __name__ == "__main__":
    sys.exit(main())
