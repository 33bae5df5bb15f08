"""The changes of ``sfm_kernel.jupyter.controller`` to ipyparallel's controller."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from tests.jupyter.notebook import notebook

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
    """Controllers of clusters that started at the same time failed to start."""
    program = [sys.executable, "-c", _CHOOSE]
    done = subprocess.run(program, capture_output=True, text=True, check=False, timeout=120)
    assert done.stdout == "17 chosen and bound, 0 given to others meanwhile\n", done.stderr


_HEAR = """
import logging

from ipyparallel.controller.hub import Hub
from jupyter_client.session import Session

from sfm_kernel.jupyter import controller

controller.install()
logging.basicConfig(format="%(message).50s")
hub = Hub.__new__(Hub)
hub.session, hub.monitor_handlers = Session(key=b"key"), {}
for kind in ("iopub_welcome", "stream"):
    greeting = hub.session.serialize(hub.session.msg(kind))
    hub.dispatch_monitor_traffic([b"iopub", *greeting])
hub.dispatch_monitor_traffic([b"iopub", b"<IDS|MSG>", b"damaged"])
hub.dispatch_monitor_traffic([b"in", *hub.session.serialize(hub.session.msg("iopub_welcome"))])
"""


def test_a_greeting_is_no_error_and_all_else_without_a_topic_is() -> None:
    program = [sys.executable, "-c", _HEAR]
    done = subprocess.run(program, capture_output=True, text=True, check=False, timeout=120)
    assert done.returncode == 0, done.stderr
    assert done.stderr.count("Monitor message without topic") == 3, done.stderr


def test_nothing_in_the_controller_s_log_is_called_an_error() -> None:
    with notebook("%sfm start 2", "%%sfm\nprint('said')"):
        folder = Path(os.environ["IPYTHONDIR"], "profile_default", "log")
        (log,) = [path.read_text() for path in folder.glob("ipcontroller-*.log")]
    assert "heartbeat" in log and "ERROR" not in log, log
