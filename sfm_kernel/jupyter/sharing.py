"""``%sfm share``: what this notebook's world does, for a class that its user chooses."""

from __future__ import annotations

import getpass
import os
from collections.abc import Sequence
from urllib.parse import urlsplit

from IPython.core.error import UsageError

from sfm_kernel.classroom.sharing import NotShared, Share
from sfm_kernel.jupyter.home import Home
from sfm_kernel.jupyter.lines import Lines
from sfm_kernel.jupyter.recording import sources, wanted

_USAGE = (
    "%sfm share takes the address that the class's page shows: `%sfm share http://…/#…`, also with "
    "--name Ada and --code; or `off`; or nothing, which says what is shared"
)

_SEEN = """\
Whoever holds the class sees of this world, until `%sfm share off` or the end of the engines:
  its processes, what each does, since when, and in which line;
  what waits in their inboxes: names and short values of the first messages;
  why nothing goes on, as `%sfm why` says it, and deadlocks that were told here."""
_CODE = "  the code around the lines where they are."
_REST = "Nothing else of this notebook is sent, and nobody can change anything here."
_NO_CODE = (
    "No code (`--code` adds the lines where processes are), and nothing else of this notebook,"
)
_NOR = "is sent, and nobody can change anything here."

_EVERYBODY = ("jovyan", "root", "user")
"""Names of accounts that tell nobody apart."""


def start(home: Home, lines: Lines, words: Sequence[str]) -> Share:
    """Share this notebook's world; says what is seen.

    Raises:
        UsageError: nothing is shared.
    """
    shows_code = "--code" in words
    url, values = wanted([one for one in words if one != "--code"], ("--name",), _USAGE)
    name = values["--name"] or _user()
    told = home.told
    code = sources(lines) if shows_code else None
    remote = home.view.states if home.url else None
    try:
        share = Share(home.sfm, url, name, code=code, told=told, remote=remote)
    except NotShared as problem:
        raise UsageError(f"%sfm share: nothing is shared: {problem}") from None
    parts = urlsplit(url)
    print(f"shared as {name!r} with {parts.scheme}://{parts.netloc}{parts.path}")
    print(_SEEN)
    print(f"{_CODE}\n{_REST}" if shows_code else f"{_NO_CODE}\n{_NOR}")
    if parts.scheme == "http" and parts.hostname not in ("127.0.0.1", "localhost", "::1"):
        print("It goes over the network as plain HTTP: others on its way can read it.")
    return share


def state(share: Share | None) -> str:
    """What is shared, in words."""
    if share is None:
        return f"nothing is shared. {_USAGE}"
    code = "with the code where processes are" if share.shows_code else "without code"
    where = share.url.partition("#")[0]
    now = f"; but now: {share.problem}" if share.problem else ""
    return f"shared as {share.name!r} with {where}, {code}{now}. `%sfm share off` ends it"


def _user() -> str:
    name = os.environ.get("JUPYTERHUB_USER") or getpass.getuser()
    if name in _EVERYBODY:
        raise UsageError(f"%sfm share: say who you are: --name Ada (you are {name!r} here)")
    return name
