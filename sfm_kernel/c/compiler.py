"""A program or a library from C and C++ sources: compiled once, then taken from the cache."""

from __future__ import annotations

import os
import re
import shlex
import signal
import sys
from collections.abc import Iterable, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, NamedTuple

from sfm_kernel.c import FOLDER, INCLUDE, LIB, LIBMPI, LIBSFM, tools
from sfm_kernel.c.cache import Cache, key
from sfm_kernel.c.tools import Compiler
from sfm_kernel.errors import CompileError

if TYPE_CHECKING:
    import subprocess

CELL = "cell"
"""The file name of a cell. It does not contain the cell's number, so that running the cell again
compiles nothing. Messages get the number (``Source.shown``)."""

SUFFIXES = {
    ".c": "c", ".cc": "c++", ".cpp": "c++", ".cxx": "c++", ".c++": "c++", ".C": "c++",
}  # fmt: skip
"""The languages by the suffixes of source files."""

_CHECKS = os.path.join(FOLDER, "support", "checks.c")
_MADE_BY = (os.path.join(FOLDER, "tools.py"), os.path.abspath(__file__), _CHECKS)
_PROGRAM, _LIBRARY = "program", "library.so"


class Source(NamedTuple):
    """A source: a file, or a text.

    Attributes:
        name: the file's name, as the user wrote it; for a text, its name.
        text: the text, or None for a file.
        language: "c" or "c++".
        shown: the name of a text in messages, if it differs.
    """

    name: str
    text: str | None = None
    language: str = "c"
    shown: str = ""


class Built(NamedTuple):
    """The result of a build.

    Attributes:
        path: the program or library, in the cache.
        folder: the folder of the cache's entry.
        warnings: the compiler's output, now or when it compiled this.
        compiled: False if the cache had it.
    """

    path: str
    folder: str
    warnings: str
    compiled: bool


def file(path: str) -> Source:
    """The source in a file, whose suffix tells the language."""
    return Source(path, None, SUFFIXES[os.path.splitext(path)[1]])


def build(
    sources: Sequence[Source],
    *,
    before: Sequence[Source] = (),
    fast: bool = False,
    asan: bool = False,
    shared: bool = False,
    folder: str = "",
    headers: Sequence[str] = (),
    beside: Sequence[str] = (),
    cache: Cache | None = None,
) -> Built:
    """Compile and link, unless these sources and their headers have been compiled before.

    Args:
        sources: the sources of one program. Texts include headers from ``folder``.
        before: texts that precede each source, as if it included them.
        fast: without checks.
        asan: a program with AddressSanitizer.
        shared: a library, not a program.
        folder: the base of relative names; default: this process's working folder.
        headers: files below it, whose folders are searched for included headers.
        beside: all headers of a folder that is new each time: their contents, not the folder,
            determine if something has changed.
    Blocks: while the compiler runs. An interrupt ends it, and leaves nothing.
    Raises:
        CompileError: there is no compiler, or it has found an error; its text is in the message,
            with the names and lines of the sources.
    Cost: a few ms if nothing has changed.
    """
    base = os.path.abspath(folder)
    include = sorted({os.path.dirname(name) or "." for name in headers})
    made = fast, asan, shared
    return _Build(sources, before, made, base, include, beside, cache or Cache()).run()


class _Build:
    def __init__(
        self,
        sources: Sequence[Source],
        before: Sequence[Source],
        made: tuple[bool, bool, bool],
        base: str,
        include: Sequence[str],
        beside: Sequence[str],
        cache: Cache,
    ) -> None:
        self._sources, self._before, self._cache = sources, before, cache
        self._fast, self._asan, self._shared = made
        self._base, self._include, self._beside = base, include, beside
        self._languages = sorted({source.language for source in sources})
        self._compilers = {name: tools.find(name) for name in self._languages}
        self._user = shlex.split(os.environ.get("SFM_CFLAGS", ""))
        self._libraries = shlex.split(os.environ.get("SFM_LIBS", ""))
        self._texts = [*before, *sources]
        self._folder = ""

    def run(self) -> Built:
        name = _LIBRARY if self._shared else _PROGRAM
        entry = self._key()
        if known := self._cache.find(entry):
            folder, record = known
            return Built(os.path.join(folder, name), folder, self._named(record["said"]), False)
        self._folder = self._cache.new()
        self._announce()
        try:
            objects = [f"{number}.o" for number in range(len(self._sources))]
            output = self._compile(objects)
            output += self._link(objects, name, output)
            headers = self._headers(objects)
            self._tidy(name)
            folder = self._cache.keep(self._folder, entry, headers, said=output)
        except BaseException:
            self._cache.drop(self._folder)
            raise
        return Built(os.path.join(folder, name), folder, self._named(output), True)

    def _key(self) -> str:
        private = [[name, _contents(Source(name), self._base)] for name in self._beside]
        base = "" if private else self._base
        return key(
            [compiler.identity() for compiler in self._compilers.values()],
            [[text.name, text.language, _contents(text, self._base)] for text in self._texts],
            [self._fast, self._asan, self._shared, self._user, self._libraries],
            [base, private, self._include, LIB],
            [_about(path) for path in (*_MADE_BY, LIBMPI, LIBSFM)],
        )

    # ---- the steps

    def _compile(self, objects: Sequence[str]) -> str:
        """Compile the sources, several at a time; returns the compiler's output."""
        for source in self._texts:
            if source.text is not None:
                path = os.path.join(self._folder, source.name)
                with open(path, "w", encoding="utf-8") as text:
                    text.write(source.text)
        pairs = zip(self._sources, objects, strict=True)
        return self._run([self._command(source, output) for source, output in pairs])

    def _command(self, source: Source, output: str) -> list[str]:
        compiler, here = self._compilers[source.language], self._folder
        words = [
            *compiler.command,
            *compiler.flags(fast=self._fast, shared=self._shared, asan=self._asan),
        ]
        words += [f"-fdebug-prefix-map={here}=.", f"-I{INCLUDE}", *self._user]
        words += self._openmp(compiler)
        if source.text is not None:
            words += ["-iquote", self._base]
        words += [f"-I{name}" for name in self._include]
        for text in self._before:
            words += ["-include", os.path.join(here, text.name)]
        path = os.path.join(here, output)
        words += ["-MD", "-MF", f"{path}.d", "-c", "-o", path]
        return [*words, "-x", source.language, source.name]

    def _link(self, objects: Sequence[str], name: str, said: str) -> str:
        """Link; an error also shows what the compiler has ``said``, which may be its cause."""
        # The C++ compiler, if there is a C++ source.
        compiler = self._compilers[self._languages[-1]]
        words = [*compiler.command, *compiler.link_flags(asan=self._asan), *self._user]
        words += [os.path.join(self._folder, name) for name in objects]
        words.append(self._checks(compiler))
        if self._shared:
            words.append("-shared")
        words += self._openmp(compiler)
        # By their paths, since -lmpi would find another library, or none. libmpi reports crashes,
        # whether the program uses MPI or not; a Python process reports them itself.
        words += self._libraries
        for library in (LIBMPI, LIBSFM):
            if os.path.exists(library):
                is_needed = library == LIBMPI and not self._shared
                needed = "--no-as-needed" if is_needed else "--as-needed"
                words += [f"-Wl,{needed}", library]
        words += [f"-Wl,-rpath,{LIB}", "-Wl,--as-needed", "-lm", "-lpthread"]
        words += ["-o", os.path.join(self._folder, name)]
        return self._run([words], said)

    def _checks(self, compiler: Compiler) -> str:
        """The object of checks.c, compiled once."""
        entry = key("checks", compiler.identity(), _about(_CHECKS))
        if known := self._cache.find(entry):
            return os.path.join(known[0], "checks.o")
        folder = self._cache.new()
        try:
            c = compiler.command
            if compiler.language == "c++" and compiler.zig:
                c = (c[0], "cc")
            words = [*c, "-O2", "-fPIC", "-fno-sanitize=undefined", "-c", "-x", "c", _CHECKS]
            words += ["-o", os.path.join(folder, "checks.o")]
            failed, output = _run([words], folder, self._environment())
            if failed:
                raise CompileError(output)
        except BaseException:
            self._cache.drop(folder)
            raise
        return os.path.join(self._cache.keep(folder, entry, ()), "checks.o")

    def _headers(self, objects: Iterable[str]) -> list[str]:
        """The full paths of the files that the sources have included."""
        known = {os.path.join(self._folder, source.name) for source in self._texts}
        names = [source.name for source in self._sources if source.text is None]
        known |= {os.path.join(self._base, name) for name in [*names, *self._beside]}
        base, found = self._working_folder(), set()
        for output in objects:
            with open(os.path.join(self._folder, f"{output}.d"), encoding="utf-8") as file:
                listed = _listed(file.read())
            found |= {os.path.abspath(os.path.join(base, name)) for name in listed}
        return sorted(found - known)

    def _tidy(self, but: str) -> None:
        for name in os.listdir(self._folder):
            path = os.path.join(self._folder, name)
            if os.path.isdir(path):
                self._cache.drop(path)
            elif name != but:
                os.remove(path)

    # ---- the compiler

    def _run(self, commands: Sequence[Sequence[str]], said: str = "") -> str:
        """Run commands, as many at a time as there are processors; returns their output."""
        failed, output = _run(commands, self._working_folder(), self._environment())
        if failed:
            from sfm_kernel.c.advice import advice

            text = self._named(said + output).rstrip()
            hint = advice(said + output)
            raise CompileError("\n".join(filter(None, (text, hint))))
        return output

    def _working_folder(self) -> str:
        """The compiler's working folder, in which texts have bare names, files the user's."""
        has_texts = any(source.text is not None for source in self._sources)
        return self._folder if has_texts else self._base

    def _announce(self) -> None:
        """Print why it takes long, if ziglang has to compile its own library first."""
        language = self._languages[-1]
        if not self._compilers[language].zig:
            return
        folder = self._environment()["ZIG_GLOBAL_CACHE_DIR"]
        with suppress(OSError):
            os.makedirs(folder, exist_ok=True)
            with open(os.path.join(folder, f"sfm-{language}"), "x"):
                text = f"the first program in {language.upper()} takes longer: it builds a library"
                print(f"sfm: {text}", file=sys.stderr, flush=True)

    def _environment(self) -> dict[str, str]:
        environment = {**os.environ, "LC_ALL": "C"}
        environment["ZIG_LOCAL_CACHE_DIR"] = os.path.join(self._folder, "zig")
        environment.setdefault("ZIG_GLOBAL_CACHE_DIR", os.path.join(self._cache.folder, "zig"))
        return environment

    def _openmp(self, compiler: Compiler) -> list[str]:
        is_used = any(b"#pragma omp" in _contents(text, self._base) for text in self._texts)
        return ["-fopenmp"] if is_used and not compiler.zig else []

    def _named(self, output: str) -> str:
        """A compiler's output with the names that the user knows for the sources."""
        output = output.replace(f"{self._folder}/", "") if self._folder else output
        for number, source in enumerate(self._sources):
            shown = (source.shown or source.name).replace("\\", r"\\")
            output = re.sub(rf"\b{number}\.o(?=: in function )", shown, output)
        for source in self._texts:
            if source.shown and source.shown != source.name:
                name = re.escape(source.name)
                output = re.sub(rf"(?m)(^|from |by ){name}(?=:)", rf"\g<1>{source.shown}", output)
                # Linkers know it from the debug information, with a folder: ././cell:8
                output = re.sub(rf"(?:\./)+{name}(?=:)", source.shown, output)
        return output


def _contents(source: Source, base: str) -> bytes:
    if source.text is not None:
        return source.text.encode()
    try:
        with open(os.path.join(base, source.name), "rb") as found:
            return found.read()
    except OSError as problem:
        raise CompileError(f"{source.name} cannot be read: {problem.strerror}") from None


def _about(path: str) -> list[object]:
    try:
        about = os.stat(path)
    except OSError:
        return [path]
    return [path, about.st_size, about.st_mtime_ns]


def _listed(text: str) -> list[str]:
    """The files on which a makefile's rule, as compilers write it, depends."""
    _, _, names = text.replace("\\\n", " ").partition(": ")
    names = names.split("\n")[0]
    words = re.findall(r"(?:\\.|[^\s\\])+", names)
    return [re.sub(r"\\(.)", r"\1", word).replace("$$", "$") for word in words]


def _run(
    commands: Sequence[Sequence[str]], folder: str, environment: dict[str, str]
) -> tuple[bool, str]:
    """Run commands concurrently; returns True if one failed, and their output."""
    waiting, outputs, failed = list(commands), [], False
    running: list[subprocess.Popen[str]] = []
    most = len(os.sched_getaffinity(0))
    try:
        while waiting or running:
            while waiting and len(running) < most:
                running.append(_start(waiting.pop(0), folder, environment))
            process = running[0]
            text, _ = process.communicate()
            running.pop(0)
            outputs.append(text)
            failed = failed or process.returncode != 0
            if process.returncode < 0:
                name = signal.Signals(-process.returncode).name
                outputs.append(f"the compiler was killed by {name}\n")
    finally:
        for process in running:  # a compiler's driver has children of its own
            os.killpg(process.pid, signal.SIGKILL)
            process.communicate()
    return failed, "".join(outputs)


def _start(
    command: Sequence[str], folder: str, environment: dict[str, str]
) -> subprocess.Popen[str]:
    import subprocess

    try:
        return subprocess.Popen(
            command,
            cwd=folder,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            start_new_session=True,  # an interrupt is for this process, which ends all of them
        )
    except OSError as problem:
        raise CompileError(f"{command[0]} cannot be started: {problem}") from None
