"""A stream that a test feeds with worlds, snapshots and diagnoses that obey the schema."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from tests.observe import pictures
from tests.observe.pictures import check

if TYPE_CHECKING:
    from playwright.sync_api import Page, WebSocketRoute

Json = dict[str, Any]


def place(line: int, cell: int | None = 1, cell_id: str | None = None) -> Json:
    """A line of a cell."""
    file = f"<cell {cell}>"
    return {"file": file, "line": line, "function": None, "cell": cell, "cell_id": cell_id}


def message(src: str | int, /, **attributes: object) -> Json:
    """A message with these attributes, in Python's notation."""
    pairs = [[name, repr(value)] for name, value in attributes.items()]
    return {"src": src, "context_id": "", "bytes": 100, "attributes": pairs}


def process(name: str | int, rank: int, state: str = "idle", **more: Any) -> Json:
    """An engine in that state."""
    messages = more.get("messages", [])
    about = {
        "uid": f"u-{name}",
        "rank": rank,
        "kind": "engine",
        "size": None,
        "pid": 100 + rank,
        "alive": state not in ("left", "ended"),
        "since": time.time() - 3,
        "call": 1,
        "settled": True,
        "depth": len(messages),
        "bytes": 100 * len(messages),
        "messages": messages,
    }
    return pictures.process(name, state, **(about | more))


def snapshot(*processes: Json, world: str = "w1", links: Sequence[Json] = ()) -> Json:
    """A world with these processes, now; each site has a gateway if a link is between gateways."""
    names = list(dict.fromkeys(process["site"] for process in processes))
    far = any(link["via"] == "gateway" for link in links)
    sites = [
        {
            "name": name,
            "processes": [process["name"] for process in processes if process["site"] == name],
            "gateways": [{"name": f"{name}-1", "address": "tcp://127.0.0.1:5000"}] if far else [],
            "sentence": "",
        }
        for name in names
    ]
    made = {"world": world, "time": time.time(), "processes": list(processes)}
    made |= {"sites": sites, "links": list(links)}
    return check("snapshot", made)


def link(start: str, to: str, sentence: str = "", **more: Any) -> Json:
    """A connection between the gateways of two sites; in trouble, if there is a sentence."""
    made = {"from": start, "to": to, "via": "gateway", "count": 1, "algorithm": "bbr"}
    made |= {"warm": "bbr", "rtt_s": 0.02, "rate": 25e6, "cwnd": 350, "rto": 0}
    made |= {"retransmissions": 0, "dup_acks": 0, "idle_restarts": 0, "silent_s": None}
    made |= {"emulated": False, "trouble": bool(sentence), "sentence": sentence}
    return check("link", made | more)


def world(name: str = "w1", **more: Any) -> Json:
    """A world of the server with four engines."""
    made = {
        "world": name,
        "title": f"cluster {name}",
        "cluster": f"c-{name}",
        "owner": "server",
        "kernels": [],
        "engines": 4,
        "running": 4,
        "blocked": 0,
        "ended": 0,
    } | more
    return check("world", made)


def crossed() -> tuple[Json, Json]:
    """A waits for B and B for A, with a message that nearly fits: snapshot and diagnosis."""
    near = message("B", dest="A", tag=3, data="spam")
    a = process(
        "A",
        0,
        "blocked in recv",
        waits="recv(src='B', tag=2)",
        where=place(3, 7),
        messages=[near, message("C", dest="A", tag=9)],
    )
    b = process("B", 1, "blocked in recv", waits="recv(src='A', tag=1)", where=place(5, 7))
    seen = snapshot(a, b, process("C", 2, "running"))
    judged = [
        judgement(a, "stuck", "A waits for recv(src='B', tag=2) in cell 7 line 3."),
        judgement(b, "stuck", "B waits for recv(src='A', tag=1) in cell 7 line 5."),
        judgement(seen["processes"][2], "acts", "C computes."),
    ]
    judged[0]["near"] = [
        {"message": near, "misses": [{"name": "tag", "has": "3", "wants": "2"}]},
    ]
    why = diagnosis(
        "deadlock",
        "Deadlock: A and B wait for each other",
        *(stuck["text"] for stuck in judged[:2]),
        "No message is on its way.",
        "A's inbox holds 1 message that nearly fits: tag is 3, not 2.",
        cycle=["A", "B"],
        stuck=["A", "B"],
        since=time.time() - 3,
        edges=[edge("A", "B", "src='B', tag=2"), edge("B", "A", "src='A', tag=1")],
        processes=judged,
    )
    return seen, why


def usage(*used: tuple[str, int, int | None, float]) -> Json:
    """The memory, its limit, and the percent of a processor of processes, by name."""
    processes = [
        {"uid": f"u-{name}", "memory": memory, "limit": limit, "processor": processor}
        for name, memory, limit, processor in used
    ]
    return check("usage", {"world": "w1", "time": time.time(), "processes": processes})


def judgement(judged: Json, verdict: str, text: str) -> Json:
    """The judgement of a process."""
    same = {key: judged[key] for key in ("uid", "name", "where", "call")}
    return same | {"verdict": verdict, "text": text, "near": []}


def edge(src: str, dest: str, label: str) -> Json:
    """An edge: one process waits for another in a receive, in a deadlock."""
    return {"from": src, "to": dest, "kind": "recv", "label": label, "cycle": True}


def diagnosis(verdict: str, title: str, *sentences: str, **more: Any) -> Json:
    """A diagnosis of the world w1."""
    made = {
        "world": "w1",
        "time": time.time(),
        "verdict": verdict,
        "cycle": [],
        "stuck": [],
        "since": None,
        "title": title,
        "sentences": list(sentences),
        "edges": [],
        "but_for": None,
        "processes": [],
    } | more
    return check("diagnosis", made)


class Stream:
    """The server's end of the websocket: records subscriptions, and sends what the test sends."""

    def __init__(self, page: Page, worlds: list[Json]) -> None:
        """Takes every websocket of the page that goes to ``sfm/stream``."""
        self.worlds = worlds
        self.watches: list[Json] = []
        self.refuse = False
        self.connections = 0
        self.on_watch: Callable[[Json], None] = lambda _: None
        self._route: WebSocketRoute | None = None
        page.route_web_socket(lambda url: "/sfm/stream" in url, self._opened)

    @property
    def watch(self) -> Json:
        """The last subscription."""
        return self.watches[-1]

    def send(self, kind: str, value: Any) -> None:
        """Send one text of the protocol."""
        assert self._route is not None, "nobody is connected"
        self._route.send(json.dumps({"type": kind, "time": time.time(), kind: value}))

    def show(self, seen: Json, why: Json | None = None) -> None:
        """Send a snapshot, and a diagnosis."""
        self.send("snapshot", seen)
        if why is not None:
            self.send("diagnosis", why)

    def drop(self) -> None:
        """Close the connection, as a server that ends does."""
        assert self._route is not None
        self._route.close(code=1001)
        self._route = None

    def _opened(self, route: WebSocketRoute) -> None:
        self.connections += 1
        if self.refuse:
            route.close(code=1013)
            return
        self._route = route
        route.on_message(self._asked)
        self.send("worlds", self.worlds)

    def _asked(self, text: str | bytes) -> None:
        said = json.loads(text)
        assert said["type"] == "watch" and set(said["parts"]) <= {
            "snapshot",
            "diagnosis",
            "timeline",
            "usage",
        }
        self.watches.append(said)
        self.on_watch(said)
