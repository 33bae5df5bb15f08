"""A picture of a world: who is there, what each process does, what waits in each inbox.

Read from the segments in shared memory. The processes need not take part: the picture is true
while a cell runs, while a call is blocked, while a C function holds the GIL, while a process is
stopped (its inbox is then as it last was), and after it died.
"""

from __future__ import annotations

import ast
import json
import os
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Any, cast

from sfm_kernel._native import Observer as Observer  # for who looks often
from sfm_kernel.observe.places import place

UNSETTLED = (1 << 64) - 1
"""A blocked call has not looked at what has arrived, or the other side can end it by itself."""

SHARED = ""
"""The uid of peers that are not told apart, since there were too many."""

State = Mapping[str, Any]
"""What a segment says, see ``states``."""

Elsewhere = Callable[[bool], Sequence[State]]
"""Gives the states of processes on other machines, with "here": False. Called with True it shows
what is not known to have been so after the call began in such a way that it proves nothing."""

SETTLED_SECONDS = 2.0
"""A folder that has changed so lately may change again without another time of change: file systems
count in ticks, some in seconds."""

_UNIT = "\x1f"  # between name and value, in native/src/summary.rs


def snapshot(
    world: Any, elsewhere: Iterable[State] = (), observer: Observer | None = None
) -> dict[str, Any]:
    """What the processes of a world are doing now.

    Args:
        world: its folder on this machine, ``Endpoint.folder``, or an endpoint in it.
        elsewhere: states of processes on other machines; one that is here as well is left out.
        observer: for who looks often: what it has seen it need not open again.
    Returns:
        As ``schema.json`` has it, "snapshot": ``world``, ``time`` and ``processes``, by rank, those
        without a rank last.
    Raises:
        FileNotFoundError: there is no such folder.
    Cost: some 60 us for each process; 50 ms if one of them is stopped.
    """
    folder = folder_of(world)
    read = [_Process(one) for one in _all(states(folder, observer), elsewhere)]
    names = {one.uid[16:]: one.name for one in read}
    taken = {(one.uid[16:], peer): count for one in read for peer, count in one.taken()}
    since = {one.uid[16:]: one.state["since"] for one in read if one.state["alive"]}
    processes = [one.shown(names, taken, since) for one in read]
    processes.sort(key=lambda one: (one["rank"] is None, one["rank"] or 0, str(one["name"])))
    world_name = os.path.basename(folder.rstrip("/"))
    return {"world": world_name, "time": time.time(), "processes": processes}


def pulse(world: Any, observer: Observer | None = None) -> int:
    """A number that changes whenever anything in the world's snapshot does but its time.

    Cost: some 10 us for each process, of which the processes notice nothing.
    """
    paths = segments(folder_of(world))
    return hash((tuple(paths), tuple((observer or Observer()).pulses(list(paths.values())))))


def states(folder: str, observer: Observer | None = None) -> list[dict[str, Any]]:
    """What the segments in a folder say: for ``snapshot``, perhaps on another machine."""
    read = (observer or Observer()).segments(list(segments(folder).values()))
    return [one for one in read if one is not None]


def calls(
    folder: str, elsewhere: Iterable[State] = (), observer: Observer | None = None
) -> dict[str, tuple[int, str]]:
    """The number of each process's latest blocked call, and its state, by uid; asks nobody."""
    read = (observer or Observer()).segments(list(segments(folder).values()), inboxes=False)
    found = _all((one for one in read if one is not None), elsewhere)
    return {one["uid"]: (one["call"], one["state"]) for one in found}


def _all(here: Iterable[State], elsewhere: Iterable[State]) -> Iterable[State]:
    """Each process once: what is seen here goes before what is told."""
    return ({one["uid"]: one for one in elsewhere} | {one["uid"]: one for one in here}).values()


def folder_of(world: Any) -> str:
    """The folder of a world that is given by it, or by an endpoint."""
    return os.fspath(cast("str | os.PathLike[str]", getattr(world, "folder", world)))


def segments(folder: str) -> dict[str, str]:
    """The segments of the world's processes: paths by uid.

    Raises FileNotFoundError where there is no such folder.
    """
    status = os.stat(folder)
    age = time.time() - status.st_mtime
    if age < SETTLED_SECONDS:
        return _segments(folder)
    return dict(_known_segments(folder, status.st_dev, status.st_ino, status.st_mtime_ns))


def _segments(folder: str) -> dict[str, str]:
    entries = sorted(entry for entry in os.listdir(folder) if entry.endswith(".seg"))
    return {entry[:32]: os.path.join(folder, entry) for entry in entries}


@lru_cache(64)
def _known_segments(folder: str, device: int, inode: int, changed: int) -> dict[str, str]:
    return _segments(folder)


def message_text(message: Mapping[str, Any]) -> str:
    """A message of an inbox in one line, as the schema has it."""
    return ", ".join(f"{name}={value}" for name, value in message["attributes"])


class _Process:
    """What one segment says."""

    def __init__(self, state: Mapping[str, Any]) -> None:
        self.state = state
        self.uid: str = state["uid"]
        self.about = _about(state["info"])
        self.name = self.about.get("name", self.uid[:8])

    def taken(self) -> Iterable[tuple[str, int]]:
        """What it has taken in of each peer, as flow control counts."""
        return ((uid, taken) for uid, _, _, _, taken in self.state["peers"])

    def shown(
        self,
        names: Mapping[str, Any],
        taken: Mapping[tuple[str, str], int],
        since: Mapping[str, float],
    ) -> dict[str, Any]:
        """The process as the schema has it.

        Args:
            names: of all processes, by the last digits of their uids.
            taken: what the first has taken in of the second.
            since: when those who live began what they do.
        """
        state, about = self.state, self.about
        blocked = state["alive"] and state["state"].startswith("blocked")
        wait = self._wait() if blocked else None
        ended = "left" if state["state"] == "left" else "dead"
        return {
            "uid": self.uid,
            "name": self.name,
            "rank": about.get("rank"),
            "kind": about.get("kind", "process"),
            "size": about.get("size"),
            "host": about.get("host"),
            "pid": about.get("pid"),
            "here": state.get("here", True),
            "alive": state["alive"],
            "state": state["state"] if state["alive"] else ended,
            "since": state["since"],
            "call": state["call"],
            "waits": state["waits"] or None,
            "wait": wait,
            "where": _place(state["code"], state["line"]),
            "settled": wait is not None and self._is_settled(wait, names, taken, since),
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
            "messages": [_message(line) for line in _lines(state["summary"])],
        }

    def _wait(self) -> dict[str, Any] | None:
        """What it waits for; None in the first moment of a wait, in which it has not said it."""
        facts = _json(self.state["facts"])
        if not facts:
            return None
        if facts["kind"] == "send":
            facts |= {"peers": [_value(facts.pop("peer"))], "template": [], "all": False}
        template = [
            {"name": name, "value": value, "predicate": predicate}
            for name, value, predicate in facts["template"]
        ]
        others = self.state["others"] or ""
        return {
            "kind": facts["kind"],
            "text": self.state["waits"] or "",
            "template": template,
            "peers": facts["peers"],
            "all": facts["all"],
            "until": self.state["until"] or None,
            "space": facts.get("space", ""),
            "purpose": facts.get("purpose", ""),
            "others": others.split(", ") if others else [],
        }

    def _is_settled(
        self,
        wait: Mapping[str, Any],
        names: Mapping[str, Any],
        taken: Mapping[tuple[str, str], int],
        since: Mapping[str, float],
    ) -> bool:
        examined = self.state["examined"]
        if examined == UNSETTLED:
            return False
        if wait["kind"] in ("recv", "other"):
            return bool(examined == self.state["arrived"])
        if wait["kind"] == "send":
            own = self.uid[16:]
            there = [uid for uid, name in names.items() if name in wait["peers"]]
            return any(taken.get((uid, own), 0) == examined for uid in there)
        if wait["kind"] == "collective":
            # Who was missing may have come and gone on since; not who was there already.
            known = _json(self.state["facts"]).get("known", 0.0)
            missing = [uid for uid, name in names.items() if name in wait["peers"]]
            return all(since.get(uid, 0.0) < known for uid in missing)
        return True


def _lines(summary: str | None) -> list[str]:
    """A line for each message; the last one may be cut in its front, which tells nothing."""
    return [line for line in (summary or "").split("\n") if "\t" in line]


def _message(line: str) -> dict[str, Any]:
    space, nbytes, *pairs = line.split("\t")
    attributes = [pair.split(_UNIT, 1) for pair in pairs if _UNIT in pair]
    src = next((value for name, value in attributes if name == "src"), None)
    return {
        "src": None if src is None else _value(src),
        "space": "" if space == "0" else space,
        "bytes": int(nbytes) if nbytes.isdigit() else 0,
        "attributes": attributes,
    }


def _json(text: str | None) -> dict[str, Any]:
    """What a segment's text holds; empty where it was being written, or cut."""
    try:
        found = json.loads(text or "{}")
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}


# Most texts are those of the last look. What is made of them is shared, and nobody changes it.
_about = lru_cache(1024)(_json)
_place = lru_cache(1024)(place)


@lru_cache(1024)
def _value(text: str) -> Any:
    """A name, from Python's notation."""
    try:
        found = ast.literal_eval(text)
    except (ValueError, SyntaxError):
        return text
    return found if isinstance(found, (str, int)) else text
