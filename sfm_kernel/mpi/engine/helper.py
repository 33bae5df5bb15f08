"""Threads of MPI's own, each of which works for a call that the program makes in another one."""

from __future__ import annotations

import itertools
import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from sfm_kernel.endpoint import Endpoint
from sfm_kernel.endpoint.seen import helpers

_numbers = itertools.count(1)


class Helper:
    """A thread that is one with the call for which it works, as observers see it.

    Attributes:
        awaited: how many calls wait for it now. They tell observers what it waits for; one that
            nobody waits for goes on beside the program.
    """

    _is_apart = False

    def __init__(self, sfm: Endpoint) -> None:
        self._inbox, self._number = sfm._inbox, next(_numbers)
        self.awaited = 0

    def text(self) -> str:
        """The call that it carries out now; "" for none."""
        return ""

    def _beside(self) -> str:
        """With what it could go on beside the program's own calls."""
        return "" if self.awaited else self.text()

    def thread(self, function: Callable[[], object], name: str) -> threading.Thread:
        """A thread for it, which is to be started."""
        thread = threading.Thread(target=function, name=name, daemon=True)
        helpers[thread] = self._beside
        return thread

    @contextmanager
    def helping(self, place: int) -> Iterator[None]:
        """This thread works for the call that was made there (``Inbox.place``)."""
        self._inbox.help(self._number, place, self._is_apart)
        try:
            yield
        finally:
            self._inbox.end_help()

    @property
    def facts(self) -> dict[str, Any] | None:
        """What it waits for, as ``facts`` in ``endpoint/seen.py`` has it; None if that is not
        known."""
        told = self._inbox.helper_facts(self._number)
        return None if told is None else json.loads(told)
