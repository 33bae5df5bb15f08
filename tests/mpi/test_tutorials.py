"""Programs as tutorials of mpi4py have them, on 1 to 5 ranks: each prints what it should."""

from __future__ import annotations

import json
import random
import subprocess
import sys
from collections.abc import Callable
from functools import cache
from pathlib import Path

import pytest

FOLDER = Path(__file__).with_name("tutorials")
DRIVER = "one_after_another"
PROGRAMS = sorted(path.stem for path in FOLDER.glob("*.py") if path.stem != DRIVER)
SECONDS = 100

Outputs = list[str]
"""The output of each rank."""


def launch(ranks: int, *words: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "sfm_kernel.mpi", "-n", str(ranks), "--timeout", str(SECONDS)]
    return subprocess.run([*command, *words], capture_output=True, text=True)


@cache
def launched(ranks: int) -> subprocess.CompletedProcess[str]:
    """Run all programs in a world of ``ranks`` processes, once."""
    paths = [str(FOLDER / f"{program}.py") for program in PROGRAMS]
    return launch(ranks, str(FOLDER / f"{DRIVER}.py"), *paths)


def outputs(ranks: int) -> dict[str, Outputs]:
    """The outputs of each program, by its name."""
    done = launched(ranks)
    assert done.returncode == 0, f"{ranks} ranks:\n{done.stdout}\n{done.stderr}"
    written: dict[str, Outputs] = json.loads(done.stdout)
    return written


def first_says(*expected: str) -> Callable[[Outputs], None]:
    """Rank 0 writes these lines, and the others nothing."""

    def check(written: Outputs) -> None:
        assert written[0].splitlines() == list(expected)
        assert not any(written[1:])

    return check


def everyone_says(line: Callable[[int, int], str]) -> Callable[[Outputs], None]:
    """Each rank writes one line, which depends on its rank and on the number of ranks."""

    def check(written: Outputs) -> None:
        n = len(written)
        assert [text.strip() for text in written] == [line(rank, n) for rank in range(n)]

    return check


def hello(written: Outputs) -> None:
    for rank, line in enumerate(written):
        assert line.startswith(f"Hello from rank {rank} of {len(written)} on ")


def ring(written: Outputs) -> None:
    first_says(f"The token is back: {100 + sum(range(len(written)))}")(written)


def pi(written: Outputs) -> None:
    assert written[0].startswith("pi is about 3.14159265")
    assert float(written[0].split()[-1]) < 1e-9


def pi_by_chance(written: Outputs) -> None:
    hits = []
    for rank in range(len(written)):
        darts = random.Random(rank)
        hits.append(sum(darts.random() ** 2 + darts.random() ** 2 < 1 for _ in range(20_000)))
    about = f"{4 * sum(hits) / (20_000 * len(hits)):.6f}"
    first_says(f"hits {hits} of 20000 each: pi is about {about}")(written)


def matrix_vector(written: Outputs) -> None:
    n = 4 * len(written)
    y = [sum(j / (i + j + 1) for j in range(n)) for i in range(n)]
    norm = sum(value * value for value in y) ** 0.5
    first_says(f"y is right: True |y| = {norm:.9f}")(written)


def heat(written: Outputs) -> None:
    rows = {1: 1, 2: 2, 3: 3, 4: 2, 5: 5}[len(written)]
    grid = f"{rows} x {len(written) // rows}"
    first_says(f"a grid of {grid}: as on one process: True")(written)


def master_worker(written: Outputs) -> None:
    start = "alone:" if len(written) == 1 else "all done: True"
    first_says(f"{start} {sum(task**2 for task in range(20))}")(written)


def scatter_gather(written: Outputs) -> None:
    shares = [written[rank].splitlines()[0] for rank in range(len(written))]
    rows = [int(share.split()[3]) for share in shares]
    assert sum(rows) == 13 and max(rows) - min(rows) <= 1
    assert sum(float(share.split()[-1]) for share in shares) == sum(range(39))
    assert written[0].splitlines()[1:] == ["squares: True"]


def trapezoid(written: Outputs) -> None:
    n = 1200 * len(written)
    integral = f"{9 + 27 / (6 * n * n):.6f}"  # the rule's error is exact for a parabola
    first_says(f"With n = {n} trapezoids the integral from 0.0 to 3.0 is {integral}")(written)


def life(written: Outputs) -> None:
    assert written[0].startswith("as on one process: True alive: ")
    assert written[0].split()[-1] != "0"


def mandelbrot(written: Outputs) -> None:
    assert written[0].startswith("image is right: True points inside: ")
    assert 400 < int(written[0].split()[-1]) < 700


def particles(written: Outputs) -> None:
    n = len(written)
    places = float(n * sum(range(12)) + 12 * sum(range(n)))
    first_says(f"places add up to {places}", f"charges 0 masses {2.0 * n}")(written)


def row_and_column(rank: int, n: int) -> str:
    row, column = divmod(rank, 2)
    in_row = sum(other for other in range(n) if other // 2 == row)
    in_column = sum(other for other in range(n) if other % 2 == column)
    return f"rank {rank} at ({row}, {column}): row {in_row}, column {in_column}"


def prefix_sum(rank: int, n: int) -> str:
    begin = sum(earlier + 2 for earlier in range(rank))
    return f"rank {rank}: {begin} to {begin + rank + 2}"


CHECKS: dict[str, Callable[[Outputs], None]] = {
    "dot_product": first_says("dot product is right: True"),
    "exchange": first_says("everything has arrived"),
    "heat": heat,
    "hello": hello,
    "jacobi": first_says("solved: True converged: True"),
    "life": life,
    "mandelbrot": mandelbrot,
    "master_worker": master_worker,
    "matrix_vector": matrix_vector,
    "n_body": first_says("forces are right: True", "they add up to nothing: True"),
    "objects": first_says("[('and', 2), ('cat', 2), ('dog', 3), ('saw', 3)]"),
    "odd_even_sort": first_says("sorted: True"),
    "own_operation": first_says("mean is right: True", "variance is right: True"),
    "particles": particles,
    "persistent_halo": first_says("as on one process: True"),
    "pi": pi,
    "pi_by_chance": pi_by_chance,
    "prefix_sums": everyone_says(prefix_sum),
    "primes": first_says("1229 primes below 10000, the largest is 9973"),
    "ring": ring,
    "rows_and_columns": everyone_says(row_and_column),
    "scatter_gather": scatter_gather,
    "transpose": first_says("transposed: True"),
    "trapezoid": trapezoid,
}


def test_every_program_is_checked() -> None:
    assert sorted(CHECKS) == PROGRAMS


@pytest.mark.parametrize("ranks", [1, 2, 3, 4, 5])
@pytest.mark.parametrize("program", sorted(CHECKS))
def test_programs(program: str, ranks: int) -> None:
    written = outputs(ranks)[program]
    assert len(written) == ranks
    CHECKS[program](written)


def test_one_by_itself() -> None:
    """The launcher gives a program's lines as they are, from any rank."""
    done = launch(3, str(FOLDER / "rows_and_columns.py"))
    assert done.returncode == 0, done.stderr
    assert sorted(done.stdout.splitlines()) == [row_and_column(rank, 3) for rank in range(3)]
