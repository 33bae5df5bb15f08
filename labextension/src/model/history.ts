import type { Flight, Row, Span, Timeline } from './types';

/** Seconds between two removals of entries that are too old. */
const PAUSE = 1;

/** The most spans, and flights, that are stored: a tight loop makes more than anybody can read. */
export const MOST = 20_000;

/**
 * The timeline of one world, as its updates come: a span's key is its process and begin, a flight's
 * its id, and a later entry replaces an earlier one. Entries that ended more than `limit` seconds
 * before the latest event are removed; if there are very many, so are the oldest ones.
 *
 * The maps remain the same objects; `version` grows with each change, so that a drawing knows when
 * to draw again.
 */
export class History {
  constructor(limit: number) {
    this._limit = limit;
  }

  /** The name of the world; empty before the first update. */
  world = '';
  /** In the order of the ranks. */
  processes: readonly Row[] = [];
  /** By uid and begin; in the order of their begin for each process. */
  readonly spans = new Map<string, Span>();
  readonly flights = new Map<string, Flight>();
  begin = 0;
  end = 0;
  /** Events that were overwritten before the server read them. */
  missing = 0;
  version = 0;

  get limit(): number {
    return this._limit;
  }
  set limit(seconds: number) {
    this._limit = seconds;
    this._forget();
  }

  /** Add an update. A `begin` that moves to a later run does not remove earlier entries. */
  add(update: Timeline): void {
    this.world = update.world;
    this.begin = update.begin;
    this.end = Math.max(this.end, update.end);
    this.missing = update.missing;
    this.processes = update.processes;
    for (const span of update.spans) {
      this.spans.set(`${span.uid} ${span.begin}`, span);
    }
    for (const flight of update.flights) {
      this.flights.set(flight.id, flight);
    }
    this.version++;
    if (this.end > this._forgotAt + PAUSE) {
      this._forget();
    }
  }

  /** Without an update, spans that have not ended go on until this time of the server's clock. */
  advance(now: number): void {
    const lasts = [...this.spans.values()].some(span => span.end === null && span.state !== 'idle');
    if (lasts && now > this.end) {
      this.end = now;
      this.version++;
    }
  }

  clear(): void {
    this.spans.clear();
    this.flights.clear();
    this.processes = [];
    this.world = '';
    this.begin = this.end = this.missing = this._forgotAt = 0;
    this.version++;
  }

  private _forget(): void {
    this._forgotAt = this.end;
    const oldest = this.end - this._limit;
    // Maps keep the order of insertion.
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
  private _forgotAt = 0;
}
