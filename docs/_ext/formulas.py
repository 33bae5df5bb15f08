"""Formulas as MathML, which browsers draw by themselves: a page needs no script from a network."""

from __future__ import annotations

from typing import Any

from docutils import nodes
from docutils.utils.math import latex2mathml
from sphinx.application import Sphinx


def inline(self: Any, node: nodes.Element) -> None:
    self.body.append(latex2mathml.tex2mathml(node.astext()))
    raise nodes.SkipNode


def block(self: Any, node: nodes.Element) -> None:
    self.body.append(
        f"<div class='math'>{latex2mathml.tex2mathml(node.astext(), as_block=True)}</div>"
    )
    raise nodes.SkipNode


def setup(app: Sphinx) -> dict[str, bool]:
    app.add_html_math_renderer("mathml", (inline, None), (block, None))
    return {"parallel_read_safe": True}
