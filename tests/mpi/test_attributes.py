"""Attributes of communicators and datatypes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

import sfm_kernel
from sfm_kernel.mpi import MPI


@pytest.fixture
def datatype() -> Iterator[MPI.Datatype]:
    made = MPI.INT.Dup()
    yield made
    made.free()


def test_set_get_delete(datatype: MPI.Datatype) -> None:
    key = MPI.Datatype.Create_keyval()
    value = [1, 2]
    assert datatype.Get_attr(key) is None
    datatype.Set_attr(key, value)
    assert datatype.Get_attr(key) is value
    datatype.Delete_attr(key)
    datatype.Delete_attr(key)
    assert datatype.Get_attr(key) is None
    assert MPI.Datatype.Free_keyval(key) == MPI.KEYVAL_INVALID


@pytest.mark.parametrize(
    ("copy_fn", "expected"),
    [
        (None, None),
        (False, None),
        (True, [1]),
        (lambda old, key, value: [*value, key], [1, "key"]),
        (lambda old, key, value: NotImplemented, None),
    ],
)
def test_what_a_duplicate_gets(datatype: MPI.Datatype, copy_fn: Any, expected: Any) -> None:
    key = MPI.Datatype.Create_keyval(copy_fn)
    datatype.Set_attr(key, [1])
    other = datatype.Dup()
    found = other.Get_attr(key)
    assert found == (expected and [key if one == "key" else one for one in expected])
    other.Free()
    MPI.Datatype.Free_keyval(key)


def test_who_hears_that_attributes_go(datatype: MPI.Datatype) -> None:
    gone: list[Any] = []
    keys = [MPI.Datatype.Create_keyval(delete_fn=lambda *what: gone.append(what)) for _ in range(3)]
    for nth, key in enumerate(keys):
        datatype.Set_attr(key, nth)
        MPI.Datatype.Free_keyval(key)  # which leaves the attribute
    with pytest.raises(MPI.Exception):
        datatype.Set_attr(keys[0], "too late")
    assert datatype.Get_attr(keys[0]) == 0
    datatype.Free()
    assert [(key, value) for _, key, value in gone] == [(keys[n], n) for n in (2, 1, 0)]


def test_setting_anew_deletes_the_old_value(datatype: MPI.Datatype) -> None:
    gone = []
    key = MPI.Datatype.Create_keyval(delete_fn=lambda old, key, value: gone.append(value))
    for value in "abc":
        datatype.Set_attr(key, value)
    assert gone == ["a", "b"]


def test_values_without_python_are_addresses(datatype: MPI.Datatype) -> None:
    key = MPI.Datatype.Create_keyval(True, nopython=True)
    datatype.Set_attr(key, -1)
    assert datatype.Get_attr(key) == 2**64 - 1 == datatype.Dup().Get_attr(key)
    with pytest.raises(TypeError):
        datatype.Set_attr(key, "text")


def test_an_error_of_the_program_is_told_and_raised(
    datatype: MPI.Datatype, capsys: pytest.CaptureFixture[str]
) -> None:
    def fails(*_: Any) -> None:
        raise ValueError("mine")

    key = MPI.Datatype.Create_keyval(fails, fails)
    datatype.Set_attr(key, 1)
    for call in (datatype.Dup, lambda: datatype.Delete_attr(key)):
        with pytest.raises(MPI.Exception, match="mine") as caught:
            call()
        assert caught.value.Get_error_class() == MPI.ERR_OTHER
        assert "ValueError: mine" in capsys.readouterr().err


def test_a_key_of_one_kind_is_none_of_another(datatype: MPI.Datatype) -> None:
    key = MPI.Comm.Create_keyval()
    for call in (
        lambda: datatype.Set_attr(key, 1),
        lambda: datatype.Get_attr(MPI.TAG_UB),
        lambda: datatype.Delete_attr(MPI.KEYVAL_INVALID),
        lambda: MPI.Datatype.Free_keyval(key),
        lambda: MPI.Comm.Free_keyval(MPI.TAG_UB),
    ):
        with pytest.raises(MPI.Exception) as caught:
            call()
        assert caught.value == MPI.ERR_KEYVAL
    MPI.Comm.Free_keyval(key)


def test_the_attributes_of_communicators() -> None:
    def program(sfm: object) -> tuple[Any, ...]:
        from sfm_kernel.mpi import MPI

        world = MPI.COMM_WORLD
        keys = (MPI.TAG_UB, MPI.UNIVERSE_SIZE, MPI.APPNUM, MPI.IO, MPI.WTIME_IS_GLOBAL)
        before = world.Get_attr(MPI.LASTUSEDCODE)
        added = MPI.Add_error_class()
        after = MPI.COMM_SELF.Get_attr(MPI.LASTUSEDCODE)
        key = MPI.Comm.Create_keyval(lambda comm, key, value: (comm.Get_size(), value))
        comm = world.Dup()
        comm.Set_attr(key, "old")
        other = comm.Dup()
        copied = other.Get_attr(key)
        other.Free()
        comm.Free()
        return *map(world.Get_attr, keys), before < added == after, copied

    expected = (2**31 - 1, 2, None, MPI.ANY_SOURCE, 0, True, (2, "old"))
    assert sfm_kernel.run(program, 2) == [expected] * 2


def test_the_attributes_of_self_go_when_mpi_ends() -> None:
    def program(sfm: object) -> tuple[Any, ...]:
        from sfm_kernel.mpi import MPI

        gone: list[Any] = []
        key = MPI.Comm.Create_keyval(delete_fn=lambda comm, key, value: gone.append(value))
        MPI.COMM_SELF.Set_attr(key, "mine")
        MPI.Finalize()
        return MPI.Is_initialized(), MPI.Is_finalized(), gone

    assert sfm_kernel.run(program, 1) == [(True, True, ["mine"])]
