"""Names, ranks and routes whose process has changed, as processes see it that knew the old one."""

from __future__ import annotations

import gc
import weakref

import pytest

from sfm_kernel import Endpoint, PeerLost, WorldGone
from sfm_kernel.observe.snapshot import snapshot
from tests.contract.conftest import Background, Join, Pair
from tests.waiting import wait_until


def is_blocked(sfm: Endpoint) -> bool:
    states = {process["name"]: process["state"] for process in snapshot(sfm.folder)["processes"]}
    return bool(states[sfm.name] == "blocked in recv")


def test_two_threads_learn_of_one_loss(pair: Pair, join: Join) -> None:
    a, b = pair
    a.send(dest="B", n=0)
    old = a._peers.route("B")
    b.close()
    heir = join("B")
    a.send(dest="B", n=1)
    # The other thread has failed on the old channel, too, and asks only now.
    assert a._successor("B", PeerLost("B"), old.channel) is a._peers.route("B").channel
    a.send(dest="B", n=2)
    a.send(dest="B", n=3)
    assert [heir.recv(20).n for _ in range(3)] == [1, 2, 3]


def test_a_look_at_the_members_that_is_late(
    pair: Pair, join: Join, monkeypatch: pytest.MonkeyPatch
) -> None:
    a, _ = pair
    before = a.members()
    c = join("C")
    a.send(dest="C", n=1)
    with monkeypatch.context() as patch:  # what another thread had read before C joined
        patch.setattr(a._peers._directory, "members", lambda: before)
        a.members()
    a.send(dest="C", n=2)
    assert [c.recv(20).n for _ in range(2)] == [1, 2]


def test_a_rank_that_another_has_taken(pair: Pair, join: Join) -> None:
    a, b = pair
    a.send(dest="B", n=1)
    assert b.recv(20, src=0).n == 1
    a.close()
    c = join("C")
    assert c.rank == 0
    waiting = Background(lambda: b.recv(20, src=0).n)  # C's first message is yet to come
    wait_until(lambda: is_blocked(b))
    c.send(dest="B", n=2)
    assert waiting.result() == 2


def test_a_rank_that_is_waited_for_before_it_has_a_name(join: Join) -> None:
    b = join("B", rank=1)
    waiting = Background(lambda: b.recv(20, src=0))
    called: list[int] = []
    wait_until(lambda: is_blocked(b))
    callback = b.regcb(lambda m: called.append(m.n), src=0, tag="call")
    a = join("A")
    assert a.rank == 0
    a.send(dest="B", n=1)
    assert waiting.result().n == 1
    a.send(dest="B", tag="call", n=2)
    wait_until(lambda: called == [2])
    callback.unregister()
    assert not b.peek(src=7)


def test_ranks_are_known_without_a_directory(
    pair: Pair, join: Join, monkeypatch: pytest.MonkeyPatch
) -> None:
    a, b = pair
    a.send(dest="B", n=1)
    assert b.recv(20, src=0).n == 1

    def gone() -> None:
        raise WorldGone("the directory does not answer")

    with monkeypatch.context() as patch:
        patch.setattr(b._peers._directory, "members", gone)
        join("C").send(dest="B", n=2)
        assert b.recv(20, n=2).n == 2
        a.send(dest="B", n=3)
        assert b.recv(20, src=0).n == 3


def test_waiting_for_one_who_has_left(pair: Pair, join: Join) -> None:
    a, b = pair
    a.send(dest="B", n=1)
    assert b.recv(20, src="A").n == 1
    a.send(dest="B", n=2)
    a.close()
    with pytest.raises(PeerLost, match="'A'"):
        b.recv(20, src="A", tag="never")
    assert b.recv(20, src="A").n == 2
    with pytest.raises(PeerLost, match="'A'"):
        b.recv(20, src="A")
    waiting = Background(lambda: b.recv(20, src="D"))  # nobody has had this name yet
    join("A").send(dest="B", n=3)
    assert b.recv(20, src="A").n == 3
    join("D").send(dest="B", n=4)
    assert waiting.result().n == 4


def test_waiting_for_one_who_came_and_left_while_nobody_looked(join: Join) -> None:
    b = join("B")
    c = join("C")
    assert c.rank == 1
    c.close()
    for src in ("C", 1):
        with pytest.raises(PeerLost, match=str(src)):
            b.recv(20, src=src)
    d = join("D")  # for which it is as if there had never been a C
    waiting = Background(lambda: d.recv(20, src="C"))
    c = join("C")
    c.send(dest="D", n=1)
    c.send(dest="B", n=2)
    assert waiting.result().n == 1
    assert b.recv(20, src="C").n == 2


def test_the_error_about_a_lost_process_is_freed_with_what_it_refers_to(pair: Pair) -> None:
    """Otherwise their memory would stay mapped until Python collects garbage."""
    a, b = pair
    a.send(dest="B")
    b.close()
    gc.disable()
    try:
        while True:
            a.send(dest="B")
    except PeerLost as error:
        kept = weakref.ref(error)
    finally:
        gc.enable()
    assert kept() is None
