"""The directory server answers any request of a client that has the key, and goes on."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
import zmq
from hypothesis import given
from hypothesis import strategies as st

from sfm_kernel.directory import DirectoryServer, RemoteDirectory
from tests.dealers import connect_member, frames

KEY = bytes(range(32))
WORLD = "requests"

pytestmark = pytest.mark.zmq

NUMBERS = st.one_of(st.integers(), st.floats(), st.booleans(), st.none())
WORDS = st.one_of(st.text(max_size=20), st.just("0" * 32), st.just("tcp://127.0.0.1:1"))
ANYTHING = st.recursive(
    NUMBERS | WORDS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner),
    max_leaves=6,
)
FIELDS = st.sampled_from(
    ["wish", "uid", "uids", "version", "relay", "snapshot", "clock", "request", "watched"]
) | st.sampled_from(["hold", "bye", "known", "fresh", "order", "dead"])
WISH = st.dictionaries(
    st.sampled_from(("uid", "pid", "host", "segment", "address", "name", "rank", "guest", "info")),
    ANYTHING,
)
REQUESTS = st.builds(
    lambda ask, more, wish: {"number": 1, "ask": ask, **more, **({"wish": wish} if wish else {})},
    st.sampled_from(["hello", "join", "leave", "state", "relay", "snapshots", "order", "answer"])
    | ANYTHING,
    st.dictionaries(FIELDS, ANYTHING),
    WISH,
)


@pytest.fixture(scope="module")
def asked() -> Iterator[tuple[zmq.Socket[bytes], DirectoryServer]]:
    with (
        DirectoryServer(WORLD, KEY, "tcp://127.0.0.1:0") as server,
        zmq.Context() as context,
        context.socket(zmq.DEALER) as dealer,
    ):
        dealer.linger = 0
        connect_member(dealer, server.url, KEY)
        yield dealer, server


@given(REQUESTS | ANYTHING, st.binary(max_size=50))
def test_every_request_is_answered(
    asked: tuple[zmq.Socket[bytes], DirectoryServer], request_: Any, body: bytes
) -> None:
    dealer, _ = asked
    dealer.send_multipart(frames(json.dumps(request_).encode(), body))
    dealer.send(b'{"number": "last", "ask": "hello"}')
    while json.loads(dealer.recv_multipart()[0]).get("number") != "last":
        pass  # a relay or an observer may be answered later


@given(st.lists(st.binary(max_size=300), min_size=1, max_size=4))
def test_noise_with_a_key_is_answered(
    asked: tuple[zmq.Socket[bytes], DirectoryServer], noise: list[bytes]
) -> None:
    dealer, server = asked
    dealer.send_multipart(noise)
    dealer.send(b'{"number": "last", "ask": "hello"}')
    while json.loads(dealer.recv_multipart()[0]).get("number") != "last":
        pass
    assert server._thread.is_alive()


def test_it_still_knows_who_is_there(asked: tuple[zmq.Socket[bytes], DirectoryServer]) -> None:
    with RemoteDirectory(WORLD, asked[1].url, KEY) as client:
        client.members()
