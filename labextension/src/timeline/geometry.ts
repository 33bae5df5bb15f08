import type { Flight } from '../model/types';
import { flightBegin, flightEnd, Recording } from './recording';

/** The scales of a drawing, in canvas pixels, `ratio` of which are one pixel of the page. */
export interface Geometry {
  readonly ratio: number;
  readonly width: number;
  readonly rowHeight: number;
  /** The time at the left border, and the pixels of a second. */
  readonly start: number;
  readonly scale: number;
}

/** A flight's line, from the sender's bar to the receiver's. */
export interface Arrow {
  readonly x1: number;
  readonly y1: number;
  readonly x2: number;
  readonly y2: number;
}

/** Pixels beyond the drawing at which no arrow's head is visible. */
const BEYOND = 100;
/** The length of the line of a flight with an unknown end, in pixels of the page. */
const STUB = 9;

/** A time's pixel. */
export function xOf(time: number, { start, scale }: Geometry): number {
  return (time - start) * scale;
}

export function timeOf(x: number, { start, scale }: Geometry): number {
  return start + x / scale;
}

/** A bar's height; the rest of the row is for the arrows. */
export function barHeight({ rowHeight }: Geometry): number {
  return Math.round(rowHeight * 0.42);
}

/** The border above a row; the border below the last row has a number, too. */
export function topOf(row: number, { rowHeight }: Geometry): number {
  return Math.round(rowHeight * row);
}

export function middleOf(row: number, { rowHeight }: Geometry): number {
  return Math.round(rowHeight * (row + 0.5));
}

/**
 * The line of a flight; null if one of its processes is not drawn. A flight with one unknown end
 * is a stub at the other end; a flight from a process to itself lies on its bar.
 */
export function arrowOf(flight: Flight, recording: Recording, geometry: Geometry): Arrow | null {
  const from = recording.rowOf.get(flight.src);
  const to = recording.rowOf.get(flight.dest);
  if (from === undefined || to === undefined) {
    return null;
  }
  const half = barHeight(geometry) / 2;
  const down = Math.sign(to - from);
  const y1 = middleOf(from, geometry) + (down || -1) * half;
  const y2 = middleOf(to, geometry) - (down || 1) * half;
  const x1 = xOf(flight.sent ?? flightEnd(flight), geometry);
  const x2 = xOf(flight.received ?? flightBegin(flight), geometry);
  const stub = STUB * geometry.ratio;
  if (flight.received === null) {
    return { x1, y1, x2: x1 + stub, y2: y1 + (down || -1) * stub };
  }
  if (flight.sent === null) {
    return { x1: x2 - stub, y1: y2 - (down || 1) * stub, x2, y2 };
  }
  return clipped({ x1, y1, x2, y2 }, -BEYOND, geometry.width + BEYOND);
}

/** Zoomed in, a line may be millions of pixels long, and its dashes would take seconds. */
function clipped({ x1, y1, x2, y2 }: Arrow, low: number, high: number): Arrow {
  const clip = (x: number): number => Math.min(Math.max(x, low), high);
  const slope = x1 === x2 ? 0 : (y2 - y1) / (x2 - x1);
  const [left, right] = [clip(x1), clip(x2)];
  return { x1: left, y1: y1 + (left - x1) * slope, x2: right, y2: y2 + (right - x2) * slope };
}

/** Pixels between a point and an arrow. */
export function distance(x: number, y: number, { x1, y1, x2, y2 }: Arrow): number {
  const dx = x2 - x1;
  const dy = y2 - y1;
  const share = ((x - x1) * dx + (y - y1) * dy) / (dx * dx + dy * dy || 1);
  const t = Math.min(Math.max(share, 0), 1);
  return Math.hypot(x - x1 - t * dx, y - y1 - t * dy);
}
