"""What a relay does: it tells the directory server who has died, and shows what it sees while
somebody looks.
"""

from __future__ import annotations

import os
import secrets
import threading
import time
from typing import Any

from sfm_kernel.directory.cleaning import remove_unused
from sfm_kernel.directory.client import Client
from sfm_kernel.directory.folders import is_alive
from sfm_kernel.directory.pictures import pack
from sfm_kernel.directory.relays import HELD_SECONDS
from sfm_kernel.directory.signals import interrupt
from sfm_kernel.errors import WorldAccess, WorldError, WorldGone
from sfm_kernel.observe.deadlocks import judge
from sfm_kernel.observe.snapshot import Observer, pulse, segments, states
from sfm_kernel.relay.lock import Lock
from sfm_kernel.states import parse

PERIOD = 0.1
"""Seconds between two pictures at least; between two looks, unless an observer wants one."""
HEARTBEAT = 1.0
"""Seconds after which a picture is taken again although nothing seems to have moved."""
BREATH = 0.005
"""Seconds between two questions at least."""


def relay(client: Client, folder: str, stop: threading.Event, patience: float = 0.0) -> bool:
    """Be the relay of a folder until nobody lives there, the server is gone, or ``stop`` is set.

    Returns at once if there is a relay already; whether there was none. What is left of a world in
    which nobody lives is removed.

    Args:
        patience: seconds to wait for the first process.
    """
    served = False
    deadline = time.monotonic() + patience
    try:
        while (lock := Lock.acquire(folder)) is not None:
            served = True
            try:
                one = Relay(client, folder)
                while one.goes_on() and lock.is_valid() and not stop.is_set():
                    if inhabited(folder):
                        deadline = 0.0  # the first has come
                    elif time.monotonic() > deadline:
                        break
                one.bye()
            finally:
                lock.release()
            # Whoever has joined meanwhile may have seen the lock, and have started no other relay.
            if stop.is_set() or one.over or not inhabited(folder):
                break
    except FileNotFoundError:  # somebody has removed the world
        pass
    if served:
        remove_unused(folder)
    return served


def inhabited(folder: str) -> bool:
    """Whether a process of the world lives on this machine."""
    return any(is_alive(path) for path in segments(folder).values())


def dead(folder: str) -> list[str]:
    """Who has died on this machine without leaving the world: the server may have no way to it.

    Their segments are still there, and nobody holds the locks; see ``cleaning``.
    """
    return [
        uid
        for uid, path in segments(folder).items()
        if not is_alive(path) and os.path.exists(path)  # who leaves takes the segment away
    ]


class Relay:
    """One relay. Each call of ``goes_on`` asks the server once.

    Attributes:
        over: the server is gone.
    """

    def __init__(self, client: Client, folder: str) -> None:
        self.over = False
        self._client, self._folder = client, folder
        self._uid = secrets.token_hex(16)
        self._watched = False
        self._observer: Observer | None = None  # while somebody looks
        self._wish = -1
        self._done: list[tuple[int, bool, str]] = []
        self._number = 0  # of the newest picture
        self._picture = b""  # which the server has; empty if it has to get one
        self._pulse: int | None = None
        self._read_at = self._sent_at = 0.0
        self._counters = b""  # the same without the lines of those that compute
        self._moves = True  # the last look has found something new there
        self._pids: dict[str, int | None] = {}

    def goes_on(self) -> bool:
        """Tell the server what there is to tell, and do what it says; False if it is gone.

        Raises FileNotFoundError when the folder is gone.
        """
        told: dict[str, Any] = {"clock": None, "hold": HELD_SECONDS, "dead": dead(self._folder)}
        body, seen = b"", self._wish
        if self._watched:
            told |= {"clock": time.time(), "hold": PERIOD}
            body = self._look()
        done, self._done = self._done, []
        try:
            answer, _ = self._client.exchange(
                "relay",
                body,
                relay=self._uid,
                watched=self._watched,
                seen=seen,
                picture=self._number,
                done=done,
                **told,
            )
        except (WorldGone, WorldAccess):
            self.over = True
            return False
        except WorldError:  # it refuses this picture, and shows the one before as out of date
            self._picture = b""
            time.sleep(PERIOD)
            return True
        self._watched, self._wish = answer["watched"], answer["wish"]
        self._observer = self._observer or Observer() if self._watched else None
        if answer["picture"] != self._number:  # it had forgotten us
            self._picture = b""
        for order in answer["orders"]:
            self._carry_out(order)
        time.sleep(BREATH)
        return True

    def bye(self) -> None:
        """Have the server forget this relay."""
        if not self.over:
            try:
                self._client.ask(
                    "relay",
                    HELD_SECONDS,
                    relay=self._uid,
                    bye=True,
                    watched=False,
                    seen=-1,
                    picture=0,
                    clock=None,
                    hold=0,
                    done=self._done,
                    dead=dead(self._folder),
                )
            except WorldError:
                self.over = True

    def _look(self) -> bytes:
        """The picture, if it is not the one that the server has."""
        if not self._is_due():
            return b""
        before, picture = self._counters, self._read()
        wait = self._sent_at + PERIOD - time.monotonic()
        if picture != self._picture and wait > 0:
            time.sleep(wait)
            picture = self._read()
        self._moves = self._counters != before
        if picture == self._picture:
            return b""
        self._number += 1
        self._picture, self._sent_at = picture, time.monotonic()
        return picture

    def _read(self) -> bytes:
        self._read_at = time.monotonic()
        # First: what changes meanwhile is looked at again.
        self._pulse = pulse(self._folder, self._observer)
        seen = states(self._folder, self._observer)
        self._pids = {one["uid"]: parse(one["info"]).get("pid") for one in seen}
        self._counters = pack([one | {"main": None} for one in seen])
        return pack(seen)

    def _is_due(self) -> bool:
        """Whether the picture may have changed.

        To take one wakes the processes, a look at their counters does not. After a change always
        once more: a message may have been between two processes for a moment.
        """
        if self._moves or not self._picture or pulse(self._folder, self._observer) != self._pulse:
            return True
        return time.monotonic() > self._read_at + HEARTBEAT

    def _carry_out(self, order: dict[str, Any]) -> None:
        uid, why = str(order["uid"]), ""
        if order["do"] == "judge":
            if not judge(self._folder, uid, int(order["call"]), str(order["judgement"])):
                why = "the call is over"
        elif uid not in self._pids:
            why = "it has ended"
        else:
            why = interrupt(os.path.join(self._folder, f"{uid}.seg"), self._pids[uid])
        self._done.append((int(order["order"]), not why, why))
