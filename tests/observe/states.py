"""Programs whose processes are in every state, with all kinds of values in messages."""

from __future__ import annotations

import ctypes
import threading
import time
from typing import Any

import numpy as np

from sfm_kernel import Endpoint, Group

HTML = "<img src=x onerror=alert(1)>"
NASTY: dict[str, Any] = {
    "html": HTML,
    "control": "a\tb\nc\x1b[31m\x1f\x00",
    "long": "x" * 100_000,
    "wide": "→€😀" * 50,
    "quotes": 'it\'s "quoted" \\ ',
    "lone": "\ud800",
    "array": np.zeros((30, 40)),
    "scalar": np.float32(1.5),
    "strange": np.zeros(3, dtype=[("a", "i4"), ("b", "f8")]),
    "raw": b"\x00\xff" * 5,
    "big": 1 << 200,
    "inf": float("-inf"),
    "nan": float("nan"),
    "none": None,
    "nested": {"a": [1, {2: "3"}]},
    "n" * 500: "a long name",
    "tab\tand\nline": "names, too",
}


def nasty(sfm: Endpoint) -> None:
    if sfm.rank == 0:
        for n in range(60):
            sfm.send(dest=1, n=n, **(NASTY if n % 20 == 0 else {}))
        sfm.recv(**{name: NASTY[name] for name in ("html", "control", "long", "wide", "none")})
    else:
        sfm.recv(**{HTML: HTML, "f": lambda value: value == HTML, "big": 1 << 200})


STATES = {
    "holds the GIL": "running",
    "computes": "running",
    "receives": "blocked in recv",
    "sends": "blocked in send",
    "meets": "blocked in collective",
}
"""The processes of ``occupied``, and the state that each is seen in."""


def occupied(sfm: Endpoint) -> None:
    group = Group(sfm)
    group.barrier()
    if sfm.name == "holds the GIL":
        ctypes.PyDLL(None).sleep(60)
    elif sfm.name == "computes":
        while True:
            time.sleep(0.01)
    elif sfm.name == "receives":
        for n in range(20):
            name = f"{n} {HTML}\ud800" + "→" * 100
            threading.Thread(target=time.sleep, args=(60,), name=name, daemon=True).start()
        sfm.regcb(print, html=HTML, lone="\ud800", long="x" * 1000)
        sfm.recv(tag="never")
    elif sfm.name == "sends":
        sfm.with_buffering(0).send(dest="receives", tag="other", data=np.ones(10))
    else:
        group.barrier()
