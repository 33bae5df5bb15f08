"""What ``sfm_kernel.jupyter.controller`` changes in ipyparallel's controller."""

from __future__ import annotations

import subprocess
import sys

_CHOOSE = """
import socket

import zmq
from ipyparallel.controller.app import IPController

from sfm_kernel.jupyter import controller

controller.install()
chosen = {IPController().next_port() for _ in range(17)}
given = set()
for _ in range(60_000):  # several times as many as there are
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        given.add(one.getsockname()[1])
with zmq.Context() as context, context.socket(zmq.ROUTER) as router:
    for port in chosen:
        router.bind(f"tcp://127.0.0.1:{port}")
print(len(chosen), "chosen and bound,", len(chosen & given), "given to others meanwhile")
"""


def test_nobody_is_given_its_ports_before_it_binds_them() -> None:
    """A class that started its clusters at once had controllers that did not start."""
    program = [sys.executable, "-c", _CHOOSE]
    done = subprocess.run(program, capture_output=True, text=True, check=False, timeout=120)
    assert done.stdout == "17 chosen and bound, 0 given to others meanwhile\n", done.stderr
