"""``%sfm`` starts, shows and stops engines; ``%%sfm`` runs a cell on them."""

from __future__ import annotations

import difflib
import shlex
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from IPython.core.error import UsageError
from IPython.core.magic import Magics, cell_magic, line_magic, magics_class, no_var_expand
from IPython.display import display

from sfm_kernel.errors import BadName, SFMError, UnknownName
from sfm_kernel.jupyter import c_cells, mpi
from sfm_kernel.jupyter import cell as cells
from sfm_kernel.jupyter.engine import NAMES, is_engine
from sfm_kernel.jupyter.helptext import HELP
from sfm_kernel.jupyter.home import Home
from sfm_kernel.jupyter.lines import Lines
from sfm_kernel.jupyter.observed import Watcher
from sfm_kernel.jupyter.sites import Sites
from sfm_kernel.jupyter.starting import wanted_engines, wanted_site
from sfm_kernel.jupyter.tables import Diagnosis, SitesView, queue_table, status_table
from sfm_kernel.observe import explain, snapshot, timeline
from sfm_kernel.observe.places import words
from sfm_kernel.transport.base import Member

_JUDGE = 1.0
"""Seconds that `%sfm why` waits for cells and calls that have begun just now."""
_WITH_WORDS = ("start", "connect", "scale", "restart", "run", "timeline", "detect")


@magics_class
class SFMMagics(Magics):
    """The magics of one notebook."""

    def __init__(self, shell: Any) -> None:
        super().__init__(shell)
        self._home: Home | None = None
        self._given: dict[str, object] = {}
        self._lines = Lines(shell)
        self._c_cells = c_cells.CCells(self._lines)
        self._ends = False  # whether a deadlock of this notebook's own calls is ended
        self._watcher: Watcher | None = None
        self._depth = 0  # of cells that run inside others
        self._commands = {
            "start": self._start,
            "connect": self._connect,
            "status": self._status,
            "queues": self._queues,
            "sites": self._sites,
            "why": self._why,
            "detect": self._detect,
            "timeline": self._timeline,
            "scale": self._scale,
            "restart": self._restart,
            "stop": self._stop,
            "clean": self._clean,
            "run": self._run,
            "help": self._help,
        }

    @no_var_expand
    @line_magic("sfm")
    def line(self, line: str) -> None:
        """Start, show and stop engines; ``%sfm help`` lists how."""
        try:
            name, *words = shlex.split(line) or ["help"]
        except ValueError as problem:
            raise UsageError(f"%sfm: {problem}") from None
        command = self._commands.get(name)
        if command is None:
            near = difflib.get_close_matches(name, self._commands, 1)
            hint = f"did you mean `%sfm {near[0]}`? " if near else ""
            known = ", ".join(self._commands)
            raise UsageError(f"%sfm {name}: {hint}Known: {known}. `%sfm help` explains them")
        if words and name not in _WITH_WORDS:
            raise UsageError(f"%sfm {name} takes nothing after it, not {' '.join(words)!r}")
        with _brief():
            command(words)

    def complete(self, shell: Any, event: Any) -> list[str]:
        """What can follow ``%sfm`` and Tab."""
        words = str(event.line).split()
        is_first = len(words) <= 1 or (len(words) == 2 and not str(event.line).endswith(" "))
        return [*self._commands] if is_first else []

    @no_var_expand
    @cell_magic("sfm")
    def cell(self, line: str, cell: str) -> Any:
        """Run the cell on engines: all, or those that are named.

        The options are those of ipyparallel's ``%%px``; ``%sfm help`` shows the first ones.
        """
        if words := c_cells.language(line):
            with _brief():
                self._c(words, cell)
            return None
        args = cells.options(line)
        home = self._running()
        with _brief():
            home.check()
            members = _usage("%%sfm", home, lambda: home.resolve(args.names))
            if not args.names and (ended := home.ended()):
                print(f"without {', '.join(ended)}, which ended: `%sfm restart`", file=sys.stderr)
            runner = cells.CellRunner(self.shell, home, self._lines, self._waits)
            return runner.run(cell, members, args)

    def _c(self, words: Sequence[str], cell: str) -> None:
        """Run a cell in C."""
        self.shell.user_ns.setdefault("sfm", c_cells.Alone())
        home = None if self._home is None or self._ended(self._home) else self._home

        def engines(names: list[str]) -> Sequence[Member]:
            there = home if home is not None else self._running()
            return _usage("%%sfm c", there, lambda: there.resolve(names))

        def load(members: Sequence[Member], function: Any, *arguments: Any) -> None:
            if home is not None:
                mpi.call(home, members, function, *arguments)

        self._c_cells.run(words, cell, engines, load)

    # ---- commands

    def _start(self, words: Sequence[str]) -> None:
        names, site, sites = wanted_engines(words)
        if self._home is not None and not self._ended(self._home):
            self._already(self._home, names, site, sites)
            return
        self.leave()
        began = time.monotonic()
        self._enter(Home.start(names, site, sites))
        print(f"{self._engines_text()} ({time.monotonic() - began:.1f} s)")

    def _connect(self, words: Sequence[str]) -> None:
        words, site = wanted_site("connect", words)
        if len(words) > 1:
            raise UsageError("%sfm connect takes at most one cluster id, and --site NAME")
        if self._home is not None:
            raise UsageError(f"connected already: {self._engines_text()}. `%sfm stop` first")
        try:
            self._enter(Home.connect(words[0] if words else None, site))
        except UnknownName as problem:
            raise UsageError(f"%sfm connect: {_clusters(words, problem.known)}") from None
        print(self._engines_text())

    def _status(self, words: Sequence[str]) -> None:
        display(status_table(self._processes()))

    def _queues(self, words: Sequence[str]) -> None:
        display(queue_table(self._processes()))

    def _sites(self, words: Sequence[str]) -> None:
        home = self._running()
        display(SitesView(snapshot(home.sfm, home.pictures())))

    def _why(self, words: Sequence[str]) -> None:
        home = self._running()
        diagnosis = explain(home.sfm, _JUDGE, home.pictures, at_work=home.at_work)
        display(Diagnosis(diagnosis))

    def _detect(self, words: Sequence[str]) -> None:
        if list(words) not in (["on"], ["off"], []):
            raise UsageError(f"%sfm detect takes `on` or `off`, not {' '.join(words)!r}")
        if words:
            self._ends = words == ["on"]
        does = "are ended" if self._ends else "are told, and stand"
        print(f"deadlocks of this notebook's own calls {does}; `%%sfm --no-detect` is for cells")

    def _timeline(self, words: Sequence[str]) -> None:
        if len(words) > 1:
            raise UsageError("%sfm timeline takes at most one file: `%sfm timeline run.json`")
        found = timeline(self._running().sfm)
        if words:
            found.to_chrome(words[0])
            print(f"{words[0]}: open it in https://ui.perfetto.dev, or chrome://tracing")
        else:
            display(found)

    def _scale(self, words: Sequence[str]) -> None:
        home = self._owned("scale")
        if len(words) != 1 or not words[0].isdigit():
            raise UsageError(
                "%sfm scale takes the number of engines there are to be: `%sfm scale 6`"
            )
        try:
            home.rescale(int(words[0]))
        except BadName as problem:
            raise UsageError(f"%sfm scale takes {problem}") from None
        print(self._engines_text())

    def _restart(self, words: Sequence[str]) -> None:
        home = self._owned("restart")
        began = time.monotonic()
        restarted = _usage("%sfm restart", home, lambda: home.restart(words))
        names = ", ".join(_title(member) for member in restarted)
        print(f"started again: {names} in {time.monotonic() - began:.1f} s")

    def _stop(self, words: Sequence[str]) -> None:
        if self._home is None:
            print("nothing to stop: no cluster was started here")
            return
        own = self._home.own
        self.leave()
        print("stopped" if own else "left the cluster; it runs on until who started it stops it")

    def _clean(self, words: Sequence[str]) -> None:
        from sfm_kernel.directory import clean

        removed = clean()
        print("\n".join(f"removed {path}" for path in removed) or "nothing to clean")

    def _run(self, words: Sequence[str]) -> None:
        home = None if self._home is None or self._ended(self._home) else self._home
        mpi.run(words, len(home.engines()) if home is not None else 0)

    def _help(self, words: Sequence[str]) -> None:
        print(HELP)

    # ---- the notebook's cluster

    def watch_cells(self) -> None:
        """From now on observers see which cell of this notebook runs, and whether one does."""
        self._lines.publish()
        events = self.shell.events
        events.register("pre_run_cell", self._lines.of_notebook)
        events.register("pre_execute", self._begin)
        events.register("post_execute", self._end)

    def unwatch_cells(self) -> None:
        """Undo ``watch_cells``."""
        events = self.shell.events
        events.unregister("pre_run_cell", self._lines.of_notebook)
        events.unregister("pre_execute", self._begin)
        events.unregister("post_execute", self._end)

    def _begin(self) -> None:
        self._depth += 1
        if self._home is not None:
            self._home.sfm.show_running(True)
            if self._watcher is None:
                self._watcher = Watcher(self._home, end=self._ends, own=True)

    def _end(self) -> None:
        self._depth = max(0, self._depth - 1)
        if self._depth == 0:
            self._unwatch()
        if self._home is not None:
            self._home.sfm.show_running(False)

    def _unwatch(self) -> None:
        if self._watcher is not None:
            watcher, self._watcher = self._watcher, None
            watcher.stop()

    def _enter(self, home: Home) -> None:
        self._home = home
        home.sfm.describe(kind="notebook")
        self._given = {"sfm": home.sfm} | {name: getattr(home.sfm, name) for name in NAMES}
        self.shell.push(self._given, interactive=False)

    def leave(self) -> None:
        """Leave the world, and stop the cluster if this notebook started it."""
        self._unwatch()
        if self._home is not None:
            home, self._home = self._home, None
            self.shell.drop_by_id(self._given)
            home.stop()

    @property
    def client(self) -> Any:
        """See ``sfm_kernel.jupyter.client``."""
        return self._running().client

    def _running(self) -> Home:
        if self._home is None:
            raise UsageError("no engines: `%sfm start 4` starts four, `%sfm help` shows more")
        return self._home

    def _owned(self, command: str) -> Home:
        home = self._running()
        if not home.own:
            raise UsageError(f"%sfm {command} works in the notebook that started the engines")
        return home

    def _processes(self) -> list[dict[str, Any]]:
        home = self._running()
        processes: list[dict[str, Any]] = snapshot(home.sfm, home.pictures())["processes"]
        return processes

    def _waits(self) -> dict[str, str]:
        """In which call each process is blocked, by name."""
        try:
            ones = [one for one in self._processes() if one["wait"]]
            return {str(one["name"]): _call(one) for one in ones}
        except OSError:  # the world is gone; an interrupt must work nevertheless
            return {}

    @staticmethod
    def _ended(home: Home) -> bool:
        try:
            home.check()
        except SFMError:
            return True
        return False

    def _already(self, home: Home, names: list[str], site: str | None, sites: Sites | None) -> None:
        does = "ends" if home.own else "leaves"
        text = f"running already: {self._engines_text()}. `%sfm stop` {does} them"
        if (home.names, home.sites) != (names, sites) or site not in (None, home.sfm.site):
            raise UsageError(f"%sfm start: nothing started. {text}")
        print(text)

    def _engines_text(self) -> str:
        home = self._running()
        engines = home.engines()
        titles = ", ".join(map(_title, engines))
        plural = "engine" if len(engines) == 1 else "engines"
        lost = "".join(f"; {name} has ended (`%sfm restart {name}`)" for name in home.ended())
        return f"{len(engines)} {plural}: {titles}{lost}; this notebook is {home.sfm.name!r}"


def load(shell: Any) -> None:
    """What ``%load_ext sfm_kernel`` does."""
    magics = SFMMagics(shell)
    shell.register_magics(magics)
    shell.set_hook("complete_command", magics.complete, str_key="%sfm")
    if not is_engine():  # which tells observers itself
        magics.watch_cells()


def unload(shell: Any) -> None:
    """What ``%unload_ext sfm_kernel`` does."""
    magics = shell.magics_manager.registry["SFMMagics"]
    if not is_engine():
        magics.unwatch_cells()
    magics.leave()


def _usage(magic: str, home: Home, call: Callable[[], list[Member]]) -> list[Member]:
    try:
        return call()
    except UnknownName as problem:
        name = str(problem.name)
        if name in home.ended():
            raise UsageError(f"{magic}: engine {name} has ended: `%sfm restart {name}`") from None
        there = ", ".join(map(str, problem.known)) or "none"
        raise UsageError(f"{magic}: no engine is called {name}. There: {there}") from None


def _clusters(wanted: Sequence[str], known: Sequence[object]) -> str:
    none = f"no cluster is called {wanted[0]}. " if wanted else ""
    if not known:
        return f"{none}No cluster is running; `%sfm start 4` starts one"
    return f"{none}Say which: " + ", ".join(f"`%sfm connect {one}`" for one in known)


@contextmanager
def _brief() -> Iterator[None]:
    """Errors that tell all are shown as they are, without the frames of this package."""
    try:
        yield
    except (SFMError, cells.CellInterrupted) as problem:
        lines = f"{type(problem).__name__}: {problem}".splitlines()
        problem._render_traceback_ = lambda: lines  # type: ignore[union-attr]
        raise


def _title(member: Member) -> str:
    named = str(member.name) != str(member.rank)
    return f"{member.name} (rank {member.rank})" if named else str(member.name)


def _call(process: Mapping[str, Any]) -> str:
    """In which call it is blocked, and where."""
    where = words(process["where"])
    return f"{process['waits']} ({where})" if where else str(process["waits"])
