import type { LiveState, Span } from '../model/types';

/** A stretch of a row, in integer pixels. */
export interface Bar {
  readonly state: LiveState;
  readonly from: number;
  readonly to: number;
}

/**
 * Spans as bars of integer pixels. A pixel of several spans shows the state that took most of
 * it, so that thousands of short ones cost no more than there are pixels, and none beside a
 * long one is lost.
 *
 * `spans` are sorted and do not overlap; `x` gives a time's pixel; lasting spans go on to `now`.
 */
export function barsOf(spans: readonly Span[], x: (time: number) => number, now: number): Bar[] {
  const bars: { state: LiveState; from: number; to: number }[] = [];
  const shares = new Map<LiveState, number>();
  let column = -Infinity;

  const put = (state: LiveState, from: number, to: number): void => {
    const last = bars.at(-1);
    if (last && last.to === from && last.state === state) {
      last.to = to;
    } else if (to > from) {
      bars.push({ state, from, to });
    }
  };
  const flush = (): void => {
    let most: LiveState | null = null;
    let size = -1;
    shares.forEach((share, state) => {
      if (share > size) {
        most = state;
        size = share;
      }
    });
    if (most !== null) {
      put(most, column, column + 1);
    }
    shares.clear();
  };
  const share = (state: LiveState, pixel: number, size: number): void => {
    if (pixel !== column) {
      flush();
      column = pixel;
    }
    shares.set(state, (shares.get(state) ?? 0) + size);
  };

  for (const { state, begin, end } of spans) {
    const from = x(begin);
    const to = x(Math.max(begin, end ?? now));
    const first = Math.floor(from);
    const last = Math.floor(to);
    if (first === last) {
      share(state, first, to - from);
      continue;
    }
    share(state, first, first + 1 - from);
    if (last > first + 1) {
      flush();
      put(state, first + 1, last);
    }
    if (to > last) {
      share(state, last, to - last);
    }
  }
  flush();
  return bars;
}
