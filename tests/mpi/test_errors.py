"""Errors, their codes, and error handlers."""

from __future__ import annotations

import pickle
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest

import sfm_kernel
from sfm_kernel.errors import CollectiveError, EncodeError, PeerLost, SFMError
from sfm_kernel.mpi.base import codes, constants, errhandler, errors
from sfm_kernel.mpi.base.errhandler import ERRORS_RETURN, Errhandler, HasErrhandler
from sfm_kernel.mpi.base.errors import MPIError, fail, translated
from sfm_kernel.mpi.base.handle import Handle


class Thing(HasErrhandler, Handle[SimpleNamespace]):
    """Something with an error handler."""


@pytest.fixture
def thing() -> Thing:
    return Thing._of(SimpleNamespace(errhandler=None))


@pytest.fixture
def added() -> Iterator[int]:
    """An error class of the program."""
    code = errors.Add_error_class()
    yield code
    errors.Remove_error_class(code)


def test_every_class_has_a_code_of_its_own_and_a_text() -> None:
    named = {name: code for name, code in vars(constants).items() if name.startswith("ERR_")}
    assert len(set(named.values())) == len(named)
    for name, code in named.items():
        assert errors.Get_error_class(code) == code
        assert errors.Get_error_string(code).startswith(f"MPI_{name}: ")
    assert errors.Get_error_class(constants.SUCCESS) == 0


def test_an_exception_compares_as_its_code() -> None:
    error = MPIError(constants.ERR_RANK)
    assert error == constants.ERR_RANK and error == MPIError(constants.ERR_RANK)
    assert error != constants.ERR_TAG and error and not MPIError()
    assert MPIError(constants.ERR_TAG) < error <= constants.ERR_LASTCODE
    assert hash(error) == hash(constants.ERR_RANK) and int(error) == constants.ERR_RANK
    assert MPIError(-1) == constants.ERR_UNKNOWN
    assert isinstance(error, (RuntimeError, SFMError)) and repr(error) == "MPI.Exception(6)"
    with pytest.raises(TypeError):
        MPIError("no number")  # type: ignore[arg-type]


def test_an_exception_says_what_happened_and_is_pickled_whole() -> None:
    with pytest.raises(MPIError) as caught:
        fail(constants.ERR_RANK, "rank 7 is none of 0 to 3")
    error = pickle.loads(pickle.dumps(caught.value))
    for one in (caught.value, error):
        assert str(one) == one.error_string == "MPI_ERR_RANK: rank 7 is none of 0 to 3"
        assert one.error_class == one.error_code == constants.ERR_RANK


def test_classes_and_codes_can_be_added_and_removed() -> None:
    added = errors.Add_error_class()
    assert added > constants.ERR_LASTCODE and codes.last_used() == added
    code = errors.Add_error_code(added)
    assert errors.Get_error_class(code) == added and errors.Get_error_string(code) == ""
    errors.Add_error_string(code, "too late")
    assert str(MPIError(code)) == "too late" and MPIError(code).error_class == added
    for refused in (
        lambda: errors.Remove_error_class(added),  # it has a code
        lambda: errors.Remove_error_code(code),  # it has a text
        lambda: errors.Remove_error_class(code),
        lambda: errors.Add_error_code(code),
    ):
        with pytest.raises(MPIError) as caught:
            refused()
        assert caught.value.error_class == constants.ERR_ARG
    errors.Remove_error_string(code)
    errors.Remove_error_code(code)
    errors.Remove_error_class(added)
    assert codes.last_used() == constants.ERR_LASTCODE
    with pytest.raises(MPIError):
        errors.Get_error_string(added)
    assert MPIError(added).error_class == constants.ERR_UNKNOWN
    assert str(added) in str(MPIError(added))


def test_what_belongs_to_mpi_cannot_be_changed() -> None:
    for refused in (
        lambda: errors.Remove_error_class(constants.ERR_RANK),
        lambda: errors.Remove_error_code(constants.SUCCESS),
        lambda: errors.Add_error_string(constants.ERR_RANK, "mine"),
        lambda: errors.Remove_error_string(constants.SUCCESS),
    ):
        with pytest.raises(MPIError):
            refused()


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (PeerLost("B"), constants.ERR_PROC_FAILED),
        (CollectiveError("no"), constants.ERR_OTHER),
        (SFMError("no"), constants.ERR_OTHER),
    ],
)
def test_errors_of_the_messaging_become_those_of_mpi(error: SFMError, code: int) -> None:
    with pytest.raises(MPIError) as caught, translated():
        raise error
    assert caught.value.error_class == code and caught.value.__cause__ is error
    assert str(error) in str(caught.value)


@pytest.mark.parametrize(
    "error", [KeyboardInterrupt(), ValueError(), EncodeError("x"), MPIError(constants.ERR_TAG)]
)
def test_other_errors_pass(error: BaseException) -> None:
    with pytest.raises(type(error)) as caught, translated():
        raise error
    assert caught.value is error


def test_a_handler_hears_of_an_error_that_is_raised(thing: Thing) -> None:
    heard: list[Any] = []
    assert thing.Get_errhandler() == ERRORS_RETURN
    handler = Thing.Create_errhandler(lambda *what: heard.append(what))
    thing.Set_errhandler(handler)
    handler.Free()
    assert not handler and thing.Get_errhandler()
    thing.Call_errhandler(constants.ERR_TAG)
    with pytest.raises(MPIError):
        fail(constants.ERR_RANK, "no such rank", thing._state)  # a state does as well
    assert heard == [(thing, constants.ERR_TAG), (thing, constants.ERR_RANK)]


def test_only_a_handler_of_its_kind_fits(thing: Thing) -> None:
    class Other(HasErrhandler, Handle[SimpleNamespace]):
        pass

    handler = Other.Create_errhandler(print)
    for wrong in (handler, errhandler.ERRHANDLER_NULL):
        with pytest.raises(MPIError) as caught:
            thing.Set_errhandler(wrong)
        assert caught.value.error_class == constants.ERR_ERRHANDLER
    with pytest.raises(TypeError):
        thing.Set_errhandler(print)  # type: ignore[arg-type]
    handler.Free()


def test_there_may_be_32_handlers_of_a_kind() -> None:
    handlers = [Thing.Create_errhandler(print) for _ in range(32)]
    with pytest.raises(RuntimeError, match="Free"):
        Thing.Create_errhandler(print)
    handlers.pop().Free()
    handlers.append(Thing.Create_errhandler(print))
    with pytest.raises(ValueError, match="pickled"):
        handlers[0].__reduce__()
    for handler in handlers:
        handler.Free()


def test_the_constants_are_not_freed() -> None:
    handle = Errhandler(ERRORS_RETURN)
    ERRORS_RETURN.Free()
    handle.Free()
    assert ERRORS_RETURN and not handle


def test_a_null_handle_has_no_calls() -> None:
    with pytest.raises(MPIError) as caught:
        errhandler.ERRHANDLER_NULL.Free()
    assert caught.value.error_class == constants.ERR_ERRHANDLER


def test_an_error_of_a_communicator_asks_its_handler() -> None:
    def program(sfm: object) -> list[int]:
        from sfm_kernel.mpi import MPI

        heard: list[int] = []
        comm = MPI.COMM_WORLD.Dup()
        comm.Set_errhandler(MPI.Comm.Create_errhandler(lambda comm, code: heard.append(code)))
        try:
            comm.Send(b"", 7)
        except MPI.Exception as error:
            heard.append(error.Get_error_class())
        comm.Free()
        return heard

    assert sfm_kernel.run(program, 1) == [[constants.ERR_RANK] * 2]


def test_fatal_errors_end_the_job(monkeypatch: pytest.MonkeyPatch) -> None:
    from sfm_kernel.mpi import MPI

    ended: list[int] = []
    monkeypatch.setattr(MPI.Comm, "Abort", lambda comm, code: ended.append(code))
    session = MPI.Session.Init(errhandler=MPI.ERRORS_ARE_FATAL)
    with pytest.raises(MPIError):
        session.Get_nth_pset(7)
    session.Call_errhandler(constants.ERR_OTHER)
    session.Finalize()
    assert ended == [constants.ERR_ARG, constants.ERR_OTHER]
