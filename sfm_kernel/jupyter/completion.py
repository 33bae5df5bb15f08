"""Tab and ``?`` after ``%sfm`` and ``%%sfm``: commands, options, engines, files, checks."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from IPython.core.completer import SimpleCompletion, context_matcher

from sfm_kernel.jupyter import cell as cells
from sfm_kernel.jupyter import commands
from sfm_kernel.jupyter.c_cells import LANGUAGES
from sfm_kernel.jupyter.places import running_clusters

_ENGINE_NAMES = ("rank", "size")
"""What engines' cells have by name, and this notebook has not."""

_C_OPTIONS = ("-n", "--fast", "--stdin", "--timeout")

_SOURCES = (".py", ".c", ".cc", ".cpp", ".cxx", ".zip", ".tar.gz")


class Completion:
    """What can follow in a line of ``%sfm``, or in a cell of ``%%sfm``.

    Args:
        names: the commands.
        engines: gives the engines' names, those that have ended among them.
    """

    def __init__(
        self, shell: Any, names: Iterable[str], engines: Callable[[], Sequence[str]]
    ) -> None:
        self._shell, self._names, self._engines = shell, list(names), engines

        @context_matcher(identifier="sfm")
        def matcher(context: Any) -> dict[str, Any]:  # not a method: it is given attributes
            return self.matches(context)

        self._matcher = matcher

    def install(self) -> None:
        """From now on Tab and ``?`` know them."""
        self._shell.Completer.custom_matchers.append(self._matcher)
        self._shell.input_transformers_cleanup.append(ask)

    def remove(self) -> None:
        """Undo ``install``."""
        for known, one in (
            (self._shell.Completer.custom_matchers, self._matcher),
            (self._shell.input_transformers_cleanup, ask),
        ):
            if one in known:
                known.remove(one)

    def matches(self, context: Any) -> dict[str, Any]:
        """IPython's matcher. Where something of ours fits, Python's keywords are left out."""
        line, magic = context.text_until_cursor, context.full_text.lstrip()
        words = self.after(line)
        if words is None and magic.startswith("%%sfm") and not _is_c(magic):
            found = [
                one for one in _ENGINE_NAMES if context.token and one.startswith(context.token)
            ]
            return {"completions": [SimpleCompletion(text=one) for one in found]}
        last = re.split(r"[\s,]", line)[-1]
        found = [one for one in words or () if one.startswith(last)]
        return {
            "completions": [SimpleCompletion(text=one, type=_kind(one)) for one in found],
            "matched_fragment": last,
            "suppress": bool(found),
            "ordered": True,
        }

    def after(self, line: str) -> list[str] | None:
        """All that can stand where a line ends, whatever is begun there; None if it is not ours."""
        before = line.lstrip().split()
        if not line.endswith((" ", "\t")):
            before = before[:-1]  # the word that is being written
        if not before or before[0] not in ("%sfm", "%%sfm"):
            return None
        if before[0] == "%%sfm":
            return self._of_cells(before[1:])
        return self._of_line(before[1:], line)

    def _of_cells(self, given: Sequence[str]) -> list[str]:
        if given and given[0] in LANGUAGES:
            return [*_C_OPTIONS, *self._engines()]
        options = [
            name for one in cells.options.parser._actions for name in one.option_strings
            if name.startswith("--")
        ]  # fmt: skip
        return [*self._engines(), *([] if given else LANGUAGES), *options]

    def _of_line(self, given: Sequence[str], line: str) -> list[str]:
        if not given:
            return self._names
        command, last = given[0], given[-1]
        begun = line.split()[-1] if not line.endswith(" ") else ""
        options = [one for one in commands.OPTIONS.get(command, ()) if one not in given]
        if last == "--from":
            return _files(begun, (".py",))
        if command == "help":
            return self._names if len(given) == 1 else []
        if command == "check" and not _value_follows(given):
            return [*_checks(given), *options]
        if command == "restart":
            return [one for one in self._engines() if one not in given]
        if command == "connect":
            return [*(str(one.cluster_id) for one in running_clusters()), *options]
        if command == "run":
            return [*options, *_files(begun, _SOURCES)]
        if command == "timeline":
            return _files(begun, (".json",))
        return [] if _value_follows(given) else options


def _kind(word: str) -> str:
    """What a list of completions says beside it."""
    return "option" if word.startswith("-") else "path" if "/" in word else "sfm"


def _value_follows(given: Sequence[str]) -> bool:
    """Whether the last word is an option that takes a value."""
    return given[-1].startswith("-") and given[-1] != "--strict"


def _checks(given: Sequence[str]) -> list[str]:
    from sfm_kernel.lessons import CheckFailed
    from sfm_kernel.lessons.examine.check import checks, of_file

    if [one for one in given[1:] if not one.startswith("-")]:  # one is named already
        return []
    try:
        return list(of_file(given[given.index("--from") + 1]) if "--from" in given else checks())
    except (CheckFailed, IndexError):
        return []


def _files(begun: str, suffixes: tuple[str, ...]) -> list[str]:
    """Files of these kinds, and folders, that a path may go on with."""
    folder = os.path.dirname(begun)
    try:
        with os.scandir(folder or ".") as entries:
            found = [
                os.path.join(folder, one.name) + ("/" if one.is_dir() else "")
                for one in entries
                if not one.name.startswith(".") and (one.is_dir() or one.name.endswith(suffixes))
            ]
    except OSError:
        return []
    return sorted(found)


def _is_c(cell: str) -> bool:
    return cell.split()[1:2] in [[one] for one in LANGUAGES]


def ask(lines: list[str]) -> list[str]:
    """``%sfm start?`` is ``%sfm help start``; IPython takes it for a question about ``start``."""
    if not lines or not lines[-1].rstrip().endswith("?"):
        return lines
    asked = re.fullmatch(r"\s*%sfm\s+(\w+)\s*\?{1,2}\s*", lines[-1])
    return [*lines[:-1], f"%sfm help {asked[1]}\n"] if asked else lines
