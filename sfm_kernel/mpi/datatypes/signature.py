"""Signature: of which basic types data consist, in order, wherever they lie in memory."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeAlias

from sfm_kernel.mpi.datatypes.basics import Basic

Part: TypeAlias = "Basic | Signature"


class Signature:
    """Parts, each so many times.

    Attributes:
        nbytes, external: what data take when packed, here and in external32.
        elements: how many basic elements there are; a pair has two.
        only: the basic type of all of them; None if they differ, or there are none.
    """

    __slots__ = ("elements", "external", "nbytes", "only", "parts")

    nbytes: int
    external: int
    elements: int
    only: Basic | None

    def __init__(self, parts: tuple[tuple[Part, int], ...]) -> None:
        self.parts = parts
        self.nbytes = sum(part.nbytes * times for part, times in parts)
        self.external = sum(part.external * times for part, times in parts)
        self.elements = sum(_elements(part) * times for part, times in parts)
        kinds = {part if isinstance(part, Basic) else part.only for part, _ in parts}
        self.only = kinds.pop() if len(kinds) == 1 else None

    def repeated(self, times: int) -> Signature:
        if times == 1 or not self.parts:
            return self
        if times == 0:
            return EMPTY
        if len(self.parts) == 1:
            part, inner = self.parts[0]
            return Signature(((part, inner * times),))
        return Signature(((self, times),))

    @staticmethod
    def joined(signatures: Iterable[Signature]) -> Signature:
        parts: list[tuple[Part, int]] = []
        for signature in signatures:
            for part, times in signature.parts:
                if parts and parts[-1][0] is part:
                    parts[-1] = part, parts[-1][1] + times
                else:
                    parts.append((part, times))
        return Signature(tuple(parts))

    def elements_in(self, nbytes: int) -> int | None:
        """How many basic elements so many packed bytes hold; None if one of them is cut."""
        if self.nbytes == 0:
            return 0 if nbytes == 0 else None
        times, rest = divmod(nbytes, self.nbytes)
        found = times * self.elements
        for part, times in self.parts if rest else ():
            whole = min(rest // part.nbytes, times) if part.nbytes else 0
            found += whole * _elements(part)
            rest -= whole * part.nbytes
            if whole < times and rest:
                inner = _members_in(part, rest)
                return None if inner is None else found + inner
        return found

    def nbytes_of(self, elements: int) -> int:
        """How many packed bytes so many basic elements take."""
        if self.elements == 0:
            return 0
        times, rest = divmod(elements, self.elements)
        nbytes = times * self.nbytes
        for part, times in self.parts if rest else ():
            whole = min(rest // _elements(part), times)
            nbytes += whole * part.nbytes
            rest -= whole * _elements(part)
            if whole < times and rest:
                return nbytes + _nbytes_of(part, rest)
        return nbytes


EMPTY = Signature(())


def _elements(part: Part) -> int:
    return len(part.members) if isinstance(part, Basic) else part.elements


def _members_in(part: Part, nbytes: int) -> int | None:
    """How many basic elements the first bytes of one part hold; None if one is cut."""
    if isinstance(part, Signature):
        return part.elements_in(nbytes)
    ends = [sum(part.members[: n + 1]) for n in range(len(part.members))]
    return ends.index(nbytes) + 1 if nbytes in ends else None


def _nbytes_of(part: Part, elements: int) -> int:
    """How many bytes the first elements of one part take."""
    return part.nbytes_of(elements) if isinstance(part, Signature) else sum(part.members[:elements])
