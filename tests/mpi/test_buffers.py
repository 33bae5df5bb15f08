"""MPI.buffer, the constants that stand for buffers, and the memory of foreign objects."""

from __future__ import annotations

import array
import ctypes
import operator
import pickle
from typing import Any

import numpy as np
import pytest

from sfm_kernel.mpi.buffers import BOTTOM, BUFFER_AUTOMATIC, IN_PLACE, address, buffer
from sfm_kernel.mpi.buffers.exporters import acquire
from sfm_kernel.mpi.buffers.memory import address_of, bounds, is_readable, memory_at

view_of: Any = memoryview  # NumPy tells type checkers of buffers from Python 3.12 on

CONSTANTS = pytest.mark.parametrize("constant", [BOTTOM, IN_PLACE, BUFFER_AUTOMATIC], ids=repr)


# ---- buffer ----


def test_a_buffer_is_the_memory_of_its_object() -> None:
    data = bytearray(b"abcdef")
    buf = buffer(data)
    buf[0] = ord("x")
    buf[2:4] = b"yz"
    buf[4:] = 0
    assert data == b"xbyz\0\0"
    assert (buf.obj, buf.nbytes, len(buf), buf.itemsize, buf.format) == (data, 6, 6, 1, "B")
    assert buf[1] == ord("b") and buf[-1] == 0 and list(buf) == list(data)
    assert not buf.readonly and buf


def test_others_see_its_memory() -> None:
    buf = buffer.allocate(16, clear=True)
    view = view_of(buf)
    assert (view.format, view.shape, view.strides, view.readonly) == ("B", (16,), (1,), False)
    np.frombuffer(buf, np.int64)[1] = -1
    assert bytes(buf) == bytes(8) + b"\xff" * 8 == buf.tobytes()
    buf.cast("q", (1, 2))[0, 0] = 5
    assert buf.cast("q").tolist() == [5, -1]
    assert type(np.asarray(buf)) is np.ndarray


def test_a_slice_is_a_buffer_of_the_same_memory() -> None:
    buf = buffer(bytearray(b"abcdef"))
    part = buf[2:4]
    part[:] = b"XY"
    assert type(part) is buffer and part.obj is buf
    assert part.address == buf.address + 2 and buf.tobytes() == b"abXYef"
    assert len(buf[4:2]) == 0


def test_a_readonly_buffer() -> None:
    assert buffer(b"abc").readonly and view_of(buffer(b"abc")).readonly
    with pytest.raises(BufferError, match="read-only"):
        buffer.frombuffer(b"abc")
    data = bytearray(3)
    fixed = buffer(data).toreadonly()
    assert fixed.readonly and fixed.obj is data and fixed.address == buffer(data).address
    assert buffer.frombuffer(data, readonly=True).readonly
    with pytest.raises(TypeError, match="read-only"):
        fixed[0] = 1
    with pytest.raises(TypeError, match="read-only"):
        fixed[:] = 0


def test_a_buffer_from_an_address() -> None:
    data = np.arange(4, dtype=np.uint8)
    buf = buffer.fromaddress(data.ctypes.data, 4)
    buf[3] = 9
    assert data.tolist() == [0, 1, 2, 9] and buf.obj is None
    assert buffer.fromaddress(data.ctypes.data, 0).address == data.ctypes.data
    assert buffer.fromaddress(data.ctypes.data, 4, readonly=True).readonly
    with pytest.raises(ValueError, match="address 0"):
        buffer.fromaddress(0, 1)
    with pytest.raises(ValueError, match="negative"):
        buffer.fromaddress(data.ctypes.data, -1)


def test_a_released_buffer_is_empty_and_lets_go() -> None:
    data = bytearray(b"abc")
    buf = buffer.frombuffer(data)
    with pytest.raises(BufferError):
        data.append(0)
    buf.release()
    data.append(0)
    assert (buf.address, buf.nbytes, buf.obj, buf.readonly, bool(buf)) == (0, 0, None, False, False)
    assert view_of(buf).nbytes == 0 and buf.tobytes() == b""


def test_a_buffer_keeps_its_memory() -> None:
    buf = buffer(bytearray(b"abc"))[1:]
    view = view_of(buf)
    del buf
    assert view.tobytes() == b"bc"


@pytest.mark.parametrize("obj", [None, 0, 1.5, [], {}])
def test_no_buffer_of_what_has_no_memory(obj: Any) -> None:
    with pytest.raises(TypeError, match=type(obj).__name__):
        buffer(obj)


def test_what_a_buffer_refuses() -> None:
    buf = buffer.allocate(4)
    with pytest.raises(ValueError, match="negative"):
        buffer.allocate(-1)
    for wrong in (4, -5, slice(None, None, 2)):
        with pytest.raises(IndexError):
            buf[wrong]
        with pytest.raises(IndexError):
            buf[wrong] = 0
    with pytest.raises(TypeError):
        buf[None]  # type: ignore[call-overload]
    with pytest.raises(NotImplementedError):
        del buf[0]
    with pytest.raises(ValueError, match="3 bytes"):
        buf[:2] = b"abc"
    with pytest.raises(OverflowError):
        buf[0] = 256
    with pytest.raises(TypeError, match="pickled"):
        pickle.dumps(buf)


def test_a_buffer_is_no_array_to_its_users() -> None:
    buf = buffer(b"ab")
    assert buf == buf and buf != buffer(b"ab") and len({buf, buf}) == 1
    with pytest.raises(TypeError):
        buf + 1
    assert repr(buf) == str(buf) == "<buffer of 2 bytes>"
    assert ord("a") in buf and 0 not in buf


# ---- BOTTOM and its like ----


@CONSTANTS
def test_a_constant_is_its_address(constant: Any) -> None:
    assert constant == int(constant) and constant == constant and constant != int(constant) + 1
    assert constant != None and constant != "BOTTOM"  # noqa: E711
    assert hash(constant) == hash(int(constant)) and bool(constant) == bool(int(constant))
    assert address(constant) == constant
    assert memoryview(constant).nbytes == 0
    with pytest.raises(TypeError):
        constant + 1


@CONSTANTS
def test_there_is_one_of_each_constant(constant: Any) -> None:
    assert type(constant)() is constant
    for protocol in range(pickle.HIGHEST_PROTOCOL + 1):
        assert pickle.loads(pickle.dumps(constant, protocol)) is constant


def test_the_constants_differ() -> None:
    assert BOTTOM != IN_PLACE != BUFFER_AUTOMATIC != BOTTOM
    assert operator.index(BOTTOM) == 0
    with pytest.raises(TypeError):
        operator.index(IN_PLACE)


# ---- memory ----


def test_addresses() -> None:
    data = np.arange(5)
    assert address(data) == data.ctypes.data == address(view_of(data)) == address(buffer(data))
    assert address(data[2:]) == data.ctypes.data + 16
    assert address(None) == 0


@pytest.mark.parametrize(
    ("obj", "format"),
    [
        (b"abcd", "B"),
        (bytearray(4), "B"),
        (memoryview(b"abcdefgh")[2:], "B"),
        (array.array("i", [1, 2]), "i"),
        ((ctypes.c_double * 2)(1, 2), "<d"),
        (np.ones((2, 3), np.float32), "f"),
        (np.ones((2, 3), order="F"), "d"),
        (np.float64(3), "d"),
        (np.empty((0, 3)), "d"),
    ],
)
def test_buffers(obj: Any, format: str) -> None:
    found = acquire(obj, into=False, infer=True)
    assert found.format == format
    assert found.memory.tobytes() == memoryview(obj).tobytes(order="A")
    assert found.memory.flags.writeable != memoryview(obj).readonly


def test_a_buffer_that_is_not_contiguous() -> None:
    for obj in (np.ones((3, 2))[:, 0], memoryview(bytes(6))[::2], np.ones((2, 2, 2))[:, :1]):
        with pytest.raises(BufferError, match="contiguous"):
            acquire(obj, into=False)


def test_a_foreign_fortran_order() -> None:
    data = np.arange(6).reshape(2, 3).T
    assert acquire(view_of(data), into=True).memory.tobytes() == bytes(data.T.data)


def test_an_object_that_only_numpy_understands() -> None:
    data = np.arange(3)

    class Only:
        __array_interface__ = data.__array_interface__

    acquire(Only(), into=True).memory[:] = 0
    assert data.tolist() == [0, 0, 0]


def test_bounds_are_those_of_the_outermost_memory() -> None:
    data = np.zeros((4, 6))
    whole = (data.ctypes.data, data.ctypes.data + data.nbytes)
    for part in (data[2, 1:], data[1:, ::2], view_of(data)[1:], buffer(data)[8:16][2:]):
        assert bounds(part) == whole
    held = bytearray(8)
    assert bounds(memoryview(held)[4:]) == (address(held), address(held) + 8)
    structure = (ctypes.c_int * 8)()
    assert bounds(memoryview(structure)[2:]) == (address(structure), address(structure) + 32)


def test_memory_that_cannot_be_read() -> None:
    data = np.zeros(3, np.uint8)
    assert is_readable(data) and is_readable(data[:0])
    assert not is_readable(memory_at(16, 8))
    assert not is_readable(memory_at(address_of(data), 1 << 60))


# ---- DLPack ----


class Tensor:
    """Offers an array by DLPack only."""

    def __init__(self, data: Any) -> None:
        self.data = data

    def __dlpack__(self, **options: Any) -> Any:
        return self.data.__dlpack__(**options)

    def __dlpack_device__(self) -> tuple[int, int]:
        return 1, 0


class OldTensor(Tensor):
    """The same in version 0, which has no options."""

    def __dlpack__(self) -> Any:  # type: ignore[override]
        return self.data.__dlpack__()


@pytest.mark.parametrize("kind", [Tensor, OldTensor])
@pytest.mark.parametrize("code", "bhilBHILfdFD?e")
def test_tensors(kind: type[Tensor], code: str) -> None:
    data = np.ones((2, 3), code)
    found = acquire(kind(data), into=True)
    assert found.format == code and address_of(found.memory) == data.ctypes.data
    found.memory[:] = 0
    assert not data.any()


def test_a_tensor_may_be_in_fortran_order_but_not_scattered() -> None:
    acquire(Tensor(np.ones((2, 3)).T), into=True)
    with pytest.raises(BufferError, match="contiguous"):
        acquire(Tensor(np.ones((4, 3))[::2]), into=False)


def test_a_readonly_tensor() -> None:
    data = np.ones(3)
    data.flags.writeable = False
    assert not acquire(Tensor(data), into=False).memory.flags.writeable
    with pytest.raises(BufferError, match="read-only"):
        acquire(Tensor(data), into=True)


def test_a_tensor_lives_while_its_memory_is_held() -> None:
    memory = acquire(Tensor(np.arange(1000)), into=False).memory
    assert memory.view(np.int64).tolist() == list(range(1000))


def test_a_capsule_that_was_used_is_refused() -> None:
    tensor = Tensor(np.arange(3))
    tensor.__dlpack__ = lambda **_: None  # type: ignore[method-assign]
    with pytest.raises(BufferError, match="capsule"):
        acquire(tensor, into=False)


# ---- memory of devices ----


class OnDevice:
    """Says that its memory is a device's."""

    def __init__(self, where: int, count: int = 3, **more: Any) -> None:
        self.__cuda_array_interface__ = {
            "version": 3,
            "data": (where, False),
            "typestr": "<i4",
            "shape": (count,),
            **more,
        }


def test_memory_of_a_device_that_the_processor_reaches() -> None:
    data = np.arange(3, dtype="i")
    found = acquire(OnDevice(data.ctypes.data), into=True)
    assert found.format == "i" and found.within_reach().tobytes() == data.tobytes()


def test_memory_of_a_device_out_of_reach() -> None:
    found = acquire(OnDevice(4096), into=True)
    with pytest.raises(BufferError, match="copy it to the host"):
        found.within_reach()
    assert address(OnDevice(4096)) == 4096
    with pytest.raises(BufferError, match="copy it to the host"):
        buffer(OnDevice(4096)).tobytes()


@pytest.mark.parametrize(
    ("more", "error"),
    [
        ({"data": (4096, True)}, BufferError),
        ({"data": None}, TypeError),
        ({"mask": 1}, BufferError),
        ({"strides": (8,)}, BufferError),
        ({"shape": (-1,)}, BufferError),
        ({"typestr": ">i4"}, BufferError),
        ({"typestr": "<ix"}, ValueError),
    ],
)
def test_wrong_descriptions(more: dict[str, Any], error: type[Exception]) -> None:
    with pytest.raises(error):
        acquire(OnDevice(4096, **more), into=True, infer=True)
