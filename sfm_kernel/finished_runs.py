"""The last runs of this user's programs: a record of each, which the panel lists and opens.

Each run is a folder below ``$XDG_CACHE_HOME`` or ``~/.cache``, for this user only: ``record.html``,
see ``observe/record``, and ``run.json``, the schema's ``finished_run`` without its id. It appears
complete, by a rename, so that launchers that end at the same time do not disturb each other.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import time
from collections.abc import Callable, Mapping
from typing import Any

from sfm_kernel.c.cache import private_folder

VARIABLE = "SFM_RUNS"
"""The variable with the number of runs to keep. Jupyter servers set it for all that they start;
elsewhere nothing is kept without it, since no panel would show it."""

USUAL = 10
"""The number of runs that a Jupyter server has kept."""

MOST = 1000

_ID = re.compile(r"[0-9]{20}-[0-9a-f]{8}")
_UNFINISHED = "new-"
_FORGOTTEN = 3600.0  # s after which the launcher of an unfinished one no longer lives
_RECORD, _ABOUT = "record.html", "run.json"


def wanted() -> int:
    """The number of runs to keep.

    Raises ValueError, with a sentence: ``SFM_RUNS`` is no such number.
    """
    text = os.environ.get(VARIABLE, "").strip() or "0"
    if not (text.isascii() and text.isdigit()) or int(text) > MOST:
        raise ValueError(
            f"{VARIABLE} is the number of finished runs to keep, 0 to {MOST}, not {text!r}"
        )
    return int(text)


def keep(about: Mapping[str, Any], write: Callable[[str], object], most: int) -> None:
    """Add a run, and remove all but the newest.

    Args:
        about: the schema's ``finished_run``, without its id.
        write: writes the record to the path that it is given.
        most: how many runs then remain.
    Raises:
        OSError: it cannot be written, as where no folder of this user is writable. No part of it
            remains.
    """
    top = private_folder("runs")
    if top is None:
        raise OSError("no folder can be written that belongs to this user only")
    import shutil
    import tempfile

    made = tempfile.mkdtemp(prefix=_UNFINISHED, dir=top)
    try:
        write(os.path.join(made, _RECORD))
        with open(os.path.join(made, _ABOUT), "w", encoding="utf-8") as file:
            json.dump(about, file)
        for name in (_RECORD, _ABOUT):
            os.chmod(os.path.join(made, name), 0o600)
        os.rename(made, os.path.join(top, f"{time.time_ns():020d}-{os.urandom(4).hex()}"))
    except BaseException:
        shutil.rmtree(made, ignore_errors=True)
        raise
    _make_room(top, most)


class FinishedRuns:
    """Reads what was kept, and removes it."""

    def __init__(self) -> None:
        self._listed: tuple[object, list[dict[str, Any]]] = None, []

    def newest_first(self) -> list[dict[str, Any]]:
        """Each run as the schema's ``finished_run``. Without a change since the last call it reads
        nothing: the folder may be on another machine."""
        top = private_folder("runs")
        if top is None:
            return []
        stamp = os.stat(top).st_mtime_ns
        # Within a tick of the file system's clock, a second change leaves the same time.
        if self._listed[0] != stamp or time.time_ns() - stamp < 2_000_000_000:
            found = (_read(top, identity) for identity in reversed(_ids(top)))
            self._listed = stamp, [run for run in found if run is not None]
        return self._listed[1]

    def record(self, identity: str) -> bytes:
        """The record of a run. Raises FileNotFoundError if there is no such run."""
        top = private_folder("runs")
        if top is None or not _ID.fullmatch(identity):
            raise FileNotFoundError(identity)
        with open(os.path.join(top, identity, _RECORD), "rb") as file:
            return file.read()

    def remove(self, identity: str | None = None) -> None:
        """Remove a run, or all of them; one that does not exist is no error."""
        top = private_folder("runs")
        if top is not None:
            _remove(top, [one for one in _ids(top) if identity in (None, one)])


def _ids(top: str) -> list[str]:
    """The kept runs, the oldest first."""
    return sorted(filter(_ID.fullmatch, os.listdir(top)))


def _read(top: str, identity: str) -> dict[str, Any] | None:
    try:
        with open(os.path.join(top, identity, _ABOUT), encoding="utf-8") as file:
            return {"id": identity, **json.load(file)}
    except (OSError, ValueError, TypeError):  # it was removed meanwhile, or is damaged
        return None


def _make_room(top: str, most: int) -> None:
    import shutil

    _remove(top, _ids(top)[:-most])
    for name in os.listdir(top):
        path = os.path.join(top, name)
        with contextlib.suppress(OSError):
            if name.startswith(_UNFINISHED) and time.time() - os.stat(path).st_mtime > _FORGOTTEN:
                shutil.rmtree(path, ignore_errors=True)


def _remove(top: str, identities: list[str]) -> None:
    import shutil

    for identity in identities:
        shutil.rmtree(os.path.join(top, identity), ignore_errors=True)
