"""Examples in docstrings and in the README do what they show."""

from __future__ import annotations

import doctest
import importlib
import pkgutil
from pathlib import Path

import pytest

import sfm_kernel

ROOT = Path(__file__).parents[2]
FLAGS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
MODULES = [
    module.name
    for module in pkgutil.walk_packages(sfm_kernel.__path__, "sfm_kernel.")
    # Importing them runs a command, or begins MPI.
    if not module.name.endswith(("__main__", "lessons.ranks"))
]


@pytest.mark.parametrize("name", ["sfm_kernel", *MODULES])
def test_docstring_examples(name: str) -> None:
    names = {"sfm_kernel": sfm_kernel}  # as a reader who has imported it
    module = importlib.import_module(name)
    failed, _ = doctest.testmod(module, extraglobs=names, optionflags=FLAGS)
    assert failed == 0, "see the captured output"


@pytest.mark.parametrize("name", ["README.md", "CONTRIBUTING.md"])
def test_examples_in(name: str) -> None:
    failed, _ = doctest.testfile(str(ROOT / name), module_relative=False, optionflags=FLAGS)
    assert failed == 0, "see the captured output"
