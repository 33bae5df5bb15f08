"""Every public name has a docstring for editors and ``help()``, the calls a complete one."""

from __future__ import annotations

import ast
import inspect
from pathlib import Path
from typing import Any

import pytest

import sfm_kernel
from sfm_kernel import Context, Endpoint, Group, Message
from sfm_kernel.endpoint import Callback

CALLS = ("send", "recv", "recv_nb", "peek", "regcb")

PUBLIC = [
    (owner, name)
    for owner in (Endpoint, Context, Group, Message, Callback)
    for name in dir(owner)
    if not name.startswith("_")
]


def doc(value: Any) -> str:
    return inspect.getdoc(value) or ""


@pytest.mark.parametrize("name", sfm_kernel.__all__)
def test_public_names(name: str) -> None:
    first = doc(getattr(sfm_kernel, name)).splitlines()[0]
    assert len(first) > 20 and (first[0].isupper() or first[0] == "`")


@pytest.mark.parametrize("name", ["join", "run", "encode", "decode", "Message"])
def test_functions_have_an_example_and_their_errors(name: str) -> None:
    text = doc(getattr(sfm_kernel, name))
    assert "Raises:" in text and ">>> " in text


@pytest.mark.parametrize(("owner", "name"), PUBLIC, ids=lambda arg: getattr(arg, "__name__", arg))
def test_methods_and_attributes(owner: type, name: str) -> None:
    assert len(doc(getattr(owner, name))) > 15


@pytest.mark.parametrize("name", CALLS)
def test_calls_say_all(name: str) -> None:
    text = doc(getattr(Endpoint, name))
    for heading in ("Blocks:", "Args:", "Raises:", "Example:", ">>> "):
        assert heading in text, heading
    with sfm_kernel.join("explained", name="A") as sfm:  # the endpoint that a cell has by name
        assert doc(getattr(sfm, name)) == text


def test_the_docstrings_say_what_the_readme_says() -> None:
    assert "dest" in inspect.signature(Endpoint.send).parameters
    for name, said in {
        "send": ["any values that can be pickled", "UnknownName: no process", "order sent"],
        "recv": ["predicate", "seconds", "RecvTimeout", "PeerLost", "stays queued", "Stop"],
        "recv_nb": ["WouldBlock", "Blocks: never"],
        "peek": ["Changes nothing"],
        "regcb": ["unregister()", "network thread", "consumes the"],
    }.items():
        for phrase in said:
            assert phrase in doc(getattr(Endpoint, name)), (name, phrase)


@pytest.mark.parametrize("name", CALLS)
def test_signatures_for_shift_tab(name: str) -> None:
    kinds = {arg.kind for arg in inspect.signature(getattr(Endpoint, name)).parameters.values()}
    assert inspect.Parameter.VAR_KEYWORD in kinds


@pytest.mark.parametrize("name", ["barrier", "allreduce", "bcast", "reduce", "scatter"])
def test_collectives_have_signatures(name: str) -> None:
    parameters = inspect.signature(getattr(Group, name)).parameters
    assert "algorithm" in parameters
    assert ("root" in parameters) == (name in ("bcast", "reduce", "scatter"))


def test_editors_read_the_same_in_the_stub() -> None:
    """An editor that runs nothing shows what ``_native.pyi`` says of the native calls."""
    stub = Path(sfm_kernel.__file__).with_name("_native.pyi")
    named = (ast.ClassDef, ast.FunctionDef)
    stubs = {top.name: top for top in ast.parse(stub.read_text()).body if isinstance(top, named)}
    for name in CALLS[:4]:
        assert ast.get_docstring(stubs[name]) == doc(getattr(Endpoint, name)).strip()
    assert ast.get_docstring(stubs["Message"]) == doc(Message).strip()
