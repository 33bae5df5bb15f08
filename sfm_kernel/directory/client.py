"""The client of a DirectoryServer: requests with their answers, and the updates it publishes."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any, Self

from sfm_kernel._native import ANSWER_SECONDS, ServerClient
from sfm_kernel.directory.gateways import GatewayKey
from sfm_kernel.transport.keys import KeyPair, libraries


class Client:
    """Asks the directory server of a world, and receives its updates. Thread-safe.

    It is the native core's (``native/endpoint/src/directory/client.rs``), with Python's JSON.

    Args:
        url: the server's address, with its public key: see ``DirectoryServer.url``.
        key: the world's key; or a gateway's, which may ask for less.
        patience: seconds to wait for the first answer.
    Attributes:
        native: the core's client.
        world: as given; the server has proven that it is the one with this address.
        key: that which is used, see ``stretched``.
        pair: this client's own, by which the server knows it.
    Raises:
        WorldGone: the server does not answer, or keeps another world.
        WorldAccess: the key is not the server's.
        WorldError: the url is invalid.
    """

    def __init__(
        self, world: str, url: str, key: bytes | GatewayKey, patience: float = ANSWER_SECONDS
    ) -> None:
        secret, is_gateway = (key.key, True) if isinstance(key, GatewayKey) else (key, False)
        self._wrap(ServerClient(libraries(), world, url, secret, is_gateway, patience))

    @classmethod
    def of(cls, native: ServerClient) -> Self:
        """The client that the core has opened."""
        client = cls.__new__(cls)
        client._wrap(native)
        return client

    def _wrap(self, native: ServerClient) -> None:
        self.native, self.world, self.key = native, native.world, native.key
        self.pair = KeyPair(*native.pair)

    @property
    def zmq_context(self) -> int:
        """See ``transport.base.DirectoryClient``."""
        return self.native.context

    def close(self) -> None:
        """Release the connection. Idempotent; does nothing in a forked child."""
        self.native.close()

    def ask(self, kind: str, limit: float = ANSWER_SECONDS, **details: Any) -> dict[str, Any]:
        """The answer to one request.

        Raises:
            WorldGone: there is none within ``limit`` seconds. A later answer, such as after an
                interrupt, is skipped.
            EndpointClosed: this client was closed, or belongs to the parent process.
            Other errors: the server refuses the request.
        """
        return self.exchange(kind, b"", limit, **details)[0]

    def exchange(
        self, kind: str, body: bytes = b"", limit: float = ANSWER_SECONDS, **details: Any
    ) -> tuple[dict[str, Any], list[bytes]]:
        """The answer to a request with a body, and the bodies of the answer; see ``ask``."""
        text, bodies = self.native.ask(kind, json.dumps(details), body, limit)
        return json.loads(text), bodies

    def subscribe(self, on_update: Callable[[dict[str, Any] | None], None]) -> None:
        """Call ``on_update``, in a thread, with each state that the server publishes from now on.

        And with None when the server falls silent: then the last state may be out of date.
        """
        self.native.subscribe(lambda state: on_update(None if state is None else json.loads(state)))
