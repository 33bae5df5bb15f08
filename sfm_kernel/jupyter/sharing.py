"""``%sfm share``: shows this notebook's world to a class that its user chooses."""

from __future__ import annotations

import getpass
import os
from collections.abc import Sequence
from urllib.parse import urlsplit

from IPython.core.error import UsageError

from sfm_kernel.classroom.progress import StudentProgress
from sfm_kernel.classroom.sharing import NotShared, Share
from sfm_kernel.jupyter.home import Home
from sfm_kernel.jupyter.lines import Lines
from sfm_kernel.jupyter.recording import parse_words, sources
from sfm_kernel.transport.address import LOOPBACK_HOSTS

_USAGE = (
    "%sfm share takes the address on the class's page: `%sfm share http://…/#…`, also with "
    "--name Ada and --code; or `off`; or nothing, which shows what is shared"
)

_SEEN = """\
The teacher sees of this world, until `%sfm share off` or the end of the engines:
  its processes, what each does, since when, and in which line;
  the messages in their inboxes: names and short values of the first ones;
  why nothing goes on, as `%sfm why` explains it, and deadlocks that were reported here;
  a hand that you raise with `%sfm hand`;
  which exercises `%sfm check` has tried in this notebook, how often, and whether they are right,
  wrong or hang, but not your answers. This the class keeps when you no longer share."""
_CODE = """\
  the code around the lines where the processes are.
Nothing else of this notebook is sent, and nobody can change anything in it."""
_NO_CODE = """\
No code (`--code` adds the lines where processes are), and nothing else of this notebook,
is sent, and nobody can change anything in it."""

_EVERYBODY = ("jovyan", "root", "user")
"""Account names that many users share."""


def start(home: Home, lines: Lines, words: Sequence[str], progress: StudentProgress) -> Share:
    """Share this notebook's world, and print what the teacher sees.

    Raises:
        UsageError: nothing is shared.
    """
    shows_code = "--code" in words
    url, values = parse_words([word for word in words if word != "--code"], ("--name",), _USAGE)
    name = values["--name"] or _user()
    code = sources(lines) if shows_code else None
    remote = home.view.states if home.cluster.url else None
    try:
        share = Share(
            home.sfm,
            url,
            name,
            code=code,
            deadlocks=home.deadlocks,
            progress=progress,
            remote=remote,
        )
    except NotShared as problem:
        raise UsageError(f"%sfm share: nothing is shared: {problem}") from None
    parts = urlsplit(url)
    print(f"shared as {name!r} with {parts.scheme}://{parts.netloc}{parts.path}")
    print(_SEEN)
    print(_CODE if shows_code else _NO_CODE)
    if parts.scheme == "http" and parts.hostname not in LOOPBACK_HOSTS:
        print("The network carries it as plain HTTP: others on the network can read it.")
    return share


def state(share: Share | None) -> str:
    """A sentence that says what is shared."""
    if share is None:
        return f"nothing is shared. {_USAGE}"
    code = "with the code where processes are" if share.shows_code else "without code"
    address = share.url.partition("#")[0]
    now = f"; but now: {share.problem}" if share.problem else ""
    return f"shared as {share.name!r} with {address}, {code}{now}. `%sfm share off` ends it"


def _user() -> str:
    name = os.environ.get("JUPYTERHUB_USER") or getpass.getuser()
    if name in _EVERYBODY:
        raise UsageError(f"%sfm share: add your name: --name Ada (your account is {name!r})")
    return name
