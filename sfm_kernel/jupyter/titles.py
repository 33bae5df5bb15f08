"""The names that people know worlds by: the notebook that has started a cluster, or a program.

They are read from /proc, of processes of this user: nothing has to be sent or stored.
"""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress

SESSION = "JPY_SESSION_NAME"
"""The variable in which a Jupyter server tells a kernel the path of its notebook."""

_PROGRAM = re.compile(r"\.(py|c|cc|cpp|cxx|zip|tgz|tar\.gz)$", re.IGNORECASE)
_WORD = re.compile(r"\w[\w.-]*")
_PYTHON = re.compile(r"python[\d.]*", re.ASCII)
_OWN = "sfm_kernel."


def notebook_here() -> str:
    """The name of the notebook that this kernel runs; "" if it is not known."""
    return os.path.basename(os.environ.get(SESSION, ""))


def notebook_of(controller: int | None) -> str:
    """The name of the notebook that has started a cluster's controller; "" if it is not known.

    A controller inherits its kernel's environment.
    """
    for variable in _read(controller, "environ"):
        name, _, value = variable.partition("=")
        if name == SESSION:
            return os.path.basename(value)
    return ""


def names_of(clusters: Mapping[str, str]) -> dict[str, str]:
    """The names by which clusters are connected to, by id.

    A name is the notebook's if that is one word and no other cluster has it, or else the id.

    Args:
        clusters: the notebooks of all clusters, by id.
    """
    count = Counter(clusters.values())
    return {
        identity: notebook if count[notebook] == 1 and _WORD.fullmatch(notebook) else identity
        for identity, notebook in clusters.items()
    }


def program_of(pid: int | None) -> str:
    """The name of the program that a process runs; "" if it is none, or not known.

    A process that this package has started runs the program of whoever has called the package.
    """
    for ancestor in ancestors(pid):
        words = _read(ancestor, "cmdline")
        if not words or not _PYTHON.fullmatch(os.path.basename(words[0])):
            # A program in C; above a process of this package, it is a shell or a server.
            return os.path.basename(words[0]) if words and ancestor == pid else ""
        script, module, rest = _python(words[1:])
        if script:
            return os.path.basename(script) if _PROGRAM.search(script) else ""
        if not module.startswith(_OWN):
            return ""
        if named := next(filter(_PROGRAM.search, rest), ""):  # the launcher's, after its options
            return os.path.basename(named)
    return ""


def ancestors(pid: int | None) -> Iterator[int]:
    """The process, its parent, and so on, as far as they can be read."""
    seen: set[int] = set()
    while pid and pid not in seen:
        yield pid
        seen.add(pid)
        try:
            with open(f"/proc/{pid}/stat", "rb") as file:
                pid = int(file.read().rpartition(b")")[2].split()[1])
        except (OSError, ValueError, IndexError):
            return


def _python(words: Iterable[str]) -> tuple[str, str, list[str]]:
    """The script and the module that Python runs, one of which is empty; and their arguments."""
    rest = list(words)
    while rest and rest[0].startswith("-"):
        option = rest.pop(0)
        if option == "-m" and rest:
            return "", rest[0], rest[1:]
        if option == "-c":
            return "", "", []
        if option in ("-W", "-X"):
            del rest[:1]
    return (rest[0], "", rest[1:]) if rest else ("", "", [])


def _read(pid: int | None, name: str) -> list[str]:
    """The texts of a file of /proc; none if the process has ended, or belongs to another user."""
    with suppress(OSError):
        with open(f"/proc/{pid}/{name}", "rb") as file:
            return os.fsdecode(file.read()).removesuffix("\0").split("\0")
    return []
