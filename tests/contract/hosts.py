"""A process that joins worlds as another one asks it to: ``python -m tests.contract.hosts HOST``.

HOST is the language of the endpoint, "python" or "c". Each line of stdin is a request in JSON, and
each line of stdout its outcome: the name of the error, or what the process became.
"""

from __future__ import annotations

import ctypes
import gc
import json
import os
import sys
from collections.abc import Mapping
from typing import Any, Protocol

import sfm_kernel
from sfm_kernel import SFMError
from sfm_kernel.c import LIBSFM

ERRORS = {
    11: "ValueError",
    17: "BadName",
    18: "NameInUse",
    20: "WorldGone",
    21: "WorldAccess",
    22: "WorldError",
}
"""The codes of ``sfm.h`` that these tests meet, as Python's errors."""

ANY_RANK, GUEST = -1, -2


class Host(Protocol):
    """Joins a world, sends a message if asked to, and leaves; returns its name and rank."""

    def __call__(self, asked: Mapping[str, Any]) -> tuple[str, int | None]: ...


def python(asked: Mapping[str, Any]) -> tuple[str, int | None]:
    with sfm_kernel.join(
        asked["world"],
        asked["name"],
        asked["rank"],
        guest=asked["guest"],
        names=tuple(asked["names"]),
    ) as sfm:
        if asked["dest"]:
            sfm.send(dest=asked["dest"])
        return str(sfm.name), sfm.rank


class Refused(Exception):
    """A function of C has returned a code."""


def c(asked: Mapping[str, Any]) -> tuple[str, int | None]:
    sfm = ctypes.CDLL(LIBSFM)
    sfm.sfm_name.restype = ctypes.c_char_p
    sfm.sfm_packet_new.restype = ctypes.c_void_p

    def call(name: str, *arguments: Any) -> None:
        if code := getattr(sfm, name)(*arguments):
            raise Refused(ERRORS.get(code, f"code {code}"))

    def text(given: str | None) -> bytes | None:
        return None if given is None else given.encode("utf-8", "surrogatepass")

    # Names by rank come from a launcher, and with them the world.
    launched = {"SFM_WORLD": asked["world"], "SFM_NAMES": ",".join(asked["names"])}
    rank = GUEST if asked["guest"] else ANY_RANK if asked["rank"] is None else asked["rank"]
    endpoint = ctypes.c_void_p()
    os.environ.update(launched if asked["names"] else {})
    try:
        world = None if asked["names"] else text(asked["world"])
        call("sfm_join", world, text(asked["name"]), rank, ctypes.byref(endpoint))
    finally:
        for variable in launched:
            os.environ.pop(variable, None)
    try:
        if asked["dest"]:
            packet = ctypes.c_void_p(sfm.sfm_packet_new())
            call("sfm_send_to", endpoint, asked["dest"].encode(), packet)
        became = sfm.sfm_rank(endpoint)
        return sfm.sfm_name(endpoint).decode(), None if became < 0 else became
    finally:
        sfm.sfm_leave(endpoint)


HOSTS: dict[str, Host] = {"python": python, "c": c}


def main() -> None:
    """Serve requests until stdin ends."""
    host = HOSTS[sys.argv[1]]
    for line in sys.stdin:
        asked = json.loads(line)
        os.environ.update(asked["environment"])
        try:
            outcome: list[Any] = list(host(asked))
        except Refused as refused:
            outcome = [str(refused)]
        except (SFMError, OSError, ValueError) as error:
            outcome = [type(error).__name__]
        finally:
            for variable in asked["environment"]:
                del os.environ[variable]
        gc.collect()  # a closed endpoint's memory goes with its last reference
        print(json.dumps(outcome), flush=True)


if __name__ == "__main__":
    main()
