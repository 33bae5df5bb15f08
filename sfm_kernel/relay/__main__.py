"""``python -m sfm_kernel.relay``: shows this machine's processes of a world to other machines.

The world comes from SFM_WORLD, SFM_DIRECTORY and SFM_KEY, as ``python -m sfm_kernel.directory``
prints them. The relay ends when no process of the world lives on this machine any longer, or the
server has ended.
"""

from __future__ import annotations

import argparse
import json
import os
import sys

from sfm_kernel.directory import WorldFolder
from sfm_kernel.directory.client import Client
from sfm_kernel.directory.signals import ending
from sfm_kernel.errors import SFMError
from sfm_kernel.relay import DETACHED
from sfm_kernel.relay.lock import Lock
from sfm_kernel.relay.process import relay
from sfm_kernel.spawn.forked import detach
from sfm_kernel.transport.address import raise_descriptors

FIRST_SECONDS = 60.0
"""Seconds for which a relay that was started by hand waits for the first process."""


def main(arguments: list[str] | None = None) -> int:
    """Serve until there is nothing left to do; return the exit status."""
    parser = argparse.ArgumentParser(prog="python -m sfm_kernel.relay", description=__doc__)
    parser.add_argument(DETACHED, action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    lock = None
    if options.detached:
        about = json.load(sys.stdin)
        lock = Lock(about["folder"], about["lock"])
        _detach()
    else:
        about = _from_environment()
    stop = ending()
    raise_descriptors()
    try:
        client = Client(about["world"], about["url"], bytes.fromhex(about["key"]))
    except (SFMError, ValueError) as error:
        if lock is not None:  # nobody needs to try again
            lock.release()
        print(error, file=sys.stderr)
        return 1
    try:
        patience = 0.0 if options.detached else FIRST_SECONDS
        if not relay(client, about["folder"], stop, patience, lock):
            print("a relay of this world runs on this machine already", file=sys.stderr)
    finally:
        client.close()
    return 0


def _detach() -> None:
    """Continue as a daemon: reparented, in "/", and without the caller's stdin."""
    detach()
    os.chdir("/")
    os.umask(0o077)
    null = os.open(os.devnull, os.O_RDWR)
    os.dup2(null, 0)
    os.close(null)


def _from_environment() -> dict[str, str]:
    try:
        names = {"world": "SFM_WORLD", "url": "SFM_DIRECTORY", "key": "SFM_KEY"}
        about = {field: os.environ[name] for field, name in names.items()}
    except KeyError as error:
        raise SystemExit(
            f"{error.args[0]} is not set: copy what the directory server has printed"
        ) from None
    try:
        with WorldFolder(about["world"], create=True) as folder:
            return about | {"folder": folder.path}
    except SFMError as error:
        raise SystemExit(str(error)) from None


if __name__ == "__main__":
    sys.exit(main())
