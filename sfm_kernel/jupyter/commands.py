"""The commands of ``%sfm`` in words: what ``%sfm help`` says, and which options Tab offers."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from IPython.core.error import UsageError

from sfm_kernel.jupyter.cell import options

OPTIONS = {
    "start": ("--site", "--sites", "--delay", "--limit", "--idle"),
    "connect": ("--site",),
    "detect": ("on", "off"),
    "timeline": (),
    "watch": (),
    "share": ("--name", "--code", "off"),
    "record": ("--title", "--name"),
    "scale": (),
    "restart": (),
    "run": ("-n", "-m"),
    "help": (),
    "check": ("-n", "--seed", "--from", "--strict"),
}
"""The commands after which something may follow, and the options among that."""

HELP = """\
%sfm start 4           start four engines, named 0 1 2 3
%sfm start A B         start two engines, named A and B
%sfm start 4 --site S  call the place where they are S; without it, it has the machine's name
%sfm start --sites A=4,B=4  engines in two sites with a gateway each; --delay 20ms --limit 200M
%sfm start --idle 30m  end engines that nobody has used for so long (90s, 2h, never)
%sfm connect [ID]      use a cluster that runs already (a second notebook, ipcluster); also --site
%sfm status            who runs, and what each one waits for
%sfm queues            the messages that nobody has received yet
%sfm sites             the sites, the connections between them, and what costs time there
%sfm why               why nothing goes on: who waits for whom, and which message nearly fits
%sfm watch             the same as a table that lives, until the engines rest; 30: for 30 seconds
%sfm detect on         end a deadlock of the notebook's own calls, too, which else is only told
%sfm timeline          what happened in the last run, message by message; FILE.json: for Perfetto
%sfm record run.html   the last run, its explanation and its code in one HTML file, to hand in; also
                       --title "Exercise 3" --name Ada, and `%%sfm --record run.html` for one cell
%sfm share URL         show this world to a class, whose page has the URL; --name Ada, --code; off
%sfm scale 6           have six engines: more are started, or the highest ranks end
%sfm restart [A]       start an engine again (all without a name); it keeps its name and rank
%sfm stop              end the engines
%sfm clean             remove what killed processes left in shared memory
%sfm run -n 4 prog.py  run an MPI program (mpi4py) in four processes of its own; also -m module
%sfm check ring        try your function `ring`, an exercise; without a name: which there are

%%sfm                  run the cell on all engines
%%sfm A   %%sfm 0,2    run it on some; options are ipyparallel's: --noblock --out r --no-stream …
%%sfm --no-detect      let a deadlock stand (else it is ended after two seconds, and explained)
%%sfm --watch          show what each process does while the cell runs
%%sfm c -n 4           a program in C (also c++); without main: functions, sfm.c.f(x) calls them

In a cell of an engine and in the notebook (which is "home"):
  send(dest="B", tag="hello", data=[1, 2])     any attributes you like
  m = recv(tag="hello")                        waits for a message that has them
  print(m.src, m.data)
Also: recv_nb, peek, regcb, sfm; in engines rank and size. `from mpi4py import MPI` in a cell of an
engine gives MPI on the same queue."""


def help_of(words: Sequence[str], known: Iterable[str]) -> str:
    """What ``%sfm help`` says, or what it says of one command.

    Raises:
        UsageError: there is no such command.
    """
    if not words:
        return HELP
    name = words[0].removeprefix("%sfm").strip()
    if len(words) > 1 or name not in known:
        what = " ".join(words)
        raise UsageError(f"%sfm help: no command is called {what!r}. There: {', '.join(known)}")
    lines = [line for line in HELP.splitlines() if line.split()[:2] == ["%sfm", name]]
    if given := OPTIONS.get(name):
        lines.append(f"options: {' '.join(given)}")
    return "\n".join(lines or ["%sfm help [COMMAND]    explains one command, or lists all"])


def documented_cells(magic: Callable[..., Any]) -> Callable[..., Any]:
    """``%%sfm?`` says what it takes."""
    lines = [line for line in HELP.splitlines() if line.startswith("%%sfm")]
    about = "Run the cell on engines: on all, or on those that are named."
    _, start, rest = options.parser.format_help().partition("positional arguments:")
    magic.__doc__ = "\n".join([about, "", *lines, "", start + rest])
    return magic


def documented(magic: Callable[..., Any]) -> Callable[..., Any]:
    """A magic that says with ``?`` what ``%sfm help`` says."""
    magic.__doc__ = HELP
    return magic
