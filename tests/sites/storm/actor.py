"""A process in a storm: sends numbered messages to the others, and receives theirs.

    python -m tests.sites.storm.actor NAME SEED LOG      with SFM_WORLD, SFM_DIRECTORY and SFM_KEY

It prints "joined" and "done". Its standard input says, a line each: "peers NAME…" (those that live
now), and at last "end NAME…". It writes what it does to LOG: see ``history``.
"""

from __future__ import annotations

import contextlib
import faulthandler
import json
import os
import queue
import random
import sys
import threading
import time
from collections import Counter

import numpy as np

import sfm_kernel
from sfm_kernel import Endpoint, Message, PeerLost, RecvTimeout, UnknownName, WorldGone

SMALL, LARGE = 100, 400_000
"""Bytes of an array; of thirty messages about one has a large one."""


class Actor:
    """Plays its part until it is told to end."""

    def __init__(self, sfm: Endpoint, seed: int, log: str) -> None:
        self._sfm, self._chance = sfm, random.Random(seed)
        self._log = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        self._orders: queue.SimpleQueue[list[str]] = queue.SimpleQueue()
        self._peers: list[str] = []
        self._begun, self._ended = Counter[str](), set[str]()
        self._lost: set[str] = set()
        self._met: set[str] = set()
        threading.Thread(target=self._listen, daemon=True).start()

    def wait(self) -> None:
        """Wait for another order."""
        self._orders.get()

    def _listen(self) -> None:
        for line in sys.stdin:
            self._orders.put(line.split())

    def _note(self, *event: object) -> None:
        """One system call: whenever the process is killed, the log has whole lines."""
        os.write(self._log, json.dumps([time.monotonic(), *event]).encode() + b"\n")

    def play(self) -> None:
        """Send and receive until the order comes to end, then until all has come."""
        while True:
            with contextlib.suppress(queue.Empty):
                word, *names = self._orders.get_nowait()
                self._peers = [name for name in names if name != self._sfm.name]
                self._met.update(self._peers)
                if word == "end":
                    break
            open_to = [name for name in self._peers if name not in self._lost]
            peer = self._chance.choice(open_to or [""])
            if peer and self._chance.random() < 0.7:
                self._send(peer)
            asked = {"src": peer} if peer and self._chance.random() < 0.1 else {}
            self._receive(0.02, **asked)
        for peer in self._peers:
            self._sfm.send(dest=peer, end=self._begun[peer])
        while not self._ended.issuperset(self._peers):
            self._receive(1.0)
        for peer in self._met.difference(self._peers):
            while peer not in self._lost:  # nothing reaches it any more, and this process hears so
                self._send(peer)
                time.sleep(0.02)
        self._note("done")

    def _send(self, peer: str) -> None:
        n = self._begun[peer]
        self._begun[peer] += 1
        length = LARGE if self._chance.randrange(30) == 0 else SMALL
        try:
            self._sfm.send(dest=peer, n=n, data=np.full(length, n % 251, np.uint8))
        except (PeerLost, UnknownName) as error:  # unknown: its rank has passed to another process
            self._note("told", peer, n)
            self._note("lost", peer, str(error))
            self._lost.add(peer)
        except WorldGone:  # the directory was asked for the peer, and does not answer
            self._note("told", peer, n)

    def _receive(self, limit: float, **template: object) -> None:
        try:
            message: Message = self._sfm.recv(limit, **template)
        except (RecvTimeout, WorldGone):  # gone: the directory was asked for a peer's name
            return
        except PeerLost as error:
            self._note("lost", error.peer, str(error))
            self._lost.add(str(error.peer))
            return
        if "end" in message:
            self._note("ends", message.src, message.end)
            self._ended.add(message.src)
        else:
            assert (message.data == message.n % 251).all(), f"number {message.n} is damaged"
            self._note("got", message.src, message.n)


def main(name: str, seed: str, log: str) -> None:
    """Join, play, and leave when the last has come to its end: until then others may still send."""
    faulthandler.enable()  # SIGABRT shows where it hangs
    with sfm_kernel.join(os.environ["SFM_WORLD"], name) as sfm:
        actor = Actor(sfm, int(seed), log)
        print("joined", flush=True)
        actor.play()
        print("done", flush=True)
        actor.wait()


if __name__ == "__main__":
    main(*sys.argv[1:])
