"""Common code of the programs in this folder: they collect the results of cases, and print them.

A program is an ordinary mpi4py program. It fills a ``Cases`` on every rank and calls ``done``,
which prints one JSON document from rank 0: name of a case -> its result as a text; where the ranks
have different ones, all of them, by rank. Texts that are long are cut and end in a hash;
CASES=whole in the environment keeps them whole.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from mpi4py import MPI

WHOLE = os.environ.get("CASES") == "whole"
MOST = 40
"""Letters of a text that is kept as it is."""

CODES = "?bhilqBHILQfdgFDG"
"""Type codes of NumPy's that MPI knows, one for each kind and size."""

SIZES = (0, 1, 3, 1000)
LARGE = (1 << 18) + 1
"""More bytes than go at once."""

WAYS = ("", "I", "_init")
"""How ``call`` makes a collective call: blocking, non-blocking, persistent."""

COMPARISONS = ("IDENT", "CONGRUENT", "SIMILAR", "UNEQUAL")


class Cases:
    """The results of this rank."""

    def __init__(self) -> None:
        self._texts: dict[str, list[str]] = {}

    def add(self, case: str, *values: Any) -> None:
        """Add values to the result of a case, which may have some already."""
        self._texts.setdefault(case, []).extend(map(text, values))

    def error(self, case: str, call: Callable[..., Any], *args: Any, **options: Any) -> None:
        """Add what a call raises: a class of errors of MPI, or of Python's."""
        self.add(case, raised(call, *args, **options))

    def done(self) -> None:
        """Print the results of all ranks."""
        results = {case: short(" ".join(texts)) for case, texts in self._texts.items()}
        documents = MPI.COMM_WORLD.gather(results)
        if documents is None:
            return
        result = {}
        for case in dict.fromkeys(case for document in documents for case in document):
            texts = [document.get(case, "-") for document in documents]
            result[case] = texts[0] if len(set(texts)) == 1 else short(" | ".join(texts))
        print(json.dumps(result, indent=0, ensure_ascii=False), flush=True)


def call(comm: MPI.Comm, way: str, word: str, *args: Any) -> None:
    """Make a collective call in one of the ``WAYS``."""
    if way == "":
        getattr(comm, word)(*args)
    elif way == "I":
        getattr(comm, f"I{word.lower()}")(*args).Wait()
    else:
        request = getattr(comm, f"{word}_init")(*args)
        request.Start()
        request.Wait()
        request.Free()


def short(result: str) -> str:
    if len(result) <= MOST or WHOLE:
        return result
    return f"{result[: MOST // 2]}…{digest(result.encode())}"


def digest(data: bytes) -> str:
    return hashlib.blake2b(data, digest_size=6).hexdigest()


def text(value: Any) -> str:
    """A value as a text that says the same with every implementation of MPI."""
    if isinstance(value, MPI.Status):
        count, cancelled = value.Get_count(), " cancelled" if value.Is_cancelled() else ""
        return f"<{rank(value.source)} {tag(value.tag)} {rank(count)}{cancelled}>"
    for kind, write in WRITERS.items():
        if isinstance(value, kind):
            return f"null {kind.__name__}" if not value else write(value)
    if isinstance(value, bytes | bytearray | memoryview | MPI.buffer):
        return bytes(value).hex() or "empty"
    if isinstance(value, np.ndarray):
        kind = f"{value.dtype.str}{list(value.shape)}"
        if value.size > (2000 if WHOLE else 20):
            # The bytes of a long double are not all used.
            data = repr(value.tolist()).encode() if value.dtype.char in "gG" else value.tobytes()
            return f"{kind}#{digest(data)}"
        return kind + text(value.tolist())
    if isinstance(value, list | tuple):
        brackets = "[]" if isinstance(value, list) else "()"
        return brackets[0] + ",".join(map(text, value)) + brackets[1]
    if isinstance(value, dict):
        return "{" + ",".join(f"{text(key)}:{text(value[key])}" for key in value) + "}"
    return str(value)


def _of_comm(comm: MPI.Comm) -> str:
    if not comm.Is_inter():
        return f"{type(comm).__name__} {comm.rank}/{comm.size}"
    return f"{type(comm).__name__} {comm.rank}/{comm.size}:{comm.Get_remote_size()}"


WRITERS: dict[type, Callable[[Any], str]] = {
    MPI.Comm: _of_comm,
    MPI.Group: lambda group: f"Group {rank(group.rank)}/{group.size}",
    MPI.Datatype: lambda datatype: datatype.Get_name() or f"{datatype.size}/{datatype.extent}",
    MPI.Request: lambda request: type(request).__name__,
    MPI.Message: lambda message: "Message",
    MPI.Info: lambda info: text(sorted(info.items())),
    MPI.Op: lambda op: "Op",
    MPI.Errhandler: lambda errhandler: "Errhandler",
    MPI.Session: lambda session: "Session",
}


def named(value: Any, *names: str) -> Any:
    """The name, among these, of a constant with this value; if there is none, the value."""
    for name in names:
        if value == getattr(MPI, name):
            return name
    return value


def rank(value: int) -> Any:
    return named(value, "PROC_NULL", "ANY_SOURCE", "UNDEFINED", "ROOT")


def ranks(values: Any) -> list[Any]:
    return [rank(value) for value in values]


def tag(value: int) -> Any:
    return named(value, "ANY_TAG")


def raised(call: Callable[..., Any], *args: Any, **options: Any) -> str:
    """The class of the error that a call raises; "none" if it returns."""
    try:
        call(*args, **options)
    except MPI.Exception as error:
        return error_name(error.Get_error_class())
    except Exception as error:  # noqa: BLE001 - its class is the result
        return type(error).__name__
    return "none"


def error_name(code: int) -> str:
    """ERR_RANK for its number."""
    kind = MPI.Get_error_class(code)
    if kind == MPI.SUCCESS:
        return "SUCCESS"
    # ERR_LASTCODE is a limit, and the number of no error.
    names = sorted(name for name in dir(MPI) if name.startswith("ERR_"))
    return next((name for name in names if getattr(MPI, name) == kind), "another class")


def crowds() -> Iterator[tuple[str, MPI.Intracomm]]:
    """Communicators of the first 1, 2, 3 ranks, and how cases of each are named.

    A rank gets those that it belongs to. COMM_WORLD itself is the last.
    """
    world = MPI.COMM_WORLD
    for size in range(1, min(4, world.size)):
        comm = world.Split(0 if world.rank < size else MPI.UNDEFINED, world.rank)
        if comm != MPI.COMM_NULL:
            yield f" of {size}", comm
            comm.Free()
    yield f" of {world.size}", world


def numbers(code: str, count: int, first: int = 0) -> np.ndarray:
    """``count`` elements, small whole numbers that depend on ``first``: sums of them are exact."""
    if code == "?":
        return (np.arange(first, first + count) % 2).astype(code)
    values = (np.arange(first, first + count) % 5 + 1).astype(code)
    return values * np.array(1 + 2j, code) if code in "FDG" else values


def blank(code: str, count: int) -> np.ndarray:
    """``count`` elements to receive into; what is not written stays visible."""
    return np.full(count, 77, code)
