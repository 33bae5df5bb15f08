import type { Attributes, Diagnosis, Flight, LiveState, CodeLocation, Row, Snapshot, Span } from '../model/types';
import type { Source } from '../timeline/recording';

/** A span: process, begin, end, state, place; numbers point into the lists beside. */
type PackedSpan = readonly [number, number, number | null, number, number | null];

/** A flight: sender, receiver, number, sent, received, bytes, attributes, places, late, cost. */
type PackedFlight = readonly [
  number,
  number,
  number,
  number | null,
  number | null,
  number,
  Attributes,
  number | null,
  number | null,
  Flight['late'],
  number
];

/**
 * What sfm_kernel/observe/record/pack.py has written: the schema's timeline with times in
 * microseconds since its begin, and each process, state and place once.
 */
export interface Packed {
  readonly world: string;
  readonly begin: number;
  readonly end: number;
  readonly missing: number;
  readonly processes: readonly Row[];
  readonly states: readonly LiveState[];
  readonly places: readonly CodeLocation[];
  readonly spans: readonly PackedSpan[];
  readonly flights: readonly PackedFlight[];
}

export interface Recorded {
  readonly timeline: Packed;
  readonly diagnosis: Diagnosis;
  readonly snapshot: Snapshot;
  /** Which listing on the page shows a cell or a file. */
  readonly listings: Readonly<Record<string, number>>;
}

/** What the timeline is drawn from. */
export function sourceOf(packed: Packed): Source {
  const { begin, processes, states, places } = packed;
  const time = (at: number): number => begin + at / 1e6;
  const maybe = (at: number | null): number | null => (at === null ? null : time(at));
  const location = (index: number | null): CodeLocation | null =>
    index === null ? null : (places[index] ?? null);
  const uid = (index: number): string => processes[index]?.uid ?? '';
  const spans = new Map<string, Span>();
  for (const [who, from, to, state, where] of packed.spans) {
    const span = {
      uid: uid(who),
      begin: time(from),
      end: maybe(to),
      state: states[state] ?? 'idle',
      where: location(where)
    };
    spans.set(`${who} ${from}`, span);
  }
  const flights = new Map<string, Flight>();
  for (const one of packed.flights) {
    const [src, dest, number, sent, received, bytes, attributes, sentAt, receivedAt] = one;
    const id = `${src}-${dest}-${number}`;
    flights.set(id, {
      id,
      src: uid(src),
      dest: uid(dest),
      number,
      sent: maybe(sent),
      received: maybe(received),
      bytes,
      attributes,
      sent_at: location(sentAt),
      received_at: location(receivedAt),
      late: one[9],
      cost: one[10]
    });
  }
  const { world, missing } = packed;
  return { world, begin, end: time(packed.end), missing, processes, spans, flights };
}

/** The id of the line's element on the page; null where its code is not there. */
export function lineId(location: CodeLocation, listings: Recorded['listings']): string | null {
  const { cell, cell_id, file, line } = location;
  const key = cell === null ? file : `cell ${cell} ${cell_id ?? ''}`;
  const listing = listings[key];
  return listing === undefined ? null : `code-${listing}-${line}`;
}
