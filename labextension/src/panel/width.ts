import { SplitPanel, Widget } from '@lumino/widgets';

/** Pixels in which a row shows its process's name, state and line. */
const WIDTH = 320;

/** Pixels of a window in which the panel is not widened: too little would be left. */
const NARROW = 900;

/** The part of a window's height that a view below the document gets. */
const BELOW = 0.4;

/** Make the side area that contains the panel wide enough, at the main area's cost. */
export function widen(panel: Widget): void {
  if (innerWidth >= NARROW) {
    enlarge(panel, 'clientWidth', WIDTH);
  }
}

/** Make the area below the document that contains the view high enough, at the document's cost. */
export function heighten(view: Widget): void {
  enlarge(view, 'clientHeight', BELOW * innerHeight);
}

function enlarge(widget: Widget, side: 'clientWidth' | 'clientHeight', pixels: number): void {
  let area = widget;
  while (area.parent && !(area.parent instanceof SplitPanel)) {
    area = area.parent;
  }
  const split = area.parent;
  const missing = pixels - widget.node[side];
  if (!(split instanceof SplitPanel) || missing <= 0) {
    return;
  }
  const sizes = split.relativeSizes();
  const part = missing / split.node[side];
  const place = split.widgets.indexOf(area);
  const main = sizes.indexOf(Math.max(...sizes));
  split.setRelativeSizes(
    sizes.map((size, i) => size + (i === place ? part : i === main ? -part : 0))
  );
}
