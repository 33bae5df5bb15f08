"""Joins a world, and sends back what comes."""

from __future__ import annotations

import argparse

from .peer import Peer


def main() -> None:
    """Send back what comes, until it is told to stop."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("world")
    parser.add_argument("url", help="SFM_DIRECTORY, with the server's key")
    parser.add_argument("key", help="SFM_KEY")
    parser.add_argument("--name", default="echo")
    parser.add_argument("--site", default="")
    options = parser.parse_args()
    peer = Peer(options.world, options.url, bytes.fromhex(options.key), options.name, options.site)
    print(f"{peer.name!r} has joined world {peer.directory.world!r}", flush=True)
    while True:
        message = peer.recv()
        print(message, flush=True)
        src = message.pop("src")
        del message["dest"]
        if message.get("stop"):
            break
        peer.send(src, **message)
    peer.leave()


if __name__ == "__main__":
    main()
