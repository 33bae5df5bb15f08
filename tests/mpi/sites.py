"""The sites of processes in tests, and an operation that depends on the order of the ranks."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

LAYOUTS = ["ab", "aba", "aabb", "abbac", "abcbca", "aabbbcc", "abcdbadc"]
"""For each rank its site."""

Run = Callable[..., list[Any]]


def product(left: Any, into: Any, _datatype: Any) -> None:
    """An operation that does not commute, on matrices of two by two numbers."""
    a, b = (np.frombuffer(memory, np.int64).reshape(-1, 2, 2) for memory in (left, into))
    b[:] = a @ b % 1009


def matrices(rank: int, count: int) -> Any:
    return (np.arange(4 * count) * (rank + 3) % 101 + rank).reshape(count, 2, 2)


def in_order(comm: Any) -> tuple[Any, Any, Any]:
    """Arguments of a reduction whose operation does not commute."""
    from mpi4py import MPI

    matrix = MPI.INT64_T.Create_contiguous(4).Commit()
    values, result = matrices(comm.rank, 1), np.empty((1, 2, 2), int)
    return [values, 1, matrix], [result, 1, matrix], MPI.Op.Create(product, commute=False)
