"""The snapshot of a world: its processes, what each of them does, and the messages in each inbox.

The observer reads it from the segments in shared memory. The processes need not take part: the
snapshot is true while a cell runs, while a call is blocked, while a C function holds the GIL, while
a process is stopped (its inbox is then as it last was), and after it died. A damaged segment is
reported as damaged, and does not affect the others.
"""

from __future__ import annotations

import os
import re
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Any, cast

from sfm_kernel._native import INBOX_IRRELEVANT, UNSETTLED, Observer
from sfm_kernel.observe.code_locations import code_location, native_location
from sfm_kernel.observe.ends import end, failed
from sfm_kernel.observe.links import links_of, sites_of
from sfm_kernel.observe.states import State, are_sound, damaged, parse, parse_others
from sfm_kernel.observe.summaries import messages_of
from sfm_kernel.observe.waits import template_of, wait_of

SHARED = ""
"""The uid for peers that share one entry, since there were too many."""

Remote = Callable[[bool], Sequence[State]]
"""Gives the states of processes on other machines, with "here": False. Called with True, it marks
each state that may have been read before the call began, so that it proves nothing."""

SETTLED_SECONDS = 2.0
"""Seconds after a folder's change in which it may change again with the same modification time:
file systems count in ticks, some in seconds."""

POLLING = 0.3
"""Seconds of unsuccessful calls, one after the other, after which a process is said to poll."""

LATE = 0.3
"""Seconds without a look after which a blocked call does not run: it looks every 0.1 s."""

LULL = 1.0
"""Seconds without such a call after which a process no longer polls, unless it calls more rarely
than that."""

_SEGMENT = re.compile(r"[0-9a-f]{32}\.seg")


def snapshot(
    world: Any, remote: Iterable[State] = (), observer: Observer | None = None
) -> dict[str, Any]:
    """The snapshot of a world: what its processes are doing now.

    Args:
        world: its folder on this machine, ``Endpoint.folder``, or an endpoint in it.
        remote: states of processes on other machines; a process that has a segment on this machine
            as well is left out. ``RemoteStates`` also name the gateways.
        observer: for callers that read often: it keeps the segments open that it has read.
    Returns:
        The "snapshot" of ``schema.json``: ``world``, ``time`` and ``processes``, by rank, those
        without a rank last; ``sites``, and ``links``, the connections between them.
    Raises:
        FileNotFoundError: there is no such folder.
    Cost: some 70 us for each process; up to 5 ms if one of them runs Python, 50 ms if one is
        stopped, or is in a C function that holds the GIL.
    """
    folder = folder_of(world)
    gateways = getattr(remote, "gateways", ())
    read = [_Process(process, folder) for process in _all(states(folder, observer), remote)]
    names = {process.uid[16:]: process.name for process in read}
    taken = {
        (process.uid[16:], peer): count
        for process in read
        for peer, _, _, _, count in process.state["peers"]
    }
    living = {process.uid[16:]: process for process in read if process.state["alive"]}
    contexts: dict[str, str] = {}
    silent: dict[str, Sequence[Any]] = {}
    for process in read:
        contexts |= process.contexts()
        silent |= process.cannot_reach()
    processes = [process.shown(names, taken, living, contexts, silent) for process in read]
    processes.sort(key=by_rank)
    connections = {process.uid: process.about.get("lines", ()) for process in read}
    clocks = {process.uid: process.clock for process in read}
    return {
        "world": os.path.basename(folder.rstrip("/")),
        "time": time.time(),
        "processes": processes,
        "sites": sites_of(processes, gateways, clocks),
        "links": links_of(connections, processes, gateways, clocks),
    }


def by_rank(process: Mapping[str, Any]) -> tuple[bool, int, str]:
    """A key to sort processes by rank, those without a rank last."""
    return process["rank"] is None, process["rank"] or 0, str(process["name"])


def pulse(world: Any, observer: Observer | None = None) -> int:
    """A number that changes whenever the snapshot does, except for its time and "now".

    Cost: some 10 us for each process; the processes notice nothing.
    """
    paths = segments(folder_of(world))
    return hash((tuple(paths), tuple((observer or Observer()).pulses(list(paths.values())))))


def states(folder: str, observer: Observer | None = None) -> list[dict[str, Any]]:
    """The states in a folder's segments: for ``snapshot``, perhaps on another machine."""
    paths = segments(folder)
    read = (observer or Observer()).segments(list(paths.values()))
    return [_checked(uid, state) for uid, state in zip(paths, read, strict=True) if state]


def state_of(endpoint: Any) -> dict[str, Any]:
    """The state of an endpoint of this process; "damaged" if it was closed."""
    (state,) = Observer().segments([f"{endpoint.folder}/{endpoint.uid}.seg"])
    return _checked(endpoint.uid, state) if state else damaged(endpoint.uid, False)


def calls(
    folder: str, remote: Iterable[State] = (), observer: Observer | None = None
) -> dict[str, tuple[int, str]]:
    """The number of each process's latest blocked call, and its state, by uid; wakes no process."""
    paths = segments(folder)
    read = (observer or Observer()).calls(list(paths.values()))
    found = {state["uid"]: (state["call"], state["state"]) for state in remote}
    return found | {uid: call[::-1] for uid, call in zip(paths, read, strict=True) if call}


def _checked(uid: str, state: dict[str, Any]) -> dict[str, Any]:
    if state["state"] != "damaged" and state["uid"] == uid and are_sound(state):
        if time.time() - state["looked"] < LATE:
            state["looked"] = 0.0  # relays send what has changed
        return state
    return damaged(uid, state["alive"])


def _all(local: Iterable[State], remote: Iterable[State]) -> Iterable[State]:
    """Each process once: a state that was read on this machine replaces a remote one."""
    return {state["uid"]: state for state in [*remote, *local]}.values()


def folder_of(world: Any) -> str:
    """The folder of a world that is given as a folder or as an endpoint."""
    return os.fspath(cast("str | os.PathLike[str]", getattr(world, "folder", world)))


def segments(folder: str) -> dict[str, str]:
    """The segments of the world's processes: paths by uid.

    Raises FileNotFoundError if there is no such folder.
    """
    status = os.stat(folder)
    age = time.time() - status.st_mtime
    if age < SETTLED_SECONDS:
        return _segments(folder)
    return dict(_known_segments(folder, status.st_dev, status.st_ino, status.st_mtime_ns))


def _segments(folder: str) -> dict[str, str]:
    entries = sorted(filter(_SEGMENT.fullmatch, os.listdir(folder)))
    return {entry[:32]: os.path.join(folder, entry) for entry in entries}


@lru_cache(64)
def _known_segments(folder: str, device: int, inode: int, changed: int) -> dict[str, str]:
    return _segments(folder)


def message_text(message: Mapping[str, Any]) -> str:
    """A message of an inbox in one line, as the schema has it."""
    return ", ".join(f"{name}={value}" for name, value in message["attributes"])


class _Process:
    """One process, from the state in its segment."""

    def __init__(self, state: Mapping[str, Any], folder: str) -> None:
        self.state, self._folder = state, folder
        self.uid: str = state["uid"]
        self.about = parse(state["info"])
        self.name = self.about.get("name", self.uid[:8])
        self.clock: float = state.get("clock", 0.0)  # seconds to add to times in ``about``

    def cannot_reach(self) -> Mapping[str, Sequence[Any]]:
        """The peers that a blocked process cannot reach: since when and why, by their uids."""
        if not (self.state["alive"] and self.state["state"].startswith("blocked")):
            return {}
        peers: Mapping[str, Sequence[Any]] = self.about.get("unreachable", {})
        return {uid: (since + self.clock, why) for uid, (since, why) in peers.items()}

    def contexts(self) -> Mapping[str, str]:
        """The names of contexts that the process knows, by their ids."""
        facts = parse(self.state["facts"]) if self.state["alive"] else {}
        return {**self.about.get("contexts", {}), **dict(facts.get("contexts", ()))}

    def shown(
        self,
        names: Mapping[str, Any],
        taken: Mapping[tuple[str, str], int],
        living: Mapping[str, _Process],
        contexts: Mapping[str, str],
        silent: Mapping[str, Sequence[Any]],
    ) -> dict[str, Any]:
        """The "process" of ``schema.json``.

        Args:
            names: the names of all processes, by the last digits of their uids.
            taken: flow control's count of what the first process has taken in from the second.
            living: the living processes, by the last digits of their uids.
            silent: since when others cannot reach a process, and why, by its uid.
            contexts: the names of contexts that programs have made, by their ids.
        """
        state, about = self.state, self.about
        blocked = state["alive"] and state["state"].startswith("blocked")
        wait = self._wait() if blocked else None
        ended = "left" if state["state"] == "left" else "ended"
        unreachable, why = self._unreachable(silent)
        return {
            "uid": self.uid,
            "name": self.name,
            "rank": about.get("rank"),
            "kind": about.get("kind", "process"),
            "size": about.get("size"),
            "host": about.get("host"),
            "site": about.get("site"),
            "pid": about.get("pid"),
            "here": state.get("here", True),
            "alive": state["alive"],
            "state": state["state"] if state["alive"] else ended,
            "since": state["since"],
            "unreachable": unreachable,
            "unreachable_why": why or None,
            "unseen": state.get("unseen") if state["alive"] else None,
            "call": state["call"],
            "waits": state["waits"] or (about.get("serving") if state["state"] == "idle" else None),
            "wait": wait,
            "polls": self._polls(),
            "now": self._now(),
            "where": code_location(state["code"], state["line"]),
            "failed": failed(state, about),
            "end": end(state, self._folder),
            "others": _others(state["others"]) if state["alive"] else [],
            "settled": wait is not None and self._is_settled(wait, names, taken, living),
            "depth": state["depth"],
            "bytes": state["bytes"],
            "sent": state["sent"],
            "received": state["received"],
            "peers": [
                {
                    "uid": uid,
                    "name": names.get(uid),
                    "sent": sent,
                    "arrived": arrived,
                    "received": received,
                }
                for uid, sent, arrived, received, _ in state["peers"]
            ],
            "callbacks": [template_of(found) for found in about.get("callbacks", ())],
            # The summary may be older than the count, if the process did not publish it in time.
            "messages": messages_of(state["summary"], contexts) if state["depth"] else [],
        }

    def _unreachable(self, silent: Mapping[str, Sequence[Any]]) -> tuple[float | None, str]:
        """Since when neither the directory nor its peers reach the process, and why."""
        if not self.state["alive"] or self.state.get("here", True):
            return None, ""
        since, why = silent.get(self.uid, (None, ""))
        return self.state.get("unreachable") or since, why

    def _wait(self) -> dict[str, Any] | None:
        """The "wait" of ``schema.json``; None until the blocked call has published its facts."""
        state = self.state
        return wait_of(parse(state["facts"]), state["waits"], state["until"])

    def _polls(self) -> dict[str, Any] | None:
        """The "polls" of ``schema.json``; None if the process does not poll."""
        state = self.state
        # After the end of a program only a thread can poll, and "others" names it.
        asks = state["state"] == "running" and not state["others"]
        counts = asks or (state["state"] == "blocked in recv" and state["until"])
        if not (state["alive"] and counts and state["polls"]):
            return None
        count, lasted, ago, line, code, about = state["polls"]
        facts = parse(about)
        wait = wait_of(facts, facts.get("text"))
        rare = 3 * lasted / max(1, count - 1)
        if wait is None or lasted < POLLING or ago > max(LULL, rare):
            return None
        since = time.time() - ago - lasted
        return {"count": count, "since": since, "wait": wait, "where": code_location(code, line)}

    def _now(self) -> dict[str, Any] | None:
        """The "now" of ``schema.json``: what the main thread does."""
        if self._is_stopped():
            return {"does": "stopped", "where": None}
        main = self.state["main"]
        if not self.state["alive"] or main is None:
            return None
        does, line, code = main
        where = code_location(code, line)
        if where is None and does != "computes" and self._is_here():
            where = native_location(self.about["pid"])
        if does == "held":
            return {"does": "lock", "where": where, "alone": True}
        return {"does": does, "where": where}

    def _is_stopped(self) -> bool:
        """Whether the system has stopped the process; False on other machines, and if unknown."""
        if not self._is_here():
            return False
        try:
            with open(
                f"/proc/{self.about['pid']}/stat", encoding="utf-8", errors="replace"
            ) as file:
                return file.read().rpartition(")")[2].split()[0] in "Tt"
        except (OSError, IndexError):
            return False

    def _is_here(self) -> bool:
        """Whether its pid says which process it is; a container may have other pids."""
        about, state = self.about, self.state
        lives = bool(about.get("pid") and state["alive"] and state.get("here", True))
        return lives and about.get("host") == os.uname().nodename

    def _is_settled(
        self,
        wait: Mapping[str, Any],
        names: Mapping[str, Any],
        taken: Mapping[tuple[str, str], int],
        living: Mapping[str, _Process],
    ) -> bool:
        examined = self.state["examined"]
        if examined == UNSETTLED or self._is_behind(wait, living):
            return False
        if wait["kind"] == "send":
            sender = self.uid[16:]
            receivers = [uid for uid, name in names.items() if name in wait["peers"]]
            return any(taken.get((uid, sender), 0) == examined for uid in receivers)
        if wait["kind"] == "cell":
            return True
        # Collective calls as well: the process may have other transfers under way.
        if examined not in (INBOX_IRRELEVANT, self.state["arrived"]):
            return False
        known = parse(self.state["facts"]).get("known", 0.0)
        if not known or wait["peers"] is None:
            return True
        # A missing member may have arrived and gone on since; the others were there already.
        missing = _awaited(wait, living)
        return all(process.state["since"] < known for process in missing)

    def _is_behind(self, wait: Mapping[str, Any], living: Mapping[str, _Process]) -> bool:
        """Whether it does not run, and may be able to go on: an awaited process has acted since.

        What that one has left in memory that they share, no count tells.
        """
        looked = self.state["looked"]
        if wait["kind"] == "cell" or not looked:
            return False
        here = self.state.get("here", True)  # no memory is shared with other machines
        return any(
            process.state["since"] >= looked
            for process in _awaited(wait, living)
            if process is not self and process.state.get("here", True) == here
        )


def _awaited(wait: Mapping[str, Any], living: Mapping[str, _Process]) -> list[_Process]:
    """The living processes that a call waits for; all of them if any could end it."""
    peers = wait["peers"]
    return [
        process
        for process in living.values()
        if peers is None or process.name in peers or process.about.get("rank") in peers
    ]


@lru_cache(256)
def _others(text: str | None) -> list[dict[str, Any]]:
    """The threads and callbacks that could go on; an unreadable list counts as one more thread."""
    found = parse_others(text)
    if found is None or text is None:  # it was being written
        return [{"kind": "more", "name": "1", "where": None, "cell": None}]
    return [
        {"kind": kind, "name": name, "where": code_location(code, line), "cell": cell}
        for kind, name, code, line, cell in found
    ]
