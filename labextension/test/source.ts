import type { Flight, LiveState, Row, Span } from '../src/model/types';
import type { Intervals } from '../src/timeline/intervals';
import type { Source } from '../src/timeline/recording';

export function span(
  uid: string,
  begin: number,
  end: number | null,
  state: LiveState = 'running'
): Span {
  return { uid, begin, end, state, where: null };
}

export function flight(
  id: string,
  sent: number | null,
  received: number | null,
  more = {}
): Flight {
  return {
    id,
    src: 'a',
    dest: 'b',
    number: 1,
    sent,
    received,
    bytes: 0,
    attributes: [],
    sent_at: null,
    received_at: null,
    late: null,
    cost: 0,
    since: null,
    ...more
  };
}

export const ROWS: readonly Row[] = ['a', 'b', 'c'].map((uid, rank) => ({ uid, name: uid, rank }));

/** The data that the panel gives to a chart: its maps stay the same objects. */
export class FakeSource implements Source {
  readonly spans = new Map<string, Span>();
  readonly flights = new Map<string, Flight>();
  world = 'w';
  begin = 0;
  end = 0;
  missing = 0;
  processes: readonly Row[] = ROWS;

  span(...fields: Parameters<typeof span>): void {
    const added = span(...fields);
    this.spans.set(`${added.uid} ${added.begin}`, added);
    this.end = Math.max(this.end, added.end ?? added.begin);
  }

  flight(...fields: Parameters<typeof flight>): void {
    const added = flight(...fields);
    this.flights.set(added.id, added);
    this.end = Math.max(this.end, added.sent ?? 0, added.received ?? 0);
  }
}

export function all<T>(items: Intervals<T>): T[] {
  const found: T[] = [];
  items.visit(-Infinity, Infinity, item => void found.push(item));
  return found;
}
