"""Programs that a rank asks for with MPI_Comm_spawn: what is to be run, and where."""

from __future__ import annotations

import os
import shutil
import socket
from collections.abc import Mapping
from typing import Any, NamedTuple

from sfm_kernel.errors import SFMError
from sfm_kernel.mpi.launch import native
from sfm_kernel.mpi.launch.native import Native


class Refused(SFMError):
    """What is asked for cannot be started; the text says why."""


class Asked(NamedTuple):
    """What a rank asks for.

    Attributes:
        programs: what is to be run, and in how many processes.
        parent: by which the new processes know whoever has asked: the library's own words.
    """

    programs: list[tuple[int, Native]]
    parent: str


def read(asked: Mapping[str, Any], room: int, given: Mapping[str, str]) -> Asked:
    """What is asked for, as the library has written it (native/mpi/src/spawning.rs).

    Args:
        asked: ``parent``, and for each of ``programs`` its ``command``, ``argv``, ``maxprocs`` and
            ``info``.
        room: for how many processes.
        given: what is set for the program that asks, beside what all ranks have.
    Raises:
        Refused: a command is not there or cannot be run here, or there is no room.
    """
    programs = []
    for one in asked["programs"]:
        info = one["info"]
        _check_host(info.get("host", ""))
        program = _program(one["command"], one["argv"], info, given)
        size = _size(one["maxprocs"], info.get("soft", ""), room)
        room -= size
        programs.append((size, program))
    return Asked(programs, asked["parent"])


def _program(
    command: str, arguments: list[str], info: Mapping[str, str], given: Mapping[str, str]
) -> Native:
    folder = os.path.abspath(info["wdir"]) if "wdir" in info else ""
    if folder and not os.path.isdir(folder):
        raise Refused(f"there is no folder {folder} (info key wdir)")
    path = _found(command, info.get("path", ""), folder)
    with open(path, "rb") as file:
        is_compiled = file.read(4) == b"\x7fELF"
    words = [command, *arguments]
    own = native.with_library()
    if is_compiled:
        try:
            own |= native.compiled([path]).environment
        except native.WrongProgram as problem:
            raise Refused(str(problem)) from None
    return Native(path, tuple(words), folder, {**given, **own})


def _found(command: str, path: str, folder: str) -> str:
    """The file that a command names, as the system's own search would find it in the folder."""
    here = folder or os.getcwd()
    if os.sep in command:
        found = os.path.join(here, command)
        if not os.path.isfile(found):
            raise Refused(f"there is no program {found}")
        if not os.access(found, os.X_OK):
            raise Refused(f"{found} may not be run: chmod +x {found}")
        return found
    everywhere = os.pathsep.join(filter(None, (path, os.environ.get("PATH", os.defpath))))
    found = shutil.which(command, path=everywhere) or shutil.which(os.path.join(here, command))
    if not found:
        raise Refused(f"there is no program {command!r}, neither on PATH nor in {here}")
    return os.path.abspath(found)


def _check_host(host: str) -> None:
    here = socket.gethostname()
    if host and host not in (here, here.partition(".")[0], "localhost", "127.0.0.1"):
        raise Refused(f"host {host} is another machine; all processes run on this one, {here}")


def _size(most: int, soft: str, room: int) -> int:
    """How many are started: as many as are asked for, or by ``soft`` the most that there is room
    for."""
    if most <= room:
        return most
    fitting = [size for size in _soft(soft) if size <= min(most, room)]
    if not fitting:
        raise Refused(f"there is room for {room} processes more, and {most} are asked for")
    return max(fitting)


def _soft(text: str) -> list[int]:
    """The numbers that a value of the info key soft names: "0:8:2,9"."""
    sizes: list[int] = []
    for part in filter(None, text.split(",")):
        try:
            first, last, step = (*map(int, part.split(":")), *(None, 1))[:3] if ":" in part else (
                int(part), int(part), 1,
            )  # fmt: skip
            sizes += range(first, (last if last is not None else first) + 1, step)
        except ValueError:
            raise Refused(f"info key soft: {part!r} is no range of numbers") from None
    return sizes
