"""Made-up snapshots, and their diagnoses. All are valid by the schema."""

from __future__ import annotations

import json
from collections.abc import Iterable
from functools import cache
from importlib.resources import files
from typing import Any

import jsonschema

from sfm_kernel.observe.explain import diagnose
from sfm_kernel.observe.explain.but_for import LASTING
from sfm_kernel.observe.explain.graph import Graph

Dict = dict[str, Any]

SCHEMA = json.loads(files("sfm_kernel.observe").joinpath("schema.json").read_text())

NOW = 1000.0
"""The time of the snapshots; waits have begun one second before."""


@cache
def _validator(kind: str) -> jsonschema.Draft202012Validator:
    return jsonschema.Draft202012Validator({**SCHEMA, "$ref": f"#/$defs/{kind}"})


def check(kind: str, value: Any) -> Any:
    """The value; raises ValidationError unless it is valid by this definition of the schema."""
    _validator(kind).validate(value)
    return value


def picture(*processes: Dict) -> Dict:
    """A snapshot of these processes; ranks and uids follow their order."""
    shown = []
    for nth, process in enumerate(processes):
        rank = None if process["kind"] == "notebook" else nth
        shown.append({"rank": rank, "uid": uid(process["name"]), **process})
    found = {"world": "made-up", "time": NOW, "processes": shown, "sites": [], "links": []}
    check("snapshot", found)
    return found


def where(line: int) -> Dict:
    return {"file": "prog.py", "line": line, "function": "step", "cell": None, "cell_id": None}


def uid(name: object) -> str:
    return f"{name!s:x>32}"


def process(name: object, state: str = "running", **changes: Any) -> Dict:
    """A process that computes and has never sent or received anything, in a world of three."""
    return {
        "name": name,
        "kind": "process",
        "size": 3,
        "host": "here",
        "site": "here",
        "pid": 1,
        "here": True,
        "alive": True,
        "state": state,
        "since": NOW - 1,
        "unreachable": None,
        "unreachable_why": None,
        "unseen": None,
        "call": 7,
        "waits": None,
        "wait": None,
        "where": None,
        "others": [],
        "failed": None,
        "end": None,
        "polls": None,
        "now": None,
        "settled": False,
        "depth": 0,
        "bytes": 0,
        "sent": 0,
        "received": 0,
        "peers": [],
        "callbacks": [],
        "messages": [],
        **changes,
    }


PARTS = {"text", "template", "all", "until", "context_id", "purpose", "group"}
"""The arguments of ``blocked`` that belong to the wait."""


def blocked(name: object, what: str, whom: Iterable[object] | None, /, **changes: Any) -> Dict:
    """A process in a call that waits for these; ``changes``: to the wait, or to the process."""
    wait: Dict = {
        "kind": what,
        "text": "the text",
        "template": [],
        "peers": None if whom is None else list(whom),
        "all": what in ("collective", "cell"),
        "until": None,
        "context_id": "",
        "purpose": "",
    }
    wait |= {key: changes.pop(key) for key in PARTS & changes.keys()}
    state = "blocked in recv" if what == "other" else f"blocked in {what}"
    about: Dict = {"wait": wait, "waits": wait["text"], "settled": True}
    return process(name, state, **(about | changes))


def recv(name: object, *peers: object, **changes: Any) -> Dict:
    """A process that waits for a message from any of these; from any process if there are none."""
    template = changes.pop("template", {})
    conditions = [
        {"name": key, "value": str(value), "predicate": str(value).startswith("<")}
        for key, value in template.items()
    ]
    return blocked(name, "recv", peers or None, template=conditions, **changes)


def send(name: object, peer: object, **changes: Any) -> Dict:
    return blocked(name, "send", [peer], **changes)


def collective(name: object, *missing: object, **changes: Any) -> Dict:
    return blocked(name, "collective", missing, **changes)


def polls(**changes: Any) -> Dict:
    """Calls of ``recv_nb(tag=2, src='A')`` since long ago."""
    template = [
        {"name": name, "value": value, "predicate": False}
        for name, value in (("tag", "2"), ("src", "'A'"))
    ]
    wait = {"kind": "recv", "text": "recv_nb(tag=2, src='A')", "template": template,
            "peers": ["A"], "all": False, "until": None, "context_id": "", "purpose": "",
            "group": None}  # fmt: skip
    about = {"count": 12_400, "since": NOW - LASTING - 1, "wait": wait, "where": where(4)}
    return {"polls": about | changes}


def other(name: str, kind: str = "thread", **changes: Any) -> Dict:
    """A thread or callback that could go on beside a process's call."""
    return {"kind": kind, "name": name, "where": None, "cell": None, **changes}


def idle(name: object, **changes: Any) -> Dict:
    """An engine without a cell, or (``kind="process"``) a program that has come to its end."""
    return process(name, "idle", **({"kind": "engine"} | changes))


def notebook(name: object, *engines: object, **changes: Any) -> Dict:
    """A notebook that waits for its cell on these."""
    return blocked(name, "cell", engines, kind="notebook", **changes)


def dead(name: object, state: str = "ended", **changes: Any) -> Dict:
    return process(name, state, alive=False, **changes)


def peer(name: object, sent: int = 0, arrived: int = 0, received: int = 0) -> Dict:
    """The counts of messages between a process and this one."""
    counts = {"sent": sent, "arrived": arrived, "received": received}
    return {"uid": uid(name)[16:], "name": name, **counts}


def message(src: object, context_id: str = "", **attributes: object) -> Dict:
    """A message of a snapshot; values are given as their texts."""
    pairs = [[name, str(value)] for name, value in ({"src": repr(src)} | attributes).items()]
    number, _, name = context_id.partition(" ")  # "1f lib": the context 1f, whose name is lib
    shown = {"src": src, "context_id": number, "context": name or None}
    return {**shown, "bytes": 100, "attributes": pairs}


def flight(name: str, src: str, dest: str, sent: float, received: float, **changes: Any) -> Dict:
    """A message of a timeline, for which nobody waited."""
    return {
        "id": name,
        "src": src,
        "dest": dest,
        "number": 1,
        "sent": sent,
        "received": received,
        "bytes": 8,
        "attributes": [],
        "sent_at": None,
        "received_at": None,
        "late": None,
        "cost": 0.0,
        "since": None,
        **changes,
    }


def engine(process: Dict) -> Dict:
    """The process as an engine."""
    return {**process, "kind": "engine", "size": None}


def judge(*processes: Dict, before: Any = None, asker: object = None) -> Dict:
    """The diagnosis of these processes; ``asker``: the process whose user asks."""
    found = diagnose(Graph(picture(*processes), before, "" if asker is None else uid(asker)))
    check("diagnosis", found)
    return found
