"""Objects that the tests of remote objects refer to, and the processes that have them."""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import sfm_kernel
from sfm_kernel import Endpoint, remote, serving
from sfm_kernel.serving import references


class Account:
    """Some money."""

    def __init__(self, owner: object, balance: float = 0) -> None:
        self.owner, self.balance, self.history = owner, balance, list[float]()
        self.lock = threading.Lock()  # so that it cannot be sent

    def deposit(self, amount: float, *, note: str = "") -> float:
        """Put money in; the new balance."""
        if amount < 0:
            raise ValueError(f"an amount is positive, not {amount}")
        self.balance += amount
        self.history.append(amount)
        return self.balance

    def me(self) -> Account:
        return self

    def payments(self) -> Iterator[float]:
        yield from self.history

    def nap(self, seconds: float) -> float:
        time.sleep(seconds)
        return seconds

    def pay(self, other: Any, amount: float) -> float:
        self.balance -= amount
        return float(other.deposit(amount))

    def pass_on(self, other: Any, to: Any, amount: float) -> float:
        """Have another one pay."""
        return float(other.pay(to, amount))

    def keep(self, other: Any) -> None:
        self.other = other

    def whose(self) -> object:
        return self.other.owner

    def open_another(self) -> Any:
        return remote.ref([1, 2])


def meet(sfm: Endpoint, names: list[str]) -> str:
    """Return when those of these names are in the same call."""
    space = sfm.context("meet")
    for name in names:
        space.send(dest=name)
    for name in names:
        space.recv(src=name)
    return str(sfm.name)


def bank(use: Callable[..., Any], n: int = 3, **how: Any) -> Any:
    """``use(sfm, engines...)`` in rank 0, where each of the others offers its ``account``."""

    def program(sfm: Endpoint) -> Any:
        if sfm.rank:
            remote.export("account", Account(sfm.name, 10))
            remote.export("numbers", {"one": 1, "two": 2})
            remote.export("answer", 42)
            remote.export("double", lambda x: 2 * x)
            remote.export("meet", lambda names: meet(sfm, names))
            serving.serve(sfm)
            return None
        with contextlib.ExitStack() as stack:
            names = [member.name for member in sfm.members() if member.rank]
            engines = [stack.enter_context(remote.connect(sfm, name)) for name in sorted(names)]
            return use(sfm, *engines)

    options: dict[str, Any] = {"timeout": 100, "names": ["home", "A", "B", "C"][:n]} | how
    return sfm_kernel.run(program, n, **options)[0]


def table() -> dict[int, Any]:
    """The objects of this process that other processes refer to."""
    return {
        number: value
        for held in references._objects.values()
        for number, value in held.table.items()
    }
