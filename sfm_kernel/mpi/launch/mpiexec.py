"""The command line of the launcher: ``python -m sfm_kernel.mpi -n 4 prog.py arguments``."""

from __future__ import annotations

import argparse
import json
import os
import re
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple, NoReturn

from sfm_kernel import finished_runs
from sfm_kernel.errors import CompileError, SFMError, limits_named
from sfm_kernel.mpi.launch import archives, named, native, sources
from sfm_kernel.mpi.launch.child import Forked
from sfm_kernel.mpi.launch.job import MOST_RANKS, Job
from sfm_kernel.spawn.forked import detach

if TYPE_CHECKING:
    from sfm_kernel.mpi.launch.keeping import Keeping

DEFAULT_SIZE = 4
COMMAND = "python -m sfm_kernel.mpi"
_DESCRIPTION = """\
Runs an MPI program in several processes of this machine. In them `from mpi4py import MPI` gives
sfm_kernel's MPI: no MPI library and no mpiexec is needed. C and C++ are compiled unseen. PROGRAM is
one of

  prog.py      a script, or a folder or archive with a __main__.py
  prog.c       C or C++ sources of one program, or a folder or archive (.zip, .tar.gz) of them
  ./prog       a compiled program
  NAME         a program on PATH, such as pytest, unless a folder or archive here has the name
  -m MODULE    a module, as `python -m MODULE` runs it
  -c TEXT      a text, as `python -c TEXT` runs it

After a colon comes another program, whose ranks follow.
"""
_EPILOG = """\
Rank 0 reads stdin, the others read its end. The exit status is 0 if that of all ranks is 0, else
that of the rank that failed first: 1 if it raised, n after sys.exit(n) or Abort(n), 128 + n if
signal n killed it. A rank that fails ends the others. Ctrl-C ends all; twice, at once.
"""


class Command(NamedTuple):
    """A parsed command line."""

    programs: list[tuple[int, list[str]]]
    label: bool = False
    timeout: float | None = None
    lifeline: int | None = None
    detect: bool = False
    universe: int | None = None
    fast: bool = False
    asan: bool = False
    on_path: tuple[str, ...] = ()
    """The programs whose name stood for a command on PATH."""


_NOT_PROGRAMS = (
    CompileError, archives.BadArchive, native.WrongProgram, sources.WrongSources,
)  # fmt: skip
"""Errors of programs that cannot be started; the text says why."""


class WrongUsage(SFMError):
    """A wrong command line; the text says what to write."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the launcher; returns its exit status. In the ranks, its forks, it never returns."""
    _open_standard_streams()
    try:
        return _launch(sys.argv[1:] if arguments is None else arguments)
    except Forked as new:
        given = new.args
    from sfm_kernel.mpi.launch import rank

    return rank.main(*given)  # outside the handler: no frame of the launcher is on the stack


def _launch(arguments: Sequence[str]) -> int:
    try:
        if arguments[:1] == ["--serve"]:
            detach()  # the asking process waits for its children, and must not wait for this one
            return Job([], serve=(int(arguments[1]), arguments[2])).run()
        if arguments[:1] == ["--words"]:
            arguments = [*arguments[2:], *_words_from(int(arguments[1]))]
        about = parse(arguments)._asdict()
        given = about.pop("programs"), about.pop("fast"), about.pop("asan")
        keeping = _keeping(given[0])
        with limits_named(), sources.prepared(*given) as programs:
            job = Job(programs, **about, keeping=keeping)
            status = job.run()
            if keeping is not None:
                keeping.write(status, job.watching.deadlocks)
            return status
    except _NOT_PROGRAMS as problem:
        print(problem, file=sys.stderr)
        return 1
    except WrongUsage as problem:
        print(f"{COMMAND}: {problem}", file=sys.stderr)
        return 2
    except (OSError, SFMError) as problem:
        print(f"{COMMAND}: the ranks could not be started: {problem}", file=sys.stderr)
        return 1


def _keeping(programs: list[tuple[int, list[str]]]) -> Keeping | None:
    """What keeps the run when it has ended; None if nobody wants that."""
    try:
        most = finished_runs.wanted()
    except ValueError as problem:
        print(f"sfm: {problem}; this one is not kept", file=sys.stderr)
        return None
    if not most:
        return None
    from sfm_kernel.mpi.launch.keeping import Keeping

    return Keeping(programs, most)


def _words_from(fd: int) -> list[str]:
    """The rest of the command line, which a notebook writes to a pipe when it knows it.

    Raises:
        SystemExit: the pipe is empty: there is nothing to run.
    """
    with open(fd, encoding="utf-8") as pipe:
        text = pipe.read()
    if not text:
        sys.exit()
    words: list[str] = json.loads(text)
    return words


def _open_standard_streams() -> None:
    """Open /dev/null for closed standard streams, so that no pipe gets their numbers."""
    for fd in range(3):
        try:
            os.fstat(fd)
        except OSError:
            os.open(os.devnull, os.O_RDWR)


def parse(arguments: Sequence[str], command: str = COMMAND) -> Command:
    """Parse a command line; ``-h`` prints the help and raises SystemExit.

    Args:
        arguments: the words after the command.
        command: the command of the launcher, for the help.
    Raises:
        WrongUsage: an option is unknown or incomplete, or there is no such program.
    """
    options, parser = argparse.Namespace(), _parser(command)
    programs, on_path = [], []
    for words in _split(arguments):
        options.size = DEFAULT_SIZE
        first = _first_of_program(words)
        parser.parse_args(words[:first], options)
        given_words = _program(words[first:])
        words = named.found(given_words)
        on_path += words[:1] if words != given_words else []
        if problem := named.missing(words):
            parser.error(problem)
        programs.append((options.size, words))
    if (size := sum(size for size, _ in programs)) > MOST_RANKS:
        parser.error(f"{size} ranks are too many: a world holds {MOST_RANKS}")
    given = options.label, options.timeout, options.lifeline, options.detect
    return Command(programs, *given, options.universe, options.fast, options.asan, tuple(on_path))


def _split(arguments: Sequence[str]) -> list[list[str]]:
    """Split the command line at its colons."""
    parts: list[list[str]] = [[]]
    for word in arguments:
        if word == ":":
            parts.append([])
        else:
            parts[-1].append(word)
    return parts


def _program(words: list[str]) -> list[str]:
    """The words of a program, without ``--`` and ``python``."""
    if words[:1] == ["--"]:
        words = words[1:]
    if words and _is_python(words[0]):  # mpiexec needs it
        words = words[1:]
    return words


def _is_python(word: str) -> bool:
    named = re.fullmatch(r"python[\d.]*", os.path.basename(word))
    return bool(named) and (os.path.dirname(word) != "" or not os.path.exists(word))


def _first_of_program(arguments: Sequence[str]) -> int:
    position = 0
    while position < len(arguments):
        word = arguments[position]
        if word in ("-m", "-c", "-", "--") or not word.startswith("-"):
            break
        position += 2 if word in _WITH_VALUE else 1
    return position


_WITH_VALUE = ("-n", "-np", "--np", "--timeout", "--usize", "-usize", "--lifeline")


class _ShowPath(argparse.Action):
    """``--path``: print the folder of the commands, and nothing else."""

    def __call__(self, parser: argparse.ArgumentParser, *_: object) -> None:
        from sfm_kernel.mpi import discovery

        print(discovery.commands())
        parser.exit()


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        raise WrongUsage(f"{message}. For example: {self.prog} -n {DEFAULT_SIZE} prog.py")


def _parser(command: str) -> argparse.ArgumentParser:
    parser = _Parser(
        prog=command,
        usage=f"{command} [-n N] [options] PROGRAM [argument ...] [: [-n N] PROGRAM ...]",
        description=_DESCRIPTION,
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    size = f"how many processes, 1 to {MOST_RANKS}; default {DEFAULT_SIZE}"
    parser.add_argument(
        "-n", "-np", "--np", dest="size", type=ranks, default=DEFAULT_SIZE, help=size
    )
    parser.add_argument("-l", "--label", action="store_true", help="begin each line with its rank")
    limit = "end all ranks after S seconds, and show their locations"
    parser.add_argument("--timeout", type=_seconds, metavar="S", help=limit)
    wait = "end calls that wait for each other for ever, instead of only explaining them"
    parser.add_argument("--detect", action="store_true", help=wait)
    room = "MPI_UNIVERSE_SIZE: the number of processes that a program may reach by spawning"
    parser.add_argument(
        "--usize", "-usize", dest="universe", type=_universe, metavar="N", help=room
    )
    checks = parser.add_mutually_exclusive_group()
    checks.add_argument("--fast", action="store_true", help="compile without checks of C's errors")
    asan = "compile with AddressSanitizer: wrong accesses of malloc's memory and of buffers"
    checks.add_argument("--asan", action="store_true", help=asan)
    for word in ("oversubscribe", "allow-run-as-root"):
        needed = "does nothing here: other launchers need it"
        parser.add_argument(f"--{word}", f"-{word}", action="store_true", help=needed)
    here = "print the folder of mpiexec and mpicc, for PATH"
    parser.add_argument("--path", action=_ShowPath, nargs=0, help=here)
    parser.add_argument("--lifeline", type=int, help=argparse.SUPPRESS)  # see Job
    return parser


def ranks(text: str) -> int:
    """A number of ranks in a command line, for argparse."""
    if not text.isdigit() or not 1 <= int(text) <= MOST_RANKS:
        raise argparse.ArgumentTypeError(f"a number from 1 to {MOST_RANKS}, not {text!r}")
    return int(text)


def _universe(text: str) -> int:
    if not text.isdigit() or not 1 <= int(text) < 1 << 31:  # the attribute is an int
        raise argparse.ArgumentTypeError(f"a number of processes, 1 or more, not {text!r}")
    return int(text)


def _seconds(text: str) -> float:
    try:
        seconds = float(text)
    except ValueError:
        seconds = 0.0
    if not 0 < seconds < float("inf"):
        raise argparse.ArgumentTypeError(f"a number of seconds above 0, not {text!r}")
    return seconds
