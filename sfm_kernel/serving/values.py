"""Values and errors on their way: whatever cloudpickle takes, arrays as their memory."""

from __future__ import annotations

import io
import os
import traceback
from collections import ChainMap
from collections.abc import Callable, Iterable, Mapping, Sequence
from types import CodeType
from typing import Any, ClassVar

import cloudpickle

from sfm_kernel.endpoint import Endpoint, seen
from sfm_kernel.message import Message
from sfm_kernel.serving.owner import only_endpoint

_OWN = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep


def is_own(file: str) -> bool:
    """Whether code of this file is this package's; what notebooks run of its lessons is not."""
    return file.startswith(_OWN) and not file.startswith(_OWN + "lessons")


def dumps(value: Any, buffers: list[Any] | None = None) -> bytes:
    """Pickle as cloudpickle does, but for two things.

    Code keeps the name of its file, and what cell that is: observers and tracebacks tell of a task
    on an engine by its line in the notebook. And an endpoint becomes that of whoever unpickles it.
    """
    file = io.BytesIO()
    _Pickler(file, protocol=5, buffer_callback=None if buffers is None else buffers.append).dump(
        value
    )
    return file.getvalue()


def _reduced(code: CodeType) -> tuple[Any, ...]:
    function, given = cloudpickle.Pickler.dispatch_table[CodeType](code)
    named = tuple(code.co_filename if one == "<dynamic-code>" else one for one in given)
    return _rebuilt, (function, named, code.co_filename, seen.cell_of(code.co_filename))


reducers: list[Callable[[Any], Any]] = []
"""Of layers: what ``__reduce__`` is to give for an object, or None."""


class _Pickler(cloudpickle.Pickler):
    dispatch_table: ClassVar = ChainMap({CodeType: _reduced}, cloudpickle.Pickler.dispatch_table)

    def reducer_override(self, value: Any) -> Any:
        if isinstance(value, Endpoint):
            return only_endpoint, ()
        for reduce in reducers:
            if (reduced := reduce(value)) is not None:
                return reduced
        return super().reducer_override(value)


def _rebuilt(function: Any, given: Any, file: str, cell: seen.Cell | None) -> Any:
    if cell is not None:
        seen.remote_cells[file] = cell
    return function(*given)


def pack(value: Any) -> dict[str, Any]:
    """Attributes of a message that hold any value, also of classes that a notebook has defined."""
    buffers: list[Any] = []
    return {"data": dumps(value, buffers), "buffers": buffers}


def unpack(message: Message) -> Any:
    """What ``pack`` has packed."""
    return cloudpickle.loads(message.data, buffers=message.buffers)


def pack_results(
    parts: Sequence[tuple[int, Sequence[int]]],
    results: Sequence[tuple[list[Any], dict[int, Failure]]],
) -> dict[str, Any]:
    """Attributes that hold the results, and failures, of these parts.

    A value that cannot be sent becomes a failure that says so.
    """
    try:
        return pack(results)
    except Exception:  # noqa: BLE001 - whatever a user's object raises
        for (_, ats), (values, failures) in zip(parts, results, strict=True):
            for place, value in enumerate(values):
                if why := unsendable(value):
                    text = f"the result, a {type(value).__name__}, cannot be sent: {why}. Return "
                    text += "data instead: numbers, texts, lists, arrays"
                    values[place], failures[ats[place]] = None, Failure(TypeError(text))
        return pack(results)


def bad_argument(args: Sequence[Any], kwargs: Mapping[str, Any]) -> str:
    """Which argument cannot be sent, why, and what to do; "" if all can."""
    named = [(f"argument {number}", one) for number, one in enumerate(args, 1)]
    for name, value in [*named, *kwargs.items()]:
        if why := unsendable(value):
            kind = type(value).__name__
            return f"{name}, a {kind}, cannot be sent: {why}. Send data from which it can be made"
    return ""


def unsendable(value: Any) -> str:
    """Why a value cannot be sent; "" if it can."""
    try:
        pack(value)
    except Exception as error:  # noqa: BLE001 - whatever a user's object raises
        return f"{type(error).__name__}: {error}"
    return ""


class Failure:
    """What was raised in another process: an error that travels, however it was made.

    Attributes:
        text: its name and message.
    """

    def __init__(self, error: BaseException) -> None:
        frames = traceback.extract_tb(error.__traceback__)
        own = [one for one in frames if not is_own(one.filename)]
        # Lines of cells are known to the notebook alone, which looks them up.
        self._where = [(one.filename, one.lineno or 0, one.name, one.line or None) for one in own]
        self.text = "".join(traceback.format_exception_only(error)).strip()
        try:
            self._error = dumps(error)
        except Exception:  # noqa: BLE001 - whatever its values raise
            self._error = b""

    @property
    def error(self) -> BaseException | None:
        """The error; None if it could not be pickled there, or cannot be unpickled here."""
        try:
            found = cloudpickle.loads(self._error)
        except Exception:  # noqa: BLE001 - whatever its class does
            return None
        return found if isinstance(found, BaseException) else None

    def traceback(self, process: object) -> str:
        """Where it came up, as Python shows it; ``process``: the name of that."""
        lines: Iterable[str] = traceback.StackSummary.from_list(self._where).format()
        return f"Traceback (on {process}, the latest call last):\n{''.join(lines)}{self.text}"
