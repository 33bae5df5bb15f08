"""What goes wrong in a storm, and when: all of it follows from a seed."""

from __future__ import annotations

import random
from collections.abc import Mapping
from dataclasses import dataclass

QUIET = 1.0
"""Seconds without a fault at the beginning, in which processes meet."""


@dataclass(frozen=True)
class Fault:
    """One fault.

    Attributes:
        at: seconds after the beginning.
        what: the name of a method of ``test_storm.Storm``.
        details: its arguments.
    """

    at: float
    what: str
    details: Mapping[str, float | int | str | bool]

    def __str__(self) -> str:
        details = ", ".join(f"{name}={value!r}" for name, value in self.details.items())
        return f"{self.at:7.3f}  {self.what}({details})"


class Plan:
    """The faults of a storm between the sites A and B.

    Args:
        processes: names of the processes at its beginning: a letter, the site's, and a number.
        gateways: the number of gateways in each site.
        longest: seconds of the longest cut, or stop of a process.
    Attributes:
        faults: in the order of their times.
    """

    def __init__(
        self, seed: int, seconds: float, processes: list[str], gateways: int, longest: float
    ) -> None:
        self._chance, self._longest = random.Random(seed), longest
        self._living, self._gateways = list(processes), gateways
        self._next = 1 + max(int(name[1:]) for name in processes)
        self.faults: list[Fault] = []
        makers = [self._kill, self._stop, self._stop, self._cut, self._cut_one_way, self._reset,
                  self._reset, self._path, self._stop_directory]  # fmt: skip
        if gateways:
            makers += [self._kill_gateway, self._stop_gateway]
        at = QUIET
        while at < seconds:
            self.faults.append(self._chance.choice(makers)(round(at, 3)))
            at += self._chance.expovariate(1.5)

    def _seconds(self) -> float:
        """Mostly short, now and then long."""
        return round(min(0.1 + self._chance.expovariate(1.5), self._longest), 3)

    def _kill(self, at: float) -> Fault:
        """Another process joins in its place: the world stays as large as it was."""
        victim = self._chance.choice(self._living)
        newcomer = f"{victim[0]}{self._next}"
        self._next += 1
        self._living[self._living.index(victim)] = newcomer
        return Fault(at, "kill", {"name": victim, "newcomer": newcomer})

    def _stop(self, at: float) -> Fault:
        name = self._chance.choice(self._living)
        return Fault(at, "stop", {"name": name, "seconds": self._seconds()})

    def _cut(self, at: float) -> Fault:
        return Fault(at, "cut", {"seconds": self._seconds(), "ways": "AB"})

    def _cut_one_way(self, at: float) -> Fault:
        return Fault(at, "cut", {"seconds": self._seconds(), "ways": self._chance.choice("AB")})

    def _reset(self, at: float) -> Fault:
        return Fault(at, "reset", {})

    def _path(self, at: float) -> Fault:
        rtt, loss = self._chance.choice([0.002, 0.02, 0.08]), self._chance.choice([0, 1e-3, 2e-2])
        return Fault(at, "path", {"rtt": rtt, "loss": loss})

    def _gateway(self) -> dict[str, int | str]:
        return {"site": self._chance.choice("AB"), "nth": self._chance.randrange(self._gateways)}

    def _kill_gateway(self, at: float) -> Fault:
        return Fault(at, "kill_gateway", self._gateway())

    def _stop_gateway(self, at: float) -> Fault:
        return Fault(at, "stop_gateway", {**self._gateway(), "seconds": self._seconds()})

    def _stop_directory(self, at: float) -> Fault:
        seconds = min(self._seconds(), 5.0)  # clients wait for an answer for 10 s
        return Fault(at, "stop_directory", {"seconds": seconds})
