"""``python -m sfm_kernel.directory --world NAME`` serves the directory of a world until killed.

Prints what other machines need, as shell variables: the server's address and the world's key; and
the key for gateways, which need not be trusted with the world's key.

With these variables, ``python -m sfm_kernel.directory expel NAME`` puts a process out of the world,
and ``python -m sfm_kernel.directory rekey`` gives the world another key.
"""

from __future__ import annotations

import argparse
import os
import secrets
import sys
from contextlib import closing

from sfm_kernel.directory.client import Client
from sfm_kernel.directory.gateways import GatewayKey
from sfm_kernel.directory.server import DirectoryServer
from sfm_kernel.directory.signals import ending
from sfm_kernel.errors import SFMError, WorldError
from sfm_kernel.transport.address import environment_key


def main(arguments: list[str] | None = None) -> int:
    """Run the command, the server until SIGINT or SIGTERM; return the exit status."""
    parser = argparse.ArgumentParser(prog="python -m sfm_kernel.directory", description=__doc__)
    parser.add_argument("--world", help="the world's name, for the server")
    parser.add_argument(
        "--bind", help="address to listen on (default: a port of this machine's address)"
    )
    commands = parser.add_subparsers(dest="command", metavar="COMMAND")
    expel = commands.add_parser("expel", help="put a process out; its key is not admitted again")
    expel.add_argument("name", help="its name, or its rank")
    commands.add_parser("rekey", help="ask newcomers for another key from now on, and print it")
    options = parser.parse_args(arguments)
    if options.command is None and not options.world:
        parser.error("the world's name is needed: --world")
    try:
        # A key may come from the environment, but not from the command line, which others can read.
        if options.command == "expel":
            return _expel(options.name)
        return _rekey() if options.command == "rekey" else _serve(options.world, options.bind)
    except (SFMError, ValueError) as error:
        print(error, file=sys.stderr)
        return 1


def _serve(world: str, bind: str | None) -> int:
    key = environment_key(os.environ) or secrets.token_bytes(32)
    server = DirectoryServer(world, key, bind)
    end = ending()
    with server:
        print(f"export SFM_WORLD={server.world}")
        print(f"export SFM_DIRECTORY={server.url}")
        _print_keys(key)
        end.wait()
    return 0


def _print_keys(key: bytes) -> None:
    print(f"export SFM_KEY={key.hex()}")
    print(f"export SFM_GATEWAY_KEY={GatewayKey.of_world(key)}", flush=True)


def _client() -> Client:
    """A client of the server that the environment names."""
    for name in ("SFM_WORLD", "SFM_DIRECTORY", "SFM_KEY"):
        if not os.environ.get(name):
            raise WorldError(f"{name} is not set: copy what the directory server has printed")
    key = environment_key(os.environ)
    return Client(os.environ["SFM_WORLD"], os.environ["SFM_DIRECTORY"], key)


def _expel(name: str) -> int:
    with closing(_client()) as client:
        client.ask("expel", name=name)
        print(f"process {name} was put out of world {client.world!r}")
    return 0


def _rekey() -> int:
    key = secrets.token_bytes(32)
    with closing(_client()) as client:
        client.ask("rekey", key=key.hex())
        _print_keys(key)
    return 0


if __name__ == "__main__":
    sys.exit(main())
