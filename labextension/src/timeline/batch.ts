import type { Flight } from '../model/types';
import { Arrow, arrowOf, Geometry, xOf } from './geometry';
import type { Recording } from './recording';

/** The rules by which flights are drawn. */
export interface Choice {
  /** One flight of this number is drawn, as more would be a solid area; marked ones always are. */
  readonly every: number;
  /** Whether they are so many that heads and texts would cover everything. */
  readonly dense: boolean;
  /** The opacity of the lines, from 0 to 1. */
  readonly alpha: number;
  /**
   * A late flight is marked if it costs `seconds`; if many cost the same, one in a number of them:
   * otherwise nearly all might be marked.
   */
  readonly noticed: number;
  readonly everyNoticed: number;
  /** The lines that are already drawn: a second one on top would be invisible. */
  readonly drawn: Set<number>;
}

/** A mark in the bar of the process that waited for a late message, as long as the wait. */
export interface Cost {
  readonly row: number;
  readonly left: number;
  readonly width: number;
  readonly seconds: number;
}

/** Arrows by their style: arrows of one style are one path, which is much cheaper. */
export interface Batch {
  readonly plain: readonly Arrow[];
  readonly sender: readonly Arrow[];
  readonly receiver: readonly Arrow[];
  readonly costs: readonly Cost[];
  /** The pixels that they cover. */
  readonly left: number;
  readonly right: number;
}

const STYLES = ['plain', 'sender', 'receiver'] as const;
type Style = (typeof STYLES)[number];

/** The most flights in a drawing with arrows' heads. */
const DENSE = 2000;
/** The approximate number of the costliest flights that are marked as late. */
export const MARKED = 150;
/** The least cost of a marked flight, in pixels of the page. */
const LEAST = 4;

/** The rules for flights that share a drawing, `lines` of which may be drawn. */
export function choiceOf(flights: readonly Flight[], geometry: Geometry, lines: number): Choice {
  const { ratio, width, scale } = geometry;
  const costs = flights
    .flatMap(({ late, cost }) => (late === null ? [] : cost))
    .sort((a, b) => b - a);
  // The more lines cross each pixel of the page, the weaker each is.
  const crowd = (flights.length * ratio) / width;
  const dense = flights.length > DENSE;
  const noticed = Math.max((LEAST * ratio) / scale, costs[MARKED] ?? 0);
  const marked = costs.filter(cost => cost >= noticed).length;
  return {
    every: Math.max(1, Math.ceil(flights.length / lines)),
    dense,
    alpha: dense ? Math.min(0.3, Math.max(0.04, 0.5 / crowd)) : 0.7,
    noticed,
    everyNoticed: Math.max(1, Math.ceil(marked / (2 * MARKED))),
    drawn: new Set()
  };
}

/** Whether a flight is marked as late. */
export function isMarked({ late, cost, number }: Flight, choice: Choice): boolean {
  return late !== null && cost >= choice.noticed && number % choice.everyNoticed === 0;
}

/** The arrows and costs of flights with both ends known. */
export function batchOf(
  flights: readonly Flight[],
  recording: Recording,
  geometry: Geometry,
  choice: Choice
): Batch {
  const arrows: Record<Style, Arrow[]> = { plain: [], sender: [], receiver: [] };
  const costs: Cost[] = [];
  let left = Infinity;
  let right = -Infinity;
  for (const flight of flights) {
    const style = isMarked(flight, choice) ? flight.late! : 'plain';
    if (style === 'plain' && flight.number % choice.every !== 0) {
      continue;
    }
    const arrow = arrowOf(flight, recording, geometry);
    if (!arrow) {
      continue;
    }
    const key = lineKey(arrow, geometry, style);
    if (!choice.drawn.has(key)) {
      choice.drawn.add(key);
      arrows[style].push(arrow);
      left = Math.min(left, arrow.x1, arrow.x2);
      right = Math.max(right, arrow.x1, arrow.x2);
    }
    const cost = style === 'plain' ? null : costOf(flight, recording, geometry);
    if (cost && !choice.dense) {
      costs.push(cost);
      left = Math.min(left, cost.left);
      right = Math.max(right, cost.left + cost.width);
    }
  }
  return { ...arrows, costs, left, right };
}

function costOf(flight: Flight, recording: Recording, geometry: Geometry): Cost | null {
  const { late, since, cost, src, dest } = flight;
  const row = recording.rowOf.get(late === 'sender' ? dest : src);
  if (since === null || row === undefined) {
    return null;
  }
  return { row, left: xOf(since, geometry), width: cost * geometry.scale, seconds: cost };
}

/** A number for a line between two pixels; equal lines have equal numbers. */
function lineKey({ x1, y1, x2, y2 }: Arrow, { width }: Geometry, style: Style): number {
  const edge = width + 3;
  const clip = (x: number): number => Math.min(Math.max(Math.round(x), -1), width + 1) + 1;
  const rows = Math.round(y1) * 16384 + Math.round(y2);
  return ((rows * edge + clip(x1)) * edge + clip(x2)) * 3 + STYLES.indexOf(style);
}
