"""The processes of ``sfm_kernel.run`` are forks here: see ``tests.forks``."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

import pytest

import sfm_kernel
from sfm_kernel.spawn.process import Process
from tests import forks
from tests.mpi.launching import PATIENCE
from tests.mpi.sites import Run


@pytest.fixture(autouse=True)
def _forked(forked: None) -> None:
    pass


@pytest.fixture
def run_at(monkeypatch: pytest.MonkeyPatch) -> Run:
    """``run_at(layout, function, ...)``: as ``sfm_kernel.run``, each process at its site."""
    monkeypatch.setenv("SFM_TRANSPORT", "zmq")
    monkeypatch.setenv("SFM_SITE", "")

    def run(layout: str, function: Callable[..., Any], *args: Any, **options: Any) -> list[Any]:
        sites = iter(layout)

        def start(orders: int, report: int) -> Process:
            os.environ["SFM_SITE"] = next(sites)  # processes are started by rank
            return forks.Fork(orders, report)

        monkeypatch.setattr("sfm_kernel.spawn.job.fresh", start)
        options = {"timeout": PATIENCE} | options
        return sfm_kernel.run(function, len(layout), *args, **options)

    return run
