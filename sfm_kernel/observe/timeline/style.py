"""The style of a diagram. A state has the same colour, hatching and height as in the panel, whose
build copies them from ``labextension/src/timeline/states.json``.

In JupyterLab and VS Code the colours are the theme's; elsewhere the diagram has a white background.
"""

from __future__ import annotations

import json
from importlib.resources import files
from typing import Any

from sfm_kernel.observe.timeline.svg import Markup, element

STATES: dict[str, dict[str, Any]] = json.loads(
    files("sfm_kernel.observe.record").joinpath("states.json").read_text(encoding="utf-8")
)
"""All states, in the legend's order: ``text`` of the legend, ``colour`` (a CSS variable) and its
``fallback``, ``height`` as a part of the bar's, ``hatch`` (a path in a square of 6, or empty)."""

# A value with var() follows one without, for programs that do not know var().
_STYLE = """
.sfm-timeline{font:11px system-ui,sans-serif;
--back:var(--jp-layout-color0,var(--vscode-editor-background,#fff));
--text:var(--jp-ui-font-color1,var(--vscode-editor-foreground,#222));
--late:var(--jp-error-color1,#d32f2f)}
.sfm-timeline text,.sfm-timeline .tip{fill:#222;fill:var(--text)}
.sfm-timeline .grid,.sfm-timeline .message{stroke:#222;stroke:var(--text)}
.sfm-timeline .back{fill:#fff;fill:var(--back)}
.sfm-timeline .head{font-size:13px;font-weight:600}
.sfm-timeline .quiet{opacity:.75}
.sfm-timeline .grid{opacity:.15}
.sfm-timeline .message{fill:none;opacity:.75}
.sfm-timeline .late{stroke:#d32f2f;stroke:var(--late);stroke-width:2}
.sfm-timeline .receiver{stroke-dasharray:5 2.5}
.sfm-timeline .unknown{stroke-dasharray:2 2}
.sfm-timeline .late-tip{fill:#d32f2f;fill:var(--late)}
.sfm-timeline .cost{font-weight:600}
.sfm-timeline .hit{stroke:transparent;stroke-width:9;fill:none}
.sfm-timeline g:hover>.message{stroke-width:3.5;opacity:1}
.sfm-timeline .halo{paint-order:stroke;stroke:#fff;stroke:var(--back);stroke-width:4px;
stroke-linejoin:round}
"""


def definitions(name: str) -> Markup:
    """The style sheet, hatchings and arrowheads of the SVG with the id ``name``, their ids' prefix.

    A style sheet applies to the whole page; rules with ids apply to this SVG only.
    """
    rules, shapes = [_STYLE.strip()], []
    for state, style in STATES.items():
        fill, stroke = (_coloured(kind, style) for kind in ("fill", "stroke"))
        if style["hatch"]:
            hatch = f"{name}-{css(state)}"
            rules.append(f"#{name} .ink-{css(state)}{{{fill};{stroke}}}")
            rules.append(f"#{name} .{css(state)}{{fill:url(#{hatch});{stroke}}}")
            shapes.append(_hatch(hatch, f"ink-{css(state)}", style["hatch"]))
        else:
            rules.append(f"#{name} .{css(state)}{{{fill}}}")
    shapes += [_tip(f"{name}-tip", "tip"), _tip(f"{name}-late", "late-tip")]
    return Markup(element("style", Markup("\n".join(rules))) + element("defs", *shapes))


def css(state: str) -> str:
    """The CSS class of a state."""
    return state.replace(" ", "-")


def _coloured(kind: str, style: dict[str, Any]) -> str:
    plain = style["fallback"]
    return f"{kind}:{plain};{kind}:var({style['colour']},{plain})"


def _hatch(name: str, ink: str, path: str) -> Markup:
    ground = element("rect", width=6, height=6, class_=ink, fill_opacity=0.4, stroke_width=0)
    strokes = element("path", d=path, class_=ink, stroke_width=1.4)
    square = {"width": "6", "height": "6", "patternUnits": "userSpaceOnUse"}
    return element("pattern", ground, strokes, id=name, **square)


def _tip(name: str, kind: str) -> Markup:
    shape = element("path", d="M0 0 8 4 0 8z", class_=kind)
    anchor = {"viewBox": "0 0 8 8", "refX": "7.5", "refY": "4", "orient": "auto"}
    size = {"markerWidth": "7", "markerHeight": "7", "markerUnits": "userSpaceOnUse"}
    return element("marker", shape, id=name, **anchor, **size)
