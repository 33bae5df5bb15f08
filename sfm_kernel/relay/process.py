"""The relay's loop: it reports dead processes to the directory server, and sends snapshots while an
observer watches.
"""

from __future__ import annotations

import os
import secrets
import threading
import time
from typing import Any

from sfm_kernel._native import ANSWER_SECONDS
from sfm_kernel.directory import is_alive, remove_unused
from sfm_kernel.directory.carrier import HELD_SECONDS
from sfm_kernel.directory.client import Client
from sfm_kernel.directory.signals import Ending, interrupt
from sfm_kernel.errors import WorldAccess, WorldError, WorldGone
from sfm_kernel.observe import Observer
from sfm_kernel.observe.deadlocks import STEPS, judge
from sfm_kernel.observe.snapshot import pulse, segments, states
from sfm_kernel.observe.states import parse
from sfm_kernel.relay.lock import Lock
from sfm_kernel.relay.wire import pack, unpack_order

PERIOD = 0.1
"""The least time between two snapshots in seconds, unless an observer requests a fresh one."""
HEARTBEAT = 1.0
"""Seconds after which the segments are read again even if their counters have not changed."""
BREATH = 0.005
"""The least time between two requests to the server, in seconds."""
LEAVING_SECONDS = 2.0
"""The most seconds that a process takes to let go of the folder, from the end of its segment."""


def relay(
    client: Client,
    folder: str,
    stop: Ending | threading.Event,
    patience: float = 0.0,
    lock: Lock | None = None,
) -> bool:
    """Run the relay of a folder until no process lives there, the server ends, or ``stop`` is set.

    Returns False at once if the folder has a relay already. Removes the remains of a world in which
    no process lives.

    Args:
        patience: seconds to wait for the first process.
        lock: the folder's lock, if the caller has it.
    """
    served = False
    deadline = time.monotonic() + patience
    try:
        while (lock := lock or Lock.acquire(folder)) is not None:
            served = True
            try:
                loop = Relay(client, folder)
                while loop.step() and lock.is_valid() and not stop.is_set():
                    if is_inhabited(folder):
                        deadline = 0.0  # the first process has joined
                    elif time.monotonic() > deadline:
                        break
                loop.bye()
            finally:
                lock.release()
                lock = None
            # A process that joined meanwhile may have seen the lock, and started no other relay.
            if stop.is_set() or loop.over or not is_inhabited(folder):
                break
    except FileNotFoundError:  # the user has removed the world
        pass
    if served:
        # Who leaves removes its segment first, and lets go of the folder a moment later.
        deadline = time.monotonic() + LEAVING_SECONDS
        while not (remove_unused(folder) or is_inhabited(folder) or time.monotonic() > deadline):
            time.sleep(0.01)
    return served


def is_inhabited(folder: str) -> bool:
    """Whether a process of the world lives on this machine."""
    return any(is_alive(path) for path in segments(folder).values())


def dead(folder: str) -> list[str]:
    """The uids of processes that died on this machine without leaving the world.

    Their segments still exist, and no process holds the locks; see ``cleaning``. The server may
    have no route to these processes.
    """
    return [
        uid
        for uid, path in segments(folder).items()
        if not is_alive(path) and os.path.exists(path)  # a process that leaves removes its segment
    ]


class Relay:
    """One relay. Each call of ``step`` asks the server once.

    Attributes:
        over: the server has ended.
    """

    def __init__(self, client: Client, folder: str) -> None:
        self.over = False
        self._client, self._folder = client, folder
        self._uid = secrets.token_hex(16)
        self._watched = False
        self._observer: Observer | None = None  # while an observer watches
        self._request = -1  # the number of the latest request for a fresh snapshot
        self._number = 0  # of the newest snapshot
        self._snapshot = b""  # the server's copy; empty if it needs a new one
        self._uids: list[str] = []  # the processes in the snapshot
        self._pulse: int | None = None
        self._read_at = self._sent_at = 0.0
        self._counters = b""  # the snapshot without what main threads do
        self._changes = True  # whether the last reading changed ``_counters``
        self._pids: dict[str, int | None] = {}

    def step(self) -> bool:
        """Send the server what is new, and carry out its orders; False if it has ended.

        Raises FileNotFoundError if the folder was removed.
        """
        body, request, clock, hold = b"", self._request, None, HELD_SECONDS
        if self._watched:
            clock, hold = time.time(), PERIOD
            body = self._fresh_snapshot()
        try:
            answer, orders = self._ask(body, request=request, clock=clock, hold=hold)
        except (WorldGone, WorldAccess):
            self.over = True
            return False
        except WorldError:  # it refuses this snapshot, and marks the last one as out of date
            self._snapshot = b""
            time.sleep(PERIOD)
            return True
        self._watched, self._request = answer["watched"], answer["request"]
        self._observer = self._observer or Observer() if self._watched else None
        if answer["snapshot"] != self._number:  # the server had forgotten this relay
            self._snapshot = b""
        try:
            for number, order in zip(answer["orders"], orders, strict=True):
                self._client.exchange("answer", self._carry_out(order).encode(), order=number)
        except WorldError:
            self.over = True
            return False
        time.sleep(BREATH)
        return True

    def bye(self) -> None:
        """Have the server forget this relay."""
        if not self.over:
            try:
                self._ask(b"", HELD_SECONDS, request=-1, clock=None, hold=0, bye=True)
            except WorldError:
                self.over = True

    def _ask(
        self, body: bytes, limit: float = ANSWER_SECONDS, **details: Any
    ) -> tuple[dict[str, Any], list[bytes]]:
        return self._client.exchange(
            "relay",
            body,
            limit,
            relay=self._uid,
            snapshot=self._number,
            uids=self._uids if body else [],
            watched=self._watched,
            dead=dead(self._folder),
            **details,
        )

    def _fresh_snapshot(self) -> bytes:
        """A new snapshot; empty if the server's copy is still true."""
        if not self._is_due():
            return b""
        before, snapshot = self._counters, self._read()
        wait = self._sent_at + PERIOD - time.monotonic()
        if snapshot != self._snapshot and wait > 0:
            time.sleep(wait)
            snapshot = self._read()
        self._changes = self._counters != before
        if snapshot == self._snapshot:
            return b""
        self._number += 1
        self._snapshot, self._sent_at = snapshot, time.monotonic()
        return snapshot

    def _read(self) -> bytes:
        self._read_at = time.monotonic()
        # The pulse first: a change after it leads to another reading.
        self._pulse = pulse(self._folder, self._observer)
        read = states(self._folder, self._observer)
        self._uids = [state["uid"] for state in read]
        self._pids = {state["uid"]: parse(state["info"]).get("pid") for state in read}
        self._counters = pack([state | {"main": None} for state in read])
        return pack(read)

    def _is_due(self) -> bool:
        """Whether the snapshot may have changed.

        Reading a snapshot wakes the processes, reading their counters does not. After a change the
        snapshot is always read once more: a message may have been between two processes.
        """
        if self._changes or not self._snapshot:
            return True
        if pulse(self._folder, self._observer) != self._pulse:
            return True
        return time.monotonic() > self._read_at + HEARTBEAT

    def _carry_out(self, packed: bytes) -> str:
        """Carry out an observer's order; return "", or why it failed."""
        try:
            order = unpack_order(packed)
        except (ValueError, RecursionError) as error:
            return f"its relay does not understand the order: {error}"
        uid = order["uid"]
        if (step := order["do"]) in STEPS:
            is_meant = judge(self._folder, step, uid, order["call"], order["judgement"])
            return "" if is_meant else "the call is over"
        if uid not in self._pids:
            return "it has ended"
        return interrupt(os.path.join(self._folder, f"{uid}.seg"), self._pids[uid])
