"""``%sfm expel``: puts a process out of the notebook's world."""

from __future__ import annotations

from collections.abc import Sequence

from IPython.core.error import UsageError

from sfm_kernel.directory import Member
from sfm_kernel.errors import WorldError
from sfm_kernel.jupyter.home import Home


def expel(home: Home, words: Sequence[str]) -> None:
    """Put the process with this name out of the world, for its directory server."""
    if len(words) != 1:
        raise UsageError("%sfm expel takes the name of one process: `%sfm expel B`")
    client = home.sfm.directory.client
    if client is None:
        raise UsageError(
            "%sfm expel is for worlds of several machines. The processes of this one are all "
            "yours, on this machine: `%sfm stop` ends them, `%sfm restart B` one of them"
        )
    try:
        answer, _ = client.exchange("expel", name=words[0])
    except WorldError as problem:
        raise UsageError(f"%sfm expel: {problem}") from None
    member = Member.from_json(answer["expelled"])
    print(
        f"{member.name} (process {member.pid} on {member.host}) was put out of this world. It runs "
        f"on, and is not admitted again with its key"
    )
