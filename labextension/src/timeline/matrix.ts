import type { Row } from '../model/types';
import { flightBegin, Source } from './recording';

/** Processes that a matrix shows. */
export const MOST = 40;

/** The messages of the last run: their number and their bytes, by sender (row) and receiver. */
export interface Matrix {
  readonly processes: readonly Row[];
  readonly counts: ReadonlyArray<readonly number[]>;
  readonly sizes: ReadonlyArray<readonly number[]>;
  /** The number of processes that are left out. */
  readonly hidden: number;
}

export function matrixOf({ begin, processes, flights }: Source): Matrix {
  const shown = processes.slice(0, MOST);
  const place = new Map(shown.map(({ uid }, nth) => [uid, nth]));
  const zeros = (): number[][] => shown.map(() => shown.map(() => 0));
  const [counts, sizes] = [zeros(), zeros()];
  for (const flight of flights.values()) {
    const [src, dest] = [place.get(flight.src), place.get(flight.dest)];
    // The panel has earlier runs, too.
    if (src !== undefined && dest !== undefined && flightBegin(flight) >= begin) {
      counts[src]![dest]!++;
      sizes[src]![dest]! += flight.bytes;
    }
  }
  return { processes: shown, counts, sizes, hidden: processes.length - shown.length };
}

export function sum(rows: ReadonlyArray<readonly number[]>): number {
  return rows.flat().reduce((total, value) => total + value, 0);
}
