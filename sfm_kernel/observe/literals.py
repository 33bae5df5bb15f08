"""Values from the texts in which segments show them."""

from __future__ import annotations

import ast
from typing import Any

LONGEST = 1000
"""Characters that are parsed: the parser takes a thousand times as much memory, and a thousand
seconds for a megabyte. Processes cut the texts that they publish long before."""


def literal(text: str) -> Any:
    """The value that a text shows; raises ValueError if it shows none, or is too long."""
    if len(text) > LONGEST:
        raise ValueError(f"a text of {len(text)} characters")
    try:
        return ast.literal_eval(text)
    except (SyntaxError, MemoryError, RecursionError, TypeError) as error:  # cut, nested, [] in {}
        raise ValueError(str(error)) from None
