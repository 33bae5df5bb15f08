import type { Graph, Node } from './model';

export interface Point {
  readonly x: number;
  readonly y: number;
}

/** A node's place: its middle and its size. */
export interface Box extends Point {
  readonly width: number;
  readonly height: number;
}

export interface Layout {
  readonly width: number;
  readonly height: number;
  readonly boxes: ReadonlyMap<string, Box>;
  /** Nodes are small: a symbol and a name. */
  readonly compact: boolean;
}

interface Size {
  readonly width: number;
  readonly height: number;
  /** What is left free between two nodes: for a line, and below each other for its label. */
  readonly gap: number;
  readonly gapBelow: number;
}

const LARGE: Size = { width: 120, height: 46, gap: 34, gapBelow: 46 };
const SMALL: Size = { width: 64, height: 24, gap: 28, gapBelow: 30 };
const MARGIN = 14;
/** More nodes than these, none of them in a deadlock, stand in a grid. */
const MANY = 16;
/** More nodes than these stand in a rectangle, as an ellipse would take too much room. */
const ROUND = 8;
/** A ring that would be taller has small nodes. */
const TALL = 540;
const MIN_WIDTH = 300;
/** A drawing that is wider than this leaves the eye too far to go. */
const MAX_WIDTH = 900;
const GRID_ROW = 56;
const PAIR_RADIUS = 180;
/** From this width on the bystanders of a deadlock stand beside it, otherwise below it. */
const WIDE = 640;
/** So many of them stand below each other. */
const COLUMN = 8;

/**
 * Where the nodes stand; depends on their names and the width alone, but for a deadlock: its cycle
 * becomes a ring, who waits for it stands above and below, the others at the side.
 */
export function layoutOf(graph: Graph, width: number): Layout {
  const room = Math.min(Math.max(width, MIN_WIDTH), MAX_WIDTH);
  if (graph.ring.length > 0) {
    return deadlockLayout(graph, room);
  }
  const keys = graph.nodes.map(node => node.key);
  return keys.length > MANY ? gridLayout(keys, room) : ringLayout(keys, room);
}

function ringLayout(keys: readonly string[], width: number): Layout {
  const size = sizeFor(keys, width);
  const { boxes, height } = placeRing(keys, width, size);
  const compact = size === SMALL;
  return { boxes: shifted(boxes, MARGIN), height: height + 2 * MARGIN, width, compact };
}

/** Rows of small nodes, with space for the lines between them. */
function gridLayout(keys: readonly string[], width: number): Layout {
  const columns = fitting(width, SMALL);
  const step = (width - 2 * MARGIN) / columns;
  const boxes = new Map<string, Box>();
  keys.forEach((key, i) => {
    const x = MARGIN + step * ((i % columns) + 0.5);
    const y = 2 * MARGIN + SMALL.height / 2 + Math.floor(i / columns) * GRID_ROW;
    boxes.set(key, { x, y, width: SMALL.width, height: SMALL.height });
  });
  const rows = Math.ceil(keys.length / columns);
  return { width, height: 3 * MARGIN + rows * GRID_ROW, boxes, compact: true };
}

function sizeFor(keys: readonly string[], width: number): Size {
  return placeRing(keys, width, LARGE).height > TALL ? SMALL : LARGE;
}

function deadlockLayout(graph: Graph, width: number): Layout {
  const victims = graph.nodes.filter(node => node.part === 'victim');
  const others = graph.nodes.filter(node => node.part === null);
  const compact = victims.length > MANY || sizeFor(graph.ring, width) === SMALL;
  const size = compact ? SMALL : LARGE;
  const columns = Math.ceil(others.length / COLUMN);
  const wanted = columns * (size.width + size.gap);
  const beside = width >= WIDE && wanted <= width / 3;
  const side = beside ? wanted : 0;
  const main = width - side;

  const ring = placeRing(graph.ring, main, size);
  const boxes = new Map(ring.boxes);
  const bounds = placeVictims(graph, victims, boxes, main, size, ring.height);

  if (beside) {
    others.forEach((node, i) => {
      const x = width - MARGIN - size.width / 2 - Math.floor(i / COLUMN) * (size.width + size.gap);
      const y = bounds.top + size.height / 2 + (i % COLUMN) * (size.height + size.gapBelow);
      boxes.set(node.key, { x, y, width: size.width, height: size.height });
    });
    const rows = Math.min(others.length, COLUMN);
    const height = rows * (size.height + size.gapBelow) - size.gapBelow;
    bounds.bottom = Math.max(bounds.bottom, bounds.top + height);
  } else if (others.length > 0) {
    bounds.bottom += size.gapBelow / 2;
    for (const row of rowsOf(others, fitting(main, size))) {
      const each = (main - 2 * MARGIN) / row.length;
      const wishes = row.map((node, i): Wish => [node, MARGIN + each * (i + 0.5)]);
      bounds.bottom += size.gapBelow;
      placeRow(wishes, bounds.bottom + size.height / 2, main, size, boxes);
      bounds.bottom += size.height;
    }
  }
  const height = bounds.bottom - bounds.top + 2 * MARGIN;
  return { boxes: shifted(boxes, MARGIN - bounds.top), height, width, compact };
}

/**
 * Those who wait for the cycle stand in rows: above it if the one they wait for is in its upper
 * half, else below it; who waits for them stands further out. Adds them to `boxes`.
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
  const middle = height / 2;
  const step = size.height + size.gapBelow;
  let left = [...victims];
  while (left.length > 0) {
    const above: Wish[] = [];
    const below: Wish[] = [];
    const rest: Node[] = [];
    for (const node of left) {
      const target = graph.lines.find(line => line.from === node.key && boxes.has(line.to));
      const box = target && boxes.get(target.to);
      if (box) {
        (box.y < middle ? above : below).push([node, box.x]);
      } else {
        rest.push(node);
      }
    }
    if (above.length + below.length === 0) {
      // They wait for somebody who is not drawn.
      below.push(...rest.splice(0).map((node): Wish => [node, width / 2]));
    }
    for (const row of rowsByTarget(above, width, size)) {
      bounds.top -= step;
      placeRow(row, bounds.top + size.height / 2, width, size, boxes);
    }
    for (const row of rowsByTarget(below, width, size)) {
      bounds.bottom += step;
      placeRow(row, bounds.bottom - size.height / 2, width, size, boxes);
    }
    left = rest;
  }
  return bounds;
}

/** A node, and where it would like to stand. */
type Wish = readonly [Node, number];

function rowsByTarget(wishes: readonly Wish[], width: number, size: Size): Wish[][] {
  const ordered = [...wishes].sort((a, b) => a[1] - b[1]);
  return rowsOf(ordered, fitting(width, size));
}

/** Each stands where it wishes, as far as those before it and the border leave room. */
function placeRow(
  row: readonly Wish[],
  y: number,
  width: number,
  size: Size,
  boxes: Map<string, Box>
): void {
  const step = size.width + size.gap;
  const last = width - MARGIN - size.width / 2;
  let free = MARGIN + size.width / 2;
  row.forEach(([node, wish], i) => {
    const x = Math.min(Math.max(wish, free), last - step * (row.length - 1 - i));
    boxes.set(node.key, { x, y, width: size.width, height: size.height });
    free = x + step;
  });
}

/** How many nodes have room beside each other. */
function fitting(width: number, { width: one, gap }: Size): number {
  return Math.max(1, Math.floor((width - 2 * MARGIN + gap) / (one + gap)));
}

function rowsOf<T>(items: readonly T[], columns: number): T[][] {
  // Rows of equal length look better than full ones and a rest.
  const rows = Math.ceil(items.length / columns);
  const each = Math.ceil(items.length / rows);
  return Array.from({ length: rows }, (_, i) => items.slice(i * each, (i + 1) * each));
}

/** The first one at the top, the others clockwise. The ring's top is at 0. */
function placeRing(
  keys: readonly string[],
  width: number,
  size: Size
): { boxes: Map<string, Box>; height: number } {
  const radius = (width - 2 * MARGIN - size.width) / 2;
  const points =
    keys.length <= 2
      ? pairPoints(keys.length, Math.min(radius, PAIR_RADIUS))
      : keys.length <= ROUND
        ? ellipsePoints(keys.length, Math.min(radius, keys.length * 60), size)
        : rectanglePoints(keys.length, fitting(width, size), radius, size);
  const heights = points.map(point => point.y);
  const top = Math.min(...heights);
  // The two lines between two nodes are bent, and need room above and below.
  const extra = keys.length <= 2 ? 30 : 0;
  const boxes = new Map<string, Box>();
  points.forEach((point, i) => {
    const y = point.y - top + size.height / 2 + extra;
    boxes.set(keys[i]!, { x: width / 2 + point.x, y, width: size.width, height: size.height });
  });
  const height = points.length ? Math.max(...heights) - top + size.height + 2 * extra : 0;
  return { boxes, height };
}

function pairPoints(count: number, radius: number): Point[] {
  const x = count === 2 ? radius : 0;
  return [-x, x].slice(0, count).map(x => ({ x, y: 0 }));
}

/** As flat as the nodes' size allows. */
function ellipsePoints(count: number, radius: number, size: Size): Point[] {
  for (let tall = 50; ; tall += 10) {
    const points = onEllipse(count, radius, tall);
    const widest = Math.max(...points.map(point => point.x));
    const spread = points.map(({ x, y }) => ({ x: (x * radius) / widest, y }));
    if (apart(spread, size) || tall > count * (size.height + size.gapBelow)) {
      return spread;
    }
  }
}

/** Round a rectangle that is as wide as it may be. */
function rectanglePoints(count: number, columns: number, radius: number, size: Size): Point[] {
  const across = Math.max(2, Math.min(columns, Math.floor(count / 3)));
  const rest = count - 2 * across;
  const right = Math.ceil(rest / 2);
  const left = rest - right;
  const height = (right + 1) * (size.height + size.gapBelow);
  const x = (i: number): number => -radius + (2 * radius * i) / (across - 1);
  const range = (length: number): number[] => Array.from({ length }, (_, i) => i);
  return [
    ...range(across).map(i => ({ x: x(i), y: 0 })),
    ...range(right).map(i => ({ x: radius, y: (height * (i + 1)) / (right + 1) })),
    ...range(across).map(i => ({ x: x(across - 1 - i), y: height })),
    ...range(left).map(i => ({ x: -radius, y: height - (height * (i + 1)) / (left + 1) }))
  ];
}

/** `count` points on an ellipse around (0, 0), the same length of its line apart. */
function onEllipse(count: number, rx: number, ry: number): Point[] {
  const steps = 360;
  const at = (i: number): Point => {
    const angle = (2 * Math.PI * i) / steps - Math.PI / 2;
    return { x: rx * Math.cos(angle), y: ry * Math.sin(angle) };
  };
  const lengths = [0];
  for (let i = 1; i <= steps; i++) {
    const a = at(i - 1);
    const b = at(i);
    lengths.push(lengths[i - 1]! + Math.hypot(a.x - b.x, a.y - b.y));
  }
  const total = lengths[steps]!;
  return Array.from({ length: count }, (_, i) => {
    const wanted = (total * i) / count;
    return at(
      Math.max(
        0,
        lengths.findIndex(length => length >= wanted)
      )
    );
  });
}

function apart(points: readonly Point[], { width, height, gap, gapBelow }: Size): boolean {
  return points.every((a, i) =>
    points
      .slice(i + 1)
      .every(b => Math.abs(a.x - b.x) >= width + gap || Math.abs(a.y - b.y) >= height + gapBelow)
  );
}

function shifted(boxes: ReadonlyMap<string, Box>, y: number): Map<string, Box> {
  return new Map([...boxes].map(([key, box]) => [key, { ...box, y: box.y + y }]));
}

/** The node that an arrow key leads to: the nearest one that lies more in its direction than not. */
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
