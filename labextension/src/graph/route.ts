import { cut } from '../model/text';
import type { Box, Layout, Point } from './layout';
import type { Line } from './model';

/** A line as it is drawn: a curve with an arrow's head at its end. */
export interface Route {
  readonly line: Line;
  /** The `d` of an SVG path. */
  readonly path: string;
  /** The text that its label has room for, and the label's box; null if there is no room. */
  readonly label: (Box & { readonly text: string }) | null;
}

type Curve = readonly [Point, Point, Point];

/** The bends that a line may have to pass round a node, as fractions of its length. */
const BENDS = [0, 0.14, -0.14, 0.28, -0.28, 0.45, -0.45, 0.7, -0.7];
/** The bends of two lines between the same nodes: each is bent to its right. */
const PAIRED = [0.2, 0.3, 0.45, 0.7];
/** More lines than this are drawn without searching for a free path, and without labels. */
const CROWD = 80;
const LETTER = 6.1;
const LABEL_HEIGHT = 15;

/**
 * Paths and labels for all lines. A line is bent to pass between the nodes; a label for which there
 * is no room is omitted, those of the cycle last.
 */
export function routesOf(lines: readonly Line[], { boxes, width, height }: Layout): Route[] {
  const keys = new Set(lines.map(line => line.key));
  const crowded = lines.length > CROWD;
  const room = { x: width / 2, y: height / 2, width, height };
  const taken = [...boxes.values()];
  const curves = new Map<string, Curve>();
  for (const line of lines) {
    const from = boxes.get(line.from);
    const to = boxes.get(line.to);
    if (from && to && line.from !== line.to) {
      const paired = keys.has(`${line.to} ${line.from}`);
      const others = crowded ? [] : taken.filter(box => box !== from && box !== to);
      curves.set(line.key, freeCurve(from, to, paired ? PAIRED : BENDS, others, room));
    }
  }
  const labels = new Map<string, Route['label']>();
  // The deadlock's labels choose their positions first.
  for (const line of [...lines].sort((a, b) => Number(b.cycle) - Number(a.cycle))) {
    const from = boxes.get(line.from);
    const labelled = from && (!crowded || line.cycle);
    const label = labelled ? placeLabel(line, curves.get(line.key), from, taken, room) : null;
    labels.set(line.key, label);
    if (label) {
      taken.push(label);
    }
  }
  return lines.flatMap(line => {
    const curve = curves.get(line.key);
    const self = line.from === line.to ? boxes.get(line.from) : undefined;
    const path = curve ? pathOf(curve) : self ? loopOf(self) : null;
    return path ? [{ line, path, label: labels.get(line.key) ?? null }] : [];
  });
}

/** The curve that crosses the fewest nodes and least leaves the drawing. */
function freeCurve(
  from: Box,
  to: Box,
  bends: readonly number[],
  others: readonly Box[],
  room: Box
): Curve {
  const curves = bends.map(bend => curveOf(from, to, bend));
  const costs = curves.map(curve => {
    const inside = within(pointOf(curve, 0.5), room, -6);
    return others.filter(box => crosses(curve, box)).length + (inside ? 0 : 3);
  });
  return curves[costs.indexOf(Math.min(...costs))]!;
}

/** From border to border; bent to the right of its direction by `bend` of its length. */
function curveOf(from: Box, to: Box, bend: number): Curve {
  const dx = to.x - from.x;
  const dy = to.y - from.y;
  const middle = { x: from.x + dx / 2 - dy * bend, y: from.y + dy / 2 + dx * bend };
  return [leave(from, middle, 2), middle, leave(to, middle, 5)];
}

/** The point at which a line from a box's middle leaves the box, and `gap` further on. */
export function leave(box: Box, to: Point, gap: number): Point {
  const dx = to.x - box.x;
  const dy = to.y - box.y;
  const length = Math.hypot(dx, dy) || 1;
  const share = Math.min(
    dx === 0 ? Infinity : box.width / 2 / Math.abs(dx),
    dy === 0 ? Infinity : box.height / 2 / Math.abs(dy)
  );
  const reach = Number.isFinite(share) ? share + gap / length : 0;
  return { x: box.x + dx * reach, y: box.y + dy * reach };
}

function pointOf([a, b, c]: Curve, t: number): Point {
  const s = 1 - t;
  return {
    x: s * s * a.x + 2 * s * t * b.x + t * t * c.x,
    y: s * s * a.y + 2 * s * t * b.y + t * t * c.y
  };
}

function crosses(curve: Curve, box: Box): boolean {
  for (let i = 1; i < 24; i++) {
    if (within(pointOf(curve, i / 24), box, 4)) {
      return true;
    }
  }
  return false;
}

/** Whether a point is in a box that is larger by `margin` on each side. */
function within(point: Point, { x, y, width, height }: Box, margin: number): boolean {
  return Math.abs(point.x - x) < width / 2 + margin && Math.abs(point.y - y) < height / 2 + margin;
}

/** A position for a label: on its line, or beside it in the direction `off`. */
type Spot = Point & { readonly off: Point };

/** The positions that a line's label may have, the best one first. */
function spotsOf(curve: Curve | undefined, from: Box, room: Point): Spot[] {
  if (!curve) {
    // A process waits for itself: the label is below it, since the line goes round the upper corner.
    return [1, -1].map(down => {
      return { x: from.x, y: from.y + (down * from.height) / 2, off: { x: 0, y: down } };
    });
  }
  const [a, , c] = curve;
  const length = Math.hypot(c.x - a.x, c.y - a.y) || 1;
  const normal = { x: (a.y - c.y) / length, y: (c.x - a.x) / length };
  // There is more room outside a ring than inside.
  const out =
    normal.x * (a.x + c.x - 2 * room.x) + normal.y * (a.y + c.y - 2 * room.y) < 0 ? -1 : 1;
  const on = [0.5, 0.42, 0.58, 0.34, 0.66, 0.26, 0.74].map(t => pointOf(curve, t));
  return [0, out, -out].flatMap(side =>
    on.map(point => ({ ...point, off: { x: normal.x * side, y: normal.y * side } }))
  );
}

function placeLabel(
  line: Line,
  curve: Curve | undefined,
  from: Box,
  taken: readonly Box[],
  room: Box
): Route['label'] {
  const spots = spotsOf(curve, from, room);
  for (const length of [30, 22, 16, 11]) {
    const text = cut(line.label, length);
    const size = [...text].length * LETTER + 8;
    for (const spot of spots) {
      const label = stand(spot, size);
      const covers = curve && !isOff(spot) && hides(curve, size);
      const outside = Math.abs(label.x - room.x) > (room.width - size) / 2;
      if (!covers && !outside && !taken.some(box => overlap(box, label))) {
        return { ...label, text };
      }
    }
  }
  return null;
}

function isOff({ off }: Spot): boolean {
  return off.x !== 0 || off.y !== 0;
}

/** The label's box; the border of a label beside the line touches the line. */
function stand({ x, y, off }: Spot, width: number): Box {
  const reach = Math.abs(off.x) * (width / 2) + Math.abs(off.y) * (LABEL_HEIGHT / 2) + 4;
  return { x: x + off.x * reach, y: y + off.y * reach, width, height: LABEL_HEIGHT };
}

/** Whether a label on a line would hide so much of it that its direction cannot be seen. */
function hides([a, , c]: Curve, size: number): boolean {
  const dx = Math.abs(c.x - a.x);
  const dy = Math.abs(c.y - a.y);
  const length = Math.hypot(dx, dy) || 1;
  const covered = Math.min((size * length) / (dx || 1), (LABEL_HEIGHT * length) / (dy || 1));
  return length - covered < 36;
}

function overlap(a: Box, b: Box): boolean {
  return (
    Math.abs(a.x - b.x) < (a.width + b.width) / 2 + 2 &&
    Math.abs(a.y - b.y) < (a.height + b.height) / 2 + 2
  );
}

function pathOf([a, b, c]: Curve): string {
  return `M${round(a)} Q${round(b)} ${round(c)}`;
}

/** The path of a process that waits for itself. */
function loopOf({ x, y, width, height }: Box): string {
  const right = x + width / 2;
  const top = y - height / 2;
  const points = [
    { x: right - 26, y: top - 2 },
    { x: right - 26, y: top - 18 },
    { x: right + 20, y: top - 6 },
    { x: right + 3, y: top + 12 }
  ];
  const [a, b, c, d] = points.map(round);
  return `M${a} C${b} ${c} ${d}`;
}

function round({ x, y }: Point): string {
  return `${x.toFixed(1)} ${y.toFixed(1)}`;
}
