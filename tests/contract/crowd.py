"""Several endpoints of one world, each with a thread that runs a program of the group."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import sfm_kernel
from sfm_kernel import Endpoint, Group
from tests.contract.conftest import Background

Program = Callable[[Group], Any]


class Crowd:
    """Endpoints 0 … n-1. ``run`` gives each a group of all; what they return or raise."""

    def __init__(self, world: str, n: int) -> None:
        self.world = world
        self.endpoints = [sfm_kernel.join(world) for _ in range(n)]

    def start(self, program: Program, **options: Any) -> list[Background]:
        def of(sfm: Endpoint) -> Callable[[], Any]:
            return lambda: program(Group(sfm, **options))

        return [Background(of(sfm)) for sfm in self.endpoints if not sfm.closed]

    def run(self, program: Program, **options: Any) -> list[Any]:
        calls = self.start(program, **options)
        try:
            return [outcome(call) for call in calls]
        except AssertionError as problem:  # it may wait for one that has raised
            problem.add_note(f"the calls have raised: {[call.error for call in calls]}")
            raise

    def close(self) -> None:
        for endpoint in self.endpoints:
            endpoint.close()


def outcome(background: Background) -> Any:
    """The value that the call returned, or the exception that it raised."""
    try:
        return background.result()
    except Exception as error:
        if isinstance(error, AssertionError):
            raise
        return error


@contextmanager
def crowd_of(world: str, n: int) -> Iterator[Crowd]:
    crowd = Crowd(world, n)
    try:
        yield crowd
    finally:
        crowd.close()
