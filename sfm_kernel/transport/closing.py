"""Objects that close at the end of a with statement."""

from __future__ import annotations

from typing import Self


class Closing:
    """A context manager that closes the object at the end.

    (This file imports nothing heavy: the launcher of programs in C needs it, too.)
    """

    def close(self) -> object: ...

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
