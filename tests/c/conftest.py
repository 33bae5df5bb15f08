"""A notebook for all tests of a module, as in the tests of Jupyter."""

from tests.jupyter.conftest import book

__all__ = ["book"]
