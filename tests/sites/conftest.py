"""Labs for tests. Where the machine refuses namespaces, and only there, a test is skipped.

In CI that is a failure: all tests with labs are marked tcp.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any

import pytest

from sfm_kernel.lessons.sites.lab import Lab, LabRefused


@pytest.fixture
def make_lab() -> Iterator[Callable[..., Lab]]:
    """``Lab(...)``, closed when the test ends."""
    with ExitStack() as stack:

        def make(*args: Any, **kwargs: Any) -> Lab:
            try:
                return stack.enter_context(Lab(*args, **kwargs))
            except LabRefused as refused:
                pytest.skip(str(refused))

        yield make
