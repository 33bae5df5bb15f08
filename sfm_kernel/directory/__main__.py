"""``python -m sfm_kernel.directory --world NAME`` serves the directory of a world until killed.

Prints what other machines need, as shell variables: the server's address and the world's key; and
the key for gateways, which need not be trusted with the world's key.
"""

from __future__ import annotations

import argparse
import os
import secrets
import sys

from sfm_kernel.directory.gateways import GatewayKey
from sfm_kernel.directory.server import DirectoryServer
from sfm_kernel.directory.signals import ending
from sfm_kernel.errors import SFMError


def main(arguments: list[str] | None = None) -> int:
    """Serve until SIGINT or SIGTERM; return the exit status."""
    parser = argparse.ArgumentParser(prog="python -m sfm_kernel.directory", description=__doc__)
    parser.add_argument("--world", required=True, help="the world's name")
    parser.add_argument(
        "--bind", help="address to listen on (default: a port of this machine's address)"
    )
    options = parser.parse_args(arguments)
    # The key may come from the environment, but not from the command line, which others can read.
    try:
        key = bytes.fromhex(os.environ.get("SFM_KEY", "")) or secrets.token_bytes(32)
        server = DirectoryServer(options.world, key, options.bind)
    except (SFMError, ValueError) as error:
        print(error, file=sys.stderr)
        return 1
    end = ending()
    with server:
        print(f"export SFM_WORLD={server.world}")
        print(f"export SFM_DIRECTORY={server.url}")
        print(f"export SFM_KEY={key.hex()}")
        print(f"export SFM_GATEWAY_KEY={GatewayKey.of_world(key)}", flush=True)
        end.wait()
    return 0


if __name__ == "__main__":
    sys.exit(main())
