"""Info: pairs of texts."""

from __future__ import annotations

import pickle
from collections.abc import Callable

import pytest

from sfm_kernel.mpi.base import constants
from sfm_kernel.mpi.base.errors import MPIError
from sfm_kernel.mpi.base.info import INFO_ENV, INFO_NULL, Info

PAIRS = {"b": "1", "a": "2"}


def test_created_of_a_mapping_pairs_or_another_info() -> None:
    for items in (PAIRS, list(PAIRS.items()), Info.Create(PAIRS)):
        info = Info.Create(items)
        assert info.items() == [("b", "1"), ("a", "2")]
        assert info.keys() == list(info) == ["b", "a"] and info.values() == ["1", "2"]
    assert Info.Create().Get_nkeys() == len(Info.Create({})) == 0
    with pytest.raises(TypeError):
        Info.Create(123)  # type: ignore[arg-type]


def test_set_get_delete() -> None:
    info = Info.Create()
    info.Set("key", "value")
    info["other"] = b"bytes"  # type: ignore[assignment]
    assert info.Get("key") == info["key"] == info.get("key") == "value" and info["other"] == "bytes"
    assert "key" in info and info.Get_nthkey(0) == "key"
    info.Delete("key")
    del info["other"]
    assert info.Get("key") is None and info.get("key", "none") == "none"


def test_a_duplicate_is_apart_and_a_copy_of_a_handle_is_not() -> None:
    info = Info.Create(PAIRS)
    same, other = Info(info), info.Dup()
    info.update({"a": "3"}, c="4")
    assert same == info and same["c"] == "4"
    assert other != info and dict(other.items()) == PAIRS
    found = pickle.loads(pickle.dumps(info))
    assert found != info and found.items() == info.items()


def test_taken_away() -> None:
    info = Info.Create(PAIRS)
    assert info.popitem() == ("a", "2")
    assert info.pop("b") == "1" and info.pop("b", "none") == "none"
    for call in (info.popitem, lambda: info.pop("b"), lambda: info["b"]):
        with pytest.raises(KeyError):
            call()
    info.update(PAIRS)
    info.clear()
    assert not info.items() and info


@pytest.mark.parametrize(
    ("call", "code"),
    [
        (lambda info: info.Delete("no"), "NOKEY"),
        (lambda info: info.Set("", "x"), "KEY"),
        (lambda info: info.Set("k" * 256, "x"), "KEY"),
        (lambda info: info.Get("k" * 256), "KEY"),
        (lambda info: info.Set("k", "v" * 1025), "VALUE"),
    ],
)
def test_what_is_wrong_with_a_key_or_value(call: Callable[[Info], object], code: str) -> None:
    with pytest.raises(MPIError) as caught:
        call(Info.Create())
    assert caught.value == getattr(constants, f"ERR_INFO_{code}")


def test_only_texts_without_null_characters() -> None:
    info = Info.Create()
    with pytest.raises(TypeError):
        info.Set("key", 3)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="null"):
        info.Set("k\0", "v")
    with pytest.raises(MPIError):
        info.Get_nthkey(0)


def test_a_null_info_is_empty_and_stays_so() -> None:
    assert (len(INFO_NULL), INFO_NULL.items(), INFO_NULL.get("k"), "k" in INFO_NULL) == (
        0,
        [],
        None,
        False,
    )
    assert INFO_NULL.copy() == INFO_NULL and INFO_NULL.pop("k", None) is None
    INFO_NULL.clear()
    for call in (lambda: INFO_NULL.update([]), INFO_NULL.popitem):
        with pytest.raises(KeyError):
            call()
    for refused in (INFO_NULL.Dup, INFO_NULL.Free, INFO_NULL.Get_nkeys):
        with pytest.raises(MPIError) as caught:
            refused()
        assert caught.value == constants.ERR_INFO


def test_the_environment_is_known_and_cannot_be_changed() -> None:
    assert INFO_ENV["maxprocs"].isdigit() and INFO_ENV["thread_level"] == "MPI_THREAD_MULTIPLE"
    assert INFO_ENV.Dup().items() == INFO_ENV.items()
    for refused in (INFO_ENV.Free, lambda: INFO_ENV.Set("a", "b")):
        with pytest.raises(MPIError):
            refused()
    env = Info.Create_env(["program", "-n", "1"])
    assert (env["command"], env["argv"]) == ("program", "-n 1")
    assert Info.Create_env("program").get("argv") is None
