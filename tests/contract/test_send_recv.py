"""Messages arrive as they were sent: attributes, values, order, matching."""

from __future__ import annotations

import copy
import enum
import math
import pickle
import time
from typing import Any

import numpy as np
import pytest

import sfm_kernel
from sfm_kernel.errors import EncodeError
from tests.contract.conftest import Background, Join, Pair, results
from tests.waiting import wait_until

THROUGH_GATEWAYS = True


def test_example_1_of_the_paper(pair: Pair, capsys: pytest.CaptureFixture[str]) -> None:
    a, b = pair
    a.send(dest="B", mytag=42, input=list(range(10)))
    m = b.recv(mytag=42)
    print(m)
    assert capsys.readouterr().out == (
        "Message: {'dest': 'B', 'src': 'A', 'mytag': 42, 'input': [0, 1, 2, 3, 4, 5, 6, 7, 8, 9]}\n"
    )
    assert (m.src, m.input, m.mytag) == ("A", list(range(10)), 42)


def test_a_message_is_read_in_every_way(pair: Pair) -> None:
    a, b = pair
    a.send(dest="B", tag=1, keys="mine", data=[1])
    m = b.recv()
    assert m.tag == m["tag"] == 1
    assert m["keys"] == "mine"
    assert "tag" in m and "nothing" not in m and 5 not in m
    assert dict(m) == {"dest": "B", "src": "A", "tag": 1, "keys": "mine", "data": [1]}
    assert list(m) == ["dest", "src", "tag", "keys", "data"] and len(m) == 5
    assert m.data is m.data, "decoded once: what the reader changes stays changed"
    with pytest.raises(AttributeError, match="it has: dest, src, tag, keys, data"):
        m.other  # noqa: B018
    with pytest.raises(KeyError):
        m["other"]
    assert "<th" in m._repr_html_()


def test_html_of_a_message_is_text(pair: Pair) -> None:
    a, b = pair
    a.send(dest="B", **{"<b>": "<script>alert(1)</script>"})
    html = b.recv()._repr_html_()
    assert "<script>" not in html and "<b>" not in html


def test_a_message_can_be_sent_on(pair: Pair) -> None:
    a, b = pair
    a.send(dest="B", data=np.arange(3))
    m = b.recv()
    m.data[0] = 9
    b.send(dest="A", inner=m)
    assert list(a.recv().inner.data) == [9, 1, 2]
    assert dict(pickle.loads(pickle.dumps(m)))["src"] == "A"
    assert dict(copy.copy(m))["dest"] == "B"


class Colour(enum.IntEnum):
    RED = 1


VALUES: list[Any] = [
    None, True, False, 0, -1, 2**63 - 1, -(2**63), 2**63, -(2**200), 0.5, -0.0, math.inf,
    "", "ünïcødé", "lone \ud800", "x" * 5000, b"", b"\x00\xff", b"y" * 100_000, bytearray(b"z"), (),
    (1, (2,)), [], {}, {"a": [1, {2}]}, {3}, 1 + 2j, Colour.RED, range(5), time.gmtime(0),
]  # fmt: skip


@pytest.mark.parametrize("value", VALUES, ids=lambda v: f"{type(v).__name__}-{str(v)[:12]!a}")
def test_values_keep_value_and_type(pair: Pair, value: Any) -> None:
    a, b = pair
    a.send(dest="B", value=value)
    got = b.recv(5).value
    assert got == value and type(got) is type(value)
    assert math.copysign(1, got) == math.copysign(1, value) if isinstance(value, float) else True


@pytest.mark.parametrize(
    "array",
    [
        np.arange(7),
        np.zeros((0, 3)),
        np.arange(12.0).reshape(3, 4).T,
        np.arange(20)[::3],
        np.array(["a", "bc"]),
        np.array([1, "x", None], dtype=object),
        np.array([(1, 2.5)], dtype=[("n", "i4"), ("x", "f8")]),
        np.random.default_rng(0).random(300_000),
        np.broadcast_to(np.int8(3), (1000,)),
    ],
    ids=lambda a: f"{a.dtype}{a.shape}".replace(" ", ""),
)
def test_arrays_arrive_private_and_writable(pair: Pair, array: np.ndarray) -> None:
    a, b = pair
    a.send(dest="B", array=array)
    got = b.recv(5).array
    assert np.array_equal(got, array) and got.dtype == array.dtype and got.shape == array.shape
    assert got.flags.writeable
    before = array.copy()
    if got.size:
        got.flat[0] = got.flat[-1]
    assert np.array_equal(array, before), "the sender's array is its own"


def test_arguments_may_be_changed_at_once(pair: Pair) -> None:
    a, b = pair
    data, array = [1, 2], np.zeros(100_000)
    a.send(dest="B", data=data, array=array)
    data.append(3)
    array[:] = 7
    m = b.recv()
    assert m.data == [1, 2] and not m.array.any()


def test_calls_are_told_apart_by_their_names(pair: Pair) -> None:
    """Whether the program's source has the names, as in most calls, or makes them at each call."""
    a, b = pair
    names = [f"n{nth}" for nth in range(100)] + ["", "ä", "self", "timeout", "x" * 1000]
    for nth, name in enumerate(names * 3):
        fresh = "".join(name)  # an object of its own, perhaps where an earlier name was
        others = names[nth % 7 : nth % 7 + nth % 4]
        attributes = {fresh: nth} | dict.fromkeys(others, nth)
        if nth % 2:
            a.send(dest="B", **attributes)
        else:
            a.send(**attributes, dest="B")
        assert dict(b.recv(5, **{fresh: nth})) == {"dest": "B", "src": "A"} | attributes
    with pytest.raises(EncodeError, match="its name is not valid text"):
        a.send(dest="B", **{"\ud800": 1})


def test_an_array_outlives_its_message(pair: Pair) -> None:
    a, b = pair
    for nth in range(50):
        a.send(dest="B", array=np.full(10_000, nth))
    arrays = [b.recv().array for _ in range(50)]
    assert [int(array[0]) for array in arrays] == list(range(50))
    assert all((array == array[0]).all() for array in arrays)


@pytest.mark.parametrize("size", [1, 127, 4096, 65_535, 262_144, 262_145, 1_000_003, 9_999_999])
def test_any_size_arrives(pair: Pair, size: int) -> None:
    a, b = pair
    data = np.random.default_rng(size).bytes(size)
    sending = Background(lambda: a.send(dest="B", data=data))
    assert b.recv(30).data == data
    sending.result()


def test_sending_does_not_need_a_receiver(pair: Pair) -> None:
    a, b = pair
    big = np.arange(500_000)
    for nth in range(5):
        a.send(dest="B", nth=nth, big=big)
        b.send(dest="A", nth=nth, big=big)
    for nth in range(5):
        assert a.recv(20).nth == b.recv(20).nth == nth


def test_empty_message_for_synchronisation(pair: Pair) -> None:
    a, b = pair
    a.send(dest="B")
    assert dict(b.recv(5)) == {"dest": "B", "src": "A"}


def test_messages_to_oneself(pair: Pair) -> None:
    a, _ = pair
    a.send(dest="A", n=1)
    a.send(dest=0, n=2)
    assert [a.recv(5).n, a.recv(5, src="A").n] == [1, 2]


def test_order_between_two_processes_whatever_the_size(pair: Pair) -> None:
    a, b = pair
    sizes = np.random.default_rng(1).choice([0, 10, 3000, 70_000, 400_000], size=200)
    for nth, size in enumerate(sizes):
        a.send(dest="B", nth=nth, data=bytes(int(size)))
    assert [b.recv(10).nth for _ in sizes] == list(range(200))


def test_first_match_in_order_of_arrival(pair: Pair) -> None:
    a, b = pair
    for nth in range(100):
        a.send(dest="B", nth=nth, tag=nth % 3, kind="odd" if nth % 2 else "even")
    assert b.recv(5, tag=2).nth == 2
    assert b.recv(5, tag=2, kind="odd").nth == 5
    assert b.recv(5, kind="odd").nth == 1
    assert b.recv(5).nth == 0
    assert b.recv(5, nth=99).nth == 99
    assert b.recv(5, tag=lambda t: t in (1, 2), kind="odd").nth == 7
    assert not b.peek(nth=99)


def test_a_missing_attribute_never_matches(pair: Pair) -> None:
    a, b = pair
    a.send(dest="B", tag=None)
    wait_until(b.peek)
    assert not b.peek(other=None)
    assert not b.peek(other=lambda value: True)
    assert b.peek(tag=None)


def test_equality_is_pythons(pair: Pair) -> None:
    a, b = pair
    a.send(dest="B", n=1, x=2.0, flag=True, text="a", raw=b"a", t=(1, 2), big=2**70)
    wait_until(b.peek)
    for template in [
        {"n": 1.0}, {"n": True}, {"n": np.int64(1)}, {"x": 2}, {"flag": 1}, {"t": (1, 2)},
        {"t": (1.0, 2)}, {"big": 2**70}, {"big": 2.0**70}, {"text": "a"},
        {"raw": b"a"}, {"raw": bytearray(b"a")},
    ]:  # fmt: skip
        assert b.peek(**template), template
    for template in [
        {"n": 2}, {"n": "1"}, {"n": math.nan}, {"text": b"a"}, {"raw": "a"}, {"t": [1, 2]},
        {"big": 2**70 + 1}, {"flag": None}, {"x": 2.5},
    ]:  # fmt: skip
        assert not b.peek(**template), template


def test_an_array_in_a_template_is_a_match_error(pair: Pair) -> None:
    a, b = pair
    a.send(dest="B", tag=1, data=np.arange(3))
    with pytest.raises(sfm_kernel.MatchError, match="'data'") as caught:
        b.recv(5, data=np.arange(3))
    assert caught.value.attribute == "data"
    with pytest.raises(sfm_kernel.MatchError):
        b.recv_nb(data=3)
    assert b.recv(5, data=lambda d: (d == np.arange(3)).all()).tag == 1


def test_an_error_of_a_predicate_reaches_the_caller(pair: Pair) -> None:
    a, b = pair
    a.send(dest="B", tag="text")
    for receive in (b.recv, b.recv_nb, b.peek):
        with pytest.raises(ZeroDivisionError):
            receive(tag=lambda tag: 1 / 0)
    assert b.recv(5).tag == "text"


def test_a_predicate_may_use_the_endpoint(pair: Pair) -> None:
    a, b = pair
    a.send(dest="B", n=1)
    a.send(dest="B", n=2)
    assert b.recv(5, n=lambda n: n == 2 and b.peek(n=1)).n == 2


def test_names_and_ranks_address_and_match(pair: Pair) -> None:
    a, b = pair
    assert (a.rank, b.rank, a.size) == (0, 1, 2)
    a.send(dest=1, n=1)
    a.send(dest="B", n=2)
    a.send(dest=np.int64(1), n=3)
    assert b.recv(5, src=0).n == 1
    m = b.recv(5, src="A")
    assert (m.n, m.src, m.dest) == (2, "A", "B")
    assert b.recv(5, src=lambda src: src == "A").n == 3


def test_without_a_name_the_rank_is_the_name(join: Join) -> None:
    first, second = join(), join()
    assert (first.name, second.name) == (0, 1)
    second.send(dest=0)
    assert first.recv(5, src=1).src == 1


def test_recv_nb_and_timeout(pair: Pair) -> None:
    a, b = pair
    a.send(dest="B", tag=1)
    assert b.recv(5, tag=1)
    with pytest.raises(sfm_kernel.WouldBlock):
        b.recv_nb()
    with pytest.raises(sfm_kernel.RecvTimeout, match=r"recv\(tag=7\)"):
        b.recv(0.05, tag=7)
    with pytest.raises(TimeoutError):
        b.recv(0)
    a.send(dest="B", timeout=3)
    assert b.recv(5, timeout=3).timeout == 3
    for nonsense in ("soon", -1, math.nan, [1]):
        with pytest.raises(ValueError, match="number of seconds"):
            b.recv(nonsense)


def test_a_blocked_recv_wakes_for_its_message_only(pair: Pair) -> None:
    a, b = pair
    waiting = [Background(lambda tag=tag: b.recv(20, tag=tag)) for tag in range(4)]
    for tag in (9, 3, 1, 0, 2):
        a.send(dest="B", tag=tag)
    assert [message.tag for message in results(waiting)] == [0, 1, 2, 3]
    assert b.recv(5).tag == 9


def test_threads_share_an_endpoint(pair: Pair) -> None:
    a, b = pair
    senders = [
        Background(lambda k=k: [a.send(dest="B", k=k, n=n, pad=bytes(n * 7)) for n in range(200)])
        for k in range(4)
    ]
    receivers = [Background(lambda k=k: [b.recv(20, k=k).n for _ in range(200)]) for k in range(4)]
    results(senders)
    assert results(receivers) == [list(range(200))] * 4
