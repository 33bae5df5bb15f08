"""The colours of drawings. They are half transparent, so that text on them can be read in light and
dark themes."""

from __future__ import annotations

from collections.abc import Iterable

# Okabe and Ito's colours, which people with any kind of colour vision can distinguish.
_SENDERS = ("0,114,178", "213,94,0", "0,158,115", "204,121,167", "230,159,0", "86,180,233")

TEXT = "var(--jp-ui-font-color1,var(--vscode-editor-foreground,currentColor))"
LINE = "var(--jp-border-color1,rgba(128,128,128,.6))"
STUCK = "var(--jp-error-color1,#d32f2f)"


def of_senders(names: Iterable[object]) -> dict[object, str]:
    """A background colour for each of these processes; they repeat if there are many."""
    return {name: f"rgba({_SENDERS[nth % len(_SENDERS)]},.28)" for nth, name in enumerate(names)}
