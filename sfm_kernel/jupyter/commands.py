"""The text of ``%sfm help``, and the options that Tab offers after each command."""

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
    "hand": ("down",),
    "record": ("--title", "--name"),
    "debug": ("--attach", "--detach"),
    "expel": (),
    "output": (),
    "scale": (),
    "restart": (),
    "run": ("-n", "-m"),
    "help": (),
    "notebooks": (),
    "check": ("-n", "--seed", "--from", "--strict"),
}
"""The commands that take arguments, and their options."""

HELP = """\
%sfm start 4           start four engines, named 0 1 2 3
%sfm start A B         start two engines, named A and B
%sfm start 4 --site S  start them at the site S; without --site, it has the machine's name
%sfm start --sites A=4,B=4  engines in two sites with a gateway each; --delay 20ms --limit 200M
%sfm start --idle 30m  end the engines after 30 minutes without use (also 90s, 2h, never)
%sfm connect [NAME]    use a running cluster: another notebook's, ipcluster's by its id; also --site
%sfm status            what each process does, and what it waits for
%sfm queues            the messages that have not been received yet
%sfm matrix            who has sent how many messages to whom in the last run
%sfm sites             the sites, the connections between them, and what slows these down
%sfm why               why nothing goes on: who waits for whom, and which message nearly fits
%sfm output [A]        what the engines have printed in their last cell, if the page has lost it
%sfm watch             a live table of the processes, until all engines are idle; 30: for 30 seconds
%sfm detect on         also end deadlocks of the notebook's own calls; otherwise they are reported
%sfm timeline          what happened in the last run, message by message; FILE.json: for Perfetto
%sfm record run.html   the last run, its explanation and its code in one HTML file, to hand in; also
                       --title "Exercise 3" --name Ada, and `%%sfm --record run.html` for one cell
%sfm share URL         show this world to a class (its page has the URL); --name Ada, --code; off
%sfm hand              raise your hand on the page of the class that you share with; down lowers it
%sfm scale 6           change to six engines: start more, or end those with the highest ranks
%sfm debug A           look at the values of the error on engine A: p x, up, down, where, list, q
                       --attach, --detach: JupyterLab's debugger stops at breakpoints there
%sfm restart [A]       restart an engine (without a name: all); it keeps its name and rank
%sfm expel A           in a world of several machines, put a process out: it is not admitted again
%sfm stop              end the engines
%sfm clean             remove what killed processes left in shared memory
%sfm run -n 4 prog.py  run an MPI program (mpi4py) in four new processes; also -m module
%sfm check ring        check your function `ring`, an exercise; without a name: list the checks
%sfm notebooks [DIR]   copy the notebooks, which teach all this, into a new folder

%%sfm                  run the cell on all engines
%%sfm A   %%sfm 0,2    run it on some; options are ipyparallel's: --noblock --out r --no-stream …
%%sfm --no-detect      do not end a deadlock (otherwise it is ended after two seconds and explained)
%%sfm --watch          show what each process does while the cell runs
%%sfm c -n 4           a program in C (also c++); without main: functions, sfm.c.f(x) calls them

In a cell that runs on engines and in the notebook (which is called "home"):
  send(dest="B", tag="hello", data=[1, 2])     any attributes you like
  m = recv(tag="hello")                        waits for a message that has them
  print(m.src, m.data)
Also: recv_nb, peek, regcb, sfm; on engines rank and size. `from mpi4py import MPI` in a cell that
runs on engines gives MPI on the same queue."""


def help_of(words: Sequence[str], known: Iterable[str]) -> str:
    """The text of ``%sfm help``, or of ``%sfm help COMMAND``.

    Raises:
        UsageError: there is no such command.
    """
    if not words:
        return HELP
    name = words[0].removeprefix("%sfm").strip()
    if len(words) > 1 or name not in known:
        text = " ".join(words)
        raise UsageError(f"%sfm help: no command is called {text!r}. Known: {', '.join(known)}")
    lines = [line for line in HELP.splitlines() if line.split()[:2] == ["%sfm", name]]
    if given := OPTIONS.get(name):
        lines.append(f"options: {' '.join(given)}")
    return "\n".join(lines or ["%sfm help [COMMAND]    explains one command, or lists all"])


def documented_cells(magic: Callable[..., Any]) -> Callable[..., Any]:
    """The cell magic with the text that ``%%sfm?`` shows."""
    lines = [line for line in HELP.splitlines() if line.startswith("%%sfm")]
    about = "Run the cell on engines: on all of them, or on those that the line names."
    _, start, rest = options.parser.format_help().partition("positional arguments:")
    magic.__doc__ = "\n".join([about, "", *lines, "", start + rest])
    return magic


def documented(magic: Callable[..., Any]) -> Callable[..., Any]:
    """The line magic with the text of ``%sfm help``, which ``%sfm?`` shows."""
    magic.__doc__ = HELP
    return magic
