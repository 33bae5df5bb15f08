import { SplitPanel, Widget } from '@lumino/widgets';

/** Pixels in which a row shows its process's name, state and line. */
const WIDTH = 320;

/** Pixels of a window in which the panel is not widened: too little would be left. */
const NARROW = 900;

/** Make the side area that contains the panel wide enough, at the main area's cost. */
export function widen(panel: Widget): void {
  let area = panel;
  while (area.parent && !(area.parent instanceof SplitPanel)) {
    area = area.parent;
  }
  const split = area.parent;
  const missing = WIDTH - panel.node.clientWidth;
  if (!(split instanceof SplitPanel) || missing <= 0 || innerWidth < NARROW) {
    return;
  }
  const sizes = split.relativeSizes();
  const part = missing / split.node.clientWidth;
  const place = split.widgets.indexOf(area);
  const main = sizes.indexOf(Math.max(...sizes));
  split.setRelativeSizes(
    sizes.map((size, i) => size + (i === place ? part : i === main ? -part : 0))
  );
}
