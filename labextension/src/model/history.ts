import type { Flight, Row, Span, Timeline } from './types';

/** Seconds between two looks for what is too old. */
const PAUSE = 1;

/** Spans, and flights, that are kept at most: a tight loop makes more than anybody can look at. */
export const MOST = 20_000;

/**
 * The timeline of one world, as its parts come: spans are named by process and begin, flights by
 * id, and a later one replaces an earlier one. What ended more than `limit` seconds before the
 * latest event is forgotten, and of very many the first.
 *
 * The maps keep their identity; `version` grows with each change, so that a drawing knows when to
 * draw anew.
 */
export class History {
  constructor(limit: number) {
    this._limit = limit;
  }

  /** The name of the world; empty before the first part. */
  world = '';
  /** In the order of the ranks. */
  processes: readonly Row[] = [];
  /** By uid and begin; in the order of their begin for each process. */
  readonly spans = new Map<string, Span>();
  readonly flights = new Map<string, Flight>();
  begin = 0;
  end = 0;
  /** Events that were overwritten before anybody read them. */
  missing = 0;
  version = 0;

  get limit(): number {
    return this._limit;
  }
  set limit(seconds: number) {
    this._limit = seconds;
    this._forget();
  }

  /** Take in what is new. `begin` that moves to a later run does not remove what was before. */
  add(part: Timeline): void {
    this.world = part.world;
    this.begin = part.begin;
    this.end = Math.max(this.end, part.end);
    this.missing = part.missing;
    this.processes = part.processes;
    for (const span of part.spans) {
      this.spans.set(`${span.uid} ${span.begin}`, span);
    }
    for (const flight of part.flights) {
      this.flights.set(flight.id, flight);
    }
    this.version++;
    if (this.end > this._looked + PAUSE) {
      this._forget();
    }
  }

  /** Nothing was said since, and what has not ended goes on: until when, on the server's clock. */
  advance(now: number): void {
    const goes = [...this.spans.values()].some(one => one.end === null && one.state !== 'idle');
    if (goes && now > this.end) {
      this.end = now;
      this.version++;
    }
  }

  clear(): void {
    this.spans.clear();
    this.flights.clear();
    this.processes = [];
    this.world = '';
    this.begin = this.end = this.missing = this._looked = 0;
    this.version++;
  }

  private _forget(): void {
    this._looked = this.end;
    const oldest = this.end - this._limit;
    // Maps keep the order in which things came.
    let many = this.spans.size - MOST;
    for (const [key, span] of this.spans) {
      if (span.end !== null && (span.end < oldest || many > 0)) {
        this.spans.delete(key);
        many--;
      }
    }
    many = this.flights.size - MOST;
    for (const [id, flight] of this.flights) {
      if (many > 0 || Math.max(flight.sent ?? 0, flight.received ?? 0) < oldest) {
        this.flights.delete(id);
        many--;
      }
    }
    this.version++;
  }

  private _limit: number;
  private _looked = 0;
}
