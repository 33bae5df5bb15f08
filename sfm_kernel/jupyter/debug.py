"""``%sfm debug A``: IPython's debugger after an error on an engine, from the notebook; with
``--attach`` JupyterLab's."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ipykernel.kernelbase import StdinNotImplementedError
from IPython.core.error import UsageError

from sfm_kernel.directory import Member
from sfm_kernel.errors import UnknownName
from sfm_kernel.jupyter import attach, postmortem
from sfm_kernel.jupyter.home import Home
from sfm_kernel.jupyter.inspection import here, idle


def debug(home: Home, words: Sequence[str]) -> None:
    """Ask for commands until one ends it; or run the one that the words give.

    Raises:
        UsageError: no engine is named, it runs a cell, or its cells have raised no error.
    """
    if "--detach" in words:
        attach.detach()
        print("the debugger is the notebook's again")
        return
    member = _member(home, [word for word in words if word != "--attach"])
    if "--attach" in words:
        with home.waiting():
            attach.attach(_view(home, member), member, member.name in here(home))
        print(
            f"the debugger (the bug above the notebook) stops engine {member.name} at breakpoints "
            "now, until `%sfm debug --detach`"
        )
        return
    given = " ".join(words[1:])
    text = _ask(home, member, given).text
    print(text, end="")
    if given:
        return
    print(f"engine {member.name}: p x, up, down, where, list, args; q ends")
    while True:
        try:
            command = input(f"debug {member.name}> ").strip()
        except (EOFError, KeyboardInterrupt):
            command = "q"
        except StdinNotImplementedError:
            raise UsageError(
                f"%sfm debug: nobody can type here: `%sfm debug {member.name} p x` runs one command"
            ) from None
        answer = _ask(home, member, command)
        print(answer.text, end="")
        if not answer.goes_on:
            return


def _member(home: Home, words: Sequence[str]) -> Member:
    if not words:
        raise UsageError("%sfm debug takes an engine: `%sfm debug 0`, or `%sfm debug 0 p x`")
    try:
        (member,) = home.resolve(words[:1])
    except (UnknownName, ValueError):
        known = ", ".join(str(member.name) for member in home.engines())
        raise UsageError(f"%sfm debug takes one engine, not {words[0]!r}: {known}") from None
    return member


def _view(home: Home, member: Member) -> Any:
    """ipyparallel's view of an engine that is idle."""
    if member.name not in idle(home):
        raise UsageError(f"%sfm debug: {member.name} runs a cell: wait for its end, or stop it")
    return home.client[member.info["engine_id"]]


def _ask(home: Home, member: Member, command: str) -> postmortem.Answer:
    with home.waiting():
        found = _view(home, member).apply_sync(postmortem.answer, command)
    if found is None:
        raise UsageError(f"%sfm debug: no cell on {member.name} has raised an error")
    return postmortem.Answer(*found)
