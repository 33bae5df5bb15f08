"""What segments say, without segments."""

from __future__ import annotations

import json
from typing import Any

from sfm_kernel.observe.states import State

END = {"until": 0.0, "peers": [], "polls": None, "main": None}
RELAY, UID = "1" * 32, "a" * 32


def state(**changes: Any) -> State:
    """What the segment of a process says that is blocked in a receive."""
    facts = {"kind": "recv", "peers": ["A"], "all": False, "template": [["tag", "1", False]]}
    texts = {"waits": "recv(tag=1)", "facts": json.dumps(facts), "others": "", "summary": ""}
    about = {"info": '{"name": "B", "rank": 1, "pid": 7}', "code": "", "line": 3}
    counts = dict.fromkeys(("depth", "bytes", "sent", "received", "arrived", "examined"), 0)
    doing = {"uid": UID, "alive": True, "state": "blocked in recv", "call": 1, "since": 1000.0}
    return {**doing, **texts, **about, **counts, **END, **changes}
