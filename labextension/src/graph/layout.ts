/**
 * Positions for the nodes of the wait-for graph.
 *
 * Libraries were tried with 2 to 32 processes. Layers (dagre, 49 kB; elkjs, 1.6 MB) put each process
 * above those that it waits for: a cycle of 16 becomes a column of 1700 pixels, or a meander that
 * does not close, and 15 that wait for one become a row of 2500 pixels in a panel of 300 to 900.
 * Forces (d3-force, elkjs) cross the lines of a cycle, and let nodes and labels cover each other.
 * All of them move every node when a wait begins or ends, ten times a second.
 */
import type { Graph, Node } from './model';

export interface Point {
  readonly x: number;
  readonly y: number;
}

/** A node's middle and its size. */
export interface Box extends Point {
  readonly width: number;
  readonly height: number;
}

export interface Layout {
  readonly width: number;
  readonly height: number;
  readonly boxes: ReadonlyMap<string, Box>;
  /** Whether nodes are small: a symbol and a name. */
  readonly compact: boolean;
}

interface Size {
  readonly width: number;
  readonly height: number;
  /** The space between two nodes, for a line, and between two rows, for a line's label. */
  readonly gap: number;
  readonly gapBelow: number;
}

const LARGE: Size = { width: 120, height: 46, gap: 34, gapBelow: 46 };
const SMALL: Size = { width: 64, height: 24, gap: 28, gapBelow: 30 };
const MARGIN = 14;
/** More nodes than this, without a deadlock, are drawn in rows. */
const MANY = 16;
/** More nodes than this are drawn in a rectangle, since an ellipse would take too much room. */
const ROUND = 8;
/** A ring that would be taller than this has small nodes. */
const TALL = 540;
const MIN_WIDTH = 300;
/** The greatest width of a drawing: in a wider one the eye has too far to go. */
const MAX_WIDTH = 900;
const PAIR_RADIUS = 180;

/**
 * The positions depend on the nodes' names and the width alone, except in a deadlock: its cycle
 * becomes a ring; processes that wait for it are above and below, the others in rows at the bottom.
 */
export function layoutOf(graph: Graph, available: number): Layout {
  const width = Math.min(Math.max(available, MIN_WIDTH), MAX_WIDTH);
  const keys = graph.nodes.map(node => node.key);
  const isDeadlock = graph.ring.length > 0;
  const ring = isDeadlock ? graph.ring : keys.length > MANY ? [] : keys;
  const victims = isDeadlock ? graph.nodes.filter(node => node.role === 'victim') : [];
  const crowd = isDeadlock ? victims.length : keys.length;
  const compact = crowd > MANY || placeRing(ring, width, LARGE).height > TALL;
  const size = compact ? SMALL : LARGE;

  const { boxes, height } = placeRing(ring, width, size);
  const bounds = placeVictims(graph, victims, boxes, width, size, height);
  const others = keys.filter(key => !boxes.has(key));
  const free = boxes.size > 0 ? 1.5 * size.gapBelow : MARGIN;
  const rows = rowsOf(others, fitting(width, size));
  const each = (width - 2 * MARGIN) / (rows[0]?.length ?? 1);
  const step = size.height + size.gapBelow;
  rows.forEach((row, j) => {
    const y = bounds.bottom + free + j * step + size.height / 2;
    row.forEach((key, i) => boxes.set(key, boxAt(MARGIN + each * (i + 0.5), y, size)));
  });
  const more = rows.length && free + rows.length * step - size.gapBelow;
  return {
    boxes: new Map(
      [...boxes].map(([key, box]) => [key, { ...box, y: box.y + MARGIN - bounds.top }])
    ),
    height: bounds.bottom + more - bounds.top + 2 * MARGIN,
    width,
    compact
  };
}

function boxAt(x: number, y: number, { width, height }: Size): Box {
  return { x, y, width, height };
}

/**
 * Processes that wait for the cycle are in rows: above it if the process they wait for is in its
 * upper half, otherwise below; processes that wait for them are further out. Adds them to `boxes`.
 */
function placeVictims(
  graph: Graph,
  victims: readonly Node[],
  boxes: Map<string, Box>,
  width: number,
  size: Size,
  height: number
): { top: number; bottom: number } {
  const bounds = { top: 0, bottom: height };
  const step = size.height + size.gapBelow;
  let remaining = victims;
  while (remaining.length > 0) {
    const targets = remaining.map(({ key }) => {
      const line = graph.lines.find(({ from, to }) => from === key && boxes.has(to));
      return line && boxes.get(line.to);
    });
    // If none of them waits for a node that already has a position, all are below.
    const isLast = targets.every(box => box === undefined);
    const placements = remaining.flatMap(({ key }, i): Placement[] => {
      const box = targets[i] ?? (isLast ? { x: width / 2, y: height } : null);
      return box ? [{ key, x: box.x, above: box.y < height / 2 }] : [];
    });
    placements.sort((a, b) => a.x - b.x);
    for (const above of [true, false]) {
      const side = placements.filter(placement => placement.above === above);
      for (const row of rowsOf(side, fitting(width, size))) {
        bounds.top -= above ? step : 0;
        bounds.bottom += above ? 0 : step;
        const y = above ? bounds.top + size.height / 2 : bounds.bottom - size.height / 2;
        placeRow(row, y, width, size, boxes);
      }
    }
    remaining = isLast ? [] : remaining.filter((_, i) => targets[i] === undefined);
  }
  return bounds;
}

/** The preferred position of a node: above the cycle or below it. */
interface Placement {
  readonly key: string;
  readonly x: number;
  readonly above: boolean;
}

/** Put each node at its preferred position, as far as earlier nodes and the border leave room. */
function placeRow(
  row: readonly Placement[],
  y: number,
  width: number,
  size: Size,
  boxes: Map<string, Box>
): void {
  const step = size.width + size.gap;
  const last = width - MARGIN - size.width / 2;
  let free = MARGIN + size.width / 2;
  row.forEach((placement, i) => {
    const x = Math.min(Math.max(placement.x, free), last - step * (row.length - 1 - i));
    boxes.set(placement.key, boxAt(x, y, size));
    free = x + step;
  });
}

/** The number of nodes that fit beside each other. */
function fitting(width: number, size: Size): number {
  return Math.max(1, Math.floor((width - 2 * MARGIN + size.gap) / (size.width + size.gap)));
}

/** Rows of equal length, which look better than full rows and a short one. */
function rowsOf<T>(items: readonly T[], columns: number): T[][] {
  const rows = Math.ceil(items.length / columns);
  const each = Math.ceil(items.length / rows);
  return Array.from({ length: rows }, (_, i) => items.slice(i * each, (i + 1) * each));
}

/** A ring with the first node at the top, the others clockwise. The ring's top is at 0. */
function placeRing(
  keys: readonly string[],
  width: number,
  size: Size
): { boxes: Map<string, Box>; height: number } {
  if (keys.length === 0) {
    return { boxes: new Map(), height: 0 };
  }
  const radius = (width - 2 * MARGIN - size.width) / 2;
  const points =
    keys.length === 1
      ? [{ x: 0, y: 0 }]
      : keys.length === 2
        ? [-1, 1].map(side => ({ x: side * Math.min(radius, PAIR_RADIUS), y: 0 }))
        : keys.length <= ROUND
          ? ellipsePoints(keys.length, Math.min(radius, keys.length * 60), size)
          : rectanglePoints(keys.length, fitting(width, size), radius, size);
  const heights = points.map(point => point.y);
  const top = Math.min(...heights);
  // The two lines between two nodes are bent, so they need room above and below.
  const extra = keys.length <= 2 ? 30 : 0;
  const boxes = new Map(
    points.map(({ x, y }, i) => {
      return [keys[i]!, boxAt(width / 2 + x, y - top + size.height / 2 + extra, size)];
    })
  );
  return { boxes, height: Math.max(...heights) - top + size.height + 2 * extra };
}

/** Positions on an ellipse that is as flat as the nodes' size allows. */
function ellipsePoints(count: number, radius: number, size: Size): Point[] {
  const angles = Array.from({ length: count }, (_, i) => (2 * Math.PI * i) / count);
  const widest = Math.max(...angles.map(Math.sin));
  for (let tall = 60; ; tall += 10) {
    const points = angles.map(angle => {
      return { x: (radius * Math.sin(angle)) / widest, y: -tall * Math.cos(angle) };
    });
    if (areApart(points, size) || tall > count * (size.height + size.gapBelow)) {
      return points;
    }
  }
}

function areApart(points: readonly Point[], { width, height, gap, gapBelow }: Size): boolean {
  return points.every((a, i) =>
    points
      .slice(i + 1)
      .every(b => Math.abs(a.x - b.x) >= width + gap || Math.abs(a.y - b.y) >= height + gapBelow)
  );
}

/** Positions round a rectangle of the greatest width. */
function rectanglePoints(count: number, columns: number, radius: number, size: Size): Point[] {
  const across = Math.max(2, Math.min(columns, Math.floor(count / 3)));
  const right = Math.ceil(count / 2) - across;
  const left = count - 2 * across - right;
  const height = (right + 1) * (size.height + size.gapBelow);
  const inside = (length: number): number[] =>
    Array.from({ length }, (_, i) => (i + 1) / (length + 1));
  const row = Array.from({ length: across }, (_, i) => radius * ((2 * i) / (across - 1) - 1));
  return [
    ...row.map(x => ({ x, y: 0 })),
    ...inside(right).map(share => ({ x: radius, y: height * share })),
    ...row.map(x => ({ x: -x, y: height })),
    ...inside(left).map(share => ({ x: -radius, y: height * (1 - share) }))
  ];
}

/** The node that an arrow key moves to: the nearest one mainly in the key's direction. */
export function neighbour(
  boxes: ReadonlyMap<string, Box>,
  from: string,
  dx: number,
  dy: number
): string | null {
  const here = boxes.get(from);
  let best: string | null = null;
  let least = Infinity;
  if (here) {
    for (const [key, box] of boxes) {
      const along = (box.x - here.x) * dx + (box.y - here.y) * dy;
      const across = Math.abs((box.x - here.x) * dy) + Math.abs((box.y - here.y) * dx);
      const cost = along + 2 * across;
      if (key !== from && along > 1 && cost < least) {
        least = cost;
        best = key;
      }
    }
  }
  return best;
}
