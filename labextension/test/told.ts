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

/** What the panel hands over: its maps stay the same objects. */
export class Told implements Source {
  readonly spans = new Map<string, Span>();
  readonly flights = new Map<string, Flight>();
  world = 'w';
  begin = 0;
  end = 0;
  missing = 0;
  processes: readonly Row[] = ROWS;

  span(...parts: Parameters<typeof span>): void {
    const told = span(...parts);
    this.spans.set(`${told.uid} ${told.begin}`, told);
    this.end = Math.max(this.end, told.end ?? told.begin);
  }

  flight(...parts: Parameters<typeof flight>): void {
    const told = flight(...parts);
    this.flights.set(told.id, told);
    this.end = Math.max(this.end, told.sent ?? 0, told.received ?? 0);
  }
}

export function all<T>(items: Intervals<T>): T[] {
  const found: T[] = [];
  items.visit(-Infinity, Infinity, item => void found.push(item));
  return found;
}
