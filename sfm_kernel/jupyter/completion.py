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
from sfm_kernel.jupyter.cluster_files import clusters_by_name

_ENGINE_NAMES = ("rank", "size")
"""Names that cells on engines have, and this notebook has not."""

_C_OPTIONS = ("-n", "--fast", "--asan", "--stdin", "--timeout")

_SOURCES = (".py", ".c", ".cc", ".cpp", ".cxx", ".zip", ".tar.gz")


class Completion:
    """Completes lines of ``%sfm`` and cells of ``%%sfm``.

    Args:
        names: the commands.
        engines: returns the engines' names, including those of engines that have ended.
    """

    def __init__(
        self, shell: Any, names: Iterable[str], engines: Callable[[], Sequence[str]]
    ) -> None:
        self._shell, self._names, self._engines = shell, list(names), engines

        @context_matcher(identifier="sfm")
        def matcher(context: Any) -> dict[str, Any]:  # no method: the decorator sets attributes
            return self.matches(context)

        self._matcher = matcher

    def install(self) -> None:
        """Have Tab and ``?`` use this object."""
        self._shell.Completer.custom_matchers.append(self._matcher)
        self._shell.input_transformers_cleanup.append(ask)

    def remove(self) -> None:
        """Undo ``install``."""
        for registered, function in (
            (self._shell.Completer.custom_matchers, self._matcher),
            (self._shell.input_transformers_cleanup, ask),
        ):
            if function in registered:
                registered.remove(function)

    def matches(self, context: Any) -> dict[str, Any]:
        """IPython's matcher. If a word of ours matches, Python's keywords are suppressed."""
        line, magic = context.text_until_cursor, context.full_text.lstrip()
        words = self.after(line)
        if words is None and magic.startswith("%%sfm") and not _is_c(magic):
            found = [
                name for name in _ENGINE_NAMES if context.token and name.startswith(context.token)
            ]
            return {"completions": [SimpleCompletion(text=name) for name in found]}
        last = re.split(r"[\s,]", line)[-1]
        found = [word for word in words or () if word.startswith(last)]
        return {
            "completions": [SimpleCompletion(text=word, type=_kind(word)) for word in found],
            "matched_fragment": last,
            "suppress": bool(found),
            "ordered": True,
        }

    def after(self, line: str) -> list[str] | None:
        """All words that may come last in a line, however it ends now; None if it is not ours."""
        before = line.lstrip().split()
        if not line.endswith((" ", "\t")):
            before = before[:-1]  # without the word that the user is typing
        if not before or before[0] not in ("%sfm", "%%sfm"):
            return None
        if before[0] == "%%sfm":
            return self._cell_words(before[1:])
        return self._line_words(before[1:], line)

    def _cell_words(self, given: Sequence[str]) -> list[str]:
        if given and given[0] in LANGUAGES:
            return [*_C_OPTIONS, *self._engines()]
        options = [
            name for action in cells.options.parser._actions for name in action.option_strings
            if name.startswith("--")
        ]  # fmt: skip
        return [*self._engines(), *([] if given else LANGUAGES), *options]

    def _line_words(self, given: Sequence[str], line: str) -> list[str]:
        if not given:
            return self._names
        command, last = given[0], given[-1]
        begun = line.split()[-1] if not line.endswith(" ") else ""
        options = [option for option in commands.OPTIONS.get(command, ()) if option not in given]
        if last == "--from":
            return _files(begun, (".py",))
        if command == "help":
            return self._names if len(given) == 1 else []
        if command == "check" and not _value_follows(given):
            return [*_checks(given), *options]
        if command == "debug":
            return [*self._engines(), *options] if len(given) == 1 else options
        if command in ("restart", "expel", "output"):
            return [name for name in self._engines() if name not in given]
        if command == "connect":
            return [*clusters_by_name(), *options]
        if command == "run":
            return [*options, *_files(begun, _SOURCES)]
        if command == "timeline":
            return _files(begun, (".json",))
        return [] if _value_follows(given) else options


def _kind(word: str) -> str:
    """The kind that a list of completions shows beside a word."""
    return "option" if word.startswith("-") else "path" if "/" in word else "sfm"


def _value_follows(given: Sequence[str]) -> bool:
    """Whether the last word is an option that takes a value."""
    return given[-1].startswith("-") and given[-1] != "--strict"


def _checks(given: Sequence[str]) -> list[str]:
    from sfm_kernel.lessons import CheckFailed
    from sfm_kernel.lessons.examine.check import checks, of_file

    if [word for word in given[1:] if not word.startswith("-")]:  # a check is already named
        return []
    try:
        return list(of_file(given[given.index("--from") + 1]) if "--from" in given else checks())
    except (CheckFailed, IndexError):
        return []


def _files(begun: str, suffixes: tuple[str, ...]) -> list[str]:
    """The files with these suffixes, and the folders, whose paths begin like this one."""
    folder = os.path.dirname(begun)
    try:
        with os.scandir(folder or ".") as entries:
            found = [
                os.path.join(folder, entry.name) + ("/" if entry.is_dir() else "")
                for entry in entries
                if not entry.name.startswith(".")
                and (entry.is_dir() or entry.name.endswith(suffixes))
            ]
    except OSError:
        return []
    return sorted(found)


def _is_c(cell: str) -> bool:
    return cell.split()[1:2] in [[language] for language in LANGUAGES]


def ask(lines: list[str]) -> list[str]:
    """Turn ``%sfm start?`` into ``%sfm help start``: IPython would explain ``start``."""
    if not lines or not lines[-1].rstrip().endswith("?"):
        return lines
    asked = re.fullmatch(r"\s*%sfm\s+(\w+)\s*\?{1,2}\s*", lines[-1])
    return [*lines[:-1], f"%sfm help {asked[1]}\n"] if asked else lines
