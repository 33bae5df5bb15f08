"""Programs that a rank asks for with MPI_Comm_spawn."""

from __future__ import annotations

import os
import shutil
import socket
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from sfm_kernel.errors import SFMError
from sfm_kernel.mpi.launch import native
from sfm_kernel.mpi.launch.child import Child
from sfm_kernel.mpi.launch.native import Native
from sfm_kernel.mpi.launch.worlds import Spawned, World


class Refused(SFMError):
    """The requested programs cannot be started; the text says why."""


def spawn(
    asker: Child,
    request: Mapping[str, Any],
    worlds: list[World],
    room: int,
    begin: Callable[[World, Native, Mapping[str, str]], None],
) -> None:
    """Start a world. The asker is answered when all its ranks have reached MPI_Init, or cannot.

    Args:
        request: the request, as ``read`` takes it.
        worlds: the worlds of the launch, to which the new one is added.
        room: the number of processes that may be started.
        begin: starts the next rank of a world, with some variables of its environment.
    """
    try:
        programs = read(request, room, asker.program)
    except (Refused, OSError) as problem:
        asker.answer({"error": str(problem)})
        return
    world = Spawned(worlds, [size for size, _ in programs], asker)
    worlds.append(world)
    for number, (size, program) in enumerate(programs):
        for _ in range(size):
            try:
                variables = {"SFM_MPI_APPNUM": str(number), "SFM_MPI_PARENT": request["parent"]}
                begin(world, program, variables)
            except OSError as problem:
                world.refuse(partial(str, f"no process can be started: {problem}"))
                return
    world.joined()  # a request may be for no process


def read(request: Mapping[str, Any], room: int, program: Native | None) -> list[tuple[int, Native]]:
    """The requested programs, each with the number of its processes.

    Args:
        request: the library's request (native/mpi/src/spawning.rs): for each of ``programs`` its
            ``command``, ``argv``, ``maxprocs`` and ``info``; and ``parent``, which identifies the
            asker for the new processes.
        room: the number of processes that may be started.
        program: the asker's program.
    Raises:
        Refused: a command does not exist or cannot run here, or there is no room.
    """
    programs = []
    for requested in request["programs"]:
        info = requested["info"]
        _check_host(info.get("host", ""))
        found = _program(requested["command"], requested["argv"], info, program)
        size = _size(requested["maxprocs"], info.get("soft", ""), room)
        room -= size
        programs.append((size, found))
    return programs


def _program(
    command: str, arguments: list[str], info: Mapping[str, str], askers: Native | None
) -> Native:
    folder = os.path.abspath(info["wdir"]) if "wdir" in info else ""
    if folder and not os.path.isdir(folder):
        raise Refused(f"there is no folder {folder} (info key wdir)")
    if askers and command == askers.words[0]:
        path = askers.path  # not the command, which may be a source that was compiled
    else:
        path = _found(command, info.get("path", ""), folder)
    environment = {**(askers.environment if askers else {}), **native.with_library()}
    with open(path, "rb") as file:
        is_compiled = file.read(4) == b"\x7fELF"
    if is_compiled:
        try:
            environment |= native.compiled([path]).environment
        except native.WrongProgram as problem:
            raise Refused(str(problem)) from None
    return Native(path, (command, *arguments), folder, environment)


def _found(command: str, path: str, folder: str) -> str:
    """The file of a command, as the system would find it in the folder."""
    here = folder or os.getcwd()
    if os.sep in command:
        found = os.path.join(here, command)
        if not os.path.isfile(found):
            raise Refused(f"there is no program {found}")
        if not os.access(found, os.X_OK):
            raise Refused(f"{found} may not be run: chmod +x {found}")
        return found
    everywhere = os.pathsep.join(filter(None, (path, os.environ.get("PATH", os.defpath))))
    on_path = shutil.which(command, path=everywhere) or shutil.which(os.path.join(here, command))
    if not on_path:
        raise Refused(f"there is no program {command!r}, neither on PATH nor in {here}")
    return os.path.abspath(on_path)


def _check_host(host: str) -> None:
    here = socket.gethostname()
    if host and host not in (here, here.partition(".")[0], "localhost", "127.0.0.1"):
        raise Refused(f"host {host} is another machine; all processes run on this one, {here}")


def _size(most: int, soft: str, room: int) -> int:
    """The number of processes to start: the requested number, or the largest number of ``soft`` for
    which there is room."""
    if most <= room:
        return most
    fitting = [size for size in _soft(soft) if size <= min(most, room)]
    if not fitting:
        raise Refused(f"there is room for {room} more processes, and {most} are asked for")
    return max(fitting)


def _soft(text: str) -> list[int]:
    """The numbers in a value of the info key soft, such as "0:8:2,9"."""
    sizes: list[int] = []
    for item in filter(None, text.split(",")):
        try:
            first, *rest = map(int, item.split(":"))
            last, step = (rest + [first, 1][len(rest) :])[:2]
            sizes += range(first, last + (1 if step > 0 else -1), step)
        except ValueError:
            raise Refused(f"info key soft: {item!r} is no range of numbers") from None
    return sizes
