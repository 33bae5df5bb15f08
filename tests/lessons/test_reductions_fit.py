"""The laws of growth and the model of reductions: they find again what times were made from."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from sfm_kernel.collectives.flags import ROOM
from sfm_kernel.errors import SFMError
from sfm_kernel.lessons.reductions.fit import (
    BACK_TO_BACK,
    BILLS,
    LogGP,
    Prices,
    bill,
    fit,
    growth,
    messages,
    nonnegative,
    prices,
)

PROCESSES = (2, 4, 6, 8, 12, 16)

# --- laws --------------------------------------------------------------------------------------


def log2_times() -> dict[int, float]:
    return {p: 5 + 30 * math.log2(p) for p in PROCESSES}


def linear_times() -> dict[int, float]:
    return {p: 5 + 30 * p for p in PROCESSES}


@pytest.mark.parametrize(
    ("times", "law", "other"),
    [(log2_times(), "log2", "linear"), (linear_times(), "linear", "log2")],
)
def test_the_law_that_times_follow_is_found(times: dict[int, float], law: str, other: str) -> None:
    found = fit(law, times)
    assert (found.a, found.b) == pytest.approx((5, 30))
    assert found.residual == pytest.approx(0, abs=1e-9) and found.r2 == pytest.approx(1)
    assert found.at(1024) == pytest.approx(5 + 30 * (10 if law == "log2" else 1024))
    wrong = fit(other, times)
    assert wrong.residual > 1 and 0.5 < wrong.r2 < 0.99
    assert wrong.relative == pytest.approx(wrong.residual / np.mean(list(times.values())))


def test_residuals_are_those_of_least_squares() -> None:
    # The mean is the best constant, here by symmetry; the distances from it are 1, 2 and 1.
    found = fit("linear", {1: 9.0, 2: 12.0, 3: 9.0})
    assert (found.a, found.b) == pytest.approx((10, 0))
    assert found.residual == pytest.approx(math.sqrt(2))
    assert found.relative == pytest.approx(math.sqrt(2) / 10)
    assert found.r2 == pytest.approx(0)


def test_times_that_do_not_change_are_explained() -> None:
    assert fit("log2", dict.fromkeys((2, 4, 8), 7.0)).r2 == pytest.approx(1)


def test_a_law_needs_three_points() -> None:
    with pytest.raises(ValueError, match=r"three numbers of processes or more, not \[2, 4\]"):
        fit("log2", {2: 1.0, 4: 2.0})


def listed(algorithm: str, times: dict[int, float], **columns: Any) -> list[dict[str, Any]]:
    about = {"transport": "zmq", "cores": 64, "bytes": 8, "algorithm": algorithm}
    return [about | {"processes": p, "us": us, **columns} for p, us in times.items()]


def test_the_table_says_which_law_fits_better() -> None:
    lines = [
        *listed("binomial", log2_times()),
        *listed("linear", linear_times()),
        *listed("ring", {2: 1.0}),  # no law
    ]
    found = {row["algorithm"]: row for row in growth(lines)}
    assert {key: row["fits better"] for key, row in found.items()} == {
        "binomial": "log2",
        "linear": "linear",
    }
    assert found["binomial"]["log2 residual_us"] < 1e-9 < found["binomial"]["linear residual_us"]
    assert found["linear"]["linear b_us"] == pytest.approx(30)


# --- the model ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("algorithm", "p", "nbytes", "due"),
    [
        ("linear", 2, 1, (2, 0, 0)),
        ("linear", 5, 101, (2, 6, 800)),
        ("binomial", 2, 101, (2, 0, 200)),
        ("binomial", 5, 101, (6, 0, 600)),
        ("binomial", 2**20, 1, (40, 0, 0)),
        ("recursive doubling", 8, 101, (3, 0, 300)),
        ("recursive doubling", 9, 101, (5, 0, 500)),
        ("ring", 4, 404, (6, 0, 600)),
        ("ring", 4, 2, (6, 0, 0)),  # parts of less than a byte
        ("rabenseifner", 4, 400, (4, 0, 2 * (199 + 99))),
        ("rabenseifner", 5, 400, (6, 0, 2 * (399 + 199 + 99))),
        ("flags", 2, 8, (2, 0, 7)),
        ("flags", 4, 1, (2, 0, 0)),
        ("flags", 5, 1, (3, 0, 0)),
        ("flags", 4, ROOM, (2, 0, ROOM - 1)),
        ("flags", 4, ROOM + 1, (4, 0, ROOM)),
        ("flags", 16, 4096, (6, 0, 4095)),
        ("flags", 2, 3 << 20, (12, 0, (3 << 20) - 1)),
        (BACK_TO_BACK, 2, 101, (0, 1, 100)),
    ],
)
def test_each_reduction_has_the_expected_bill(
    algorithm: str, p: int, nbytes: int, due: tuple[float, float, float]
) -> None:
    assert bill(algorithm, p, nbytes) == pytest.approx(due)


@pytest.mark.parametrize("algorithm", BILLS)
def test_one_process_pays_nothing(algorithm: str) -> None:
    assert bill(algorithm, 1, 1000) == (0, 0, 0)


def test_all_messages_are_counted() -> None:
    counted = {algorithm: [messages(algorithm, p) for p in (2, 5, 8)] for algorithm in BILLS}
    assert counted == {
        "linear": [2, 8, 14],
        "binomial": [2, 8, 14],
        "recursive doubling": [2, 10, 24],
        "ring": [4, 40, 112],
        "rabenseifner": [4, 18, 48],
        "flags": [None, None, None],
    }


TRUE = Prices(step=40.0, gap=3.0, byte=0.002, points=0, relative=0.0)


def synthetic(processes: tuple[int, ...], **columns: Any) -> list[dict[str, Any]]:
    """Times that follow the model exactly."""
    about = {"transport": "zmq", "cores": 8} | columns
    return [
        about | {"algorithm": algorithm, "processes": p, "bytes": n, "us": TRUE.us(algorithm, p, n)}
        for algorithm in (*BILLS, BACK_TO_BACK)
        if algorithm != "flags"
        for p in ((2,) if algorithm == BACK_TO_BACK else processes)
        for n in (8, 65536)
    ]


@pytest.mark.parametrize("processes", [(2,), (2, 3, 5, 8)])
def test_prices_are_found_again(processes: tuple[int, ...]) -> None:
    found = prices(synthetic(processes))
    assert found[:3] == pytest.approx(TRUE[:3])
    assert found.relative == pytest.approx(0, abs=1e-9)
    assert found.points == 2 + 2 * 5 * len(processes)


def test_prices_leave_out_what_took_turns() -> None:
    crowded = [row | {"us": row["us"] * 50} for row in synthetic((9, 16))]
    exact = synthetic((2, 8))
    assert prices([*exact, *[row for row in crowded if row["processes"] > 8]]) == prices(exact)
    two_on_one = synthetic((2, 3), cores=1)
    assert prices(two_on_one) == prices([row for row in two_on_one if row["processes"] == 2])
    with pytest.raises(SFMError, match="measure 2 processes, with model_sizes"):
        prices([row for row in crowded if row["processes"] > 8])
    with pytest.raises(SFMError, match="measure 2 processes, with model_sizes"):
        prices([row for row in exact if row["bytes"] == 8])


def test_no_price_is_below_zero() -> None:
    # Without the condition the second would be -1.
    design = np.array([[1.0, 1.0], [1.0, 0.0], [0.0, 1.0]])
    assert np.linalg.lstsq(design, design @ [2.0, -1.0])[0] == pytest.approx([2, -1])
    x = nonnegative(design, design @ [2.0, -1.0])
    assert x == pytest.approx([1.5, 0])


def test_no_other_prices_come_closer() -> None:
    random = np.random.default_rng(1)
    for _ in range(50):
        design, wanted = random.normal(size=(6, 3)), random.normal(size=6)
        x = nonnegative(design, wanted)
        assert (x >= 0).all()
        # Karush, Kuhn, Tucker: no direction that is allowed leads downhill.
        downhill = design.T @ (wanted - design @ x)
        assert (downhill <= 1e-9).all()
        assert downhill[x > 0] == pytest.approx(0, abs=1e-9)


def test_the_model_goes_on_to_a_million_processes() -> None:
    model = LogGP(TRUE)
    million = 2**20
    assert model.us("binomial", million, 1) == pytest.approx(40 * TRUE.step)
    assert model.us("recursive doubling", million, 1) == pytest.approx(20 * TRUE.step)
    assert model.us("linear", million, 1) == pytest.approx(
        2 * TRUE.step + 2 * (million - 2) * TRUE.gap
    )
    # For long arrays the two that send parts pay each byte about twice, whatever p is.
    assert model.us("rabenseifner", million, 1e9) < 1.1 * model.us("rabenseifner", 64, 1e9)
    assert "two-level" not in model.algorithms()
    with pytest.raises(ValueError, match="no prices for 'flags'"):
        model.us("flags", 4, 8)


def test_two_levels_meet_on_each_machine_first() -> None:
    flags = Prices(step=1.0, gap=0.0, byte=0.0, points=0, relative=0.0)
    model = LogGP(TRUE, flags, per_machine=16)
    assert model.us("two-level", 16, 8) == 2 * flags.us("flags", 16, 8) == 6
    between = TRUE.us("recursive doubling", 64, 8)
    assert model.us("two-level", 1024, 8) == pytest.approx(6 + between)
