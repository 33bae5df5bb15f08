"""The C and C++ compilers, and their options.

The compiler is the one that SFM_CC names; otherwise the first on PATH, then conda's, then that of
the package ziglang, which needs nothing from the system. For C++ the variable is SFM_CXX.
"""

from __future__ import annotations

import functools
import os
import re
import shlex
import shutil
import sys
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from sfm_kernel.errors import CompileError, pip_install

_ON_PATH = {"c": ("cc", "gcc", "clang"), "c++": ("c++", "g++", "clang++")}
_VARIABLE = {"c": "SFM_CC", "c++": "SFM_CXX"}
_CONDAS = {"c": "CC", "c++": "CXX"}
_STANDARD = {"c": "-std=gnu17", "c++": "-std=gnu++17"}
"""Explicit, since newer compilers' defaults refuse programs from older books."""

_CHECKS = (
    "-fsanitize=undefined",
    "-fno-sanitize=alignment,pointer-overflow,signed-integer-overflow,object-size,shift,vptr",
    "-fno-sanitize-recover=all",
    "-fsanitize-recover=vla-bound",  # checks.c lets arrays of no elements pass
)
"""The checks that cost little: bounds, null pointers, division by zero. The others slow loops down,
or report things that courses' programs do on purpose (hashes that overflow)."""

ASAN = "-fsanitize=address"
"""AddressSanitizer, a library of the compiler's: each access costs some instructions more."""

_LENIENT = ("implicit-function-declaration", "implicit-int", "int-conversion",
            "incompatible-pointer-types")  # fmt: skip
"""Errors of newer compilers that were warnings when many programs were written."""


class Compiler(NamedTuple):
    """A compiler that can be started.

    Attributes:
        command: the words that start it.
        language: "c" or "c++".
        zig: True for ziglang's compiler.
    """

    command: tuple[str, ...]
    language: str
    zig: bool = False

    def identity(self) -> list[str | int]:
        """Values that change when another compiler is installed under its name."""
        about = os.stat(os.path.realpath(self.command[0]))
        return [*self.command, os.path.realpath(self.command[0]), about.st_size, about.st_mtime_ns]

    def flags(self, *, fast: bool, shared: bool, asan: bool = False) -> list[str]:
        """The options for compiling a source.

        Args:
            fast: without checks.
            shared: for a library.
            asan: with AddressSanitizer, and unoptimised: no wrong access is left out.
        """
        flags = [
            "-O0" if asan else "-O2",
            "-g",
            _STANDARD[self.language],
            "-ffp-contract=off",
            "-Wall",
        ]
        flags += ["-Wno-unused", "-fdiagnostics-color=never"]
        # Observers and crash reports name lines by the callers' addresses.
        flags += ["-fno-omit-frame-pointer", "-fno-optimize-sibling-calls"]
        if self.zig:
            flags += ["-mcpu=baseline", "-fno-stack-protector"]
        clang = self.zig or "clang" in _version_text(self.command)
        if self.language == "c":
            known = _LENIENT if clang else ("implicit-function-declaration", "implicit-int")
            flags += [f"-Wno-error={name}" for name in known]
            if not clang and self._version() >= 14:
                flags += [f"-Wno-error={name}" for name in _LENIENT[2:]]
        if not fast:
            flags += _CHECKS
            flags += ["-fno-sanitize=function"] if clang else ["-fsanitize=bounds-strict"]
        elif self.zig:
            flags.append("-fno-sanitize=undefined")
        if asan:
            flags.append(ASAN)
        if shared:
            flags.append("-fPIC")
        return flags

    def link_flags(self, *, asan: bool = False) -> list[str]:
        """The options for linking objects; checks.c has the functions of the checks.

        Raises:
            CompileError: this compiler has no AddressSanitizer.
        """
        if asan and self.zig:
            raise CompileError(
                "--asan needs GCC or Clang, and ziglang's compiler has no AddressSanitizer: "
                "`apt install gcc libc6-dev` or `conda install c-compiler`, or leave --asan out"
            )
        flags = ["-g", "-fno-sanitize=undefined"] if self.zig else ["-g"]
        return [*flags, *([ASAN] if asan else [])]

    def _version(self) -> int:
        """The first number of GCC's version."""
        found = re.search(r"\) (\d+)\.", _version_text(self.command))
        return int(found[1]) if found else 0


def find(language: str) -> Compiler:
    """The compiler for "c" or "c++".

    Raises:
        CompileError: there is none; the text says what to install.
    """
    variable = _VARIABLE[language]
    if chosen := os.environ.get(variable):
        command = shlex.split(chosen)
        path = shutil.which(command[0]) if command else None
        if path is None:
            raise CompileError(
                f"there is no compiler {chosen!r}, which {variable} names: unset it, or name one"
            )
        return Compiler((path, *command[1:]), language, "zig" in os.path.basename(path))
    for path in _candidates(language):
        return Compiler((path,), language)
    if zig := _zig():
        return Compiler((zig, "cc" if language == "c" else "c++"), language, zig=True)
    raise CompileError(_no_compiler(language))


def _candidates(language: str) -> Iterator[str]:
    if language == "c++" and (beside := _beside(os.environ.get("SFM_CC", ""))):
        yield beside
    names = [*_ON_PATH[language], *shlex.split(os.environ.get(_CONDAS[language], ""))[:1]]
    for name in names:
        if path := shutil.which(name):
            yield path
    # A kernel may run in a conda environment that is not activated.
    suffix = {"c": "cc", "c++": "c++"}[language]
    folder = os.path.join(sys.prefix, "bin")
    if path := shutil.which(f"{os.uname().machine}-conda-linux-gnu-{suffix}", path=folder):
        yield path


def _beside(c_compiler: str) -> str | None:
    """The C++ compiler that comes with a C compiler: g++-12 with gcc-12."""
    name = shlex.split(c_compiler)[:1]
    found = re.fullmatch(r"(.*?)(gcc|clang|cc)(-\d+)?", name[0]) if name else None
    if found is None:
        return None
    plus = {"gcc": "g++", "clang": "clang++", "cc": "c++"}[found[2]]
    return shutil.which(f"{found[1]}{plus}{found[3] or ''}")


def _zig() -> str | None:
    """The compiler of the package ziglang, if that is installed."""
    from importlib.util import find_spec

    found = find_spec("ziglang")
    folders = list(found.submodule_search_locations or []) if found else []
    paths = [os.path.join(folder, "zig") for folder in folders]
    return next(filter(os.path.isfile, paths), None)


def _no_compiler(language: str) -> str:
    name, debian, conda = {
        "c": ("C", "gcc libc6-dev", "c-compiler"),
        "c++": ("C++", "g++", "cxx-compiler"),
    }[language]
    return (
        f"there is no {name} compiler. Install one: `{pip_install('ziglang>=0.14')}` (needs "
        f"nothing else), or `apt install {debian}`, or `conda install {conda}`; or let "
        f"{_VARIABLE[language]} name it"
    )


@functools.cache
def _version_text(command: Sequence[str]) -> str:
    """A compiler's description of itself."""
    import subprocess

    try:
        done = subprocess.run([*command, "--version"], capture_output=True, check=False)
    except OSError as problem:
        raise CompileError(f"{command[0]} cannot be started: {problem}") from None
    return done.stdout.decode(errors="replace")
