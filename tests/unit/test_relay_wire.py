"""The messages of relays and observers, and the refusal of invalid ones."""

from __future__ import annotations

import json
import os
import zlib
from collections.abc import Iterator
from typing import Any

import pytest

import sfm_kernel
from sfm_kernel._native import JUDGEMENT_BYTES
from sfm_kernel.directory.carrier import LARGEST_ORDER
from sfm_kernel.observe.snapshot import snapshot, states
from sfm_kernel.relay import wire
from sfm_kernel.relay.wire import pack, pack_order, unpack, unpack_order
from tests.unit.states import UID, state


def test_a_snapshot_of_real_processes_comes_through(world: str) -> None:
    with sfm_kernel.join(world, "A") as a, sfm_kernel.join(world, "B"):
        a.send(dest="B", tag="ü", data=[1, 2])
        read = states(a.folder)
        received = unpack(pack(read))
        here = snapshot(a.folder)
    assert json.loads(json.dumps(read)) == received
    moved = snapshot(os.path.dirname(__file__), [process | {"here": False} for process in received])
    for process in (*moved["processes"], *here["processes"]):
        process.pop("here")
        process.pop("now")  # the two were read at different moments
    assert moved["processes"] == here["processes"]


def test_a_large_snapshot_loses_the_messages_in_the_inboxes_first(
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
        monkeypatch.setattr(wire, "LARGEST_TEXT", limit)
        received = unpack(pack(full))
        lines.append((received[0]["summary"] or "").count("\t") // 2 if received else -1)
        peers.append(received[0]["peers"] if received else None)
        count.append(len(received))
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
def test_invalid_snapshots_are_refused(content: Any) -> None:
    with pytest.raises(ValueError, match=r"."):
        unpack(zlib.compress(json.dumps(content).encode()))


def test_invalid_compressed_texts_are_refused() -> None:
    good = pack([state()])
    assert unpack(good) == [state()]
    bomb = zlib.compress(bytes(2 * wire.LARGEST_TEXT))
    deep = zlib.compress(b"[" * 100_000)
    for bad in (b"", b"x", good[:-1], bomb, deep, zlib.compress(b"[NaN]"), bytes(2 << 20)):
        with pytest.raises(ValueError, match=r"."):
            unpack(bad)


# ---- orders ----------------------------------------------------------------------------------


@pytest.mark.parametrize("letter", ["x", '"', "\n", "é", "\x00"])
def test_the_longest_judgement_comes_through(letter: str) -> None:
    text = json.dumps(letter * JUDGEMENT_BYTES, ensure_ascii=False)
    judgement = text.encode()[:JUDGEMENT_BYTES].decode(errors="ignore")
    packed = pack_order("prepare", UID, 7, judgement)
    assert len(packed) <= LARGEST_ORDER
    order = {"do": "prepare", "uid": UID, "call": 7, "judgement": judgement}
    assert unpack_order(packed) == order


@pytest.mark.parametrize(
    "changes",
    [{"do": "eval"}, {"do": []}, {"uid": 7}, {"call": -1}, {"call": 1 << 64}, {"call": True},
     {"call": 1.5}, {"judgement": None}, {"judgement": "\ud800"}, {"more": 1}],
)  # fmt: skip
def test_invalid_orders_are_refused(changes: dict[str, Any]) -> None:
    order = json.loads(pack_order("interrupt", UID)) | changes
    with pytest.raises(ValueError, match=r"."):
        unpack_order(json.dumps(order).encode())
    for packed in (b"", b"x", b"[]", b"\xff"):
        with pytest.raises(ValueError, match=r"."):
            unpack_order(packed)
