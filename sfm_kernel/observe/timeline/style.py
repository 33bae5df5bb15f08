"""How a diagram looks: colours that people with any kind of colour vision can tell apart, and a
shape or hatching for each, so that it reads in grey as well.

In JupyterLab and VS Code the background and the texts take the theme's colours; elsewhere the
diagram lies on a white ground of its own.
"""

from __future__ import annotations

from sfm_kernel.observe.timeline.svg import Markup, element

STATES = {
    "running": "computing",
    "blocked in recv": "blocked in recv",
    "blocked in send": "blocked in send",
    "blocked in collective": "blocked in a collective call",
    "blocked in cell": "waits for a cell",
    "idle": "idle",
}
"""All states, as the legend says them."""

# Okabe and Ito's colours.
COLOURS = {
    "running": "#56B4E9",
    "blocked in recv": "#D55E00",
    "blocked in send": "#C98A00",
    "blocked in collective": "#CC79A7",
    "blocked in cell": "#8a8a8a",
}

HATCHES = {
    "blocked in recv": "M-1 7 7 -1M-2 2 2 -2M4 8 8 4",
    "blocked in send": "M-1 -1 7 7M4 -2 8 2M-2 4 2 8",
    "blocked in collective": "M0 3H6M3 0V6",
    "blocked in cell": "M0 3H6",
}
"""In a square of 6: strokes one way, the other way, a grid, lines."""

HEIGHTS = {"running": 1.0, "idle": 0.08}
"""Of the bar; others are lower than one that computes."""
LOWER = 0.66

LATE = "#e03131"

# A value with var() follows one without, for programs that do not know var().
_STYLE = """
.sfm-timeline{font:11px system-ui,sans-serif;
--back:var(--jp-layout-color0,var(--vscode-editor-background,#fff));
--text:var(--jp-ui-font-color1,var(--vscode-editor-foreground,#222))}
.sfm-timeline text,.sfm-timeline .idle,.sfm-timeline .tip{fill:#222;fill:var(--text)}
.sfm-timeline .grid,.sfm-timeline .message{stroke:#222;stroke:var(--text)}
.sfm-timeline .back{fill:#fff;fill:var(--back)}
.sfm-timeline .head{font-size:13px;font-weight:600}
.sfm-timeline .quiet{opacity:.75}
.sfm-timeline .grid{opacity:.15}
.sfm-timeline .idle{opacity:.6}
.sfm-timeline .message{fill:none;opacity:.75}
.sfm-timeline .many{opacity:.5}
.sfm-timeline .late{stroke:LATE;stroke-width:2}
.sfm-timeline .receiver{stroke-dasharray:5 2.5}
.sfm-timeline .unknown{stroke-dasharray:2 2}
.sfm-timeline .late-tip{fill:LATE}
.sfm-timeline .cost{font-weight:600}
.sfm-timeline .hit{stroke:transparent;stroke-width:9;fill:none}
.sfm-timeline g:hover>.message{stroke-width:3.5;opacity:1}
.sfm-timeline .halo{paint-order:stroke;stroke:#fff;stroke:var(--back);stroke-width:4px;
stroke-linejoin:round}
""".replace("LATE", LATE)


def definitions(name: str) -> Markup:
    """The style sheet, hatchings and arrowheads of the SVG whose id is ``name``; so theirs begin.

    A style sheet holds for the whole page: where it names ids, it is for this SVG only.
    """
    rules = [f".sfm-timeline .running{{fill:{COLOURS['running']}}}"]
    rules += [
        f"#{name} .{css(state)}{{fill:url(#{name}-{css(state)});stroke:{COLOURS[state]}}}"
        for state in HATCHES
    ]
    tips = [_tip(f"{name}-tip", "tip"), _tip(f"{name}-late", "late-tip")]
    hatches = [_hatch(f"{name}-{css(state)}", state) for state in HATCHES]
    style = Markup(_STYLE.strip() + "\n" + "\n".join(rules))
    return Markup(element("style", style) + element("defs", *hatches, *tips))


def css(state: str) -> str:
    """A state's class."""
    return state.replace(" ", "-")


def height(state: str) -> float:
    """What part of the bar's height a state takes."""
    return HEIGHTS.get(state, LOWER)


def _hatch(name: str, state: str) -> Markup:
    colour = COLOURS[state]
    ground = element("rect", width=6, height=6, fill=colour, fill_opacity=0.25)
    strokes = element("path", d=HATCHES[state], stroke=colour, stroke_width=1.4)
    square = {"width": "6", "height": "6", "patternUnits": "userSpaceOnUse"}
    return element("pattern", ground, strokes, id=name, **square)


def _tip(name: str, kind: str) -> Markup:
    shape = element("path", d="M0 0 8 4 0 8z", class_=kind)
    where = {"viewBox": "0 0 8 8", "refX": "7.5", "refY": "4", "orient": "auto"}
    size = {"markerWidth": "7", "markerHeight": "7", "markerUnits": "userSpaceOnUse"}
    return element("marker", shape, id=name, **where, **size)
