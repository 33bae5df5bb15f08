"""MPI.pickle: how objects become bytes."""

from __future__ import annotations

import json
import pickle
from typing import Any

import numpy as np
import pytest

from sfm_kernel.mpi import MPI
from sfm_kernel.mpi.base.pickles import PROTOCOL, THRESHOLD, Pickle

OBJECTS: list[Any] = [None, 7, "text", [1, (2.5, {"a": 1j})]]


@pytest.mark.parametrize("protocol", [None, 0, 2, -1, pickle.HIGHEST_PROTOCOL])
def test_there_and_back(protocol: int | None) -> None:
    one = Pickle(protocol=protocol)
    for value in OBJECTS:
        assert one.loads(one.dumps(value)) == value
    assert one.dumps(OBJECTS) == pickle.dumps(OBJECTS, PROTOCOL if protocol is None else protocol)


def test_other_functions_are_given_no_protocol() -> None:
    one = Pickle(lambda value: json.dumps(value).encode(), lambda data: json.loads(bytes(data)))
    assert one.PROTOCOL is None and not one.is_default
    assert one.loads(one.dumps([1, None, "x"])) == [1, None, "x"]
    one.__init__()  # type: ignore[misc]  # programs reset it so
    assert one.is_default and one.PROTOCOL == PROTOCOL


def test_any_change_is_known() -> None:
    assert MPI.pickle.is_default and Pickle(threshold=3).is_default
    one = Pickle()
    one.PROTOCOL = 0
    assert not one.is_default
    one.PROTOCOL = None
    assert one.is_default
    one.THRESHOLD = 10
    assert one.THRESHOLD == 10
    one.THRESHOLD = None
    assert one.THRESHOLD == THRESHOLD


def test_large_buffers_stay_outside() -> None:
    one = Pickle(threshold=100)
    large, small = np.arange(100.0), np.arange(3.0)
    data, buffers = one.dumps_oob({"large": large, "small": small})
    assert [found.nbytes for found in buffers] == [800] and len(data) < 800
    assert np.shares_memory(np.frombuffer(buffers[0]), large)
    found = one.loads_oob(data, buffers)
    assert (found["large"] == large).all() and (found["small"] == small).all()
    large.flags.writeable = False
    assert one.dumps_oob(large)[1][0].readonly
