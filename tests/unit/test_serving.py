"""The basis of serving: values, errors and functions on their way; waits that nobody sees."""

from __future__ import annotations

import pickle
import threading
import time
from typing import Any

import pytest

import sfm_kernel
from sfm_kernel.endpoint import seen
from sfm_kernel.errors import EncodeError, TaskFailed, TaskPoisoned
from sfm_kernel.observe import snapshot
from sfm_kernel.serving import Failure, bad_argument
from sfm_kernel.serving.functions import Functions, Namespace
from sfm_kernel.serving.values import dumps


def by_value(code: str, file: str = "<a cell>") -> Any:
    """The function f of this code, which no process can import."""
    names: dict[str, Any] = {"__name__": "__main__"}
    exec(compile(code, file, "exec"), names)
    return names["f"]


def sent(namespace: Namespace, functions: Functions, function: Any) -> Any:
    """The function as it is there."""
    number = functions.number(function)
    namespace.learn(functions.code([number]))
    return namespace.function(number)


def test_code_keeps_its_file_and_cell(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(seen, "find_cell", {"<cell 3>": (3, "id", 1)}.get)
    packed = dumps(by_value("def f(): raise ValueError", "<cell 3>"))
    monkeypatch.setattr(seen, "find_cell", None)
    function = pickle.loads(packed)
    assert function.__code__.co_filename == "<cell 3>"
    assert seen.cell_of("<cell 3>") == (3, "id", 1) and seen.cell_of("<cell 4>") is None
    del seen.remote_cells["<cell 3>"]


def test_a_function_is_sent_once() -> None:
    functions, f = Functions(), by_value("def f(): return k")
    f.__globals__["k"] = 1
    first = functions.number(f)
    assert functions.number(f) == first and functions.number("name") == "name"
    f.__globals__["k"] = 2
    other = functions.number(f)
    assert other != first, "it is another function now"
    assert functions.code([first, other, "name"], known=[first]).keys() == {other}


def test_injected_values_fill_the_names_that_a_function_lacks() -> None:
    namespace, functions = Namespace(), Functions()
    f = by_value("k = 1\ndef f(): return k, more")
    namespace.inject((), {"k": 9, "more": 1})
    assert sent(namespace, functions, f)() == (1, 1), "its own goes before"
    namespace.inject((), {"more": 2})
    assert sent(namespace, functions, f)() == (1, 2)
    assert not hasattr(time, "more") and sent(namespace, functions, time.time)() > 0


def test_sources_modules_classes_and_functions_can_be_injected() -> None:
    namespace = Namespace(given=1)
    namespace.inject(["def twice(x): return x * two", time, TaskFailed, len], {"two": 2})
    assert namespace.function("twice")(4) == 8
    assert namespace.function("TaskFailed") is TaskFailed and namespace.function("len") is len
    with pytest.raises(LookupError, match="no name 'thrice' was injected here"):
        namespace.function("thrice")


@pytest.mark.parametrize(
    ("code", "warned"),
    [
        ("def f():\n    global a\n    a = 1", "f changes the global a: each process"),
        ("def f():\n    def g():\n        global a, b\n        a = b = 1", "the global a and b"),
        ("def f():\n    a = 1\n    return a", ""),
        ("f = len", ""),
    ],
)
def test_changed_globals(code: str, warned: str, recwarn: pytest.WarningsRecorder) -> None:
    Functions().number(by_value(code))
    assert bool(warned) == bool(recwarn.list)
    assert all(warned in str(warning.message) for warning in recwarn)


def test_a_function_that_cannot_be_sent_is_named() -> None:
    f = by_value("def f(): return lock")
    f.__globals__["lock"] = threading.Lock()
    with pytest.raises(EncodeError, match=r"'f' cannot be sent: it uses a value"):
        Functions().number(f)


def test_which_argument_cannot_be_sent() -> None:
    lock = threading.Lock()
    assert bad_argument((1, "a"), {"b": None}) == ""
    assert bad_argument((1, lock), {}).startswith("argument 2, a lock, cannot be sent: TypeError")
    assert bad_argument((), {"key": [lock]}).startswith("key, a list, cannot be sent")


def test_an_error_travels_however_it_was_made() -> None:
    class Odd(Exception):
        def __init__(self, a: int, b: int) -> None:  # cannot be made again from its args
            super().__init__(f"{a} {b}")

    def fail(error: BaseException) -> Failure:
        try:
            raise error
        except BaseException as raised:  # noqa: BLE001
            return pickle.loads(pickle.dumps(Failure(raised)))  # type: ignore[no-any-return]

    known, odd = fail(KeyError("k")), fail(Odd(1, 2))
    assert isinstance(known.error, KeyError) and known.error.args == ("k",)
    assert odd.error is None and "Odd: 1 2" in odd.text
    text = odd.traceback("A")
    assert text.startswith("Traceback (on A, most recent call last):\n")
    assert "raise error" in text and text.endswith(odd.text)


@pytest.mark.parametrize(
    "error", [TaskFailed("f(1)", 2, "it is so", "Traceback"), TaskPoisoned("f(1)", [0, 1])]
)
def test_errors_can_be_pickled(error: TaskFailed) -> None:
    again = pickle.loads(pickle.dumps(error))
    assert (type(again), str(again), again.worker) == (type(error), str(error), error.worker)


def test_a_quiet_wait(world: str) -> None:
    with sfm_kernel.join(world, name="A") as sfm:
        context = sfm.context("quiet")
        assert not context.wait(0.0) and not context.wait(0.01, tag=1)
        context.send(dest="A", tag=2)
        assert context.wait(60) and not context.wait(0.01, tag=1) and context.wait(60, tag=2)
        assert context.recv(tag=2).tag == 2

        thread = threading.Thread(target=context.wait, args=(60,))
        thread.start()
        states = {snapshot(sfm)["processes"][0]["state"] for _ in range(5)}
        context.send(dest="A", tag=3)
        thread.join()
        assert states == {"running"}
