"""Worlds of a home and of engines, as a notebook has them, in one process."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager

import sfm_kernel
from sfm_kernel import Endpoint


@contextmanager
def serving(
    world: str, size: int, serve: Callable[[Endpoint], object] | None = None
) -> Iterator[Endpoint]:
    """Home of a world whose engines serve in threads, as cells of a notebook do, or do nothing.

    At the end the engines must have returned.
    """
    with ExitStack() as stack:
        home = stack.enter_context(sfm_kernel.join(world, name="home", guest=True))
        engines = [stack.enter_context(sfm_kernel.join(world, rank=rank)) for rank in range(size)]
        threads = [threading.Thread(target=serve, args=(sfm,)) for sfm in engines if serve]
        for thread in threads:
            thread.start()
        yield home
        engines[0].close()  # a process that still waits for engine 0 would never end
        for thread in threads:
            thread.join()
