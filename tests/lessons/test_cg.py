"""Conjugate gradients: the equations, their solution on any number of engines, and SciPy's.

No test here looks at how long anything took.
"""

from __future__ import annotations

import math
import sys
from itertools import product
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import sfm_kernel
from sfm_kernel.collectives import Group
from sfm_kernel.endpoint import Endpoint
from sfm_kernel.errors import SFMError
from sfm_kernel.lessons.dot import REDUCTIONS, cg
from sfm_kernel.lessons.dot.cg import EXAMPLE_2

pytestmark = pytest.mark.usefixtures("forked")  # their processes: tests.forks

# --- the problem -------------------------------------------------------------------------------


@given(n=st.integers(0, 300), engines=st.integers(1, 40))
def test_blocks_cover_everything_once_and_in_order(n: int, engines: int) -> None:
    blocks = [cg.block(n, rank, engines) for rank in range(engines)]
    assert [i for block in blocks for i in block] == list(range(n))
    assert max(map(len, blocks)) - min(map(len, blocks)) <= 1
    assert n < engines or min(map(len, blocks)) >= 1  # nobody's neighbour has no rows


def dense(m: int) -> cg.Floats:
    """The matrix, point by point: what is next to what."""
    found = np.zeros((m * m, m * m))
    for i in range(m):
        for j in range(m):
            found[i * m + j, i * m + j] = 4
            for di, dj in ((-1, 0), (1, 0), (0, -1), (0, 1)):
                if 0 <= i + di < m and 0 <= j + dj < m:
                    found[i * m + j, (i + di) * m + j + dj] = -1
    return found


@given(m=st.integers(1, 9), engines=st.integers(1, 9), seed=st.integers(0, 2**32 - 1))
def test_every_block_applies_its_rows_of_the_matrix(m: int, engines: int, seed: int) -> None:
    u = np.random.default_rng(seed).standard_normal((m, m))
    expected = (dense(m) @ u.ravel()).reshape(m, m)
    padded = np.zeros((m + 2, m))
    padded[1:-1] = u
    for rank in range(min(engines, m)):
        rows = cg.block(m, rank, min(engines, m))
        out = np.full((len(rows), m), np.nan)
        cg.apply(padded[rows.start : rows.stop + 2], out)
        assert np.allclose(out, expected[rows.start : rows.stop], rtol=0, atol=1e-13)


@pytest.mark.parametrize("m", [2, 5, 12])
def test_the_sparse_matrix_is_the_same(m: int) -> None:
    assert np.array_equal(cg.matrix(m).toarray(), dense(m))


def test_without_scipy_the_matrix_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "scipy", None)
    with pytest.raises(SFMError, match="pip install 'scipy>="):
        cg.matrix(3)


def test_the_right_hand_side_is_that_of_the_exact_solution() -> None:
    """The residual of the exact u is the error of the differences, h⁴ for each point."""
    largest = []
    for m in (20, 40, 80):
        rows = range(m)
        padded = np.zeros((m + 2, m))
        padded[1:-1] = cg.exact(m, rows)
        out = np.empty((m, m))
        cg.apply(padded, out)
        largest.append(np.abs(out - cg.right_hand_side(m, rows)).max() * (m + 1) ** 4)
    assert min(largest) > 0.1 and max(largest) < 2 * min(largest)
    assert cg.exact(9, range(3, 5)).tolist() == cg.exact(9, range(9))[3:5].tolist()


def test_the_bound_of_the_iterations_is_that_of_the_condition() -> None:
    for m in (2, 7, 12):
        values = np.linalg.eigvalsh(dense(m))
        root = math.sqrt(values[-1] / values[0])
        k = cg.iteration_bound(m, 1e-8)
        rate = (root - 1) / (root + 1)
        assert 2 * root * rate**k <= 1e-8 < 2 * root * rate ** (k - 1)
    assert cg.iteration_bound(1, 1e-8) == 1


# --- sums over engines -------------------------------------------------------------------------


PARTS = [1e16, 1.0, -1e16, 3.0]


def sums(sfm: Endpoint) -> dict[int, list[float]]:
    """Engines -> what every algorithm finds on so many."""
    assert sfm.rank is not None
    everybody, found = Group(sfm), {}
    for engines in (1, 2, 3, 4):
        everybody.barrier()  # example 2's root takes parts from anybody, also of the next group
        if sfm.rank < engines:
            group, part = Group(sfm, range(engines)), PARTS[sfm.rank]
            algorithms = (*REDUCTIONS, EXAMPLE_2)
            found[engines] = [cg.allreduce(sfm, group, part, name) for name in algorithms]
    return found


def test_every_allreduce_gives_all_engines_the_same_sum() -> None:
    by_rank = sfm_kernel.run(sums, 4)
    for engines, found in by_rank[0].items():
        assert len(found) == len(REDUCTIONS) + 1
        # To the last bit: the engines decide by it when to stop.
        assert all(by_rank[rank][engines] == found for rank in range(engines))
        for total in found:
            assert abs(total - math.fsum(PARTS[:engines])) <= 4.0  # rounding at 1e16, in any order


def with_a_stranger(sfm: Endpoint) -> float | None:
    """Engine 3 is no member; what it does between does not disturb the others."""
    if sfm.rank == 3:
        sfm.send(dest=0, tag="other", result=100.0)
        return None
    return cg.example_2(sfm, Group(sfm, [2, 0, 1]), float(sfm.rank or 0))


def test_example_2_in_a_sub_group_has_its_root() -> None:
    assert sfm_kernel.run(with_a_stranger, 4) == [3.0, 3.0, 3.0, None]


# --- the solver --------------------------------------------------------------------------------

Found = dict[str, Any]


def solved(
    sfm: Endpoint,
    sizes: list[tuple[int, int]],
    tolerance: float,
    algorithms: tuple[str | None, ...] = (None,),
) -> list[Found]:
    """The results of a rank for every (engines, m) and algorithm; none where it has no part."""
    found = []
    for (engines, m), algorithm in product(sizes, algorithms):
        if sfm.rank in range(engines):
            group = Group(sfm, range(engines))
            solver = cg.solve(sfm, group, m, tolerance, algorithm)
            result: Found = {"iterations": solver.iterations, "residual": solver.residual}
            result |= {"error": solver.error(), "true_residual": solver.true_residual()}
            found.append(result | {"x": solver.x, "times": solver.times})
        else:
            found.append({})
    return found


def test_the_solution_is_that_of_the_equations() -> None:
    sizes = [(1, 1), (1, 20), (2, 2), (2, 21), (3, 20), (4, 4), (4, 23)]
    by_rank = sfm_kernel.run(solved, 4, sizes, 1e-12)
    for (engines, m), *members in zip(sizes, *by_rank, strict=True):
        members = members[:engines]
        x = np.concatenate([result["x"] for result in members])
        rhs = cg.right_hand_side(m, range(m)).ravel()
        assert np.allclose(x.ravel(), np.linalg.solve(dense(m), rhs), rtol=0, atol=1e-11)
        for result in members:
            assert result["residual"] <= 1e-12 and result["true_residual"] < 1e-11
            assert result["iterations"] <= cg.iteration_bound(m, 1e-12)
            assert result["error"] == np.abs(x - cg.exact(m, range(m))).max()
            assert all(result[name] == members[0][name] for name in ("iterations", "residual"))
            assert 0 <= result["times"].halo_alone <= result["times"].communication < 1


@pytest.mark.parametrize("n", [1, 2, 3, 4])
def test_the_solution_is_that_of_scipy(n: int) -> None:
    from scipy.sparse import linalg

    m = 40
    by_rank = [found for (found,) in sfm_kernel.run(solved, n, [(n, m)], 1e-10)]
    x = np.concatenate([found["x"] for found in by_rank]).ravel()
    matrix, rhs = cg.matrix(m), cg.right_hand_side(m, range(m)).ravel()
    assert np.abs(x - linalg.spsolve(matrix.tocsc(), rhs)).max() < 1e-9
    steps: list[Any] = []
    _, failed = linalg.cg(matrix, rhs, rtol=1e-10, atol=0, callback=steps.append)
    # The same method takes as many steps.
    assert failed == 0 and abs(len(steps) - by_rank[0]["iterations"]) <= 2


def test_every_allreduce_serves_the_solver() -> None:
    for result in sfm_kernel.run(solved, 3, [(3, 15)], 1e-10, REDUCTIONS)[1]:
        assert result["residual"] <= 1e-10 and result["true_residual"] < 1e-9
        assert 30 < result["iterations"] < 60 and result["error"] == pytest.approx(
            1.33306e-4, rel=1e-3
        )
        assert 0 < result["times"].halo_alone < result["times"].communication < 1


def test_the_error_falls_with_the_square_of_the_distance() -> None:
    found = sfm_kernel.run(solved, 2, [(2, 15), (2, 31), (2, 63)], 1e-10)[0]
    errors = [result["error"] for result in found]
    assert errors[0] / errors[1] == pytest.approx(4, rel=0.02)
    assert errors[1] / errors[2] == pytest.approx(4, rel=0.02)


def with_buffers(sfm: Endpoint, nbytes: int) -> int:
    sfm.buffering = nbytes
    return cg.solve(sfm, Group(sfm), 12, algorithm=EXAMPLE_2).iterations


@pytest.mark.parametrize("nbytes", [0, 100, 1000])
def test_rows_are_exchanged_without_buffers(nbytes: int) -> None:
    """A row has 96 bytes."""
    assert len(set(sfm_kernel.run(with_buffers, 4, nbytes))) == 1


def in_two_parts(sfm: Endpoint) -> tuple[list[float], float, float]:
    solver = cg.Solver(sfm, Group(sfm), 10)
    residuals = [solver.residual]
    while solver.residual > 1e-9:
        solver.advance(3, 1e-9)
        residuals.append(solver.residual)
    at_once = cg.solve(sfm, Group(sfm), 10, 1e-9)
    return residuals, solver.residual, at_once.residual


def test_a_solver_may_pause() -> None:
    residuals, paused, at_once = sfm_kernel.run(in_two_parts, 2)[0]
    assert residuals[0] == 1 and paused == at_once


def too_many(sfm: Endpoint) -> None:
    with pytest.raises(ValueError, match="2 engines cannot share 1 rows: let m be 2 or more"):
        cg.solve(sfm, Group(sfm), 1)
    with pytest.raises(ValueError, match="tolerance"):
        cg.solve(sfm, Group(sfm), 5, tolerance=0)


def test_more_engines_than_rows_are_refused() -> None:
    sfm_kernel.run(too_many, 2)


def test_a_solver_that_does_not_converge_says_so() -> None:
    bound = cg.iteration_bound(10, 1e-8)
    cg.check_converged(10, bound - 1, 0.5, 1e-8)
    cg.check_converged(10, bound, 1e-8, 1e-8)
    with pytest.raises(SFMError, match=rf"residual 5.0e-01 after {bound} iterations"):
        cg.check_converged(10, bound, 0.5, 1e-8)
    stuck = SimpleNamespace(residual=0.5, times=[(1.0, 0.5, 0.2)])

    def ask(**job: Any) -> SimpleNamespace:
        stuck.iterations = 0 if job["begin"] else stuck.iterations + job["iterations"]
        return stuck

    rows = cg.rows(ask, 10, "linear", 1, 0, 1e-8, 7)
    with pytest.raises(SFMError, match=r"but 1\.0e-08 was due"):
        assert all(not row["done"] for row in rows)
