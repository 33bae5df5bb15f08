"""``%sfm`` starts, shows and stops engines; ``%%sfm`` runs a cell on them."""

from __future__ import annotations

import difflib
import shlex
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from typing import Any

from IPython.core.error import UsageError
from IPython.core.magic import Magics, cell_magic, line_magic, magics_class, no_var_expand

from sfm_kernel.directory import Member
from sfm_kernel.errors import BadName, BadSetting, SFMError, UnknownName
from sfm_kernel.jupyter import c_cells, commands, inspection, lessons, programs, tracebacks
from sfm_kernel.jupyter import cell as cells
from sfm_kernel.jupyter.autopx import keep_sfm_here
from sfm_kernel.jupyter.completion import Completion
from sfm_kernel.jupyter.debug import debug
from sfm_kernel.jupyter.engine import NAMES, is_engine
from sfm_kernel.jupyter.expel import expel
from sfm_kernel.jupyter.home import Home
from sfm_kernel.jupyter.idle import Idle
from sfm_kernel.jupyter.kernel import prepare
from sfm_kernel.jupyter.lines import Lines
from sfm_kernel.jupyter.observed import Watcher
from sfm_kernel.jupyter.outputs import output
from sfm_kernel.jupyter.progress import Progress
from sfm_kernel.jupyter.settings import NEVER, Settings, in_words
from sfm_kernel.jupyter.sites import Sites
from sfm_kernel.jupyter.starting import (
    clusters_text,
    cost,
    engines_text,
    parse_engines,
    parse_idle,
    parse_site,
    title,
)
from sfm_kernel.jupyter.student import Student

_OF_WORLDS = {**inspection.COMMANDS, "debug": debug, "expel": expel, "output": output}


@magics_class
class SFMMagics(Magics):
    """The magics of one notebook."""

    def __init__(self, shell: Any) -> None:
        super().__init__(shell)
        self._home: Home | None = None
        self._given: dict[str, object] = {}
        self._lines = Lines(shell)
        self._c_cells = c_cells.CCells(self._lines)
        self._ends = False  # whether deadlocks of this notebook's own calls are ended
        self._watcher: Watcher | None = None
        self._student = Student(self._running, self._lines)
        self._depth = 0  # of cells that run inside others
        self._settings: Settings | None = None
        self._idle = Idle(self.leave)
        self._commands: dict[str, Callable[[list[str]], None]] = {
            "start": self._start,
            "connect": self._connect,
            **{name: partial(self._inspect, call) for name, call in _OF_WORLDS.items()},
            "record": self._record,
            **self._student.commands(),
            "detect": self._detect,
            "scale": self._scale,
            "restart": self._restart,
            "stop": self._stop,
            "clean": self._clean,
            "run": self._run,
            **lessons.commands(shell, self._student.note),
            "help": self._help,
        }
        self._events: dict[str, Callable[..., None]] = {
            "pre_run_cell": self._lines.begin_notebook_cell,
            "pre_execute": self._begin,
            "post_execute": self._end,
            "post_run_cell": self._idle.notify,
        }
        self.completion = Completion(shell, self._commands, self._engine_names)

    @no_var_expand
    @line_magic("sfm")
    @commands.documented
    def line(self, line: str) -> None:
        try:
            name, *words = shlex.split(line) or ["help"]
        except ValueError as problem:
            raise UsageError(f"%sfm: {problem}: a quotation mark has no partner") from None
        command = self._commands.get(name)
        if command is None:
            begun = [known for known in self._commands if known.startswith(name.lower())]
            near = begun or difflib.get_close_matches(name.lower(), self._commands, 1)
            near = [f"start {name}"] if name.isdigit() else near
            hint = f"did you mean `%sfm {near[0]}`? " if near else ""
            known = ", ".join(self._commands)
            raise UsageError(f"%sfm {name}: {hint}Known: {known}. `%sfm help` explains them")
        if words and name not in commands.OPTIONS:
            raise UsageError(f"%sfm {name} takes no arguments, not {' '.join(words)!r}")
        with cells.brief():
            command(words)

    @no_var_expand
    @cell_magic("sfm")
    @commands.documented_cells
    def cell(self, line: str, cell: str) -> Any:
        if words := c_cells.language(line):
            with cells.brief():
                self._c(words, cell)
            return None
        args = cells.options(line)
        home = self._running()
        with cells.brief():
            home.check()
            members = _usage("%%sfm", home, lambda: home.resolve(args.names))
            if not args.names and (ended := home.cluster.ended()):
                ended_names = ", ".join(ended)
                print(f"without {ended_names}, ended before: `%sfm restart`", file=sys.stderr)
            runner = cells.CellRunner(self.shell, home, self._lines)
            if not args.record:
                return runner.run(cell, members, args)
            if args.block is False:
                raise UsageError("%%sfm --record needs the end of the cell: leave --noblock out")
            from sfm_kernel.jupyter import recording

            with recording.recorded(home, self._lines, args.record):
                return runner.run(cell, members, args)

    def _c(self, words: Sequence[str], cell: str) -> None:
        """Run a cell in C."""
        self.shell.user_ns.setdefault("sfm", c_cells.WithoutEngines())
        home = self._usable()

        def engines(names: list[str]) -> Sequence[Member]:
            running = home if home is not None else self._running()
            return _usage("%%sfm c", running, lambda: running.resolve(names))

        def load(members: Sequence[Member], function: Any, *arguments: Any) -> None:
            if home is not None:
                programs.call(home, members, function, *arguments)

        self._c_cells.run(words, cell, engines, load)

    # ---- commands

    def _start(self, words: Sequence[str]) -> None:
        given, settings = shlex.join(words), self.settings()
        words, idle = parse_idle(words, settings)
        names, site, sites = parse_engines(words)
        if home := self._usable():
            self._already(home, names, site, sites)
            if idle is not None and home.cluster.owned:
                self._idle.watch(home, idle, given)
            return
        self.leave()
        began, progress = time.monotonic(), Progress(self.shell, len(names), "engines")
        self._enter(Home.start(names, site, sites, settings, progress))
        took = f"{time.monotonic() - began:.1f} s"
        idle = settings.idle if idle is None else idle
        self._idle.watch(self._running(), idle, given)
        ends = "" if idle == NEVER else f"; they end after {in_words(idle)} without use"
        progress.end(f"{engines_text(self._running())}{ends} ({took}){cost(self._running())}")

    def _connect(self, words: Sequence[str]) -> None:
        words, site = parse_site("connect", words)
        if len(words) > 1:
            raise UsageError("%sfm connect takes at most one notebook or cluster, and --site NAME")
        if self._home is not None:
            raise UsageError(
                f"already connected: {engines_text(self._running())}. `%sfm stop` first"
            )
        try:
            self._enter(Home.connect(words[0] if words else None, site))
        except UnknownName as problem:
            raise UsageError(f"%sfm connect: {clusters_text(words, problem.known)}") from None
        print(engines_text(self._running()))

    def _detect(self, words: Sequence[str]) -> None:
        if list(words) not in (["on"], ["off"], []):
            raise UsageError(f"%sfm detect takes `on` or `off`, not {' '.join(words)!r}")
        if words:
            self._ends = words == ["on"]
        action = "ended" if self._ends else "reported, but not ended"
        print(
            f"deadlocks of this notebook's own calls are {action}; "
            "for cells on engines there is `%%sfm --no-detect`"
        )

    def _scale(self, words: Sequence[str]) -> None:
        home = self._owned("scale")
        if len(words) != 1 or not words[0].isdigit():
            raise UsageError("%sfm scale takes the new number of engines: `%sfm scale 6`")
        try:
            home.cluster.rescale(int(words[0]))
        except BadName as problem:
            raise UsageError(f"%sfm scale takes {problem}") from None
        print(engines_text(self._running()))

    def _restart(self, words: Sequence[str]) -> None:
        home = self._owned("restart")
        began = time.monotonic()
        restarted = _usage("%sfm restart", home, lambda: home.restart(words))
        names = ", ".join(title(member) for member in restarted)
        print(f"restarted: {names} in {time.monotonic() - began:.1f} s")

    def _stop(self, words: Sequence[str]) -> None:
        if self._home is None:
            print("nothing to stop: this notebook has no cluster")
            return
        owned = self._home.cluster.owned
        self.leave()
        print("stopped" if owned else "left the cluster; it runs until its owner stops it")

    def _clean(self, words: Sequence[str]) -> None:
        from sfm_kernel.directory import clean

        removed = clean()
        print("\n".join(f"removed {path}" for path in removed) or "nothing to clean")

    def _run(self, words: Sequence[str]) -> None:
        home = self._usable()
        programs.run_mpi(words, len(home.engines()) if home is not None else 0)

    def _inspect(self, command: inspection.Command, words: Sequence[str]) -> None:
        command(self._running(), words)

    def _record(self, words: Sequence[str]) -> None:
        from sfm_kernel.jupyter import recording

        recording.run(self._running(), self._lines, words)

    def _help(self, words: Sequence[str]) -> None:
        print(commands.help_of(words, self._commands))

    # ---- the notebook's cluster

    def watch_cells(self) -> None:
        """Publish to observers from now on whether a cell of this notebook runs, and which one."""
        self._lines.publish()
        for event, call in self._events.items():
            self.shell.events.register(event, call)

    def unwatch_cells(self) -> None:
        """Undo ``watch_cells``."""
        self._lines.withdraw()
        for event, call in self._events.items():
            self.shell.events.unregister(event, call)

    def _begin(self) -> None:
        self._depth += 1
        with self._idle.turn:  # waits until idle engines have been ended
            if self._home is not None:
                self._home.sfm.show_running(True)
        if self._home is not None and self._watcher is None:
            self._watcher = Watcher(self._home, end=self._ends, of_notebook=True)

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

    def settings(self) -> Settings:
        """The administrator's limits. Raises BadSetting."""
        if self._settings is None:
            self._settings = Settings(self.shell.config)
            self.shell.configurables.append(self._settings.configured)  # for `%config SFM`
        return self._settings

    def _enter(self, home: Home) -> None:
        self._home = home
        home.sfm.describe(kind="notebook")
        self._given = {"sfm": home.sfm} | {name: getattr(home.sfm, name) for name in NAMES}
        self.shell.push(self._given, interactive=False)

    def leave(self) -> None:
        """Leave the world, and stop the cluster if this notebook started it."""
        self._student.stop()
        self._unwatch()
        self._idle.stop()
        if self._home is not None:
            home, self._home = self._home, None
            self.shell.drop_by_id(self._given)
            home.stop()

    def _engine_names(self) -> list[str]:
        """The names of living and ended engines; none if they cannot be found out now."""
        try:
            home = self._home
            if home is None:
                return []
            return [*(str(member.name) for member in home.engines()), *home.cluster.ended()]
        except (SFMError, OSError):
            return []

    @property
    def client(self) -> Any:
        """See ``sfm_kernel.jupyter.client``."""
        return self._running().client

    def _running(self) -> Home:
        if self._home is None:
            if notice := self._idle.take_notice():
                raise UsageError(f"no engines. {notice}")
            raise UsageError("no engines: `%sfm start 4` starts four, `%sfm help` shows more")
        return self._home

    def _owned(self, command: str) -> Home:
        home = self._running()
        if not home.cluster.owned:
            raise UsageError(f"%sfm {command} works in the notebook that started the engines")
        return home

    def _usable(self) -> Home | None:
        """The notebook's cluster, if cells can run on it."""
        if self._home is not None:
            with suppress(SFMError):
                self._home.check()
                return self._home
        return None

    def _already(self, home: Home, names: list[str], site: str | None, sites: Sites | None) -> None:
        cluster = home.cluster
        action = "ends" if cluster.owned else "leaves"
        text = f"already running: {engines_text(self._running())}. `%sfm stop` {action} them"
        if (cluster.names, cluster.sites) != (names, sites) or site not in (None, home.sfm.site):
            raise UsageError(f"%sfm start: nothing started. {text}")
        print(text)


def load(shell: Any) -> None:
    """Add ``%sfm`` and ``%%sfm`` to a shell: a notebook's, or an engine's."""
    magics = SFMMagics(shell)
    shell.register_magics(magics)
    magics.completion.install()
    if not is_engine():  # an engine publishes its cells itself
        magics.watch_cells()
        with suppress(BadSetting):  # `%sfm start` reports it
            magics.settings()
        tracebacks.install(shell)
        keep_sfm_here()
        prepare(shell)


def unload(shell: Any) -> None:
    """Leave the world, and stop the cluster if this notebook started it."""
    magics = shell.magics_manager.registry["SFMMagics"]
    if not is_engine():
        magics.unwatch_cells()
        tracebacks.uninstall(shell)
    magics.completion.remove()
    magics.leave()


def _usage(magic: str, home: Home, call: Callable[[], list[Member]]) -> list[Member]:
    try:
        return call()
    except UnknownName as problem:
        name = str(problem.name)
        if name in home.cluster.ended():
            raise UsageError(f"{magic}: engine {name} has ended: `%sfm restart {name}`") from None
        known = ", ".join(map(str, problem.known)) or "none"
        raise UsageError(f"{magic}: no engine is called {name}. Known: {known}") from None
