"""What all handles have in common."""

from __future__ import annotations

import copy
import gc
import operator
import pickle
import weakref
from typing import Any

import pytest

from sfm_kernel.mpi import MPI
from sfm_kernel.mpi.base.handle import Handle

NULLS: list[Any] = [
    MPI.DATATYPE_NULL,
    MPI.REQUEST_NULL,
    MPI.MESSAGE_NULL,
    MPI.OP_NULL,
    MPI.GROUP_NULL,
    MPI.INFO_NULL,
    MPI.ERRHANDLER_NULL,
    MPI.SESSION_NULL,
    MPI.COMM_NULL,
    MPI.WIN_NULL,
    MPI.FILE_NULL,
]
CONSTANTS: list[Any] = [
    MPI.INT,
    MPI.DOUBLE_INT,
    MPI.SUM,
    MPI.GROUP_EMPTY,
    MPI.INFO_ENV,
    MPI.ERRORS_RETURN,
    MPI.ERRORS_ABORT,
    MPI.MESSAGE_NO_PROC,
]

each = pytest.mark.parametrize("handle", NULLS + CONSTANTS, ids=lambda one: one.__reduce__())


def test_null_handles_are_false_and_equal_only_to_their_kind() -> None:
    for one in NULLS:
        assert not one and one == type(one)()
        assert [other for other in NULLS if other == one] == [one]
        assert one != 12345 and one is not None


@each
def test_a_copy_is_equal_and_another_object(handle: Any) -> None:
    cls = type(handle)
    other = cls(handle)
    assert other == handle and other is not handle and type(other) is cls
    assert cls(None) == cls() == handle._kind()


@each
def test_a_constant_is_pickled_as_itself(handle: Any) -> None:
    for protocol in range(pickle.HIGHEST_PROTOCOL + 1):
        assert pickle.loads(pickle.dumps(handle, protocol)) is handle
    assert copy.copy(handle) is handle and copy.deepcopy(handle) is handle
    other = pickle.loads(pickle.dumps(type(handle)(handle)))
    assert other == handle and other is not handle


@each
def test_a_handle_has_a_number_that_gives_it_back(handle: Any) -> None:
    cls = type(handle)
    for number in (handle.handle, handle.tohandle(), handle.toint(), handle.py2f()):
        assert isinstance(number, int) and number >= 0
    for other in (
        cls.fromhandle(handle.handle),
        cls.fromint(handle.toint()),
        cls.f2py(handle.py2f()),
    ):
        assert other == handle and type(other) is cls
    with pytest.raises(AttributeError):
        handle.handle = 1


@each
def test_handles_have_no_order_and_no_hash(handle: Any) -> None:
    for compare in (operator.lt, operator.le, operator.gt, operator.ge):
        with pytest.raises(TypeError):
            compare(handle, handle)
    with pytest.raises(TypeError):
        hash(handle)
    assert weakref.ref(handle)() is handle


@each
def test_free_leaves_constants_and_empties_other_handles_of_them(handle: Any) -> None:
    other, was_null = type(handle)(handle), not handle
    for _ in range(2):
        handle.free()
        other.free()
    assert not other and bool(handle) != was_null


def test_a_handle_is_made_of_its_kind_only() -> None:
    for one in NULLS:
        for wrong in (*(other for other in NULLS if other is not one), 1234, "abc"):
            with pytest.raises(TypeError):
                type(one)(wrong)


def test_the_number_of_what_is_gone_is_refused() -> None:
    info = MPI.Info.Create()
    number = info.handle
    assert MPI.Info.fromhandle(number) == info
    del info
    gc.collect()
    with pytest.raises(MPI.Exception) as caught:
        MPI.Info.fromhandle(number)
    assert caught.value.Get_error_class() == MPI.ERR_ARG


def test_free_calls_what_a_subclass_says() -> None:
    freed = []

    class Mine(MPI.Info):
        def Free(self) -> None:
            freed.append(self)
            super().Free()

    info = Mine.Create()
    assert type(info) is Mine
    info.free()
    info.free()
    assert len(freed) == 1 and not info


@pytest.mark.parametrize(
    "null",
    [one for one in NULLS if one is not MPI.FILE_NULL],  # which has an error handler
    ids=lambda one: type(one).__name__,
)
def test_a_null_handle_has_the_error_class_of_its_kind(null: Any) -> None:
    with pytest.raises(MPI.Exception) as caught:
        _ = null._live
    kind = {"Datatype": "TYPE", "Message": "REQUEST"}.get(type(null).__name__)
    assert caught.value == getattr(MPI, f"ERR_{kind or type(null).__name__.upper()}")
    assert "null" in str(caught.value)


def test_every_kind_has_its_own_constants() -> None:
    kinds = {type(one)._kind for one in NULLS}
    assert len(kinds) == len(NULLS) and all(issubclass(kind, Handle) for kind in kinds)
