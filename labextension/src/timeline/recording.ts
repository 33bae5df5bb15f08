import type { Flight, Row, Span } from '../model/types';
import { Density } from './density';
import { Follower } from './follower';
import { Intervals } from './intervals';
import type { Domain } from './scale';

/**
 * The data of a timeline. The maps may always be the same objects; a span or a flight about
 * which more is known is another object under the same key.
 */
export interface Source {
  readonly world?: string;
  readonly begin: number;
  readonly end: number;
  readonly missing: number;
  readonly processes: readonly Row[];
  readonly spans: ReadonlyMap<string, Span>;
  readonly flights: ReadonlyMap<string, Flight>;
}

/** The changes since the last update. */
export interface Changes {
  /** Whether everything moved: another world, or another set of rows. */
  readonly all: boolean;
  /** Whether all known items were removed. */
  readonly fresh: boolean;
  /** The time from which a process's spans have changed. */
  readonly spans: ReadonlyMap<string, number>;
  /** The flights whose both ends have become known. */
  readonly flights: readonly Flight[];
  readonly any: boolean;
}

/** The earlier end of a flight, or the only known end. */
export function flightBegin({ sent, received }: Flight): number {
  return Math.min(sent ?? Infinity, received ?? Infinity);
}

export function flightEnd({ sent, received }: Flight): number {
  return Math.max(sent ?? -Infinity, received ?? -Infinity);
}

function isComplete({ sent, received }: Flight): boolean {
  return sent !== null && received !== null;
}

/** Whether an end of the flight is known. */
function isPlaced(flight: Flight): boolean {
  return Number.isFinite(flightBegin(flight));
}

/**
 * An index of the spans and flights of a world, for drawing: sorted, and updated with what becomes
 * known. The server has derived them; nothing is derived here.
 */
export class Recording {
  rows: readonly Row[] = [];
  /** The row of each process, by uid. */
  rowOf: ReadonlyMap<string, number> = new Map();
  /** The start of the last run. */
  begin = 0;
  end = 0;
  /** Flights with both ends known, and those with one. */
  readonly complete = new Intervals<Flight>(flightBegin, flightEnd);
  readonly open = new Intervals<Flight>(flightBegin, flightEnd);
  readonly density = new Density();

  get flights(): number {
    return this.complete.size + this.open.size;
  }

  get name(): (uid: string) => string {
    return this._name;
  }

  /** The earliest known time. */
  get domain(): Domain {
    let begin = this.begin;
    for (const spans of this._spans.values()) {
      begin = Math.min(begin, spans.at(0)?.begin ?? Infinity);
    }
    for (const flights of [this.complete, this.open]) {
      const first = flights.at(0);
      begin = Math.min(begin, first ? flightBegin(first) : Infinity);
    }
    return { begin, end: Math.max(this.end, begin) };
  }

  /** Add changes of the data. */
  update(source: Source): Changes {
    const isReordered = this._order(source.processes);
    const isOtherWorld = source.world !== this._world;
    this._world = source.world;
    let lasting = this._flightFollower.size + this._spanFollower.size;
    const before = this.end;
    this.begin = source.begin;
    this.end = source.end;

    const spans = new Map<string, number>();
    const goneSpans = new Map<string, Set<Span>>();
    this._spanFollower.compare(source.spans, (old, now) => {
      const { uid } = (now ?? old)!;
      if (old && !now) {
        lasting--;
        goneSpans.set(uid, (goneSpans.get(uid) ?? new Set<Span>()).add(old));
        return;
      }
      const sorted = this.spansOf(uid);
      if (old) {
        sorted.delete(old);
      }
      if (now) {
        sorted.add(now);
        // A span that went on was drawn up to the latest time.
        const same = old?.state === now.state && old.begin === now.begin;
        const from = same ? Math.min(old.end ?? before, now.end ?? Infinity) : now.begin;
        spans.set(uid, Math.min(spans.get(uid) ?? Infinity, from));
      }
    });
    goneSpans.forEach((gone, uid) => this.spansOf(uid).deleteAll(gone));

    const flights: Flight[] = [];
    const gone = new Set<Flight>();
    let opened = false;
    this._flightFollower.compare(source.flights, (was, is) => {
      if (!is) {
        lasting--;
      }
      const old = was && isPlaced(was) ? was : null;
      const now = is && isPlaced(is) ? is : null;
      if (old && now) {
        (isComplete(old) ? this.complete : this.open).delete(old);
      } else if (old) {
        gone.add(old);
      }
      if (old) {
        this.density.remove(flightEnd(old), old.late !== null);
      }
      if (now) {
        this.density.add(flightEnd(now), now.late !== null);
        (isComplete(now) ? this.complete : this.open).add(now);
        if (isComplete(now)) {
          flights.push(now);
        } else {
          opened = true;
        }
      }
    });
    if (gone.size > 0) {
      this.complete.deleteAll(gone);
      this.open.deleteAll(gone);
    }
    const fresh = isOtherWorld || lasting === 0;
    const all = fresh || isReordered;
    const any = all || opened || spans.size > 0 || flights.length > 0 || before !== this.end;
    return { all, fresh, spans, flights, any };
  }

  spansOf(uid: string): Intervals<Span> {
    let spans = this._spans.get(uid);
    if (!spans) {
      spans = new Intervals<Span>(
        span => span.begin,
        span => span.end ?? Infinity
      );
      this._spans.set(uid, spans);
    }
    return spans;
  }

  /** Returns whether the rows have changed. */
  private _order(rows: readonly Row[]): boolean {
    if (rows === this.rows) {
      return false;
    }
    const same =
      rows.length === this.rows.length &&
      rows.every((row, i) => row.uid === this.rows[i]?.uid && row.name === this.rows[i]?.name);
    if (!same) {
      this.rows = rows;
      this.rowOf = new Map(rows.map((row, i) => [row.uid, i]));
      const names = new Map(rows.map(row => [row.uid, String(row.name)]));
      this._name = uid => names.get(uid) ?? 'a process that left';
    }
    return !same;
  }

  private _world: string | undefined = undefined;
  private _name: (uid: string) => string = uid => uid;
  private readonly _spans = new Map<string, Intervals<Span>>();
  private readonly _spanFollower = new Follower<Span>(
    (a, b) => a.uid === b.uid && a.begin === b.begin
  );
  private readonly _flightFollower = new Follower<Flight>((a, b) => a.id === b.id);
}
