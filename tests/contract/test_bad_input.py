"""Bad input gets a clear error, and nothing is lost or half-sent."""

from __future__ import annotations

import threading
from typing import Any

import pytest

import sfm_kernel
from tests.contract.conftest import Background, Join, Pair


class Unpicklable:
    def __reduce__(self) -> str:
        raise RuntimeError("no way")


@pytest.mark.parametrize(
    ("attributes", "error", "says"),
    [
        ({"x": 1}, sfm_kernel.AddressError, "dest="),
        ({"dest": "B", "src": "A"}, sfm_kernel.AddressError, "src is added"),
        ({"dest": "Z"}, sfm_kernel.UnknownName, "'A', 'B'"),
        ({"dest": 7}, sfm_kernel.UnknownName, "7"),
        ({"dest": None}, sfm_kernel.UnknownName, "None"),
        ({"dest": ["B"]}, sfm_kernel.AddressError, "name or a rank"),
        ({"dest": "B", "bad": threading.Lock()}, sfm_kernel.EncodeError, "'bad'"),
        ({"dest": "B", "ok": 1, "worse": Unpicklable()}, sfm_kernel.EncodeError, "'worse'"),
        ({"dest": "B", "deep": [lambda: 0]}, sfm_kernel.EncodeError, "'deep'"),
        ({"dest": "B", "n" * 70_000: 1}, sfm_kernel.EncodeError, "65535"),
    ],
)
def test_nothing_is_sent(pair: Pair, attributes: dict[str, Any], error: type, says: str) -> None:
    a, b = pair
    with pytest.raises(error, match=says):
        a.send(**attributes)
    a.send(dest="B", after=True)
    assert dict(b.recv(5)) == {"dest": "B", "src": "A", "after": True}


def test_an_interrupt_while_pickling_is_no_encode_error(pair: Pair) -> None:
    class Stopped:
        def __reduce__(self) -> str:
            raise KeyboardInterrupt

    a, b = pair
    with pytest.raises(KeyboardInterrupt):
        a.send(dest="B", value=Stopped())
    assert not b.peek()


def test_names(join: Join) -> None:
    join("A")
    with pytest.raises(sfm_kernel.NameInUse, match="'A'"):
        join("A")
    with pytest.raises(sfm_kernel.NameInUse, match="0"):
        join("C", rank=0)
    for name in ("", "3", "-3", "x" * 65, "new\nline", 5):
        with pytest.raises(sfm_kernel.BadName, match="name"):
            join(name)
    for rank in (-1, 1.5, "0"):
        with pytest.raises(sfm_kernel.BadName, match="rank"):
            join("R", rank=rank)
    for world in ("", "../x", "a/b", ".hidden", "x" * 65):
        with pytest.raises(sfm_kernel.WorldError, match="world"):
            join("W", world=world)


def test_buffering_is_a_number_of_bytes(pair: Pair) -> None:
    a, _ = pair
    with pytest.raises(ValueError, match="bytes"):
        a.buffering = -1
    with pytest.raises(TypeError):
        a.buffering = "much"  # type: ignore[assignment]


def test_a_closed_endpoint_says_so(pair: Pair) -> None:
    a, b = pair
    blocked = Background(lambda: b.recv(src="A"))
    waiting = Background(lambda: b.recv(tag=1))
    a.send(dest="B", queued=1)
    b.close()
    for call in (
        blocked.result,
        waiting.result,
        b.recv,
        b.recv_nb,
        b.peek,
        lambda: b.send(dest="A"),
    ):
        try:
            call()
        except sfm_kernel.EndpointClosed:
            continue
        except AssertionError:
            raise
        # `blocked` may have got the message before the endpoint closed.
        assert call == blocked.result
    with pytest.raises(sfm_kernel.EndpointClosed):
        b.regcb(print)
    b.close()
    with pytest.raises(sfm_kernel.PeerLost, match="'B'"):
        a.send(dest="B")


def test_a_world_that_is_gone(kind: str, world: str) -> None:
    with pytest.raises(sfm_kernel.WorldGone, match=world):
        sfm_kernel.join(world, "A", create=False)


def test_callbacks_must_be_callable(pair: Pair) -> None:
    with pytest.raises(TypeError, match="function"):
        pair[0].regcb("print", tag=1)  # type: ignore[arg-type]
