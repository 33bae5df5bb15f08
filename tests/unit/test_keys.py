"""The pair of keys of a process."""

from __future__ import annotations

import zmq
from zmq.utils import z85

from sfm_kernel.transport.keys import KeyPair


def test_each_pair_is_another_and_one_of_curve() -> None:
    pairs = [KeyPair.fresh() for _ in range(3)]
    assert len({pair.secret for pair in pairs}) == len({pair.public for pair in pairs}) == 3
    for pair in pairs:
        assert zmq.curve_public(z85.encode(pair.secret)) == z85.encode(pair.public)


def test_what_shows_a_pair_does_not_show_its_secret_half() -> None:
    pair = KeyPair.fresh()
    assert repr(pair.secret) not in repr(pair) and repr(pair.public) in repr(pair)
