"""The states of processes, as their segments would publish them."""

from __future__ import annotations

import json
from typing import Any

from sfm_kernel.observe.states import State

END = {"until": 0.0, "looked": 1000.0, "peers": [], "polls": None, "main": None}
RELAY, UID = "1" * 32, "a" * 32


def state(**changes: Any) -> State:
    """The state of a process that is blocked in a receive, as its segment would publish it."""
    facts = {"kind": "recv", "peers": ["A"], "all": False, "template": [["tag", "1", False]]}
    texts = {"waits": "recv(tag=1)", "facts": json.dumps(facts), "others": "", "summary": ""}
    about = {"info": '{"name": "B", "rank": 1, "pid": 7}', "code": "", "line": 3}
    counts = dict.fromkeys(("depth", "bytes", "sent", "received", "arrived", "examined"), 0)
    doing = {"uid": UID, "alive": True, "state": "blocked in recv", "call": 1, "since": 1000.0}
    return {**doing, **texts, **about, **counts, **END, **changes}
