"""What a directory server takes from relays, and what it tells observers. No relay runs here."""

from __future__ import annotations

import json
import os
import zlib
from collections.abc import Iterator
from typing import Any

import pytest

import sfm_kernel
from sfm_kernel.directory import Client, DirectoryServer, pictures, relays
from sfm_kernel.directory.pictures import pack, unpack
from sfm_kernel.directory.relays import Relays
from sfm_kernel.errors import WorldError, WorldGone
from sfm_kernel.observe.snapshot import snapshot, states
from tests.unit.states import RELAY, UID, state

pytestmark = pytest.mark.tcp

KEY = bytes(range(32))
OTHER = "2" * 32


# ---- pictures --------------------------------------------------------------------------------


def test_a_picture_of_real_processes_comes_through(world: str) -> None:
    with sfm_kernel.join(world, "A") as a, sfm_kernel.join(world, "B"):
        a.send(dest="B", tag="ü", data=[1, 2])
        read = states(a.folder)
        told = unpack(pack(read))
        here = snapshot(a.folder)
    assert json.loads(json.dumps(read)) == told
    moved = snapshot(os.path.dirname(__file__), [one | {"here": False} for one in told])
    for one in (*moved["processes"], *here["processes"]):
        one.pop("here")
        one.pop("now")  # that of two moments
    assert moved["processes"] == here["processes"]


def test_a_large_picture_loses_what_is_in_the_inboxes_first(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    line = "0\t10\tsrc\x1f'A'\n"
    full = [
        state(uid=f"{n:032x}", summary=line * 50, peers=[("b" * 16, 1, 2, 3, 4)]) for n in range(8)
    ]
    size = len(zlib.decompress(pack(full)))
    lines: list[int] = []
    peers: list[Any] = []
    count: list[int] = []
    for limit in (size, size // 2, size // 4, size // 8, size // 16, 10):
        monkeypatch.setattr(pictures, "MOST_BYTES", limit)
        told = unpack(pack(full))
        lines.append((told[0]["summary"] or "").count("\t") // 2 if told else -1)
        peers.append(told[0]["peers"] if told else None)
        count.append(len(told))
    assert lines[0] == 50 and lines[-2] == 0 and lines[:-1] == sorted(lines[:-1])[::-1]
    assert peers[0] == [["b" * 16, 1, 2, 3, 4]] and ["", 0, 0, 0, 0] in peers[-2]
    assert count[0] == 8 and 0 < count[-2] < 8 and count[-1] == 0


def wrong() -> Iterator[Any]:
    for field in state():
        yield pytest.param([{**state(), field: [[]]}], id=f"wrong {field}")
        yield pytest.param([{key: value for key, value in state().items() if key != field}],
                           id=f"no {field}")  # fmt: skip
    for field, values in {
        "uid": ["", "../../x", UID.upper()],
        "state": ["gone", "dead"],
        "since": [-1, float("nan"), float("inf"), True],
        "examined": [-1, 1 << 64, True],
        "peers": [[[]], [["x", 0, 0, 0, 0]], [["", 0, 0, 0, -1]], {}],
        "main": [[], ["computes", 3], ["dances", 3, ""], ["lock", -1, ""], ["lock", 1, "x"]],
        "polls": [[], [1, 0.5, 0.1, 3, "", 7], [1, -1, 0.1, 3, "", "{}"], [1, 1, 0, 3, "x", "{}"]],
        "code": ["x", "1\tid\tx\tf\tfile", "\t\t\t\t"],
        "summary": ["no tab\n0\t1"],
        "info": ['{"kind": "king"}', '{"name": null}', '{"pid": "7"}'],
        "facts": ['{"kind": "send"}', '{"kind": "recv"}', '{"kind": 7, "peers": [], "all": true}'],
    }.items():
        for value in values:
            yield pytest.param([state(**{field: value})], id=f"{field} {value!r}")
    yield from ({}, [7], [{}], None, "x", [state(more=1)])
    for field in ("waits", "facts", "others", "info", "summary", "code"):
        yield pytest.param([state(**{field: "[" * 100_000})], id=f"a long {field}")


@pytest.mark.parametrize("content", list(wrong()))
def test_what_is_no_picture(content: Any) -> None:
    with pytest.raises(ValueError, match=r"."):
        unpack(zlib.compress(json.dumps(content).encode()))


def test_what_is_no_compressed_text() -> None:
    good = pack([state()])
    assert unpack(good) == [state()]
    bomb = zlib.compress(bytes(2 * pictures.MOST_BYTES))
    deep = zlib.compress(b"[" * 100_000)
    for bad in (b"", b"x", good[:-1], bomb, deep, zlib.compress(b"[NaN]"), bytes(2 << 20)):
        with pytest.raises(ValueError, match=r"."):
            unpack(bad)


# ---- the server ------------------------------------------------------------------------------


class Clock:
    now = 100.0

    def __call__(self) -> float:
        return self.now


class Played:
    """``Relays`` with a relay and an observer, and a clock that others move."""

    def __init__(self) -> None:
        self.clock = Clock()
        self.relays = Relays(self.clock)
        self.told: list[dict[str, Any]] = []

    def hear(self, body: bytes = b"", relay: str = RELAY, **changes: Any) -> None:
        """The relay asks; its answer, now or later, comes to ``told``."""
        asked = {"relay": relay, "picture": 0, "seen": -1, "clock": None, "hold": 1}
        asked |= {"watched": False, "done": []}
        self.relays.hear(asked | changes, body, self.told.append)

    def show(self, wish: bool = False, **known: int) -> tuple[list[list[Any]], list[bytes], int]:
        """The observer asks."""
        answer, bodies = self.relays.show({"known": known, "wish": wish}, frozenset())
        return answer["relays"], bodies, answer["wish"]


@pytest.fixture
def played() -> Played:
    return Played()


def test_an_answer_is_held_until_there_is_news(played: Played) -> None:
    played.hear()
    assert not played.told and played.relays.next() == 1.0 and not played.relays.release()
    played.clock.now += 1
    assert played.relays.release() and played.relays.next() is None
    assert played.told.pop() == {"watched": False, "wish": 0, "picture": 0, "orders": []}
    played.hear()
    played.show()
    assert played.told.pop()["watched"]
    played.hear(watched=True, seen=0, hold=0.1)
    played.show()
    assert not played.told  # it knows that it is watched
    played.show(wish=True)
    assert played.told.pop()["wish"] == 1
    played.clock.now += relays.WATCHED_SECONDS
    played.hear(watched=True, seen=1, hold=0)
    assert not played.told.pop()["watched"]


def test_what_was_seen_before_a_wish_is_not_fresh(played: Played) -> None:
    *_, wish = played.show(wish=True)
    played.hear(pack([state()]), picture=1, seen=wish - 1, clock=5.0, watched=True)
    (row,), bodies, _ = played.show()
    assert row == [RELAY, 1, wish - 1, 5.0, 0.0, False, True] and len(bodies) == 1
    played.hear(picture=1, seen=wish, clock=6.0, watched=True)
    played.clock.now += 0.5
    (row,), bodies, _ = played.show(**{RELAY: 1})
    assert row == [RELAY, 1, wish, 6.0, 0.5, False, False] and bodies == []
    played.hear(picture=1, seen=wish + 1, clock=None, watched=True)  # it has not looked
    played.hear(picture=2, seen=wish + 1, clock=7.0, watched=True)  # what we do not have
    assert played.show()[0][0][2] == wish
    played.hear(picture=1, seen=wish + 100, clock=7.0, watched=True)  # nobody has wished that
    assert played.show()[0][0][2] == wish


def test_silent_relays_are_shown_until_nobody_misses_them(played: Played) -> None:
    played.hear(pack([state()]), picture=1)
    played.clock.now += relays.SILENT_SECONDS + 0.1
    answer, bodies = played.relays.show({"known": {}, "wish": False}, frozenset([UID]))
    assert answer["relays"][0][5] and len(bodies) == 1
    played.hear(pack([state()]), relay=OTHER, picture=1)  # one that has taken its place
    assert [row[0] for row in played.show()[0]] == [OTHER]
    played.clock.now += relays.SILENT_SECONDS + 0.1
    assert played.show()[0] == []
    played.hear(pack([state()]), picture=1)
    played.hear(bye=True)
    assert played.show()[0] == [] and played.told[-1] == {}


def test_an_order_comes_back_when_it_was_carried_out(played: Played) -> None:
    played.hear(pack([state()]), picture=1)
    replies: list[dict[str, Any]] = []
    played.relays.order({"do": "interrupt", "uid": UID}, replies.append)
    (order,) = played.told.pop()["orders"]
    assert (order["do"], order["uid"]) == ("interrupt", UID) and not replies
    played.hear(done=[[order["order"], True, ""]])
    assert replies.pop() == {"done": True, "why": ""}
    played.hear(done=[[order["order"], True, ""], [99, True, ""]])  # nobody's
    order_ = {"do": "judge", "uid": UID, "call": 1, "judgement": "{}"}
    played.relays.order(order_, replies.append)
    played.clock.now += relays.ORDER_SECONDS
    assert played.relays.next() == 0 and played.relays.release()
    assert not replies.pop()["done"]


def test_orders_that_cannot_be_given(played: Played) -> None:
    judge = {"do": "judge", "uid": UID, "call": 1, "judgement": "{}"}
    with pytest.raises(WorldError, match="no relay sees"):
        played.relays.order(judge, played.told.append)
    played.hear(pack([state()]), picture=1)
    for changes in ({"do": "eval"}, {"judgement": "x" * 5000}, {"judgement": 7}, {"uid": []}):
        with pytest.raises((ValueError, TypeError)):
            played.relays.order(judge | changes, played.told.append)
    played.told.clear()
    for _ in range(1 + relays.MOST_ORDERS):  # the first one goes with the answer that was held
        played.relays.order(judge, played.told.append)
    with pytest.raises(WorldError, match="keep up"):
        played.relays.order(judge, played.told.append)


def test_limits_of_relays_and_pictures(played: Played) -> None:
    for number in range(relays.MOST_PICTURES):
        played.hear(pack([state(call=number)]), picture=number)
    with pytest.raises(WorldError, match="in a second"):
        played.hear(pack([]), picture=99)
    played.clock.now += 1
    played.hear(pack([]), picture=99)
    for number in range(relays.MOST_RELAYS - 1):
        played.hear(relay=f"{number:032x}")
    with pytest.raises(WorldError, match="its limit"):
        played.hear(relay="f" * 32)
    played.clock.now += relays.SILENT_SECONDS
    played.hear(relay="f" * 32)


BAD: list[dict[str, Any]] = [
    {"ask": "relay"},
    {"ask": "pictures"},
    {"ask": "order"},
    {"ask": "pictures", "known": 7, "wish": True},
    {"ask": "order", "do": "interrupt", "uid": {}},
]
COMPLETE = {"ask": "relay", "relay": RELAY, "picture": 1, "seen": 1, "clock": 1.0, "hold": 0}
COMPLETE |= {"watched": True, "done": [], "dead": []}
BAD += [
    COMPLETE | {field: value}
    for field in COMPLETE
    for value in (float("inf"), float("nan"), [[]], "x")
    if field != "watched"
]


def test_the_server_outlives_nonsense(world: str) -> None:
    with DirectoryServer(world, KEY, "tcp://127.0.0.1:0") as server:
        client = Client(world, server.url, KEY)
        try:
            for bad in BAD:
                ask = bad["ask"] if isinstance(bad["ask"], str) else "x"
                rest = {field: value for field, value in bad.items() if field != "ask"}
                with pytest.raises(WorldError):
                    client.ask(ask, **rest)
            rest = {field: value for field, value in COMPLETE.items() if field != "ask"}
            for body in (b"x", pack([state()])[:-1], zlib.compress(b"[1]")):
                with pytest.raises(WorldError, match="not understood"):
                    client.exchange("relay", body, **rest)
            assert client.exchange("relay", pack([state()]), **rest)[0]["picture"] == 1
            with pytest.raises(WorldGone):  # it hangs up on whoever sends too much
                client.exchange("relay", bytes(4 << 20), 2.0, **rest)
        finally:
            client.close()
        other = Client(world, server.url, KEY)
        assert other.ask("hello")["world"] == world
        other.close()
