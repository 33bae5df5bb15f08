"""How values and errors are sent: pickled by cloudpickle, with the memory of arrays as buffers."""

from __future__ import annotations

import io
import traceback
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import cloudpickle

from sfm_kernel.endpoint import Endpoint, seen
from sfm_kernel.message import Message
from sfm_kernel.serving.owner import only_endpoint
from sfm_kernel.spawn import by_value


def dumps(value: Any, buffers: list[Any] | None = None) -> bytes:
    """Pickle by value. A pickled endpoint becomes the endpoint of the process that unpickles it."""
    file = io.BytesIO()
    callback = None if buffers is None else buffers.append
    _Pickler(file, protocol=5, buffer_callback=callback).dump(value)
    return file.getvalue()


reducers: list[Callable[[Any], Any]] = []
"""Functions of upper layers: each returns the value of ``__reduce__`` for an object, or None."""


class _Pickler(by_value.Pickler):
    def reducer_override(self, value: Any) -> Any:
        if isinstance(value, Endpoint):
            return only_endpoint, ()
        for reduce in reducers:
            if (reduced := reduce(value)) is not None:
                return reduced
        return super().reducer_override(value)


def pack(value: Any) -> dict[str, Any]:
    """The attributes of a message for any value, even of a class that a notebook has defined."""
    buffers: list[Any] = []
    return {"data": dumps(value, buffers), "buffers": buffers}


def unpack(message: Message) -> Any:
    """The value that ``pack`` has packed."""
    return cloudpickle.loads(message.data, buffers=message.buffers)


def pack_results(
    parts: Sequence[tuple[int, Sequence[int]]],
    results: Sequence[tuple[list[Any], dict[int, Failure]]],
) -> dict[str, Any]:
    """The attributes of a message for the results and failures of calls.

    A value that cannot be sent becomes a failure with the reason.
    """
    try:
        return pack(results)
    except Exception:  # noqa: BLE001 - a user's object can raise anything
        for (_, indices), (values, failures) in zip(parts, results, strict=True):
            for i, value in enumerate(values):
                if why := unsendable(value):
                    text = f"the result, a {type(value).__name__}, cannot be sent: {why}. Return "
                    text += "data instead: numbers, texts, lists, arrays"
                    values[i], failures[indices[i]] = None, Failure(TypeError(text))
        return pack(results)


def bad_argument(args: Sequence[Any], kwargs: Mapping[str, Any]) -> str:
    """The text of an error for the first argument that cannot be sent; "" if all can."""
    named = [(f"argument {number}", value) for number, value in enumerate(args, 1)]
    for name, value in [*named, *kwargs.items()]:
        if why := unsendable(value):
            kind = type(value).__name__
            return f"{name}, a {kind}, cannot be sent: {why}. Send data from which it can be made"
    return ""


def unsendable(value: Any) -> str:
    """The reason why a value cannot be sent; "" if it can."""
    try:
        pack(value)
    except Exception as error:  # noqa: BLE001 - a user's object can raise anything
        return f"{type(error).__name__}: {error}"
    return ""


class Failure:
    """An error that was raised in another process. It can be sent even if the error itself cannot.

    Attributes:
        text: the error's name and message.
    """

    def __init__(self, error: BaseException) -> None:
        frames = traceback.extract_tb(error.__traceback__)
        # Only the notebook knows the lines of its cells: without a line, it adds them.
        self._frames = [
            (frame.filename, frame.lineno or 0, frame.name, frame.line or None)
            for frame in frames
            if not seen.is_own(frame.filename)
        ]
        self.text = "".join(traceback.format_exception_only(error)).strip()
        try:
            self._error = dumps(error)
        except Exception:  # noqa: BLE001 - the error's values can raise anything
            self._error = b""

    @property
    def error(self) -> BaseException | None:
        """The error; None if it could not be pickled or cannot be unpickled."""
        try:
            error = cloudpickle.loads(self._error)
        except Exception:  # noqa: BLE001 - the error's class can raise anything
            return None
        return error if isinstance(error, BaseException) else None

    def traceback(self, process: object) -> str:
        """The traceback, formatted as Python does; ``process`` is the name of its process."""
        lines: Iterable[str] = traceback.StackSummary.from_list(self._frames).format()
        shown = seen.with_cells("".join(lines))
        return f"Traceback (on {process}, most recent call last):\n{shown}{self.text}"
