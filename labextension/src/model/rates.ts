import type { Snapshot } from './types';

/** Messages a second. */
export interface Rate {
  readonly sent: number;
  readonly received: number;
}

export function total({ sent, received }: Rate): number {
  return sent + received;
}

interface Counters extends Rate {
  readonly time: number;
}

/** Seconds over which a rate is the mean. */
const WINDOW = 2;

/** Seconds for which a rate is shown: digits that change faster cannot be read. */
const STEP = 0.5;

const NONE: Rate = { sent: 0, received: 0 };

/**
 * Rates from counters. Snapshots come only when something has changed: until the next one the
 * counters do not change.
 */
export class Rates {
  /** Add the counters of a snapshot. Processes that are not in it are forgotten. */
  add({ time, processes }: Snapshot): void {
    const before = this._counters;
    this._counters = new Map();
    for (const { uid, sent, received } of processes) {
      const past = before.get(uid) ?? [];
      past.push({ time, sent, received });
      // The last count before the window remains: it is the count at the window's begin.
      while (past.length > 1 && past[1]!.time <= time - WINDOW - STEP) {
        past.shift();
      }
      this._counters.set(uid, past);
    }
  }

  clear(): void {
    this._counters.clear();
  }

  /** The mean of the seconds before `now`, or of those since the process was first seen, if fewer. */
  of(uid: string, now: number): Rate {
    const past = this._counters.get(uid) ?? [];
    const end = Math.floor(now / STEP) * STEP;
    const last = past.findLast(count => count.time <= end);
    const first = past.findLast(count => count.time <= end - WINDOW) ?? past[0];
    if (!first || !last || first === last) {
      return NONE;
    }
    const span = Math.max(end - Math.max(first.time, end - WINDOW), STEP);
    return {
      sent: (last.sent - first.sent) / span,
      received: (last.received - first.received) / span
    };
  }

  private _counters = new Map<string, Counters[]>();
}
