"""``python -m mpi4py.run [options] prog.py``: runs a program that aborts all ranks when it raises.

So does the launcher ``python -m sfm_kernel.mpi`` with every program. This is for command lines that
were written for mpi4py, and for the options below.
"""

from __future__ import annotations

import ast
import os
import sys
from collections.abc import Callable, Sequence
from importlib.util import find_spec
from typing import Any, NoReturn

from sfm_kernel.mpi.launch import named, program
from sfm_kernel.mpi.launch.rank import set_abort_status

__all__ = ["main", "run_command_line", "set_abort_status"]

USAGE = """\
usage: python -m mpi4py [options] prog.py [arguments]
       python -m mpi4py [options] -m module [arguments]
       python -m mpi4py [options] -c text [arguments]
       python -m mpi4py [options] - [arguments]"""

OPTIONS = """
options, each with one or two dashes:
  --version            the version of mpi4py whose interface is offered
  --prefix             the folder of this package
  --module             the file of mpi4py.MPI
  --mpi-vendor         name and version of the MPI implementation
  --mpi-library        the file of the MPI library
  --mpi-abi-version    the version of the binary interface
  --mpi-std-version    the version of the MPI standard
  --mpi-lib-version    what MPI.Get_library_version() says
  --rc name=value,...  set options of mpi4py.rc
  -h, --help           show this"""


def run_command_line(args: Sequence[str] | None = None) -> None:
    """Run ``prog.py``, ``-m module``, ``-c text`` or ``-`` with its arguments, as ``__main__``.

    Args:
        args: those words; without them ``sys.argv[1:]``.
    Raises: what the program raises.
    """
    program.run(sys.argv[1:] if args is None else args)


def main() -> None:
    """What the command line asks for. A program that raises, or exits with a status, aborts."""
    try:
        run_command_line(_obey_options(sys.argv[1:]))
    except (SystemExit, KeyboardInterrupt) as end:
        set_abort_status(end)
        raise
    except BaseException:
        set_abort_status(1)
        raise


def _obey_options(words: list[str]) -> list[str]:
    """The words after the options."""
    while words and words[0].startswith("-") and words[0] not in ("-m", "-c", "-"):
        name, _, value = words.pop(0).lstrip("-").partition("=")
        if name == "rc":
            _set_rc(value or (words.pop(0) if words else ""))
        elif name in ("h", "help"):
            _finish(USAGE + OPTIONS)
        elif name in _ANSWERS:
            _finish(_ANSWERS[name]())
        else:
            _refuse(f"there is no option {name!r}")
    if wrong := named.missing(words):
        _refuse(wrong)
    return words


def _set_rc(text: str) -> None:
    from sfm_kernel.mpi.standin import rc

    for entry in text.split(","):
        name, equals, value = entry.partition("=")
        if not equals:
            _refuse(f"--rc takes name=value, not {entry!r}")
        rc(**{name: _value(value)})


def _value(text: str) -> Any:
    try:
        return ast.literal_eval(text)
    except (ValueError, SyntaxError):
        return text


def _finish(text: str) -> NoReturn:
    print(text)
    sys.exit(0)


def _refuse(text: str) -> NoReturn:
    sys.exit(f"{text}\n{USAGE}\n`python -m mpi4py --help` lists the options")


def _mpi() -> Any:
    from sfm_kernel.mpi import MPI

    return MPI


def _version() -> str:
    from sfm_kernel.mpi.standin import __version__

    return f"mpi4py {__version__}"


def _vendor() -> str:
    name, version = _mpi().get_vendor()
    return f"{name} {'.'.join(map(str, version))}"


def _abi_version() -> str:
    return "MPI ABI " + ".".join(str(max(number, 0)) for number in _mpi().Get_abi_version())


def _native_core() -> str:
    """What does the work of an MPI library."""
    core = find_spec("sfm_kernel._native")
    assert core is not None
    return str(core.origin)


_ANSWERS: dict[str, Callable[[], str]] = {
    "version": _version,
    "prefix": lambda: os.path.dirname(__file__),
    "module": lambda: str(_mpi().__file__),
    "mpi-vendor": _vendor,
    "mpi-library": _native_core,
    "mpi-abi-version": _abi_version,
    "mpi-std-version": lambda: "MPI {}.{}".format(*_mpi().Get_version()),
    "mpi-lib-version": lambda: str(_mpi().Get_library_version()),
}


if __name__ == "__main__":
    main()
