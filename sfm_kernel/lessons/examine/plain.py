"""Plain values as bytes, which bring no code with them: what a trial's processes return.

A pickle could run code in the examiner, and an object could be equal to everything. Here a value is
made of None, numbers, texts, bytes, lists, tuples, dicts, sets and NumPy's arrays; an instance of a
subclass becomes one of the class itself. Floats keep their bits.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Callable
from typing import Any

import numpy as np

_ARRAYS = "biufcSUmM"
"""The kinds of NumPy's types whose values are in the array itself."""


class NotPlain(Exception):
    """The value, or a part of it, is not plain."""


def dumped(value: Any) -> bytes:
    """The value as bytes. Raises NotPlain."""
    try:
        return json.dumps(_node(value)).encode()
    except RecursionError:
        raise NotPlain("it contains itself") from None


def loaded(data: bytes) -> Any:
    """The value that ``dumped`` was given. Runs nothing, whatever the bytes are.

    Raises:
        ValueError: ``dumped`` does not make such bytes.
    """
    try:
        return _value(json.loads(data))
    except (TypeError, KeyError, RecursionError, OverflowError) as problem:
        raise ValueError(f"no plain value: {problem}") from None


def _node(value: Any) -> Any:
    """The value as JSON can hold it. Each class's own method, which a subclass cannot replace."""
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, np.generic) and value.dtype.kind in _ARRAYS:
        return {"scalar": _array(np.asarray(value))}
    if isinstance(value, int):
        return {"int": hex(int.__int__(value))}
    if isinstance(value, float):
        return float.__float__(value)
    if isinstance(value, str):
        return str.__str__(value)
    if isinstance(value, complex):
        return {"complex": [value.real, value.imag]}
    if isinstance(value, (bytes, bytearray)):
        return {"bytes": base64.b64encode(value).decode()}
    if isinstance(value, np.ndarray):
        return {"array": _array(value)}
    if isinstance(value, dict):
        return {"dict": [[_node(key), _node(entry)] for key, entry in dict.items(value)]}
    for kind in (list, tuple, set, frozenset):
        if isinstance(value, kind):
            return {kind.__name__: [_node(entry) for entry in _entries(kind, value)]}
    raise NotPlain(type(value).__name__)


def _entries(kind: Any, value: Any) -> Any:
    return kind.__iter__(value)


def _array(array: Any) -> list[Any]:
    array = np.asarray(array)
    if array.dtype.kind not in _ARRAYS:
        raise NotPlain(f"an array of {array.dtype}")
    return [array.dtype.str, list(array.shape), base64.b64encode(array.tobytes()).decode()]


def _array_of(node: Any) -> Any:
    kind, shape, data = node
    dtype = np.dtype(str(kind))
    if dtype.kind not in _ARRAYS:
        raise ValueError(f"an array of {dtype}")
    found = np.frombuffer(bytearray(base64.b64decode(data)), dtype) if data else np.empty(0, dtype)
    return found.reshape(shape)


def _value(node: Any) -> Any:
    if not isinstance(node, dict):
        if node is None or isinstance(node, (bool, float, str)):
            return node
        raise ValueError(f"a bare {type(node).__name__}")
    ((kind, content),) = node.items()
    return _KINDS[kind](content)


_KINDS: dict[str, Callable[[Any], Any]] = {
    "int": lambda text: int(text, 16),
    "complex": lambda parts: complex(*parts),
    "bytes": base64.b64decode,
    "array": _array_of,
    "scalar": lambda node: _array_of(node)[()],
    "dict": lambda items: {_value(key): _value(entry) for key, entry in items},
    "list": lambda items: [*map(_value, items)],
    "tuple": lambda items: tuple(map(_value, items)),
    "set": lambda items: {*map(_value, items)},
    "frozenset": lambda items: frozenset(map(_value, items)),
}
