"""The pair of keys by which others recognise a process on the wire."""

from __future__ import annotations

import glob
import importlib.util
import os
from dataclasses import dataclass, field

from sfm_kernel._native import derived_pair, key_pair


@dataclass(frozen=True)
class KeyPair:
    """A pair of keys of CURVE (Curve25519), drawn at random by the process that has it.

    Attributes:
        secret: 32 bytes; they never leave the process.
        public: 32 bytes; others encrypt to them, and recognise by them who has the secret half.
    """

    secret: bytes = field(repr=False)
    public: bytes

    @classmethod
    def fresh(cls) -> KeyPair:
        """A new pair, at random; raises WorldError if this machine has no libzmq that can do it."""
        return cls(*key_pair(libraries()))

    @classmethod
    def of_newcomers(cls, key: bytes, *, gateways: bool = False) -> KeyPair:
        """The pair that all derive who have the world's key, or the gateways'.

        They show it to a directory server when they come. Raises WorldAccess, see ``check_key``.
        """
        return cls(*derived_pair(libraries(), key, gateways))


def libraries() -> list[str]:
    """Paths of pyzmq's modules, which are linked with its libzmq; importing them takes 50 ms."""
    found = importlib.util.find_spec("zmq")
    folders = (found and found.submodule_search_locations) or ()
    return [
        path
        for folder in folders
        for path in glob.glob(os.path.join(glob.escape(folder), "backend", "cython", "_zmq*.so"))
    ]
